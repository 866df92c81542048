"""Blocks of the disk that the database has before it needs them.

They are taken behind the end of its files, so that no other program has them on a disk that is
full: what ends runs is committed there, and a daemon that was killed starts there again. A file
that is deleted when the disk is full would give its blocks to whichever program writes first.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.disk_blocks import hold

WAL_SHARE: Final = 3
"""The write-ahead log has a third of the reserve, the database the rest."""
DISK_SHARE: Final = 32
"""A 32nd of the disk is held at most."""
AGAIN_SHARE: Final = 4
"""What was used is held again once four times as much is free."""
SLACK_SHARE: Final = 8
"""An eighth may be used before it is held again."""


@dataclass(slots=True)
class _Held:
    """What is held behind the end of one file."""

    descriptor: int
    bytes_wanted: int
    is_log: bool
    """The write-ahead log is written from its beginning again and again, and hardly grows."""
    until: int = 0
    """Its blocks up to here are there; 0 = none are held."""
    seen: tuple[int, int] = (0, 0)
    """Its size and its blocks, when it was last looked at."""

    def bytes_left(self) -> int:
        """How many bytes are held and not used."""
        return max(self.until - self._begin(os.fstat(self.descriptor)), 0)

    def take(self) -> bool:
        """Hold all that is wanted; whether the file system can.

        Raises:
            OSError: There is no room.
        """
        begin = self._begin(os.fstat(self.descriptor))
        if not hold(self.descriptor, begin, self.bytes_wanted):
            return False
        self.until = begin + self.bytes_wanted
        return True

    def keep(self) -> None:
        """Hold again what was given back when the file was cut. A microsecond if it was not.

        Raises:
            OSError: Another program has taken the blocks.
        """
        found = os.fstat(self.descriptor)
        now, before = (found.st_size, found.st_blocks), self.seen
        if now == before or (self.is_log and now >= before):
            self.seen = now
            return
        begin = self._begin(found)
        self.until = min(self.until, begin + self.bytes_wanted)
        if self.until > begin:
            # Nothing counts as held while this may fail.
            until, self.until = self.until, 0
            hold(self.descriptor, begin, until - begin)
            self.until = until
        found = os.fstat(self.descriptor)
        self.seen = found.st_size, found.st_blocks

    def _begin(self, found: os.stat_result) -> int:
        return 0 if self.is_log else found.st_size


class DiskReserve:
    """The reserve of one database that this process has open.

    Blocking, and for one caller at a time.

    Args:
        database: Its file; the write-ahead log is next to it.
        bytes_max: Held at most; 0 = nothing is.
    """

    def __init__(self, database: Path, bytes_max: int) -> None:
        self._database = database
        self._bytes_max = bytes_max
        self._files: list[_Held] = []
        self._can = True
        """The file system can do it."""

    def give_back(self) -> None:
        """Make room for the files that SQLite makes as it opens, when there is none.

        Only before this process opens the database: to close a descriptor of it would drop
        SQLite's locks.
        """
        with contextlib.suppress(OSError):
            wanted = self._bytes_wanted()
            if wanted and self.bytes_free() < wanted:
                # To its own size: that frees what is held behind its end, and changes nothing.
                os.truncate(self._database, self._database.stat().st_size)

    def take(self) -> None:
        """Hold what is to be held. Once SQLite has made its files."""
        wanted = self._bytes_wanted()
        if not wanted:
            return
        log = self._database.with_name(f"{self._database.name}-wal")
        for path, share in ((self._database, WAL_SHARE - 1), (log, 1)):
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDWR)
                held = _Held(descriptor, wanted * share // WAL_SHARE, is_log=path == log)
                self._files.append(held)
        self.top_up()

    def keep(self) -> None:
        """After a commit. SQLite cuts the database where it ends once its log is copied into it,
        which gives back what is held behind.
        """
        for each in self._files:
            with contextlib.suppress(OSError):
                each.keep()

    def top_up(self) -> None:
        """Hold again what was used, once the disk has room for it again. Microseconds if not."""
        used = [each for each in self._files if self._is_used(each, SLACK_SHARE)]
        if not used or self.bytes_free() < AGAIN_SHARE * self._bytes_wanted():
            return
        with contextlib.suppress(OSError):
            for each in used:
                self._can = each.take()

    @property
    def bytes_left(self) -> int:
        """Of the database file's share; 0 also where the file system cannot hold any."""
        return sum(each.bytes_left() for each in self._files if not each.is_log and self._can)

    @property
    def is_spent(self) -> bool:
        """Whether half of it was used; the rest is for the ends of the runs there are."""
        return any(self._is_used(each, 2) for each in self._files)

    def close(self) -> None:
        """Once SQLite has closed the database, and cut its file: held for whoever opens it next."""
        while self._files:
            each = self._files.pop()
            with contextlib.suppress(OSError):
                each.take()
            os.close(each.descriptor)

    def _is_used(self, held: _Held, share: int) -> bool:
        return self._can and held.bytes_wanted - held.bytes_left() > held.bytes_wanted // share

    def _bytes_wanted(self) -> int:
        if not self._bytes_max:
            return 0
        found = os.statvfs(self._database.parent)
        return min(self._bytes_max, found.f_blocks * found.f_frsize // DISK_SHARE)

    def bytes_free(self) -> int:
        """How many bytes of the disk are free besides those that are held."""
        found = os.statvfs(self._database.parent)
        return found.f_bavail * found.f_frsize
