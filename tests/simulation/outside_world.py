"""What lies outside the daemon and survives its crashes: workers, receivers, checkers.

A worker is plain data: what it says and when it ends is decided when it starts, from the seed, the
run's label and the attempt's number. It continues while no daemon lives; whoever watches it later
reads the same from any cursor. Only the adapters (``SimulatedRuntime`` …) belong to one daemon's
life, and they are where signals come late, doubled, in another order or not at all.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from tests.simulation.delivery_channels import Channels, Daemon
from tests.simulation.invariants import ANNOUNCE_SUFFIX, Judge
from tests.simulation.virtual_loop import VirtualClock, VirtualLoop
from tests.simulation.worker_talk import (
    STRIDE,
    LetGo,
    Spoken,
    check_let_go,
    name_of,
    plan_talk,
)

from subagents.domain.run.baseline import Baseline
from subagents.domain.run.outcome import (
    Check,
    CheckType,
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Verdict,
    Verification,
)
from subagents.domain.run.run import Attempt, Exit, Message, Progress, Report, ReportStatus, Run
from subagents.domain.run.signals import (
    TERMINAL,
    Exited,
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.spec import Abilities, Contract
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import AttemptId, RunId, SessionKey, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.verification.verifier import Verifier
from subagents.engine.verification.work_root import WorkRoot
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.ports import AttemptRef, Before, Launch, StartedInfo

SIGTERM: Final = 15
SIGKILL: Final = 9
HANGS_S: Final = 1e6
LIMITED: Final = 0.05
"""Of turns that the provider of the worker's model ends."""
LONG: Final = 0.3
"""Of results, those that are too long for their run."""
JUDGE: Final = "judge of "
"""How the labels of judges begin."""
BURST: Final = "burst"
"""How the labels of runs begin whose workers all end at ``BURST_ENDS_S``."""
BURST_ENDS_S: Final = 12.0


class Injected(Exception):
    """A fault of the simulated surroundings that no port documents."""


class OutOfMemory(MemoryError, Injected):
    """An allocation failed, somewhere in the daemon."""


@dataclass(slots=True, frozen=True)
class Faults:
    """How often what goes wrong; probabilities per occasion, drawn once per seed."""

    start_refused: float = 0.0
    start_unclear: float = 0.0
    """Started, but the answer was an error."""
    start_impossible: float = 0.0
    watch_fails: float = 0.0
    watch_dead: float = 0.0
    """Of attempts that can never be watched: their leases run out."""
    doubled: float = 0.0
    reordered: float = 0.0
    lost: float = 0.0
    """Of signals that may be lost: progress, usage, tools."""
    late_s: float = 0.0
    stop_fails: float = 0.0
    courier_fails: float = 0.0
    courier_defers: float = 0.0
    courier_delivers: float = 0.0
    courier_dead: bool = False
    """Every try fails: deliveries are given up in the end."""
    checker_fails: float = 0.0
    commit_fails: float = 0.0
    commit_unclear: float = 0.0
    """Written, but the answer was an error."""
    crash_in_commit: float = 0.0
    crash_in_effect: float = 0.0
    crash_steps: float = 0.0
    """Mean number of steps between two crashes; 0 = none."""
    clock_jumps: bool = False
    slow_disk_s: float = 0.0
    power_loss: float = 0.0
    """Of crashes, those that are of the whole machine: its workers die, and what was not synced
    may be gone."""
    power_loss_in_commit: float = 0.0
    """Of commits, those after which the power is cut before anybody heard that they are done."""
    disk_full_s: float = 0.0
    """Mean time between two fillings of the disk; 0 = it never is full."""
    writes_fail: float = 0.0
    """Of writes and syncs of files."""
    reads_fail: float = 0.0
    """Of reads of the database."""
    memory_fails: float = 0.0
    """Of pieces of work off the loop, and of sleeps."""
    is_small: bool = False
    """There is little memory: everything that is bounded has a very low bound."""


class Surroundings(Daemon, Protocol):
    """What the world needs of the daemon's host."""

    @property
    def faults(self) -> Faults: ...

    @property
    def is_calm(self) -> bool:
        """From some time on nothing goes wrong any more, so that everything can end."""
        ...

    @property
    def channels(self) -> Channels:
        """Hears of every hand-over."""
        ...

    async def hazard(self) -> None:
        """A place where the daemon may crash, or be slow."""
        ...


@dataclass(slots=True)
class Turn:
    """One turn of a worker: what it says (time, signal) and when it ends."""

    signals: list[tuple[float, Signal]]
    ends_s: float
    result: str | None = None
    said: list[Spoken] = field(default_factory=list)
    watchers: list["asyncio.Future[None]"] = field(default_factory=list)

    def wake(self) -> None:
        """The script changed: whoever waits for its next line looks again."""
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)


@dataclass(slots=True)
class Worker:
    """The one worker an attempt ever has."""

    attempt_id: AttemptId
    run_id: RunId
    number: int
    label: str
    session_key: SessionKey
    obeys: bool
    """Ends at TERM; else it takes a KILL."""
    turns: list[Turn]
    is_unwatchable: bool = False
    steered: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    let_go: LetGo = field(default_factory=LetGo)
    is_torn: bool = False
    """The power was lost behind its recorded end, and before what it said had to be synced."""

    @property
    def ends_s(self) -> float:
        return self.turns[-1].ends_s


class World:
    """All workers that ever lived, and what reached the receivers."""

    def __init__(self, seed: int, loop: VirtualLoop, clock: VirtualClock, judge: Judge) -> None:
        self.seed = seed
        self.loop = loop
        self.clock = clock
        self.judge = judge
        self.rng = random.Random(f"{seed}:world")
        self.workers: dict[AttemptId, Worker] = {}
        self.on_start: list[Worker] = []
        """Workers whose agent has not begun to act yet."""
        self.received: dict[str, int] = {}
        """Announcements that a courier carried, and how often."""
        self.started = asyncio.Event()

    def start(self, launch: Launch, *, is_unwatchable: bool) -> bool:
        """Claim the attempt; False = its worker was started before."""
        self.judge.starting(launch.run_id, launch.number)
        if launch.attempt_id in self.workers:
            return False
        now = self.loop.time()
        for other in self.workers.values():
            # The loop rounds: what ends at this moment is over.
            if other.run_id == launch.run_id and other.ends_s > now + 1e-9:
                self.judge.fail(
                    "at most one live worker per run",
                    f"{launch.attempt_id} beside {other.attempt_id}",
                )
        rng = random.Random(f"{self.seed}:{launch.label}#{launch.number}")
        if launch.label.startswith(BURST):
            turn = plan_together(launch.attempt_id, now)
        else:
            turn = plan_turn(rng, launch.attempt_id, 1, now, can_hang=True)
        if launch.label.startswith(JUDGE):
            turn = as_judge(turn, random.Random(f"{self.seed}:{launch.attempt_id}:verdict"))
        name = f"{self.seed}:{launch.label}#{launch.number}"
        turn.said = plan_talk(name, launch.attempt_id, 1, begins_s=now, ends_s=turn.ends_s)
        worker = Worker(
            attempt_id=launch.attempt_id,
            run_id=launch.run_id,
            number=launch.number,
            label=launch.label,
            session_key=launch.session_key,
            obeys=rng.random() < 0.7,
            turns=[turn],
            is_unwatchable=is_unwatchable,
        )
        self.workers[launch.attempt_id] = worker
        self.judge.to_workers.begins(launch)
        self.judge.note(f"{now:.3f} worker {launch.attempt_id} until {worker.ends_s:.3f}")
        self.on_start.append(worker)
        self.started.set()
        return True

    def resume(self, ref: AttemptRef, message: str) -> bool:
        """Begin the next turn; False = it was begun before."""
        worker = self.workers[ref.attempt_id]
        if len(worker.turns) >= ref.turns:
            return False
        now = self.loop.time()
        rng = random.Random(f"{self.seed}:{worker.label}#{worker.number}/{ref.turns}")
        turn = plan_turn(rng, worker.attempt_id, ref.turns, now, can_hang=False)
        name = f"{self.seed}:{worker.label}#{worker.number}/{ref.turns}"
        turn.said = plan_talk(name, ref.attempt_id, ref.turns, begins_s=now, ends_s=turn.ends_s)
        worker.turns.append(turn)
        self.judge.to_workers.goes_on(ref.attempt_id, message)
        self.judge.note(f"{now:.3f} turn {ref.turns} of {ref.attempt_id}")
        return True

    def stop(self, worker: Worker, grace_s: float) -> float:
        """Signal the worker; returns when it will be gone."""
        now, turn = self.loop.time(), worker.turns[-1]
        if turn.ends_s <= now:
            return now
        worker.stopped = True
        patience_s = min(0.05, grace_s) if worker.obeys else grace_s
        ends_s = min(now + patience_s, turn.ends_s)
        if ends_s < turn.ends_s:
            said = [(at, signal) for at, signal in turn.signals if at <= now]
            exit_ = Exit(code=0) if worker.obeys else Exit(signal=SIGKILL)
            key = f"{worker.attempt_id}:exit"
            turn.said = [(at, piece) for at, piece in turn.said if at <= now]
            turn.signals = [*said, (ends_s, Exited(key=key, exit=exit_, drained=True))]
            turn.ends_s = ends_s
            turn.wake()
            self.judge.note(f"{now:.3f} stop {worker.attempt_id} until {ends_s:.3f}")
        return ends_s

    def lose_power(self) -> None:
        """Every worker dies with the machine, and nobody writes down how."""
        now = self.loop.time()
        for worker in self.workers.values():
            turn = worker.turns[-1]
            if turn.ends_s <= now:
                continue
            key = f"{worker.attempt_id}:vanished"
            gone = Vanished(key=key, error="the machine was started anew")
            turn.said = [(at, piece) for at, piece in turn.said if at <= now]
            said = [(at, signal) for at, signal in turn.signals if at <= now]
            if not any(isinstance(signal, ResultSeen) for _, signal in said):
                turn.result = None
            turn.signals, turn.ends_s = [*said, (now, gone)], now
            turn.wake()

    def is_live(self, worker: Worker) -> bool:
        return worker.ends_s > self.loop.time()


def plan_turn(
    rng: random.Random, attempt_id: AttemptId, number: int, now: float, *, can_hang: bool
) -> Turn:
    """What the worker will say in this turn, and how it will end."""
    length_s = rng.choice((0.0, 0.2, 1.0, 3.0, 10.0, 40.0)) * (0.5 + rng.random())
    if can_hang and rng.random() < 0.06:
        length_s = HANGS_S
    said: list[tuple[float, Signal]] = []
    for index in range(rng.randrange(4)):
        at_s = now + min(length_s, 60.0) * rng.random()
        said.append((at_s, _chatter(rng, f"{attempt_id}:{index}")))
    result = None
    # Drawn apart, so that what else this worker does stays as it was.
    refusal = _refusal(random.Random(f"{attempt_id}/{number}:limit"), attempt_id)
    if refusal is not None:
        said.sort(key=lambda pair: pair[0])
        ended = Exited(key=f"{attempt_id}:exit", exit=Exit(code=1), drained=True)
        ends_s = now + min(length_s, 40.0)
        said = [pair for pair in said if pair[0] <= ends_s]
        return Turn(signals=[*said, (ends_s, refusal), (ends_s, ended)], ends_s=ends_s)
    if rng.random() < 0.85:
        result = f"result of {attempt_id}/{number}"
        if random.Random(f"{attempt_id}/{number}:long").random() < LONG:
            result += " and more" * 100
        seen = ResultSeen(key=f"{attempt_id}:result", text=result)
        said.append((now + length_s * (0.5 + rng.random() / 2), seen))
    said.sort(key=lambda pair: pair[0])
    said.append((now + length_s, _end(rng, attempt_id)))
    return Turn(signals=said, ends_s=now + length_s, result=result)


def _refusal(rng: random.Random, attempt_id: AttemptId) -> ResultSeen | None:
    """Some turns are ended by the provider of the worker's model."""
    if rng.random() >= LIMITED:
        return None
    return ResultSeen(
        key=f"{attempt_id}:result",
        text="",
        is_error=True,
        error="429 too many requests",
        is_limit=True,
        retry_after_ms=rng.choice((None, 2_000, 30_000)),
    )


def as_judge(turn: Turn, rng: random.Random) -> Turn:
    """The turn of a worker that gives a verdict, mostly, where others give a result."""
    words = (*('{"verdict": "pass", "reasons": []}',) * 4, '{"verdict": "fail"}', "I like it")
    said = rng.choice(words)
    signals: list[tuple[float, Signal]] = [
        (at_s, replace(signal, text=said))
        if isinstance(signal, ResultSeen) and not signal.is_error
        else (at_s, signal)
        for at_s, signal in turn.signals
    ]
    result = None if turn.result is None else said
    return Turn(signals=signals, ends_s=turn.ends_s, result=result)


def plan_together(attempt_id: AttemptId, now: float) -> Turn:
    """All these workers end well in the same instant, or at once when they begin after it."""
    ends_s, text = max(now, BURST_ENDS_S), f"result of {attempt_id}/1"
    said: list[tuple[float, Signal]] = [
        (ends_s, ResultSeen(key=f"{attempt_id}:result", text=text)),
        (ends_s, Exited(key=f"{attempt_id}:exit", exit=Exit(code=0), drained=True)),
    ]
    return Turn(signals=said, ends_s=ends_s, result=text)


def _chatter(rng: random.Random, key: str) -> Signal:
    choice = rng.random()
    if choice < 0.3:
        return ProgressSeen(key=key, progress=Progress(phase=key))
    if choice < 0.6:
        used = rng.randrange(1000)
        # Most of what real programs read comes from a cache.
        usage = Usage(tokens_in=50 * used, tokens_cache_read=49 * used, cost_usd=used / 1000)
        return UsageSeen(key=key, usage=usage)
    if choice < 0.8:
        return ToolSeen(key=key, name="shell")
    status = rng.choice((ReportStatus.COMPLETE,) * 4 + tuple(ReportStatus))
    return ReportSeen(key=key, report=Report(summary=key, status=status))


def _end(rng: random.Random, attempt_id: AttemptId) -> Signal:
    key = f"{attempt_id}:exit"
    choice = rng.random()
    if choice < 0.60:
        return Exited(key=key, exit=Exit(code=0), drained=True)
    if choice < 0.68:
        return Exited(key=key, exit=Exit(code=0), drained=False)
    if choice < 0.88:
        return Exited(key=key, exit=Exit(code=1), drained=rng.random() < 0.5, stderr_tail="boom")
    if choice < 0.94:
        return Exited(key=key, exit=Exit(signal=SIGKILL), drained=True)
    return Vanished(key=f"{attempt_id}:vanished", error="its files are gone")


class SimulatedRuntime:
    """One daemon's adapter to the world's workers; see ``ports.Runtime``.

    Args:
        name: As configured.
        abilities: What it claims; resuming and steering are refused without.
    """

    def __init__(
        self, name: str, abilities: Abilities, world: World, surroundings: Surroundings
    ) -> None:
        self.name = name
        self.abilities = abilities
        self._world = world
        self._around = surroundings

    def check(self, options: Mapping[str, object]) -> None:
        """Any options will do."""

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Any scope will do."""

    def _happens(self, probability: float) -> bool:
        return not self._around.is_calm and self._world.rng.random() < probability

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """See ``ports.Runtime.marker``."""
        return {}

    async def start(self, launch: Launch) -> StartedInfo:
        faults = self._around.faults
        await self._around.hazard()
        if launch.attempt_id not in self._world.workers:
            if self._happens(faults.start_refused):
                raise RuntimeUnavailable("no room to start anything")
            if self._happens(faults.start_impossible):
                raise UsageError("the program does not exist")
        self._world.judge.handed_over(launch.run_id, launch.number, launch.env)
        is_unwatchable = self._happens(faults.watch_dead)
        is_new = self._world.start(launch, is_unwatchable=is_unwatchable)
        await self._around.hazard()
        if self._happens(faults.start_unclear):
            raise Injected("the connection broke before the answer")
        name = launch.native_session or f"session of {launch.attempt_id}"
        return StartedInfo(pid=1, adopted=not is_new, native_session=name)

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        worker = self._world.workers.get(ref.attempt_id)
        await self._around.hazard()
        if self._happens(self._around.faults.stop_fails):
            raise Injected("the disk is busy")
        if ended:
            check_let_go(self._world.judge, ref.run_id, ref.number, turn=ref.turns)
        if worker is not None:
            worker.let_go.note(ref.turns, cursor=cursor, positions=positions, ended=ended)
        await self._around.hazard()

    def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        worker = self._world.workers[ref.attempt_id]
        is_read_again = worker.let_go.is_before(ref.turns, cursor=cursor, positions=positions)
        if is_read_again and self._is_by_owner(ref):
            detail = f"{ref.attempt_id} from {cursor}, {dict(positions)}: {worker.let_go}"
            self._world.judge.fail("nothing is let go that is read again", detail)
        return _Watch(self._world, self._around, ref, cursor, positions)

    def _is_by_owner(self, _ref: AttemptRef) -> bool:
        return True

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        world = self._world
        world.judge.stopping(ref.run_id, ref.number, now_ms=world.clock.now_ms())
        await self._around.hazard()
        worker = world.workers.get(ref.attempt_id)
        if worker is None:
            return
        if self._happens(self._around.faults.stop_fails):
            raise Injected("the signal could not be sent")
        gone_s = world.stop(worker, grace_s)
        if gone_s > world.loop.time():
            await asyncio.sleep(gone_s - world.loop.time())
        await self._around.hazard()

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        worker = self._world.workers.get(ref.attempt_id)
        if worker is None or not self._world.is_live(worker) or not self.abilities.steer:
            raise RuntimeUnavailable(f"{ref.attempt_id} is not live")
        if not key.endswith(ANNOUNCE_SUFFIX):
            worker.steered[key] = message
            self._world.judge.to_workers.put_in(ref.attempt_id, message)
            await self._around.hazard()
            return
        with self._around.channels.push(key, "steer", self._around) as push:
            worker.steered[key] = message
            await self._around.hazard()
            push.is_delivered = True

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:
        """It heeds it or not; the stop behind it ends the attempt."""
        worker = self._world.workers.get(ref.attempt_id)
        if worker is None or not self._world.is_live(worker) or not self.abilities.interrupt:
            raise RuntimeUnavailable(f"{ref.attempt_id} has no turn")
        worker.steered[key] = "interrupt"
        await self._around.hazard()

    async def resume(
        self,
        ref: AttemptRef,
        message: str,
        *,
        env: Mapping[str, str],
    ) -> StartedInfo:
        await self._around.hazard()
        self._world.judge.handed_over(ref.run_id, ref.number, env)
        worker = self._world.workers.get(ref.attempt_id)
        refused = self._happens(self._around.faults.start_refused)
        if worker is None or (refused and len(worker.turns) < ref.turns):
            raise RuntimeUnavailable(f"{ref.attempt_id} cannot be resumed")
        self._world.resume(ref, message)
        await self._around.hazard()
        return StartedInfo(pid=1)

    async def forget(self, ref: AttemptRef) -> None:
        """Nothing is kept in files."""


class _Watch(AsyncIterator[tuple[Signal | OutputBatch, int]]):
    """Reads a turn's signals and what was said, each from its place on, with the seed's faults."""

    def __init__(
        self,
        world: World,
        surroundings: Surroundings,
        ref: AttemptRef,
        cursor: int,
        positions: Mapping[str, int],
    ) -> None:
        self._world = world
        self._around = surroundings
        self._ref = ref
        self._at = cursor
        self._name = name_of(ref.turns)
        self._heard = positions.get(self._name, 0) // STRIDE
        self._again: list[tuple[Signal, int]] = []
        self._is_over = False

    async def __anext__(self) -> tuple[Signal | OutputBatch, int]:
        if self._is_over:
            raise StopAsyncIteration
        if self._world.workers[self._ref.attempt_id].is_unwatchable:
            raise Injected("nobody can see it")
        if self._again:
            return self._again.pop()
        turn = self._turn()
        while True:
            if self._at >= len(turn.signals):
                raise StopAsyncIteration  # a cursor beyond the end: nothing more is said
            at_s, signal = turn.signals[self._at]
            if (batch := self._listen(turn)) is not None:
                await self._be_late()
                return batch, self._at
            if at_s <= self._world.loop.time():
                break
            # A turn that is cut short wakes its watchers: the next piece may have gone.
            following = [at for at, _ in turn.said[self._heard : self._heard + 1]]
            await self._wait(turn, min((at_s, *following)))
        found = self._perturbed(turn, signal)
        await self._be_late()
        return found if found is not None else await self.__anext__()

    def _listen(self, turn: Turn) -> OutputBatch | None:
        """Some of what was said by now, if there is more."""
        now, rng = self._world.loop.time(), self._world.rng
        due = [said for at_s, said in turn.said[self._heard :] if at_s <= now]
        if not due:
            return None
        if not self._around.is_calm and rng.random() < self._around.faults.watch_fails:
            raise Injected("the stream broke")
        said = tuple(due[: rng.randrange(1, 4)])
        self._heard += len(said)
        return OutputBatch(items=said, positions={self._name: self._heard * STRIDE})

    def _turn(self) -> Turn:
        return self._world.workers[self._ref.attempt_id].turns[self._ref.turns - 1]

    async def _wait(self, turn: Turn, until_s: float) -> None:
        loop = self._world.loop
        woken = loop.create_future()
        turn.watchers.append(woken)
        timer = loop.call_at(until_s, _finish, woken)
        try:
            await woken
        finally:
            timer.cancel()

    async def _be_late(self) -> None:
        late_s = 0.0 if self._around.is_calm else self._around.faults.late_s
        if late_s and self._world.rng.random() < 0.3:
            await asyncio.sleep(late_s * self._world.rng.random())

    def _perturbed(self, turn: Turn, signal: Signal) -> tuple[Signal, int] | None:
        """The next signal with its cursor; None = it was lost."""
        rng, faults = self._world.rng, self._around.faults
        calm = self._around.is_calm
        if not calm and rng.random() < faults.watch_fails:
            raise Injected("the stream broke")
        following = turn.signals[self._at + 1 : self._at + 2]
        if isinstance(signal, TERMINAL):
            self._is_over = True
            return signal, self._at + 1
        if not calm and following and rng.random() < faults.reordered:
            at_s, next_signal = following[0]
            if at_s <= self._world.loop.time() and not isinstance(next_signal, TERMINAL):
                self._again.append((signal, self._at + 2))
                self._at += 2
                return next_signal, self._at - 2
        self._at += 1
        if not calm and rng.random() < faults.lost and not isinstance(signal, ResultSeen):
            return None
        if not calm and rng.random() < faults.doubled:
            self._again.append((signal, self._at))
        return signal, self._at


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class SimulatedCourier:
    """Carries announcements to a receiver that dedupes by their id; see ``ports.Courier``."""

    def __init__(self, name: str, world: World, surroundings: Surroundings) -> None:
        self.name = name
        self._world = world
        self._around = surroundings

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        """A part of the tries that the seed sets; none in the calm, so that all is read in the end.

        Steering serves runs of ours, direct sessions outside.
        """
        faults = self._around.faults
        if (requester is None) == (self.name == "steer"):
            return False
        if faults.courier_dead:
            return True
        if self._around.is_calm:
            return False
        served = faults.courier_fails + faults.courier_defers + faults.courier_delivers
        return self._world.rng.random() < served

    async def deliver(
        self,
        run: Run,
        message: Message,
        requester: Run | None,
    ) -> DeliveryOutcome:
        self._world.judge.delivering(run, self.name)
        with self._around.channels.push(message.id, self.name, self._around) as push:
            outcome = await self._carry(message)
            push.is_delivered = isinstance(outcome, Delivered)
        return outcome

    async def _carry(self, message: Message) -> DeliveryOutcome:
        faults, rng = self._around.faults, self._world.rng
        await self._around.hazard()
        if faults.courier_dead:
            return DeliveryFailed(retryable=True, error="nobody answers")
        choice = rng.random() * (
            faults.courier_fails + faults.courier_defers + faults.courier_delivers
        )
        if choice < faults.courier_fails / 2:
            return DeliveryFailed(retryable=rng.random() < 0.8, error="refused")
        if choice < faults.courier_fails + faults.courier_defers:
            return Deferred(reason=rng.choice(tuple(DeferReason)))
        self._world.received[message.id] = self._world.received.get(message.id, 0) + 1
        await self._around.hazard()
        if rng.random() < faults.courier_fails:
            raise Injected("delivered, but the answer was lost")
        path = DeliveryPath.DIRECT if self.name == "direct" else DeliveryPath.STEERED
        return Delivered(path=path)


class SeededVerifier(Verifier):
    """Verdicts from the seed instead of files; as slow and as breakable as the real one."""

    def __init__(self, world: World, surroundings: Surroundings) -> None:
        self._world = world
        self._around = surroundings

    async def verify(
        self,
        contract: Contract,
        *,
        root: WorkRoot,
        attempt: Attempt,
        marker_env: Mapping[str, str],
        baseline: Baseline | None = None,
        commands_trusted: bool = False,
        compares: bool = False,
    ) -> Verification:
        await self._around.hazard()
        rng = self._world.rng
        if not self._around.is_calm and rng.random() < self._around.faults.checker_fails:
            raise Injected("the checker broke")
        verdict = rng.choice((Verdict.PASSED, Verdict.PASSED, Verdict.FAILED, *Verdict))
        await asyncio.sleep(rng.random())
        await self._around.hazard()
        checks = tuple(_checks(contract, verdict))
        return Verification(verdict=verdict, checks=checks)

    async def before(self, contract: Contract, root: WorkRoot) -> Before:
        await self._around.hazard()
        return Before(Baseline(), is_vacuous=self._world.rng.random() < 0.1)


def _checks(contract: Contract, verdict: Verdict) -> Sequence[Check]:
    return [
        Check(
            type=CheckType.ARTIFACT,
            target=artifact.path,
            passed=verdict is Verdict.PASSED,
            reason=None if verdict is Verdict.PASSED else "as the seed says",
            could_not_check=verdict is Verdict.COULD_NOT_CHECK,
        )
        for artifact in contract.artifacts
    ]
