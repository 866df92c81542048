"""An owner whose right ended by its own clock answers nothing from memory."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

import pytest
from tests.engine.fake_clock import FakeClock
from tests.engine.world import HeldCommit, T, TroubledStore, World, in_world
from tests.runtimes.attempt_harness import until_async

from subagents.domain.cluster.partitioning import TRIES
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import Phase
from subagents.domain.schedules.schedule import Schedule
from subagents.engine.kernel.ownership import HASTE, THREADS, Ownership, in_line
from subagents.engine.kernel.system_clock import SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.errors import Fenced, StoreUnavailable

HELD_S = 6.0
MARGIN_S = 1.5
"""Before the end of a right of so long, a node ends its workers."""


class Lender:
    """A store's ``renew``: it lends for so long, raises, or takes its time."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.held_s: float | None = HELD_S
        self.error: Exception | None = None
        self.takes_s = 0.0
        self.asked = 0

    def renew(self) -> float | None:
        self.asked += 1
        self.clock.jump(self.takes_s)
        if self.error is not None:
            raise self.error
        return self.held_s


class LendingStore(TroubledStore):
    """A store whose right ends by itself."""

    def __init__(self, path: Path, lender: Lender) -> None:
        super().__init__(path)
        self._lender = lender

    def renew(self) -> float | None:
        return self._lender.renew()


async def lent(world: World, held_s: float | None = HELD_S) -> Lender:
    """Boot the world anew, on a store that lends for so long."""
    lender = Lender(world.clock)
    lender.held_s = held_s
    await world.crash()
    await world.boot(store=LendingStore(world.path, lender))
    return lender


def refuses(world: World) -> bool:
    try:
        world.engine.require_ownership()
    except (StoreUnavailable, Fenced):
        return True
    return False


class SlowStore(LendingStore):
    """One that takes longer to open than its right holds, and to load as long as it is told to."""

    is_loading = False

    def open(self, owner: str) -> int:
        self._lender.clock.jump(2 * HELD_S)
        return super().open(owner)

    def load_schedules(self) -> Sequence[Schedule]:
        if self.is_loading:
            raise HeldCommit
        return super().load_schedules()


@pytest.mark.requirement("ownership:lapse", "cluster:daemon-killed")
async def test_the_right_counts_from_the_end_of_a_long_opening(world: World) -> None:
    await world.crash()
    await world.boot(store=SlowStore(world.path, Lender(world.clock)))

    assert not refuses(world)


@pytest.mark.requirement("ownership:lapse", "cluster:daemon-killed")
async def test_the_right_is_renewed_while_what_is_open_is_loaded(world: World) -> None:
    await world.crash()
    lender = Lender(world.clock)
    store = SlowStore(world.path, lender)
    store.is_loading = True
    booting = asyncio.ensure_future(world.boot(store=store))
    for _ in range(3 * TRIES):
        await world.clock.advance(HELD_S / TRIES)
        assert not refuses(world)

    assert lender.asked > 2 * TRIES
    store.is_loading = False
    world.let_commits_go()
    await booting
    assert not refuses(world)


@pytest.mark.requirement("ownership:lapse")
def test_what_cannot_be_renewed_ends_by_the_owners_clock_and_comes_back_with_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        lender = await lent(world)
        await world.clock.advance(60)
        assert not refuses(world)
        lender.error = StoreUnavailable("no answer")
        await world.clock.advance(HELD_S)

        with pytest.raises(StoreUnavailable, match="for 6 s the store could not be asked"):
            world.engine.require_ownership()
        assert world.engine.degraded is not None
        lender.error = None
        await world.clock.advance(HELD_S / TRIES)
        assert not refuses(world)
        assert world.engine.degraded is None

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("ownership:lapse")
@pytest.mark.parametrize("passes", [FakeClock.jump, FakeClock.suspend])
async def test_who_was_frozen_past_its_right_knows_it_before_anything_else_happens(
    world: World, passes: Callable[[FakeClock, float], None]
) -> None:
    await lent(world)
    await world.clock.advance(HELD_S / TRIES)
    passes(world.clock, HELD_S - 0.1)
    assert not refuses(world)
    passes(world.clock, 0.1)

    assert refuses(world)


@pytest.mark.requirement("recovery:fenced", "ownership:idle")
def test_an_owner_with_nothing_to_do_learns_that_its_store_was_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        lender, told = await lent(world), asyncio.Event()
        world.engine.on_fenced(told.set)
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        await world.clock.advance(1)
        commits = world.store.commits
        lender.error = Fenced("epoch 2 is over")
        await world.clock.until(told.is_set, within_s=HELD_S / TRIES)

        with pytest.raises(Fenced, match="epoch 2 is over"):
            world.engine.require_ownership()
        asked = lender.asked
        await world.clock.advance(60)
        assert (lender.asked, world.store.commits) == (asked, commits)
        assert world.runtime.stopped == []

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("ownership:lapse", "commit:failure-recovers")
def test_the_right_is_renewed_while_commits_fail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await lent(world)
        world.store.failures_left = 20
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("quick")
        await world.clock.advance(2 * HELD_S)
        assert world.store.failures_left, "it still fails"

        assert not refuses(world)
        await world.clock.until(lambda: world.engine.degraded is None, within_s=60)
        assert (await world.until(await world.spawn("quick"))).outcome == OK

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("ownership:lock")
async def test_the_right_to_a_file_ends_with_the_process_and_is_asked_for_once(
    world: World,
) -> None:
    assert world.store.renew() is None
    lender = await lent(world, None)
    await world.clock.advance(600)
    world.clock.jump(86_400)

    assert (lender.asked, refuses(world)) == (1, False)


@pytest.mark.requirement("ownership:lapse")
def test_the_right_counts_from_before_the_store_was_asked() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        lender = Lender(clock)

        async def off_loop(work: Callable[[], T]) -> T:
            return work()

        async def promised() -> bool:
            return False

        found = Ownership(
            lender,  # type: ignore[arg-type]  # it renews alone
            off_loop,
            clock,
            lambda _: None,
            extend=lambda _: None,
            all_promise=promised,
            own_loop=in_line,
        )
        found.given(HELD_S, asked_ms=clock.elapsed_ms())
        lender.takes_s = 4.0
        running = asyncio.ensure_future(found.run())
        await clock.advance(HELD_S / TRIES)
        clock.jump(1.9)
        assert found.lapse is None
        clock.jump(0.1)
        assert found.lapse is not None
        running.cancel()

    asyncio.run(scenario())


class Workers:
    """What a node's workers are told, and what its peers say."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.lender = Lender(clock)
        self.until_ms = 0
        self.on_extend: Callable[[], None] = lambda: None
        self.all_promise = False

    def extend(self, until_ms: int) -> None:
        self.until_ms = until_ms
        self.on_extend()

    async def promised(self) -> bool:
        return self.all_promise

    @property
    def left_s(self) -> float:
        return (self.until_ms - self.clock.elapsed_ms()) / 1000

    def ownership(self, until: Callable[[], Awaitable[object]] | None = None) -> Ownership:
        """One that renews when ``until`` says so."""

        async def off_loop(work: Callable[[], T]) -> T:
            if until is not None and work == self.lender.renew:
                await until()
            return work()

        found = Ownership(
            self.lender,  # type: ignore[arg-type]  # it renews alone
            off_loop,
            self.clock,
            lambda _: None,
            extend=self.extend,
            all_promise=self.promised,
            own_loop=in_line,
        )
        found.given(HELD_S, asked_ms=self.clock.elapsed_ms())
        return found


@pytest.mark.requirement("cluster:workers-end")
async def test_workers_of_a_node_that_is_cut_off_end_with_its_right_unless_all_others_are_too() -> (
    None
):
    workers = Workers(FakeClock())
    running = asyncio.ensure_future(workers.ownership().run())
    await workers.clock.advance(HELD_S)
    assert workers.left_s > HELD_S / 2
    workers.lender.error = StoreUnavailable("cut off")
    workers.all_promise = True
    await workers.clock.advance(10 * HELD_S)
    assert workers.left_s > HELD_S / 2  # the store is away for everybody
    workers.all_promise = False
    await workers.clock.advance(HELD_S)
    assert workers.left_s <= 0
    running.cancel()


@pytest.mark.requirement("cluster:workers-end")
async def test_the_workers_deadline_is_moved_on_before_anything_may_begin_again() -> None:
    workers = Workers(FakeClock())
    ownership = workers.ownership()
    workers.lender.error = StoreUnavailable("away")
    running = asyncio.ensure_future(ownership.run())
    await workers.clock.advance(2 * HELD_S)
    workers.lender.error = None
    found = list[bool]()
    workers.on_extend = lambda: found.append(ownership.lapse is None)
    await workers.clock.advance(HELD_S / HASTE)
    assert found == [False]
    assert ownership.lapse is None
    running.cancel()


@pytest.mark.requirement("cluster:workers-end", "cluster:outage")
async def test_a_server_that_stands_still_is_away_though_no_question_to_it_ever_fails() -> None:
    workers = Workers(FakeClock())
    thawed = asyncio.Event()
    ownership = workers.ownership(until=thawed.wait)
    workers.all_promise = True
    running = asyncio.ensure_future(ownership.run())
    await workers.clock.advance(10 * HELD_S)
    assert workers.lender.asked == 0
    assert ownership.promise()
    assert ownership.lapse is not None
    assert workers.left_s > HELD_S / 2  # it is so for everybody
    thawed.set()
    await workers.clock.advance(HELD_S / 100)
    assert workers.left_s > HELD_S / 2  # though what is answered now was asked long ago
    await workers.clock.advance(HELD_S / 2)
    assert ownership.lapse is None
    assert not ownership.promise()
    running.cancel()


@pytest.mark.requirement("cluster:workers-end", "cluster:outage")
def test_the_workers_deadline_is_moved_on_while_a_question_hangs_in_its_thread() -> None:
    thawed = threading.Event()

    class Still(Lender):
        def renew(self) -> float | None:
            thawed.wait()
            return self.held_s

    async def promised() -> bool:
        return True

    async def scenario() -> None:
        clock, moved = SystemClock(), asyncio.Event()
        loop, threads = asyncio.get_running_loop(), DaemonThreads("ownership", threads_max=THREADS)

        def extend(_until_ms: int) -> None:
            loop.call_soon_threadsafe(moved.set)

        ownership = Ownership(
            Still(FakeClock()),  # type: ignore[arg-type]  # it renews alone
            threads,
            clock,
            lambda _: None,
            extend=extend,
            all_promise=promised,
            own_loop=in_line,
        )
        ownership.given(0.1, asked_ms=clock.elapsed_ms())
        running = asyncio.ensure_future(ownership.run())
        async with asyncio.timeout(20):
            await moved.wait()
        running.cancel()
        thawed.set()
        threads.close()

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:workers-end", "cluster:outage")
async def test_workers_live_on_though_the_last_node_learns_of_an_outage_almost_too_late() -> None:
    workers = Workers(FakeClock())
    clock, never = workers.clock, asyncio.Event()
    begun_ms = clock.elapsed_ms()
    running = asyncio.ensure_future(workers.ownership(until=never.wait).run())
    # Another one renewed as the server came to a halt, and asks it again only then.
    others_know_s = 2 * HELD_S / TRIES + HELD_S / HASTE
    while clock.elapsed_ms() - begun_ms < others_know_s * 1000:
        await clock.advance(HELD_S / (2 * HASTE))
    assert workers.until_ms == 0
    workers.all_promise = True
    while clock.elapsed_ms() - begun_ms < (HELD_S - MARGIN_S) * 1000:
        await clock.advance(HELD_S / (2 * HASTE))
    assert workers.left_s > HELD_S / 2
    running.cancel()


@pytest.mark.requirement("cluster:workers-end", "cluster:outage")
async def test_who_promised_takes_nothing_over_before_it_held_its_right_for_a_whole_length() -> (
    None
):
    workers = Workers(FakeClock())
    ownership = workers.ownership()
    running = asyncio.ensure_future(ownership.run())
    await workers.clock.advance(2 * HELD_S)
    assert ownership.is_proven
    assert not ownership.promise()  # it can ask the store
    assert ownership.is_proven
    workers.lender.error = StoreUnavailable("away")
    await workers.clock.advance(HELD_S / 2)
    assert ownership.promise()
    workers.lender.error = None
    await workers.clock.advance(HELD_S * 0.9)
    assert ownership.lapse is None
    assert not ownership.is_proven
    await workers.clock.advance(HELD_S * 0.2)
    assert ownership.is_proven
    running.cancel()


@pytest.mark.requirement("cluster:outage")
async def test_a_right_that_lapsed_is_proven_only_a_whole_length_after_it_came_back() -> None:
    workers = Workers(FakeClock())
    ownership = workers.ownership()
    running = asyncio.ensure_future(ownership.run())
    await workers.clock.advance(2 * HELD_S)
    workers.lender.error = StoreUnavailable("away")
    await workers.clock.advance(2 * HELD_S)
    workers.lender.error = None
    await workers.clock.advance(HELD_S / TRIES)
    assert ownership.lapse is None
    assert not ownership.is_proven
    await workers.clock.advance(HELD_S)
    assert ownership.is_proven
    running.cancel()


class Renewals:
    """A right that is renewed by the real clock, on a loop of its own, until the block ends."""

    def __init__(self, held_s: float) -> None:
        self.held_s = held_s
        self.error: Exception | None = None
        self.asked = threading.Semaphore(0)
        self.fenced: list[tuple[str, threading.Thread]] = []
        self.promised_on: set[threading.Thread] = set()
        self.clock = SystemClock()
        self._threads = DaemonThreads("ownership", threads_max=THREADS)
        self.ownership = Ownership(
            self,  # type: ignore[arg-type]  # it renews alone
            self._threads,
            self.clock,
            lambda error: self.fenced.append((str(error), threading.current_thread())),
            extend=lambda _: None,
            all_promise=self._promised,
            own_loop=on_own_loop,
        )
        self.ownership.given(held_s, asked_ms=self.clock.elapsed_ms())

    def renew(self) -> float:
        self.asked.release()
        if self.error is not None:
            raise self.error
        return self.held_s

    async def _promised(self) -> bool:
        self.promised_on.add(threading.current_thread())
        return False

    async def __aenter__(self) -> Self:
        self._running = asyncio.ensure_future(self.ownership.run())
        await asyncio.sleep(0)  # it begins
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.wait({self._running})
        self._threads.close()


@pytest.mark.requirement("ownership:lapse", "cluster:busy-machine")
async def test_a_loop_that_is_busy_for_longer_than_its_right_holds_does_not_lose_it() -> None:
    async with Renewals(2.0) as renewals:
        begun_ms = renewals.clock.elapsed_ms()
        while renewals.clock.elapsed_ms() - begun_ms < 2_400:
            assert renewals.asked.acquire(timeout=20)  # our loop does nothing else
        assert renewals.ownership.lapse is None


@pytest.mark.requirement("ownership:lapse")
async def test_a_loop_that_hangs_loses_its_right_and_has_it_again_when_it_turns() -> None:
    async with Renewals(0.1) as renewals:
        hangs_at_ms = renewals.clock.elapsed_ms()
        while renewals.ownership.lapse is None:
            renewals.asked.acquire(timeout=0.01)
            assert renewals.clock.elapsed_ms() - hangs_at_ms < 20_000

        await until_async("it is renewed", lambda: renewals.ownership.lapse is None)


@pytest.mark.requirement("recovery:fenced", "cluster:outage")
async def test_peers_are_asked_and_a_loss_is_told_on_the_loop_that_answers() -> None:
    async with Renewals(0.2) as renewals:
        renewals.error = StoreUnavailable("away")
        await until_async("peers are asked", lambda: renewals.promised_on)
        renewals.error = Fenced("epoch 2 is over")
        await until_async("it is told", lambda: renewals.fenced)
    ours = threading.current_thread()
    assert renewals.promised_on == {ours}
    assert renewals.fenced == [("epoch 2 is over", ours)]
