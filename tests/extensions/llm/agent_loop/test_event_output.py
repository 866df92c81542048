"""Events are lines of JSON that the daemon reads back."""

import io
import json
from pathlib import Path

import pytest

from subagents.extensions.llm.agent_loop.event_output import PrintedEvents
from subagents.runtimes.output.worker_events import ErrorEvent, event_of


@pytest.mark.requirement("llm:stream")
def test_an_event_is_one_line_without_the_fields_that_are_none_and_is_read_back() -> None:
    stream = io.BytesIO()

    PrintedEvents(stream)("error", text="no\nanswer", api=True, status=None, retryAfterMs=5)

    (line,) = stream.getvalue().splitlines()
    assert json.loads(line) == {
        "subagents": "error",
        "text": "no\nanswer",
        "api": True,
        "retryAfterMs": 5,
    }
    assert isinstance(event_of(line), ErrorEvent)


@pytest.mark.requirement("llm:stream")
def test_a_value_that_json_does_not_know_is_printed_as_its_text() -> None:
    stream = io.BytesIO()

    PrintedEvents(stream)("tool", name="read", input={"path": Path("a")})

    assert json.loads(stream.getvalue())["input"] == {"path": "a"}
