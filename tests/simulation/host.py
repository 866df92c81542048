"""The daemon's place in the simulation: it lives, crashes, and is started again on the same file.

Callers reach it with ``call``, as over a socket: requests and answers take time, and a crash
between them leaves the caller with ``DaemonUnreachable`` and no idea what was done.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.simulation.delivery_channels import Channels
from tests.simulation.invariants import ALL, Judge
from tests.simulation.machine_disk import MachineDisk
from tests.simulation.outside_world import (
    Faults,
    Injected,
    OutOfMemory,
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

from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.couriers.steer_courier import SteerCourier
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId, attempt_id
from subagents.engine.engine import Adapters, Engine
from subagents.engine.kernel.live_runs import Failure
from subagents.errors import DaemonUnreachable, Fenced, StoreUnavailable, SubagentsError
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.ports import Batch, RunFilter, RunLogs, Store
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.transcripts.transcript_files import TranscriptFiles

T = TypeVar("T")

SYNCHRONOUS_FULL: Final = 2
OLD_EPOCH_EVERY: Final = 8
"""In each so-manieth life an older one tries to write."""
BASE32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
ABLE: Final = Abilities(
    survives_daemon=True, steer=True, resume=True, scope_tools=True, interrupt=True
)
PLAIN: Final = Abilities(survives_daemon=True)


class Crashed(BaseException):
    """Raised inside a commit at the instant of the crash; nothing may catch it."""


class PowerCut(Crashed):
    """The same for the whole machine."""


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


def _refusal(text: str, code: int) -> sqlite3.OperationalError:
    """As SQLite raises it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class FaultyStore(SqliteStore):
    """The real store on a real file; commits fail or are torn as the seed says."""

    def __init__(self, path: Path, host: "Host") -> None:
        super().__init__(path)
        self._host = host
        self._was_injected = False

    def open(self, owner: str) -> int:
        self._check_full()
        epoch = super().open(owner)
        self._note_commit()
        self._host.note_torn()
        return epoch

    def probe(self) -> None:
        self._check_full()
        super().probe()
        self._note_commit()

    def prune(self, run_ids: Iterable[RunId]) -> None:
        ids = tuple(run_ids)
        self._check_full()
        self._host.judge.pruning(ids, self)
        super().prune(ids)
        self._note_commit()

    def _check_full(self) -> None:
        if self._host.disk.is_full:
            raise StoreUnavailable("the disk is full (simulated)")

    def _note_commit(self) -> None:
        if self._host.can_lose_power:
            (level,) = self._require_writer().execute("PRAGMA synchronous").fetchone()
            self._host.disk.database_committed(self._path, is_synced=level >= SYNCHRONOUS_FULL)

    def _borrow(self) -> sqlite3.Connection:
        if self._host.disk_happens(self._host.faults.reads_fail):
            raise StoreUnavailable("the database cannot be read (simulated)")
        return super()._borrow()

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> int:
        number = super()._write(connection, batch)
        if self._host.happens(self._host.faults.crash_in_commit):
            raise Crashed
        if self._host.disk.is_full:
            self._was_injected = True
            raise _refusal("database or disk is full (simulated)", sqlite3.SQLITE_FULL)
        if self._host.happens(self._host.faults.commit_fails):
            self._was_injected = True
            raise _refusal("disk I/O error (simulated)", sqlite3.SQLITE_IOERR)
        return number

    def commit(self, batch: Batch) -> int:
        self._was_injected = False
        try:
            number = super().commit(batch)
        except StoreUnavailable as error:
            if not self._was_injected:
                self._host.judge.fail("every commit can be written", error.message)
            raise
        if self._host.disk_happens(self._host.faults.power_loss_in_commit):
            raise PowerCut
        self._note_commit()
        if self._host.happens(self._host.faults.commit_unclear):
            raise StoreUnavailable("the answer of the disk was lost (simulated)")
        return number

    def has_room(self) -> bool:
        return not self._host.disk.is_full


class WatchedTranscripts(TranscriptFiles):
    """The real files; what is deleted is told."""

    def __init__(self, directory: Path, judge: Judge) -> None:
        super().__init__(directory)
        self._judge = judge

    def forget(self, run_id: RunId) -> None:
        self._judge.forgetting(run_id)
        super().forget(run_id)


class FaultyResults(ResultFiles):
    """The real files on the simulated disk, whose writes are not all by ``os.write``."""

    def __init__(self, directory: Path, disk: MachineDisk) -> None:
        super().__init__(directory)
        self._disk = disk

    def keep(
        self, run_id: RunId, name: str, pieces: Iterable[bytes], *, beside: Collection[str]
    ) -> int:
        return super().keep(run_id, name, self._checked(pieces), beside=beside)

    def _checked(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        for piece in pieces:
            self._disk.check_write()
            yield piece


class Life(Process):
    """One run of the daemon, from its start to its crash or stop."""

    def __init__(self, number: int, engine: Engine, store: Store) -> None:
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
        self._has_lost_power = False
        self.crashes = 0
        self.stops = 0
        self.life: Life | None = None
        self._rng = random.Random(f"{seed}:host")
        self._disk_rng = random.Random(f"{seed}:disk")
        """Of its own, so that what else happens in a seed stays as it was."""
        self._ids = SeededIds(random.Random(f"{seed}:ids"))
        self.channels = Channels(judge, clock, can_tell_time=not faults.clock_jumps)
        self._path = directory / "run.db"
        self._state = directory / "state"
        self._state.mkdir()
        shutil.copyfile(template, self._path)
        self.disk = MachineDisk(
            self._state,
            happens=self.disk_happens,
            rng=random.Random(f"{seed}:platters"),
        )
        self.disk.writes_fail = faults.writes_fail
        self.disk.is_watched = (
            self.can_lose_power or max(faults.writes_fail, faults.disk_full_s) > 0
        )
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
        return self.life is None or self.life.engine.ledger.failure is not None

    def happens(self, probability: float) -> bool:
        """Draw a fault; never in the calm at the end."""
        return not self.is_calm and probability > 0 and self._rng.random() < probability

    def disk_happens(self, probability: float) -> bool:
        """The same for what the disk and the memory do."""
        return not self.is_calm and probability > 0 and self._disk_rng.random() < probability

    @property
    def can_lose_power(self) -> bool:
        return self.faults.power_loss > 0 or self.faults.power_loss_in_commit > 0

    @property
    def can_start_fail(self) -> bool:
        """A daemon that finds its disk or its memory like this ends, and is started again."""
        faults = self.faults
        return faults.reads_fail > 0 or faults.disk_full_s > 0 or faults.memory_fails > 0

    def check_memory(self) -> None:
        """A place where an allocation may fail.

        Raises:
            OutOfMemory: It did.
        """
        if self.disk_happens(self.faults.memory_fails):
            raise OutOfMemory("simulated")

    async def fill_disk(self) -> None:
        """Fill it now and then, until somebody makes room."""
        rng, mean_s = self._disk_rng, self.faults.disk_full_s
        while mean_s and not self.is_calm:
            await asyncio.sleep(rng.expovariate(1 / mean_s))
            self.disk.is_full = not self.is_calm
            self.judge.note(f"{self.loop.time():.3f} the disk is full: {self.disk.is_full}")
            await asyncio.sleep(rng.choice((0.1, 3.0, 30.0)))
            self.disk.is_full = False

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
        store = self.new_store()
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
                    "steer": [
                        SimulatedCourier("steer", self.world, self),
                        SteerCourier(lambda run: runtimes.get(run.resolved.runtime)),
                    ],
                },
                clock=self.clock,
                ids=self._ids,
                off_loop=self.off_loop,
                verifier=verifier,
                settings=self.settings,
                logs=RunLogs(
                    allowed_calls=AllowedCallFile(
                        Paths.resolve({"SUBAGENTS_HOME": str(self._state)})
                    ),
                    environments=EnvironmentFiles(self._state / "environments"),
                    progress=ProgressFiles(self._state / "progress"),
                    results=FaultyResults(self._state / "results", self.disk),
                    transcripts=WatchedTranscripts(self._state / "transcripts", self.judge),
                ),
                state_dir=self._state / "performance",
                owner="simulated",
            )
        )
        engine.ledger.on_commit(self._committed)
        engine.ledger.on_failure(self._commit_failed)
        return Life(self.crashes + self.stops, engine, store)

    def new_store(self) -> Store:
        """The store of one life, not opened yet."""
        return FaultyStore(self._path, self)

    async def _start(self, life: Life) -> None:
        try:
            await life.engine.start()
        except (StoreUnavailable, Injected) as error:
            if not self.can_start_fail:
                self.judge.fail("a restart always succeeds", repr(error))
            self._die(life, "failed start")
            self.crashes += 1
            return
        except SubagentsError as error:
            self.judge.fail("a restart always succeeds", repr(error))
            return
        self.judge.reload(self.reader())
        self._try_old_epoch(life)
        self.judge.note(f"{self.loop.time():.3f} life {life.number} serves")
        life.is_serving = True
        self._is_up.set()

    def _try_old_epoch(self, life: Life) -> None:
        """A daemon that was given up, and lives on without its lock, must write nothing."""
        if life.number % OLD_EPOCH_EVERY:
            return
        old = self.old_store(life)
        try:
            old.commit(Batch())
        except Fenced:
            return
        finally:
            old.close()
        self.judge.fail("an old daemon writes nothing", f"before life {life.number}")

    def old_store(self, life: Life) -> Store:
        """That of a daemon which was given up before this life, and still has it open."""
        old = SqliteStore(self._path)
        assert isinstance(life.store, FaultyStore)
        old._writer, old._file = old._connect(), life.store._file
        old._epoch = life.store._epoch - 1
        return old

    def close(self) -> None:
        """The simulation is over."""

    def reader(self) -> Store:
        """The file as it is now, read by nobody's engine."""
        reader = SqliteStore(self._path)
        reader.open_readonly()
        return reader

    def records(self) -> PerformanceFiles:
        """What was written of ended attempts; another object for each life."""
        return PerformanceFiles(self._state / "performance")

    def progress(self) -> ProgressFiles:
        """What the workers told of their progress; another object for each reader."""
        return ProgressFiles(self._state / "progress")

    def results(self) -> ResultFiles:
        """What was too long for its run; another object for each reader."""
        return ResultFiles(self._state / "results")

    def transcripts(self) -> TranscriptFiles:
        """What the workers said; another object for each reader."""
        return TranscriptFiles(self._state / "transcripts")

    def crash(self) -> None:
        """``kill -9`` of the daemon, now, or worse."""
        if self.life is not None and not self.life.is_dead and not self.is_calm:
            if self.disk_happens(self.faults.power_loss):
                self.lose_power()
                return
            self._die(self.life, "crash")
            self.crashes += 1

    def lose_power(self) -> None:
        """The machine goes off, now: workers die, too, and what was not synced may be gone."""
        if self.life is None or self.life.is_dead or self.is_calm:
            return
        left = self.disk.database_left(self._path)
        self._die(self.life, "loss of power")
        self.disk.lose_power(self._path, left)
        self.world.lose_power()
        self._has_lost_power = True
        self.crashes += 1

    def note_torn(self) -> None:
        """The database was opened: after a loss of power, whose ends are recorded in it?

        Nobody reads the output of those again, and what of it was not synced is missing.
        """
        if not self._has_lost_power:
            return
        self._has_lost_power = False
        for run in self.reader().runs(RunFilter(archived=True, limit=ALL)):
            for attempt in run.attempts:
                worker = self.world.workers.get(attempt_id(run.id, attempt.number))
                has_ended = attempt.evidence.exit is not None
                ended = attempt.turn.number if has_ended else attempt.turn.number - 1
                if worker is not None and worker.let_go.turns_over < ended:
                    worker.is_torn = True

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

    def _commit_failed(self, error: Failure) -> None:
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
            self.check_memory()
            result = work()
        except PowerCut:
            self.lose_power()
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
    except Injected:
        _fail(answer, DaemonUnreachable("the daemon failed to answer this call"))
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
