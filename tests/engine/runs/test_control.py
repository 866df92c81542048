"""Cancel, steer, pause, children, lanes, archive: what a person does to runs that are there."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
)
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Abilities
from subagents.errors import (
    Conflict,
    Forbidden,
    UsageError,
)

CANCELLED = Outcome(status=Status.CANCELLED, reason=Reason.CANCELLED_BY_CALLER)


@pytest.mark.requirement("cancel:confirmed-by-state", "field:kill-marked-the-record-only")
async def test_a_cancel_stops_the_worker_and_is_confirmed_by_the_state(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    run = await world.until(run_id, within_s=2)

    assert (run.outcome, run.result) == (CANCELLED, "so far")
    assert world.runtime.stopped == [f"{run_id}#1"]
    again = await world.engine.control.cancel(run_id, by="me")
    assert again.outcome == CANCELLED


@pytest.mark.requirement("cancel:every-phase", "recovery:goes-on")
async def test_a_cancel_is_durable_before_the_worker_is_stopped(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    world.engine.outbox.add = lambda entry: None  # type: ignore[method-assign]
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    assert world.runtime.stopped == []
    await world.restart()

    assert (await world.until(run_id, within_s=2)).outcome == CANCELLED


@pytest.mark.requirement("interrupt:politely-then-stop")
async def test_only_a_run_at_work_has_a_turn_that_can_be_interrupted(world: World) -> None:
    at_work = await world.spawn("hang")
    waits = await world.spawn("quick", chain_after=at_work)
    await world.until(at_work, Phase.RUNNING)
    with pytest.raises(Conflict, match="there is no turn to interrupt"):
        await world.engine.control.interrupt(waits, by="me")

    await world.clock.result(world.engine.control.interrupt(at_work, by="me"))

    ended = await world.until(at_work)
    assert ended.outcome is not None
    assert (ended.outcome.status, ended.outcome.reason) == (
        Status.PARTIAL,
        Reason.INTERRUPTED,
    )
    assert ended.result == "so far"
    with pytest.raises(Conflict, match="there is no turn to interrupt"):
        await world.engine.control.interrupt(at_work, by="me")


@pytest.mark.requirement("cancel:every-phase")
@pytest.mark.world(max_concurrent=1)
async def test_a_run_cancelled_before_its_start_never_starts(world: World) -> None:
    await world.spawn("hang")
    queued = await world.spawn("hang")
    await world.clock.result(world.engine.control.cancel(queued, by="me"))

    assert (await world.until(queued, within_s=1)).outcome == CANCELLED
    assert world.runtime.starts_of(queued) == 0


# -- steering and pausing ------------------------------------------------------------------------


@pytest.mark.requirement("steer:live", "steer:limits")
async def test_a_live_run_is_steered_within_its_limits(world: World) -> None:
    run_id = await world.spawn("hang")
    run = await world.until(run_id, Phase.RUNNING)
    said = await world.clock.result(world.engine.control.steer(run_id, "hurry", by="me"))
    await world.clock.advance(1)
    assert (said, world.runtime.steered) == ("steered", ["hurry"])
    assert (await world.run(run_id)).control.steers == ()
    with pytest.raises(Forbidden, match="one message per 2 seconds"):
        await world.engine.control.steer(run_id, "now", by="me")
    await world.clock.advance(1)
    with pytest.raises(Forbidden, match="a run cannot steer itself"):
        await world.engine.control.steer(run_id, "me", by=run.session_key)
    with pytest.raises(UsageError, match="at most 4000"):
        await world.engine.control.steer(run_id, "x" * 4_001, by="me")
    await world.clock.result(world.engine.control.steer(run_id, "now", by="me"))


@pytest.mark.requirement("steer:next-turn")
@pytest.mark.world(max_concurrent=1)
async def test_a_queued_run_reads_the_message_with_its_task(world: World) -> None:
    blocker = await world.spawn("slow")
    queued = await world.spawn("quick")
    said = await world.clock.result(world.engine.control.steer(queued, "in English", by="me"))
    await world.until(blocker)
    await world.until(queued)

    assert said == "queued"
    assert world.runtime.launches[-1].prompt == ("do quick\n\n[Message from me]:\nin English")


@pytest.mark.requirement("steer:unable", "steer:next-turn")
@pytest.mark.world(max_spawn_depth=2)
@pytest.mark.parametrize("resumes", [True, False])
async def test_what_a_run_is_told_while_its_children_work_is_for_its_next_turn_if_it_has_one(
    world: World,
    resumes: bool,  # noqa: FBT001
) -> None:
    world.runtime.abilities = Abilities(survives_daemon=True, steer=True, resume=resumes)
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "hang")
    await world.until(parent, Phase.ENDING)
    told = world.clock.result(world.engine.control.steer(parent, "hurry", by="me"))

    if resumes:
        assert await told == "queued"
    else:
        with pytest.raises(Conflict, match="takes no further turn"):
            await told


@pytest.mark.requirement("steer:unable")
@pytest.mark.world(abilities=Abilities())
async def test_a_runtime_that_takes_no_messages_says_so(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    with pytest.raises(Conflict, match="takes no messages while it runs"):
        await world.engine.control.steer(run_id, "hurry", by="me")
    asked = await world.clock.result(world.engine.questions.ask(run_id, "red or blue?"))
    with pytest.raises(Conflict) as refused:
        await world.engine.control.steer(run_id, "red", by="me")
    assert refused.value.hint == f"it waits for an answer: subagents answer {asked.id} TEXT"
    ended = await world.spawn("quick")
    await world.until(ended, Phase.COMPLETED)
    with pytest.raises(Conflict, match="no attempt to steer"):
        await world.engine.control.steer(ended, "hurry", by="me")


@pytest.mark.requirement("control:way-out")
@pytest.mark.parametrize("ask", ["steer", "pause", "resume", "interrupt", "prioritize", "withdraw"])
@pytest.mark.parametrize("resumes", [False, True])
def test_what_is_asked_of_an_ended_run_is_refused_with_what_can_be_done_with_it(
    tmp_path: Path, ask: str, *, resumes: bool
) -> None:
    async def scenario(world: World) -> None:
        ended = await world.spawn("quick")
        await world.until(ended, Phase.COMPLETED)
        engine = world.engine
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "steer": lambda: engine.control.steer(ended, "hurry", by="me"),
            "pause": lambda: engine.control.pause(ended, by="me"),
            "resume": lambda: engine.control.resume(ended, by="me"),
            "interrupt": lambda: engine.control.interrupt(ended, by="me"),
            "prioritize": lambda: engine.control.prioritize(ended, 1, by="me"),
            "withdraw": lambda: engine.control.withdraw_cancel(ended, by="me"),
        }
        with pytest.raises(Conflict, match=f"run {ended} is completed: ") as refused:
            await calls[ask]()
        assert f"subagents retry {ended}" in (refused.value.hint or "")
        assert (f"subagents continue {ended} TEXT" in (refused.value.hint or "")) is resumes

    in_world(tmp_path, scenario, abilities=Abilities(resume=resumes))


@pytest.mark.requirement("control:way-out")
@pytest.mark.world(abilities=Abilities())
async def test_a_message_to_a_command_that_waits_for_an_answer_is_refused_with_the_answer(
    world: World,
) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    asked = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    with pytest.raises(Conflict, match="takes no messages") as refused:
        await world.engine.control.steer(run_id, "hurry", by="me")
    assert refused.value.hint == f"it waits for an answer: subagents answer {asked.id} TEXT"


@pytest.mark.requirement("queue:prioritize")
@pytest.mark.world(max_concurrent=1)
async def test_a_run_that_is_given_priority_overtakes_the_queue_also_after_a_restart(
    world: World,
) -> None:
    await world.spawn("slow")
    earlier, later = await world.spawn("slow"), await world.spawn("slow")

    given = await world.clock.result(world.engine.control.prioritize(later, 5, by="me"))
    assert given.control.priority == 5
    await world.restart()
    await world.clock.advance(11)

    assert (await world.run(later)).phase is Phase.RUNNING
    assert (await world.run(earlier)).phase is Phase.QUEUED
    with pytest.raises(UsageError, match="priority must be"):
        await world.clock.result(world.engine.control.prioritize(earlier, 1_000_001, by="me"))
    await world.until(later)
    with pytest.raises(Conflict, match="waits for no slot"):
        await world.clock.result(world.engine.control.prioritize(later, 1, by="me"))


@pytest.mark.requirement("pause:queued")
@pytest.mark.world(max_concurrent=1)
async def test_a_paused_run_holds_no_place_in_its_lane_until_it_is_resumed(world: World) -> None:
    first = await world.spawn("slow")
    second, third = await world.spawn("quick"), await world.spawn("quick")
    assert (await world.clock.result(world.engine.control.pause(second, by="me"))).control.paused
    await world.until(first)
    await world.until(third)
    assert (await world.run(second)).phase is Phase.QUEUED
    await world.restart()
    await world.clock.advance(300)
    assert (await world.run(second)).phase is Phase.QUEUED

    await world.clock.result(world.engine.control.resume(second, by="me"))

    assert (await world.until(second, within_s=1)).outcome == OK
    with pytest.raises(Conflict):
        await world.engine.control.resume(second, by="me")
    with pytest.raises(Conflict, match="cannot be paused"):
        await world.engine.control.pause(second, by="me")


@pytest.mark.requirement("pause:turn-boundary")
@pytest.mark.world(abilities=Abilities(steer=True))
async def test_a_live_run_is_paused_only_where_its_runtime_has_turns(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    with pytest.raises(Conflict, match=r"is running, and runtime .* cannot pause a worker"):
        await world.engine.control.pause(run_id, by="me")


@pytest.mark.requirement("pause:turn-boundary", "children:follow-up-turn")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_paused_parent_gets_its_follow_up_turn_when_it_is_resumed(world: World) -> None:
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "slow")
    await world.clock.result(world.engine.control.pause(parent, by="me"))
    await world.clock.advance(60)
    held = await world.run(parent)
    assert (held.phase, held.active_children, world.runtime.turns) == (Phase.ENDING, (), [])

    await world.clock.result(world.engine.control.resume(parent, by="me"))

    assert (await world.until(parent, within_s=5)).outcome == OK
    assert len(world.runtime.turns) == 1


# -- children ------------------------------------------------------------------------------------


# -- lanes ---------------------------------------------------------------------------------------


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.requirement("engine:concurrent-control")
async def test_many_hands_on_one_run_end_it_once(world: World) -> None:
    run_id = await world.spawn("slow")
    await world.clock.advance(9.999)
    hands = [world.engine.control.cancel(run_id, by=f"hand{n}") for n in range(20)]
    await world.clock.result(asyncio.gather(*hands))
    await world.until(run_id, Phase.COMPLETED)

    assert len(world.store.inbox(ME, unconsumed=False)) == 1
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("cancel:planned")
async def test_a_planned_cancel_survives_a_crash_and_can_be_taken_back_until_then(
    world: World,
) -> None:
    kept, ended = await world.spawn("hang"), await world.spawn("hang")
    for run_id in (kept, ended):
        await world.until(run_id, Phase.RUNNING)
        await world.engine.control.plan_cancel(run_id, by="web", after_ms=5_000, reason="oops")
    await world.restart()
    await world.clock.result(world.engine.control.withdraw_cancel(kept, by="web"))
    assert (await world.run(ended)).control.cancel is None
    run = await world.until(ended, within_s=6)

    assert run.outcome is not None
    assert (run.outcome.status, run.control.cancel and run.control.cancel.by) == (
        Status.CANCELLED,
        "web",
    )
    await world.clock.advance(60)
    assert (await world.run(kept)).phase is Phase.RUNNING
    again = await world.clock.result(world.engine.control.withdraw_cancel(kept, by="web"))
    assert again.phase is Phase.RUNNING, "harmless"
    with pytest.raises(Conflict, match="too late"):
        await world.engine.control.withdraw_cancel(ended, by="web")


@pytest.mark.requirement("attention:dismissed")
def test_a_failure_that_somebody_dismissed_needs_nobody_and_still_reaches_its_requester(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("fail")
        await world.until(run_id, Phase.COMPLETED)
        control = world.engine.control

        async def kinds() -> list[str]:
            return [item.kind for item in await world.engine.queries.attention(ME)]

        assert await kinds() == ["failed"]
        await world.clock.result(control.dismiss(run_id, by="me"))
        assert await kinds() == []
        assert (await world.engine.queries.run(run_id)).announcement_consumed_ms is None
        await world.clock.result(control.dismiss(run_id, by="me", withdrawn=True))
        assert await kinds() == ["failed"]
        await world.clock.result(control.dismiss(run_id, by="me"))
        await world.restart()

        assert await kinds() == []
        (row,) = await world.engine.mailbox.offer_inbox(ME, reader="its agent")
        assert row.message.run_id == run_id

    in_world(tmp_path, scenario)


@pytest.mark.requirement("queries:attention")
async def test_a_run_that_was_cancelled_needs_nobody(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    await world.until(run_id, Phase.COMPLETED)

    assert await world.engine.queries.attention(ME) == ()
