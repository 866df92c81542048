"""How lines of a transcript read."""

import time
from typing import TYPE_CHECKING, Final

from subagents.cli import output
from subagents.text import harmless

if TYPE_CHECKING:
    from subagents.api.wire.log_answers import LogLine

SIGNS: Final = {
    "text": " ",
    "thinking": "~",
    "tool": "+",
    "error": "!",
    "system": "-",
    "user": ">",
}
STYLES: Final = {"thinking": "dim", "error": "red", "system": "dim", "user": "cyan"}


def shown(line: "LogLine") -> list[str]:
    """Time, sign and text; further lines of the text stand below its beginning."""
    at = _clock(line.ts)
    sign = SIGNS.get(line.type, "?")
    # Also into a pipe: a worker's text must not move the cursor of whoever reads it in the end.
    first, *rest = harmless(line.text).splitlines() or [""]
    style = STYLES.get(line.type, "")
    indent = " " * (len(at) + 3)
    lines = [f"{at} {sign} {output.styled(first, style)}".rstrip()]
    return lines + [f"{indent}{output.styled(each, style)}".rstrip() for each in rest]


def _clock(ts: int) -> str:
    """``14:05:09`` today, else with its date."""
    moment = time.localtime(ts / 1000)
    is_today = time.localtime()[:3] == moment[:3]
    return time.strftime("%H:%M:%S" if is_today else "%m-%d %H:%M:%S", moment)
