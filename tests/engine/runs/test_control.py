"""Cancel, steer, pause, children, lanes, archive: what a person does to runs that are there."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
)
from subagents.domain.run.run import Phase, Report
from subagents.domain.run.spec import Abilities, Cleanup, Mode
from subagents.domain.run.values import announcement_id
from subagents.errors import (
    Conflict,
    Forbidden,
    NotFound,
    UsageError,
)
from subagents.ports import RunFilter

CANCELLED = Outcome(status=Status.CANCELLED, reason=Reason.CANCELLED_BY_CALLER)


@pytest.mark.requirement("cancel:confirmed-by-state", "field:kill-marked-the-record-only")
def test_a_cancel_stops_the_worker_and_is_confirmed_by_the_state(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        await world.clock.result(world.engine.cancel(run_id, by="me"))
        run = await world.until(run_id, within_s=2)

        assert (run.outcome, run.result) == (CANCELLED, "so far")
        assert world.runtime.stopped == [f"{run_id}#1"]
        again = await world.engine.cancel(run_id, by="me")
        assert again.outcome == CANCELLED

    in_world(tmp_path, scenario)


@pytest.mark.requirement("cancel:cascades", "field:children-billed-on")
def test_a_cancel_reaches_running_queued_and_waiting_descendants(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("hang")
        await world.until(parent, Phase.RUNNING)
        running = await world.spawn_child(parent, "hang")
        await world.until(running, Phase.RUNNING)
        queued = await world.spawn_child(parent, "hang")
        waiting = await world.spawn_child(parent, depends_on=(queued,))
        grandchild = await world.spawn_child(running, "hang")
        await world.until(grandchild, Phase.RUNNING)
        family = [parent, running, queued, waiting, grandchild]
        assert (await world.run(queued)).phase is Phase.QUEUED
        assert (await world.run(waiting)).phase is Phase.WAITING

        await world.clock.result(world.engine.cancel(parent, by="me", reason="enough"))
        await world.clock.until(lambda: not world.parts.ledger.live, within_s=2)

        outcomes = [(await world.run(run_id)).outcome for run_id in family]
        assert all(outcome is not None for outcome in outcomes)
        assert {o.status for o in outcomes if o is not None} == {Status.CANCELLED}
        reasons = [o.reason for o in outcomes if o is not None]
        assert reasons == [Reason.CANCELLED_BY_CALLER] + [Reason.PARENT_ENDED] * 4
        assert world.runtime.starts_of(queued) == world.runtime.starts_of(waiting) == 0
        unread = [row.message.run_id for row in world.store.inbox(None, unconsumed=True)]
        assert unread == [parent]

    in_world(tmp_path, scenario, max_spawn_depth=3, max_concurrent=1)


@pytest.mark.requirement("cancel:every-phase", "recovery:goes-on")
def test_a_cancel_is_durable_before_the_worker_is_stopped(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        world.parts.outbox.add = lambda entry: None  # type: ignore[method-assign]
        await world.clock.result(world.engine.cancel(run_id, by="me"))
        assert world.runtime.stopped == []
        await world.restart()

        assert (await world.until(run_id, within_s=2)).outcome == CANCELLED

    in_world(tmp_path, scenario)


@pytest.mark.requirement("cancel:every-phase")
def test_a_run_cancelled_before_its_start_never_starts(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.spawn("hang")
        queued = await world.spawn("hang")
        await world.clock.result(world.engine.cancel(queued, by="me"))

        assert (await world.until(queued, within_s=1)).outcome == CANCELLED
        assert world.runtime.starts_of(queued) == 0

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("cancel:unknown")
def test_an_unknown_run_is_said_to_be_unknown(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(NotFound, match="run r-none does not exist"):
            await world.engine.cancel("r-none", by="me")  # type: ignore[arg-type]

    in_world(tmp_path, scenario)


# -- steering and pausing ------------------------------------------------------------------------


@pytest.mark.requirement("steer:live", "steer:limits")
def test_a_live_run_is_steered_within_its_limits(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        run = await world.until(run_id, Phase.RUNNING)
        said = await world.clock.result(world.engine.steer(run_id, "hurry", by="me"))
        await world.clock.advance(1)
        assert (said, world.runtime.steered) == ("steered", ["hurry"])
        assert (await world.run(run_id)).control.steers == ()
        with pytest.raises(Forbidden, match="one message per 2 seconds"):
            await world.engine.steer(run_id, "now", by="me")
        await world.clock.advance(1)
        with pytest.raises(Forbidden, match="a run cannot steer itself"):
            await world.engine.steer(run_id, "me", by=run.session_key)
        with pytest.raises(UsageError, match="at most 4000"):
            await world.engine.steer(run_id, "x" * 4_001, by="me")
        await world.clock.result(world.engine.steer(run_id, "now", by="me"))

    in_world(tmp_path, scenario)


@pytest.mark.requirement("steer:next-turn")
def test_a_queued_run_reads_the_message_with_its_task(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        blocker = await world.spawn("slow")
        queued = await world.spawn("quick")
        said = await world.clock.result(world.engine.steer(queued, "in English", by="me"))
        await world.until(blocker)
        await world.until(queued)

        assert said == "queued"
        assert world.runtime.launches[-1].prompt == ("do quick\n\n[Message from me]:\nin English")

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("steer:unable")
def test_a_runtime_that_takes_no_messages_says_so(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        with pytest.raises(Conflict, match="takes no messages while it runs"):
            await world.engine.steer(run_id, "hurry", by="me")
        ended = await world.spawn("quick")
        await world.until(ended, Phase.COMPLETED)
        with pytest.raises(Conflict, match="no attempt to steer"):
            await world.engine.steer(ended, "hurry", by="me")

    in_world(tmp_path, scenario, abilities=Abilities())


@pytest.mark.requirement("pause:queued")
def test_a_paused_run_holds_no_place_in_its_lane_until_it_is_resumed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        first = await world.spawn("slow")
        second, third = await world.spawn("quick"), await world.spawn("quick")
        assert (await world.clock.result(world.engine.pause(second, by="me"))).control.paused
        await world.until(first)
        await world.until(third)
        assert (await world.run(second)).phase is Phase.QUEUED
        await world.restart()
        await world.clock.advance(300)
        assert (await world.run(second)).phase is Phase.QUEUED

        await world.clock.result(world.engine.resume(second, by="me"))

        assert (await world.until(second, within_s=1)).outcome == OK
        with pytest.raises(Conflict):
            await world.engine.resume(second, by="me")
        with pytest.raises(Conflict, match="cannot be paused"):
            await world.engine.pause(second, by="me")

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("pause:turn-boundary")
def test_a_live_run_is_paused_only_where_its_runtime_has_turns(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        with pytest.raises(Conflict, match="is running and cannot be paused"):
            await world.engine.pause(run_id, by="me")

    in_world(tmp_path, scenario, abilities=Abilities(steer=True))


@pytest.mark.requirement("pause:turn-boundary", "children:follow-up-turn")
def test_a_paused_parent_gets_its_follow_up_turn_when_it_is_resumed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        await world.spawn_child(parent, "slow")
        await world.clock.result(world.engine.pause(parent, by="me"))
        await world.clock.advance(60)
        held = await world.run(parent)
        assert (held.phase, held.active_children, world.runtime.turns) == (Phase.ENDING, (), [])

        await world.clock.result(world.engine.resume(parent, by="me"))

        assert (await world.until(parent, within_s=5)).outcome == OK
        assert len(world.runtime.turns) == 1

    in_world(tmp_path, scenario, max_spawn_depth=2)


# -- children ------------------------------------------------------------------------------------


@pytest.mark.requirement("children:follow-up-turn", "children:no-announce-while-active")
def test_a_parent_is_told_all_results_in_one_turn_before_it_is_announced(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        children = [await world.spawn_child(parent, name) for name in ("slow", "fail")]
        await world.until(parent, Phase.ENDING)
        assert [i.phase for i in [await world.run(children[0])]] == [Phase.RUNNING]

        run = await world.until(parent)

        (turn,) = world.runtime.turns
        assert "slowly done" in turn
        assert "failed: exit code 1" in turn
        assert run.attempt.turn.number == 2
        for child in children:
            assert (await world.run(child)).announcement_consumed_ms is not None
        unread = [row.message.run_id for row in world.store.inbox(None, unconsumed=True)]
        assert unread == [parent]

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("children:appended")
def test_without_turns_the_childrens_results_are_part_of_the_parents(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        await world.spawn_child(parent, "slow", label="helper")

        run = await world.until(parent)

        assert run.result == (
            "parent is done\n\n[Sub-agent results]\n"
            '"helper" just completed successfully:\n```\nslowly done\n```'
        )

    in_world(tmp_path, scenario, max_spawn_depth=2, abilities=Abilities())


@pytest.mark.requirement("children:told-once", "wait:any-all")
def test_a_parent_that_waited_for_its_child_is_not_told_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("slow")
        session = (await world.until(parent, Phase.RUNNING)).session_key
        child = await world.spawn_child(parent, "quick")
        found = await world.clock.result(
            world.engine.wait([child], session=session, timeout_s=30, reader=session)
        )
        assert found.offered == (announcement_id(child),)
        await world.clock.result(world.engine.acknowledge(found.offered, reader=session))

        run = await world.until(parent)

        assert (run.result, world.runtime.turns) == ("slowly done", [])

    in_world(tmp_path, scenario, max_spawn_depth=2)


# -- lanes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("lanes:caps", "field:cap-exceeded")
def test_never_more_runs_work_at_once_than_the_lane_has_slots(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        ids = [await world.spawn("slow") for _ in range(20)]
        most = 0
        while world.parts.ledger.live:
            busy = [r for r in world.parts.ledger.published.values() if r.phase is Phase.RUNNING]
            most = max(most, len(busy))
            await world.clock.advance(1)

        assert most == 3
        ends = [(await world.run(run_id)).ended_at_ms for run_id in ids]
        assert ends == sorted(ends, key=lambda end: end or 0), "first come, first served"

    in_world(tmp_path, scenario, max_concurrent=3)


@pytest.mark.requirement("lanes:order")
def test_a_higher_priority_overtakes_the_queue(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.spawn("slow")
        later = await world.spawn("slow")
        urgent = await world.spawn("slow", priority=9)
        await world.clock.advance(11)

        assert (await world.run(urgent)).phase is Phase.RUNNING
        assert (await world.run(later)).phase is Phase.QUEUED

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("lanes:no-deadlock", "field:deadlock-at-one")
def test_a_lane_of_one_slot_does_not_deadlock_with_nested_runs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("hang")
        session = (await world.until(parent, Phase.RUNNING)).session_key
        child = await world.spawn_child(parent, "quick")

        found = await world.clock.result(
            world.engine.wait([child], session=session, timeout_s=30, reader=session)
        )

        assert [run.id for run in found.completed] == [child]

    in_world(tmp_path, scenario, max_spawn_depth=2, max_concurrent=1)


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.requirement("sweep:archive", "field:data-lost-on-cleanup", "spawn:sweeper")
def test_ended_runs_are_archived_after_an_hour_and_sessions_never(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        kept = await world.spawn(thread=True, mode=Mode.SESSION)
        await world.until(run_id, Phase.COMPLETED)
        await world.until(kept, Phase.COMPLETED)
        await world.clock.advance(59 * 60)
        assert (await world.run(run_id)).times.archived_at_ms is None

        await world.clock.advance(3 * 60)

        run = await world.run(run_id)
        assert run.times.archived_at_ms is not None
        assert run.result == "done"
        assert (await world.run(kept)).times.archived_at_ms is None
        assert [r.id for r in await world.engine.queries.runs(RunFilter())] == [kept]
        assert len(await world.engine.queries.journal(run_id)) == run.seq

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:prune", "field:gave-up-and-dropped")
def test_a_run_is_pruned_a_week_after_it_was_read_and_never_before(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        read, unread = await world.spawn(), await world.spawn()
        await world.until(unread, Phase.COMPLETED)
        await world.until(read, Phase.COMPLETED)
        world.clock.jump(2 * 3_600)
        await world.clock.result(world.engine.sweep())
        world.clock.jump(24 * 3_600)
        await world.clock.result(world.engine.acknowledge([announcement_id(read)], reader="me"))
        world.clock.jump(7 * 24 * 3_600 - 100)
        assert (await world.clock.result(world.engine.sweep())).pruned == 0
        world.clock.jump(200)
        report = await world.clock.result(world.engine.sweep())

        assert report.pruned == 1
        assert world.store.run(read) is None
        assert (await world.run(unread)).result == "done"
        assert world.runtime.forgotten == [f"{read}#1"]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("cleanup:keep-or-delete")
@pytest.mark.parametrize("cleanup", list(Cleanup))
def test_child_sessions_are_deleted_only_when_asked(tmp_path: Path, cleanup: Cleanup) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("flaky", cleanup=cleanup, retry_count=1)
        run = await world.until(run_id, Phase.COMPLETED)

        wanted = [f"{run_id}#1", f"{run_id}#2"] if cleanup is Cleanup.DELETE else []
        assert world.runtime.forgotten == wanted
        assert (run.result, len(run.attempts)) == ("second time lucky", 2)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("queries:resolve", "spawn:registry")
def test_a_run_is_found_by_id_label_prefix_and_last(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        old = await world.spawn("quick", label="job")
        new = await world.spawn("hang", label="job")
        await world.until(old, Phase.COMPLETED)
        resolve = world.engine.queries.resolve

        assert await resolve(old, ME) == old
        assert await resolve("job", ME) == new
        assert await resolve("last", ME) == new
        assert await resolve(old[:-1] + old[-1], None) == old
        with pytest.raises(UsageError, match="fits several runs"):
            await resolve("r-0000", ME)
        with pytest.raises(NotFound, match='no run "zzz"'):
            await resolve("zzz", ME)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("queries:tree", "tree:verification-state")
def test_the_tree_shows_every_descendant_with_its_verification(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("hang")
        await world.until(parent, Phase.RUNNING)
        children = [await world.spawn_child(parent, "quick") for _ in range(2)]
        await world.until(children[1], Phase.COMPLETED)

        tree = await world.engine.queries.tree(parent)

        assert [node.run.id for node in tree.children] == children
        assert tree.children[0].run.verification.state is None
        (root,) = await world.engine.queries.roots(ME)
        assert root.run.id == parent

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("engine:concurrent-control")
def test_many_hands_on_one_run_end_it_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.clock.advance(9.999)
        hands = [world.engine.cancel(run_id, by=f"hand{n}") for n in range(20)]
        await world.clock.result(asyncio.gather(*hands))
        await world.until(run_id, Phase.COMPLETED)

        assert len(world.store.inbox(ME, unconsumed=False)) == 1
        assert await world.folded(run_id) == await world.run(run_id)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("lanes:turns-need-slots")
def test_a_parent_keeps_its_slot_for_the_turn_that_follows(tmp_path: Path) -> None:
    """With one slot, a second run must not start while the first has a turn to come."""

    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        await world.spawn_child(parent, "slow")
        other = await world.spawn("quick")
        await world.until(parent, Phase.ENDING)
        assert (await world.run(other)).phase is Phase.QUEUED

        await world.until(parent)
        assert len(world.runtime.turns) == 1
        assert (await world.until(other)).outcome == OK

    in_world(tmp_path, scenario, max_spawn_depth=2, max_concurrent=1)


@pytest.mark.requirement("report:after-tools")
def test_a_report_counts_as_the_last_call_after_tools_that_were_seen_before_it(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("tooled")
        await world.until(run_id, Phase.RUNNING)
        await world.clock.idle()
        await world.clock.result(world.engine.report(run_id, Report(summary="all done")))
        run = await world.until(run_id)

        assert run.report is not None
        assert run.attempt.last.is_report

    in_world(tmp_path, scenario)


@pytest.mark.requirement("outbox:start-is-bounded")
def test_a_runtime_that_hangs_while_it_starts_fails_the_attempt_and_frees_the_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.engine.outbox.START_S_MAX", 0.02)

    async def scenario(world: World) -> None:
        world.runtime.hangs = True
        run_id = await world.spawn("quick")
        await asyncio.wait_for(world.runtime.stop_called.wait(), 10)
        outcome = (await world.until(run_id)).outcome
        assert outcome is not None
        assert outcome.error == "it did not start within 0 s"
        assert world.runtime.stopped == [f"{run_id}#1"]

        world.runtime.hangs = False
        assert (await world.until(await world.spawn("quick"))).outcome == OK

    in_world(tmp_path, scenario, max_concurrent=1)
