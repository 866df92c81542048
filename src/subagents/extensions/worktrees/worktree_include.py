"""``.worktreeinclude``: files that git ignores, and a worktree gets all the same.

It lies at the root of the checkout and has lines as ``.gitignore`` has. A file is copied when they
match it and git ignores it, and as a clone where the file system has those.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from subagents.extensions.worktrees.git import CHECKOUT_S, Git, GitFailed, fields

INCLUDE: Final = ".worktreeinclude"
NAMES_MAX: Final = 500
"""Names in one call of git."""
_IGNORED: Final = ("ls-files", "--others", "--ignored", "-z")
_FICLONE: Final = 0x40049409
"""The request of ioctl_ficlone(2)."""


def copied(git: Git, root: Path, to: Path) -> dict[str, str]:
    """Copy them into a new worktree.

    Args:
        git: In the checkout.
        root: Its directory.
        to: The worktree, in which no worker was yet.

    Returns:
        Path → state of each copy, by which ``is_as_copied`` knows it.

    Raises:
        GitFailed: Not all could be copied.
    """
    if not (root / INCLUDE).is_file():
        return {}
    named = fields(git(*_IGNORED, f"--exclude-from={INCLUDE}", timeout_s=CHECKOUT_S))
    try:
        return {each: _copy(root / each, to, each) for each in _those_ignored(git, named)}
    except OSError as error:
        raise GitFailed(f"{INCLUDE}: {error}") from error


def linked(root: Path, to: Path, names: Sequence[str]) -> dict[str, str]:
    """Fill directories of these names in a new worktree with links into those of the checkout.

    Not links of the directories: git would see those where it ignores a directory.

    Args:
        root: The checkout's directory.
        to: The worktree, in which no worker was yet.
        names: Directories in it that git ignores; those that are not there are left out.

    Returns:
        As ``copied``.

    Raises:
        GitFailed: Not all could be made.
    """
    made: dict[str, str] = {}
    try:
        for name in names:
            is_below = os.path.realpath(to / name).startswith(os.path.realpath(to))
            if not (root / name).is_dir() or (to / name).exists() or not is_below:
                continue
            (to / name).mkdir(parents=True)
            for entry in sorted((root / name).iterdir()):
                link = to / name / entry.name
                link.symlink_to(entry)
                made[f"{name}/{entry.name}"] = _state(link)
    except OSError as error:
        raise GitFailed(f"worktrees.<name>.link: {error}") from error
    return made


def _those_ignored(git: Git, names: Sequence[str]) -> Iterator[str]:
    asked = ("--literal-pathspecs", *_IGNORED, "--exclude-standard", "--")
    for at in range(0, len(names), NAMES_MAX):
        yield from fields(git(*asked, *names[at : at + NAMES_MAX], timeout_s=CHECKOUT_S))


def is_as_copied(root: Path, entry: str, copies: Mapping[str, str]) -> bool:
    """Whether a file that git ignores, or all in such a directory, is as it was copied."""
    if not copies:
        return False
    if not entry.endswith("/"):
        return copies.get(entry) == _state(root / entry)
    found = (
        os.path.relpath(os.path.join(folder, name), root)  # noqa: PTH118
        for folder, folders, names in os.walk(root / entry)
        for name in [*names, *(each for each in folders if Path(folder, each).is_symlink())]
    )
    return all(copies.get(each) == _state(root / each) for each in found)


def _copy(source: Path, to: Path, name: str) -> str:
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # The commit may have a link where the checkout has a directory.
    is_below = os.path.realpath(target.parent).startswith(os.path.realpath(to))
    if is_below and not os.path.lexists(target):
        with suppress(FileNotFoundError):  # somebody is at work there, and it went meanwhile
            if source.is_symlink() or not _is_cloned(source, target):
                shutil.copyfile(source, target, follow_symlinks=False)
            shutil.copystat(source, target, follow_symlinks=False)
    return _state(target)


def _is_cloned(source: Path, target: Path) -> bool:
    with source.open("rb") as given, target.open("xb") as taken:
        try:
            fcntl.ioctl(taken.fileno(), _FICLONE, given.fileno())
        except OSError:
            return False
        return True


def _state(file: Path) -> str:
    try:
        found = file.lstat()
    except OSError:
        return ""
    return f"{found.st_mode} {found.st_size} {found.st_mtime_ns}"
