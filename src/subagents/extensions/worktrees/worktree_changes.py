"""What was changed in a worktree since the commit it began from, committed or not.

Blocking, and changes nothing: not even git's index is refreshed. Files that git ignores count as
left behind unless they are caches that tools make by themselves.
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from subagents.domain.run.workspace import (
    CACHES,
    FILES_MAX,
    ChangeKind,
    Changes,
    FileChange,
    Worktree,
)
from subagents.extensions.worktrees.git import NO_SUBMODULES, Git, GitFailed, fields
from subagents.extensions.worktrees.worktree_include import is_as_copied

LOOK_S: Final = 10.0
NO_COPIES: Final = MappingProxyType(dict[str, str]())
COUNTED_BYTES_MAX: Final = 256 * 1024
COUNTED_MAX: Final = 500
"""New files whose lines are counted."""
_PLAIN: Final = ("--no-renames", "--no-ext-diff", "--no-textconv", NO_SUBMODULES)
_NEW: Final = ("ls-files", "--others", "--exclude-standard", "-z")
_ORDER: Final = {ChangeKind.DELETED: 0, ChangeKind.MODIFIED: 1, ChangeKind.ADDED: 2}


def changes_of(
    git: Git, base: str, tree: Worktree, copies: Mapping[str, str] = NO_COPIES
) -> Changes:
    """Compare a worktree, in which ``git`` is, with the commit that it began from.

    Args:
        git: In the worktree.
        base: That commit.
        tree: Which worktree.
        copies: See ``ignored_files``.

    Raises:
        GitFailed: git could not say.
    """
    try:
        return _changes(git, base, tree, copies)
    except ValueError as error:
        raise GitFailed(f"git's answer about the worktree cannot be read: {error}") from error


def _changes(git: Git, base: str, tree: Worktree, copies: Mapping[str, str]) -> Changes:
    lines = _numbers(git("diff", "--numstat", *_PLAIN, "-z", base, "--", timeout_s=LOOK_S))
    kinds = _kinds(git("diff", "--name-status", *_PLAIN, "-z", base, "--", timeout_s=LOOK_S))
    new = fields(git(*_NEW, timeout_s=LOOK_S))
    found = dict[str, FileChange]()
    for path, kind in kinds.items():
        plus, minus = lines.get(path, (None, None))
        found[path] = FileChange(path=printable(path), kind=kind, insertions=plus, deletions=minus)
    root = Path(tree.path)
    for number, path in enumerate(new):
        # In the commit, no longer in the index, and still there: changed at most.
        kind = ChangeKind.MODIFIED if path in found else ChangeKind.ADDED
        count = _lines(root / path) if number < COUNTED_MAX else None
        found[path] = FileChange(path=printable(path), kind=kind, insertions=count, deletions=0)
    ordered = sorted(found.values(), key=lambda each: (_ORDER[each.kind], each.path))
    return Changes(
        base=base,
        files=len(ordered),
        insertions=sum(each.insertions or 0 for each in ordered),
        deletions=sum(each.deletions or 0 for each in ordered),
        deleted=sum(each.kind is ChangeKind.DELETED for each in ordered),
        commits=_commits(git, base),
        ignored=len(ignored_files(git, root, copies)),
        changed=tuple(ordered[:FILES_MAX]),
        kept_branches=_kept_branches(git, tree),
    )


def paths_of(git: Git, base: str) -> frozenset[str]:
    """The files that ``changes_of`` finds, by name alone.

    Raises:
        GitFailed: git could not say.
    """
    changed = fields(git("diff", "--name-only", *_PLAIN, "-z", base, "--", timeout_s=LOOK_S))
    return frozenset(map(printable, (*changed, *fields(git(*_NEW, timeout_s=LOOK_S)))))


def diff_of(git: Git, base: str, path: str | None) -> str:
    """The changes since the commit ``base`` as text, new files included.

    Args:
        git: In the worktree, with an index for this alone, which is written.
        base: The commit it began from.
        path: The only file to look at, from the root of the worktree; None = all.

    Raises:
        GitFailed: git could not say.
    """
    where = () if path is None else (f"./{path}",)
    git("read-tree", base, timeout_s=LOOK_S)
    # As names alone: their content is not stored anywhere.
    git("--literal-pathspecs", "add", "--intent-to-add", "--", *(where or (".",)), timeout_s=LOOK_S)
    asked = ("--literal-pathspecs", "diff", "--no-color", *_PLAIN, base, "--", *where)
    return printable(git(*asked, timeout_s=LOOK_S))


def printable(text: str) -> str:
    """Without the surrogates of undecodable bytes: it is stored and sent as UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _commits(git: Git, base: str) -> int:
    """On whatever it has checked out; a commit that was taken back is none."""
    return int(git("rev-list", "--count", f"{base}..HEAD", timeout_s=LOOK_S).strip() or 0)


def _numbers(answer: str) -> dict[str, tuple[int | None, int | None]]:
    found: dict[str, tuple[int | None, int | None]] = {}
    for row in fields(answer):
        added, removed, path = row.split("\t", 2)
        is_binary = added == "-"
        found[path] = (None, None) if is_binary else (int(added), int(removed))
    return found


def _kinds(answer: str) -> dict[str, ChangeKind]:
    parts = fields(answer)
    kinds = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {path: kinds.get(letter[:1], ChangeKind.MODIFIED) for letter, path in pairs}


def _lines(path: Path) -> int | None:
    """Of a small regular text file."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > COUNTED_BYTES_MAX:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    if b"\0" in data:
        return None
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def ignored_files(git: Git, root: Path, copies: Mapping[str, str]) -> list[str]:
    """Files and directories that git ignores, without caches that tools make.

    Args:
        git: In the worktree.
        root: Its directory.
        copies: Those that were copied there; they count when they are others by now.

    Raises:
        GitFailed: git could not say.
    """
    asked = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    found = fields(git(*asked, timeout_s=LOOK_S))
    left = (path for path in found if not _is_cache(path))
    return [path for path in left if not is_as_copied(root, path, copies)]


def _is_cache(path: str) -> bool:
    parts = path.rstrip("/").split("/")
    last = parts[-1]
    return bool(CACHES.intersection(parts)) or last.endswith((".pyc", ".egg-info"))


def _kept_branches(git: Git, tree: Worktree) -> tuple[str, ...]:
    pattern = f"refs/heads/{tree.branch}-attempt-*"
    answer = git("for-each-ref", "--format=%(refname:short)", pattern, timeout_s=LOOK_S)
    return tuple(answer.split())
