"""Lines of a transcript as events of AG-UI."""

import pytest
from ag_ui.core import EventType
from tests.builders import RUN, Life

from subagents.api.wire.log_answers import LogLine
from subagents.extensions.ag_ui import ag_ui_events


@pytest.mark.requirement("ag-ui:lines")
@pytest.mark.parametrize(
    ("kind", "text", "types", "said"),
    [
        ("text", "hello", ["TEXT_MESSAGE_START", "_CONTENT", "_END"], {"delta": "hello"}),
        ("thinking", "hm", ["REASONING_MESSAGE_START", "_CONTENT", "_END"], {"delta": "hm"}),
        (
            "tool",
            "✅ Bash (0.1s)\nls",
            ["TOOL_CALL_START", "_ARGS", "_END", "_RESULT"],
            {"delta": "ls"},
        ),
        ("tool", "spawned", ["TOOL_CALL_START", "_END", "_RESULT"], {}),
        ("error", "oh", ["CUSTOM"], {"name": "subagents.line"}),
        ("text", "", ["TEXT_MESSAGE_START", "_CONTENT", "_END"], {"delta": " "}),
    ],
)
def test_each_kind_of_line_has_its_events(
    kind: str, text: str, types: list[str], said: dict[str, str]
) -> None:
    line = LogLine(seq=7, ts=1, type=kind, text=text, attempt=1)
    events = list(ag_ui_events.of_line(Life.begin().run, line))

    stem = types[0].removesuffix("_START")
    assert [each.type for each in events] == [
        EventType(each if not each.startswith("_") else f"{stem}{each}") for each in types
    ]
    named = [getattr(each, "message_id", getattr(each, "tool_call_id", None)) for each in events]
    assert set(named) <= {f"{RUN}:7", None}
    assert all(any(getattr(e, k, None) == v for e in events) for k, v in said.items())
