"""A change of another program's file: shown, written in one step, the old file kept next to it."""

import difflib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.config.files.text_files import read_text
from subagents.errors import ConfigError, Conflict

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Claude Code keeps histories next to its settings."""
PRIVATE_FILE: Final = 0o600
SHARED_FILE: Final = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of the file."""

    file: Path
    before: str | None
    """None: there is no file yet."""
    after: str
    is_shared: bool
    """Whether the file is the project's, for everybody who works on it."""

    @property
    def is_needed(self) -> bool:
        return (self.before or "") != self.after

    @property
    def diff(self) -> str:
        """As ``diff -u`` shows it."""
        old, new = (text.splitlines() for text in (self.before or "", self.after))
        start = os.devnull if self.before is None else str(self.file)
        return "\n".join(difflib.unified_diff(old, new, start, str(self.file), lineterm=""))


def write(change: Change) -> Path | None:
    """Replace the file in one step; returns where the old one is kept.

    Raises:
        Conflict: It changed since it was shown; nothing was written.
        ConfigError: It cannot be written.
    """
    # A link to a file among somebody's dotfiles stays a link.
    file = change.file.resolve()
    if read(file) != change.before:
        raise Conflict(
            f"{file} changed in the meantime; nothing was written", hint="run the command again"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        backup: Path | None = None
        mode = SHARED_FILE if change.is_shared else PRIVATE_FILE
        if change.before is not None:
            mode = file.stat().st_mode & 0o777
            backup = _free_name(file)
            shutil.copy2(file, backup)
        new = file.with_name(f".{file.name}.{os.getpid()}")
        new.touch(mode)
        new.write_bytes(change.after.encode())
        new.chmod(mode)
        new.replace(file)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
    return backup


def _free_name(file: Path) -> Path:
    """A name next to the file, with the time in it; nothing that is there is replaced."""
    stem = f"{file.name}.bak-{time.strftime('%Y%m%d-%H%M%S')}"
    found, number = file.with_name(stem), 1
    while found.exists():
        number += 1
        found = file.with_name(f"{stem}-{number}")
    return found


def read(file: Path) -> str | None:
    """The text with its line ends as they are and without a byte order mark; None = no file.

    Raises:
        ConfigError: It cannot be read, or is no text.
    """
    try:
        return read_text(file, bytes_max=FILE_BYTES_MAX, refusal=ConfigError)
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
