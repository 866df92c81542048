"""What a task and the flags of a spawn come to."""

import sys
from collections.abc import Sequence
from typing import Any, Final

from subagents.cli.connection import caller_cwd
from subagents.cli.output import note
from subagents.errors import UsageError
from subagents.text import parse_duration

TASK_BYTES_MAX: Final = 256 * 1024
"""The domain's bound, which takes longer to import than to ask the daemon; a test compares them."""


def task_text(words: Sequence[str]) -> str:
    """One word as it is, ``-`` = stdin, several as one shell command line.

    Raises:
        UsageError: Empty, a NUL byte, not UTF-8 or over 256 KiB.
    """
    if not words:
        raise UsageError(
            "the task is missing",
            hint="subagents run 'wc -l README.md', or `-` to read it from stdin",
            details={"field": "task"},
        )
    if list(words) == ["-"]:
        text = _stdin_text()
    else:
        text = words[0] if len(words) == 1 else _joined(words)
    problem = None
    if not text.strip():
        problem = "must not be empty"
    elif "\0" in text:
        problem = "must not contain a NUL byte"
    elif len(text.encode()) > TASK_BYTES_MAX:
        problem = f"must be at most {TASK_BYTES_MAX} bytes, not {len(text.encode())}"
    if problem:
        raise UsageError(f"task {problem}", details={"field": "task"})
    return text


def _joined(words: Sequence[str]) -> str:
    import shlex  # noqa: PLC0415

    return shlex.join(words)


def _stdin_text() -> str:
    if sys.stdin.isatty():
        note("Reading the task from the terminal; end it with Ctrl-D.")
    content = sys.stdin.buffer.read(TASK_BYTES_MAX + 1)
    if len(content) > TASK_BYTES_MAX:
        raise UsageError(
            f"task must be at most {TASK_BYTES_MAX} bytes",
            hint="put the text into a file and name it in the task",
            details={"field": "task"},
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"task must be valid UTF-8 (byte {error.start} of stdin is not)",
            details={"field": "task"},
        ) from error


def value_of(value: Any, *, unit: str | None, form: str | None, flag: str) -> object:
    """What a flag's value comes to in a document.

    Args:
        value: As it was given.
        unit: Of a number; a duration was given as a text.
        form: ``path`` of a text that names a file or directory.
        flag: For the message.

    Raises:
        UsageError: It is no duration.
    """
    if unit in {"seconds", "milliseconds"}:
        milliseconds = parse_duration(value, field=flag)
        return milliseconds / 1000 if unit == "seconds" else milliseconds
    return absolute(value) if form == "path" else value


def put(document: dict[str, Any], path: str, value: object) -> None:
    """Set what stands at ``budget.maxTokens``; the objects on the way are made."""
    *tables, last = path.split(".")
    for name in tables:
        document = document.setdefault(name, {})
    document[last] = value


def absolute(directory: str) -> str:
    """A directory as the caller means it."""
    from pathlib import Path  # noqa: PLC0415

    return str(Path(caller_cwd(), Path(directory).expanduser()))
