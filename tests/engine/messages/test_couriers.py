"""Couriers beside readers: steered, bound, and never two channels for one announcement."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import ME, FakeCourier, WatchedRuntime, World, in_world

from subagents.couriers.steer_courier import SteerCourier
from subagents.domain.run.events import AnnouncementConsumed
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import (
    DeliveryTry,
    Message,
    Phase,
    Run,
)
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.errors import RuntimeUnavailable
from subagents.ports import AttemptRef, Runtime

DIRECT = Delivered(path=DeliveryPath.DIRECT)
STEERED = Delivered(path=DeliveryPath.STEERED)
QUEUED = Delivered(path=DeliveryPath.QUEUED)
BUSY = Deferred(reason=DeferReason.REQUESTER_BUSY)
REFUSED = DeliveryFailed(retryable=True, error="connection refused")


def steering() -> tuple[SteerCourier, dict[str, Runtime]]:
    """The real courier, and the runtimes that the scenario fills in."""
    runtimes: dict[str, Runtime] = {}
    return SteerCourier(lambda run: runtimes.get(run.resolved.runtime)), runtimes


def tries(run: Run) -> Sequence[DeliveryTry]:
    assert run.delivery is not None
    return run.delivery.tries


def consumptions(world: World, run_id: RunId) -> list[AnnouncementConsumed]:
    events = [entry.event for entry in world.store.journal(run_id, limit=10_000)]
    return [event for event in events if isinstance(event, AnnouncementConsumed)]


async def leading(world: World, agent: str = "hang") -> RunId:
    """A run whose agent works."""
    run_id = await world.spawn(agent)
    await world.until(run_id, Phase.RUNNING)
    return run_id


# -- into a live attempt -------------------------------------------------------------------------


@pytest.mark.requirement("courier:steer", "delivery:nested-is-internal", "delivery:dispatch-order")
def test_a_childs_result_is_put_into_its_parents_live_attempt_and_is_consumed_by_it(
    tmp_path: Path,
) -> None:
    courier, runtimes = steering()
    outside = FakeCourier("direct", DIRECT)

    async def scenario(world: World) -> None:
        runtimes["scripted"] = world.runtime
        parent = await leading(world)
        child = await world.until(await world.spawn_child(parent), Phase.COMPLETED)

        (steered,) = world.runtime.steered
        assert steered.startswith("[System Message]")
        assert "done" in steered
        (record,) = tries(child)
        assert (record.outcome, record.phases) == (STEERED, ("steer-internal",))
        assert (record.nested, record.route_mode) == (True, "internal")
        session = (await world.run(parent)).session.first_key
        assert [event.reader for event in consumptions(world, child.id)] == [session]
        assert world.store.inbox(session, unconsumed=True) == []
        assert [each.told for each in (await world.run(parent)).children] == [True]

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier, outside])
    assert outside.asked == []


@pytest.mark.requirement("courier:steer", "children:told-once")
def test_what_was_steered_in_is_told_in_no_follow_up_turn(tmp_path: Path) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        runtimes["scripted"] = world.runtime
        parent = await leading(world, "parent")
        await world.until(await world.spawn_child(parent), Phase.COMPLETED)
        run = await world.until(parent, Phase.COMPLETED)

        assert len(world.runtime.steered) == 1
        assert (world.runtime.turns, run.attempt.turn.number, run.result) == (
            [],
            1,
            "parent is done",
        )

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier])


@pytest.mark.requirement("children:follow-up-turn", "courier:no-second-turn")
def test_an_idle_parent_is_told_by_its_one_follow_up_turn_and_by_no_courier(tmp_path: Path) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        runtimes["scripted"] = world.runtime
        parent = await leading(world, "parent")
        children = [await world.spawn_child(parent, "slow") for _ in range(3)]
        await world.until(parent, Phase.ENDING)
        await world.until(parent, Phase.COMPLETED)

        assert world.runtime.steered == []
        (turn,) = world.runtime.turns
        assert turn.count("slowly done") == 3
        for child in children:
            assert len(consumptions(world, child)) == 1

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier])


class DeafRuntime(WatchedRuntime):
    """Its attempts end unheard: nothing can be put into one that still looks alive."""

    deaf = False

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        if self.deaf:
            raise RuntimeUnavailable("between two turns")
        await super().steer(ref, message, key=key)


@pytest.mark.requirement("courier:steer-busy", "delivery:deferred-goes-on")
def test_a_parent_that_takes_nothing_now_is_asked_again(tmp_path: Path) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        deaf = DeafRuntime(world.clock)
        await world.crash()
        await world.boot(deaf)
        runtimes["scripted"], deaf.deaf = deaf, True
        parent = await leading(world)
        child = await world.spawn_child(parent)
        waiting = await world.until(child, Phase.ANNOUNCE_DEFERRED)
        assert [each.outcome for each in tries(waiting)] == [BUSY]
        deaf.deaf = False

        run = await world.until(child, Phase.COMPLETED, within_s=30)

        assert [each.outcome for each in tries(run)] == [BUSY, STEERED]
        assert len(deaf.steered) == 1

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier])


@pytest.mark.requirement("courier:steer", "children:appended")
def test_a_parent_that_takes_no_messages_finds_the_result_in_its_inbox(tmp_path: Path) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        runtimes["scripted"] = world.runtime
        parent = await leading(world)
        child = await world.until(await world.spawn_child(parent), Phase.COMPLETED)

        (record,) = tries(child)
        assert (record.outcome, record.phases) == (QUEUED, ("queue-internal",))
        session = (await world.run(parent)).session.first_key
        assert len(world.store.inbox(session, unconsumed=True)) == 1

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier], abilities=Abilities())


@pytest.mark.requirement("delivery:bubbles", "courier:steer", "delivery:bubbles-up")
def test_what_bubbles_up_is_steered_into_the_nearest_living_ancestor(tmp_path: Path) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        deaf = DeafRuntime(world.clock)
        await world.crash()
        await world.boot(deaf)
        runtimes["scripted"], deaf.deaf = deaf, True
        grandparent = await leading(world)
        parent = await world.spawn_child(grandparent, "hang")
        await world.until(parent, Phase.RUNNING)
        child = await world.spawn_child(parent, "quick")
        await world.until(child, Phase.ANNOUNCE_DEFERRED)
        await world.clock.result(world.engine.control.cancel(parent, by="me"))
        await world.until(parent)
        deaf.deaf = False

        run = await world.until(child, Phase.COMPLETED)

        inboxes = [(await world.run(each)).session.first_key for each in (parent, grandparent)]
        assert [each.target for each in tries(run)] == inboxes
        assert [each.outcome for each in tries(run)] == [BUSY, STEERED]
        assert [event.reader for event in consumptions(world, child)] == inboxes[1:]

    in_world(tmp_path, scenario, max_spawn_depth=3, couriers=[courier])


@pytest.mark.requirement("courier:idempotency-key", "recovery:goes-on")
def test_steered_right_before_a_crash_it_comes_again_under_the_same_key_and_is_one_message(
    tmp_path: Path,
) -> None:
    courier, runtimes = steering()

    async def scenario(world: World) -> None:
        runtimes["scripted"] = world.runtime
        parent = await leading(world)
        child = await world.spawn_child(parent, "slow")
        await world.until(child, Phase.RUNNING)
        await world.clock.advance(9)
        steer = world.runtime.steer

        async def steer_and_hold(ref: AttemptRef, message: str, *, key: str) -> None:
            await steer(ref, message, key=key)
            world.hold_commits()

        world.runtime.steer = steer_and_hold  # type: ignore[method-assign]
        await world.clock.advance(5)
        assert len(world.runtime.steered) == 1
        assert consumptions(world, child) == []
        world.runtime.steer = steer  # type: ignore[method-assign]
        await world.restart()
        await world.until(child, Phase.COMPLETED)

        assert len(world.runtime.steered) == 2
        played = world.runtime._attempts[(await world.run(parent)).attempt_id]
        assert list(played.messages) == [announcement_id(child)]
        assert len(consumptions(world, child)) == 1

    in_world(tmp_path, scenario, max_spawn_depth=2, couriers=[courier])


# -- couriers and readers ------------------------------------------------------------------------


class SlowCourier:
    """Is under way until the test says how it went."""

    name = "direct"

    def __init__(self) -> None:
        self.begun = 0
        self.outcome: asyncio.Future[DeliveryOutcome]

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        return requester is None

    async def deliver(self, run: Run, message: Message, requester: Run | None) -> DeliveryOutcome:
        self.begun += 1
        self.outcome = asyncio.get_running_loop().create_future()
        return await self.outcome


@pytest.mark.requirement("delivery:one-channel-at-a-time", "delivery:consumed-once")
def test_while_a_courier_carries_it_no_reader_is_offered_it_and_afterwards_none_needs_it(
    tmp_path: Path,
) -> None:
    courier = SlowCourier()

    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id)
        await world.clock.idle()
        assert courier.begun == 1
        assert await world.engine.mailbox.offer_inbox(ME, reader="r") == ()
        found = await world.engine.mailbox.wait([run_id], session=ME, timeout_s=0, reader="r")
        assert ([run.id for run in found.completed], found.offered) == ([run_id], ())

        courier.outcome.set_result(DIRECT)
        await world.until(run_id, Phase.COMPLETED)

        assert await world.engine.mailbox.offer_inbox(ME, reader="r") == ()
        assert [event.path for event in consumptions(world, run_id)] == [DeliveryPath.DIRECT]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:one-channel-at-a-time")
def test_when_a_courier_fails_readers_get_it_at_once(tmp_path: Path) -> None:
    courier = SlowCourier()

    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id)
        waiting = asyncio.ensure_future(
            world.engine.mailbox.wait([], session=ME, timeout_s=300, reader="r")
        )
        await world.clock.idle()
        assert not waiting.done()
        begun = world.clock.now_ms()
        courier.outcome.set_result(REFUSED)

        found = await world.clock.result(waiting)

        assert found.offered == (announcement_id(run_id),)
        assert world.clock.now_ms() - begun < 1_000

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:one-channel-at-a-time", "delivery:consumed-once")
@pytest.mark.parametrize("by_id", [True, False])
def test_whoever_holds_the_line_is_told_by_its_wait_and_not_by_a_courier_too(
    tmp_path: Path, *, by_id: bool
) -> None:
    courier = FakeCourier("direct", DIRECT)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        wanted = [run_id] if by_id else []
        found = await world.clock.result(
            world.engine.mailbox.wait(wanted, session=ME, timeout_s=60, reader="r")
        )
        assert found.offered == (announcement_id(run_id),)
        await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader="r"))
        run = await world.until(run_id, Phase.COMPLETED)

        assert courier.carried == []
        assert BUSY in [each.outcome for each in tries(run)]
        assert [event.reader for event in consumptions(world, run_id)] == ["r"]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:one-channel-at-a-time", "delivery:offer-lease")
def test_what_a_reader_was_offered_and_never_acknowledged_a_courier_carries_later(
    tmp_path: Path,
) -> None:
    courier = FakeCourier("direct", DIRECT)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        found = await world.clock.result(
            world.engine.mailbox.wait([run_id], session=ME, timeout_s=60, reader="dead")
        )
        assert len(found.offered) == 1
        begun = world.clock.now_ms()
        run = await world.until(run_id, Phase.COMPLETED)

        assert courier.carried == [announcement_id(run_id)]
        assert 60_000 <= world.clock.now_ms() - begun <= 180_000
        assert tries(run)[-1].outcome == DIRECT
        assert tries(run)[-1].route_mode == "bound"

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("delivery:one-channel-at-a-time")
def test_a_late_acknowledgement_beside_a_courier_is_one_consumption(tmp_path: Path) -> None:
    courier = SlowCourier()

    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id)
        await world.clock.idle()
        message = announcement_id(run_id)
        assert (
            await world.clock.result(world.engine.mailbox.acknowledge([message], reader="late"))
            == 1
        )
        courier.outcome.set_result(DIRECT)
        await world.clock.idle()

        assert [event.reader for event in consumptions(world, run_id)] == ["late"]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("courier:timeout")
def test_a_courier_that_never_ends_is_a_failed_try_and_the_row_stays(tmp_path: Path) -> None:
    courier = SlowCourier()

    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id)
        due_s = asyncio.get_running_loop().time() + 10
        while (run := await world.run(run_id)).phase is not Phase.ANNOUNCE_DEFERRED:
            assert asyncio.get_running_loop().time() < due_s
            await asyncio.sleep(0.01)

        error = "courier direct did not end within announce_timeout_ms = 50"
        assert [each.outcome for each in tries(run)] == [
            DeliveryFailed(retryable=True, error=error)
        ]
        assert len(await world.engine.mailbox.offer_inbox(ME, reader="r")) == 1

    in_world(tmp_path, scenario, couriers=[courier], announce_timeout_ms=50)


class Unsure(FakeCourier):
    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        raise LookupError(target)


@pytest.mark.requirement("courier:broken")
@pytest.mark.parametrize("kind", [Unsure, FakeCourier])
def test_a_courier_that_breaks_when_it_is_asked_or_has_no_name_is_passed_over(
    tmp_path: Path, kind: type[FakeCourier]
) -> None:
    courier = kind("direct", DIRECT)

    async def scenario(world: World) -> None:
        del courier.name
        run = await world.until(await world.spawn(), Phase.COMPLETED)

        assert [each.outcome for each in tries(run)] == [QUEUED]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("courier:broken", "delivery:giveup-keeps-result")
@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (DeliveryFailed(retryable=False, error="gone"), "gone"),
        ("sent", "courier direct returned 'sent', no DeliveryOutcome"),
    ],
)
def test_what_a_courier_refuses_for_good_or_no_outcome_at_all_is_given_up_at_once_and_listed(
    tmp_path: Path, returned: Any, error: str
) -> None:
    courier = FakeCourier("direct", returned)

    async def scenario(world: World) -> None:
        run = await world.until(await world.spawn(), Phase.COMPLETED_GIVEUP)

        assert [each.outcome for each in tries(run)] == [
            DeliveryFailed(retryable=False, error=error)
        ]
        assert [each.kind for each in await world.engine.queries.attention(ME)] == ["undelivered"]
        assert len(world.store.inbox(ME, unconsumed=True)) == 1

    in_world(tmp_path, scenario, couriers=[courier])


# -- readers that come late ----------------------------------------------------------------------
