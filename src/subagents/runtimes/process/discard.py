"""Discards raw output that is kept elsewhere, so that the disk does not fill with it.

While the worker lives its files stay, for it writes them; what was read is punched out of them:
they keep their size, and the offsets their meaning, without the blocks. When all is over they are
deleted. A record of what was discarded stays in the attempt's directory, written first: whoever
reads after a crash must know that zeros are no output.

Punching holes is Linux (ext4, xfs, btrfs, tmpfs, …); elsewhere the files stay until the end.
"""

import contextlib
import ctypes
import errno
import os
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from subagents.domain.redaction.redact import MARGIN_BYTES
from subagents.domain.run.worker_output import RESULT_BYTES_MAX
from subagents.runtimes.output.output_reader import STDERR_BYTES_MAX, has_result

RECORD: Final = "discarded"
BLOCK_BYTES: Final = 4096
KEPT_BYTES: Final = RESULT_BYTES_MAX + STDERR_BYTES_MAX + MARGIN_BYTES
"""Before the place up to which a file was read: the end of the text may become the result."""

_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
_UNSUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


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
    """What was discarded before; all zeros where nothing was. Blocking, some microseconds."""
    try:
        words = (directory / RECORD).read_text("ascii").split()
        return Discarded(int(words[0]), int(words[1]), words[2] == "result", words[3] == "all")
    except (OSError, ValueError, IndexError):
        return Discarded()


def discard_before(directory: Path, *, out: int, err: int, result_bytes_max: int = 0) -> None:
    """Discard what stands before these offsets, but for ``KEPT_BYTES``. Blocking, idempotent.

    Args:
        directory: The attempt's.
        out: In the standard output.
        err: In the standard error.
        result_bytes_max: So much of the standard output stays, too, while it may be the result.

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
    if not directory.is_dir():
        return
    before = discarded(directory)
    if not before.is_all:
        # Not on a full disk; there the room matters more, and nobody reads on here.
        with contextlib.suppress(OSError):
            _record(directory, before._replace(is_all=True))
    for name in ("out", "err"):
        (directory / name).unlink(missing_ok=True)


def _record(directory: Path, what: Discarded) -> None:
    result, extent = ("result" if what.has_result else "none"), ("all" if what.is_all else "part")
    draft = directory / f".{RECORD}"
    draft.write_text(f"{what.out} {what.err} {result} {extent}\n", "ascii")
    draft.replace(directory / RECORD)


def punch(path: str, *, until: int) -> None:
    """Free the whole blocks before the offset, where the file system can. Blocking, idempotent.

    Raises:
        OSError: They could not be freed.
    """
    size = until // BLOCK_BYTES * BLOCK_BYTES
    fallocate = _fallocate()
    if size <= 0 or fallocate is None:
        return
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            if fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, 0, size) == 0:
                return
            number = ctypes.get_errno()
            if number not in _UNSUPPORTED:
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(descriptor)


@cache
def _fallocate() -> "ctypes._NamedFuncPointer | None":
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("fallocate64", "fallocate"):
        function = getattr(libc, name, None)
        if function is not None:
            offset = ctypes.c_int64 if name == "fallocate64" else ctypes.c_long
            function.argtypes = (ctypes.c_int, ctypes.c_int, offset, offset)
            function.restype = ctypes.c_int
            return function  # type: ignore[no-any-return]  # whatever the library has
    return None
