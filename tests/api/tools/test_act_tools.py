"""Tools that act on runs: messages to their agents, with all their refusals."""

from typing import Any

import pytest
from tests.api.tools.tool_callers import ToolCaller


@pytest.mark.requirement("tools:send")
async def test_a_message_goes_into_the_live_turn_or_waits_for_the_next_as_asked(
    desk: ToolCaller,
) -> None:
    live = await desk.worker("hang", label="live")
    steered = await desk.ok("sessions_send", label="live", message="hurry")
    queued_run = await desk.spawn("quick", label="later", chainAfter="live")
    queued = await desk.ok("sessions_send", sessionKey=queued_run, message="also this")

    assert (steered["status"], steered["runId"]) == ("steered", live.run_id)
    assert queued["status"] == "queued"
    run = await desk.home.services.engine.queries.run(live.run_id)
    assert run.control.steers == ()


@pytest.mark.requirement("tools:send", "budget:raised")
async def test_a_message_can_raise_the_budget_of_the_run_that_gets_it(desk: ToolCaller) -> None:
    live = await desk.worker("hang", label="live", budget={"maxTokens": 1000, "maxRuns": 3})
    await desk.ok("sessions_send", label="live", message="hurry", addTokens=500)
    refused = await desk.refused("sessions_send", label="live", message="now", addCostUsd=1)

    run = await desk.home.services.engine.queries.run(live.run_id)
    assert run.spec.budget is not None
    assert run.spec.budget.max_tokens == 1_500
    assert refused.structured["code"]


@pytest.mark.requirement("tools:send")
async def test_a_followup_is_kept_for_a_turn_of_its_own(desk: ToolCaller) -> None:
    worker = await desk.worker("slow", label="talk")
    sent = await desk.ok(
        "sessions_send", sessionKey=worker.caller.session, message="and now?", mode="followup"
    )
    waited = await desk.ok("sessions_wait", runIds=["talk"], timeoutSeconds=15)

    assert sent["status"] == "accepted"
    run = await desk.home.services.engine.queries.run(worker.run_id)
    assert run.attempts[-1].turn.number == 2
    # The scripted runtime answers a turn with what it was told.
    assert "and now?" in waited["completed"][0]["result"]


@pytest.mark.requirement("tools:send")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"message": "x"}, "give sessionKey or label, one of them"),
        ({"message": "x", "label": "a", "sessionKey": "b"}, "give sessionKey or label"),
        ({"label": "live"}, "message is required"),
        ({"label": "live", "message": ""}, "message must be text of length >= 1"),
        ({"label": "live", "message": "  "}, "message must not be empty"),
        ({"label": "live", "message": "x" * 4001}, "message has 4001 characters, at most 4000"),
        ({"label": "live", "message": "a\0"}, "message must not contain a NUL byte"),
        ({"label": "live", "message": "x", "mode": "folowup"}, 'did you mean "followup"?'),
        ({"label": "nobody", "message": "x"}, 'no run "nobody"'),
        ({"label": "over", "message": "x"}, "there is no attempt to steer"),
        ({"label": "command", "message": "x"}, 'runtime "command" takes no messages'),
        (
            {"label": "command", "message": "x", "mode": "followup"},
            'runtime "command" takes no further turn',
        ),
    ],
)
async def test_a_message_that_cannot_be_sent_is_refused_with_the_reason(
    desk: ToolCaller, arguments: dict[str, Any], says: str
) -> None:
    await desk.worker("hang", label="live")
    over = await desk.spawn("quick", label="over")
    await desk.until_phase(over, "completed")
    command = await desk.spawn("shell", label="command", task="sleep 60")
    await desk.until_phase(command, "running")
    answer = await desk.refused("sessions_send", **arguments)
    await desk.ok("subagents", action="kill", target="command")
    await desk.until_phase(command, "completed")

    assert says in answer.text


@pytest.mark.requirement("tools:send")
async def test_two_messages_within_two_seconds_are_one_too_many(desk: ToolCaller) -> None:
    await desk.worker("hang", label="live")
    await desk.ok("sessions_send", label="live", message="one")
    answer = await desk.refused("subagents", action="steer", target="live", message="two")

    assert answer.structured["status"] == "forbidden"
    assert answer.structured["code"] == "rate_limited"
