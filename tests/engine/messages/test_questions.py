"""Workers ask, requesters answer; both may die in between."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.events import RequestAnswered, SignalReceived
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import (
    Answer,
    Decision,
    MessageKind,
    Phase,
    Report,
    ReportStatus,
)
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import RequestId, RunId, SessionKey
from subagents.errors import (
    Conflict,
    NotFound,
    RateLimited,
    UsageError,
)
from subagents.ports import RunFilter


@pytest.mark.requirement("requests:answered", "field:answers-took-hours")
async def test_an_answer_reaches_the_waiting_worker_at_once(world: World) -> None:
    run_id = await world.working()
    request = await world.clock.result(
        world.engine.questions.ask(run_id, "which?", options=("a", "b"), context="two files")
    )
    waiting = asyncio.ensure_future(world.engine.questions.answer_of(request.id, wait_s=50))
    await world.clock.advance(10)
    assert not waiting.done()
    asked = world.store.inbox(ME, unconsumed=True)
    assert [row.message.kind for row in asked] == [MessageKind.QUESTION]
    then = world.clock.now_ms()

    assert await world.clock.result(
        world.engine.questions.answer(request.id, "b", decision=Decision.ANSWER, by="me")
    )
    found = await world.clock.result(waiting)

    assert found.answer is not None
    assert (found.answer.text, found.answer.by) == ("b", "me")
    assert world.clock.now_ms() == then
    assert world.store.inbox(ME, unconsumed=True) == []


@pytest.mark.requirement("requests:answered")
async def test_a_question_that_a_list_showed_is_answered_before_its_commit_returned(
    world: World,
) -> None:
    run_id = await world.working()
    world.delay_commits()
    asking = asyncio.ensure_future(world.engine.questions.ask(run_id, "which?"))
    await world.clock.advance(0)
    (row,) = await world.engine.queries.runs(RunFilter())
    (shown,) = row.pending_requests

    answering = asyncio.ensure_future(
        world.engine.questions.answer(shown.id, "b", decision=Decision.ANSWER, by="me")
    )
    await world.clock.advance(0)
    world.let_commits_go()

    assert await world.clock.result(answering)
    assert (await world.clock.result(asking)).id == shown.id


@pytest.mark.requirement("requests:first-answer-counts", "field:answer-dropped-as-stale")
async def test_of_many_answers_the_first_counts_also_after_a_crash(world: World) -> None:
    run_id = await world.working()
    request = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    answers = [
        world.engine.questions.answer(request.id, text, decision=Decision.ANSWER, by=text)
        for text in ("one", "two", "three")
    ]
    assert sorted(await world.clock.result(asyncio.gather(*answers))) == [False, False, True]
    stored = (await world.engine.questions.answer_of(request.id, wait_s=0)).answer
    await world.restart()

    found = (await world.engine.questions.answer_of(request.id, wait_s=0)).answer
    assert found == stored
    assert not await world.engine.questions.answer(
        request.id, "late", decision=Decision.ANSWER, by="late"
    )


@pytest.mark.requirement("requests:durable", "recovery:goes-on")
async def test_a_question_survives_a_crash_with_its_deadline(world: World) -> None:
    run_id = await world.working()
    request = await world.clock.result(
        world.engine.questions.ask(run_id, "which?", timeout_s=100, default_answer="blue")
    )
    await world.clock.advance(40)
    await world.restart()
    assert len(world.store.inbox(ME, unconsumed=True)) == 1
    found = await world.clock.result(world.engine.questions.answer_of(request.id, wait_s=500))

    assert found.answer is not None
    assert (found.answer.decision, found.answer.text) == (Decision.DEFAULT, "blue")
    assert found.answer.at_ms == request.asked_at_ms + 100_000


@pytest.mark.requirement("requests:default-at-deadline")
async def test_an_unanswered_question_without_a_default_times_out(world: World) -> None:
    run_id = await world.working()
    request = await world.clock.result(world.engine.questions.ask(run_id, "which?", timeout_s=5))
    found = await world.clock.result(world.engine.questions.answer_of(request.id, wait_s=50))

    assert found.answer is not None
    assert (found.answer.decision, found.answer.by) == (Decision.TIMEOUT, "deadline")


@pytest.mark.requirement("requests:limits", "requests:limits-typed")
async def test_the_limits_of_questions_are_kept_and_named(world: World) -> None:
    run_id = await world.working()
    for number in range(3):
        await world.clock.result(world.engine.questions.ask(run_id, f"which {number}?"))
    with pytest.raises(RateLimited) as fourth:
        await world.engine.questions.ask(run_id, "another?")
    assert fourth.value.limit == "at most 3 unanswered questions per run"
    assert fourth.value.retry_after_s is None
    for number in (1, 2, 3):
        name = RequestId(f"{run_id}:q{number}")
        await world.clock.result(
            world.engine.questions.answer(name, "x", decision=Decision.ANSWER, by="me")
        )
    await world.clock.advance(20)
    for number in range(2):
        await world.clock.result(world.engine.questions.ask(run_id, f"which then {number}?"))
    with pytest.raises(RateLimited) as sixth:
        await world.engine.questions.ask(run_id, "another?")
    assert sixth.value.limit == "at most 5 questions per minute and run"
    assert sixth.value.retry_after_s == 40
    await world.clock.advance(40)
    await world.clock.result(world.engine.questions.ask(run_id, "another?"))


@pytest.mark.requirement("requests:limits", "requests:limits-typed")
async def test_one_requester_has_at_most_twenty_open_questions(world: World) -> None:
    for _ in range(10):
        run_id = await world.working()
        for number in range(2):
            await world.clock.result(world.engine.questions.ask(run_id, f"which {number}?"))
    last = await world.working()

    with pytest.raises(RateLimited, match="at most 20 unanswered questions at one requester"):
        await world.engine.questions.ask(last, "another?")
    # Notices are no questions: nobody waits for their answer.
    await world.clock.result(world.engine.questions.notify(last, "stuck", priority="blocker"))
    open_questions = await world.engine.queries.attention(ME)
    assert [item.kind for item in open_questions] == ["question"] * 20 + ["blocker"]


@pytest.mark.requirement("requests:repeated")
async def test_the_same_question_asked_again_is_the_one_that_stands(world: World) -> None:
    run_id = await world.working()
    first = await world.clock.result(
        world.engine.questions.ask(run_id, "which?", options=("a", "b"), timeout_s=100)
    )
    await world.clock.advance(10)
    again = [world.engine.questions.ask(run_id, "which?", options=("a", "b")) for _ in range(9)]
    assert await world.clock.result(asyncio.gather(*again)) == [first] * 9
    other = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    assert other.id == f"{run_id}:q2"
    assert len(world.store.inbox(ME, unconsumed=True)) == 2

    await world.clock.result(
        world.engine.questions.answer(first.id, "a", decision=Decision.ANSWER, by="me")
    )
    anew = await world.clock.result(
        world.engine.questions.ask(run_id, "which?", options=("a", "b"))
    )
    assert anew.id == f"{run_id}:q3"


@pytest.mark.requirement("requests:repeated")
async def test_a_call_repeated_by_its_client_finds_its_question_also_after_the_answer(
    world: World,
) -> None:
    run_id = await world.working()
    asked = await world.clock.result(world.engine.questions.ask(run_id, "which?", call_id="c1"))
    await world.clock.result(
        world.engine.questions.answer(asked.id, "a", decision=Decision.ANSWER, by="me")
    )

    again = await world.clock.result(world.engine.questions.ask(run_id, "which?", call_id="c1"))
    assert again.id == asked.id
    assert again.answer is not None
    assert again.answer.text == "a"
    other = await world.clock.result(world.engine.questions.ask(run_id, "which?", call_id="c2"))
    assert other.id == f"{run_id}:q2"


@pytest.mark.requirement("requests:repeated")
async def test_questions_asked_at_once_are_durable_before_any_of_them_is_told(world: World) -> None:
    run_id = await world.working()
    world.hold_commits()
    asking = [asyncio.ensure_future(world.engine.questions.ask(run_id, "which?")) for _ in range(3)]
    await world.clock.advance(5)
    assert not any(each.done() for each in asking)
    world.let_commits_go()

    found = await world.clock.result(asyncio.gather(*asking))

    assert len({request.id for request in found}) == 1


@pytest.mark.requirement("requests:repeated")
async def test_a_new_attempt_asks_its_own_question(world: World) -> None:
    run_id = await world.working("hang", retry_count=1, run_timeout_seconds=5)
    first = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    await world.until(run_id, Phase.RETRY_WAIT)
    await world.until(run_id, Phase.RUNNING)

    second = await world.clock.result(world.engine.questions.ask(run_id, "which?"))

    assert (second.id, second.attempt) == (f"{run_id}:q2", 2)
    assert (await world.engine.questions.answer_of(first.id, wait_s=0)).answer is not None


@pytest.mark.requirement("requests:deadline")
@pytest.mark.parametrize("days", [1 / 96, 0.25])
async def test_a_question_without_a_time_stands_until_it_is_answered(
    world: World, days: float
) -> None:
    run_id = await world.working()
    asked = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    assert asked.deadline_ms is None

    await world.clock.advance(days * 86_400)
    assert (await world.engine.questions.answer_of(asked.id, wait_s=0)).answer is None
    assert await world.engine.questions.answer(asked.id, "a", decision=Decision.ANSWER, by="me")
    assert (await world.run(run_id)).phase is Phase.RUNNING


@pytest.mark.requirement("requests:deadline")
@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"default_answer": "a"}, 600),
        ({"default_answer": "a", "timeout_s": 90_000}, 90_000),
        ({"timeout_s": 30 * 86_400}, 30 * 86_400),
        ({"timeout_s": 0.0001}, 0.001),
    ],
)
def test_a_question_stands_as_long_as_asked_and_with_a_default_ten_minutes(
    tmp_path: Path, given: dict[str, Any], seconds: float
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.working()
        asked = await world.clock.result(world.engine.questions.ask(run_id, "which?", **given))
        assert asked.deadline_ms == asked.asked_at_ms + seconds * 1000

    in_world(tmp_path, scenario)


# -- a requester that ended ----------------------------------------------------------------------


def unread(world: World, session: SessionKey) -> list[str]:
    return [str(row.message.id) for row in world.store.inbox(session, unconsumed=True)]


async def left_alone(world: World) -> tuple[RunId, RunId]:
    """A run at work whose requester's own work is done: it waits for this one to end."""
    parent = await world.working("parent")
    child = await world.spawn_child(parent, "hang")
    await world.until(child, Phase.RUNNING)
    await world.until(parent, Phase.ENDING)
    return parent, child


@pytest.mark.requirement("requests:bubble", "delivery:bubbles-up")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_question_to_a_requester_that_ended_goes_to_the_ancestor_at_work(
    world: World,
) -> None:
    parent, child = await left_alone(world)
    dead = (await world.run(parent)).session.first_key

    request = await world.clock.result(world.engine.questions.ask(child, "which?"))
    await world.clock.result(world.engine.questions.notify(child, "stuck", priority="blocker"))

    assert world.store.inbox(dead, unconsumed=True) == []
    assert unread(world, ME) == [request.id, f"{child}:n1"]
    needs = await world.engine.queries.attention(ME)
    assert [item.kind for item in needs] == ["question", "blocker"]
    assert await world.engine.queries.attention(dead) == ()
    assert await world.clock.result(
        world.engine.questions.answer(request.id, "b", decision=Decision.ANSWER, by="me")
    )
    found = (await world.engine.questions.answer_of(request.id, wait_s=0)).answer
    assert found is not None
    assert (found.text, found.by) == ("b", "me")


@pytest.mark.requirement("requests:bubble", "requests:limits")
@pytest.mark.world(max_spawn_depth=2, max_concurrent=50)
async def test_the_limit_at_a_requester_counts_what_its_inbox_really_holds(world: World) -> None:
    _, child = await left_alone(world)
    for number in range(3):
        await world.clock.result(world.engine.questions.ask(child, f"bubbled {number}?"))
    for number in range(17):
        run_id = await world.working()
        await world.clock.result(world.engine.questions.ask(run_id, f"own {number}?"))
    last = await world.working()

    with pytest.raises(RateLimited, match="at most 20 unanswered questions at one requester"):
        await world.engine.questions.ask(last, "another?")


@pytest.mark.requirement("requests:bubble", "requests:durable")
@pytest.mark.world(max_spawn_depth=3)
async def test_an_open_question_moves_on_when_its_requester_ends_and_is_answered_once(
    world: World,
) -> None:
    parent = await world.working("parent")
    child = await world.spawn_child(parent, "parent")
    await world.until(child, Phase.RUNNING)
    grandchild = await world.spawn_child(child, "hang")
    await world.until(grandchild, Phase.RUNNING)
    first = await world.clock.result(world.engine.questions.ask(grandchild, "which?"))
    inbox = (await world.run(child)).session.first_key
    assert unread(world, inbox) == [first.id]

    await world.until(child, Phase.ENDING)
    await world.until(parent, Phase.ENDING)
    await world.restart()

    assert unread(world, ME) == [first.id]
    assert world.store.inbox(inbox, unconsumed=True) == []
    answers = [
        world.engine.questions.answer(first.id, text, decision=Decision.ANSWER, by=text)
        for text in ("one", "two")
    ]
    assert sorted(await world.clock.result(asyncio.gather(*answers))) == [False, True]
    assert world.store.inbox(ME, unconsumed=True) == []


@pytest.mark.requirement("requests:bounds")
async def test_wrong_questions_are_refused_by_name(world: World) -> None:
    run_id = await world.working()
    ended = await world.spawn("quick")
    await world.until(ended, Phase.COMPLETED)
    with pytest.raises(UsageError, match="question must not be empty"):
        await world.engine.questions.ask(run_id, " ")
    for seconds in (0, -1, 30 * 24 * 3600 + 1):
        with pytest.raises(UsageError, match="timeoutSeconds must be"):
            await world.engine.questions.ask(run_id, "x?", timeout_s=seconds)
    with pytest.raises(NotFound):
        await world.engine.questions.ask(ended, "x?")
    with pytest.raises(NotFound, match="request r-none:q1 does not exist"):
        await world.engine.questions.answer_of(RequestId("r-none:q1"), wait_s=0)


@pytest.mark.requirement("requests:closed-with-attempt")
async def test_the_end_of_the_attempt_closes_its_questions(world: World) -> None:
    run_id = await world.working("slow")
    request = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    await world.until(run_id)
    found = await world.engine.questions.answer_of(request.id, wait_s=0)

    assert found.answer is not None
    assert found.answer.decision is Decision.CANCELLED
    assert not await world.engine.questions.answer(
        request.id, "x", decision=Decision.ANSWER, by="me"
    )


# -- the worker's own word ------------------------------------------------------------------------


@pytest.mark.requirement("mailbox:report", "reconcile:report-only-lowers")
async def test_a_report_lowers_the_outcome_and_ends_nothing(world: World) -> None:
    run_id = await world.working("slow")
    failed = Report(summary="no", status=ReportStatus.FAILED, blockers=("no key",))
    await world.clock.result(world.engine.reports.report(run_id, failed))
    assert (await world.run(run_id)).phase is Phase.RUNNING

    run = await world.until(run_id)

    assert run.outcome is not None
    assert (run.outcome.reason, run.outcome.error) == (Reason.REPORTED_FAILED, "no key")
    assert run.report == failed


@pytest.mark.requirement("mailbox:report", "verification:end-to-end")
async def test_a_required_report_is_checked(world: World) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),), require_completion_report=True)
    told = await world.working("late_writer", verification=contract)
    await world.clock.result(world.engine.reports.report(told, Report(summary="wrote it")))
    silent = await world.working("late_writer", verification=contract)

    run = await world.until(told)
    assert run.outcome is not None
    assert run.outcome.status is Status.OK
    run = await world.until(silent)
    assert run.outcome is not None
    assert run.outcome.error is not None
    assert "gave no completion report" in run.outcome.error


@pytest.mark.requirement("mailbox:live-only")
async def test_a_run_without_a_live_attempt_can_say_nothing(world: World) -> None:
    waiting = await world.spawn(depends_on=(await world.working(),))
    with pytest.raises(Conflict, match="has no live attempt"):
        await world.engine.questions.notify(waiting, "hello")
    with pytest.raises(Conflict, match="has no live attempt"):
        await world.engine.reports.report(waiting, Report(summary="x"))


@pytest.mark.requirement("permissions:for-agent", "requests:first-answer-counts")
@pytest.mark.parametrize(
    ("text", "decision", "allowed"),
    [
        ("deny", Decision.DENY, ()),
        ("for this agent", Decision.ANSWER, ("Bash: make",)),
    ],
)
async def test_an_answer_that_came_second_allows_the_agent_nothing(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    decision: Decision,
    allowed: tuple[str, ...],
) -> None:
    run_id, now = await world.working(), world.clock.now_ms()
    asked = PermissionAsked("key", "call", "Bash", "make", call="Bash: make")
    event = SignalReceived(at_ms=now, attempt=1, signal=asked)
    run = await world.clock.result(world.engine.ledger.apply(run_id, event))
    (request,) = run.pending_requests
    counts = Answer(decision=decision, text=text, by="her", at_ms=now)
    first = RequestAnswered(at_ms=now, request_id=request.id, answer=counts)
    log = world.engine.adapters.logs.allowed_calls
    change = log.change

    def changed(agent_id: str, call: str, *, allow: bool) -> None:
        change(agent_id, call, allow=allow)
        if allow:
            world.engine.ledger.apply_now(run_id, first)

    monkeypatch.setattr(log, "change", changed)
    second = world.engine.questions.answer(
        request.id, "for this agent", decision=Decision.ANSWER, by="him"
    )

    assert not await world.clock.result(second)
    assert log.read() == {"hang": allowed}
