"""How every command ends: what went wrong is reported, and becomes the exit code.

What a command did counts more than whether its output could be written: a script that starts work
must not be made to start it again. So once something was done its fate is the exit code, also where
standard output is full or has no reader.
"""

import os
import sys
from collections.abc import Callable
from typing import Final

from subagents.errors import EXIT_FAILED, EXIT_INTERRUPTED, SubagentsError

EXIT_BROKEN_PIPE: Final = 141
"""What a shell shows for a program that SIGPIPE ended."""

_fate: "int | None" = None
"""The exit code of what was done; None = nothing was, but looking."""
_last_words: "Callable[[], None] | None" = None
"""What is said once a command's work is over, however it ended."""


def at_last(words: Callable[[], None]) -> None:
    """Have something said at the end of this command, instead of what was to be said before."""
    global _last_words  # noqa: PLW0603  one command line, one process
    _last_words = words


def settled(code: int) -> None:
    """Record that something was done with this exit code, whatever becomes of our output."""
    global _fate  # noqa: PLW0603  one command line, one process
    _fate = code


def reporting(work: Callable[[], int], *, as_json: bool) -> int:
    """Do a command's work; what goes wrong is reported, and becomes its exit code."""
    global _fate  # noqa: PLW0603  see above
    _fate = None
    try:
        code = _told_of(work, as_json=as_json)
        _fate = None if _fate is None else code
        # Here, where a failure can still become the exit code; at Python's exit it could not.
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return EXIT_BROKEN_PIPE if _fate is None else _fate
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        # Of our own output, which has no name: calls of the daemon and most files have errors of
        # their own.
        where = f"{error.filename}: " if error.filename else ""
        what = "" if _fate is None else "this was done, but standard output cannot be written: "
        sys.stderr.write(f"subagents: {what}{where}{error.strerror or error}\n")
        _abandon_stdout()
        return EXIT_FAILED if _fate is None else _fate
    return code


def _told_of(work: Callable[[], int], *, as_json: bool) -> int:
    global _last_words
    try:
        return work()
    except SubagentsError as error:
        from subagents.cli import output  # noqa: PLC0415  the overview needs none of it

        settled(error.exit_code)
        output.failure(error, as_json=as_json)
        return error.exit_code
    finally:
        words, _last_words = _last_words, None
        if words is not None:
            words()


def _abandon_stdout() -> None:
    """The reader of our output is gone: let the flush at the exit go nowhere, without a word."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
