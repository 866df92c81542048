"""Several nodes in one virtual world: each an engine on a machine of its own, on one database.

A machine's workers go on when its daemon is killed or frozen, until the node's right is over: then
its watchdog ends them. Each machine has a clock of its own. The database is slow, away, or loses
an answer as the seed says; all nodes see one clock of its.
"""

import asyncio
import contextlib
import random
import shutil
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.extensions.cluster.places.place_worlds import Rows
from tests.simulation.delivery_channels import Channels
from tests.simulation.far_machines import FarPlaces
from tests.simulation.host import SeededIds
from tests.simulation.invariants import Judge
from tests.simulation.outside_world import (
    Faults,
    Injected,
    SeededVerifier,
    SimulatedRuntime,
    World,
)
from tests.simulation.shared_database import NodeRow, SharedDatabase, SharedSqlite
from tests.simulation.virtual_loop import (
    EPOCH_MS,
    PROCESS,
    Process,
    VirtualClock,
    VirtualLoop,
    context_of,
)

from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.domain.cluster.partitioning import KEPT_LEASES, TRIES
from subagents.domain.run.events import AttemptPlaced, AttemptStartFailed, SlotGranted, TokenIssued
from subagents.domain.run.signals import ResultSeen, Signal, Vanished
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import AttemptId, RunId, attempt_id
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.engine import Adapters, Engine
from subagents.errors import (
    DaemonUnreachable,
    Elsewhere,
    RuntimeUnavailable,
    StoreUnavailable,
    SubagentsError,
)
from subagents.extensions.cluster.engine.cluster_sharing import ClusterSharing
from subagents.extensions.cluster.node_deadline import margin_s
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.shared_store import Member, SeenNode
from subagents.ports import AttemptRef, Batch, JournalEntry, Launch, RunLogs, StartedInfo
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.transcripts.transcript_files import TranscriptFiles

T = TypeVar("T")

LEASE_S: Final = 3.0
CLOCK_S: Final = 1e-6
"""A loop calls what is due up to its clock's resolution too early."""
CALL_S: Final = 30.0
PEER_S: Final = 0.5
"""For an answer of one node to another."""
ABLE: Final = Abilities(
    survives_daemon=True, steer=True, resume=True, scope_tools=True, interrupt=True
)
PLAIN: Final = Abilities(survives_daemon=True)
INSIDE: Final = frozenset({"illegal_transition", "corrupt_state", "already_running"})
"""Codes of errors that no caller must ever see."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ClusterFaults:
    """How often what goes wrong in a cluster; drawn once per seed."""

    blows_s: float
    """Mean time between two things that are done to a node or the database; 0 = nothing is."""
    kinds: tuple[str, ...]
    """Of blows: methods of ``ClusterWorld``."""
    skew_s: float = 0.0
    """The clocks of two machines differ by so much at most."""
    slow_s: float = 0.0
    """What the database takes for some of its answers, at most."""
    commit_fails: float = 0.0
    answer_lost: float = 0.0
    """Written, and nobody is told."""


class ClusterLoop(VirtualLoop):
    """A loop whose processes can be frozen: what they would do waits, and time goes on."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._frozen: dict[Process, list[asyncio.Handle]] = {}

    def freeze(self, process: Process) -> None:
        """No callback of it runs until it is thawed."""
        self._frozen.setdefault(process, [])

    def thaw(self, process: Process) -> None:
        """What it would have done meanwhile, it does now."""
        self._ready += self._frozen.pop(process, [])

    def is_frozen(self, process: Process) -> bool:
        return process in self._frozen

    def _step(self) -> None:
        if self._frozen:
            kept: list[asyncio.Handle] = []
            for handle in self._ready:
                process = handle._context.get(PROCESS)  # type: ignore[attr-defined]  # as `_is_void`
                waiting = None if process is None else self._frozen.get(process)
                (kept if waiting is None else waiting).append(handle)
            self._ready[:] = kept
        super()._step()


class NodeStore(SharedSqlite):
    """The shared store as one node has it; what arrives of it is as the seed says."""

    def __init__(self, machine: "Machine", identity: str) -> None:
        member = Member(machine.name, f"https://{machine.name}", (), None, LEASE_S)
        super().__init__(
            machine.world.database, home=machine.name, member=member, identity=identity
        )
        self._machine = machine

    def _require_reached(self) -> None:
        super()._require_reached()
        if self._machine.is_cut_off:
            raise StoreUnavailable("the line to the database is cut (simulated)")

    def claim(self, partitions: Collection[int]) -> frozenset[int]:
        """See ``ports.SharedStore.claim``."""
        taken = super().claim(partitions)
        self._note(f"claimed {len(taken)}: {sorted(taken)[:4]}…")
        return taken

    def release(self, partitions: Collection[int]) -> None:
        """See ``ports.SharedStore.release``."""
        super().release(partitions)
        self._note(f"gave back {len(partitions)}: {sorted(partitions)[:4]}…")

    def _note(self, what: str) -> None:
        world = self._machine.world
        world.judge.note(f"{world.loop.time():.3f} {self.identity} {what}")

    def commit(self, batch: Batch) -> int:
        """See ``ports.Store.commit``."""
        try:
            return self._committed(batch)
        except StoreUnavailable:
            # Its engine throws its memory away, and with it whom nobody was told to start.
            self._machine.world.forget_placed()
            raise

    def _committed(self, batch: Batch) -> int:
        world = self._machine.world
        if world.happens(world.cluster_faults.commit_fails):
            raise StoreUnavailable("the database refused it (simulated)")
        number = super().commit(batch)
        if world.happens(world.cluster_faults.answer_lost):
            self._open.forget()
            raise StoreUnavailable("the answer of the database was lost (simulated)")
        return number


class NodeLife(Process):
    """One start of a node."""

    def __init__(
        self, number: int, engine: Engine, store: NodeStore, far: FarPlaces, host: AttemptHost
    ) -> None:
        self.number = number
        self.engine = engine
        self.far, self.host = far, host
        self.store = store
        self.is_serving = False
        self.calls: dict[asyncio.Future[Any], None] = {}
        self.is_over = asyncio.Event()


class Workers(World):
    """All workers that ever lived, and the machine that each is on."""

    def __init__(self, seed: int, loop: VirtualLoop, clock: VirtualClock, judge: Judge) -> None:
        super().__init__(seed, loop, clock, judge)
        self.machine_of: dict[AttemptId, str] = {}

    def live_on(self, machine: str) -> set[AttemptId]:
        """The attempts with a worker on a machine."""
        live = (each.attempt_id for each in self.workers.values() if self.is_live(each))
        return {attempt for attempt in live if self.machine_of.get(attempt) == machine}

    def start_on(self, machine: str, launch: Launch) -> bool:
        """See ``World.start``; what an attempt did is on one machine, dead or alive."""
        before = self.machine_of.get(launch.attempt_id)
        if before not in {None, machine}:
            self.judge.fail(
                "an attempt is begun on one machine",
                f"{launch.attempt_id} on {machine}, and before on {before}",
            )
        is_new = self.start(launch, is_unwatchable=False)
        self.machine_of[launch.attempt_id] = machine
        return is_new

    def end_all(self, machine: str, why: str) -> None:
        """Every worker of a machine dies, and nobody writes down how."""
        now = self.loop.time()
        for worker in self.workers.values():
            turn = worker.turns[-1]
            if self.machine_of.get(worker.attempt_id) != machine or turn.ends_s <= now:
                continue
            gone = Vanished(key=f"{worker.attempt_id}:vanished", error=why)
            turn.said = [(at, piece) for at, piece in turn.said if at <= now]
            said = [(at, signal) for at, signal in turn.signals if at <= now]
            if not any(isinstance(signal, ResultSeen) for _, signal in said):
                turn.result = None
            turn.signals, turn.ends_s = [*said, (now, gone)], now
            turn.wake()
            self.judge.note(f"{now:.3f} {worker.attempt_id} ends with {machine}: {why}")


class MachineRuntime(SimulatedRuntime):
    """The runtime of one machine: it sees the workers of that machine, and no others."""

    def __init__(
        self, name: str, abilities: Abilities, workers: Workers, machine: "Machine"
    ) -> None:
        super().__init__(name, abilities, workers, machine)
        self._workers, self._machine = workers, machine

    def _is_here(self, attempt: AttemptRef | Launch) -> bool:
        return self._workers.machine_of.get(attempt.attempt_id) == self._machine.name

    async def start(self, launch: Launch) -> StartedInfo:
        """See ``ports.Runtime.start``."""
        await self._around.hazard()
        if not self._is_here(launch):
            # What somebody started before is adopted, and needs neither room nor right.
            if self._happens(self._around.faults.start_refused):
                raise RuntimeUnavailable("no room to start anything")
            self._machine.require_right()
        self._workers.judge.handed_over(launch.run_id, launch.number, launch.env)
        is_new = self._workers.start_on(self._machine.name, launch)
        await self._around.hazard()
        name = launch.native_session or f"session of {launch.attempt_id}"
        return StartedInfo(pid=1, adopted=not is_new, native_session=name)

    def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        """See ``ports.Runtime.watch``."""
        if not self._is_here(ref):
            return _gone(ref, cursor)
        return super().watch(ref, cursor=cursor, positions=positions)

    def _is_by_owner(self, ref: AttemptRef) -> bool:
        """One that was frozen meanwhile may read again: nothing that it keeps counts."""
        reader, database = PROCESS.get(), self._machine.world.database
        assert isinstance(reader, NodeLife)
        return database.owners.get(database.part_of[ref.run_id]) == reader.store.identity

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """See ``ports.Runtime.stop``."""
        if self._is_here(ref):
            await super().stop(ref, grace_s=grace_s)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """See ``ports.Runtime.steer``."""
        if not self._is_here(ref):
            raise RuntimeUnavailable(f"{ref.attempt_id} is on another machine")
        await super().steer(ref, message, key=key)

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        """See ``ports.Runtime.resume``."""
        if not self._is_here(ref):
            raise RuntimeUnavailable(f"{ref.attempt_id} is on another machine")
        self._machine.require_right()
        return await super().resume(ref, message, env=env)

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """See ``ports.Runtime.discard``."""
        if self._is_here(ref):
            await super().discard(ref, cursor=cursor, positions=positions, ended=ended)


async def _gone(ref: AttemptRef, cursor: int) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
    yield Vanished(key=f"{ref.attempt_id}:vanished", error="its machine is another"), cursor + 1


class Machine:
    """One machine: its clock, its workers' watchdog, and the daemon on it, if one lives."""

    def __init__(self, world: "ClusterWorld", name: str, skew_s: float) -> None:
        self.world, self.name = world, name
        self.clock = VirtualClock(world.loop)
        self.clock.skew_ms = self.clock.taken_ms = round(skew_s * 1000)
        self.life: NodeLife | None = None
        self.is_cut_off = False
        self.stays_down_s = 0.0
        """How long nobody starts a daemon here again."""
        self._deadline_s = 0.0
        self._keeping: asyncio.Task[None] | None = None
        """What renews the right of a daemon that is gone."""
        self._state = world.directory / name
        self._state.mkdir()
        self._rng = random.Random(f"{world.seed}:{name}")

    # What ``outside_world.Surroundings`` wants to know.

    @property
    def faults(self) -> Faults:
        """See ``Surroundings.faults``."""
        return self.world.faults

    @property
    def is_calm(self) -> bool:
        """See ``Surroundings.is_calm``."""
        return self.world.is_calm

    @property
    def channels(self) -> Channels:
        """See ``Surroundings.channels``."""
        return self.world.channels

    @property
    def life_number(self) -> int:
        """See ``delivery_channels.Daemon``."""
        return -1 if self.life is None else self.life.number

    @property
    def has_failed(self) -> bool:
        """See ``delivery_channels.Daemon``."""
        return self.life is None or self.life.engine.ledger.failure is not None

    async def hazard(self) -> None:
        """See ``Surroundings.hazard``."""
        if self.world.happens(0.3):
            await asyncio.sleep(self._rng.choice((0.0, 0.01, 0.5)))

    # -- the watchdog --------------------------------------------------------------------------

    def extend_work(self, until_ms: int) -> None:
        """See ``Adapters.extend_work``; a process apart looks at it, which nobody kills."""
        self._deadline_s = (until_ms - EPOCH_MS) / 1000 - margin_s(LEASE_S)
        self.world.loop.call_at(
            max(self._deadline_s, self.world.loop.time()),
            self.look_at_deadline,
            context=self.world.outside,
        )

    def _keep_right_of(self, store: NodeStore) -> None:
        """See ``node_keeper``: a process apart renews in the place of a daemon that is gone."""
        loop, outside = self.world.loop, self.world.outside
        self._keeping = loop.create_task(self._keep(store), context=outside)

    async def _keep(self, store: NodeStore) -> None:
        for number in range(KEPT_LEASES * TRIES + 1):
            if number:
                await asyncio.sleep(LEASE_S / TRIES)
            asked_s = self.world.loop.time()
            try:
                if not await self.off_loop(store.keep):
                    return
            except StoreUnavailable:
                continue
            if asked_s + LEASE_S - margin_s(LEASE_S) > self._deadline_s:
                self.extend_work(EPOCH_MS + round((asked_s + LEASE_S) * 1000))

    def look_at_deadline(self) -> None:
        """Nothing works here behind it."""
        if self.world.loop.time() >= self._deadline_s - CLOCK_S:
            self.world.workers.end_all(self.name, "its node's right is over")

    def require_right(self) -> None:
        """What looks right before it becomes a worker; see ``shim.sh``."""
        if self.world.loop.time() >= self._deadline_s:
            raise RuntimeUnavailable("the right of its node is over")

    async def _peers_promise(self, peers: Sequence[SeenNode]) -> bool:
        """See ``cluster_sharing.PeersPromise``."""
        answers = [await self._promise_of(each.name) for each in peers]
        return all(answers)

    async def _promise_of(self, name: str) -> bool:
        async def asked(engine: Engine) -> bool:
            return engine.ownership.promise()

        peer = next(each for each in self.world.machines if each.name == name)
        try:
            return await peer.call(asked, patience_s=PEER_S, is_of_memory=False)
        except SubagentsError:
            return False

    # -- lives ---------------------------------------------------------------------------------

    async def live(self) -> None:
        """Keep a daemon alive here for ever, over all that is done to it."""
        while True:
            life = self._new_life()
            self.life = life
            self.world.loop.create_task(self._start(life), context=context_of(life))
            await life.is_over.wait()
            self.life = None
            down_s, self.stays_down_s = self.stays_down_s, 0.0
            await asyncio.sleep(0.01 if self.is_calm else down_s)

    def _new_life(self) -> NodeLife:
        world = self.world
        world.lives += 1
        store = NodeStore(self, f"{self.name}-{world.lives}")
        runtimes = {
            "able": MachineRuntime("able", ABLE, world.workers, self),
            "plain": MachineRuntime("plain", PLAIN, world.workers, self),
        }
        far = FarPlaces(self, lambda: sharing.partitions.survey, lambda: engine.workplace)
        sharing = ClusterSharing(
            store, self.off_loop, self.clock, peers_promise=self._peers_promise, places=far.places
        )
        engine = Engine(
            Adapters(
                store=store,
                runtimes=runtimes,
                couriers={},
                clock=self.clock,
                ids=world.ids,
                off_loop=self.off_loop,
                renewing=self.off_loop,
                verifier=SeededVerifier(world.workers, self),
                settings=world.settings,
                # Whoever goes on with a run reads what was kept before, as from the database.
                logs=RunLogs(
                    allowed_calls=AllowedCallFile(
                        Paths.resolve({"SUBAGENTS_HOME": str(world.directory)})
                    ),
                    environments=EnvironmentFiles(world.directory / "environments"),
                    progress=ProgressFiles(world.directory / "progress"),
                    results=ResultFiles(world.directory / "results"),
                    transcripts=TranscriptFiles(world.directory / "transcripts"),
                ),
                state_dir=self._state / "performance",
                owner=store.identity,
                node=self.name,
                extend_work=self.extend_work,
                sharing=sharing,
            )
        )
        life = NodeLife(world.lives, engine, store, far, far.host(self, runtimes))
        engine.on_fenced(lambda: self._end(life, "fenced"))
        return life

    async def _start(self, life: NodeLife) -> None:
        try:
            await life.engine.start()
        except SubagentsError as error:
            if not isinstance(error, StoreUnavailable) and error.code != "fenced":
                self.world.judge.fail("a restart always succeeds", repr(error))
            self.stays_down_s = 1.0
            self._end(life, "failed start")
            return
        self.world.judge.note(f"{self.world.loop.time():.3f} {life.store.identity} serves")
        life.is_serving = True
        if self.world.slots is not None:
            await life.far.taking.run()

    def _end(self, life: NodeLife, how: str) -> None:
        if life.is_dead:
            return
        self.world.judge.note(f"{self.world.loop.time():.3f} {life.store.identity} ends: {how}")
        life.is_dead = True
        life.is_serving = False
        self.world.loop.thaw(life)
        life.store.close()
        calls, life.calls = life.calls, {}
        for answer in calls:
            if not answer.done():
                answer.set_exception(DaemonUnreachable("the connection broke"))
                answer.exception()
        life.is_over.set()

    def kill(self, down_s: float) -> None:
        """``kill -9`` of the daemon; its workers go on."""
        self.stays_down_s = down_s
        if self.life is not None:
            self._end(self.life, "kill -9")
            self._keep_right_of(self.life.store)

    def lose_power(self, down_s: float) -> None:
        """Nothing that ran here does any more."""
        self.world.workers.end_all(self.name, "the machine lost its power")
        self.kill(down_s)
        if self._keeping is not None:
            self._keeping.cancel()

    async def hand_over(self, most_s: float) -> None:
        """All that is decided here is another's, workers and all, before it is stopped."""
        with contextlib.suppress(SubagentsError):
            await self.call(lambda engine: engine.drain(is_on=True), is_of_memory=False)
        until_s = self.world.loop.time() + most_s
        while (life := self.life) is not None and self.world.loop.time() < until_s:
            if not self.world.database.owned(life.store.identity):
                self.world.judge.note(f"{life.store.identity} handed all over")
                return
            await asyncio.sleep(0.1)

    async def stop(self, down_s: float) -> None:
        """An orderly end, as at an upgrade."""
        life = self.life
        if life is None or not life.is_serving or self.world.loop.is_frozen(life):
            return
        life.is_serving = False
        stopped = self.world.loop.create_future()
        task = self.world.loop.create_task(life.engine.stop(), context=context_of(life))
        task.add_done_callback(lambda _: _finish(stopped, None))
        life.calls[stopped] = None
        try:
            await stopped
        except DaemonUnreachable:
            return
        self.stays_down_s = down_s
        self._end(life, "stop")
        self._keep_right_of(life.store)

    # -- what it asks, and is asked ------------------------------------------------------------

    def off_loop(self, work: Callable[[], T]) -> Awaitable[T]:
        """See ``ports.OffLoop``: the question takes a while, and so does the answer."""
        future: asyncio.Future[T] = self.world.loop.create_future()
        self.world.loop.call_later(self._line_s(), self._work, work, future)
        return future

    def _line_s(self) -> float:
        choice = self._rng.random()
        if self.is_calm or choice < 0.6:
            return 0.0
        return 0.001 if choice < 0.95 else self._rng.random() * self.world.cluster_faults.slow_s

    def _work(self, work: Callable[[], T], future: "asyncio.Future[T]") -> None:
        if future.cancelled():
            return
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - belongs to the caller, whatever it is
            self.world.loop.call_later(self._line_s(), _fail, future, error)
        else:
            self.world.loop.call_later(self._line_s(), _finish, future, result)

    async def call(
        self,
        request: Callable[[Engine], Coroutine[Any, Any, T]],
        *,
        patience_s: float = CALL_S,
        is_of_memory: bool = True,
    ) -> T:
        """Ask the daemon that lives here.

        Args:
            request: What to ask; runs inside the daemon.
            patience_s: So long an answer is waited for.
            is_of_memory: The answer is right only while the node has its right.

        Raises:
            DaemonUnreachable: Nobody answers, or nobody any more: it may have been done.
            SubagentsError: As the engine refused it.
        """
        await asyncio.sleep(self._rng.random() * 0.01)
        life = self.life
        if life is None or not life.is_serving:
            raise DaemonUnreachable(f"no daemon answers on {self.name}")
        answer: asyncio.Future[T] = self.world.loop.create_future()
        life.calls[answer] = None
        work = self._serve(life, request, answer, is_of_memory=is_of_memory)
        self.world.loop.create_task(work, context=context_of(life))
        try:
            async with asyncio.timeout(patience_s):
                return await answer
        except TimeoutError:
            raise DaemonUnreachable(f"{self.name} does not answer") from None
        finally:
            life.calls.pop(answer, None)

    async def _serve(
        self,
        life: NodeLife,
        request: Callable[[Engine], Coroutine[Any, Any, T]],
        answer: "asyncio.Future[T]",
        *,
        is_of_memory: bool,
    ) -> None:
        """As the server does: what was made from memory is told only while memory is right."""
        try:
            result = await request(life.engine)
            if is_of_memory and life.engine.may_be_over:
                life.engine.require_ownership()
        except SubagentsError as error:
            if error.code in INSIDE:
                self.world.judge.fail("callers never see a broken promise inside", repr(error))
            _fail(answer, error)
        except Injected:
            _fail(answer, DaemonUnreachable(f"{self.name} failed to answer this call"))
        except Exception as error:  # noqa: BLE001 - a caller must never see one
            self.world.judge.fail("callers never see a broken promise inside", repr(error))
        else:
            _finish(answer, result)


class ClusterWorld:
    """The machines, their database, and what is done to them.

    Args:
        template: A migrated, empty database.
        directory: Where this simulation's files lie.
        nodes: How many machines.
    """

    def __init__(
        self,
        *,
        seed: int,
        loop: ClusterLoop,
        clock: VirtualClock,
        judge: Judge,
        faults: Faults,
        cluster_faults: ClusterFaults,
        settings: Settings,
        template: Path,
        directory: Path,
        nodes: int,
    ) -> None:
        self.seed, self.loop, self.judge = seed, loop, judge
        self.faults, self.cluster_faults, self.settings = faults, cluster_faults, settings
        self.directory = directory
        self.is_calm = False
        self.lives = 0
        self.blows = 0
        self.claims = 0
        """Partitions that a node took over from another one."""
        self.offers = Rows()
        self.slots = 1 + seed // 7 % 2 if seed % 7 == 1 else None
        """Of each machine; in every seventh world they ask each other for one."""
        self.told: set[AttemptId] = set()
        """Attempts of which a node was told by another one to start them."""
        self._granted: dict[RunId, str] = {}
        self._placed: dict[RunId, str] = {}
        """Who granted, and who placed elsewhere, the newest attempt of a run."""
        self._rng = random.Random(f"{seed}:blows")
        self._fault_rng = random.Random(f"{seed}:database")
        self._handing = random.Random(f"{seed}:hand-over")
        self.outside = context_of(Process())
        """Of what nothing kills."""
        shutil.copyfile(template, directory / "shared.db")
        self.database = SharedDatabase(directory / "shared.db", loop.time)
        self.database.on_end = self._ended
        self.database.on_claim = self._claimed
        self.database.on_write = self._written
        self.workers = Workers(seed, loop, clock, judge)
        self.channels = Channels(judge, clock, can_tell_time=cluster_faults.skew_s == 0)
        self.ids = SeededIds(random.Random(f"{seed}:ids"))
        skews = random.Random(f"{seed}:skew")
        self.machines = [
            Machine(self, f"m{number}", (skews.random() - 0.5) * cluster_faults.skew_s)
            for number in range(nodes)
        ]
        self._looking = SharedSqlite(
            self.database,
            home="outside",
            member=Member("outside", None, (), None, LEASE_S),
            identity="outside",
        )
        judge.look_up = lambda run_id: self.reader().run(run_id)

    def happens(self, probability: float) -> bool:
        """Draw a fault; never in the calm at the end."""
        return not self.is_calm and probability > 0 and self._fault_rng.random() < probability

    def reader(self) -> SharedSqlite:
        """The database as it is now, read by nobody's engine."""
        return self._looking

    # -- what must hold at each step -----------------------------------------------------------

    def _ended(self, by: NodeRow, node: NodeRow) -> None:
        now_s = self.loop.time()
        if node.until_s > now_s:
            self.judge.fail("only a right that has run out is ended", node.identity)
        if now_s - by.renewed_since_s < by.member.lease_s:
            self.judge.fail(
                "who ends another node has renewed its right for a whole lease",
                f"{by.identity} ended {node.identity}",
            )

    def forget_placed(self) -> None:
        """Whoever placed something knows no more whether a node was told to start it."""
        self._placed.clear()

    def _claimed(self, before: NodeRow | None) -> None:
        self.claims += before is not None

    def _written(self, writer: NodeRow, batch: Batch) -> None:
        for entry in batch.journal:
            part = self.database.part_of[entry.run_id]
            if self.database.owners.get(part) != writer.identity:
                what = f"{writer.identity} wrote {type(entry.event).__name__} of {entry.run_id}"
                owner = self.database.owners.get(part)
                self.judge.fail("at most one owner acts", f"{what}; {part} is {owner}'s")
            self._look_at_start(writer, entry)
        self.judge.on_commit(batch)

    def _look_at_start(self, writer: NodeRow, entry: JournalEntry) -> None:
        event = entry.event
        match event:
            case SlotGranted():
                self._granted[entry.run_id] = writer.identity
                self._placed.pop(entry.run_id, None)
            case AttemptPlaced(node=node):
                self._placed[entry.run_id] = "" if node == writer.home else writer.identity
            case TokenIssued():
                # Others had the run meanwhile, and may have told a node.
                self._placed.pop(entry.run_id, None)
            case AttemptStartFailed(attempt=number) if "is over" in event.error:
                attempt = attempt_id(entry.run_id, number)
                known = {self._granted[entry.run_id], self._placed.get(entry.run_id)}
                if known == {writer.identity} and attempt not in self.told:
                    what = f"{attempt}: {event.error}"
                    self.judge.fail("what nobody was told to start uses no retry", what)

    # -- callers -------------------------------------------------------------------------------

    def drawn(self) -> Machine:
        """Where somebody calls."""
        return self._rng.choice(self.machines)

    async def call(self, request: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """Ask some node, which sends the call to the one that it takes for the owner."""
        machine = self.drawn()
        try:
            return await machine.call(request)
        except Elsewhere as error:
            url = error.details.get("url")
            owner = next((m for m in self.machines if url == f"https://{m.name}"), None)
            if owner is None or owner is machine:
                raise
            return await owner.call(request)

    # -- what is done to them ------------------------------------------------------------------

    async def strike(self) -> None:
        """One thing after the other, until all is calm."""
        faults, rng = self.cluster_faults, self._rng
        while faults.blows_s and not self.is_calm:
            await asyncio.sleep(rng.expovariate(1 / faults.blows_s))
            if not self.is_calm:
                self.blows += 1
                await getattr(self, rng.choice(faults.kinds))()

    async def kill(self) -> None:
        """A daemon alone; it is started again before or after its right is over."""
        self.drawn().kill(self._rng.choice((0.01, 1.0, LEASE_S * 2, LEASE_S * 5)))

    async def kill_machine(self) -> None:
        """A daemon with its workers."""
        machine = self.drawn()
        self.judge.note(f"{self.loop.time():.3f} {machine.name} loses its power")
        machine.lose_power(self._rng.choice((0.5, LEASE_S * 2, LEASE_S * 5)))

    def strike_after_yes(self, owner: Machine, asked: Machine) -> None:
        """A node that keeps a slot, or the one that asked, loses its power before the start."""
        if self.cluster_faults.blows_s and self.happens(0.4):
            victim = self._rng.choice((owner, asked))
            self.judge.note(f"{self.loop.time():.3f} {victim.name} loses its power after a yes")
            down_s = self._rng.choice((0.5, LEASE_S * 5, LEASE_S * 5))
            at_s = self._rng.choice((0.0, 0.02))
            self.loop.call_later(at_s, victim.lose_power, down_s, context=self.outside)

    async def freeze(self) -> None:
        """A daemon stands still, and goes on with what it believed."""
        machine = self.drawn()
        life = machine.life
        if life is None or self.loop.is_frozen(life):
            return
        self.judge.note(f"{self.loop.time():.3f} {life.store.identity} is frozen")
        self.loop.freeze(life)
        self.loop.call_later(
            self._rng.choice((0.5, LEASE_S, LEASE_S * 3)),
            self.loop.thaw,
            life,
            context=self.outside,
        )

    async def cut_off(self) -> None:
        """A node reaches the database no more, for a time."""
        machine = self.drawn()
        self.judge.note(f"{self.loop.time():.3f} {machine.name} is cut off")
        machine.is_cut_off = True
        await asyncio.sleep(self._rng.choice((0.5, LEASE_S, LEASE_S * 2)))
        machine.is_cut_off = False

    async def outage(self) -> None:
        """Nobody reaches the database, for a time: then everybody has what it had."""
        self.judge.note(f"{self.loop.time():.3f} the database is away")
        before = dict(self.database.owners)
        alive = {each.life for each in self.machines}
        self.database.is_away = True
        await asyncio.sleep(self._rng.choice((1.0, LEASE_S * 2, LEASE_S * 6)))
        if self.is_calm:
            return  # it was mended meanwhile
        self.database.is_away = False
        self.judge.note(f"{self.loop.time():.3f} the database is back")
        if alive == {each.life for each in self.machines} and before != self.database.owners:
            self.judge.fail("an outage of the database moves nothing", "owners changed")

    async def drain(self) -> None:
        """A node is stopped in the orderly way, and started again; often it is drained before."""
        machine = self.drawn()
        if self._handing.random() < 0.5:
            await machine.hand_over(LEASE_S * 3)
        await machine.stop(self._rng.choice((0.01, 1.0, LEASE_S * 2)))

    def mend(self) -> None:
        """From now on nothing goes wrong."""
        self.is_calm = True
        self.database.is_away = False
        for machine in self.machines:
            machine.is_cut_off = False
            if machine.life is not None:
                self.loop.thaw(machine.life)

    def close(self) -> None:
        """The simulation is over."""
        for machine in self.machines:
            if machine.life is not None:
                machine.life.is_dead = True
                machine.life.store.close()
        self._looking.close()


def _finish(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[T]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()
