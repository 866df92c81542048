"""One daemon of a home, and one home of a database.

The lock is the kernel's, so it goes with its process, however that ends, and the next daemon of the
home need not wait for a lease. Its file has the id of the home, which the database has, too: two
homes never share one, and a database that was put in the place of another is noticed.
"""

import fcntl
import os
import uuid
from pathlib import Path

from subagents.errors import AlreadyRunning


class HomeLock:
    """An exclusive lock, and an id that stays.

    Args:
        path: Its file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def take(self) -> None:
        """Keep other processes out until ``release``.

        Raises:
            AlreadyRunning: One of them was first.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise AlreadyRunning(
                f"another process holds {self.path}",
                hint="talk to that daemon, or stop it first: subagents down",
            ) from error
        self._file = file

    @property
    def has_home(self) -> bool:
        """Whether it has an id: this is no new home."""
        return bool(self.path.read_text("utf-8").strip())

    def home(self) -> str:
        """The id of the home; given now if it has none."""
        found = self.path.read_text("utf-8").strip()
        if not found and self._file is not None:
            found = uuid.uuid4().hex
            os.pwrite(self._file, f"{found}\n".encode(), 0)
            os.fsync(self._file)
        return found

    def release(self) -> None:
        """Safe to repeat."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
