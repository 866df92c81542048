"""How every command ends: what went wrong is reported, and becomes the exit code.

What a command did counts more than whether its output could be written: a script that starts work
must not be made to start it again. So once something was done its fate is the exit code, also where
standard output is full or has no reader.
"""

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from subagents import errors
from subagents.errors import EXIT_FAILED, EXIT_INTERRUPTED, SubagentsError

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import Outcome, WaitResult

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


def exit_code(waited: "WaitResult", *, is_any: bool = False) -> int:
    """Of unknown runs first, then of what is pending, then of the worst outcome.

    With ``is_any`` nothing counts as pending once a run has ended.
    """
    if waited.errors:
        return errors.EXIT_NOT_FOUND
    if waited.pending and not (is_any and waited.completed):
        return errors.EXIT_PENDING
    return outcome_code(item.outcome for item in waited.completed)


def outcome_code(outcomes: Iterable["Outcome"]) -> int:
    """The exit code of runs that ended."""
    reasons = {outcome.reason for outcome in outcomes if not outcome.is_ok}
    if not reasons:
        return errors.EXIT_OK
    # Broken contracts alone: any other end says more about what has to be done.
    only_unverified = reasons == {"verification_failed"}
    return errors.EXIT_VERIFICATION_FAILED if only_unverified else errors.EXIT_RUN_UNSUCCESSFUL


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
