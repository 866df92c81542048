"""Tools that act on runs: messages, answers, kill, pause and resume, with all their refusals."""

from pathlib import Path
from typing import Any

import pytest
from tests.api.tools.tool_seats import CONFIG, Seat, play


@pytest.mark.requirement("tools:send")
def test_a_message_goes_into_the_live_turn_or_waits_for_the_next_as_asked(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        live = await desk.worker("hang", label="live")
        steered = await desk.ok("sessions_send", label="live", message="hurry")
        queued_run = await desk.spawn("quick", label="later", chainAfter="live")
        queued = await desk.ok("sessions_send", sessionKey=queued_run, message="also this")

        assert (steered["status"], steered["runId"]) == ("steered", live.run_id)
        assert queued["status"] == "queued"
        run = await desk.home.services.queries.run(live.run_id)
        assert run.control.steers == ()

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:send")
def test_a_followup_is_kept_for_a_turn_of_its_own(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        worker = await desk.worker("slow", label="talk")
        sent = await desk.ok(
            "sessions_send", sessionKey=worker.caller.session, message="and now?", mode="followup"
        )
        waited = await desk.ok("sessions_wait", runIds=["talk"], timeoutSeconds=15)

        assert sent["status"] == "accepted"
        run = await desk.home.services.queries.run(worker.run_id)
        assert run.attempts[-1].turn.number == 2
        # The scripted runtime answers a turn with what it was told.
        assert "and now?" in waited["completed"][0]["result"]

    play(tmp_path, scenario)


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
def test_a_message_that_cannot_be_sent_is_refused_with_the_reason(
    tmp_path: Path, arguments: dict[str, Any], says: str
) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.worker("hang", label="live")
        over = await desk.spawn("quick", label="over")
        await desk.until_phase(over, "completed")
        command = await desk.spawn("shell", label="command", task="sleep 60")
        await desk.until_phase(command, "running")
        answer = await desk.refused("sessions_send", **arguments)
        await desk.ok("subagents", action="kill", target="command")
        await desk.until_phase(command, "completed")

        assert says in answer.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:send")
def test_two_messages_within_two_seconds_are_one_too_many(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.worker("hang", label="live")
        await desk.ok("sessions_send", label="live", message="one")
        answer = await desk.refused("subagents", action="steer", target="live", message="two")

        assert answer.structured["status"] == "forbidden"
        assert answer.structured["code"] == "rate_limited"

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:kill")
def test_kill_ends_a_run_and_all_below_it_and_can_be_repeated(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss", label="boss")
        child = await boss.worker("hang", label="child")
        answer = await desk.call("subagents", action="kill", target="boss", message="enough")
        waited = await desk.ok("sessions_wait", runIds=["boss"], timeoutSeconds=15)
        again = await desk.ok("subagents", action="kill", target="boss")

        assert answer.structured["status"] == "cancelling"
        assert waited["completed"][0]["outcome"]["status"] == "cancelled"
        assert again["status"] == "already ended"
        run = await desk.home.services.queries.run(child.run_id)
        assert run.outcome is not None
        assert run.outcome.status == "cancelled"
        boss_run = await desk.home.services.queries.run(boss.run_id)
        cancel = boss_run.control.cancel
        assert cancel is not None
        assert (cancel.by, cancel.reason) == (
            desk.caller.session,
            "enough",
        )

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:pause")
def test_a_run_that_has_not_started_is_held_and_let_go(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.spawn("slow", label="first")
        run_id = await desk.spawn("quick", label="second", chainAfter="first")
        paused = await desk.ok("subagents", action="pause", target="second")
        await desk.until_phase(run_id, "queued")
        held = await desk.ok("subagents", action="status", target="second")
        resumed = await desk.ok("subagents", action="resume", target="second")
        waited = await desk.ok("sessions_wait", runIds=["second"], timeoutSeconds=15)

        assert paused["paused"] is True
        assert (held["runStatus"], held["paused"]) == ("paused", True)
        assert resumed["paused"] is False
        assert waited["completed"][0]["outcome"]["status"] == "ok"

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:respond")
def test_a_question_is_answered_once_and_who_came_second_is_told(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss", label="boss")
        engine = desk.home.services.engine
        asked = await engine.ask(boss.run_id, "left?", timeout_s=60)
        answer = await desk.call(
            "respond_orchestrator_request", requestId=asked.id, response="left", decision="approve"
        )
        second = await desk.ok(
            "respond_orchestrator_request", requestId=asked.id, response="right", decision="deny"
        )
        stored = (await engine.answer_of(asked.id, wait_s=0)).answer

        assert answer.structured["status"] == "answered"
        assert "inbox:" not in answer.text
        assert (second["status"], second["decision"]) == ("already answered", "approve")
        assert stored is not None
        assert (stored.text, stored.decision, stored.by) == (
            "left",
            "approve",
            desk.caller.session,
        )

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:respond")
def test_the_one_open_question_of_a_run_is_answered_by_naming_the_run(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss", label="boss")
        engine = desk.home.services.engine
        none = await desk.refused("subagents", action="answer", target="boss", message="x")
        first = await engine.ask(boss.run_id, "one?", timeout_s=60)
        done = await desk.ok("subagents", action="answer", target="boss", message="yes")
        second = await engine.ask(boss.run_id, "two?", timeout_s=60)
        third = await engine.ask(boss.run_id, "three?", timeout_s=60)
        several = await desk.refused("subagents", action="answer", target="boss", message="x")
        named = await desk.ok("subagents", action="answer", target=third.id, message="y")

        assert "has no open question" in none.text
        assert (done["requestId"], done["status"]) == (first.id, "answered")
        assert f"has 2 open questions: {second.id}, {third.id}" in several.text
        assert named["requestId"] == third.id

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:respond")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"requestId": "r-0000000000:q1", "response": "x"}, "request r-0000000000:q1 does not"),
        ({"requestId": "{id}:q9", "response": "x"}, ":q9 does not exist"),
        ({"requestId": "nonsense", "response": "x"}, "request nonsense does not exist"),
        ({"requestId": "{id}:q1"}, "response is required"),
        (
            {"requestId": "{id}:q1", "response": "x", "decision": "default"},
            'decision must be "answer" or "approve" or "deny", not "default"',
        ),
        ({"requestId": "{id}:q1", "response": "x" * 65_537}, "response must be text of length"),
        ({"requestid": "{id}:q1", "response": "x"}, 'did you mean "requestId"?'),
    ],
)
def test_an_answer_that_fits_no_question_is_refused(
    tmp_path: Path, arguments: dict[str, str], says: str
) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss")
        await desk.home.services.engine.ask(boss.run_id, "left?", timeout_s=60)
        given = {name: value.replace("{id}", boss.run_id) for name, value in arguments.items()}

        assert says in (await desk.refused("respond_orchestrator_request", **given)).text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:respond")
def test_a_worker_does_not_answer_its_own_question(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss")
        asked = await desk.home.services.engine.ask(boss.run_id, "may I?", timeout_s=60)
        answer = await boss.refused(
            "respond_orchestrator_request", requestId=asked.id, response="yes"
        )

        assert "a worker cannot answer its own question" in answer.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:refuses-bad-input")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "action is required"),
        ({"action": "stop"}, 'action must be "list" or "status"'),
        ({"action": "resum"}, 'did you mean "resume"?'),
        ({"action": "status"}, "target is required for action=status"),
        ({"action": "kill", "target": "x" * 301}, "target must be"),
        ({"action": "kill", "target": "live", "message": "x" * 4001}, "1 to 4000 characters"),
        ({"action": "answer", "target": "live"}, "message is required for action=answer"),
        ({"action": "log", "target": "live", "limit": 0}, "limit must be"),
        ({"action": "log", "target": "live", "offset": -1}, "offset must be"),
        ({"action": "log", "target": "live", "tail": 1e9}, "tail must be"),
        ({"action": "log", "target": "live", "pattern": "x"}, 'unknown parameter "pattern"'),
        ({"action": "status", "target": "lïve\0"}, "target must not contain a NUL byte"),
        ({"action": "status", "target": "\udfff"}, "target must be valid UTF-8"),
        ({"action": "resume", "target": "over"}, "is completed"),
        ({"action": "pause", "target": "over"}, "cannot be paused"),
    ],
)
def test_an_action_that_makes_no_sense_is_refused_by_the_name_of_what_is_wrong(
    tmp_path: Path, arguments: dict[str, Any], says: str
) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.worker("hang", label="live")
        over = await desk.spawn("quick", label="over")
        await desk.until_phase(over, "completed")

        assert says in (await desk.refused("subagents", **arguments)).text

    play(tmp_path, scenario, CONFIG)
