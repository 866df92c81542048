"""What a worker says through its tools, and what it hears."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.api.home_daemon import Document, Home, serving, until

from subagents.api.tools import worker_tools as worker
from subagents.api.tools.tool import Audience
from subagents.api.tools.worker_tools import WORKER_TOOLS
from subagents.domain.run.values import RequestId
from subagents.text import milliseconds_of

Scenario = Callable[[Home, str], Awaitable[None]]


def play(tmp_path: Path, scenario: Scenario, *, agent: str = "hang") -> None:
    """The scenario, with the id of a run whose worker is there and does nothing by itself."""

    async def whole() -> None:
        async with serving(tmp_path) as home:
            run_id = (await home.spawn(agent, label="w"))["runId"]
            await home.until_phase(run_id, "running")
            await scenario(home, run_id)

    asyncio.run(whole())


async def use(
    home: Home, name: str, arguments: Document, headers: Mapping[str, str] | None = None
) -> Document:
    return await home.ok("POST", f"/v1/tools/{name}", arguments, headers)


async def told(home: Home, run_id: str, tool: str, **arguments: object) -> Document:
    """The structured answer to the run's worker; the call must not be refused."""
    answered = await use(home, tool, arguments, home.worker(run_id))
    assert not answered["isError"], answered
    assert answered["offered"] == []
    structured: Document = answered["structured"]
    return structured


async def refused(home: Home, run_id: str, tool: str, **arguments: object) -> str:
    answered = await use(home, tool, arguments, home.worker(run_id))
    assert answered["isError"], answered
    return str(answered["structured"]["error"])


# -- schemas ------------------------------------------------------------------------------------

FORBIDDEN = {"anyOf", "oneOf", "allOf", "$ref", "not", "if", "$defs"}


def nodes(schema: object) -> Iterator[Mapping[str, object]]:
    if isinstance(schema, Mapping):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from nodes(value)


@pytest.mark.requirement("tools:worker:schemas")
def test_the_workers_schemas_are_flat() -> None:
    assert [tool.name for tool in WORKER_TOOLS] == [
        "report_completion",
        "report_progress",
        "notify_parent",
        "request_orchestrator",
    ]
    for tool in WORKER_TOOLS:
        assert tool.audience is Audience.WORKER
        for node in nodes(tool.schema):
            assert not FORBIDDEN & node.keys(), tool.name
            if "type" in node:
                assert isinstance(node["type"], str | Mapping), tool.name
        assert tool.schema["type"] == "object"
        assert tool.schema["additionalProperties"] is False


# -- report_completion --------------------------------------------------------------------------


@pytest.mark.requirement("tools:report-completion")
def test_the_last_report_counts_and_is_stored_whole(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        await told(home, run_id, "report_completion", summary="first")
        answered = await told(
            home,
            run_id,
            "report_completion",
            summary="half of it",
            status="partial",
            confidence="low",
            artifacts=[{"path": "out.json", "description": "a table"}, {"path": "b"}],
            blockers=["no network"],
            warnings=["look twice"],
        )
        assert answered["status"] == "stored"

        (attempt,) = (await home.ok("GET", f"/v1/runs/{run_id}"))["attempts"]
        assert attempt["report"] == {
            "summary": "half of it",
            "status": "partial",
            "confidence": "low",
            "artifacts": [
                {"path": "out.json", "description": "a table"},
                {"path": "b", "description": None},
            ],
            "blockers": ["no network"],
            "warnings": ["look twice"],
        }

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:report-completion:last-act")
def test_a_report_is_the_last_act_until_another_tool_is_used(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        def is_last() -> bool:
            return home.services.engine.ledger.published[run_id].attempt.last.is_report  # type: ignore[index]  # a RunId

        await told(home, run_id, "report_completion", summary="done")
        assert is_last()
        await told(home, run_id, "notify_parent", message="one more thing")
        assert not is_last()
        await told(home, run_id, "report_completion", summary="done now")
        assert is_last()
        await told(home, run_id, "report_progress", phase="still here")
        assert not is_last()

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:worker:refusals")
@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("report_completion", {}, "summary is required"),
        ("report_completion", {"summary": " "}, "summary must not be empty"),
        ("report_completion", {"summary": "s", "status": "ok"},
         'status must be "complete" or "partial" or "failed", not "ok"'),
        ("report_completion", {"summary": "s", "artifact": []},
         'unknown parameter "artifact": did you mean "artifacts"?'),
        ("report_completion", {"summary": "s", "artifacts": [{"pth": "x"}]},
         'unknown parameter "artifacts[0].pth": did you mean "path"?'),
        ("report_progress", {"phase": "p", "percentComplete": 101},
         "percentComplete must be a number <= 100.0"),
        ("report_progress", {"phase": "p", "metrics": {"rows": True}},
         "metrics.rows must be text or a number"),
        ("report_progress", {"phase": "p", "metrics": {"rows": [1]}},
         "metrics.rows must be text or a number"),
        ("report_progress", {"phase": "p", "level": "L9"},
         'level must be "L0_operational" or "L1_plan_update" or "L2_detail", not "L9"'),
        ("notify_parent", {"message": "m", "priority": "urgent"},
         'priority must be "info" or "question" or "blocker", not "urgent"'),
        ("notify_parent", {"mesage": "m"}, 'unknown parameter "mesage": did you mean "message"?'),
        ("request_orchestrator", {}, "question is required"),
        ("request_orchestrator", {"question": "q", "timeoutSeconds": 0},
         "timeoutSeconds must be a number >= 1.0"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_named_and_nothing_is_stored(
    tmp_path: Path, tool: str, arguments: Document, error: str
) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        before = await home.ok("GET", f"/v1/runs/{run_id}")
        assert await refused(home, run_id, tool, **arguments) == error
        after = await home.ok("GET", f"/v1/runs/{run_id}")
        for name in ("report", "latestProgress", "requests", "attempts"):
            assert after[name] == before[name]

    play(tmp_path, scenario)


# -- report_progress ----------------------------------------------------------------------------


@pytest.mark.requirement("tools:report-progress")
def test_progress_is_shown_and_an_early_one_is_told_when_it_may_come_again(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        first = await told(
            home,
            run_id,
            "report_progress",
            phase="reading",
            percentComplete=40,
            level="L1_plan_update",
            metrics={"rows": 12, "file": "a.csv"},
        )
        assert first == {"runId": run_id, "status": "stored"}
        early = await told(home, run_id, "report_progress", phase="writing")
        assert early["status"] == "rate_limited"
        assert 1 <= early["retryAfterSeconds"] <= 30

        row = await home.ok("GET", f"/v1/runs/{run_id}/status")
        assert row["latestProgress"]["phase"] == "reading"
        assert row["latestProgress"]["percentComplete"] == 40
        (kept,) = (await home.ok("GET", f"/v1/runs/{run_id}/progress"))["updates"]
        assert kept["metrics"] == {"rows": 12, "file": "a.csv"}
        assert kept["level"] == "L1_plan_update"

    play(tmp_path, scenario)


# -- notify_parent ------------------------------------------------------------------------------


@pytest.mark.requirement("tools:notify-parent")
def test_a_blocker_marks_the_run_until_somebody_writes_to_the_worker(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        await told(home, run_id, "notify_parent", message="nothing special")
        row = await home.ok("GET", f"/v1/runs/{run_id}/status")
        assert (row["runStatus"], row["pendingRequestCount"]) == ("running", 0)

        await told(home, run_id, "notify_parent", message="no credentials", priority="blocker")
        row = await home.ok("GET", f"/v1/runs/{run_id}/status")
        assert (row["runStatus"], row["pendingRequestCount"]) == ("blocked", 1)
        assert "no credentials" in row["blockedReason"]
        texts = [each["text"] for each in (await home.ok("GET", "/v1/inbox"))["messages"]]
        assert any("no credentials" in text for text in texts)
        assert any("nothing special" in text for text in texts)

        await home.ok("POST", f"/v1/runs/{run_id}/steer", {"message": "use the other account"})
        row = await home.ok("GET", f"/v1/runs/{run_id}/status")
        assert (row["runStatus"], row["pendingRequestCount"]) == ("running", 0)

    play(tmp_path, scenario)


# -- request_orchestrator -----------------------------------------------------------------------


@pytest.mark.requirement("tools:request:answered")
def test_a_question_holds_the_line_until_its_answer(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        asking = asyncio.create_task(
            told(home, run_id, "request_orchestrator", question="which branch?", options=["a", "b"])
        )
        await until(lambda: bool(_pending(home, run_id)))
        (request_id,) = _pending(home, run_id)
        body = {"response": "b", "decision": "approve"}
        await home.ok("POST", f"/v1/requests/{request_id}/respond", body)

        answered = await asking
        assert milliseconds_of(answered.pop("answeredAt"))
        assert answered == {
            "status": "answered",
            "requestId": request_id,
            "answer": "b",
            "decision": "approve",
            "answeredBy": "agent:main:main",
        }

    play(tmp_path, scenario)


def _pending(home: Home, run_id: str) -> list[RequestId]:
    run = home.services.engine.ledger.published[run_id]  # type: ignore[index]  # a RunId
    return [request.id for request in run.pending_requests]


@pytest.mark.requirement("tools:request:pending")
def test_an_unanswered_question_is_pending_and_goes_on_by_its_id_or_by_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worker.ANSWER_WAIT_S == 50  # clients give up after 60
    monkeypatch.setattr(worker, "ANSWER_WAIT_S", 0.2)
    monkeypatch.setattr(worker, "TELL_S", 0.05)

    async def scenario(home: Home, run_id: str) -> None:
        first = await told(home, run_id, "request_orchestrator", question="which?")
        assert first["status"] == "pending"
        assert first["requestId"] == f"{run_id}:q1"
        again = await told(home, run_id, "request_orchestrator", question="which?")
        assert again["requestId"] == first["requestId"]
        further = await told(home, run_id, "request_orchestrator", requestId=first["requestId"])
        assert further == again

        body = {"response": "this one"}
        await home.ok("POST", f"/v1/requests/{first['requestId']}/respond", body)
        found = await told(home, run_id, "request_orchestrator", requestId=first["requestId"])
        assert (found["status"], found["answer"]) == ("answered", "this one")
        other = await refused(home, run_id, "request_orchestrator", requestId="r-other00000:q1")
        assert other == f"run {run_id} has asked no question 'r-other00000:q1'"

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:request:deadline")
@pytest.mark.parametrize(
    ("given", "status", "answer"),
    [({"defaultAnswer": "main"}, "default", "main"), ({}, "timeout", None)],
)
def test_at_the_deadline_the_default_holds_or_there_is_none_and_who_decided_is_said(
    tmp_path: Path, given: Document, status: str, answer: str | None
) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        found = await told(
            home, run_id, "request_orchestrator", question="q", timeoutSeconds=1, **given
        )
        assert (found["status"], found["answer"]) == (status, answer)
        assert found["decision"] == status
        assert found["answeredBy"]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:request:limits")
def test_a_fourth_open_and_a_sixth_question_in_a_minute_are_answered_with_the_limits_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ANSWER_WAIT_S", 0.0)

    async def scenario(home: Home, run_id: str) -> None:
        async def ask(number: int) -> Document:
            return await told(home, run_id, "request_orchestrator", question=f"{number}?")

        asked = [await ask(number) for number in range(3)]
        fourth = await ask(3)
        assert fourth["status"] == "rate_limited"
        assert fourth["limit"] == "at most 3 unanswered questions per run"
        for each in asked:
            await home.ok("POST", f"/v1/requests/{each['requestId']}/respond", {"response": "ok"})
        for number in (4, 5):
            assert (await ask(number))["status"] == "pending"
        sixth = await ask(6)
        assert sixth["status"] == "rate_limited"
        assert "5" in sixth["limit"]
        assert "minute" in sixth["limit"]
        assert 1 <= sixth["retryAfterSeconds"] <= 60

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:request:run-ends")
def test_a_question_of_a_run_that_is_ended_is_withdrawn(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        arguments = {"question": "may I?"}
        asking = asyncio.create_task(
            use(home, "request_orchestrator", arguments, home.worker(run_id))
        )
        await until(lambda: bool(_pending(home, run_id)))
        await home.ok("POST", f"/v1/runs/{run_id}/cancel")

        assert (await asking)["structured"]["status"] == "cancelled"

    play(tmp_path, scenario)


# -- who may ------------------------------------------------------------------------------------


@pytest.mark.requirement("tools:worker:who")
def test_only_a_worker_with_a_live_token_is_heard(tmp_path: Path) -> None:
    async def scenario(home: Home, run_id: str) -> None:
        top = await use(home, "report_completion", {"summary": "I am done"})
        assert top["isError"]
        assert top["structured"]["status"] == "forbidden"

        mine = home.worker(run_id)
        await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        await home.until_phase(run_id, "completed", "announcing", "cleanup_pending")
        status, document = await home.call(
            "POST", "/v1/tools/notify_parent", {"message": "x"}, mine
        )
        assert (status, document["code"]) == (401, "unauthorized")

    play(tmp_path, scenario)
