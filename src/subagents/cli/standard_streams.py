"""Standard input, output and error as the starter of a command left them: open, closed or full.

A descriptor that was closed would be given to the next file or socket that is opened, and what is
written to it would go there. So the null device takes its place before anything else happens.
"""

import io
import os
import sys

STDOUT = 1
STDERR = 2

_closed: "set[int]" = set()


def is_closed(descriptor: int) -> bool:
    """Whether this process was started without it: what is written there is lost."""
    return descriptor in _closed


def prepare() -> None:
    """Make all three usable; call it first, once for a process.

    What goes to a standard error that cannot be written is lost: nothing depends on it.
    """
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest one that is free: those below it are open by now.
            os.open(os.devnull, os.O_WRONLY if descriptor else os.O_RDONLY)
            os.set_inheritable(descriptor, True)
            _closed.add(descriptor)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    if sys.stdout is None:
        raw = io.BufferedWriter(io.FileIO(STDOUT, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(raw, encoding="utf-8")
    # Replaced in any case: what goes wrong is reported there, and must not fail by that.
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Heedless(STDERR, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


class _Heedless(io.FileIO):
    """A file that takes whatever it is given, and keeps what there is room for."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]  # as ``FileIO`` declares it
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]
