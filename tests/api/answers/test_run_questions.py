"""A worker's question is found and answered by its requester, once."""

from dataclasses import replace

import pytest
from tests.api.tools.tool_callers import ToolCaller

from subagents.api.calls.services import wall_ms
from subagents.domain.run.access import AccessLevel, Ceiling
from subagents.domain.run.events import SignalReceived
from subagents.domain.run.signals import PermissionAsked


@pytest.mark.requirement("tools:respond")
async def test_a_question_is_answered_once_and_who_came_second_is_told(desk: ToolCaller) -> None:
    boss = await desk.worker("boss", label="boss")
    engine = desk.home.services.engine
    asked = await engine.questions.ask(boss.run_id, "left?", timeout_s=60)
    answer = await desk.call(
        "respond_orchestrator_request", requestId=asked.id, response="left", decision="approve"
    )
    second = await desk.ok(
        "respond_orchestrator_request", requestId=asked.id, response="right", decision="deny"
    )
    stored = (await engine.questions.answer_of(asked.id, wait_s=0)).answer

    assert answer.structured["status"] == "answered"
    assert "inbox:" not in answer.text
    assert (second["status"], second["decision"]) == ("already answered", "approve")
    assert stored is not None
    assert (stored.text, stored.decision, stored.by) == (
        "left",
        "approve",
        desk.caller.session,
    )


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
async def test_an_answer_that_fits_no_question_is_refused(
    desk: ToolCaller, arguments: dict[str, str], says: str
) -> None:
    boss = await desk.worker("boss")
    await desk.home.services.engine.questions.ask(boss.run_id, "left?", timeout_s=60)
    given = {name: value.replace("{id}", boss.run_id) for name, value in arguments.items()}

    assert says in (await desk.refused("respond_orchestrator_request", **given)).text


@pytest.mark.requirement("tools:respond")
async def test_a_worker_does_not_answer_its_own_question(desk: ToolCaller) -> None:
    boss = await desk.worker("boss")
    asked = await desk.home.services.engine.questions.ask(boss.run_id, "may I?", timeout_s=60)
    answer = await boss.refused("respond_orchestrator_request", requestId=asked.id, response="yes")

    assert "a worker cannot answer its own question" in answer.text


@pytest.mark.requirement("access:ask-a-person")
async def test_a_yes_in_words_does_not_decide_what_a_run_may_do(desk: ToolCaller) -> None:
    reader = Ceiling(level=AccessLevel.READ, source="its plan mode")
    agent = replace(desk.caller, ceiling=reader, is_operator=False)
    run_id = await ToolCaller(desk.home, agent).spawn("hang", access="write")
    asked, path = f"{run_id}:q1", f"/v1/requests/{run_id}:q1/respond"

    items = (await desk.home.ok("GET", "/v1/attention"))["items"]
    status, refused = await desk.home.call("POST", path, {"response": "yes"})

    assert [each["commands"] for each in items] == [
        [
            f"subagents answer {asked} --decision approve",
            f"subagents answer {asked} --decision deny",
        ]
    ]
    assert (status, refused["code"]) == (422, "invalid")
    assert "wants a decision" in refused["message"]
    await desk.home.ok("POST", path, {"response": "yes", "decision": "approve"})
    await desk.until_phase(run_id, "running")


@pytest.mark.requirement("access:ask-a-person")
async def test_the_name_of_a_decision_is_that_decision(desk: ToolCaller) -> None:
    run_id = await desk.spawn("hang", gate="Ship it?")
    path = f"/v1/requests/{run_id}:q1/respond"
    await desk.home.ok("POST", path, {"response": "Approve"})
    await desk.until_phase(run_id, "running")


@pytest.mark.requirement("permissions:for-agent")
async def test_only_the_user_allows_a_call_for_an_agent_and_takes_it_back(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss")
    worker, engine = await boss.worker("hang"), desk.home.services.engine
    seen = PermissionAsked("k", "c1", "Bash", "make", call="Bash: make")
    engine.ledger.apply_now(worker.run_id, SignalReceived(at_ms=wall_ms(), attempt=1, signal=seen))
    await engine.ledger.committed()
    asked, answer = f"{worker.run_id}:q1", {"response": "For this agent"}
    path = f"/v1/requests/{asked}/respond"
    agent_id = engine.ledger.live[worker.run_id].resolved.agent_id
    taken_back = f"/v1/agents/{agent_id}/allowed-calls/Bash%3A%20make"

    refused = await boss.refused("respond_orchestrator_request", requestId=asked, **answer)
    assert "only the user can allow" in refused.text
    assert f"subagents answer {asked} 'for this agent'" in refused.text
    assert engine.adapters.logs.allowed_calls.read() == {}
    await desk.home.ok("POST", path, answer)
    assert engine.adapters.logs.allowed_calls.read() == {agent_id: ("Bash: make",)}
    agent = {"X-Subagents-Caller": "agent"}
    assert (await desk.home.call("DELETE", taken_back, headers=agent))[0] == 403
    await desk.home.ok("DELETE", taken_back)
    assert engine.adapters.logs.allowed_calls.read() == {agent_id: ()}


@pytest.mark.requirement("cli:answer")
async def test_attention_names_the_answer_for_each_option_of_a_question(desk: ToolCaller) -> None:
    boss = await desk.worker("boss")
    asked = await desk.home.services.engine.questions.ask(
        boss.run_id, "which one?", options=("size", "by name"), timeout_s=60
    )

    items = (await desk.home.ok("GET", "/v1/attention"))["items"]

    answer = f"subagents answer {asked.id}"
    assert [each["commands"] for each in items if each["requestId"]] == [
        [f"{answer} size", f"{answer} 'by name'", f"{answer} --decision deny"]
    ]


@pytest.mark.requirement("cli:answer")
async def test_attention_names_the_no_of_a_question_and_none_of_a_notice(desk: ToolCaller) -> None:
    boss = await desk.worker("boss")
    asked = await desk.home.services.engine.questions.ask(boss.run_id, "drop it?", timeout_s=60)
    await boss.ok("notify_parent", message="disk full", priority="blocker")

    items = (await desk.home.ok("GET", "/v1/attention"))["items"]

    answer, notice = f"subagents answer {asked.id}", f"subagents answer {boss.run_id}:n1"
    assert [each["commands"] for each in items if each["requestId"]] == [
        [f"{answer} TEXT", f"{answer} --decision deny"],
        [f"{notice} TEXT"],
    ]
