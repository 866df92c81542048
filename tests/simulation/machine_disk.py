"""The disk of the simulated machine: it fills up, writes and reads on it fail, its power is cut.

A cut of the power leaves what was synced. Of all else any part may be missing: the end of a file,
the name of a new one, a rename, the removal of a name. So whoever acknowledges something, or lets
go of the only other copy of it, must have synced it before.
"""

import errno
import os
import random
import shutil
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from tests.simulation.outside_world import Injected

WAL_HEADER: Final = struct.Struct(">16x8s")
WAL_FRAME: Final = struct.Struct(">8x8s")
COPIED: Final = struct.Struct("=96xI")
"""Of the log's index: two copies of its header, then the frames that are in the database."""
WAL_HEADER_BYTES: Final = 32
WAL_FRAME_BYTES: Final = 24


class DiskFault(OSError, Injected):
    """What the disk was told to answer."""


class Power(NamedTuple):
    """What is left of the database after the power was cut."""

    database: bytes
    log: bytes


class MachineDisk:
    """The files below one directory, and how much of them is on the platters.

    Args:
        root: Its files are those that the faults concern; the database is treated apart.
        happens: Draws a fault.
        rng: Says what is left of what was not synced.
    """

    def __init__(self, root: Path, *, happens: Callable[[float], bool], rng: random.Random) -> None:
        self._root = root.resolve()
        self._kept = self._root.parent / f"{self._root.name}.platters"
        self._happens, self._rng = happens, rng
        self.is_watched = True
        """False = nothing will ever be wrong with it."""
        self.is_full = False
        self.writes_fail = 0.0
        self._synced: dict[int, int] = {}
        """By inode: so many bytes of a file outlive a loss of power."""
        self._names: dict[str, dict[str, int]] = {}
        """By directory: the names in it that do, and what they name."""
        self._write, self._fsync = os.write, os.fsync
        self._wal_salt = b""
        self._wal_synced = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """From here on the files of this process are on this disk."""
        if not self.is_watched:
            yield
            return
        self._kept.mkdir()
        with ExitStack() as patches:
            patches.enter_context(patch.object(os, "write", self.write))
            patches.enter_context(patch.object(os, "fsync", self.fsync))
            try:
                yield
            finally:
                shutil.rmtree(self._kept, ignore_errors=True)

    # -- while it has power ----------------------------------------------------------------

    def write(self, file: int, data: Any) -> int:
        """``os.write``: on a full or failing disk a part of it is written, or nothing."""
        if (self.is_full or self.writes_fail) and self._is_mine(_path_of(file)):
            fails = self.is_full or self._happens(self.writes_fail)
            if fails:
                self._write(file, bytes(data)[: self._rng.randrange(len(data))])
                raise DiskFault(errno.ENOSPC if self.is_full else errno.EIO, "simulated")
        return self._write(file, data)

    def fsync(self, file: int) -> None:
        """``os.fsync``, remembered."""
        path = _path_of(file)
        if not self._is_mine(path):
            self._fsync(file)
            return
        if self._happens(self.writes_fail):
            raise DiskFault(errno.EIO, "simulated")
        found = os.fstat(file)
        if stat.S_ISDIR(found.st_mode):
            self._names[path] = {each.name: each.inode() for each in os.scandir(path)}
            return
        self._keep(Path(path), found)

    def _keep(self, file: Path, found: os.stat_result) -> None:
        self._synced[found.st_ino] = found.st_size
        copy = self._kept / str(found.st_ino)
        if not copy.exists():
            copy.hardlink_to(file)  # its name may go, but not from the platters

    def check_write(self) -> None:
        """For what writes in another way than by ``os.write``.

        Raises:
            DiskFault: It would fail.
        """
        if self.is_full or self._happens(self.writes_fail):
            raise DiskFault(errno.ENOSPC if self.is_full else errno.EIO, "simulated")

    def _is_mine(self, path: str) -> bool:
        return path.startswith(f"{self._root}/") or path == str(self._root)

    # -- the database ----------------------------------------------------------------------

    def database_committed(self, database: Path, *, is_synced: bool) -> None:
        """A commit reached the write-ahead log, and the platters if it was synced."""
        if is_synced:
            self._wal_salt, self._wal_synced = _end_of_log(
                _log_of(database), self._wal_salt, self._wal_synced
            )

    def database_left(self, database: Path) -> Power:
        """What is on the platters; call it before anybody closes the database."""
        log = _log_of(database)
        if not log.exists():
            return Power(database.read_bytes(), b"")
        salt, end = _end_of_log(log, b"", 0)
        content = log.read_bytes()[:end]
        synced = self._wal_synced if salt == self._wal_salt else 0
        # What was copied into the database was synced in the log before.
        synced = max(synced, _copied(database, content))
        return Power(database.read_bytes(), self._torn(content, min(synced, len(content))))

    # -- a loss of power -------------------------------------------------------------------

    def lose_power(self, database: Path, left: Power) -> None:
        """Leave on the disk what was synced, and some of the rest; nobody may have files open."""
        log, index = _log_of(database), _index_of(database)
        for each in (database, log, index):
            each.unlink(missing_ok=True)  # the judge may still have the old ones open
        database.write_bytes(left.database)
        if left.log:
            log.write_bytes(left.log)
        self._wal_salt, self._wal_synced = _end_of_log(log, b"", 0)
        self._lose_in(str(self._root))
        # What is there now is on the platters: it was read from them.
        for folder, _, names in os.walk(self._root):
            self._names[folder] = {each.name: each.inode() for each in os.scandir(folder)}
            for file in (Path(folder, name) for name in names):
                self._keep(file, file.stat())

    def _lose_in(self, folder: str) -> None:
        durable = self._names.get(folder, {})
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            is_named = durable.get(entry.name) == entry.inode()
            if not is_named and self._rng.random() < 0.5:
                if entry.is_dir():
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()
                    self._put_back(folder, entry.name, durable.get(entry.name))
            elif entry.is_dir():
                self._lose_in(entry.path)
            else:
                self._tear(Path(entry.path), self._synced.get(entry.inode(), 0))
        gone = durable.keys() - {each.name for each in os.scandir(folder)}
        for name in sorted(gone):
            if self._rng.random() < 0.5:
                self._put_back(folder, name, durable[name])

    def _put_back(self, folder: str, name: str, inode: int | None) -> None:
        """A name that went, and whose going was not synced."""
        copy, file = self._kept / str(inode), Path(folder, name)
        if (names := self._names.get(str(file))) is not None:
            file.mkdir()
            for each in sorted(names):
                self._put_back(str(file), each, names[each])
        elif copy.is_file():
            file.hardlink_to(copy)
            self._tear(file, self._synced.get(inode or 0, 0))

    def _tear(self, file: Path, synced: int) -> None:
        content = file.read_bytes()
        if synced < len(content):
            # In place: the copy on the platters is the same file.
            with file.open("r+b") as torn:
                left = self._torn(content, synced)
                torn.write(left)
                torn.truncate(len(left))

    def _torn(self, content: bytes, synced: int) -> bytes:
        """All that was synced; of the rest a part, or a hole in its place."""
        rest = len(content) - synced
        cut = synced + self._rng.randrange(rest + 1)
        if self._rng.random() < 0.3:
            return content[:cut] + bytes(len(content) - cut)
        return content[:cut]


def _path_of(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")  # noqa: PTH115 - for every write


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _copied(database: Path, log: bytes) -> int:
    """How many bytes of the log a checkpoint has brought into the database."""
    try:
        (frames,) = COPIED.unpack(_index_of(database).read_bytes()[: COPIED.size])
    except (FileNotFoundError, struct.error):
        return 0  # nobody has opened it yet
    return WAL_HEADER_BYTES + frames * (WAL_FRAME_BYTES + _page_bytes(log)) if frames else 0


def _page_bytes(header: bytes) -> int:
    return int.from_bytes(header[8:12], "big")


def _index_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-shm")


def _end_of_log(log: Path, salt: bytes, known: int) -> tuple[bytes, int]:
    """Salt and length of what the log holds; ``known`` of it were there under ``salt`` before."""
    try:
        file = os.open(log, os.O_RDONLY)
    except FileNotFoundError:
        return b"", 0
    try:
        header = os.pread(file, WAL_HEADER_BYTES, 0)
        if len(header) < WAL_HEADER_BYTES:
            return b"", 0
        page_bytes = _page_bytes(header)
        (now,) = WAL_HEADER.unpack_from(header)
        end = known if now == salt else WAL_HEADER_BYTES
        while len(frame := os.pread(file, WAL_FRAME_BYTES, end)) == WAL_FRAME_BYTES:
            if WAL_FRAME.unpack_from(frame)[0] != now:
                break
            end += WAL_FRAME_BYTES + page_bytes
        return now, end
    finally:
        os.close(file)
