"""The daemon's place in the simulation: it lives, crashes, and is started again on the same file.

Callers reach it with ``call``, as over a socket: requests and answers take time, and a crash
between them leaves the caller with ``DaemonUnreachable`` and no idea what was done.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.simulation.delivery_channels import Channels
from tests.simulation.invariants import Judge
from tests.simulation.outside_world import (
    Faults,
    SeededVerifier,
    SimulatedCourier,
    SimulatedRuntime,
    World,
)
from tests.simulation.virtual_loop import (
    Process,
    VirtualClock,
    VirtualLoop,
    context_of,
)

from subagents.config.settings import Settings
from subagents.couriers.steer_courier import SteerCourier
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId
from subagents.engine.engine import Engine
from subagents.engine.parts import Adapters
from subagents.errors import DaemonUnreachable, StoreUnavailable, SubagentsError
from subagents.ports import Batch
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.track_record_files import PerformanceFiles
from subagents.store.transcripts.transcript_files import TranscriptFiles

T = TypeVar("T")

BASE32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
ABLE: Final = Abilities(
    survives_daemon=True, steer=True, resume=True, scope_tools=True, interrupt=True
)
PLAIN: Final = Abilities(survives_daemon=True)


class Crashed(BaseException):
    """Raised inside a commit at the instant of the crash; nothing may catch it."""


class SeededIds:
    """See ``ports.Ids``; the same seed gives the same ids."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def run_id(self) -> RunId:
        return RunId("r-" + "".join(self._rng.choices(BASE32, k=10)))

    def session_uuid(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def token_secret(self) -> str:
        return "".join(self._rng.choices(BASE32, k=43))


class FaultyStore(SqliteStore):
    """The real store on a real file; commits fail or are torn as the seed says."""

    def __init__(self, path: Path, host: "Host") -> None:
        super().__init__(path)
        self._host = host
        self._was_injected = False

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        super()._write(connection, batch)
        if self._host.happens(self._host.faults.crash_in_commit):
            raise Crashed
        if self._host.happens(self._host.faults.commit_fails):
            self._was_injected = True
            raise sqlite3.OperationalError("disk I/O error (simulated)")

    def commit(self, batch: Batch) -> None:
        self._was_injected = False
        try:
            super().commit(batch)
        except StoreUnavailable as error:
            if not self._was_injected:
                self._host.judge.fail("every commit can be written", error.message)
            raise
        if self._host.happens(self._host.faults.commit_unclear):
            raise StoreUnavailable("the answer of the disk was lost (simulated)")

    def has_room(self) -> bool:
        return True


class Life(Process):
    """One run of the daemon, from its start to its crash or stop."""

    def __init__(self, number: int, engine: Engine, store: FaultyStore) -> None:
        self.number = number
        self.engine = engine
        self.store = store
        self.is_serving = False
        self.calls: dict[asyncio.Future[Any], None] = {}
        """Answers that callers wait for, in the order of the calls."""


class Host:
    """Starts the daemon, crashes it, starts it again; see ``world.Surroundings``.

    Args:
        template: A migrated, empty database.
        directory: Where this simulation's file lies.
    """

    def __init__(
        self,
        *,
        seed: int,
        loop: VirtualLoop,
        clock: VirtualClock,
        world: World,
        judge: Judge,
        faults: Faults,
        settings: Settings,
        template: Path,
        directory: Path,
    ) -> None:
        self.loop, self.clock, self.world, self.judge = loop, clock, world, judge
        self.faults, self.settings = faults, settings
        self.is_calm = False
        self.crashes = 0
        self.stops = 0
        self.life: Life | None = None
        self._rng = random.Random(f"{seed}:host")
        self._ids = SeededIds(random.Random(f"{seed}:ids"))
        self.channels = Channels(judge, clock, can_tell_time=not faults.clock_jumps)
        self._path = directory / "run.db"
        shutil.copyfile(template, self._path)
        self._is_down = asyncio.Event()
        self._is_up = asyncio.Event()
        loop.alarm = self.crash
        judge.look_up = lambda run_id: self.reader().run(run_id)

    @property
    def life_number(self) -> int:
        """See ``delivery_channels.Daemon``."""
        return -1 if self.life is None else self.life.number

    @property
    def has_failed(self) -> bool:
        """See ``delivery_channels.Daemon``."""
        return self.life is None or self.life.engine._parts.ledger.failure is not None

    def happens(self, probability: float) -> bool:
        """Draw a fault; never in the calm at the end."""
        return not self.is_calm and probability > 0 and self._rng.random() < probability

    async def hazard(self) -> None:
        """See ``world.Surroundings.hazard``."""
        if self.happens(0.3):
            await asyncio.sleep(self._rng.choice((0.0, 0.01, 0.5)))
        if self.happens(self.faults.crash_in_effect):
            self.crash()
            await self.loop.create_future()  # this process runs no further

    # -- lives -----------------------------------------------------------------------------

    async def live(self) -> None:
        """Keep a daemon alive for ever, over all its crashes."""
        while True:
            self._is_down.clear()
            life = self._new_life()
            self.life = life
            context = context_of(life)
            self.loop.create_task(self._start(life), name="start", context=context)
            self._plan_crash()
            await self._is_down.wait()
            self._is_up.clear()
            self.life = None
            downtime_s = 0.01 if self.is_calm else self._rng.choice((0.01, 1.0, 5.0, 45.0))
            await asyncio.sleep(downtime_s)

    def _plan_crash(self) -> None:
        mean = self.faults.crash_steps
        if mean and not self.is_calm:
            self.loop.alarm_at_step = self.loop.steps + 1 + int(self._rng.expovariate(1 / mean))
        else:
            self.loop.alarm_at_step = None

    def _new_life(self) -> Life:
        store = FaultyStore(self._path, self)
        verifier = SeededVerifier(self.world, self)
        runtimes = {
            "able": SimulatedRuntime("able", ABLE, self.world, self),
            "plain": SimulatedRuntime("plain", PLAIN, self.world, self),
        }
        engine = Engine(
            Adapters(
                store=store,
                runtimes=runtimes,
                couriers={
                    "direct": [SimulatedCourier("direct", self.world, self)],
                    "steer": [SimulatedCourier("steer", self.world, self), SteerCourier(runtimes)],
                },
                clock=self.clock,
                ids=self._ids,
                off_loop=self.off_loop,
                verifier=verifier,
                settings=self.settings,
                progress_log=ProgressFiles(self._path.parent / "progress"),
                results=ResultFiles(self._path.parent / "results"),
                transcripts=self.transcripts(),
                performance=self.records(),
                owner="simulated",
            )
        )
        engine._parts.ledger.on_commit(self._committed)
        engine._parts.ledger.on_failure(self._commit_failed)
        return Life(self.crashes + self.stops, engine, store)

    async def _start(self, life: Life) -> None:
        try:
            await life.engine.start()
        except SubagentsError as error:
            self.judge.fail("a restart always succeeds", repr(error))
            return
        self.judge.reload(self.reader())
        self.judge.note(f"{self.loop.time():.3f} life {life.number} serves")
        life.is_serving = True
        self._is_up.set()

    def reader(self) -> SqliteStore:
        """The file as it is now, read by nobody's engine."""
        reader = SqliteStore(self._path)
        reader.open_readonly()
        return reader

    def records(self) -> PerformanceFiles:
        """What was written of ended attempts; another object for each life."""
        return PerformanceFiles(self._path.parent / "performance")

    def transcripts(self) -> TranscriptFiles:
        """What the workers said; another object for each life."""
        return TranscriptFiles(self._path.parent / "transcripts")

    def crash(self) -> None:
        """``kill -9`` of the daemon, now."""
        if self.life is not None and not self.life.is_dead and not self.is_calm:
            self._die(self.life, "crash")
            self.crashes += 1

    def _die(self, life: Life, how: str) -> None:
        self.judge.note(f"{self.loop.time():.3f} {how} of life {life.number}")
        life.is_dead = True
        life.is_serving = False
        life.store.close()
        self._hang_up(life)
        self._is_down.set()

    def _hang_up(self, life: Life) -> None:
        calls, life.calls = life.calls, {}
        for answer in calls:
            if not answer.done():
                answer.set_exception(DaemonUnreachable("the connection broke"))
                answer.exception()

    async def stop(self) -> None:
        """An orderly stop and a new start, as at an upgrade."""
        life = self.life
        if life is None or not life.is_serving or self.is_calm:
            return
        life.is_serving = False
        self._hang_up(life)
        stopped = self.loop.create_future()
        task = self.loop.create_task(life.engine.stop(), context=context_of(life))
        task.add_done_callback(lambda _: _finish(stopped, None))
        life.calls[stopped] = None  # a crash in the middle of the stop ends the waiting
        try:
            await stopped
        except DaemonUnreachable:
            return
        self.stops += 1
        self._die(life, "stop")

    def _committed(self, batch: Batch) -> None:
        self.judge.on_commit(batch)

    def _commit_failed(self, error: StoreUnavailable) -> None:
        self.judge.note(f"{self.loop.time():.3f} commit failed: {error.message}")
        # Nothing is written until the engine has read the file again.
        self.judge.reload(self.reader())

    def off_loop(self, work: Callable[[], T]) -> Awaitable[T]:
        """See ``ports.OffLoop``: in line, after a while, and the answer comes after a while."""
        future: asyncio.Future[T] = self.loop.create_future()
        self.loop.call_later(self._disk_s(), self._work, work, future)
        return future

    def _disk_s(self) -> float:
        choice = self._rng.random()
        if self.is_calm or choice < 0.6:
            return 0.0
        return 0.001 if choice < 0.97 else self.faults.slow_disk_s

    def _work(self, work: Callable[[], T], future: "asyncio.Future[T]") -> None:
        if future.cancelled():
            return
        try:
            result = work()
        except Crashed:
            self.crash()
        except Exception as error:  # noqa: BLE001 - belongs to the caller, whatever it is
            self.loop.call_later(self._disk_s(), _fail, future, error)
        else:
            self.loop.call_later(self._disk_s(), _finish, future, result)

    # -- callers ---------------------------------------------------------------------------

    async def call(
        self,
        request: Callable[[Engine], Coroutine[Any, Any, T]],
        *,
        patience_s: float | None = None,
    ) -> T:
        """Ask the living daemon.

        Args:
            request: What to ask; runs inside the daemon.
            patience_s: The caller is killed after so long: the daemon sees the line go dead.

        Raises:
            DaemonUnreachable: Nobody answers, or nobody any more: it may have been done.
            SubagentsError: As the engine refused it.
        """
        await asyncio.sleep(self._rng.random() * 0.01)
        life = self.life
        if life is None or not life.is_serving:
            raise DaemonUnreachable("no daemon answers")
        answer: asyncio.Future[T] = self.loop.create_future()
        life.calls[answer] = None
        work = _serve(request(life.engine), answer, self.judge)
        serving = self.loop.create_task(work, context=context_of(life))
        try:
            async with asyncio.timeout(patience_s):
                result = await answer
        except TimeoutError:
            serving.cancel()
            raise DaemonUnreachable("the caller is gone") from None
        finally:
            life.calls.pop(answer, None)
        await asyncio.sleep(self._rng.random() * 0.01)
        if life.is_dead:
            raise DaemonUnreachable("the answer was lost")
        return result

    async def until_up(self) -> None:
        """Return when a daemon serves."""
        await self._is_up.wait()


async def _serve(work: Coroutine[Any, Any, T], answer: "asyncio.Future[T]", judge: Judge) -> None:
    try:
        result = await work
    except SubagentsError as error:
        if error.code in {"illegal_transition", "corrupt_state", "already_running"}:
            judge.fail("callers never see a broken promise inside", repr(error))
        _fail(answer, error)
    except Exception as error:  # noqa: BLE001 - a caller must never see one
        judge.fail("callers never see a broken promise inside", repr(error))
    else:
        _finish(answer, result)


def _finish(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[T]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()
