"""Workers ask, requesters answer; both may die in between."""

import asyncio
from pathlib import Path

import pytest
from world import ME, World, in_world

from subagents.domain.model import Decision, MessageKind, Phase, Progress, Report, ReportStatus
from subagents.domain.outcome import Reason, Status
from subagents.domain.spec import Artifact, Contract
from subagents.domain.values import RequestId, RunId
from subagents.errors import Conflict, Forbidden, NotFound, UsageError


async def working(world: World, agent: str = "hang", **spec: object) -> RunId:
    run_id = await world.spawn(agent, **spec)
    await world.until(run_id, Phase.RUNNING)
    return run_id


@pytest.mark.requirement("requests:answered", "field:answers-took-hours")
def test_an_answer_reaches_the_waiting_worker_at_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        request = await world.clock.result(
            world.engine.ask(run_id, "which?", options=("a", "b"), context="two files")
        )
        waiting = asyncio.ensure_future(world.engine.answer_of(request.id, wait_s=50))
        await world.clock.advance(10)
        assert not waiting.done()
        asked = world.store.inbox(ME, unconsumed=True)
        assert [row.message.kind for row in asked] == [MessageKind.QUESTION]
        then = world.clock.now_ms()

        assert await world.clock.result(
            world.engine.answer(request.id, "b", decision=Decision.ANSWER, by="me")
        )
        found = await world.clock.result(waiting)

        assert found.answer is not None
        assert (found.answer.text, found.answer.by) == ("b", "me")
        assert world.clock.now_ms() == then
        assert world.store.inbox(ME, unconsumed=True) == []

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:first-answer-counts", "field:answer-dropped-as-stale")
def test_of_many_answers_the_first_counts_also_after_a_crash(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        request = await world.clock.result(world.engine.ask(run_id, "which?"))
        answers = [
            world.engine.answer(request.id, text, decision=Decision.ANSWER, by=text)
            for text in ("one", "two", "three")
        ]
        assert sorted(await world.clock.result(asyncio.gather(*answers))) == [False, False, True]
        stored = (await world.engine.answer_of(request.id, wait_s=0)).answer
        await world.restart()

        found = (await world.engine.answer_of(request.id, wait_s=0)).answer
        assert found == stored
        assert not await world.engine.answer(
            request.id, "late", decision=Decision.ANSWER, by="late"
        )

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:durable", "recovery:goes-on")
def test_a_question_survives_a_crash_with_its_deadline(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        request = await world.clock.result(
            world.engine.ask(run_id, "which?", timeout_s=100, default_answer="blue")
        )
        await world.clock.advance(40)
        await world.restart()
        assert len(world.store.inbox(ME, unconsumed=True)) == 1
        found = await world.clock.result(world.engine.answer_of(request.id, wait_s=500))

        assert found.answer is not None
        assert (found.answer.decision, found.answer.text) == (Decision.DEFAULT, "blue")
        assert found.answer.at_ms == request.asked_at_ms + 100_000

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:default-at-deadline")
def test_an_unanswered_question_without_a_default_times_out(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        request = await world.clock.result(world.engine.ask(run_id, "which?", timeout_s=5))
        found = await world.clock.result(world.engine.answer_of(request.id, wait_s=50))

        assert found.answer is not None
        assert (found.answer.decision, found.answer.by) == (Decision.TIMEOUT, "deadline")

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:limits")
def test_the_limits_of_questions_are_kept_and_named(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        for _ in range(3):
            await world.clock.result(world.engine.ask(run_id, "which?"))
        with pytest.raises(Forbidden, match="at most 3 unanswered questions per run"):
            await world.engine.ask(run_id, "another?")
        for number in (1, 2, 3):
            name = RequestId(f"{run_id}:q{number}")
            await world.clock.result(
                world.engine.answer(name, "x", decision=Decision.ANSWER, by="me")
            )
        for _ in range(2):
            await world.clock.result(world.engine.ask(run_id, "which?"))
        with pytest.raises(Forbidden, match="at most 5 questions per minute and run"):
            await world.engine.ask(run_id, "another?")
        await world.clock.advance(60)
        await world.clock.result(world.engine.ask(run_id, "which?"))

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:limits")
def test_one_requester_has_at_most_twenty_open_questions(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for _ in range(10):
            run_id = await working(world)
            for _ in range(2):
                await world.clock.result(world.engine.ask(run_id, "which?"))
        last = await working(world)

        with pytest.raises(Forbidden, match="at most 20 unanswered questions at one requester"):
            await world.engine.ask(last, "another?")
        open_questions = await world.engine.queries.attention(ME)
        assert [item.kind for item in open_questions] == ["question"] * 20

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:bounds")
def test_wrong_questions_are_refused_by_name(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        ended = await world.spawn("quick")
        await world.until(ended, Phase.COMPLETED)
        with pytest.raises(UsageError, match="question must not be empty"):
            await world.engine.ask(run_id, " ")
        for seconds in (0, -1, 7 * 24 * 3600 + 1):
            with pytest.raises(UsageError, match="timeoutSeconds must be"):
                await world.engine.ask(run_id, "x?", timeout_s=seconds)
        with pytest.raises(NotFound):
            await world.engine.ask(ended, "x?")
        with pytest.raises(NotFound, match="request r-none:q1 does not exist"):
            await world.engine.answer_of(RequestId("r-none:q1"), wait_s=0)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("requests:closed-with-attempt")
def test_the_end_of_the_attempt_closes_its_questions(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world, "slow")
        request = await world.clock.result(world.engine.ask(run_id, "which?"))
        await world.until(run_id)
        found = await world.engine.answer_of(request.id, wait_s=0)

        assert found.answer is not None
        assert found.answer.decision is Decision.CANCELLED
        assert not await world.engine.answer(request.id, "x", decision=Decision.ANSWER, by="me")

    in_world(tmp_path, scenario)


# -- one way -------------------------------------------------------------------------------------


@pytest.mark.requirement("mailbox:notices")
def test_a_notice_is_in_the_inbox_when_the_call_returns(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        await world.clock.result(world.engine.notify(run_id, "half way"))
        await world.clock.result(world.engine.notify(run_id, "stuck", priority="blocker"))
        with pytest.raises(UsageError, match="priority must be info, question or blocker"):
            await world.engine.notify(run_id, "x", priority="loud")

        rows = await world.engine.offer_inbox(ME, reader="me")
        assert [row.message.kind for row in rows] == [MessageKind.NOTICE, MessageKind.BLOCKER]
        assert [i.kind for i in await world.engine.queries.attention(ME)] == ["blocker"]
        names = [row.message.id for row in rows]
        assert await world.clock.result(world.engine.acknowledge(names, reader="me")) == 2
        assert await world.clock.result(world.engine.acknowledge(names, reader="me")) == 0

    in_world(tmp_path, scenario)


@pytest.mark.requirement("mailbox:progress-rate")
def test_progress_is_taken_once_in_thirty_seconds(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world)
        await world.clock.result(world.engine.progress(run_id, Progress(phase="one")))
        await world.clock.advance(29)
        with pytest.raises(Forbidden, match=r"one progress report per 30 seconds, again in \d+ s"):
            await world.engine.progress(run_id, Progress(phase="two"))
        await world.clock.advance(1)
        await world.clock.result(world.engine.progress(run_id, Progress(phase="three")))

        progress = (await world.run(run_id)).progress
        assert progress is not None
        assert (progress.phase, progress.updated_at_ms) == ("three", world.clock.now_ms())

    in_world(tmp_path, scenario)


@pytest.mark.requirement("mailbox:report", "reconcile:report-only-lowers")
def test_a_report_lowers_the_outcome_and_ends_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await working(world, "slow")
        failed = Report(summary="no", status=ReportStatus.FAILED, blockers=("no key",))
        await world.clock.result(world.engine.report(run_id, failed))
        assert (await world.run(run_id)).phase is Phase.RUNNING

        run = await world.until(run_id)

        assert run.outcome is not None
        assert (run.outcome.reason, run.outcome.error) == (Reason.REPORTED_FAILED, "no key")
        assert run.report == failed

    in_world(tmp_path, scenario)


@pytest.mark.requirement("mailbox:report", "verification:end-to-end")
def test_a_required_report_is_checked(tmp_path: Path) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),), require_completion_report=True)

    async def scenario(world: World) -> None:
        told = await working(world, "late_writer", verification=contract)
        await world.clock.result(world.engine.report(told, Report(summary="wrote it")))
        silent = await working(world, "late_writer", verification=contract)

        run = await world.until(told)
        assert run.outcome is not None
        assert run.outcome.status is Status.OK
        run = await world.until(silent)
        assert run.outcome is not None
        assert run.outcome.error is not None
        assert "gave no completion report" in run.outcome.error

    in_world(tmp_path, scenario)


@pytest.mark.requirement("mailbox:live-only")
def test_a_run_without_a_live_attempt_can_say_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        waiting = await world.spawn(depends_on=(await working(world),))
        with pytest.raises(Conflict, match="has no live attempt"):
            await world.engine.notify(waiting, "hello")
        with pytest.raises(Conflict, match="has no live attempt"):
            await world.engine.report(waiting, Report(summary="x"))

    in_world(tmp_path, scenario)
