"""What happens in one simulation, drawn from its seed: settings, faults, and who asks for what.

Callers are outside: they live over every crash, repeat what was not answered, and remember what
they were promised. After ``Scenario.chaos_s`` nothing goes wrong any more; then everybody reads
until nothing is left, and everything must come to rest.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from tests.simulation import worker_messages
from tests.simulation.client_programs import ReadingPrograms
from tests.simulation.host import Host
from tests.simulation.invariants import ALL, ANNOUNCE_SUFFIX, Judge
from tests.simulation.outside_world import (
    BURST,
    Faults,
    Worker,
    World,
)
from tests.simulation.record_checks import check_records
from tests.simulation.schedule_talk import ScheduleTalk
from tests.simulation.session_talk import SessionTalk
from tests.simulation.stop_talk import StopTalk
from tests.simulation.worker_talk import check_transcripts, unseen_ends

from subagents.config.settings import (
    Agent,
    AgentSubagents,
    DaemonSettings,
    LaneSettings,
    Retention,
    Settings,
    SubagentDefaults,
)
from subagents.domain.rules.budgets.request_holds import Counted, Need
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.run import OVER, Decision, MessageKind, Phase, Progress, Report, Run
from subagents.domain.run.signals import Exited
from subagents.domain.run.spec import (
    Artifact,
    Backoff,
    Budget,
    Checks,
    Cleanup,
    Contract,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.domain.run.spec import Judge as ContractJudge
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RequestId, RunId, SessionKey
from subagents.domain.run.values import replace as set_
from subagents.engine.engine import Engine
from subagents.engine.messages.mailbox import WaitResult
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import RunAsked, SpawnContext
from subagents.errors import DaemonUnreachable, StoreUnavailable, SubagentsError
from subagents.extensions.track_record.track_record_log import TrackRecords
from subagents.ports import InboxRow

T = TypeVar("T")

SESSIONS: Final = (
    SessionKey("agent:main:main"),
    SessionKey("agent:main:work"),
    SessionKey("agent:plain:talk"),
)
OPERATORS: Final = (SESSIONS[0], SESSIONS[2])
"""Callers that are no agents: nothing caps them. Runs are retried and continued in their name."""
READ_AGAIN_S: Final = 20.0
PROMPT_S: Final = 9.0
"""More than two commits on the slowest disk take."""
WATCHED_WELL_S: Final = 5
"""So long a watch must not fail to count as well again."""
KILLED: Final = 0.15
"""Of readers, each time they were handed something or hold the line."""


def burst_of(seed: int) -> int:
    """How many runs of this seed end in the same instant; mostly none, because they take long."""
    rng = random.Random(f"{seed}:burst")
    return rng.choice((10, 50)) if rng.random() < 0.04 else 0


def settings_of(rng: random.Random, *, burst: int = 0) -> Settings:
    """Few slots and low caps, so that they matter; for a burst enough of both."""
    agents = {
        "main": Agent(runtime="able", grace_seconds=rng.choice((0.0, 1.0, 5.0))),
        "plain": Agent(runtime="plain", lane=rng.choice((None, "narrow"))),
    }
    anybody = AgentSubagents(allow_agents=("*",))
    agents = {name: set_(agent, subagents=anybody) for name, agent in agents.items()}
    return Settings(
        defaults=SubagentDefaults(
            max_spawn_depth=rng.choice((1, 2, 3)),
            max_children_per_agent=rng.choice((2, 3, 5, 12)) + burst,
            max_concurrent=rng.choice((1, 2, 4)) + burst,
            archive_after_minutes=rng.choice((0, 1, 60)),
            run_timeout_seconds=rng.choice((0, 0, 0, 8)),
        ),
        agents=agents,
        lanes={"narrow": LaneSettings(slots=1), "wide": LaneSettings(slots=3)},
        daemon=DaemonSettings(
            lease_seconds=rng.choice((3, 3, 30)), sweep_seconds=rng.choice((20, 60))
        ),
    )


def faults_of(rng: random.Random) -> Faults:
    """Some seeds have one kind of trouble only, some all of them, some none."""

    def rarely(most: float) -> float:
        return most * rng.random() if rng.random() < 0.5 else 0.0

    return Faults(
        start_refused=rarely(0.4),
        start_unclear=rarely(0.3),
        start_impossible=rarely(0.05),
        watch_fails=rarely(0.2),
        watch_dead=0.3 if rng.random() < 0.08 else 0.0,
        doubled=rarely(0.5),
        reordered=rarely(0.5),
        lost=rarely(0.5),
        late_s=rng.choice((0.0, 0.5, 4.0)),
        stop_fails=rarely(0.5),
        courier_fails=rarely(0.5),
        courier_defers=rarely(0.4),
        courier_delivers=rarely(0.5),
        courier_dead=rng.random() < 0.04,
        checker_fails=rarely(0.3),
        commit_fails=rarely(0.03),
        commit_unclear=rarely(0.02),
        crash_in_commit=rarely(0.05),
        crash_in_effect=rarely(0.05),
        crash_steps=rng.choice((0.0, 40.0, 200.0, 600.0)),
        clock_jumps=rng.random() < 0.2,
        slow_disk_s=rng.choice((0.05, 0.05, 2.5)),
    )


def retention_of(seed: int) -> Retention:
    """Whether runs are deleted as soon as everybody has read of their end."""
    days = random.Random(f"{seed}:retention").choice((0, 7))
    return Retention(result_retention_days=days)


def hardware_faults_of(rng: random.Random) -> dict[str, Any]:
    """What the disk and the memory do: nothing in half of the seeds, mostly one thing."""
    if rng.random() < 0.5:
        return {}

    def rarely(most: float) -> float:
        return most * rng.random() if rng.random() < 0.3 else 0.0

    has_power = rng.random() < 0.5
    return {
        "power_loss": 0.0 if has_power else rng.choice((0.3, 1.0)),
        "power_loss_in_commit": 0.0 if has_power else rarely(0.05),
        "disk_full_s": rng.choice((0.0, 0.0, 0.0, 10.0, 40.0)),
        "writes_fail": rarely(0.2),
        "reads_fail": rarely(0.1),
        "memory_fails": rarely(0.02),
        "is_small": rng.random() < 0.3,
    }


class Scenario:
    """The callers of one simulation, each a task of the outside world."""

    def __init__(self, seed: int, host: Host, world: World, judge: Judge) -> None:
        self._seed = seed
        self._host, self._world, self._judge = host, world, judge
        self._rng = random.Random(f"{seed}:scenario")
        self._numbers = itertools.count()
        self._purse = random.Random(f"{seed}:budgets")
        self._bench = random.Random(f"{seed}:judges")
        self._keeping = random.Random(f"{seed}:keeping")
        self._judged = self._bench.choice((0.0, 0.9, 0.9))
        """Of the contracts, how many have a judge."""
        self._budgeted = self._purse.choice((0.0, 0.0, 0.5, 0.9))
        """Of the runs, how many have a budget."""
        self.chaos_s = self._rng.choice((20.0, 60.0, 120.0))
        self._runs_left = self._rng.randrange(4, 13)
        self._labels = 0
        self._batches: list[tuple[str, ...]] = []
        self._keyed: dict[tuple[SessionKey, str], RunId] = {}
        self._channels = host.channels
        self._tasks: list[asyncio.Task[None]] = []
        self._progressed: Counter[RunId] = Counter()
        """How many updates of a run were acknowledged as kept."""
        self._following = asyncio.Lock()
        self._followed: dict[int, tuple[RunId, int]] = {}
        """What a follower of all events was told, by number."""
        self._followed_to = 0
        """The number behind which it goes on."""
        self.is_over = False

    def start(self) -> None:
        """Begin everything."""
        sessions = SESSIONS[: self._rng.choice((1, 2, 2, 3))]
        spawners = [self._start(self._spawn_some(session)) for session in sessions]
        if burst := burst_of(self._seed):
            spawners.append(self._start(self._spawn_burst(sessions[0], burst)))
        for session in sessions:
            for number in range(self._readers()):
                self._start(self._read_on(session, f"{session}/reader{number}"))
            if not self._host.faults.courier_dead:
                programs = ReadingPrograms(self._seed, self._host, session, self._known_runs)
                self._start(programs.go_on())
        self._start(self._host.fill_disk())
        self._start(self._control())
        self._start(SessionTalk(self._seed, self._host, self._judge, SESSIONS[0]).go_on())
        stops = StopTalk(self._seed, self._host, self._judge)
        if stops.is_wanted:
            self._start(stops.go_on())
        talk = ScheduleTalk(
            self._seed, self._host.call, SESSIONS[0], self._scheduled, self._judge.times
        )
        if talk.is_wanted:
            spawners.append(self._start(self._schedule_until_calm(talk)))
        self._start(self._lead_workers())
        self._start(self._follow())
        if self._budgeted:
            self._start(self._ask_for_requests())
        if self._host.faults.clock_jumps:
            self._start(self._jump())
        self._start(self._end(sessions, spawners))

    async def _schedule_until_calm(self, talk: ScheduleTalk) -> None:
        using = self._start(talk.go_on())
        await asyncio.sleep(self.chaos_s)
        using.cancel()
        await talk.remove()

    def _scheduled(self, label: str) -> RunSpec:
        """A run that no other run and no contract of this seed depends on."""
        return RunSpec(task=f"do {label}", label=label, run_timeout_seconds=30)

    def _readers(self) -> int:
        """Nobody reads where deliveries are to be given up, and elsewhere some only come late."""
        return 0 if self._host.faults.courier_dead else self._rng.choice((0, 1, 1, 2, 2, 3, 3))

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._judge.fail("the simulation itself works", repr(error))

    async def _pause(self, most_s: float) -> None:
        await asyncio.sleep(self._rng.random() * most_s)

    async def _try(
        self,
        request: Callable[[Engine], Coroutine[Any, Any, T]],
        *,
        patience_s: float | None = None,
    ) -> T | None:
        """One call; refusals, crashes and the caller's own death are answers too."""
        try:
            return await self._host.call(request, patience_s=patience_s)
        except SubagentsError:
            return None

    # -- spawning ------------------------------------------------------------------------------

    async def _spawn_some(self, session: SessionKey) -> None:
        accepted: list[RunId] = []
        while self._runs_left > 0:
            await self._pause(self._rng.choice((0.0, 1.0, 10.0)))
            specs = self._job(accepted)
            self._runs_left -= len(specs)
            receipts = await self._submit(specs, session)
            accepted += [receipt.run.id for receipt in receipts]

    async def _spawn_burst(self, session: SessionKey, count: int) -> None:
        """Many runs at once whose workers all end in the same instant."""
        labels = [f"{BURST}{number}" for number in range(count)]
        specs = [RunSpec(task=label, label=label, run_timeout_seconds=0) for label in labels]
        while not await self._submit(specs, session):
            await self._pause(1.0)
            if any(run.resolved.label == BURST + "0" for run in self._judge.view.values()):
                return  # accepted, and the answer was lost

    def _job(self, earlier: Sequence[RunId]) -> list[RunSpec]:
        rng = self._rng
        shape = rng.choice(("single", "single", "single", "after", "chain", "fan-in", "batch"))
        if shape == "after" and earlier:
            depends = tuple(rng.sample(earlier, k=min(len(earlier), rng.randrange(1, 4))))
            return [self._spec(self._label(), depends_on=depends)]
        if shape in {"single", "after"}:
            return [self._spec(self._label())]
        labels = [self._label() for _ in range(rng.randrange(2, 5))]
        if shape == "batch":
            return [self._spec(label) for label in labels]
        if shape == "chain":
            first = [self._spec(labels[0])]
            pairs = zip(labels[1:], labels, strict=False)
            return first + [self._spec(label, chain_after=before) for label, before in pairs]
        specs = [self._spec(label) for label in labels[:-1]]
        return [*specs, self._spec(labels[-1], depends_on=tuple(labels[:-1]))]

    def _label(self) -> str:
        self._labels += 1
        return f"job{self._labels}"

    def _spec(self, label: str, **given: Any) -> RunSpec:
        rng = self._rng
        return RunSpec(
            task=f"do {label}",
            label=label,
            agent_id=rng.choice((None, "main", "plain")),
            lane=rng.choice((None, None, "narrow", "wide")),
            priority=rng.choice((0, 0, 0, 5)),
            run_timeout_seconds=rng.choice((None, None, None, 3, 30)),
            retry_count=rng.choice((0, 0, 1, 3)),
            retry_delay=rng.choice((0, 100, 2000)),
            retry_backoff=rng.choice(tuple(Backoff)),
            retry_on=rng.choice(((), (), ("boom",))),
            retry_max_time=rng.choice((None, None, 5_000)),
            verification=self._contract(),
            budget=self._budget(),
            cleanup=rng.choice(tuple(Cleanup)),
            expects_completion_message=rng.random() < 0.7,
            include_dependency_result=rng.random() < 0.3,
            **self._on_dependency_failure(),
            accept_partial_dependencies=rng.random() < 0.5,
            dependency_timeout_seconds=rng.choice((1800, 1800, 6)),
            **given,
        )

    def _on_dependency_failure(self) -> dict[str, Any]:
        """Of those that run all the same, some by a fallback: no draw more, so that seeds keep."""
        drawn = self._rng.choice((OnDependencyFailure.CANCEL, OnDependencyFailure.RUN))
        if drawn is OnDependencyFailure.CANCEL or self._labels % 2:
            return {"on_dependency_failure": drawn}
        agent = "main" if self._labels % 4 else "plain"
        return {
            "on_dependency_failure": OnDependencyFailure.FALLBACK,
            "fallback_agent_id": agent,
        }

    def _contract(self) -> Contract | None:
        if self._rng.random() < 0.6:
            return None
        return Contract(
            artifacts=(Artifact(path="out.json", json=True),),
            on_failure=self._rng.choice(tuple(OnFailure)),
            judge=self._contract_judge(),
        )

    def _contract_judge(self) -> ContractJudge | None:
        bench = self._bench
        if bench.random() >= self._judged:
            return None
        return ContractJudge(
            agent_id=bench.choice(("main", "plain")),
            criteria="it is good",
            run_timeout_seconds=bench.choice((600, 600, 5)),
            access=AccessLevel.FULL,
            budget=bench.choice((None, None, Budget(max_tokens=300), Budget(max_seconds=3))),
            verification=bench.choice((None, None, Checks(artifacts=(Artifact(path="v.md"),)))),
        )

    def _budget(self) -> Budget | None:
        """So small that workers, which use up to 1,000 tokens ($1) an attempt, come to its end."""
        purse = self._purse
        if purse.random() >= self._budgeted:
            return None
        return Budget(
            max_tokens=purse.choice((None, 400, 1_500, 4_000)),
            max_cost_usd=purse.choice((None, None, 0.5, 3.0)),
            max_runs=purse.choice((None, None, 1, 2, 4)),
            max_seconds=purse.choice((None, None, None, 4, 30)),
        )

    async def _submit(self, specs: list[RunSpec], session: SessionKey) -> Sequence[Receipt]:
        """Spawn, with a key that makes repeating safe, or (for batches) once only."""
        labels = tuple(spec.label or "" for spec in specs)
        self._batches.append(labels)
        is_keyed = len(specs) == 1 and self._rng.random() < 0.8
        if is_keyed:
            specs = [set_(specs[0], idempotency_key=f"key of {labels[0]}")]
        twice = is_keyed and self._rng.random() < 0.3
        if twice:
            self._start(self._submit_again(specs[0], session))
        while True:
            try:
                receipts = await self._host.call(
                    lambda engine: engine.spawner.spawn_batch(
                        [RunAsked(spec=each) for each in specs],
                        SpawnContext(
                            session=session,
                            settings=self._host.settings,
                            cwd="/",
                            is_operator=session in OPERATORS,
                        ),
                    )
                )
            except (DaemonUnreachable, StoreUnavailable):
                if not is_keyed:
                    return ()
                await self._pause(2.0)
                continue
            except SubagentsError:
                return ()
            for receipt in receipts:
                self._check_receipt(receipt)
            return receipts

    async def _submit_again(self, spec: RunSpec, session: SessionKey) -> None:
        receipt = await self._try(
            lambda engine: engine.spawner.spawn(
                spec,
                SpawnContext(
                    session=session,
                    settings=self._host.settings,
                    cwd="/",
                    is_operator=session in OPERATORS,
                ),
            )
        )
        if receipt is not None:
            self._check_receipt(receipt)

    def _check_receipt(self, receipt: Receipt) -> None:
        run, key = receipt.run, receipt.run.spec.idempotency_key
        self._judge.promised(run)
        if key is None:
            return
        first = self._keyed.setdefault((run.requester, key), run.id)
        if first != run.id:
            self._judge.fail("one run per idempotency key", f"{key}: {first}, {run.id}")

    # -- reading -------------------------------------------------------------------------------

    async def _read_on(self, session: SessionKey, name: str) -> None:
        """One reader after the other: killed ones are followed by a new process."""
        rng, born = self._rng, 0
        while not self._host.is_calm:
            await self._pause(8.0)
            reader = f"{name}.{born}"
            reading = self._wait_once if rng.random() < 0.5 else self._read_once
            is_alive = await reading(session, reader, patience=0.7)
            born += not is_alive

    async def _wait_once(self, session: SessionKey, reader: str, *, patience: float) -> bool:
        """Hold the line for some runs or all; False = this reader was killed."""
        rng = self._rng
        known = self._known_runs()
        ids = rng.sample(known, k=min(len(known), 3)) if rng.random() < 0.5 else []
        until, timeout_s = rng.choice(("any", "all")), rng.choice((0.0, 3.0, 15.0))
        killed_s = rng.random() * timeout_s if self._is_killed() else None

        async def wait(engine: Engine) -> WaitResult:
            found = await engine.mailbox.wait(
                ids, session=session, until=until, timeout_s=timeout_s, reader=reader
            )
            self._offered(found.offered, reader)
            return found

        began_s = self._world.loop.time()
        found = await self._try(wait, patience_s=killed_s)
        if found is None:
            return killed_s is None
        if ids and until == "any":
            self._check_promptness(found, began_s)
        for run in (*found.completed, *found.pending):
            self._judge.promised(run)
        for run in found.completed:
            if run.outcome is None:
                self._judge.fail("nothing seen before its commit", f"{run.id} without outcome")
        return await self._take(found.offered, reader, patience=patience)

    def _check_promptness(self, found: WaitResult, began_s: float) -> None:
        """Who waits for any of some runs hears of an end when it comes, not when it gives up."""
        ended_s = [self._judge.settled_s.get(run.id, began_s) for run in found.completed]
        since_s = max(began_s, min(ended_s, default=began_s))
        if ended_s and self._world.loop.time() - since_s > PROMPT_S:
            self._judge.fail("who waits is woken", f"{found.completed[0].id} at {since_s:.1f}")

    async def _read_once(self, session: SessionKey, reader: str, *, patience: float) -> bool:
        """Take what lies in the inbox; False = this reader was killed."""
        rng = self._rng

        async def read(engine: Engine) -> Sequence[InboxRow]:
            rows = await engine.mailbox.offer_inbox(session, reader=reader)
            self._offered([row.message.id for row in rows], reader)
            return rows

        rows = await self._try(read)
        for row in rows or ():
            if row.message.kind is MessageKind.QUESTION and rng.random() < patience:
                await self._answer(row, reader)
        return await self._take([row.message.id for row in rows or ()], reader, patience=patience)

    def _is_killed(self) -> bool:
        return not self._host.is_calm and self._rng.random() < KILLED

    def _offered(self, names: Sequence[str], reader: str) -> None:
        """Inside the daemon, at the step at which it hands them over."""
        self._channels.offered([str(name) for name in names], reader, self._host.life_number)

    async def _take(self, names: Sequence[str], reader: str, *, patience: float) -> bool:
        """Acknowledge what was handed over, or not; False = killed with it in its hands."""
        if names and self._is_killed():
            return False
        if self._rng.random() < patience:
            await self._acknowledge([str(name) for name in names], reader, within_s=1.0)
        elif names and self._rng.random() < 0.5:
            # Slower than its lease, maybe: then another reader has the same in its hands.
            late = self._acknowledge([str(name) for name in names], reader, within_s=120.0)
            self._start(late)
        return True

    async def _acknowledge(self, names: Sequence[str], reader: str, *, within_s: float) -> None:
        await self._pause(self._rng.choice((0.0, within_s)))
        if self._rng.random() < 0.2:
            names = [*names, *names]
        self._channels.let_go([*names], reader)
        done = await self._try(lambda engine: engine.mailbox.acknowledge(names, reader=reader))
        if done is None:
            return
        # Questions are consumed by their answers.
        self._channels.acknowledged(
            [n for n in names if not n.endswith(ANNOUNCE_SUFFIX) and ":q" not in n]
        )
        for name in names:
            if name.endswith(ANNOUNCE_SUFFIX):
                self._judge.consumed(name)

    async def _answer(self, row: InboxRow, reader: str) -> None:
        request_id = RequestId(row.message.id)
        decision = self._rng.choice((Decision.ANSWER, Decision.APPROVE, Decision.DENY))
        await self._try(
            lambda engine: engine.questions.answer(
                request_id, "as you like", decision=decision, by=reader
            )
        )

    async def _follow(self) -> None:
        """Somebody follows all events, over every daemon."""
        rng = random.Random(f"{self._seed}:feed")
        while not self._host.is_calm:
            await asyncio.sleep(rng.random() * 20)
            await self._look_at_feed()

    async def _look_at_feed(self) -> bool:
        """Read one page of it; False = nothing was new."""
        async with self._following:  # there is one follower
            return await self._look_behind(self._followed_to)

    async def _look_behind(self, after: int) -> bool:
        page = await self._try(lambda engine: engine.feed.page(after))
        if page is None:
            return False
        for each in page.happened:
            number, entry = each.found.number, each.found.entry
            if number <= after or number in self._followed:
                self._judge.fail("events have numbers of their own", f"{number} after {after}")
            self._followed[number] = (entry.run_id, entry.seq)
        self._followed_to = page.number
        return page.number > after

    def _has_followed_all(self) -> bool:
        return not self._host.reader().feed(after=self._followed_to, limit=1)

    def _check_feed(self) -> None:
        told = Counter(self._followed.values())
        for run in self._judge.view.values():
            missing = [seq for seq in range(1, run.seq + 1) if not told[run.id, seq]]
            if missing and run.id not in self._judge.pruned:
                self._judge.fail("a follower misses no event", f"{run.id} {missing}")
        if told and max(told.values()) > 1:
            self._judge.fail("a follower hears no event twice", str(told.most_common(1)))

    # -- control -------------------------------------------------------------------------------

    def _known_runs(self) -> list[RunId]:
        return list(self._judge.view)

    async def _control(self) -> None:
        rng = self._rng
        while not self._host.is_calm:
            await self._pause(6.0)
            known = self._known_runs()
            if not known:
                continue
            run_id = rng.choice(known[-6:])
            await rng.choice(self._actions)(self, run_id)

    async def _cancel(self, run_id: RunId) -> None:
        self._judge.cancels_asked.add(run_id)
        run = await self._try(lambda engine: engine.control.cancel(run_id, by="simulation"))
        if run is not None:
            self._judge.promised(run)

    async def _pause_run(self, run_id: RunId) -> None:
        if await self._try(lambda engine: engine.control.pause(run_id, by="simulation")) is None:
            return
        self._start(self._resume_later(run_id))

    async def _resume_later(self, run_id: RunId) -> None:
        await self._pause(20.0)
        await self._try(lambda engine: engine.control.resume(run_id, by="simulation"))

    async def _steer(self, run_id: RunId) -> None:
        text = worker_messages.message(next(self._numbers))
        await self._try(lambda engine: engine.control.steer(run_id, text, by="simulation"))

    async def _sweep(self, _run_id: RunId) -> None:
        await self._try(lambda engine: engine.sweep.once())

    async def _ask_for_old(self) -> None:
        """Somebody wants results again that were archived: they are unread again, and kept."""
        for run in tuple(self._judge.view.values()):
            is_kept = run.times.archived_at_ms is not None and run.id not in self._judge.pruned
            if is_kept and self._keeping.random() < 0.5:
                await self._redeliver(run.id)

    async def _redeliver(self, run_id: RunId) -> None:
        await self._try(lambda engine: engine.control.redeliver(run_id, by="simulation"))

    async def _retry(self, run_id: RunId) -> None:
        settings = self._host.settings
        receipt = await self._try(
            lambda engine: engine.spawner.retry(
                run_id, SpawnContext(session=SESSIONS[0], settings=settings)
            )
        )
        if receipt is not None:
            self._judge.promised(receipt.run)

    async def _restart(self, _run_id: RunId) -> None:
        if self._keeping.random() < 0.5:
            # By an operator who keeps results for less time from now on.
            await self._ask_for_old()
            settings, shorter = self._host.settings, Retention(result_retention_days=0)
            self._host.settings = set_(settings, retention=shorter)
        await self._host.stop()

    _Action = Callable[["Scenario", RunId], Awaitable[None]]
    _actions: tuple[_Action, ...] = (
        *(_cancel, _cancel, _pause_run, _pause_run, _steer, _steer),
        *(_sweep, _redeliver, _retry, _restart),
    )

    async def _jump(self) -> None:
        """The wall clock is corrected now and then, also by more than any lease or deadline."""
        while not self._host.is_calm:
            await self._pause(30.0)
            self._host.clock.skew_ms += self._rng.choice(
                (-3_600_000, -3_000, -50, 700, 4_000, 7_200_000)
            )

    async def _ask_for_requests(self) -> None:
        """Workers ask before they ask their model, as our own loop does; not all are answered."""
        rng = random.Random(f"{self._seed}:holds")
        while not self._host.is_calm:
            await asyncio.sleep(rng.random() * 2)
            known = [run for run in self._judge.view.values() if run.phase is Phase.RUNNING]
            rng.shuffle(known)
            # At once, so that they are in each other's way.
            await asyncio.gather(*(self._ask_for_request(run, rng) for run in known[:3]))

    async def _ask_for_request(self, run: Run, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 2))):
            need = Need(
                input_tokens=rng.choice((1, 50, 400)),
                output_tokens=rng.choice((1, 100, 1_000)),
                input_usd=rng.choice((None, 0.05)),
                output_token_usd=0.001,
            )
            counted = Counted(
                usage=run.attempt.usage or Usage(), lost_tokens=rng.choice((0, 0, 0, 30))
            )
            asked = (run.id, len(run.attempts), need, counted)
            is_firm = rng.random() < 0.3
            await self._try(
                lambda engine, asked=asked, is_firm=is_firm: engine.request_desk.hold(  # type: ignore[misc]  # the defaults bind this question
                    *asked, is_firm=is_firm, line_s=2.0
                )
            )

    # -- workers that act ----------------------------------------------------------------------

    async def _lead_workers(self) -> None:
        while True:
            await self._world.started.wait()
            self._world.started.clear()
            fresh, self._world.on_start = self._world.on_start, []
            for worker in fresh:
                self._start(self._act(worker))

    async def _act(self, worker: Worker) -> None:
        """What the agent of a worker does while it lives: its own calls to the daemon."""
        rng = random.Random(f"{self._seed}:{worker.label}#{worker.number}:acts")
        length_s = min(worker.ends_s - self._world.loop.time(), 30.0)
        for number in range(rng.choice((0, 0, 1, 2, 4))):
            await asyncio.sleep(rng.random() * length_s / 3)
            if not self._world.is_live(worker):
                return
            await rng.choice(self._deeds)(self, worker, number, rng)

    async def _spawn_child(self, worker: Worker, number: int, rng: random.Random) -> None:
        label = f"{worker.label}/{worker.number}.{number}"
        spec = self._spec(label, idempotency_key=f"key of {label}")
        while self._world.is_live(worker):
            try:
                receipt = await self._host.call(
                    lambda engine: engine.spawner.spawn(
                        spec,
                        SpawnContext(
                            session=worker.session_key,
                            settings=self._host.settings,
                            cwd="/",
                            is_operator=False,
                        ),
                    )
                )
            except (DaemonUnreachable, StoreUnavailable):
                await asyncio.sleep(rng.random())
                continue
            except SubagentsError:
                return
            self._check_receipt(receipt)
            return

    async def _wait_for_children(self, worker: Worker, _number: int, rng: random.Random) -> None:
        reader = str(worker.attempt_id)
        timeout_s = rng.choice((1.0, 10.0))

        async def wait(engine: Engine) -> WaitResult:
            found = await engine.mailbox.wait(
                [], session=worker.session_key, until="all", timeout_s=timeout_s, reader=reader
            )
            self._offered(found.offered, reader)
            return found

        found = await self._try(wait)
        if found is not None and self._world.is_live(worker) and rng.random() < 0.7:
            await self._acknowledge([str(name) for name in found.offered], reader, within_s=1.0)

    async def _ask(self, worker: Worker, _number: int, rng: random.Random) -> None:
        timeout_s, default = rng.choice((2.0, 60.0)), rng.choice((None, "go on"))
        request = await self._try(
            lambda engine: engine.questions.ask(
                worker.run_id, "May I?", timeout_s=timeout_s, default_answer=default
            )
        )
        if request is None:
            return
        asked = request.id
        for _ in range(2):
            is_answered = self._is_answered(worker.run_id, asked)
            found = await self._try(lambda engine: engine.questions.answer_of(asked, wait_s=3.0))
            if is_answered and found is not None and found.answer is None:
                self._judge.fail("an answer reaches who asked", asked)

    def _is_answered(self, run_id: RunId, asked: RequestId) -> bool:
        if self._host.has_failed:
            return False  # until it has read its file, the daemon knows less than is in there
        run = self._judge.view.get(run_id)
        requests = () if run is None else run.questions.requests
        return any(each.id == asked and each.answer is not None for each in requests)

    async def _tell(self, worker: Worker, _number: int, rng: random.Random) -> None:
        run_id, kind = worker.run_id, rng.randrange(3)
        if kind == 0:
            await self._try(lambda engine: engine.questions.notify(run_id, "news", priority="info"))
        elif kind == 1:
            await self._try(lambda engine: engine.reports.report(run_id, Report(summary="done")))
        else:
            taken = await self._try(
                lambda engine: engine.reports.progress(run_id, Progress(phase="half"))
            )
            self._progressed[run_id] += taken is not None and taken.stored

    _Deed = Callable[["Scenario", Worker, int, random.Random], Awaitable[None]]
    _deeds: tuple[_Deed, ...] = (_spawn_child, _spawn_child, _wait_for_children, _ask, _tell)

    # -- the end -------------------------------------------------------------------------------

    async def _end(
        self, sessions: Sequence[SessionKey], spawners: Sequence["asyncio.Task[None]"]
    ) -> None:
        """After the chaos: let everything go, read everything, and wait until all is at rest."""
        await asyncio.sleep(self.chaos_s)
        self._host.loop.alarm_at_step = None
        self._host.is_calm = True
        self._host.disk.is_full = False
        await asyncio.wait(spawners)
        while True:
            await self._host.until_up()
            for run in tuple(self._judge.view.values()):
                await self._discard(run)
            is_given_up = all(run.phase in OVER for run in self._judge.view.values())
            if not self._host.faults.courier_dead:
                for session in sessions:
                    await self._read_last(session)
            elif is_given_up:
                await self._mend_courier()
            if self._is_at_rest():
                while await self._look_at_feed():
                    pass
                # Nobody asked for anything meanwhile, and nothing was committed behind the look.
                if self._is_at_rest() and self._has_followed_all():
                    break
            await asyncio.sleep(READ_AGAIN_S)
        self._check_end()
        self.is_over = True

    async def _read_last(self, session: SessionKey) -> None:
        """Two readers at once, one of which holds the line."""
        await asyncio.gather(
            self._read_once(session, f"{session}/last", patience=1.0),
            self._wait_once(session, f"{session}/last waiter", patience=1.0),
        )

    async def _mend_courier(self) -> None:
        """Every delivery was given up; some are tried again by hand, all are read."""
        self._host.faults = replace(self._host.faults, courier_dead=False)
        for run_id in self._known_runs():
            if self._rng.random() < 0.5:
                await self._redeliver(run_id)

    async def _discard(self, run: Run) -> None:
        run_id = run.id
        if run.control.paused:
            await self._try(lambda engine: engine.control.resume(run_id, by="simulation"))
        worker = self._world.workers.get(run.attempt_id) if run.attempts else None
        hangs = worker is not None and worker.ends_s - self._world.loop.time() > 300
        if hangs and run.control.cancel is None and not run.is_settled:
            await self._cancel(run_id)

    def _is_at_rest(self) -> bool:
        life = self._host.life
        if life is None or self._judge.outstanding:
            return False
        if life.engine.ledger.live or life.engine.supervisor.live_attempts:
            return False
        if not TrackRecords.of(life.engine).is_current:
            return False
        unread = self._host.reader().inbox(None, unconsumed=True)
        mine = [row for row in unread if row.message.session_key in SESSIONS]
        return not mine

    def _check_end(self) -> None:
        life = self._host.life
        if life is None:
            return
        self._judge.at_rest(self._host.reader(), life.engine)
        self._check_feed()
        self._check_progress()
        check_records(self._judge, self._host.records())
        said_by = {w.attempt_id: [t.said for t in w.turns] for w in self._world.workers.values()}
        faults = self._host.faults
        check_transcripts(
            self._judge,
            self._host.reader(),
            self._host.transcripts(),
            said_by,
            torn={worker.attempt_id for worker in self._world.workers.values() if worker.is_torn},
            may_lose=max(faults.writes_fail, faults.disk_full_s, faults.memory_fails) > 0,
        )
        labels: Counter[str] = Counter()
        keys: Counter[tuple[SessionKey, str]] = Counter()
        for run in self._judge.view.values():
            labels[run.resolved.label] += 1
            if run.spec.idempotency_key is not None:
                keys[run.requester, run.spec.idempotency_key] += 1
            self._check_attempts(run)
        for key, count in keys.items():
            if count > 1:
                self._judge.fail("one run per idempotency key", f"{key}: {count} runs")
        for batch in self._batches:
            here = sum(label in labels for label in batch)
            if here not in {0, len(batch)}:
                self._judge.fail("never half a spawn", f"{here} of {batch}")

    def _check_progress(self) -> None:
        if self._host.can_lose_power:
            return  # not synced, since nothing is decided by it
        for run_id, count in self._progressed.items():
            kept = len(self._host.progress().read(run_id))
            run = self._judge.view.get(run_id)
            if run is None or run.times.archived_at_ms is not None:
                continue  # a crash may have come between the first and the last of its files
            if kept < count and run_id not in self._judge.forgotten:
                self._judge.fail("acknowledged progress is kept", f"{run_id}: {kept} of {count}")

    def _check_attempts(self, run: Run) -> None:
        for attempt in run.attempts:
            worker = self._world.workers.get(f"{run.id}#{attempt.number}")  # type: ignore[call-overload]
            if worker is None:
                continue
            self._judge.check_stop(run, attempt.number)
            # A turn that was stopped before anybody wrote down its start is not the run's.
            turns = worker.turns[: attempt.turn.number]
            faults = self._host.faults
            is_seen = not (worker.is_unwatchable or faults.watch_fails)
            if self._host.settings.daemon.lease_seconds < WATCHED_WELL_S:
                # One failure in a row with the next uses such a short lease up.
                is_seen = is_seen and not (faults.reads_fail or faults.memory_fails)
            if is_seen and isinstance(turns[-1].signals[-1][1], Exited):
                self._judge.check_not_lost(run, attempt.number)
            said = [(n, turn.result) for n, turn in enumerate(turns, start=1) if turn.result]
            if (
                said
                and not worker.stopped
                and not self._is_unseen(run, attempt.number, said[-1][0])
            ):
                self._judge.check_result(run, attempt.number, said[-1][1], self._host.results())

    def _is_unseen(self, run: Run, attempt: int, turn: int) -> bool:
        """Whether nobody read that turn to its end, although a further one followed."""
        if turn == run.attempts[attempt - 1].turn.number:
            return False
        events = [each.event for each in self._host.reader().journal(run.id, limit=ALL)]
        return (attempt, turn) in unseen_ends(events)
