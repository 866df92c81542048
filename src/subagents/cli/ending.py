"""How every command ends: what went wrong is told, and becomes the exit code."""

import os
import sys
from collections.abc import Callable
from typing import Final

from subagents.errors import EXIT_FAILED, EXIT_INTERRUPTED, SubagentsError

EXIT_BROKEN_PIPE: Final = 141
"""What a shell shows for a program that SIGPIPE ended."""


def reporting(work: Callable[[], int], *, as_json: bool) -> int:
    """Do a command's work; what goes wrong is told, and becomes its exit code."""
    try:
        code = _told_of(work, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        # Of our own output: calls of the daemon and files have errors of their own.
        sys.stderr.write(f"subagents: {error.strerror or error}\n")
        _abandon_stdout()
        return EXIT_FAILED
    return code


def _told_of(work: Callable[[], int], *, as_json: bool) -> int:
    try:
        return work()
    except SubagentsError as error:
        from subagents.cli import output  # noqa: PLC0415  the overview needs none of it

        output.failure(error, as_json=as_json)
        return error.exit_code


def _abandon_stdout() -> None:
    """Who read our output went away: say nothing, and let the exit's flush go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
