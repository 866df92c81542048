"""Sessions over HTTP and by tool: going on, one run at a time, never wider, interrupted."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Document, Home, serving, until
from tests.api.tools.tool_callers import CONFIG as SEATS
from tests.api.tools.tool_callers import ToolCaller, play

from subagents.domain.run.values import AttemptId, RunId
from subagents.runtimes.scripted import ScriptedRuntime

CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 20
max_concurrent = 8
max_spawn_depth = 3

[agents.main]
subagents.allow_agents = ["*"]

[agents.talker]
runtime = "scripted"
tools = ["read", "write", "shell"]
script = [{ result = "first" }]

[agents.uses]
runtime = "scripted"
script = [
  { usage = { tokensIn = 9000, tokensCacheRead = 7500, costUsd = 0.25 } }, { hang = true },
  { continued = true }, { result = "done" },
]

[agents.stays]
runtime = "scripted"
script = [{ result = "so far" }, { hang = true }, { continued = true }, { print = "again" }]

[agents.bad]
runtime = "scripted"
script = [{ result = "half" }, { exit = 1 }]

[agents.late]
runtime = "scripted"
run_timeout_seconds = 0.4
script = [{ result = "half" }, { hang = true }]

[agents.writer]
runtime = "scripted"
script = [
  { result = "no file" },
  { continued = true },
  { write = { path = "out.txt", text = "x" } },
  { result = "written" },
]

[agents.lead]
runtime = "scripted"
script = [{ hang = true }]
subagents.allow_agents = ["*"]

[agents.shell]
runtime = "command"
command = ["sh", "-c", "{task}"]
"""


def run(tmp_path: Path, scenario: Callable[[Home], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with serving(tmp_path, CONFIG) as home:
            await scenario(home)

    asyncio.run(whole())


async def ended(home: Home, run_id: str) -> Document:
    """The detail of a run once it is over."""
    await home.until_phase(run_id, "completed")
    return await home.ok("GET", f"/v1/runs/{run_id}")


async def send(home: Home, run_id: str, message: str, **more: object) -> Document:
    return await home.ok("POST", f"/v1/runs/{run_id}/send", {"message": message, **more})


@pytest.mark.requirement("sessions:continue:new-run")
def test_a_message_to_an_ended_session_is_a_new_run_with_its_own_result(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("talker", label="talk", tags=["t"]))["runId"]
        before = await ended(home, first)
        sent = await send(home, first, "and now?")
        after = await ended(home, sent["runId"])

        assert (sent["status"], sent["isNew"], sent["continues"]) == ("accepted", True, first)
        assert (before["result"], after["result"]) == ("first", "and now?")
        assert after["nativeSession"] == before["nativeSession"] == f"{first}#1"
        assert (after["label"], after["agentId"], after["spec"]["tags"]) == (
            "talk",
            "talker",
            ["t"],
        )
        assert after["resolved"]["cwd"] == before["resolved"]["cwd"]
        assert (await home.ok("GET", f"/v1/runs/{first}"))["continuedBy"] == sent["runId"]
        inbox = await home.ok("POST", "/v1/inbox", {})
        announced = [each["runId"] for each in inbox["messages"]]
        assert announced == [first, sent["runId"]]

    run(tmp_path, scenario)


@pytest.mark.requirement("budget:raised", "sessions:continue:new-run")
def test_a_session_that_ran_out_of_its_budget_goes_on_with_what_is_left_and_more(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        budget = {"maxTokens": 1_000, "maxCostUsd": 1, "maxRuns": 3}
        first = (await home.spawn("uses", label="u", budget=budget))["runId"]
        before = await ended(home, first)
        sent = await send(home, first, "go on", addTokens=500, addCostUsd=0.5, idempotencyKey="k")
        again = await send(home, first, "go on", addTokens=500, addCostUsd=0.5, idempotencyKey="k")
        after = await ended(home, sent["runId"])
        plain = await ended(home, (await send(home, "u", "and now?"))["runId"])
        other = (await home.spawn("talker"))["runId"]
        await ended(home, other)
        path, body = f"/v1/runs/{other}/send", {"message": "x", "addTokens": 5}
        status, refused = await home.call("POST", path, body)

        assert before["outcome"]["reason"] == "budget"
        left = {"maxTokens": 500, "maxCostUsd": 1.25, "maxRuns": 3}
        assert after["spec"]["budget"] == {**before["spec"]["budget"], **left}
        assert again["runId"] == sent["runId"]
        assert plain["spec"]["budget"] == after["spec"]["budget"]
        assert (status, "no such limit of its own" in refused["message"]) == (422, True)

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:newest")
def test_every_old_name_of_a_session_reaches_its_newest_run(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("talker", label="talk"))["runId"]
        key = (await ended(home, first))["sessionKey"]
        chain = [first]
        for number, name in enumerate((first, "talk", key, first, chain[0])):
            sent = await send(home, name, f"message {number}")
            assert sent["continues"] == chain[-1]
            chain.append(sent["runId"])
            await ended(home, sent["runId"])
        sent = await send(home, chain[2], "from the middle")

        assert sent["continues"] == chain[-1]
        # The first one knows the newest at any length.
        assert (await home.ok("GET", f"/v1/runs/{first}"))["continuedBy"] == sent["runId"]

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:salvage")
def test_failed_cancelled_late_and_interrupted_runs_are_gone_on_with(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        bad = (await home.spawn("bad"))["runId"]
        late = (await home.spawn("late"))["runId"]
        cancelled = (await home.spawn("stays"))["runId"]
        interrupted = (await home.spawn("stays"))["runId"]
        for each in (cancelled, interrupted):
            await home.until_phase(each, "running")
        await home.ok("POST", f"/v1/runs/{cancelled}/cancel", {})
        await home.ok("POST", f"/v1/runs/{interrupted}/interrupt", {"reason": "wait"})
        how = {
            bad: ("error", "exit_code"),
            late: ("timeout", "deadline"),
            cancelled: ("cancelled", "cancelled_by_caller"),
            interrupted: ("partial", "interrupted"),
        }
        for run_id, (status, reason) in how.items():
            found = await ended(home, run_id)
            assert (found["outcome"]["status"], found["outcome"]["reason"]) == (status, reason)
            sent = await send(home, run_id, "go on")
            after = await ended(home, sent["runId"])
            assert (after["outcome"]["status"], after["continues"]) == ("ok", run_id)
        assert (await home.ok("GET", f"/v1/runs/{interrupted}"))["result"] == "so far"

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:one-at-a-time")
def test_two_messages_at_once_are_one_run_and_one_message_to_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("stays"))["runId"]
        await home.until_phase(first, "running")
        live = await send(home, first, "while it works")
        assert (live["status"], live["runId"], live["isNew"]) == ("steered", first, False)
        await home.ok("POST", f"/v1/runs/{first}/interrupt")
        await ended(home, first)
        answers = await asyncio.gather(
            *(home.call("POST", f"/v1/runs/{first}/send", {"message": f"m{n}"}) for n in range(6))
        )
        runs = await home.ok("GET", "/v1/runs", None)

        good = [document for status, document in answers if status == 200]
        assert sum(document["isNew"] for document in good) >= 1
        # Others were told to it, were one too many in two seconds, or came when it had ended.
        codes = {document["code"] for status, document in answers if status != 200}
        assert codes <= {"rate_limited", "conflict"}
        going_on = [row for row in runs["runs"] if row["runId"] != first]
        links = [
            (await home.ok("GET", f"/v1/runs/{row['runId']}"))["continues"] for row in going_on
        ]
        assert len(set(links)) == len(links)

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:once")
def test_a_message_that_comes_twice_is_taken_once(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("stays"))["runId"]
        await home.until_phase(first, "running")
        live = [await send(home, first, "hurry", idempotencyKey="k1") for _ in range(2)]
        await home.ok("POST", f"/v1/runs/{first}/interrupt")
        await ended(home, first)
        # Told to the run before: it starts nothing now.
        late = await send(home, first, "hurry", idempotencyKey="k1")
        started = [await send(home, first, "more", idempotencyKey="k2") for _ in range(2)]

        for text, key in (("hurry up", "k1"), ("most", "k2")):
            body = {"message": text, "idempotencyKey": key}
            status, refused = await home.call("POST", f"/v1/runs/{first}/send", body)
            assert (status, refused["code"]) == (409, "idempotency_conflict")
            assert refused["details"]["differs"] == ["message"]

        assert [each["repeated"] for each in (*live, late)] == [False, True, True]
        assert {each["runId"] for each in (*live, late)} == {first}
        assert [each["repeated"] for each in started] == [False, True]
        assert len({each["runId"] for each in started}) == 1

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:never-wider")
def test_a_continuation_keeps_the_scope_and_can_only_narrow_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        spec: dict[str, Any] = {
            "toolsAllow": ["read", "write"],
            "toolsDeny": ["write"],
            "budget": {"maxRuns": 2},
        }
        first = (await home.spawn("talker", **spec))["runId"]
        await ended(home, first)
        wider = {"spec": {"task": "x", "continues": first, "toolsAllow": ["read", "shell"]}}
        status, refused = await home.call("POST", "/v1/runs", {**wider, "cwd": home.cwd})
        sent = await send(home, first, "go on")
        after = await ended(home, sent["runId"])

        assert status == 403
        assert "toolsAllow can only narrow: shell" in refused["message"]
        assert after["resolved"]["effectiveTools"] == ["read"]
        assert after["resolved"]["toolsDeny"] == ["write"]
        assert after["spec"]["budget"]["maxRuns"] == 2

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:contract")
def test_a_contract_that_was_not_met_holds_on_and_one_that_was_met_does_not(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        contract = {"artifacts": [{"path": "out.txt"}]}
        first = (await home.spawn("writer", verification=contract))["runId"]
        failed = await ended(home, first)
        second = (await send(home, first, "write it"))["runId"]
        met = await ended(home, second)
        third = await ended(home, (await send(home, first, "thanks"))["runId"])

        assert failed["outcome"]["reason"] == "verification_failed"
        assert (met["outcome"]["status"], met["verification"]["status"]) == ("ok", "passed")
        assert third["spec"]["verification"] is None

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:contract", "contract:fresh")
def test_what_a_session_did_for_its_contract_counts_until_it_is_met(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        place = Path(home.cwd)
        (place / "old.txt").write_text("old")
        contract = {"artifacts": [{"path": "out.txt"}, {"path": "old.txt"}]}
        first = (await home.spawn("writer", verification=contract))["runId"]
        await ended(home, first)
        (place / "out.txt").write_text("by the first")
        second = await ended(home, (await send(home, first, "go on"))["runId"])

        reasons = [each["reason"] for each in second["verification"]["checks"]]
        assert reasons[1].startswith("File old.txt was there before the run and did not change")
        assert reasons[0] is None

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:continue:refused")
def test_what_cannot_be_gone_on_with_says_why_and_what_to_do(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        shell = (await home.spawn("shell", task="true"))["runId"]
        gone = (await home.spawn("talker", cleanup="delete"))["runId"]
        live = (await home.spawn("stays"))["runId"]
        over = (await home.spawn("talker"))["runId"]
        for each in (shell, gone, over):
            await ended(home, each)
        await home.until_phase(live, "running")
        cases: list[tuple[str, dict[str, Any], str, str]] = [
            (shell, {}, 'runtime "command" cannot continue a session', "subagents retry"),
            (gone, {}, "was deleted when it ended (cleanup: delete)", "spawn a new run"),
            (over, {"mode": "steer"}, "there is no attempt to steer", "subagents continue"),
        ]
        for run_id, more, text, hint in cases:
            body = {"message": "x", **more}
            status, refused = await home.call("POST", f"/v1/runs/{run_id}/send", body)
            assert (status, text in refused["message"]) == (409, True), refused
            assert hint in refused["hint"]
        specs: list[tuple[dict[str, Any], int, str]] = [
            ({"continues": live}, 409, "is at work in this session (running)"),
            ({"continues": over, "agentId": "stays"}, 409, 'is one of agent "talker"'),
            ({"continues": "r-nobody00000"}, 404, 'no run "r-nobody00000"'),
            ({"continues": over, "cwd": "/"}, 422, "cwd must be that of the session"),
            ({"continues": ""}, 422, "spec.continues must not be empty"),
        ]
        for more, code, text in specs:
            spec = {"spec": {"task": "x", **more}}
            status, refused = await home.call("POST", "/v1/runs", spec)
            assert (status, text in refused["message"]) == (code, True), refused
        for body, text in (
            ({}, "message is required"),
            ({"message": " "}, "message must not be empty"),
            ({"message": "x", "mode": "steeer"}, 'did you mean "steer"?'),
            ({"message": "x", "idempotencyKey": "a\nb"}, "idempotencyKey must be one line"),
        ):
            status, refused = await home.call("POST", f"/v1/runs/{over}/send", body)
            assert (status, text in refused["message"]) == (422, True), refused

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:interrupt")
def test_an_interrupted_run_keeps_its_last_words_and_cancels_what_it_spawned(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        lead = (await home.spawn("lead"))["runId"]
        await home.until_phase(lead, "running")
        child = (await home.spawn("stays", headers=home.worker(lead)))["runId"]
        await home.until_phase(child, "running")
        answer = await home.ok("POST", f"/v1/runs/{lead}/interrupt", {"reason": "wrong branch"})
        found = await ended(home, lead)
        below = await ended(home, child)
        why = await home.ok("GET", f"/v1/runs/{lead}/why")
        status, again = await home.call("POST", f"/v1/runs/{lead}/interrupt")

        assert answer["status"] == "interrupting"
        assert found["outcome"] == {
            "status": "partial",
            "reason": "interrupted",
            "error": "interrupted at work",
        }
        assert below["outcome"]["status"] == "cancelled"
        assert "interrupted by main: wrong branch" in str(why)
        assert (status, "there is no turn to interrupt" in again["message"]) == (409, True)

    run(tmp_path, scenario)


@pytest.mark.requirement("interrupt:planned")
def test_a_planned_interrupt_ends_the_turn_later_unless_it_is_taken_back(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        kept, ends = (await home.spawn("stays"))["runId"], (await home.spawn("stays"))["runId"]
        for run_id in (kept, ends):
            await home.until_phase(run_id, "running")
        path = f"/v1/runs/{kept}/interrupt"
        planned = await home.ok("POST", path, {"after": "10m"})
        row = await home.ok("GET", f"/v1/runs/{kept}")
        back = await home.ok("DELETE", path)
        after = await home.ok("GET", f"/v1/runs/{kept}")
        harmless = await home.ok("DELETE", path)
        await home.ok("POST", f"/v1/runs/{ends}/interrupt", {"after": "50ms"})
        found = await ended(home, ends)
        status, late = await home.call("DELETE", f"/v1/runs/{ends}/interrupt")

        assert (planned["status"], back["status"], harmless["status"]) == (
            "planned",
            "not interrupted",
            "not interrupted",
        )
        assert (row["interruptAt"] is None, row["cancelAt"]) == (False, None)
        assert "main ends its turn in " in row["why"]
        assert (after["interruptAt"], after["phase"]) == (None, "running")
        assert found["outcome"]["reason"] == "interrupted"
        assert (status, "too late" in late["message"]) == (409, True)

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:interrupt")
def test_a_runtime_without_turns_says_that_it_cannot_interrupt(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        shell = (await home.spawn("shell", task="sleep 60"))["runId"]
        await home.until_phase(shell, "running")
        status, refused = await home.call("POST", f"/v1/runs/{shell}/interrupt")
        await home.ok("POST", f"/v1/runs/{shell}/cancel")

        assert status == 409
        assert refused["message"] == (
            'runtime "command" cannot interrupt a turn: it lacks the ability "interrupt"'
        )
        assert refused["hint"] == f"end the run: subagents cancel {shell}"

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:tool")
async def test_by_tool_an_ended_child_takes_a_followup_and_a_live_one_an_interrupt(
    desk: ToolCaller,
) -> None:
    over = await desk.spawn("quick", label="over")
    await desk.until_phase(over, "completed")
    arguments = {"label": "over", "message": "and now?", "mode": "followup"}
    sent = await desk.ok("sessions_send", **arguments)
    waited = await desk.ok("sessions_wait", runIds=[sent["runId"]], timeoutSeconds=15)
    live = await desk.worker("hang", label="live")
    stopped = await desk.call("subagents", action="interrupt", target="live", message="enough")
    gone = await desk.ok("sessions_wait", runIds=["live"], timeoutSeconds=15)

    assert (sent["status"], sent["continues"]) == ("accepted", over)
    assert sent["runId"] != over
    assert waited["completed"][0]["result"].strip().endswith("and now?")
    assert stopped.structured["status"] == "interrupting"
    assert "sessions_send mode=followup" in stopped.text
    assert gone["completed"][0]["outcome"]["reason"] == "interrupted"
    assert live.run_id


@pytest.mark.requirement("sessions:tool")
def test_an_agent_goes_on_only_with_what_lies_below_it(tmp_path: Path) -> None:
    config = SEATS.replace('allow_agents = ["quick", "hang"]', 'allow_agents = ["quick"]')

    async def scenario(desk: ToolCaller) -> None:
        boss = await desk.worker("boss", label="boss")
        other = await desk.spawn("quick", label="others")
        own = await boss.spawn("quick", label="own")
        for each in (other, own):
            await desk.until_phase(each, "completed")
        refused = await boss.refused("sessions_spawn", task="x", continues=other, agentId="quick")
        sent = await boss.ok("sessions_send", label="own", message="more", mode="followup")
        found = await desk.until_phase(sent["runId"], "completed")

        assert "belongs to another session" in refused.text
        assert found.lineage.requester_run == boss.run_id
        assert found.lineage.depth == 2
        parent = await desk.home.services.engine.queries.run(boss.run_id)
        assert [child.run_id for child in parent.children] == [own, sent["runId"]]

    play(tmp_path, scenario, config)


@pytest.mark.requirement("sessions:continue:depth")
def test_going_on_with_a_deep_session_brings_it_no_nearer_to_the_top(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        lead = (await home.spawn("lead"))["runId"]
        await home.until_phase(lead, "running")
        child = (await home.spawn("talker", headers=home.worker(lead)))["runId"]
        await home.until_phase(child, "completed")
        sent = await send(home, child, "a person continues")
        found = await ended(home, sent["runId"])

        assert (found["depth"], found["requesterRun"]) == (2, None)

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:archived")
def test_a_session_outlives_the_archive(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("talker"))["runId"]
        await ended(home, first)
        engine = home.services.engine
        await engine.control.archive(RunId(first))
        await until(lambda: RunId(first) not in engine.ledger.live)
        sent = await send(home, first, "still there?")

        assert (await ended(home, sent["runId"]))["result"] == "still there?"
        assert RunId(first) not in engine.ledger.live

    run(tmp_path, scenario)


@pytest.mark.requirement("threads:refused")
def test_a_worker_writes_into_no_thread(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        thread = (await home.spawn("talker", thread=True))["threadId"]
        lead = (await home.spawn("lead"))["runId"]
        await home.until_phase(lead, "running")
        path, body = f"/v1/threads/{thread}/messages", {"text": "x"}
        status, refused = await home.call("POST", path, body, home.worker(lead))

        assert (status, "is for the operator" in refused["message"]) == (403, True)

    run(tmp_path, scenario)


@pytest.mark.requirement("sessions:deadline-warning")
def test_near_its_deadline_a_worker_is_told_to_finish_and_report(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        # A tenth of this is between the warning and the deadline, which a busy machine may take.
        late = (await home.spawn("late", runTimeoutSeconds=3))["runId"]
        runtime = home.services.engine.adapters.runtimes["scripted"]
        assert isinstance(runtime, ScriptedRuntime)
        await home.until_phase(late, "running")
        messages = runtime._attempts[AttemptId(f"{late}#1")].messages
        await until(lambda: bool(messages))
        (warning,) = messages.values()
        await home.ok("POST", f"/v1/runs/{late}/cancel", {})
        await ended(home, late)
        why = str(await home.ok("GET", f"/v1/runs/{late}/why"))

        assert "was warned of its deadline" in why
        assert "message 1 reached the worker" in why
        assert warning.startswith("[System Message] ")
        assert warning.endswith("left before your deadline: finish and report what you have.")

    run(tmp_path, scenario)
