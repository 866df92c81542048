"""Items and results have one form, whichever program they are of."""

import pytest

from subagents.domain.run.worker_output import LINE_CHARS_MAX, LineType
from subagents.runtimes.output.output_items import (
    result_signal,
    system_item,
    tool_item,
)
from subagents.runtimes.output.tool_lines import tool_use


@pytest.mark.requirement("transcript:structured-events-are-said")
def test_an_item_is_shown_without_escapes_and_cut_with_a_note() -> None:
    item = system_item("\x1b[31mred\x1b[0m\n")
    long = system_item("x" * 2 * LINE_CHARS_MAX)

    assert (item.type, item.text) == (LineType.SYSTEM, "red")
    assert len(long.text) <= LINE_CHARS_MAX
    assert long.text.endswith("more characters)")


@pytest.mark.requirement("transcript:structured-events-are-said")
def test_a_tool_is_shown_by_its_line_behind_a_mark() -> None:
    item = tool_item(tool_use("Bash", given={"command": "ls"}, is_end=False), mark="↳ ")

    assert (item.type, item.text) == (LineType.TOOL, "↳ ▶ Bash\nls")
    assert item.tool is not None
    assert item.tool.command == "ls"


@pytest.mark.requirement("results:whole")
def test_a_result_is_whole_whatever_its_length() -> None:
    whole, long = result_signal("done"), result_signal("é" * 40_000, error="cut off")

    assert (whole.text, whole.bytes_total, whole.is_error) == ("done", 0, False)
    assert (long.text, long.bytes_total) == ("é" * 40_000, 0)
    assert (long.is_error, long.error) == (True, "cut off")
