"""A run as a user interface follows it, read with the protocol's own types."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from ag_ui.core import Event, EventType
from pydantic import TypeAdapter
from tests.api.home_daemon import CONFIG, Home

TALKS = f"""{CONFIG}
[agents.talks]
runtime = "scripted"
script = [
  {{ print = "hello" }},
  {{ tool = "Bash" }},
  {{ result = "greeted" }},
]
"""
EVENTS: TypeAdapter[Any] = TypeAdapter(Event)


async def following(home: Home, run_id: str) -> AsyncIterator[Any]:
    """The events of its stream as they come, up to the end."""
    transport = httpx.AsyncHTTPTransport(uds=str(home.services.paths.socket))
    url = f"http://localhost/v1/runs/{run_id}/ag-ui"
    async with (
        httpx.AsyncClient(transport=transport, timeout=40) as http,
        http.stream("GET", url) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield EVENTS.validate_python(json.loads(line.removeprefix("data: ")))


async def followed(home: Home, run_id: str) -> list[Any]:
    return [each async for each in following(home, run_id)]


@pytest.mark.requirement("ag-ui:stream")
@pytest.mark.configured(TALKS)
async def test_a_run_is_followed_from_its_beginning_to_its_result_and_again_with_the_same_ids(
    daemon: Home,
) -> None:
    run_id = (await daemon.spawn("talks"))["runId"]
    events = await followed(daemon, run_id)
    kinds = [each.type for each in events]
    assert kinds[0] is EventType.RUN_STARTED
    assert kinds[-1] is EventType.RUN_FINISHED
    assert (events[0].run_id, events[0].thread_id) == (run_id, "agent:main:main")
    assert (events[-1].result, events[-1].outcome.type) == ("greeted", "success")
    texts = [each.delta for each in events if each.type is EventType.TEXT_MESSAGE_CONTENT]
    assert "hello" in texts
    tools = [each.tool_call_name for each in events if each.type is EventType.TOOL_CALL_START]
    assert tools == ["Bash"]

    assert await followed(daemon, run_id) == events


@pytest.mark.requirement("ag-ui:error")
async def test_a_run_that_failed_ends_in_an_error_with_its_reason(daemon: Home) -> None:
    run_id = (await daemon.spawn("bad"))["runId"]
    *_, last = await followed(daemon, run_id)
    assert (last.type, last.code) == (EventType.RUN_ERROR, "exit_code")


@pytest.mark.requirement("ag-ui:question")
async def test_a_question_is_told_while_the_run_goes_on_and_a_cancel_ends_it(daemon: Home) -> None:
    run_id = (await daemon.spawn("hang"))["runId"]
    await daemon.until_phase(run_id, "running")
    asked = {"runId": run_id, "question": "which colour?", "options": ["red", "blue"]}
    made = await daemon.ok("POST", "/v1/requests", asked, daemon.worker(run_id))
    async for event in following(daemon, run_id):
        if event.type is EventType.CUSTOM and event.name == "subagents.question":
            assert event.value["requestId"] == made["requestId"]
            assert event.value["options"] == ["red", "blue"]
            await daemon.ok("POST", f"/v1/runs/{run_id}/cancel", {})
    assert event.outcome.type == "cancelled"
