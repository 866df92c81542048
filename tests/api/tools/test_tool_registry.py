"""The table of tools: who sees which, who may call which, and what showing them costs."""

import json
from pathlib import Path

import pytest
from tests.api.tools.tool_callers import ToolCaller, play

from subagents.api.tools.tool import Audience
from subagents.api.tools.tool_registry import TOOLS, visible
from subagents.errors import NotFound, StoreUnavailable

REQUESTER = [name for name, tool in TOOLS.items() if tool.audience is Audience.REQUESTER]
WORKER = [name for name, tool in TOOLS.items() if tool.audience is Audience.WORKER]
TOKENS_MAX = 3_000
CHARS_PER_TOKEN = 3.2
"""Two real tokenizers need one token for 4.4 characters of these schemas (docs/tools.md)."""


@pytest.mark.requirement("tools:visible")
def test_each_caller_sees_the_tools_it_may_use(tmp_path: Path) -> None:
    async def scenario(desk: ToolCaller) -> None:
        def seen(tool_caller: ToolCaller) -> list[str]:
            return [tool.name for tool in visible(tool_caller.home.services, tool_caller.caller)]

        boss = await desk.worker("boss")
        leaf = await boss.worker("hang")

        assert seen(desk) == REQUESTER
        assert seen(boss) == [*WORKER, *REQUESTER]
        assert seen(leaf) == WORKER
        await desk.ok("subagents", action="kill", target=boss.run_id)
        await desk.until_phase(boss.run_id, "completed")
        assert seen(boss) == WORKER

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:visible")
async def test_a_tool_that_is_not_shown_is_refused_when_it_is_called_all_the_same(
    desk: ToolCaller,
) -> None:
    for name in WORKER:
        answer = await desk.refused(name)
        assert answer.structured["details"] == {"guardrail": "role"}
        assert f"{name} is for workers" in answer.text
    leaf = await (await desk.worker("boss")).worker("hang")
    for name in REQUESTER:
        assert (await leaf.refused(name)).structured["details"] == {"guardrail": "depth"}
    await desk.ok("subagents", action="kill", target=leaf.run_id)
    await desk.until_phase(leaf.run_id, "completed")
    assert "has ended" in (await leaf.refused("sessions_list")).text


@pytest.mark.requirement("tools:visible")
async def test_an_unknown_tool_is_no_answer_but_an_error_with_the_nearest_name(
    desk: ToolCaller,
) -> None:
    with pytest.raises(NotFound, match='no tool "session_spawn": did you mean "sessions_spawn"'):
        await desk.call("session_spawn", task="x")


@pytest.mark.requirement("tools:no-operator")
async def test_an_operators_connection_has_an_agents_rights_through_a_tool(
    desk: ToolCaller,
) -> None:
    theirs = await desk.elsewhere("other").spawn("quick")

    assert desk.caller.is_operator
    answer = await desk.refused("subagents", action="status", target=theirs)
    assert answer.structured["details"] == {"guardrail": "ownership"}
    spawned = await desk.refused("sessions_spawn", task="x", agentId="hidden")
    assert spawned.structured["details"] == {"guardrail": "allow_agents"}


@pytest.mark.requirement("tools:errors")
async def test_an_error_says_the_same_in_words_and_as_data(desk: ToolCaller) -> None:
    answer = await desk.refused("subagents", action="status")
    document = answer.structured

    assert document == {
        "status": "error",
        "code": "invalid",
        "error": "target is required for action=status",
        "hint": "a run id, label, unique prefix, last, or session key",
        "details": {"field": "target"},
    }
    assert answer.text == f"error: {document['error']}\nhint: {document['hint']}"


@pytest.mark.requirement("tools:inbox-notice")
async def test_what_was_done_is_answered_though_the_inbox_cannot_be_counted(
    desk: ToolCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> int:
        raise StoreUnavailable("the database is away")

    monkeypatch.setattr(desk.home.services.engine.mailbox, "unread_count", fail)
    receipt = await desk.ok("sessions_spawn", task="x", agentId="quick")

    assert receipt["status"] == "accepted"


@pytest.mark.requirement("tools:cheap")
def test_the_requesters_tools_cost_less_than_three_thousand_tokens() -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for name, tool in TOOLS.items()
        if name in REQUESTER
    ]
    text = json.dumps({"tools": listed}, separators=(",", ":"))

    assert len(text) / CHARS_PER_TOKEN < TOKENS_MAX
