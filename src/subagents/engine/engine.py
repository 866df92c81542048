"""The engine: what callers may ask of it, and the life of its parts.

``start`` reads the store, takes the leases over and resumes everything; ``stop`` ends the
tasks and leaves workers running. When a commit fails the engine throws its memory away, waits
until the store can be written again and starts over from the disk: see ``ledger``. When another
process took the store over it ends all that acts and says so: its workers are that one's now.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from subagents import extension
from subagents.config.programs.scope_probes import Proof
from subagents.config.settings import Settings
from subagents.domain.agents.agent_stats import Stats
from subagents.domain.redaction.redact_events import secrets_of
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import AttemptId, RunId, SessionKey, Value
from subagents.engine.attempts.judges import Judges
from subagents.engine.attempts.placement import Placement
from subagents.engine.attempts.provider_gate import ProviderGates, ProviderOf, own_provider
from subagents.engine.attempts.request_desk import RequestDesk, Reserves
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.attempts.supervisor import Supervisor
from subagents.engine.attempts.workplaces import LocalWorkplace
from subagents.engine.attempts.workspaces import Workspaces
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.ledger import CommitListener, Ledger
from subagents.engine.kernel.live_runs import Failure
from subagents.engine.kernel.ownership import Ownership, in_line
from subagents.engine.kernel.partitions import Partitions
from subagents.engine.kernel.quarantine import Quarantine
from subagents.engine.kernel.tasks import Tasks
from subagents.engine.kernel.worker_tokens import Identity, identify
from subagents.engine.messages.alert_history import AlertHistory
from subagents.engine.messages.delivery import Deliveries
from subagents.engine.messages.mailbox import Mailbox
from subagents.engine.messages.questions import Questions
from subagents.engine.messages.reports import Reports
from subagents.engine.outbox import Outbox
from subagents.engine.records.artifact_files import ArtifactFiles
from subagents.engine.records.counters import Counters
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.results import Results
from subagents.engine.runs.agent_choice import AgentChoice
from subagents.engine.runs.control import Control
from subagents.engine.runs.emergency_stops import EmergencyStops
from subagents.engine.runs.environments import PassesProvider
from subagents.engine.runs.feed import Feed
from subagents.engine.runs.grants import ProofOf
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.sessions import Sessions
from subagents.engine.runs.spawn import Spawner
from subagents.engine.runs.surroundings import Surroundings
from subagents.engine.runs.sweep import Orphans, Sweep
from subagents.engine.runs.timers import Timers
from subagents.engine.verification.verifier import Verifier
from subagents.errors import Fenced, StoreUnavailable, UsageError
from subagents.ports import (
    Batch,
    Courier,
    EngineClock,
    Ids,
    Lease,
    OffLoop,
    OutboxEntry,
    OwnLoop,
    RunLogs,
    Runtime,
    Store,
    WorkerSecrets,
    Workplace,
    Worktrees,
)

log = logging.getLogger(__name__)

RECOVER_S: Final = 1.0
"""The pause between two tries whether the store can be written again."""

SettingsOf = Callable[[str], Awaitable[Settings]]
"""The configuration that is effective in a directory now.

Raises:
    ConfigError: It is wrong.
"""
HasSession = Callable[[SessionKey], Awaitable[bool]]
"""Whether what a session stores is this daemon's."""


class Recovery(Value, frozen=True):
    """What a start decided about one open run."""

    run_id: RunId
    phase: Phase
    decision: str


async def _no_others() -> bool:
    return True


async def _no_orphans(_known: Callable[[], set[AttemptId]]) -> list[tuple[str, int]]:
    return []


class PermitDesk(Reserves, Protocol):
    """Asks how many slots, and how much of shared caps, this daemon may use."""

    async def run(self) -> None:
        """Ask as long as there is something to ask, until cancelled."""
        ...

    async def close(self) -> None:
        """Release what it holds, after ``run`` ended."""
        ...


class Membership(Protocol):
    """This daemon's part among those that share the store."""

    async def look(self) -> None:
        """One look, and what follows from it.

        Raises:
            StoreUnavailable: It cannot be asked now.
            Fenced: We are over.
        """
        ...

    async def run(self, right_s: float) -> None:
        """Look until cancelled, several times while a right of so many seconds holds."""
        ...

    async def leave(self) -> None:
        """This daemon stops: others have at once what nothing of is under way here."""
        ...

    async def drain(self, *, is_on: bool) -> None:
        """See ``Engine.drain``."""
        ...


class Sharing(Protocol):
    """What an engine also has where other daemons share the store; an extension brings it."""

    @property
    def partitions(self) -> Partitions:
        """What is ours."""

    async def all_promise(self) -> bool:
        """Whether each of the others, asked now, promises what ``Ownership.promise`` says."""

    def permit_desk(
        self,
        kernel: Kernel,
        gates: ProviderGates,
        spending: SharedSpending,
        on_answer: Callable[[], None],
    ) -> PermitDesk | None:
        """What asks for permits; None = nothing is counted together.

        ``on_answer`` is called when more may be kept of caps than before.
        """

    def placement(
        self,
        kernel: Kernel,
        runtimes: Mapping[str, Runtime],
        workplace: Workplace,
        node: str | None,
    ) -> Placement:
        """Where attempts run; the arguments are those of a daemon by itself."""

    def membership(self, engine: "Engine", memory: asyncio.Lock) -> Membership:
        """What takes part; ``memory`` is held by whoever loads runs, or gives some back."""


class Part:
    """What an extension does beside the engine's own parts; this one does nothing.

    It is made after the parts that answer calls, and calls them by their names. It hears of steps
    of the clock by ``Timers.on_step``; ``Engine.keep`` runs its tasks. What it stores belongs to
    sessions: like their runs it is this daemon's or another's.
    """

    @property
    def sessions(self) -> frozenset[SessionKey]:
        """The sessions of which something is in memory."""
        return frozenset()

    async def read(self, has: HasSession) -> Callable[[], None]:  # noqa: ARG002 - nothing is stored
        """Read what is stored for the sessions that ``has`` says are this daemon's.

        What it returns takes that into memory, where ``leave`` left nothing of these sessions. It
        is called in the step in which their runs come to memory, too, or never.
        """
        return lambda: None

    def leave(self, sessions: Collection[SessionKey]) -> None:
        """Forget what is in memory of these: another daemon has it, or it is read again."""

    def keeps(self, name: str) -> bool:  # noqa: ARG002 - it keeps none
        """Whether variables kept under this name are its own and in use; from any thread."""
        return False

    def on_commit(self, batch: Batch) -> None:
        """Take note of a durable batch; returns at once."""

    async def tidy(self) -> None:
        """Drop what is too old: part of each sweep."""

    async def settle(self) -> None:
        """Make durable what is to outlast this process, which stops."""

    async def agent_stats(self) -> Mapping[str, Stats]:
        """What agents' attempts came to, by the agents' ids, as far as it counts them.

        Raises:
            Unavailable: It cannot be read now.
        """
        return {}

    async def upcoming(self) -> Sequence[tuple[int, str]]:
        """What it starts next, in any order: when, in ms since 1970, and what that is called."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Everything an engine has from outside; ``wiring`` names the real ones."""

    store: Store
    runtimes: Mapping[str, Runtime]
    """The runtimes, by the name that agents' configuration calls them."""
    couriers: Mapping[str, Sequence[Courier]]
    """The couriers, by the first word of a route's phase: ``direct``, ``steer``."""
    clock: EngineClock
    ids: Ids
    off_loop: OffLoop
    """What runs the blocking work of the store and the logs."""
    renewing: OffLoop | None = None
    """What runs ``Store.renew``; None = ``off_loop``."""
    own_loop: OwnLoop = in_line
    """The loop on which the right to the store is renewed."""
    verifier: Verifier
    settings: Settings
    """The daemon's own; a spawn brings those of its caller."""
    owner: str
    """This process, in leases."""
    node: str | None = None
    """Name of this daemon, in attempts; None = they record none."""
    logs: RunLogs
    state_dir: Path
    """Where extensions' parts keep files."""
    worker_env: Callable[[Run], Mapping[str, str | None]] = lambda _run: {}
    """Added to the environment of a run's workers; None = not set there, whatever we have."""
    contract_env: Callable[[Run], Mapping[str, str]] = lambda _run: {}
    """Added to that of the commands of an operator's contract."""
    secrets_of: Callable[[Run], tuple[str, ...]] = secrets_of
    """What a run's worker must not repeat, in addition to what looks like a secret."""
    orphans: Orphans = _no_orphans
    """See ``sweep.Orphans``."""
    provider_of: ProviderOf = own_provider
    worktrees: Worktrees | None = None
    """None = none can be made here."""
    passes_provider: PassesProvider = lambda _resolved, _name: False
    """Whether a run's worker is given a variable by which its caller asks a model provider."""
    worker_secrets: WorkerSecrets | None = None
    """None = variables hold what they say."""
    proof_of: ProofOf = lambda _agent_id, _agent: Proof()
    """What probes found of agents' programs; by default nothing, for workers that are none."""
    settings_of: SettingsOf | None = None
    """The configuration for spawns that no caller makes; None = ``settings``, everywhere."""
    extend_work: Callable[[int], None] = lambda _until_ms: None
    """See ``Ownership``: lets this node's workers live until then."""
    taking: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Takes attempts of other nodes, until cancelled; None = there are no others."""
    sharing: Sharing | None = None
    """What there is in addition where other daemons share ``store``; None = all of it is ours."""
    on_commit: tuple[CommitListener, ...] = ()
    """Called with every durable batch, after all parts."""


class Engine:
    """One node: its parts, made from the lower ones up, each given those that it calls.

    Every change is a call of the part that answers it, everything else is read only.
    """

    def __init__(self, adapters: Adapters) -> None:  # noqa: PLR0915 - one statement per part
        self.adapters = adapters
        settings, runtimes = adapters.settings, adapters.runtimes
        lease_ms = int(settings.daemon.lease_seconds * 1000)
        sharing = adapters.sharing
        self.partitions = Partitions() if sharing is None else sharing.partitions
        self.ledger = ledger = Ledger(
            adapters.store,
            adapters.off_loop,
            adapters.clock,
            adapters.ids,
            lease_ms=lease_ms,
            partitions=self.partitions,
            secrets_of=adapters.secrets_of,
            place_of=lambda run: self.placement.at_grant(run),  # noqa: PLW0108 - made below
            may_start=self._may_start,
        )
        self.ownership = Ownership(
            adapters.store,
            adapters.renewing or adapters.off_loop,
            adapters.clock,
            ledger.fail,
            extend=adapters.extend_work,
            all_promise=_no_others if sharing is None else sharing.all_promise,
            own_loop=adapters.own_loop,
        )
        kernel = Kernel(ledger, adapters.store, adapters.off_loop, adapters.clock)
        _, self._store, self._off_loop, self._clock = kernel
        self.artifacts = ArtifactFiles(adapters.off_loop, adapters.logs.artifact_copies)
        self.workplace = LocalWorkplace(
            adapters.verifier, self.artifacts, adapters.worktrees, adapters.off_loop
        )
        self.placement = (
            Placement(runtimes, self.workplace, adapters.node)
            if sharing is None
            else sharing.placement(kernel, runtimes, self.workplace, adapters.node)
        )
        runtime_of, workplace_of = self.placement.runtime_of, self.placement.workplace_of
        quarantine: Quarantine = {}

        self.mailbox = Mailbox(kernel)
        self.questions = Questions(kernel, adapters.logs.allowed_calls)
        self.reports = Reports(
            kernel,
            adapters.logs.progress,
            flush=lambda run_id: self.supervisor.flush(run_id),  # noqa: PLW0108 - made below
        )
        self.results = Results(
            kernel, adapters.logs.results, bytes_max=settings.retention.result_bytes_max
        )
        self.counters = Counters(ledger)
        self.recorder = Recorder(kernel, adapters.logs.transcripts)
        self.deliveries = Deliveries(
            kernel,
            self.mailbox,
            adapters.couriers,
            timeout_ms=settings.defaults.announce_timeout_ms,
        )

        self.provider_gates = ProviderGates(kernel, adapters.provider_of)
        self.shared_spending = SharedSpending(kernel, settings.budgets.caps)
        self.permit_desk = (
            None
            if sharing is None
            else sharing.permit_desk(
                kernel,
                self.provider_gates,
                self.shared_spending,
                lambda: self.request_desk.look_again(),  # noqa: PLW0108 - made below
            )
        )
        self.request_desk = RequestDesk(kernel, self.shared_spending.caps_for, self.permit_desk)
        self.workspaces = Workspaces(kernel, self.recorder, adapters.worktrees, workplace_of)
        self.supervisor = Supervisor(
            kernel,
            runtime_of=runtime_of,
            allowed_calls=adapters.logs.allowed_calls,
            recorder=self.recorder,
            reports=self.reports,
            results=self.results,
            provider_gates=self.provider_gates,
            workspaces=self.workspaces,
            shared_spending=self.shared_spending,
            lease_ms=lease_ms,
            worker_secrets=adapters.worker_secrets,
        )

        self.surroundings = partial(Surroundings, kernel, self.provider_gates, self.recorder)
        """What rows need in addition to their runs; made for each answer."""
        self.queries = Queries(kernel, self.mailbox, self.recorder, quarantine)
        self.feed = Feed(kernel)
        self.timers = Timers(kernel, backs_off=self.provider_gates.is_backing_off)
        self.timers.on_step(self.provider_gates.clock_stepped, self.recorder.clock_stepped)
        self.emergency_stops = EmergencyStops(kernel, self.timers, runtime_of)
        self.alert_history = AlertHistory(kernel, self.queries.these, self.recorder.concerns)
        self.control = Control(kernel, self.queries, self.emergency_stops)
        self.agent_choice = AgentChoice(self.queries, self.agent_stats, runtimes)
        self.spawner = Spawner(
            kernel,
            agents=self.agent_choice,
            queries=self.queries,
            ids=adapters.ids,
            runtimes=runtimes,
            verifier=adapters.verifier,
            workspaces=self.workspaces,
            shared_spending=self.shared_spending,
            proof_of=adapters.proof_of,
            environments=adapters.logs.environments,
            passes_provider=adapters.passes_provider,
        )
        self.sessions = Sessions(kernel, self.queries, self.control, self.spawner)

        async def always(_cwd: str) -> Settings:
            return settings

        self.settings_of = adapters.settings_of or always
        """What a spawn in a directory goes by that no caller makes."""
        self.parts: Mapping[str, Part] = dict(extension.made("parts", self))
        """Those of extensions, by their names."""
        self.sweep = Sweep(
            kernel,
            queries=self.queries,
            timers=self.timers,
            mailbox=self.mailbox,
            reports=self.reports,
            recorder=self.recorder,
            results=self.results,
            workspaces=self.workspaces,
            runtime_of=runtime_of,
            settings=settings,
            orphans=adapters.orphans,
            logs=adapters.logs,
            keeps=lambda name: any(part.keeps(name) for part in self.parts.values()),
            tidy_parts=self._tidy_parts,
            artifacts=self.artifacts,
        )
        self.outbox = Outbox(
            kernel,
            placement=self.placement,
            deliveries=self.deliveries,
            worker_env=adapters.worker_env,
            contract_env=adapters.contract_env,
            worker_secrets=adapters.worker_secrets,
            quarantine=quarantine,
            supervisor=self.supervisor,
            workspaces=self.workspaces,
            judges=Judges(kernel, ids=adapters.ids, shared_spending=self.shared_spending),
            recorder=self.recorder,
        )
        # Listeners take note, wake waiters and start tasks; none waits. So whoever they wake acts
        # only after all have heard, and the order is that in which tasks begin: a message that was
        # consumed is closed, and an attempt is watched, before the outbox performs more effects;
        # followers of the feed come after every part that may be asked about what they read.
        ledger.on_commit(
            self.counters.on_commit,
            self.mailbox.on_commit,
            self.questions.on_commit,
            self.reports.on_commit,
            self.timers.on_commit,
            self.supervisor.on_commit,
            self.provider_gates.on_commit,
            self.request_desk.on_commit,
            self.recorder.on_commit,
            *(part.on_commit for part in self.parts.values()),
            self.outbox.on_commit,
            self.feed.on_commit,
            *adapters.on_commit,
        )
        ledger.on_failure(self.counters.on_failure, self._failed)

        self._tasks = Tasks()
        self._life = Tasks()
        self._holding = Tasks()
        """What renews our right, from the store's opening to its closing."""
        self._memory = asyncio.Lock()
        """Whoever loads runs, or gives some back, does it alone."""
        self._membership = None if sharing is None else sharing.membership(self, self._memory)
        self._epoch = 0
        self._on_fenced: list[Callable[[], None]] = []
        self.may_be_over = False
        """Whether ``require_ownership`` can refuse, or what holds now can end during a call."""
        self.recoveries: tuple[Recovery, ...] = ()
        """What the newest start decided about each open run."""

    def _may_start(self, run: Run) -> bool:
        # The gate last: the run that passes it first is the one that tries the provider, and one
        # that a budget then held back would leave all others waiting for it.
        return self.shared_spending.admit(run) and self.provider_gates.admit(run)

    # -- life ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the store over and resume everything that is open.

        Raises:
            AlreadyRunning: Another process holds the store.
            CorruptState: The store cannot be trusted; nothing was changed.
        """
        ownership = self.ownership
        self._epoch, held_s, asked_ms = await self._off_loop(self._take_over)
        ownership.given(held_s, asked_ms=asked_ms)
        await ownership.prolong_work(asked_ms)
        self.may_be_over = ownership.is_limited
        if ownership.is_limited:
            # At once: to load what is open may take longer than a right holds.
            self._holding.keep(ownership.run, "ownership", self._clock)
        try:
            await self._load_and_resume()
        except BaseException:
            await self._holding.stop()
            raise
        if self._membership is not None:
            # The first before anybody calls: a cluster that begins has nodes without anything.
            await self._membership.look()
            look = partial(self._membership.run, held_s or RECOVER_S)
            self._life.keep(look, "membership", self._clock)
        if self.adapters.taking is not None:
            self._life.keep(self.adapters.taking, "taking", self._clock)

    def _take_over(self) -> tuple[int, float | None, int]:
        epoch = self._store.open(self.adapters.owner)
        asked_ms = self._clock.elapsed_ms()
        return epoch, self._store.renew(), asked_ms

    async def _load_and_resume(self) -> None:
        ledger = self.ledger
        async with self._memory:
            # Every await comes before the ledger is loaded: until then each call is refused.
            await self.partitions.load()
            await self.spawner.keys.load()
            await self.shared_spending.load()
            found = [(part, await part.read(self.partitions.has)) for part in self.parts.values()]
            await self.recorder.pause()
            # Last, and nothing is awaited after it: from here on calls are served again.
            outbox = await ledger.load(self.adapters.owner, self._epoch)
            self.recorder.reset()
            self.counters.reset()
            self.timers.tell_again()
            self.emergency_stops.record()
            self.recoveries = decisions(ledger.published.values(), outbox, ledger.leases)
            for run in ledger.published.values():
                self.timers.arm(run)
            self.supervisor.adopt()
            for entry in outbox:
                self.outbox.add(entry)
            ledger.fill_lanes()
            for name, work in (
                ("ledger", ledger.run),
                ("timers", self.timers.run),
                ("shared budgets", self.shared_spending.run),
                ("provider gates", self.provider_gates.run),
                ("sweep", self.sweep.run),
                ("silence", self.recorder.run),
                ("recorder", self.recorder.write_on),
            ):
                self._tasks.keep(work, name, self._clock)
            if self.permit_desk is not None:
                self._tasks.keep(self.permit_desk.run, "permits", self._clock)
            for part, take in found:
                part.leave(part.sessions)
                take()

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
        """Let work that never ends by itself go on as long as what is in memory holds."""
        return self._tasks.keep(work, name, self._clock)

    async def _tidy_parts(self) -> None:
        for part in self.parts.values():
            await part.tidy()

    async def stop(self) -> None:
        """End all tasks and close the store; workers that can outlive us go on."""
        await self._life.stop()
        if self._membership is not None:
            await self._membership.leave()
        # Nothing new begins, then what is in memory becomes durable, and only then do the tasks end
        # of which one commits.
        await self.outbox.stop()
        await self.supervisor.stop()
        try:
            await self.ledger.committed()
        except StoreUnavailable:
            log.warning("stopping with uncommitted changes: the store cannot be written")
        except Fenced:
            log.warning("stopping with uncommitted changes: the store is another's")
        await self.reports.stop()
        if self.fence is None:
            for part in self.parts.values():
                await part.settle()
        await self._tasks.stop()
        if self.permit_desk is not None:
            await self.permit_desk.close()
        if self.fence is None:
            await self._off_loop(self._store.checkpoint)
        await self._off_loop(self.adapters.logs.close)
        # Not before: a right that lapsed meanwhile would end our workers, in a cluster.
        await self._holding.stop()
        await self._off_loop(self._store.close)

    async def drain(self, *, is_on: bool) -> None:
        """Take no more partitions and give back those that we have, or take part again.

        Raises:
            UsageError: There is no other daemon.
            StoreUnavailable, Fenced: Nothing was changed.
        """
        if self._membership is None:
            raise UsageError("this daemon shares its runs with no other one")
        await self._membership.drain(is_on=is_on)

    def on_fenced(self, *listeners: Callable[[], None]) -> None:
        """Call these once when another process took the store over: ``fence`` says why.

        By then nothing acts any more, and nothing is stored or answered. Whoever started the
        engine stops it, too.
        """
        self._on_fenced += listeners

    @property
    def fence(self) -> Fenced | None:
        """Why this engine is over for good; None = it is not."""
        failure = self.ledger.failure
        return failure if isinstance(failure, Fenced) else None

    def _failed(self, error: Failure) -> None:
        self.mailbox.failed()
        self.questions.wake_all()
        if isinstance(error, Fenced):
            self.may_be_over = True
            log.error("the store is another's, nothing is done here any more: %s", error)
            self._life.start(self._give_up(), "give up")
        else:
            log.error("a commit failed, starting over from the disk: %s", error)
            self._life.start(self._recover(), "recover")

    async def _end_acting(self) -> None:
        """End all that acts on memory; workers go on."""
        await self.outbox.stop()
        await self.supervisor.stop()
        await self._tasks.stop()

    async def _give_up(self) -> None:
        """Leave everything to whoever took the store over, workers past their deadline, too."""
        await self._life.stop()  # a recovery, where there is one
        await self._holding.stop()
        await self._end_acting()
        for listener in self._on_fenced:
            listener()

    async def _recover(self) -> None:
        """Memory is ahead of the disk: forget it, wait for the store, load, go on."""
        while True:
            # Whoever acts on memory ends first, or it would act on what never became durable.
            await self._end_acting()
            await self.emergency_stops.end_due()
            try:
                await self._clock.sleep(RECOVER_S)
                await self._off_loop(self._store.probe)
                await self._load_and_resume()
            except Fenced as error:
                self.ledger.fail(error)
                return
            except StoreUnavailable as error:
                log.warning("the store cannot be written yet: %s", error)
                continue
            except Exception:
                # Out of memory, say. No one else would ever start over.
                log.exception("starting over from the disk failed")
                continue
            break
        log.info("the store can be written again; %s runs are open", len(self.ledger.live))

    # -- calls and properties that concern several parts -----------------------------------

    @property
    def degraded(self) -> str | None:
        """Why nothing can be changed now; None while all is well."""
        failure = self.ledger.failure or self.ownership.lapse
        return failure.message if failure is not None else None

    def require_ownership(self) -> None:
        """Refuse an answer that was made from memory, when others may know better by now.

        To be asked after it was made: a process that was frozen in between must not say what was.

        Raises:
            Fenced: The store is another's.
            StoreUnavailable: It may be; the same call can be repeated.
        """
        refusal = self.fence or self.ownership.lapse
        if refusal is not None:
            raise refusal

    async def agent_stats(self) -> Mapping[str, Stats]:
        """What agents' attempts came to, by the agents' ids; nothing where no part counts them.

        Raises:
            Unavailable: It cannot be read now.
        """
        found: dict[str, Stats] = {}
        for part in self.parts.values():
            found |= await part.agent_stats()
        return found

    def identify(self, token: str) -> Identity:
        """Whom a worker's token stands for; see ``worker_tokens.identify``."""
        return identify(token, self.ledger.published, self.ledger.aside)


def decisions(
    runs: Iterable[Run], outbox: Iterable[OutboxEntry], leases: Mapping[RunId, Lease]
) -> tuple[Recovery, ...]:
    """What a start decides about each open run, from what the store still holds about it."""
    effects = {entry.run_id: type(entry.effect).__name__ for entry in outbox}
    return tuple(
        Recovery(run_id=run.id, phase=run.phase, decision=_decision(run, effects, leases))
        for run in runs
    )


def _decision(run: Run, effects: Mapping[RunId, str], leases: Mapping[RunId, Lease]) -> str:
    if run.id in effects:
        return f"perform {effects[run.id]} again"
    if run.phase is Phase.RUNNING:
        cursor = leases[run.id].cursor if run.id in leases else 0
        return f"adopt attempt {len(run.attempts)} and read on from {cursor}"
    return f"go on in phase {run.phase}"
