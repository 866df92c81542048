"""What `sessions_history` tells of a child session."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.api import home_daemon
from tests.api import run_journals as runs
from tests.api.home_daemon import Document, Home
from tests.api.tools.test_worker_tools import told, use

from subagents.api.answers import explain
from subagents.api.tools import history_tool as history
from subagents.domain.run import events as e
from subagents.domain.run.run import Answer, Decision, Progress, Report, Request
from subagents.domain.run.signals import ProgressSeen, ReportSeen
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RequestId

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz012345"
Scenario = Callable[[Home], Awaitable[None]]
CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 100
[agents.main]
subagents.allow_agents = ["*"]
[agents.hang]
runtime = "scripted"
script = [{ hang = true }]
[agents.quick]
runtime = "scripted"
script = [{ result = "done" }]
[agents.twice]
runtime = "scripted"
script = [{ result = "no" }, { exit = 1 }]
"""


def play(tmp_path: Path, scenario: Scenario) -> None:
    home_daemon.play(tmp_path, scenario, CONFIG)


async def look(home: Home, key: str, **arguments: object) -> Document:
    answered = await use(home, "sessions_history", {"sessionKey": key, **arguments})
    assert not answered["isError"], answered
    found: Document = answered["structured"]
    return found


def said(found: Document) -> list[tuple[str, str, str]]:
    return [(each["role"], each["kind"], each["text"]) for each in found["messages"]]


@pytest.mark.requirement("tools:history:order")
def test_everything_messages_in_a_session_comes_in_its_order(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        receipt = await home.spawn("hang", task="count the files", label="counter")
        run_id, key = receipt["runId"], receipt["childSessionKey"]
        await home.until_phase(run_id, "running")
        await home.ok("POST", f"/v1/runs/{run_id}/steer", {"message": "only *.py"})
        asking = asyncio.create_task(
            told(home, run_id, "request_orchestrator", question="hidden too?", options=["y", "n"])
        )
        await _until_blocked(home, run_id)
        await home.ok("POST", f"/v1/requests/{run_id}:q1/respond", {"response": "n"})
        await asking
        await told(home, run_id, "report_progress", phase="counting", percentComplete=50)
        await told(home, run_id, "notify_parent", message="there are many", priority="blocker")
        await told(home, run_id, "report_completion", summary="12 files", confidence="high")
        await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        await home.wait(run_id)

        found = await look(home, key)
        assert said(found) == [
            ("requester", "task", "count the files"),
            ("requester", "steer", "only *.py"),
            ("worker", "question", "hidden too?\nOptions: y / n"),
            ("requester", "answer", "n"),
            ("worker", "notice", "[blocker] there are many"),
            ("worker", "report", "[complete, confidence high] 12 files"),
            ("worker", "result", "(cancelled: cancelled_by_caller)"),
        ]
        times = [each["saidAt"] for each in found["messages"]]
        assert times == sorted(times)
        assert (found["runId"], found["sessionKey"], found["label"]) == (run_id, key, "counter")
        assert (found["total"], found["nextOffset"]) == (7, None)

        whole = await look(home, "counter", includeTools=True)
        assert ("worker", "progress", "50 % counting") in said(whole)
        assert whole["total"] == 8

    play(tmp_path, scenario)


async def _until_blocked(home: Home, run_id: str) -> None:
    async with asyncio.timeout(40):
        while True:
            row = await home.ok("GET", f"/v1/runs/{run_id}/status")
            if row["runStatus"] == "blocked":
                return
            await asyncio.sleep(0.01)


@pytest.mark.requirement("tools:history:sessions")
def test_each_attempt_has_its_own_session_and_a_run_has_all_of_them(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        receipt = await home.spawn("twice", label="t", retryCount=1, retryDelay=1)
        await home.wait(receipt["runId"])
        whole = await look(home, receipt["runId"])
        detail = await home.ok("GET", f"/v1/runs/{receipt['runId']}")
        keys = [attempt["sessionKey"] for attempt in detail["attempts"]]

        assert [(each["kind"], each["attempt"]) for each in whole["messages"]] == [
            ("task", 1),
            ("result", 1),
            ("task", 2),
            ("result", 2),
        ]
        second = await look(home, keys[1])
        assert second["sessionKey"] == keys[1]
        assert [each["attempt"] for each in second["messages"]] == [2, 2]
        assert second["messages"][0]["text"].startswith("[RETRY — Previous attempt failed]")
        first = await look(home, keys[0])
        assert [each["attempt"] for each in first["messages"]] == [1, 1]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:history:redacted", "tools:history:bounds")
def test_secrets_are_removed_before_a_message_is_cut_at_4000_characters(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        # The key straddles the cut: cut first, its beginning would be shown.
        task = "x" * 3990 + " " + KEY + " " + "y" * 100
        receipt = await home.spawn("quick", task=task, label="q")
        await home.wait(receipt["runId"])

        (message, _) = (await look(home, receipt["childSessionKey"]))["messages"]
        assert "sk-proj" not in message["text"]
        whole = 3990 + len(" [redacted] ") + 100
        assert message["text"] == (
            "x" * 3990 + " [redacted"[:10] + f"… ({whole - 4000} more characters)"
        )

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:history:bounds", "tools:history:pages")
def test_an_answer_stays_below_80_kilobytes_and_its_pages_make_up_the_whole(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        receipt = await home.spawn("hang", label="h")
        run_id = receipt["runId"]
        await home.until_phase(run_id, "running")
        for number in range(18):
            text = f"{number:02}" + "ä" * 3990  # two bytes each
            await told(home, run_id, "notify_parent", message=text)

        texts: list[str] = []
        offset: int | None = 0
        sizes = []
        while offset is not None:
            answered = await use(
                home, "sessions_history", {"sessionKey": run_id, "offset": offset, "limit": 200}
            )
            page = answered["structured"]
            sizes.append(len(str(page["messages"]).encode()))
            texts += [each["text"] for each in page["messages"]]
            assert page["total"] == 19
            offset = page["nextOffset"]
        assert len(sizes) > 1
        assert max(sizes) <= 81_000
        assert [text[7:9] for text in texts[1:]] == [f"{number:02}" for number in range(18)]

        two = await look(home, run_id, limit=2)
        assert (len(two["messages"]), two["nextOffset"]) == (2, 2)
        beyond = await look(home, run_id, offset=500)
        assert (beyond["messages"], beyond["nextOffset"]) == ([], None)

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:history:who")
def test_a_session_of_somebody_elses_tree_is_refused(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        receipt = await home.spawn("quick", label="q")
        await home.wait(receipt["runId"])
        stranger = {"X-Subagents-Session": "agent:main:other"}
        for key in (receipt["runId"], receipt["childSessionKey"]):
            answered = await use(home, "sessions_history", {"sessionKey": key}, stranger)
            assert answered["isError"], answered
            assert answered["structured"]["status"] == "forbidden"
        answered = await use(home, "sessions_history", {"sessionKey": "no-such-run"})
        assert answered["structured"]["code"] == "not_found"

    play(tmp_path, scenario)


# -- from a journal -----------------------------------------------------------------------------


def told_by(*events: e.Event) -> list[tuple[str, str, str]]:
    found = [
        each
        for step in explain.fold(runs.journal(*events))
        for each in history.messages_in(step)
        if not step.stale
    ]
    return [(each.role, each.kind, each.text) for each in found]


@pytest.mark.requirement("tools:history:order")
def test_who_decided_a_question_is_told() -> None:
    def question(number: int) -> e.RequestAsked:
        request = Request(
            id=RequestId(f"{runs.ID}:q{number}"),
            attempt=1,
            question=f"q{number}",
            context="ctx" if number == 1 else None,
            asked_at_ms=1000,
            deadline_ms=9000,
            default_answer="dflt",
        )
        return e.RequestAsked(at_ms=1000, request=request)

    def answered(number: int, decision: Decision, text: str | None) -> e.RequestAnswered:
        answer = Answer(decision=decision, text=text, by="x", at_ms=1500)
        return e.RequestAnswered(at_ms=1500, request_id=f"{runs.ID}:q{number}", answer=answer)

    found = told_by(
        runs.spawned(RunSpec(task="t")),
        runs.slot(),
        runs.started(),
        question(1),
        answered(1, Decision.DENY, "no"),
        question(2),
        e.TimerFired(at_ms=9000),
        answered(2, Decision.ANSWER, "too late"),
    )

    assert found == [
        ("requester", "task", "t"),
        ("worker", "question", "q1\nContext: ctx"),
        ("requester", "answer", "[deny] no"),
        ("worker", "question", "q2"),
        ("system", "answer", "[default] dflt"),
    ]


@pytest.mark.requirement("tools:history:order")
def test_reports_progress_and_the_result_are_told_as_they_were() -> None:
    report = Report(summary="s", blockers=("b",), warnings=("w",))
    found = told_by(
        runs.spawned(RunSpec(task="t")),
        runs.slot(),
        runs.started(),
        runs.signal(ProgressSeen(key="p", progress=Progress(phase="half", percent_complete=50))),
        runs.signal(ReportSeen(key="r", report=report)),
        runs.result("the end"),
        runs.exited(),
    )

    assert found == [
        ("requester", "task", "t"),
        ("worker", "progress", "50 % half"),
        ("worker", "report", "[complete] s\nblocker: b\nwarning: w"),
        ("worker", "result", "the end"),
    ]
