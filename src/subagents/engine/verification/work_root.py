"""The directory below which a contract's files lie, and the only way to what is in it.

A worker can put a link where a file or directory was, at any moment. So nothing is looked at by a
path that was resolved before: each name is opened relative to the directory before it, links are
read and followed here, and one that leads out is refused without touching what it leads to.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from subagents.domain.run.spec import Resolved

LINKS_MAX: Final = 40
"""Links that are followed in one path: as many as Linux does."""
STEPS_MAX: Final = 10_000
"""Directories opened for one path: links full of ``..`` could ask for millions."""

_STORED: Final[Mapping[int, int]] = {0xDC00 + byte: 0x10FE00 + byte for byte in range(128, 256)}
"""Bytes in a name that are no UTF-8, which nothing stored or sent can hold, as private characters;
a name comes back from them."""
_ON_DISK: Final[Mapping[int, int]] = {stored: byte for byte, stored in _STORED.items()}
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS: Final[Sequence[tuple[Callable[[int], bool], str]]] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class FileFault(Exception):
    """The file cannot be what the contract asks for; the message completes ``File PATH …``."""


class Entry(NamedTuple):
    """What lies in a directory; a link is no directory."""

    name: str
    is_directory: bool


class WorkRoot(msgspec.Struct, frozen=True):
    """Where a contract's files are."""

    path: str
    """The run's working directory, absolute."""
    pinned: str | None = None
    """The same directory without links, as it was at the spawn, for an agent's contract: nothing
    outside of it is looked at, nor anything in another directory that stands there now. None = the
    operator's contract, whose absolute paths are taken as given."""

    def open_regular(self, path: str) -> int:
        """Open a regular file for reading; returns its descriptor.

        Args:
            path: Relative, and then it must stay below the root, or absolute. ``~`` and ``$VAR``
                mean nothing here.

        Raises:
            FileFault: It is no regular file, or lies outside.
            OSError: It is not there, or cannot be read.
        """
        with self._place(path) as (parent, name):
            # Before opening: opening a device can do things (rewind a tape, reset a line).
            _refuse_irregular(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
            # O_NONBLOCK: a FIFO put there since does not hang us.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            found = os.open(name, flags, dir_fd=parent)
        try:
            _refuse_irregular(os.fstat(found).st_mode)
        except FileFault:
            os.close(found)
            raise
        return found

    def entries(self, path: str) -> list[Entry]:
        """What is in a directory.

        Raises:
            FileFault: It lies outside.
            OSError: It is not there, is none, or cannot be read.
        """
        with self._place(path) as (parent, name):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            found = os.open(name, flags, dir_fd=parent)
        try:
            with os.scandir(found) as entries:
                return [
                    Entry(each.name.translate(_STORED), each.is_dir(follow_symlinks=False))
                    for each in entries
                ]
        finally:
            os.close(found)

    def is_file(self, path: str) -> bool:
        """Whether a regular file is there, inside."""
        try:
            with self._place(path) as (parent, name):
                return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (OSError, ValueError, FileFault):
            return False

    def mark(self, path: str) -> bytes | None:
        """What tells that which is there from another thing, without reading it; None = nothing.

        Of a link where it leads, of a FIFO or device what it is, of a file that may not be read its
        size and when it was written.
        """
        try:
            with self._place(path, follows_last=False) as (parent, name):
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    return b"link " + os.fsencode(os.readlink(name, dir_fd=parent))
        except (OSError, FileFault):
            return None
        told = [stat.S_IFMT(found.st_mode), found.st_rdev]
        if stat.S_ISREG(found.st_mode):
            told += [found.st_ino, found.st_size, found.st_mtime_ns]
        return repr(told).encode()

    @contextlib.contextmanager
    def _place(self, path: str, *, follows_last: bool = True) -> Iterator[tuple[int, str]]:
        """The open directory in which a path ends, and its last name there, which is no link."""
        below = _below(path, self.path) if path.startswith("/") else path
        if below is None:
            if self.pinned is not None:
                raise FileFault(f"lies outside the workspace ({self.path})")
            # An operator may name any file: links on the way are theirs.
            parent, name = os.path.split(os.path.realpath(path))
            found = os.open(parent, _DIRECTORY)
            try:
                yield found, name or os.curdir
            finally:
                os.close(found)
            return
        if os.path.normpath(f"./{below}").split("/", 1)[0] == os.pardir:
            raise FileFault(f"leaves the workspace through '..' ({self.path})")
        walk = _Walk(self._open(), self)
        try:
            yield walk.to(below, follows_last=follows_last)
        finally:
            walk.close()

    def _open(self) -> int:
        if self.pinned is None:
            return os.open(self.path, _DIRECTORY)
        found = os.open("/", _DIRECTORY)
        try:
            for name in _names(self.pinned):
                found = _step(found, name)
        except OSError as error:
            os.close(found)
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            text = f"is in a workspace that was replaced by a link since the spawn ({self.path})"
            raise FileFault(text) from error
        return found


class _Walk:
    """One path, name by name. ``..`` goes back by what was passed, never by the directory's own
    parent, which is another one when it is moved meanwhile."""

    def __init__(self, root: int, where: WorkRoot) -> None:
        self._root = root
        self._where = where
        self._at = os.dup(root)
        self._passed: list[str] = []
        self._links = self._steps = 0

    def close(self) -> None:
        os.close(self._at)
        os.close(self._root)

    def to(self, path: str, *, follows_last: bool) -> tuple[int, str]:
        pending = _names(path)[::-1]
        while pending:
            name = pending.pop()
            if name == os.pardir:
                self._up()
                continue
            if not pending and not follows_last:
                return self._at, name
            mode = os.stat(name, dir_fd=self._at, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                pending += self._target(name)[::-1]
            elif pending:
                self._down(name)
            else:
                return self._at, name
        return self._at, os.curdir

    def _down(self, name: str) -> None:
        self._count()
        self._at = _step(self._at, name)
        self._passed.append(name)

    def _up(self) -> None:
        if not self._passed:
            raise FileFault("leaves the workspace through a symlink")
        names = self._passed[:-1]
        self._begin_again()
        for name in names:
            self._down(name)

    def _begin_again(self) -> None:
        os.close(self._at)
        self._at = os.dup(self._root)
        self._passed.clear()

    def _target(self, name: str) -> list[str]:
        """The names a link stands for, from here or, of an absolute one, from the root."""
        self._links += 1
        if self._links > LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(name, dir_fd=self._at).translate(_STORED)
        if not target.startswith("/"):
            return _names(target)
        for root in (self._where.path, self._where.pinned or real(self._where.path)):
            below = _below(target, root)
            if below is not None:
                self._begin_again()
                return _names(below)
        raise FileFault("leaves the workspace through a symlink")

    def _count(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def root_of(resolved: Resolved) -> WorkRoot:
    """Where the files of a run's contract are."""
    return WorkRoot(resolved.cwd, resolved.contract_root)


def real(path: str) -> str:
    """The absolute path without links, as text that can be stored; blocking."""
    return os.path.realpath(path).translate(_STORED)


def below(
    path: str, roots: Sequence[str], plain: Callable[[str], str] = os.path.normpath
) -> str | None:
    """The directory, when it is one of these or below one.

    Args:
        path: Absolute; it need not be there yet.
        roots: Absolute.
        plain: Makes one name of all for one place: ``real``, or by the names alone of a directory
            on another machine.
    """
    found = plain(path)
    return found if any(_below(found, plain(each)) is not None for each in roots) else None


def _below(path: str, root: str) -> str | None:
    """An absolute path as one from the root; None = it does not begin with that."""
    beginning = f"{root.rstrip('/')}/"
    return path[len(beginning) :] if f"{path}/".startswith(beginning) else None


def _names(path: str) -> list[str]:
    names = path.translate(_ON_DISK).split("/")
    return [name for name in names if name not in {"", os.curdir}]


def _step(directory: int, name: str) -> int:
    """Open a directory in another one, which is closed then; a link is refused."""
    found = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    os.close(directory)
    return found


def _refuse_irregular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "a special file")
    raise FileFault(f"is {kind}, not a regular file")
