"""Items of a worker's output, and the result of a turn, in the form that all runtimes share."""

from typing import Final

from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.worker_output import LineType, OutputItem, ToolUse
from subagents.runtimes.output.terminal_text import plain, shortened
from subagents.runtimes.output.tool_lines import tool_line

ALIVE: Final = OutputItem(type=LineType.SYSTEM)
"""Nothing to read, but the detectors see that the worker is at work."""


def shown(text: str) -> str:
    """``text`` as a line of a transcript: without escape sequences, of bounded length."""
    return shortened(plain(text).strip("\n"))


def system_item(text: str) -> OutputItem:
    """What the program, and not its model, has to say."""
    return OutputItem(type=LineType.SYSTEM, text=shown(text))


def tool_item(use: ToolUse, *, mark: str = "") -> OutputItem:
    """A tool that began or ended; ``mark`` stands before its line."""
    return OutputItem(type=LineType.TOOL, text=mark + tool_line(use), tool=use)


def result_signal(
    text: str,
    *,
    error: str | None = None,
    is_limit: bool = False,
    retry_after_ms: int | None = None,
) -> ResultSeen:
    """The result of a turn; its key is left empty for the reader.

    Args:
        text: The last text of the model, all of it: the engine keeps what is too long for a row.
        error: Why the turn failed; None = it did well.
        is_limit: It failed because the provider takes no more for now.
        retry_after_ms: When the provider may be asked again, where that is known.
    """
    return ResultSeen(
        key="",
        text=text,
        is_error=error is not None,
        error=error,
        is_limit=is_limit,
        retry_after_ms=retry_after_ms,
    )
