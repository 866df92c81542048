"""``python -m tests.simulation.cluster_simulator``: several real engines on one shared database.

Every seed is a small cluster: two to four nodes, some sessions whose runs are retried, depend on
each other, spawn children and are cancelled, and readers, all of whom call whichever node they
like. Nodes are killed with and without their workers, frozen, cut off and restarted, clocks differ,
and the database is slow, away, and loses answers. A broken invariant prints the seed.
"""

import asyncio
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.simulation.cluster_world import LEASE_S, ClusterFaults, ClusterLoop, ClusterWorld
from tests.simulation.invariants import ANNOUNCE_SUFFIX, Judge
from tests.simulation.outside_world import Faults, Worker
from tests.simulation.scenario import settings_of
from tests.simulation.simulator import (
    Verdict,
    _collected,
    _directory,
    _listening,
    _look_at_complaints,
    _many,
    _one,
    _parser,
    _say,
    _seeds_of,
    _template,
)
from tests.simulation.virtual_loop import Stuck, VirtualClock
from tests.simulation.worker_messages import message

from subagents.config.settings import Retention
from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.spec import Backoff, Cleanup, OnDependencyFailure, RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.run.values import replace as set_
from subagents.engine.engine import Engine
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import SubagentsError, Unavailable

T = TypeVar("T")

BLOWS: Final = ("kill", "kill_machine", "freeze", "cut_off", "outage", "drain")
CHAOS_S: Final = (20.0, 40.0, 80.0)
REST_S: Final = 5.0
STEPS_MAX: Final = 800_000


def cluster_faults_of(rng: random.Random) -> ClusterFaults:
    """Some seeds have one kind of trouble only, some all of them, some none."""

    def rarely(most: float) -> float:
        return most * rng.random() if rng.random() < 0.5 else 0.0

    kinds = BLOWS if rng.random() < 0.5 else (rng.choice(BLOWS),)
    return ClusterFaults(
        blows_s=rng.choice((0.0, 3.0, 8.0, 8.0, 20.0)),
        kinds=kinds,
        skew_s=rng.choice((0.0, 0.0, 0.5, 4.0)),
        slow_s=rng.choice((0.05, 0.05, 0.5, LEASE_S)),
        commit_fails=rarely(0.03),
        answer_lost=rarely(0.03),
    )


def signal_faults_of(rng: random.Random) -> Faults:
    """What the workers' adapters do besides."""

    def rarely(most: float) -> float:
        return most * rng.random() if rng.random() < 0.5 else 0.0

    return Faults(
        start_refused=rarely(0.2),
        doubled=rarely(0.3),
        reordered=rarely(0.3),
        late_s=rng.choice((0.0, 0.5)),
        stop_fails=rarely(0.3),
    )


class ClusterJudge(Judge):
    """The judge of one database that several engines write."""

    def _look_at_lanes(self) -> None:
        """A lane's slots are those of each node."""

    def stopping(self, run_id: RunId, number: int, *, now_ms: int) -> None:
        """See ``Judge.stopping``; by the clock of whichever machine that is ahead most."""
        super().stopping(run_id, number, now_ms=now_ms + self.skew_ms)

    skew_ms = 0


class ClusterScenario:
    """The callers of one simulation, who live over everything."""

    def __init__(self, seed: int, world: ClusterWorld, judge: Judge) -> None:
        self._world, self._judge = world, judge
        self._rng = random.Random(f"{seed}:scenario")
        self._seed = seed
        self.chaos_s = self._rng.choice(CHAOS_S)
        count = self._rng.choice((2, 3, 5))
        self.sessions = [SessionKey(f"agent:main:s{seed}x{number}") for number in range(count)]
        self._runs_left = self._rng.randrange(4, 14)
        self._labels = 0
        self._keyed: dict[tuple[SessionKey, str], RunId] = {}
        self._told: dict[RunId, int] = {}
        """The newest state of each run that some caller was told by its owner."""
        self.is_over = False

    def start(self) -> None:
        """Begin everything."""
        world = self._world
        spawners = []
        for machine in world.machines:
            self._begin(machine.live())
        for session in self.sessions:
            spawners.append(self._begin(self._spawn_some(session)))
            self._begin(self._read_on(session, f"{session}/reader"))
        self._begin(self._look_on())
        self._begin(self._control())
        self._begin(self._lead_workers())
        self._begin(world.strike())
        self._begin(self._end(spawners))

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._judge.fail("the simulation itself works", repr(error))

    async def _pause(self, most_s: float) -> None:
        await asyncio.sleep(self._rng.random() * most_s)

    async def _try(self, request: Callable[[Engine], Coroutine[Any, Any, T]]) -> T | None:
        try:
            return await self._world.call(request)
        except SubagentsError:
            return None

    def _tell(self, runs: Iterable[Run], before: Mapping[RunId, int]) -> None:
        """A caller has this answer; ``before`` is what was told when it began to ask.

        What is over, any node reads in the database: its owner may not know yet that its last
        commit arrived (docs/cluster.md), so that this binds nobody.
        """
        for run in runs:
            if run.seq < before.get(run.id, 0):
                self._judge.fail(
                    "nobody is told less than was told before",
                    f"{run.id} seq {run.seq}, told {before[run.id]}",
                )
            if run.phase not in OVER:
                self._told[run.id] = max(run.seq, self._told.get(run.id, 0))

    # -- spawning ------------------------------------------------------------------------------

    async def _spawn_some(self, session: SessionKey) -> None:
        accepted: list[RunId] = []
        while self._runs_left > 0:
            self._runs_left -= 1
            await self._pause(self._rng.choice((0.0, 1.0, 10.0)))
            depends: tuple[RunId, ...] = ()
            if accepted and self._rng.random() < 0.3:
                depends = tuple(self._rng.sample(accepted, k=min(len(accepted), 2)))
            self._labels += 1
            spec = self._spec(f"job{self._labels}", depends_on=depends)
            run = await self._submit(spec, session)
            if run is not None:
                accepted.append(run.id)

    def _spec(self, label: str, **given: Any) -> RunSpec:
        rng = self._rng
        return RunSpec(
            task=f"do {label}",
            label=label,
            idempotency_key=f"key of {label}",
            agent_id=rng.choice((None, "main", "plain")),
            priority=rng.choice((0, 0, 0, 5)),
            run_timeout_seconds=rng.choice((60, 60, 30)),
            retry_count=rng.choice((0, 1, 3, 5)),
            retry_delay=rng.choice((0, 100, 2000)),
            retry_backoff=rng.choice(tuple(Backoff)),
            cleanup=rng.choice(tuple(Cleanup)),
            on_dependency_failure=rng.choice((OnDependencyFailure.CANCEL, OnDependencyFailure.RUN)),
            **given,
        )

    async def _submit(self, spec: RunSpec, session: SessionKey) -> Run | None:
        """Until somebody says yes or no; each time maybe to another node."""
        is_operator = session in self.sessions
        twice = self._rng.random() < 0.2
        while True:
            try:
                receipt = await self._world.call(
                    lambda engine: engine.spawner.spawn(
                        spec,
                        SpawnContext(
                            session=session,
                            settings=self._world.settings,
                            cwd="/",
                            is_operator=is_operator,
                        ),
                    )
                )
            except Unavailable:
                await self._pause(2.0)
                continue
            except SubagentsError:
                return None
            self._judge.promised(receipt.run)
            self._tell([receipt.run], {})
            key = (session, spec.idempotency_key or "")
            first = self._keyed.setdefault(key, receipt.run.id)
            if first != receipt.run.id:
                self._judge.fail("one run per idempotency key", f"{key}: {first} and another")
            if not twice:
                return receipt.run
            twice = False

    # -- reading -------------------------------------------------------------------------------

    async def _read_on(self, session: SessionKey, name: str) -> None:
        while not self._world.is_calm:
            await self._pause(6.0)
            await self._read_once(session, name, wait_s=self._rng.choice((0.0, 3.0, 12.0)))

    async def _read_once(
        self, session: SessionKey, reader: str, *, wait_s: float, surely: bool = False
    ) -> None:
        before, seen = dict(self._told), list[Run]()

        async def wait(engine: Engine) -> list[str]:
            found = await engine.mailbox.wait(
                [], session=session, until="any", timeout_s=wait_s, reader=reader
            )
            seen[:] = (*found.completed, *found.pending)
            for run in seen:
                self._judge.promised(run)
            return self._offered(found.offered, reader, engine)

        async def read(engine: Engine) -> list[str]:
            rows = await engine.mailbox.offer_inbox(session, reader=reader)
            return self._offered([row.message.id for row in rows], reader, engine)

        names = await self._try(wait if wait_s else read)
        if names is not None:
            self._tell(seen, before)
        if not names or (not surely and self._rng.random() < 0.2):
            return
        await self._pause(1.0)
        self._world.channels.let_go(names, reader)
        done = await self._try(lambda engine: engine.mailbox.acknowledge(names, reader=reader))
        if done is None:
            return
        self._world.channels.acknowledged([n for n in names if not n.endswith(ANNOUNCE_SUFFIX)])
        for name in names:
            if name.endswith(ANNOUNCE_SUFFIX):
                self._judge.consumed(name)

    async def _look_on(self) -> None:
        """Somebody who asks for runs one by one."""
        rng = random.Random(f"{self._seed}:looks")
        while not self._world.is_calm:
            await asyncio.sleep(rng.random() * 2)
            before = dict(self._told)
            if not before:
                continue
            run_id = rng.choice(list(before)[-6:])
            run = await self._try(lambda engine, it=run_id: engine.queries.run(it))  # type: ignore[misc]  # the default binds this run
            if run is not None:
                self._judge.promised(run)
                self._tell([run], before)

    def _offered(self, found: Sequence[str], reader: str, engine: Engine) -> list[str]:
        """Inside the daemon, at the step at which it hands them over."""
        names = [str(name) for name in found]
        self._world.channels.offered(names, reader, self._life_of(engine))
        return names

    def _life_of(self, engine: Engine) -> int:
        lives = [each.life for each in self._world.machines]
        return next((e.number for e in lives if e is not None and e.engine is engine), -1)

    # -- control -------------------------------------------------------------------------------

    async def _control(self) -> None:
        rng, numbers = self._rng, itertools.count()
        while not self._world.is_calm:
            await self._pause(15.0)
            known = list(self._judge.view)
            if not known:
                continue
            run_id = rng.choice(known[-6:])
            match rng.randrange(3):
                case 0:
                    self._judge.cancels_asked.add(run_id)
                    await self._try(
                        lambda engine, it=run_id: engine.control.cancel(it, by="simulation")  # type: ignore[misc]  # the default binds this run
                    )
                case 1:
                    text = message(next(numbers))
                    await self._try(
                        lambda engine, it=run_id, text=text: engine.control.steer(it, text, by="it")  # type: ignore[misc]
                    )
                case _:
                    await self._try(lambda engine: engine.sweep.once())

    async def _lead_workers(self) -> None:
        workers = self._world.workers
        while True:
            await workers.started.wait()
            workers.started.clear()
            fresh, workers.on_start = workers.on_start, []
            for worker in fresh:
                self._begin(self._act(worker))

    async def _act(self, worker: Worker) -> None:
        """Some workers spawn a child, and go on."""
        rng = random.Random(f"{self._seed}:{worker.label}#{worker.number}:acts")
        if rng.random() < 0.6:
            return
        loop = self._world.loop
        await asyncio.sleep(rng.random() * min(worker.ends_s - loop.time(), 10.0))
        label = f"{worker.label}/{worker.number}"
        spec = self._spec(label)
        while self._world.workers.is_live(worker):
            found = await self._try(
                lambda engine: engine.spawner.spawn(
                    spec,
                    SpawnContext(
                        session=worker.session_key,
                        settings=self._world.settings,
                        cwd="/",
                        is_operator=False,
                    ),
                )
            )
            if found is not None:
                self._judge.promised(found.run)
                return
            await asyncio.sleep(rng.random() * 2 + 0.1)

    # -- the end -------------------------------------------------------------------------------

    async def _end(self, spawners: "Sequence[asyncio.Task[None]]") -> None:
        world = self._world
        await asyncio.sleep(self.chaos_s)
        world.mend()
        await asyncio.wait(spawners)
        while self.unrest():
            for run in tuple(self._judge.view.values()):
                await self._discard(run)
            for session in self.sessions:
                await self._read_once(session, f"{session}/last", wait_s=0.0, surely=True)
            await asyncio.sleep(REST_S)
        self._check_end()
        self.is_over = True

    async def _discard(self, run: Run) -> None:
        worker = self._world.workers.workers.get(run.attempt_id) if run.attempts else None
        hangs = worker is not None and worker.ends_s - self._world.loop.time() > 100
        if hangs and run.control.cancel is None and not run.is_settled:
            self._judge.cancels_asked.add(run.id)
            await self._try(lambda engine: engine.control.cancel(run.id, by="simulation"))

    def unrest(self) -> str:
        """What there is still to be done, for people; empty = all is at rest."""
        world, judge = self._world, self._judge
        found = [f"{run.id} is {run.phase}" for run in judge.view.values() if run.phase not in OVER]
        found += [f"{key} is not done" for key in judge.outstanding]
        owned = []
        for machine in world.machines:
            life = machine.life
            if life is None or not life.is_serving:
                return f"{machine.name} does not serve"
            if life.engine.ledger.live or life.engine.supervisor.live_attempts:
                found.append(f"{life.store.identity} has runs in memory")
            found += [f"{machine.name} keeps a slot of {each}" for each in life.far.slots.used]
            owned.append(len(world.database.owned(life.store.identity)))
        if sum(owned) != PARTITIONS or max(owned) > -(-PARTITIONS // len(owned)):
            found.append(f"partitions are divided as {owned}")
        unread = world.reader().inbox(None, unconsumed=True)
        found += [
            f"{row.message.id} is unread"
            for row in unread
            if row.message.session_key in self.sessions
        ]
        return "; ".join(found)

    def _check_end(self) -> None:
        lives = [machine.life for machine in self._world.machines]
        engines = [life.engine for life in lives if life is not None]
        self._judge.at_rest(self._world.reader(), *engines)


def simulate(seed: int, *, is_traced: bool = False) -> Verdict:
    """Run one seed from an empty database to the end of everything."""
    with _collected():
        return _judged(seed, is_traced=is_traced)


def _judged(seed: int, *, is_traced: bool) -> Verdict:
    judge = ClusterJudge(_say if is_traced else lambda _: None)
    with _listening(judge), tempfile.TemporaryDirectory(dir=_directory()) as directory:
        return _simulate(seed, judge, Path(directory))


def _simulate(seed: int, judge: ClusterJudge, directory: Path) -> Verdict:
    loop = ClusterLoop(random.Random(f"{seed}:order"))  # type: ignore[abstract]  # no sockets, no signals
    clock = VirtualClock(loop)
    judge.now_s = loop.time
    rng = random.Random(f"{seed}:settings")
    settings = set_(settings_of(rng), retention=Retention(result_retention_days=7))
    faults = cluster_faults_of(rng)
    judge.skew_ms = round(faults.skew_s * 1000)
    judge.note(f"seed {seed} {faults}")
    world = ClusterWorld(
        seed=seed,
        loop=loop,
        clock=clock,
        judge=judge,
        faults=replace(signal_faults_of(rng)),
        cluster_faults=faults,
        settings=settings,
        template=_template(),
        directory=directory,
        nodes=rng.choice((2, 3, 3, 4)),
    )
    scenario = ClusterScenario(seed, world, judge)
    judge.operators = scenario.sessions
    judge.children_max = settings.defaults.max_children_per_agent
    loop.call_soon(scenario.start)
    try:
        loop.run(is_over=lambda: scenario.is_over or judge.is_broken, steps_max=STEPS_MAX)
    except Stuck as stuck:
        judge.fail("everything comes to rest", f"{stuck}; {scenario.unrest()}")
    world.close()
    _look_at_complaints(loop, judge)
    loop.close()
    return Verdict(
        seed=seed,
        broken=judge.broken,
        digest=judge.digest,
        crashes=world.blows,
        events=judge.events,
        runs=len(judge.view),
        virtual_s=loop.time(),
        steps=loop.steps,
        program="cluster_simulator",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds, or one; 0 = nothing broke."""
    options = _parser("cluster_simulator").parse_args(arguments)
    if options.seed is not None:
        return _one(options.seed, simulate, is_traced=options.trace)
    return _many(_seeds_of(options, "cluster_simulator"), options.workers, simulate)


if __name__ == "__main__":
    sys.exit(main())
