"""Delivery and reading: every channel hands a result over once, and nothing is ever dropped."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.world import ME, OTHER, FakeCourier, World, in_world

from subagents.config.settings import Agent, Settings
from subagents.domain.run.events import AnnouncementConsumed, Redelivered
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryPath,
    Skipped,
    SkipReason,
)
from subagents.domain.run.run import Decision, Phase
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.errors import Conflict, NotFound, UsageError

REFUSED = DeliveryFailed(retryable=True, error="connection refused")
DIRECT = Delivered(path=DeliveryPath.DIRECT)


@pytest.mark.requirement("delivery:queued", "delivery:dispatch-order")
async def test_without_a_courier_the_result_waits_in_the_inbox(world: World) -> None:
    run = await world.until(await world.spawn(), Phase.COMPLETED)

    assert run.delivery is not None
    (record,) = run.delivery.tries
    assert record.outcome == Delivered(path=DeliveryPath.QUEUED)
    assert record.phases == ("queue-fallback",)
    assert (record.target, record.requester_depth, record.nested) == (ME, 0, False)
    assert record.idempotency_key == f"{run.id}:announce/1"
    assert [row.message.run_id for row in world.store.inbox(ME, unconsumed=True)] == [run.id]


@pytest.mark.requirement("delivery:direct-consumes", "delivery:traced", "timeline:traces-a-run")
@pytest.mark.world(couriers=[FakeCourier("direct", DIRECT)])
async def test_a_courier_that_carried_it_has_consumed_it_and_the_try_is_on_record(
    world: World,
) -> None:
    run = await world.until(await world.spawn(), Phase.COMPLETED)

    (row,) = world.store.inbox(ME, unconsumed=False)
    assert (row.consumed_by, run.announcement_consumed_ms) == ("direct", world.clock.now_ms())
    assert run.delivery is not None
    assert [each.outcome for each in run.delivery.tries] == [DIRECT]
    found = await world.engine.mailbox.wait([run.id], session=ME, timeout_s=0, reader="late")
    assert ([r.id for r in found.completed], found.offered) == ([run.id], ())


@pytest.mark.requirement("delivery:order", "delivery:dispatch-order")
def test_channels_are_tried_in_the_order_that_the_spawn_asked_for(tmp_path: Path) -> None:
    direct, steer = FakeCourier("direct", None), FakeCourier("steer", None)

    async def scenario(world: World) -> None:
        asked: list[str] = []
        for courier in (direct, steer):
            courier.asked = _Named(asked, courier.name)
        await world.until(await world.spawn(), Phase.COMPLETED)
        await world.until(await world.spawn(expects_completion_message=False), Phase.COMPLETED)

        assert asked == ["direct", "steer", "steer"]

    in_world(tmp_path, scenario, couriers=[direct, steer])


class _Named(list[SessionKey]):
    def __init__(self, asked: list[str], name: str) -> None:
        super().__init__()
        self._asked, self._name = asked, name

    def append(self, _session: SessionKey, /) -> None:
        self._asked.append(self._name)


@pytest.mark.requirement("delivery:deferred-goes-on", "field:parked-delivery-expired")
def test_a_deferred_delivery_is_tried_until_it_arrives_also_after_a_restart(tmp_path: Path) -> None:
    busy = Deferred(reason=DeferReason.REQUESTER_BUSY)
    courier = FakeCourier("direct", busy, busy, busy, DIRECT)

    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id, Phase.ANNOUNCE_DEFERRED)
        await world.restart()

        run = await world.until(run_id, Phase.COMPLETED)

        assert run.delivery is not None
        assert [each.outcome for each in run.delivery.tries] == [busy, busy, busy, DIRECT]
        assert set(courier.carried) == {announcement_id(run_id)}

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement(
    "delivery:giveup-keeps-result", "field:gave-up-and-dropped", "queries:attention"
)
def test_giving_up_keeps_the_result_lists_it_and_can_be_redelivered(tmp_path: Path) -> None:
    courier = FakeCourier("direct", REFUSED)

    async def scenario(world: World) -> None:
        begun = world.clock.now_ms()
        run_id = await world.spawn()
        run = await world.until(run_id, Phase.COMPLETED_GIVEUP)

        assert 1_800 <= (world.clock.now_ms() - begun) / 1000 <= 2_200
        assert run.result == "done"
        kinds = [item.kind for item in await world.engine.queries.attention(ME)]
        assert kinds == ["undelivered"]
        assert len(world.store.inbox(ME, unconsumed=True)) == 1
        courier._outcomes = [DIRECT]
        await world.clock.result(world.engine.control.redeliver(run_id, by="me"))
        again = await world.until(run_id, Phase.COMPLETED)
        assert again.announcement_consumed_ms is not None
        await world.clock.result(world.engine.control.redeliver(run_id, by="me"))
        with pytest.raises(Conflict, match="was not read yet: it waits in the inbox"):
            await world.engine.control.redeliver(run_id, by="me")

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:redelivered")
async def test_a_result_that_was_only_queued_can_be_given_again(world: World) -> None:
    run_id = await world.spawn(expects_completion_message=False)
    await world.until(run_id, Phase.COMPLETED)
    mailbox = world.engine.mailbox
    await world.clock.result(mailbox.wait([run_id], session=ME, reader="first"))
    await world.clock.result(mailbox.acknowledge([announcement_id(run_id)], reader="first"))
    assert not world.store.inbox(ME, unconsumed=True)

    await world.clock.result(world.engine.control.redeliver(run_id, by=ME))

    assert len(world.store.inbox(ME, unconsumed=True)) == 1


@pytest.mark.requirement("delivery:redelivered")
async def test_a_caller_that_lost_what_it_read_is_given_it_again_once_and_on_record(
    world: World,
) -> None:
    mailbox = world.engine.mailbox
    run_id = await world.spawn()
    first = await world.clock.result(mailbox.wait([run_id], session=ME, reader="first"))
    with pytest.raises(Conflict, match="was not read yet"):
        await world.engine.control.redeliver(run_id, by=ME)
    await world.clock.result(mailbox.acknowledge([announcement_id(run_id)], reader="first"))
    await world.until(run_id, Phase.COMPLETED)
    assert not world.store.inbox(ME, unconsumed=True)

    await world.clock.result(world.engine.control.redeliver(run_id, by=ME))
    again = await world.clock.result(mailbox.wait([run_id], session=ME, reader="second"))
    results = [[each.result for each in found.completed] for found in (first, again)]
    assert results[0] == results[1] == ["done"]
    taken = mailbox.acknowledge([announcement_id(run_id)], reader="second")
    assert await world.clock.result(taken) == 1
    events = [each.event for each in world.store.journal(run_id, limit=1_000)]
    readers = [e.reader for e in events if isinstance(e, AnnouncementConsumed)]
    assert readers == ["first", "second"]
    assert [e.by for e in events if isinstance(e, Redelivered)] == [ME]
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("delivery:redelivered")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_result_whose_requester_was_pruned_goes_into_no_inbox_that_nobody_reads(
    world: World,
) -> None:
    parent = await world.spawn("slow")
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "quick")
    await world.until(parent, Phase.COMPLETED)
    await world.until(child, Phase.COMPLETED)
    world.store.prune([parent])

    with pytest.raises(Conflict, match="no longer kept"):
        await world.engine.control.redeliver(child, by=ME)


@pytest.mark.requirement("delivery:redelivered")
async def test_a_result_is_offered_once_more_only_when_that_is_committed(world: World) -> None:
    mailbox = world.engine.mailbox
    run_id = await world.spawn()
    await world.clock.result(mailbox.wait([run_id], session=ME, reader="first"))
    await world.clock.result(mailbox.acknowledge([announcement_id(run_id)], reader="first"))
    await world.until(run_id, Phase.COMPLETED)
    await world.restart()  # which forgets who read what a moment ago
    mailbox, ledger = world.engine.mailbox, world.engine.ledger
    await ledger.load_run(run_id)
    ledger.apply_now(run_id, Redelivered(at_ms=world.clock.now_ms(), by=ME, inbox=ME))

    early = await mailbox.wait([run_id], session=ME, timeout_s=0, reader="second")
    await ledger.committed()
    then = await mailbox.wait([run_id], session=ME, timeout_s=0, reader="second")

    assert [early.offered, then.offered] == [(), (announcement_id(run_id),)]


@pytest.mark.requirement("queries:attention")
@pytest.mark.world(couriers=[FakeCourier("direct", REFUSED)])
async def test_a_given_up_result_that_was_read_needs_no_attention(world: World) -> None:
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED_GIVEUP)
    found = await world.engine.mailbox.wait([run_id], session=ME, timeout_s=0, reader="r")
    await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader="r"))

    assert await world.engine.queries.attention(ME) == ()


@pytest.mark.requirement("delivery:silent-texts")
def test_a_silent_worker_skips_the_push_but_not_the_inbox(tmp_path: Path) -> None:
    courier = FakeCourier("direct", DIRECT)

    async def scenario(world: World) -> None:
        agents = dict(world.settings.agents)
        agents["mute"] = Agent(runtime="scripted", script=({"result": "ANNOUNCE_SKIP"},))
        settings = Settings(defaults=world.settings.defaults, agents=agents)
        run = await world.until(await world.spawn("mute", settings=settings), Phase.COMPLETED)

        assert courier.carried == []
        assert run.delivery is not None
        assert run.delivery.tries[0].outcome == Skipped(reason=SkipReason.ANNOUNCE_SKIP)
        assert len(world.store.inbox(ME, unconsumed=True)) == 1

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:bubbles", "delivery:bubbles-up", "field:dead-parents-inbox")
@pytest.mark.world(max_spawn_depth=2, abilities=Abilities())
async def test_what_a_dead_parent_never_read_goes_to_the_nearest_living_ancestor(
    world: World,
) -> None:
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "quick")
    await world.until(child, Phase.COMPLETED)
    inbox = (await world.run(parent)).session.first_key
    assert len(world.store.inbox(inbox, unconsumed=True)) == 1

    await world.clock.result(world.engine.control.cancel(parent, by="me"))
    await world.until(parent, Phase.COMPLETED)

    assert world.store.inbox(inbox, unconsumed=True) == []
    runs = [row.message.run_id for row in world.store.inbox(ME, unconsumed=True)]
    assert runs == [child, parent]


# -- waiting -------------------------------------------------------------------------------------


@pytest.mark.requirement("wait:any-all", "field:parent-never-woken")
async def test_waiting_ends_with_any_or_all_of_the_runs(world: World) -> None:
    slow, quick = await world.spawn("slow"), await world.spawn("parent")
    begun = world.clock.now_ms()
    ids = [slow, quick]

    either = await world.clock.result(
        world.engine.mailbox.wait(ids, session=ME, until="any", timeout_s=60, reader="r")
    )
    assert [run.id for run in either.completed] == [quick]
    assert [run.id for run in either.pending] == [slow]
    assert world.clock.now_ms() - begun == 5_000
    both = await world.clock.result(
        world.engine.mailbox.wait(ids, session=ME, until="all", timeout_s=60, reader="r")
    )
    assert [run.id for run in both.completed] == ids
    assert world.clock.now_ms() - begun == 10_000


@pytest.mark.requirement("wait:timeout-is-no-error")
async def test_a_wait_that_times_out_says_what_is_pending_and_what_is_missing(world: World) -> None:
    hang = await world.spawn("hang")
    ids = [hang, hang, RunId("r-none")]
    begun = world.clock.now_ms()
    found = await world.clock.result(
        world.engine.mailbox.wait(ids, session=ME, until="all", timeout_s=7, reader="r")
    )

    assert world.clock.now_ms() - begun == 7_000
    assert ([run.id for run in found.pending], found.missing) == ([hang], ("r-none",))
    assert (found.completed, found.offered) == ((), ())


@pytest.mark.requirement("wait:bounds")
async def test_the_bounds_of_a_wait_are_named(world: World) -> None:
    with pytest.raises(UsageError, match='until must be "any" or "all", not "some"'):
        await world.engine.mailbox.wait([], session=ME, until="some", reader="r")
    many = ["r-x"] * 1_001
    with pytest.raises(UsageError, match="runIds has 1001 entries, at most 1000"):
        await world.engine.mailbox.wait(many, session=ME, reader="r")  # type: ignore[arg-type]


@pytest.mark.requirement("wait:whole-session", "field:launched-more-than-notified")
@pytest.mark.world(max_concurrent=100)
async def test_fifty_children_that_end_in_the_same_millisecond_are_all_returned(
    world: World,
) -> None:
    ids = [await world.spawn("slow") for _ in range(50)]
    await world.spawn("slow", requester=OTHER)

    found = await world.clock.result(
        world.engine.mailbox.wait([], session=ME, until="all", timeout_s=60, reader="r")
    )

    assert sorted(run.id for run in found.completed) == sorted(ids)
    assert len({run.ended_at_ms for run in found.completed}) == 1
    assert len(found.offered) == 50
    assert (
        await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader="r")) == 50
    )
    again = await world.engine.mailbox.wait([], session=ME, until="any", timeout_s=0, reader="r")
    assert again.completed == ()


@pytest.mark.requirement("delivery:consumed-once", "field:delivered-twice")
async def test_of_two_readers_one_is_offered_the_result_and_consumes_it(world: World) -> None:
    run_id = await world.spawn("slow")
    readers = ["first", "second", "third"]
    waits = [
        world.engine.mailbox.wait([run_id], session=ME, timeout_s=60, reader=name)
        for name in readers
    ]
    found = await world.clock.result(asyncio.gather(*waits))

    offered = [(name, each.offered) for name, each in zip(readers, found, strict=True)]
    (winner,) = [name for name, messages in offered if messages]
    assert all(len(each.completed) == 1 for each in found)
    assert await world.engine.mailbox.offer_inbox(ME, reader="fourth") == ()
    message = announcement_id(run_id)
    acks = [world.engine.mailbox.acknowledge([message], reader=winner) for _ in range(5)]
    assert sum(await world.clock.result(asyncio.gather(*acks))) == 1
    (row,) = world.store.inbox(ME, unconsumed=False)
    assert row.consumed_by == winner


@pytest.mark.requirement("delivery:consumed-once")
async def test_whoever_else_waits_for_a_run_sees_its_end_and_leaves_it_to_its_requester(
    world: World,
) -> None:
    run_id = await world.spawn("slow")
    other = SessionKey("agent:main:somebody-else")
    seen = await world.clock.result(
        world.engine.mailbox.wait([run_id], session=other, timeout_s=60, reader="other")
    )
    assert [run.id for run in seen.completed] == [run_id]
    assert seen.offered == ()

    found = await world.engine.mailbox.wait([run_id], session=ME, timeout_s=0, reader="mine")
    assert found.offered == (announcement_id(run_id),)


@pytest.mark.requirement("delivery:offer-lease", "field:empty-wake-turn")
async def test_an_offer_nobody_acknowledged_is_made_again_after_its_lease(world: World) -> None:
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED)
    (row,) = await world.engine.mailbox.offer_inbox(ME, reader="dead")
    assert row.message.run_id == run_id
    assert await world.engine.mailbox.offer_inbox(ME, reader="alive") == ()
    assert len(await world.engine.mailbox.offer_inbox(ME, reader="dead")) == 1

    await world.clock.advance(61)

    (again,) = await world.engine.mailbox.offer_inbox(ME, reader="alive")
    assert again.message.id == row.message.id
    await world.clock.result(world.engine.mailbox.acknowledge([again.message.id], reader="alive"))
    assert await world.engine.mailbox.offer_inbox(ME, reader="dead") == ()


@pytest.mark.requirement("delivery:offer-lease")
async def test_an_offer_does_not_outlive_the_daemon(world: World) -> None:
    await world.until(await world.spawn(), Phase.COMPLETED)
    assert len(await world.engine.mailbox.offer_inbox(ME, reader="dead")) == 1
    await world.restart()

    assert len(await world.engine.mailbox.offer_inbox(ME, reader="alive")) == 1


@pytest.mark.requirement("delivery:unknown-message")
async def test_acknowledging_what_does_not_exist_is_refused(world: World) -> None:
    hang = await world.spawn("hang")
    for name in (announcement_id(hang), "r-none:announce", "x"):
        with pytest.raises(NotFound):
            await world.engine.mailbox.acknowledge([name], reader="r")


@pytest.mark.requirement("delivery:consumed-once", "recovery:goes-on")
async def test_a_consumed_result_stays_consumed_after_a_crash(world: World) -> None:
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED)
    await world.clock.result(
        world.engine.mailbox.acknowledge([announcement_id(run_id)], reader="r")
    )
    await world.restart()

    assert await world.engine.mailbox.offer_inbox(ME, reader="other") == ()
    assert (await world.run(run_id)).announcement_consumed_ms is not None


@pytest.mark.requirement("wait:whole-session")
async def test_a_session_without_runs_waits_for_nothing(world: World) -> None:
    nobody = SessionKey("agent:nobody:main")
    begun = world.clock.now_ms()

    found = await world.clock.result(
        world.engine.mailbox.wait([], session=nobody, timeout_s=30, reader="r")
    )

    assert found.completed == found.pending == ()
    assert world.clock.now_ms() == begun


# -- failures of the field -----------------------------------------------------------------------


@pytest.mark.requirement("field:agentwire-872", "field:parked-delivery-expired")
async def test_agentwire_872_a_requester_parked_for_hours_over_restarts_still_gets_the_report(
    world: World,
) -> None:
    agents = dict(world.settings.agents)
    script: tuple[dict[str, object], ...] = (
        {"sleep_ms": 5 * 3_600_000},
        {"result": "after five hours"},
    )
    agents["long"] = Agent(runtime="scripted", script=script)
    settings = Settings(defaults=world.settings.defaults, agents=agents)
    run_id = await world.spawn("long", settings=settings)
    waits = 0
    while True:
        found = await world.clock.result(
            world.engine.mailbox.wait([], session=ME, timeout_s=600, reader="parked")
        )
        waits += 1
        if found.completed:
            break
        assert [run.id for run in found.pending] == [run_id]
    assert waits == 30
    assert [run.result for run in found.completed] == ["after five hours"]

    # Nobody acknowledges: days later, after many sweeps and restarts, it lies there still.
    for _ in range(3):
        world.clock.jump(20 * 24 * 3_600)
        await world.clock.result(world.engine.sweep.once())
        await world.restart()
    late = await world.clock.result(
        world.engine.mailbox.wait([], session=ME, timeout_s=0, reader="late")
    )
    assert late.offered == (announcement_id(run_id),)


@pytest.mark.requirement("field:openswarm-434", "field:answers-took-hours")
async def test_openswarm_434_twenty_answers_reach_their_workers_in_one_commit_each_and_no_time(
    world: World,
) -> None:
    run_ids = [await world.spawn("hang") for _ in range(20)]
    for run_id in run_ids:
        await world.until(run_id, Phase.RUNNING)
    asks = [world.engine.questions.ask(run_id, "which?", timeout_s=86_400) for run_id in run_ids]
    asked = [await world.clock.result(each) for each in asks]
    waiting = [
        asyncio.ensure_future(world.engine.questions.answer_of(each.id, wait_s=600))
        for each in asked
    ]
    # Nearly the longest wait there is: no back-off may have grown meanwhile.
    await world.clock.advance(590)
    then_ms, commits = world.clock.now_ms(), world.store.commits
    for each in asked:
        await world.clock.result(
            world.engine.questions.answer(each.id, "b", decision=Decision.ANSWER, by="me")
        )

    found = await world.clock.result(asyncio.gather(*waiting))

    assert [each.answer.text if each.answer else None for each in found] == ["b"] * 20
    assert world.clock.now_ms() == then_ms
    assert world.store.commits - commits <= 20 + 1
