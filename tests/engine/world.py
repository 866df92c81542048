"""A whole engine on a real database, with a scripted runtime and a clock moved by hand."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.engine.fake_clock import FakeClock

from subagents.config.paths import Paths
from subagents.config.settings import (
    Agent,
    AgentSubagents,
    Settings,
    SubagentDefaults,
)
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import Event
from subagents.domain.run.outcome import DeliveryOutcome
from subagents.domain.run.run import Message, Phase, Run
from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Abilities, RunSpec
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.engine import Adapters, Engine, Sharing
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import RunAsked, SpawnContext
from subagents.engine.verification.verifier import Verifier
from subagents.errors import RuntimeUnavailable, StoreUnavailable
from subagents.ports import AttemptRef, Batch, Courier, Launch, RunLogs, StartedInfo
from subagents.runtimes.scripted import ScriptedRuntime
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.transcripts.transcript_files import TranscriptFiles

T = TypeVar("T")

ME = SessionKey("agent:main:main")
OTHER = SessionKey("agent:other:main")

REPORT = "Done.\n\n[COMPLETION REPORT]\nstatus: complete\nsummary: all read\n"
SCRIPTS: Mapping[str, tuple[dict[str, object], ...]] = {
    "main": ({"result": "main did it"},),
    "quick": ({"result": "done"},),
    "silent": (),
    "slow": ({"sleep_ms": 10_000}, {"result": "slowly done"}),
    "tooled": ({"tool": "Bash"}, {"sleep_ms": 500}, {"result": "x"}),
    "hang": ({"result": "so far"}, {"hang": True}),
    "fail": ({"result": "some of it"}, {"exit": 1}),
    "flaky": ({"attempt": 1}, {"exit": 1}, {"attempt": 2}, {"result": "second time lucky"}),
    "unstartable": ({"fail_start": "no such program"},),
    "writer": ({"write": {"path": "out.txt", "text": "hello"}}, {"result": "written"}),
    "late_writer": (
        {"sleep_ms": 10_000},
        {"write": {"path": "out.txt", "text": "hello"}},
        {"result": "written"},
    ),
    "says_report": ({"tool": "Bash"}, {"result": REPORT}),
    "says_wrong_report": ({"result": REPORT.replace("complete", "done")},),
    "says_report_then_works": ({"result": REPORT}, {"tool": "Bash"}),
    "tells": tuple(
        {"sleep_ms": 10_000} if number % 2 else {"progress": {"phase": f"step {number // 2}"}}
        for number in range(20)
    ),
    "judge_pass": ({"sleep_ms": 5_000}, {"result": '{"verdict": "pass", "reasons": ["good"]}'}),
    "judge_fail": ({"result": '{"verdict": "fail", "reasons": ["bad"]}'},),
    "judge_fails": ({"result": '{"verdict": "pass"}'}, {"exit": 1}),
    "judge_spends": ({"usage": {"tokensIn": 300, "tokensOut": 0}}, {"hang": True}),
    "parent": ({"sleep_ms": 5_000}, {"result": "parent is done"}),
}


def settings_of(**defaults: Any) -> Settings:
    limits = {"max_children_per_agent": 50, "max_concurrent": 20, **defaults}
    agents = {
        name: Agent(
            runtime="scripted", script=script, subagents=AgentSubagents(allow_agents=("*",))
        )
        for name, script in SCRIPTS.items()
    }
    return Settings(defaults=SubagentDefaults(**limits), agents=agents)


class WatchedRuntime(ScriptedRuntime):
    """A scripted runtime that remembers its launches and can be made blind or mute."""

    def __init__(self, clock: FakeClock, abilities: Abilities | None = None) -> None:
        super().__init__(clock)
        if abilities is not None:
            self.abilities = abilities
        self.launches: list[Launch] = []
        self.stopped: list[str] = []
        self.steered: list[str] = []
        self.turns: list[str] = []
        self.turn_envs: list[Mapping[str, str]] = []
        self.forgotten: list[str] = []
        self.is_blind = False
        self.hangs = False
        self.lacks: int | None = None
        """The error by which its machine says that it can start nothing."""
        self.stop_called = asyncio.Event()

    async def start(self, launch: Launch) -> StartedInfo:
        self.launches.append(launch)
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.lacks is not None:
            try:
                self.require_machine()
            except OSError as error:
                raise RuntimeUnavailable(f"cannot start a worker: {error}") from error
        return await super().start(launch)

    def require_machine(self) -> None:
        if self.lacks is not None:
            raise OSError(self.lacks, os.strerror(self.lacks))

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        if self.is_blind:
            raise OSError("its output cannot be read")
        async for found in super().watch(ref, cursor=cursor, positions=positions):
            yield found

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        self.stopped.append(ref.attempt_id)
        self.stop_called.set()
        await super().stop(ref, grace_s=grace_s)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        self.steered.append(message)
        await super().steer(ref, message, key=key)

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        self.turns.append(message)
        self.turn_envs.append(env)
        return await super().resume(ref, message, env=env)

    async def forget(self, ref: AttemptRef) -> None:
        self.forgotten.append(ref.attempt_id)
        await super().forget(ref)

    def starts_of(self, run_id: RunId) -> int:
        return sum(launch.run_id == run_id for launch in self.launches)


class HeldCommit(Exception):
    """The commit has not returned yet."""


class Troubled(SqliteStore):
    """A store whose commits can be made to fail or to wait."""

    failures_left = 0
    is_held = False
    """Nothing is written until it is let go."""
    is_late = False
    """It is written, which readers of the disk see, and whoever wrote it does not know yet."""
    commits = 0
    _late: int | None = None

    def commit(self, batch: Batch) -> int:
        if self.is_held:
            raise HeldCommit
        if self.failures_left:
            self.failures_left -= 1
            raise StoreUnavailable("the disk said no")
        if self._late is None:
            self._late = super().commit(batch)
            self.commits += 1
        if self.is_late:
            raise HeldCommit
        number, self._late = self._late, None
        return number

    def probe(self) -> None:
        if self.failures_left:
            self.failures_left -= 1
            raise StoreUnavailable("the disk still says no")
        super().probe()


class TroubledStore(Troubled):
    """Of one daemon alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous="OFF")


class Ids:
    """Ids in order, so that a test can be read."""

    def __init__(self) -> None:
        self._made = 0

    def run_id(self) -> RunId:
        self._made += 1
        return RunId(f"r-{self._made:010}")

    def session_uuid(self) -> str:
        self._made += 1
        return f"u{self._made}"

    def token_secret(self) -> str:
        self._made += 1
        return f"{self._made:043}"


class FakeCourier:
    """Answers each try with the next of the given outcomes, then with the last one for ever.

    None = it does not serve that requester.
    """

    def __init__(self, name: str, *outcomes: DeliveryOutcome | None) -> None:
        self.name = name
        self._outcomes = list(outcomes)
        self.asked: list[SessionKey] = []
        self.carried: list[str] = []

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        self.asked.append(target)
        return self._outcomes[0] is not None

    async def deliver(self, run: Run, message: Message, requester: Run | None) -> DeliveryOutcome:
        self.carried.append(message.id)
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        assert outcome is not None
        return outcome


class World:
    """Boots, crashes and restarts engines on one database."""

    def __init__(
        self,
        directory: Path,
        *,
        abilities: Abilities | None = None,
        couriers: Iterable[Courier] = (),
        runtimes: Iterable[str] = ("scripted",),
        **defaults: Any,
    ) -> None:
        self.directory = directory
        self.path = directory / "subagents.db"
        self.clock = FakeClock()
        self.ids = Ids()
        self.runtime = WatchedRuntime(self.clock, abilities)
        self.runtimes = tuple(runtimes)
        """The names under which the one runtime serves."""
        self.couriers: dict[str, Sequence[Courier]] = {c.name: (c,) for c in couriers}
        self.settings = settings_of(**defaults)
        self.may_commit = asyncio.Event()
        self.checks_are_stuck = False
        self.checks = 0
        self.boots = 0
        self.store: Troubled
        self.engine: Engine

    # -- life ------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.boot()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()

    async def taken_over(self) -> Engine:
        """Another process on the same database, with the same workers; returns the older one."""
        older = self.engine
        self.path.with_name(f"{self.path.name}.lock").unlink()
        await self.boot()
        return older

    async def boot(
        self,
        runtime: WatchedRuntime | None = None,
        *,
        store: Troubled | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        """Start an engine; with another runtime all attempts are gone, as after a reboot."""
        self.boots += 1
        self.runtime = runtime or self.runtime
        self.store = store or TroubledStore(self.path)
        verifier = Verifier(self.check_off_loop, self.clock, commands_allowed=False)
        self.engine = Engine(
            Adapters(
                store=self.store,
                runtimes=dict.fromkeys(self.runtimes, self.runtime),
                couriers=self.couriers,
                clock=self.clock,
                ids=self.ids,
                off_loop=self.off_loop,
                verifier=verifier,
                settings=self.settings,
                logs=RunLogs(
                    allowed_calls=AllowedCallFile(
                        Paths.resolve({"SUBAGENTS_HOME": str(self.directory)})
                    ),
                    environments=EnvironmentFiles(self.directory / "environments"),
                    progress=ProgressFiles(self.directory / "progress"),
                    results=ResultFiles(self.directory / "results"),
                    transcripts=TranscriptFiles(self.directory / "transcripts"),
                ),
                state_dir=self.directory,
                owner=f"boot{self.boots}",
                node=None if sharing is None else self.directory.name,
                sharing=sharing,
            )
        )
        await self.engine.start()

    async def crash(self) -> None:
        """End everything at this instant; what was not committed is lost."""
        self.store.is_held = True
        await self.engine._life.stop()
        await self.engine._tasks.stop()
        await self.engine.outbox.stop()
        await self.engine.supervisor.stop()
        self.store.close()

    async def restart(self, *, reboot: bool = False) -> None:
        """Crash and start again; workers live on unless the whole machine was restarted."""
        await self.crash()
        await self.boot(WatchedRuntime(self.clock, self.runtime.abilities) if reboot else None)

    async def check_off_loop(self, work: Callable[[], T]) -> T:
        self.checks += 1
        if self.checks_are_stuck:
            await asyncio.get_running_loop().create_future()
        return work()

    async def off_loop(self, work: Callable[[], T]) -> T:
        while True:
            try:
                return work()
            except HeldCommit:
                self.may_commit.clear()
                await self.may_commit.wait()

    def hold_commits(self) -> None:
        self.store.is_held = True

    def delay_commits(self) -> None:
        self.store.is_late = True

    def let_commits_go(self) -> None:
        self.store.is_held = self.store.is_late = False
        self.may_commit.set()

    # -- doing -----------------------------------------------------------------------------

    async def try_spawn(
        self, agent: str | None = "quick", *, requester: SessionKey = ME, **spec: Any
    ) -> Receipt:
        """Spawn; ``is_operator``, ``settings``, ``ceiling`` are the call's, the rest the spec's."""
        is_operator = spec.pop("is_operator", True)
        settings = spec.pop("settings", self.settings)
        ceiling = spec.pop("ceiling", None)
        wanted = RunSpec(**{"task": f"do {agent}", "agent_id": agent, **spec})
        return await self.engine.spawner.spawn(
            wanted,
            SpawnContext(
                session=requester,
                settings=settings,
                cwd=str(self.directory),
                is_operator=is_operator,
                ceiling=ceiling,
            ),
        )

    async def spawn(self, agent: str | None = "quick", **spec: Any) -> RunId:
        return (await self.clock.result(self.try_spawn(agent, **spec))).run.id

    async def batch(
        self, *specs: RunSpec, requester: SessionKey = ME, is_operator: bool = True
    ) -> list[RunId]:
        receipts = await self.engine.spawner.spawn_batch(
            [RunAsked(spec=each) for each in specs],
            SpawnContext(
                session=requester,
                settings=self.settings,
                cwd=str(self.directory),
                is_operator=is_operator,
            ),
        )
        return [receipt.run.id for receipt in receipts]

    async def working(self, agent: str = "hang", **spec: Any) -> RunId:
        """A new run, at work."""
        run_id = await self.spawn(agent, **spec)
        await self.until(run_id, Phase.RUNNING)
        return run_id

    def with_script(self, name: str, *script: Mapping[str, object]) -> Settings:
        """The settings with one more agent, whose workers do that."""
        agent = Agent(runtime="scripted", script=tuple(dict(step) for step in script))
        return replace(self.settings, agents={**self.settings.agents, name: agent})

    def spawn_child(self, parent: RunId, agent: str = "quick", **spec: Any) -> Awaitable[RunId]:
        run = self.engine.ledger.published[parent]
        return self.spawn(agent, requester=run.session_key, is_operator=False, **spec)

    async def run(self, run_id: RunId) -> Run:
        return await self.engine.queries.run(run_id)

    async def until(self, run_id: RunId, *phases: Phase, within_s: float = 3_600) -> Run:
        """Let time pass until the run is in one of these phases, or settled when none is named."""

        def arrived() -> bool:
            run = self.engine.ledger.published.get(run_id) or self.store.run(run_id)
            assert run is not None
            return run.phase in phases if phases else run.is_settled

        await self.clock.until(arrived, within_s=within_s)
        return await self.run(run_id)

    async def folded(self, run_id: RunId) -> Run:
        """The run as its journal alone tells it."""
        run: Run | None = None
        events: list[Event] = [e.event for e in self.store.journal(run_id, limit=10_000)]
        for event in events:
            run = reduce(run, event).run
        assert run is not None
        return run


def in_world(directory: Path, scenario: Callable[[World], Awaitable[T]], **options: Any) -> T:
    """Boot a world, play the scenario and take the world down again."""

    async def play() -> T:
        async with World(directory, **options) as world:
            return await scenario(world)

    return asyncio.run(play())
