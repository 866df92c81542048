"""Git worktrees for runs, below the state directory; see ``ports.Worktrees``.

Next to each worktree lies a record (``<name>.json``): the commit it began from, whether it was made
to its end, and for which attempts. It is what makes every step safe to repeat after a crash: a
worktree that was not made to its end never had a worker in it, and is made again.

A worker may write whatever it likes into its worktree, also another ``.git``. So every call that
works in one names the directories of the repository from outside (``Checkout``), and none is made
when ``.git`` is not the file that was made.

Why: docs/decisions/0026-worktrees-are-planned-at-the-spawn.md.
"""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from subagents.config.settings import Settings
from subagents.domain.run.values import RunId, Value, replace
from subagents.domain.run.workspace import Changes, Worktree
from subagents.errors import NotFound, RuntimeUnavailable, UsageError
from subagents.extensions.worktrees.git import (
    CHECKOUT_S,
    NO_SUBMODULES,
    Checkout,
    Git,
    GitFailed,
    NoGit,
    fields,
)
from subagents.extensions.worktrees.leftovers import bring_home, commit_of
from subagents.extensions.worktrees.worktree_changes import (
    changes_of,
    diff_of,
    paths_of,
    printable,
)
from subagents.extensions.worktrees.worktree_include import copied, linked
from subagents.extensions.worktrees.worktree_merge import Merge, merged
from subagents.extensions.worktrees.worktree_names import BRANCHES, branch_of, worktree_name
from subagents.extensions.worktrees.worktree_settings import RepositorySettings, settings_of
from subagents.extensions.worktrees.worktree_standing import Standing, bytes_in, standing_of
from subagents.ports import Diff, Kept, OffLoop, Planned
from subagents.text import counted

T = TypeVar("T")

LINK_BYTES_MAX: Final = 8192
LOOK_S: Final = 5.0
"""The longest count of what is not committed; a warning is not worth more."""
_FIELD: Final = {"field": "isolation"}
_INSTEAD: Final = "or leave isolation out"
_FIX: Final = "only directories that it ignores are linked"


class Record(Value, frozen=True):
    """What is known of a worktree besides what git knows."""

    tree: Worktree
    run_id: RunId
    """The run that it was planned for."""
    base: str
    """The commit it began from."""
    is_made: bool = False
    copies: dict[str, str] = {}
    """Files that git ignores and that were copied into it: path → state (``is_as_copied``)."""
    attempts: dict[str, int] = {}
    """Run → the newest attempt it was made ready for."""
    begun: dict[str, str] = {}
    """Run that goes on in another's → the commit it found there."""


class Look(Value, frozen=True):
    """A worktree, looked at."""

    kept_because: str | None
    """Why it is not removed, whatever its run does; None = it can be."""
    standing: Standing | None = None
    """None = git could not say."""
    changes: Changes | None = None
    """None = it is not there."""
    made_at_ms: int | None = None
    bytes: int = 0


class GitWorktrees:
    """One directory with all worktrees of this home.

    Args:
        directory: Made when the first one is.
        off_loop: Carries git; for this alone, because a disk can be slow.
        environ: The daemon's environment.
        settings_now: Has ``[worktrees.<name>]``.
    """

    def __init__(
        self,
        directory: Path,
        off_loop: OffLoop,
        environ: Mapping[str, str],
        settings_now: Callable[[], Settings] = Settings,
    ) -> None:
        self._directory = directory
        self._off_loop = off_loop
        self._environ = environ
        self._settings_now = settings_now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def plan(self, cwd: str, *, run_id: RunId, label: str) -> Planned:
        """See ``ports.Worktrees.plan``."""
        return await self._off_loop(lambda: self._plan(cwd, run_id, label))

    async def prepare(self, run_id: RunId, tree: Worktree, *, attempt: int, afresh: bool) -> None:
        """See ``ports.Worktrees.prepare``."""
        where = (tree.repository, tree.path)
        await self._locked(where, lambda: self._prepare(run_id, tree, attempt, afresh=afresh))

    async def changes(self, run_id: RunId, tree: Worktree) -> Changes | None:
        """See ``ports.Worktrees.changes``."""
        return await self._locked((tree.path,), lambda: self._brought(run_id, tree))

    async def diff(self, tree: Worktree, path: str | None, *, bytes_max: int) -> Diff:
        """See ``ports.Worktrees.diff``."""
        return await self._locked((tree.path,), lambda: self._diff(tree, path, bytes_max))

    async def changed_paths(self, tree: Worktree) -> frozenset[str]:
        """The files that were changed in it so far, from its root; none where it is not.

        Raises:
            RuntimeUnavailable: git could not say.
        """
        return await self._locked((tree.path,), lambda: self._changed_paths(tree))

    async def remove_clean(self, run_id: RunId, tree: Worktree) -> bool:  # noqa: ARG002
        """See ``ports.Worktrees.remove_clean``."""
        where = (tree.repository, tree.path)
        return await self._locked(where, lambda: self._remove_clean(tree))

    async def kept(self) -> tuple[Kept, ...]:
        """See ``ports.Worktrees.kept``."""
        return tuple(Kept(run_id=each.run_id, tree=each.tree) for each in await self.records())

    async def records(self) -> tuple[Record, ...]:
        """What is known of all that exist."""
        files = self._directory.glob("*.json")
        return await self._off_loop(lambda: tuple(filter(None, map(_read, sorted(files)))))

    async def record(self, tree: Worktree) -> Record | None:
        """What is known of this one; None = it is not of this machine, or is gone."""
        return await self._off_loop(lambda: self._record(tree))

    async def look(self, record: Record, bases: Collection[str]) -> Look:
        """How it stands. Changes nothing.

        Args:
            record: Which.
            bases: Checkouts that worktrees were made from: those stay.
        """
        return await self._locked((record.tree.path,), lambda: self._look(record, bases))

    async def merge(self, record: Record) -> tuple[Merge, str | None]:
        """Merge its branch into what its repository has checked out.

        Returns:
            What came of it, and why what its worker did not commit is not in it; None = it is.

        Raises:
            Conflict: The checkout is not ready for it; nothing was changed there.
            GitFailed: git could not do it; nothing was changed there.
        """
        tree = record.tree
        return await self._locked((tree.repository, tree.path), lambda: self._merge(record))

    async def remove_merged(self, record: Record, bases: Collection[str]) -> str | None:
        """Remove worktree and branch if nothing is lost with them.

        Args:
            record: Which.
            bases: See ``look``.

        Returns:
            Why it stays; None = it is gone.
        """
        where = (record.tree.repository, record.tree.path)
        return await self._locked(where, lambda: self._remove_merged(record, bases))

    async def _locked(self, where: tuple[str, ...], work: Callable[[], T]) -> T:
        """One at a time in each place: two of them would meet at git's own locks and fail.

        Where the caller no longer waits, it ends all the same before the next one begins.
        """

        async def alone() -> T:
            async with AsyncExitStack() as held:
                for each in where:
                    await held.enter_async_context(self._locks.setdefault(each, asyncio.Lock()))
                return await self._off_loop(work)

        return await asyncio.shield(asyncio.ensure_future(alone()))

    def _git(self, directory: str) -> Git:
        return Git(directory, self._environ)

    def _git_in(self, tree: Worktree, *, index: Path | None = None) -> Git:
        """In the worktree.

        Raises:
            GitFailed: It is none of its repository any more, or its ``.git`` is not what it was.
        """
        checkout = self._checkout(tree)
        if _linked(tree) != os.path.realpath(checkout.git_dir):
            raise GitFailed(
                f"{tree.path}/.git is not the file that was made any more: git is not asked there, "
                f"since it would obey what is there now; it was 'gitdir: {checkout.git_dir}'"
            )
        return Git(tree.path, self._environ, index=index, checkout=checkout)

    def _checkout(self, tree: Worktree) -> Checkout:
        asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        common = self._git(tree.repository)(*asked).removesuffix("\n")
        wanted = os.path.realpath(tree.path)
        for file in Path(common, "worktrees").glob("*/gitdir"):
            with suppress(OSError):  # of another one, which is removed at this moment
                text = os.fsdecode(file.read_bytes()).strip()
                # Relative to itself, where git is configured so (worktree.useRelativePaths).
                link = os.path.join(file.parent, text)  # noqa: PTH118
                if os.path.realpath(os.path.dirname(link)) == wanted:  # noqa: PTH120
                    return Checkout(git_dir=str(file.parent), common_dir=common)
        raise GitFailed(f"{tree.path} is no worktree of {tree.repository} any more")

    # -- planning --------------------------------------------------------------------------

    def _plan(self, cwd: str, run_id: RunId, label: str) -> Planned:
        git = self._git(cwd)
        root, prefix = self._root(git, cwd)
        name, wanted = self._wanted(root)
        base, key = wanted.base, f"worktrees.{name}"
        if git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
            raise _refused(f"{root} has no commit yet", f"commit something there, {_INSTEAD}")
        if git.line("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
            raise _refused(f"{root} has no commit {base}", f"{key}.base names it: change that")
        modules = git.line("ls-tree", "--full-tree", "--name-only", base, ".gitmodules")
        if modules and not wanted.setup:
            text = f"{root} has submodules, which a worktree does not hold"
            how = "fetch them by setup in [worktrees.<name>] (git submodule update --init), or"
            raise _refused(text, f"{how} give a clone of your own as cwd, {_INSTEAD}")
        if prefix and git.line("cat-file", "-t", f"{base}:{prefix.rstrip('/')}") != "tree":
            text = f"{prefix} is not in {_commit_in_words(base)} of {root}"
            raise _refused(text, f"commit it, give {root} as cwd, {_INSTEAD}")
        for each in wanted.link:
            if git.line("check-ignore", "--quiet", "--", f"{root}/{each}/") is None:
                raise _refused(f"git does not ignore {root}/{each}", f"{key}.link names it: {_FIX}")
        path = self._directory / worktree_name(run_id, label)
        # A branch that has the name of our folder of branches: git makes none below it.
        is_taken = git.line("rev-parse", "--verify", "--quiet", f"refs/heads/{BRANCHES}")
        branch = branch_of(run_id, label, has_folder=is_taken is None)
        setup = wanted.script(path, self._set_up(path), name)
        tree = Worktree(repository=root, path=str(path), branch=branch, origin=cwd, setup=setup)
        warnings = (*self._uncommitted(git, base), *_unrun(git))
        return Planned(tree=tree, cwd=str(path / prefix), warnings=warnings)

    def _root(self, git: Git, cwd: str) -> tuple[str, str]:
        """The root of the checkout, and the way from there to ``cwd`` (``""`` or ``"sub/"``)."""
        try:
            is_bare = git("rev-parse", "--is-bare-repository").strip() == "true"
            is_inside = git("rev-parse", "--is-inside-work-tree").strip() == "true"
        except NoGit as error:
            raise _refused(error.message, f"install git, {_INSTEAD}") from error
        except GitFailed as error:
            if "not a git repository" in error.message:
                text = f"{cwd} is in no git repository"
                how = f"git init and commit there, give another cwd, {_INSTEAD}"
                raise _refused(text, how) from error
            raise _refused(f"{cwd}: {error.message}", _INSTEAD) from error
        if is_bare or not is_inside:
            what = "is a bare repository" if is_bare else "lies inside the .git directory"
            raise _refused(f"{cwd} {what}", f"give the directory of a checkout as cwd, {_INSTEAD}")
        asked = ("--show-toplevel", "--show-prefix")
        # What is no text cannot be stored: such a place is not there then.
        root, prefix = (printable(git("rev-parse", each).removesuffix("\n")) for each in asked)
        return root, prefix

    def _wanted(self, root: str) -> tuple[str, RepositorySettings]:
        return settings_of(self._settings_now().named(RepositorySettings), root)

    def _set_up(self, path: Path) -> Path:
        """The file that says that a worktree's setup has succeeded."""
        return self._directory / f"{path.name}.set-up"

    def _uncommitted(self, git: Git, base: str) -> tuple[str, ...]:
        asked = ("status", "--porcelain", "-z", "--no-renames", NO_SUBMODULES)
        found = fields(git.line(*asked, timeout_s=LOOK_S) or "")
        if not found:
            return ()
        what = counted(len(found), "uncommitted change is", "uncommitted changes are")
        return (f"{what} not in the worktree: it begins from {_commit_in_words(base)}",)

    # -- making ----------------------------------------------------------------------------

    def _prepare(self, run_id: RunId, tree: Worktree, attempt: int, *, afresh: bool) -> None:
        record = self._record(tree)
        if record is None:
            # On record before it is made: a crash in between leaves no worktree without a record.
            record = self._begin(run_id, tree)
        # Not by its .git: a worker may have removed that, and its files are still there.
        if not record.is_made or not Path(tree.path).exists():
            record = replace(record, is_made=True, copies=self._make(record))
            self._write(record)
        if record.attempts.get(run_id, 0) >= attempt:
            return
        if run_id != record.run_id and run_id not in record.attempts:
            tip = self._git(tree.repository).line("rev-parse", "--verify", _ref(tree))
            record = replace(record, begun={**record.begun, run_id: tip or record.base})
        if afresh:
            base = record.begun.get(run_id, record.base)
            self._set_aside(replace(record, run_id=run_id, base=base), attempt)
        self._write(replace(record, attempts={**record.attempts, run_id: attempt}))

    def _begin(self, run_id: RunId, tree: Worktree) -> Record:
        if Path(tree.path).exists():
            raise UsageError(f"{tree.path} is in the way of the worktree", details=_FIELD)
        if not Path(tree.repository).is_dir():
            raise UsageError(f"the repository {tree.repository} is gone", details=_FIELD)
        _, wanted = self._wanted(tree.repository)
        asked = ("rev-parse", "--verify", f"{wanted.base}^{{commit}}")
        base = self._git(tree.repository)(*asked).strip()
        record = Record(tree=tree, run_id=run_id, base=base)
        self._write(record)
        return record

    def _make(self, record: Record) -> dict[str, str]:
        """Nothing is in it that anybody wants: it was never whole, or somebody removed it."""
        tree, path = record.tree, Path(record.tree.path)
        git = self._git(tree.repository)
        if path.exists():
            git.line("worktree", "remove", "--force", "--force", tree.path)
            shutil.rmtree(path, ignore_errors=True)
        git.line("worktree", "prune")
        self._set_up(path).unlink(missing_ok=True)
        has_branch = git.line("rev-parse", "--verify", "--quiet", _ref(tree)) is not None
        where = (tree.path, tree.branch) if has_branch else ("-b", tree.branch, tree.path)
        last = () if has_branch else (record.base,)
        # From the repository of the checkout: a path that begins with "-" is none (absolute).
        git("worktree", "add", "--quiet", *where, *last, timeout_s=CHECKOUT_S)
        root, (_, wanted) = Path(tree.repository), self._wanted(tree.repository)
        return {**linked(root, path, wanted.link), **copied(git, root, path)}

    def _set_aside(self, record: Record, attempt: int) -> None:
        """Keep what was done since on a branch of its own, then begin from the base again."""
        tree = record.tree
        git = self._git_in(tree)
        # Whoever held it is dead: no attempt lives besides the one that is being started.
        lock = git.line("rev-parse", "--path-format=absolute", "--git-path", "index.lock")
        if lock is not None:
            Path(lock).unlink(missing_ok=True)
        found = changes_of(git, record.base, tree, record.copies)
        if not found.is_clean:
            self._keep(record, attempt - 1)
        for unfinished in ("rebase", "cherry-pick", "revert"):
            git.line(unfinished, "--quit")
        git("checkout", "--quiet", "-f", "-B", tree.branch, record.base, timeout_s=CHECKOUT_S)
        git("clean", "-ffdq", timeout_s=CHECKOUT_S)

    def _keep(self, record: Record, attempt: int) -> None:
        tree, count = record.tree, sum(record.attempts.values())  # of all runs in it
        kept = f"{_ref(tree)}-attempt-{count}"
        git = self._git_in(tree)
        if git.line("rev-parse", "--verify", "--quiet", kept) is not None:
            return  # kept before a crash; what is there by now may be half of it
        index = self._index(tree)
        try:
            text = _text(tree, record.run_id, attempt)
            work = commit_of(git, self._git_in(tree, index=index), text)
            # Zeros: only where no such branch is there yet (git-update-ref(1)).
            git("update-ref", kept, work, "0" * len(work))
        finally:
            index.unlink(missing_ok=True)

    def _bring_home(self, record: Record, run_id: RunId) -> None:
        """Put what is in no commit into one, on the run's branch, from which it is merged.

        Raises:
            RuntimeUnavailable: It cannot be, and all files stay as they are.
        """
        tree, index = record.tree, self._index(record.tree)
        text = _text(tree, run_id, record.attempts.get(run_id, 1))
        try:
            git, apart = self._git_in(tree), self._git_in(tree, index=index)
            bring_home(git, apart, index, tree.branch, text)
        finally:
            index.unlink(missing_ok=True)

    def _index(self, tree: Worktree) -> Path:
        """A copy of its index: git knows by it which files are as they were."""
        own = Path(self._checkout(tree).git_dir, "index")
        # Beside it, so that it can take its place.
        index = _cleared(own.with_name("subagents-index"))
        if own.is_file():
            # With its time: git reads again what was written in the second of its index, or after.
            shutil.copy2(own, index)
        return index

    # -- looking, removing -----------------------------------------------------------------

    def _brought(self, run_id: RunId, tree: Worktree) -> Changes | None:
        record = self._record(tree)
        kept = None if record is None else self._kept_back(record, run_id)
        found = self._changes(tree)
        return found and replace(found, uncommitted=kept)

    def _kept_back(self, record: Record, run_id: RunId) -> str | None:
        """Why not all is on its branch; None = it is, or there is no worktree."""
        if record.is_made and Path(record.tree.path).is_dir():
            try:
                self._bring_home(record, run_id)
            except (RuntimeUnavailable, OSError) as error:
                return printable(str(error))
        return None

    def _look(self, record: Record, bases: Collection[str]) -> Look:
        tree = record.tree
        if not Path(tree.repository).is_dir():
            return Look(kept_because=f"its repository {tree.repository} is gone")
        if tree.path in bases:
            return Look(kept_because="the worktree of another run was made of it")
        is_there = Path(tree.path).is_dir() and record.is_made
        try:
            inside = self._git_in(tree) if is_there else None
            git = self._git(tree.repository)
            standing = standing_of(git, inside, tree, record.base, record.copies)
        except RuntimeUnavailable as error:
            return Look(kept_because=printable(error.message))
        if not is_there:
            return Look(kept_because=standing.kept_because, standing=standing)
        return Look(
            kept_because=standing.kept_because,
            standing=standing,
            changes=self._changes(tree),
            made_at_ms=int(Path(tree.path, ".git").lstat().st_mtime * 1000),
            bytes=bytes_in(Path(tree.path)),
        )

    def _merge(self, record: Record) -> tuple[Merge, str | None]:
        tree = record.tree
        if not Path(tree.repository).is_dir():
            raise NotFound(f"the repository {tree.repository} is gone")
        kept = self._kept_back(record, record.run_id)
        ours = self._git(tree.repository)
        has_name = None not in (ours.line("config", f"user.{each}") for each in ("name", "email"))
        git = Git(tree.repository, self._environ, is_users=has_name)
        return merged(git, tree.repository, tree.branch), kept

    def _remove_merged(self, record: Record, bases: Collection[str]) -> str | None:
        tree, look = record.tree, self._look(record, bases)
        if look.kept_because is not None or look.standing is None:
            return look.kept_because
        if self._record(tree) != record:
            return "a run began in it just now"
        git = self._git(tree.repository)
        try:
            if look.changes is not None:
                # Without --force: git itself looks again.
                git("worktree", "remove", tree.path, timeout_s=CHECKOUT_S)
            elif Path(tree.path).exists():
                return "it was not made to its end; its run, or the next sweep, ends that"
            git.line("worktree", "prune")
            if look.standing.tip is not None:
                # Only where it still is.
                git("update-ref", "-d", _ref(tree), look.standing.tip)
        except RuntimeUnavailable as error:
            return printable(error.message)
        self._file(tree).unlink(missing_ok=True)
        self._set_up(Path(tree.path)).unlink(missing_ok=True)
        return None

    def _changes(self, tree: Worktree) -> Changes | None:
        record = self._record(tree)
        if record is None or not record.is_made:
            return None
        if not Path(tree.path).is_dir():
            return Changes(error="the worktree is gone")
        try:
            return changes_of(self._git_in(tree), record.base, tree, record.copies)
        except RuntimeUnavailable as error:
            return Changes(error=printable(error.message))

    def _changed_paths(self, tree: Worktree) -> frozenset[str]:
        record = self._record(tree)
        is_there = record is not None and record.is_made and Path(tree.path).is_dir()
        return paths_of(self._git_in(tree), record.base) if record and is_there else frozenset()

    def _diff(self, tree: Worktree, path: str | None, bytes_max: int) -> Diff:
        record = self._record(tree)
        if record is None or not record.is_made or not Path(tree.path).is_dir():
            raise NotFound(f"worktree {tree.path} is not there: nothing was changed, or it is gone")
        index = _cleared(Path(f"{tree.path}.diff-index"))
        git = self._git_in(tree, index=index)
        try:
            text = diff_of(git, record.base, path)
        finally:
            index.unlink(missing_ok=True)
        whole = text.encode()
        return Diff(whole[:bytes_max].decode("utf-8", "ignore"), len(whole))

    def _remove_clean(self, tree: Worktree) -> bool:
        record = self._record(tree)
        if record is None:
            return True
        if not Path(tree.repository).is_dir():
            return False
        git = self._git(tree.repository)
        if Path(tree.path).is_dir() and record.is_made:
            found = self._changes(tree)
            if found is None or not found.is_clean:
                return False
            # Without --force: git itself looks again.
            if git.line("worktree", "remove", tree.path, timeout_s=CHECKOUT_S) is None:
                return False
        elif Path(tree.path).exists():
            git.line("worktree", "remove", "--force", "--force", tree.path)
            shutil.rmtree(tree.path, ignore_errors=True)
        git.line("worktree", "prune")
        # Only where it still is: a branch with commits stays.
        git.line("update-ref", "-d", _ref(tree), record.base)
        self._file(tree).unlink(missing_ok=True)
        self._set_up(Path(tree.path)).unlink(missing_ok=True)
        return True

    # -- records ---------------------------------------------------------------------------

    def _file(self, tree: Worktree) -> Path:
        return Path(f"{tree.path}.json")

    def _record(self, tree: Worktree) -> Record | None:
        return _read(self._file(tree))

    def _write(self, record: Record) -> None:
        """Whole or not at all, also after a power cut."""
        file = self._file(record.tree)
        # Not ours, when the node that planned it is over and its run begins again here.
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        with fresh.open("wb") as out:
            out.write(json.dumps(msgspec.to_builtins(record)).encode())
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)


def _read(file: Path) -> Record | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _cleared(index: Path) -> Path:
    """The file without what was left of a git that was killed."""
    for left in (index, Path(f"{index}.lock")):
        left.unlink(missing_ok=True)
    return index


def _linked(tree: Worktree) -> str | None:
    """Where the worktree's ``.git`` leads; None = it is no file that leads anywhere."""
    link = Path(tree.path, ".git")
    try:
        if not stat.S_ISREG(link.lstat().st_mode):
            return None
        with link.open("rb") as file:
            text = os.fsdecode(file.read(LINK_BYTES_MAX)).rstrip("\n")
    except OSError:
        return None
    before, _, where = text.partition("gitdir: ")
    return None if before or not where else os.path.realpath(Path(tree.path, where))


def _ref(tree: Worktree) -> str:
    return f"refs/heads/{tree.branch}"


def _text(tree: Worktree, run_id: RunId, attempt: int) -> str:
    # The label, see worktree_name: it is what says something in a log.
    return f"{Path(tree.path).name.rpartition('-')[0] or 'run'}: attempt {attempt} of {run_id}"


def _unrun(git: Git) -> tuple[str, ...]:
    """Name the filters without which files of the worktree differ from those of the checkout."""
    keys = (key.rpartition(".")[0] for key in git.commands() if key.startswith("filter."))
    names = ", ".join(dict.fromkeys(keys))
    if not names:
        return ()
    what = f"{names} of the repository's own configuration is not run"
    how = "its files are in the worktree as they are in the commit"
    return (f"{what}: {how}; what is in yours (git config --global) is run",)


def _commit_in_words(base: str) -> str:
    return "the last commit" if base == "HEAD" else base


def _refused(what: str, instead: str) -> UsageError:
    return UsageError(f'isolation "worktree": {what}', hint=instead, details=_FIELD)
