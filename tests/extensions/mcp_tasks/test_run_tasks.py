"""Runs as MCP tasks on the wire of the current era: the run is the task, and nothing else is."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.home_daemon import Home, serving
from tests.api.tools.tool_callers import CONFIG
from tests.extensions.mcp.mcp_clients import (
    DESK,
    Wire,
    spawned,
    text_of,
    until_consumed,
)

from subagents.domain.run.run import Decision, Phase
from subagents.domain.run.values import RunId, SessionKey
from subagents.errors import NotFound
from subagents.extensions.mcp_tasks.run_tasks import (
    RUNS_MAX,
    _Named,
    parse,
    spell,
)
from subagents.ports import RunFilter


@pytest.mark.requirement("mcp:tasks:result-once")
async def test_a_finished_task_has_the_result_of_a_wait_and_consumes_it_once(daemon: Home) -> None:
    wire = Wire(daemon)
    task_id = await spawned(wire)
    task = await wire.settled(task_id)
    await until_consumed(daemon, task_id)
    again = await wire.ok("tasks/get", taskId=task_id)
    other = Wire(daemon, tasks=False)
    waited = await other.call("sessions_wait", runIds=[task_id], timeoutSeconds=0)
    nothing = await other.call("sessions_wait", timeoutSeconds=0)

    assert task["status"] == "completed"
    assert not task["result"]["isError"]
    assert task["result"]["structuredContent"] == waited["structuredContent"]
    assert again["result"] == task["result"]
    assert nothing["structuredContent"]["completed"] == []
    assert "inbox:" not in text_of(nothing)


@pytest.mark.requirement("delivery:under-way")
async def test_what_a_task_will_bring_other_channels_are_told_to_leave(daemon: Home) -> None:
    """From the answer to the spawn on: the client's first look may come late."""
    await spawned(Wire(daemon))
    plain = await Wire(daemon, tasks=False).call("sessions_spawn", task="x", agentId="quick")
    receipt = str(plain["structuredContent"]["runId"])
    headers = {"X-Subagents-Session": DESK}
    async with asyncio.timeout(20):
        rows: list[dict[str, Any]] = []
        while len(rows) < 2:
            rows = (await daemon.ok("GET", "/v1/inbox", None, headers))["messages"]

    awaited = {str(row["runId"]) for row in rows if row["awaited"]}
    assert receipt not in awaited
    assert len(awaited) == 1


@pytest.mark.requirement("mcp:tasks:result-once")
async def test_a_failed_worker_is_a_completed_task_that_says_so(daemon: Home) -> None:
    wire = Wire(daemon)
    task = await wire.settled(await spawned(wire, "bad"))
    item = task["result"]["structuredContent"]["completed"][0]
    assert (task["status"], item["outcome"]["status"]) == ("completed", "error")
    assert item["result"] == "half"


@pytest.mark.requirement("mcp:tasks:refused")
async def test_a_refused_spawn_is_an_answer_and_no_task(daemon: Home) -> None:
    answer = await Wire(daemon).call("sessions_spawn", task="x", agentId="hidden")
    assert answer["isError"]
    assert answer["structuredContent"]["status"] == "forbidden"
    trees, _ = await daemon.services.engine.queries.roots(RunFilter(requester=SessionKey(DESK)))
    assert trees == ()


@pytest.mark.requirement("mcp:tasks:scope")
async def test_a_task_is_only_there_for_its_own_tree(daemon: Home) -> None:
    task_id = await spawned(Wire(daemon), "hang")
    stranger = Wire(daemon, session="agent:main:other")
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        error = await stranger.error(method, taskId=task_id, inputResponses={})
        assert error["code"] == -32602
    unknown = await Wire(daemon).error("tasks/get", taskId="r-nothing")
    nonsense = await Wire(daemon).error("tasks/get", taskId="last")
    assert unknown["code"] == nonsense["code"] == -32602
    assert (await Wire(daemon).ok("tasks/get", taskId=task_id))["status"] == "working"
    await daemon.services.refusals.flush()
    noted = await asyncio.to_thread(daemon.services.refusals.file.read_text)
    assert f"tasks/get {task_id}" in noted


@pytest.mark.requirement("mcp:tasks:cancel")
async def test_cancelling_a_spawned_task_cancels_the_run(daemon: Home) -> None:
    wire = Wire(daemon)
    task_id = await spawned(wire, "hang")
    acknowledged = await wire.ok("tasks/cancel", taskId=task_id)
    task = await wire.settled(task_id)
    again = await wire.ok("tasks/cancel", taskId=task_id)
    run = await daemon.services.engine.queries.run(RunId(task_id))

    assert set(acknowledged) - {"_meta"} == set(again) - {"_meta"} == {"resultType"}
    assert task["status"] == "cancelled"
    assert "result" not in task
    assert run.outcome is not None
    assert run.outcome.status == "cancelled"
    cancel = run.control.cancel
    assert cancel is not None
    assert (cancel.by, cancel.reason) == (
        "agent:main:desk",
        "tasks/cancel",
    )
    # Who cancelled it and saw it end is not told of it a second time.
    quiet = await Wire(daemon, tasks=False).call("sessions_wait", timeoutSeconds=0)
    assert quiet["structuredContent"]["completed"] == []


@pytest.mark.requirement("mcp:tasks:wait")
async def test_a_wait_is_a_task_that_ends_with_its_runs(daemon: Home) -> None:
    wire, plain = Wire(daemon), Wire(daemon, tasks=False)
    slow = (await plain.call("sessions_spawn", task="x", agentId="slow"))["structuredContent"]
    hang = (await plain.call("sessions_spawn", task="x", agentId="hang"))["structuredContent"]
    first = await wire.call("sessions_wait")
    both = await wire.call("sessions_wait", until="all")
    done = await wire.settled(first["taskId"])
    still = await wire.ok("tasks/get", taskId=both["taskId"])
    assert first["statusMessage"].startswith("waiting for run ")
    ended = done["result"]["structuredContent"]["completed"]
    assert [each["runId"] for each in ended] == [slow["runId"]]
    assert still["status"] == "working"

    # Cancelling the wait ends nothing but the wait.
    await wire.ok("tasks/cancel", taskId=both["taskId"])
    assert (await wire.ok("tasks/get", taskId=both["taskId"]))["status"] == "cancelled"
    assert (await daemon.until_phase(hang["runId"], "running"))["phase"] == "running"


@pytest.mark.requirement("mcp:tasks:wait")
async def test_a_wait_with_nothing_left_to_wait_for_is_answered_at_once(daemon: Home) -> None:
    wire, plain = Wire(daemon), Wire(daemon, tasks=False)
    nothing = await wire.call("sessions_wait")
    receipt = await plain.call("sessions_spawn", task="x", agentId="quick")
    run_id = receipt["structuredContent"]["runId"]
    await daemon.until_phase(run_id, "completed", "announcing", "announce_deferred")
    ended = await wire.call("sessions_wait", runIds=[run_id])
    unknown = await wire.call("sessions_wait", runIds=["nobody"])
    wrong = await wire.call("sessions_wait", timeoutSeconds=-1)
    assert "Nothing to wait for" in text_of(nothing)
    assert ended["structuredContent"]["completed"][0]["runId"] == run_id
    assert unknown["structuredContent"]["errors"][0]["runId"] == "nobody"
    assert wrong["isError"]


@pytest.mark.requirement("mcp:tasks:wait")
async def test_a_wait_with_a_time_ends_when_it_is_over_and_names_what_is_pending(
    daemon: Home,
) -> None:
    wire = Wire(daemon)
    run_id = await spawned(wire, "hang")
    begun = await wire.call("sessions_wait", runIds=[run_id], timeoutSeconds=0.3)
    task = await wire.settled(begun["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["completed"] == []
    assert task["result"]["structuredContent"]["pending"][0]["runId"] == run_id


@pytest.mark.requirement("mcp:tasks:created")
async def test_a_batch_is_one_task_with_all_its_results(daemon: Home) -> None:
    wire = Wire(daemon)
    batch = [{"task": "a", "label": "a"}, {"task": "b", "label": "b", "dependsOn": ["a"]}]
    begun = await wire.call("sessions_spawn", batch=batch, agentId="quick")
    task = await wire.settled(begun["taskId"])
    assert begun["taskId"].startswith("batch.")
    ended = task["result"]["structuredContent"]["completed"]
    assert sorted(each["label"] for each in ended) == ["a", "b"]


@pytest.mark.requirement("mcp:tasks:durable")
def test_tasks_are_answered_by_the_next_daemon(tmp_path: Path) -> None:
    async def first() -> tuple[str, str]:
        async with serving(tmp_path, CONFIG) as home:
            wire = Wire(home)
            run = await spawned(wire, "shell", task="sleep 1; echo late")
            begun = await wire.call("sessions_wait", runIds=[run])
            return run, str(begun["taskId"])

    async def second(run: str, waiting: str) -> None:
        async with serving(tmp_path, CONFIG) as home:
            wire = Wire(home)
            both = [await wire.settled(each) for each in (waiting, run)]
            for task in both:
                item = task["result"]["structuredContent"]["completed"][0]
                assert (item["runId"], item["result"]) == (run, "late")

    run, waiting = asyncio.run(first())
    asyncio.run(second(run, waiting))


# -- questions ----------------------------------------------------------------------------------


async def asking(home: Home, wire: Wire, **more: Any) -> tuple[str, str]:
    """A task whose worker waits for an answer, and the id of its question."""
    task_id = await spawned(wire, "hang", label="asker")
    await home.until_phase(task_id, "running")
    question = await home.services.engine.questions.ask(RunId(task_id), "Which colour?", **more)
    return task_id, str(question.id)


@pytest.mark.requirement("mcp:tasks:questions")
async def test_a_workers_question_is_put_to_the_clients_user_and_the_answer_reaches_the_worker(
    daemon: Home,
) -> None:
    wire = Wire(daemon, asks_people=True)
    task_id, question = await asking(daemon, wire, options=("red", "blue"))
    task = await wire.ok("tasks/get", taskId=task_id)
    assert task["status"] == "input_required"
    asked = task["inputRequests"][question]
    assert asked["method"] == "elicitation/create"
    assert "Which colour?" in asked["params"]["message"]
    assert asked["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["red", "blue"]

    wrong = {question: {"action": "accept", "content": {"colour": "red"}}}
    error = await wire.error("tasks/update", taskId=task_id, inputResponses=wrong)
    assert error["code"] == -32602
    given: Mapping[str, Any] = {
        "somebody-else": {"action": "accept", "content": {"answer": "no"}},
        question: {"action": "accept", "content": {"answer": "red"}},
    }
    await wire.ok("tasks/update", taskId=task_id, inputResponses=given)
    run = await daemon.services.engine.queries.run(RunId(task_id))
    assert run.questions.requests[0].answer is not None
    assert (run.questions.requests[0].answer.text, run.questions.requests[0].answer.by) == (
        "red",
        "agent:main:desk",
    )
    assert (await wire.ok("tasks/get", taskId=task_id))["status"] == "working"


@pytest.mark.requirement("mcp:tasks:questions")
async def test_a_declined_question_is_not_put_again_and_stays_open_for_the_agent(
    daemon: Home,
) -> None:
    wire = Wire(daemon, asks_people=True)
    task_id, question = await asking(daemon, wire)
    declined = {question: {"action": "decline"}}
    await wire.ok("tasks/update", taskId=task_id, inputResponses=declined)
    task = await wire.ok("tasks/get", taskId=task_id)
    assert task["status"] == "working"
    assert f"asks ({question}): Which colour?" in task["statusMessage"]
    run = await daemon.services.engine.queries.run(RunId(task_id))
    assert run.questions.requests[0].answer is None


@pytest.mark.requirement("mcp:tasks:questions")
async def test_a_client_without_forms_reads_of_the_question_and_is_not_asked(daemon: Home) -> None:
    wire = Wire(daemon)
    task_id, question = await asking(daemon, wire)
    task = await wire.ok("tasks/get", taskId=task_id)
    assert (task["status"], "inputRequests" in task) == ("working", False)
    assert question in task["statusMessage"]


@pytest.mark.requirement("access:ask-a-person")
@pytest.mark.parametrize(
    ("content", "decision"),
    [(" Approve ", Decision.APPROVE), ("deny", Decision.DENY), ("yes please", Decision.DENY)],
)
async def test_a_person_allows_more_access_in_the_clients_form_and_only_by_approve(
    daemon: Home, content: str, decision: Decision
) -> None:
    wire = Wire(daemon, asks_people=True, headers={"X-Subagents-Ceiling": "read; its sandbox"})
    task_id = await spawned(wire, "hang", access="write")
    task = await wire.ok("tasks/get", taskId=task_id)
    question = f"{task_id}:q1"
    form = task["inputRequests"][question]["params"]
    assert "May agent hang change files" in form["message"]
    assert form["requestedSchema"]["properties"]["answer"]["enum"] == ["approve", "deny"]
    assert (await daemon.services.engine.queries.run(RunId(task_id))).phase is Phase.WAITING

    given = {question: {"action": "accept", "content": {"answer": content}}}
    await wire.ok("tasks/update", taskId=task_id, inputResponses=given)
    run = await daemon.services.engine.queries.run(RunId(task_id))
    assert run.approval is not None
    assert run.approval.answer is not None
    assert run.approval.answer.decision is decision
    assert (run.phase is Phase.WAITING, run.is_settled) == (False, decision is Decision.DENY)


@pytest.mark.requirement("access:ask-a-person")
async def test_the_agent_itself_cannot_allow_more_access(daemon: Home) -> None:
    wire = Wire(daemon, tasks=False, headers={"X-Subagents-Ceiling": "read; its sandbox"})
    told = await wire.call("sessions_spawn", task="x", agentId="hang", access="write")
    run_id = told["structuredContent"]["runId"]
    said = {"requestId": f"{run_id}:q1", "response": "approve"}
    answered = await wire.call("respond_orchestrator_request", **said)

    assert answered["isError"]
    run = await daemon.services.engine.queries.run(RunId(run_id))
    assert run.approval is not None
    assert (run.phase, run.approval.answer) == (Phase.WAITING, None)


# -- ids ----------------------------------------------------------------------------------------

RUN_IDS = st.lists(
    st.from_regex(r"r-[0-9a-hjkmnp-tv-z]{10}", fullmatch=True).map(RunId),
    min_size=1,
    max_size=RUNS_MAX,
).map(tuple)


@pytest.mark.requirement("mcp:tasks:durable")
@given(
    RUN_IDS, st.sampled_from(["any", "all"]), st.integers(1, 10**13 - 1), st.integers(0, 10**13 - 1)
)
def test_the_id_of_a_task_says_everything_about_it(
    run_ids: tuple[RunId, ...], until: str, created: int, deadline: int
) -> None:
    for named in (
        _Named(run_ids=run_ids),
        _Named(run_ids=run_ids, until=until, created_at_ms=created, deadline_ms=deadline),
    ):
        task_id = spell(named)
        assert parse(task_id) == named
        assert len(task_id) < 2000


@pytest.mark.requirement("mcp:tasks:scope")
@pytest.mark.parametrize("times", ["253402300800000.0", "999999999999999.0", "1.253402300800000"])
async def test_the_id_of_a_wait_in_a_year_that_no_calendar_shows_is_no_task(
    daemon: Home, times: str
) -> None:
    run_id = await spawned(Wire(daemon), "hang")
    task_id = f"wait.any.{times}.{run_id.removeprefix('r-')}"
    error = await Wire(daemon).error("tasks/get", taskId=task_id)
    assert error["code"] == -32602


@pytest.mark.requirement("mcp:tasks:scope")
@given(st.text(max_size=80))
def test_what_is_no_id_of_a_task_is_none(text: str) -> None:
    try:
        found = parse(text)
    except NotFound:
        return
    assert spell(found) == text
