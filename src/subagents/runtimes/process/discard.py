"""Discards raw output that is kept elsewhere, so that the disk does not fill with it.

While the worker lives its files stay, for it writes them; what was read is punched out of them:
they keep their size, and the offsets their meaning, without the blocks. When all is over they are
deleted. A record of what was discarded stays in the attempt's directory, written first: a reader
after a crash must know that zeros are no output.

Where holes cannot be punched (``disk_blocks``) the files stay until the end.
"""

import contextlib
from pathlib import Path
from typing import Final, NamedTuple

from subagents.disk_blocks import punch
from subagents.domain.redaction.redact import MARGIN_BYTES
from subagents.domain.run.worker_output import RESULT_BYTES_MAX
from subagents.runtimes.output.output_reader import STDERR_BYTES_MAX, has_result

RECORD: Final = "discarded"
KEPT_BYTES: Final = RESULT_BYTES_MAX + STDERR_BYTES_MAX + MARGIN_BYTES
"""What is kept before the place up to which a file was read: the end of the text may become the
result."""


class Discarded(NamedTuple):
    """What was discarded of an attempt's output."""

    out: int = 0
    """Bytes of the standard output before this offset may be gone."""
    err: int = 0
    has_result: bool = False
    """A ``result`` event stood before ``out``."""
    is_all: bool = False
    """The attempt is over and the files are deleted, or about to be."""


def discarded(directory: Path) -> Discarded:
    """What was discarded so far; all zeros where nothing was. Blocking, some microseconds."""
    try:
        with open(f"{directory}/{RECORD}", encoding="ascii") as file:  # noqa: PTH123  # hot
            words = file.read().split()
        return Discarded(int(words[0]), int(words[1]), words[2] == "result", words[3] == "all")
    except (OSError, ValueError, IndexError):
        return Discarded()


def discard_before(directory: Path, *, out: int, err: int, result_bytes_max: int = 0) -> None:
    """Discard what stands before these offsets, but for ``KEPT_BYTES``. Blocking, idempotent.

    Args:
        directory: The directory of the attempt.
        out: The offset in the standard output.
        err: The offset in the standard error.
        result_bytes_max: The part of the standard output that stays while it may be the result.

    Raises:
        OSError: Not all could be discarded.
    """
    before = discarded(directory)
    out, err = max(out, before.out), max(err, before.err)
    if before.is_all or (out, err) == (before.out, before.err):
        return
    path = str(directory / "out")
    found = before.has_result or has_result(path, start=before.out, stop=out)
    _record(directory, Discarded(out, err, found))
    punch(path, until=out - (KEPT_BYTES if found else max(KEPT_BYTES, result_bytes_max)))
    punch(str(directory / "err"), until=err - KEPT_BYTES)


def discard_all(directory: Path) -> None:
    """Delete the output of an attempt that is over. Blocking, idempotent.

    Raises:
        OSError: Not all could be deleted.
    """
    files = [directory / name for name in ("out", "err")]
    if not any(file.exists() for file in files):
        return
    before = discarded(directory)
    if not before.is_all:
        # It fails on a full disk, where the room matters more: nothing is read here any more.
        with contextlib.suppress(OSError):
            _record(directory, before._replace(is_all=True))
    for file in files:
        file.unlink(missing_ok=True)
    if not (directory / "pid").exists():
        # Tidied meanwhile, or nothing ran: there is nothing to be known of it.
        (directory / RECORD).unlink(missing_ok=True)


def _record(directory: Path, what: Discarded) -> None:
    result, extent = ("result" if what.has_result else "none"), ("all" if what.is_all else "part")
    draft = directory / f".{RECORD}"
    draft.write_text(f"{what.out} {what.err} {result} {extent}\n", "ascii")
    draft.replace(directory / RECORD)
