"""What a worker leaves for a later git in the directory where it may write."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bubblewrap import needs_bubblewrap
from tests.repository import a_repository, git

from subagents import process_group
from subagents.domain.run.access import Access, AccessLevel
from subagents.errors import UsageError
from subagents.runtimes.process import seclusion
from subagents.runtimes.process.git_places import PlaceHolders, git_places
from subagents.runtimes.process.sandbox import Places, secluded, wrapped

AS_WORKER = (
    "export GIT_AUTHOR_NAME=w GIT_AUTHOR_EMAIL=w@x GIT_COMMITTER_NAME=w GIT_COMMITTER_EMAIL=w@x"
)


class Box:
    """A directory in which a worker with access ``write`` does something, and somebody's git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.escaped = root / "escaped"
        self.holders = PlaceHolders(root / "state" / "held")

    def worker(self, line: str, *, is_secluded: bool = False, attempt: str = "r-a.1") -> str:
        """What it prints; it is over afterwards."""
        try:
            return self.at_work(line, is_secluded=is_secluded, attempt=attempt)
        finally:
            self.holders.release(attempt)

    def at_work(self, line: str, *, is_secluded: bool = False, attempt: str = "r-a.1") -> str:
        command = f"touch {self.escaped}"
        text = f"{AS_WORKER}; COMMAND='{command}'; {line}"
        argv = ["/bin/sh", "-c", text]
        work = str(self.work)

        def hold(place: str) -> dict[str, str]:
            return dict(self.holders.hold(place, attempt))

        if is_secluded:
            access = Access(level=AccessLevel.WRITE, below=work, sees=work)
            view = seclusion.Seclusion(home="/home/worker")
            built = secluded(
                argv, cwd=work, access=access, seclusion=view, state_dir=self.root / "state",
                hold=hold,
            )  # fmt: skip
        else:
            access = Access(level=AccessLevel.WRITE, below=work)
            built = wrapped(argv, cwd=work, access=access, places=Places(), hold=hold)
        done = process_group.run(list(built), timeout_s=60)
        return (done.stdout + done.stderr).decode()

    def later(self, directory: Path) -> None:
        """What people and their prompts do there."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root), "LC_ALL": "C"}
        for words in ("status", "diff", "add --all", "commit -qm x", "branch y", "gc -q"):
            subprocess.run(
                ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words.split()],
                cwd=directory,
                env=env,
                capture_output=True,
                check=False,
                timeout=60,
            )


def repository(box: Box) -> Path:
    return a_repository(box.work)


def nothing(box: Box) -> Path:
    box.work.mkdir()
    return box.work


def below(box: Box) -> Path:
    """Of a repository, a directory below its root."""
    outer = a_repository(box.root / "outer")
    box.work = outer / "sub"
    return box.work


def worktree(box: Box) -> Path:
    outer = a_repository(box.root / "outer")
    git(outer, "worktree", "add", "--quiet", str(box.work))
    return box.work


def another(box: Box) -> Path:
    """The user's worktree beside the repository that the worker is in."""
    a_repository(box.work)
    git(box.work, "worktree", "add", "--quiet", "-b", "w", str(box.root / "beside"))
    return box.root / "beside"


def with_worktree_config(box: Box) -> Path:
    a_repository(box.work)
    git(box.work, "config", "extensions.worktreeConfig", "true")
    return box.work


def separate(box: Box) -> Path:
    """Its repository is elsewhere in the same directory."""
    a_repository(box.work)
    (box.work / "deep").mkdir()
    git(box.work, "init", "--quiet", "--separate-git-dir", str(box.work / "deep" / "real"))
    return box.work


def bare(box: Box) -> Path:
    a_repository(box.root / "outer")
    git(box.root, "clone", "--quiet", "--bare", str(box.root / "outer"), str(box.work))
    return box.work


def without_hooks(box: Box) -> Path:
    """Made without a template."""
    a_repository(box.work)
    subprocess.run(["rm", "-rf", str(box.work / ".git" / "hooks")], check=True)
    return box.work


EVIL = (
    'printf \'[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "%s; false"\\n\' "$COMMAND"'
)
MONITOR = 'git config core.fsmonitor "$COMMAND; false"'
RUNS = "chmod +x .git/hooks/pre-commit"
HOOK = 'printf "#!/bin/sh\\n$COMMAND\\n"'
WAYS: dict[str, tuple[Callable[[Box], Path], str]] = {
    "another repository in its place": (repository, f"mv .git .git-old; git init -q; {MONITOR}"),
    "removed and made anew": (repository, f"rm -rf .git; git init -q; {MONITOR}"),
    "another common directory": (
        repository,
        f"cp -r .git .evil; {EVIL} > .evil/config; echo ../.evil > c; mv -f c .git/commondir",
    ),
    "its configuration by git": (repository, MONITOR),
    "its configuration replaced": (repository, f"{EVIL} > .git/c; mv -f .git/c .git/config"),
    "its worktree's configuration": (
        with_worktree_config,
        f"{EVIL} > .git/config.worktree; git config --worktree user.name w",
    ),
    "hooks": (repository, f"rm -f .git/hooks/*; {HOOK} > .git/hooks/pre-commit; {RUNS}"),
    "another directory of hooks": (
        repository,
        f"mv .git/hooks .git/h; mkdir .git/hooks; {HOOK} > .git/hooks/pre-commit; {RUNS}",
    ),
    "hooks where there were none": (
        without_hooks,
        f"mkdir -p .git/hooks; {HOOK} > .git/hooks/pre-commit; {RUNS}",
    ),
    "a repository where there was none": (nothing, f"git init -q; {MONITOR}"),
    "the directory itself a repository": (
        nothing,
        (
            f"rmdir HEAD; mkdir objects refs; echo ref: refs/heads/x > HEAD; {EVIL} > config; "
            "echo '\tworktree = .' >> config"
        ),
    ),
    "a repository below the root of another": (below, f"git init -q .; {MONITOR}"),
    "a repository in the place of a worktree's file": (
        worktree,
        f"rm .git; git init -q e; git -C e {MONITOR[4:]}; echo gitdir: e/.git > y; mv y .git",
    ),
    "another common directory of somebody's worktree": (
        another,
        (
            f"cp -r .git .evil; {EVIL} > .evil/config; mv .git/worktrees w; cp -r w .git/worktrees"
            "; echo $PWD/.evil > .git/worktrees/beside/commondir"
        ),
    ),
    "a repository that a file leads to": (
        separate,
        f"mv deep x; mkdir deep; cp -r x/real deep; {EVIL} > deep/real/config",
    ),
    "a bare repository": (
        bare,
        f"{HOOK} > hooks/reference-transaction; chmod +x hooks/*; echo > x",
    ),
    "another common directory of a bare repository": (
        bare,
        (
            "mkdir evil; cp -r config objects refs packed-refs evil; mkdir evil/hooks; "
            f"{HOOK} > evil/hooks/reference-transaction; chmod +x evil/hooks/*"
            "; echo evil > commondir"
        ),
    ),
}


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox:git")
@pytest.mark.parametrize("is_secluded", [False, True], ids=["access", "isolation"])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_a_worker_writes_is_run_by_the_git_of_somebody_later(
    tmp_path: Path, way: str, *, is_secluded: bool
) -> None:
    box = Box(tmp_path)
    make, line = WAYS[way]
    place = make(box)
    before = sorted(each.name for each in box.work.iterdir())
    box.worker(line, is_secluded=is_secluded)
    box.later(place)
    box.later(box.work)

    assert not box.escaped.exists()
    assert [each for each in before if not (box.work / each).exists()] == []


@pytest.mark.requirement("access:sandbox:git")
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_one_for_whoever_is_kept_to_nothing(tmp_path: Path, way: str) -> None:
    box = Box(tmp_path)
    make, line = WAYS[way]
    place = make(box)
    text = f"{AS_WORKER}; COMMAND='touch {box.escaped}'; {line}"
    process_group.run(["/bin/sh", "-c", text], timeout_s=60, cwd=box.work)
    box.later(place)
    box.later(box.work)
    assert box.escaped.exists()


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox:git-works")
@pytest.mark.parametrize("make", [repository, without_hooks, with_worktree_config, separate])
def test_a_worker_commits_branches_merges_and_collects_where_it_may_write(
    tmp_path: Path, make: Callable[[Box], Path]
) -> None:
    box = Box(tmp_path)
    make(box)
    before = sorted(each.name for each in box.work.iterdir())
    said = box.worker(
        "set -e; echo new > new; git add new; git commit -qm new; git checkout -q -b side; "
        "echo more >> new; git commit -qam more; git checkout -q -; git merge -q side; "
        "echo half >> new; git stash -q; git stash pop -q; git checkout -q new; git tag t; "
        "git rebase -q HEAD~1; git gc -q; git status --porcelain new; git log --format=%s"
    )
    assert said.split() == ["more", "new", "first"]
    assert git(box.work, "log", "--format=%s").split() == ["more", "new", "first"]
    assert git(box.work, "status", "--porcelain", "sub", "tests", "new") == ""
    assert sorted(each.name for each in box.work.iterdir()) == sorted([*before, "new"])


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox:git-works")
def test_in_a_subdirectory_and_in_a_worktree_git_reads_as_before(tmp_path: Path) -> None:
    for number, make in enumerate((below, worktree)):
        root = tmp_path / str(number)
        root.mkdir()
        box = Box(root)
        make(box)
        assert "first" in box.worker("echo x > new; git status --short; git log --format=%s")


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox:git-works")
def test_a_bare_repository_stays_one_while_a_worker_is_in_it(tmp_path: Path) -> None:
    box = Box(tmp_path)
    bare(box)
    said = box.at_work("git log --format=%s; git rev-parse --is-bare-repository; git branch x")
    assert said.split() == ["first", "true"]
    assert git(box.work, "rev-parse", "--is-bare-repository") == "true"
    assert "x" in git(box.work, "branch")


@pytest.mark.requirement("access:sandbox:git-left")
def test_what_was_made_to_be_held_is_gone_behind_the_last_worker_and_not_before(
    tmp_path: Path,
) -> None:
    box = Box(tmp_path)
    nothing(box)
    for attempt in ("r-a.1", "r-b.1", "r-b.1"):
        box.holders.hold(str(box.work), attempt)
    box.holders.release("r-a.1")
    assert sorted(each.name for each in box.work.iterdir()) == [".git", "HEAD"]
    # As after a kill of the daemon.
    PlaceHolders(tmp_path / "state" / "held").release("r-b.1")
    assert list(box.work.iterdir()) == []
    box.holders.release("r-b.1")


@pytest.mark.requirement("access:sandbox:git-left")
def test_what_somebody_else_made_or_filled_stays(tmp_path: Path) -> None:
    box = Box(tmp_path)
    nothing(box)
    (box.work / "HEAD").write_text("mine")
    box.holders.hold(str(box.work), "r-a.1")
    git(box.work, "init", "--quiet")
    box.holders.release("r-a.1")
    assert (box.work / "HEAD").read_text() == "mine"
    assert git(box.work, "rev-parse", "--is-inside-work-tree") == "true"


@pytest.mark.requirement("access:sandbox:git-left")
def test_a_repository_is_for_others_what_it_was_while_a_worker_is_in_it(tmp_path: Path) -> None:
    box = Box(tmp_path)
    repository(box)
    before = sorted(each.name for each in (box.work / ".git").iterdir())
    box.holders.hold(str(box.work), "r-a.1")
    git(box.work, "worktree", "add", "--quiet", str(tmp_path / "beside"))
    git(tmp_path / "beside", "commit", "--quiet", "--allow-empty", "-m", "beside")
    git(box.work, "config", "some.key", "value")
    assert git(box.work, "rev-parse", "--show-toplevel") == str(box.work)
    git(box.work, "worktree", "remove", str(tmp_path / "beside"))
    git(box.work, "branch", "-D", "beside")
    box.holders.release("r-a.1")
    after = sorted(each.name for each in (box.work / ".git").iterdir())
    assert [name for name in after if name != "packed-refs"] == before


@pytest.mark.requirement("access:sandbox:git")
@pytest.mark.parametrize("name", [".git", ".git/hooks", ".git/config", ".git/commondir"])
def test_a_link_that_could_be_replaced_is_refused_with_the_way_out(
    tmp_path: Path, name: str
) -> None:
    box = Box(tmp_path)
    repository(box)
    (tmp_path / "elsewhere").mkdir()
    place = box.work / name
    if place.exists():
        place.rename(tmp_path / "elsewhere" / "it")
    place.symlink_to(tmp_path / "elsewhere" / "it")
    with pytest.raises(UsageError, match="symbolic link") as refused:
        git_places(str(box.work))
    assert "--isolation worktree" in (refused.value.hint or "")


@pytest.mark.requirement("access:sandbox:git-left")
@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC])
def test_what_nobody_with_our_rights_can_make_needs_no_holding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    box = Box(tmp_path)
    nothing(box)

    make = os.mkdir

    def refused(place: str | Path, *mode: int) -> None:
        if Path(place).parent == box.work:
            raise OSError(number, os.strerror(number))
        make(place, *mode)

    monkeypatch.setattr(os, "mkdir", refused)
    if number == errno.ENOSPC:
        with pytest.raises(OSError, match=os.strerror(number)):
            box.holders.hold(str(box.work), "r-a.1")
    else:
        assert box.holders.hold(str(box.work), "r-a.1") == {}


@pytest.mark.requirement("access:sandbox:git-left")
def test_a_record_that_a_power_cut_left_empty_holds_nobody_up(tmp_path: Path) -> None:
    box = Box(tmp_path)
    nothing(box)
    box.holders.hold(str(box.work), "r-a.1")
    (record,) = (tmp_path / "state" / "held").glob("*/places.json")
    record.write_bytes(b"")

    assert set(box.holders.hold(str(box.work), "r-b.1")) == {
        f"{box.work}/.git",
        f"{box.work}/HEAD",
    }
    for attempt in ("r-a.1", "r-b.1"):
        box.holders.release(attempt)
    assert not record.exists()
