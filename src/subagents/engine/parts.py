"""The parts of one engine: what they are given, how they are put together, who hears of commits."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from subagents.config.settings import Settings
from subagents.domain.redaction.redact_events import secrets_of
from subagents.domain.run.run import Run
from subagents.domain.run.values import AttemptId
from subagents.engine.attempts.judges import Judges
from subagents.engine.attempts.placement import (
    ClusterPlaces,
    Placement,
    runtime_at,
    workplace_at,
)
from subagents.engine.attempts.provider_gate import ProviderGates, ProviderOf, own_provider
from subagents.engine.attempts.request_desk import RequestDesk
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.attempts.supervisor import Supervisor
from subagents.engine.attempts.workplaces import LocalWorkplace
from subagents.engine.attempts.workspaces import Workspaces
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.ledger import CommitListener, Ledger
from subagents.engine.kernel.ownership import Ownership, in_line
from subagents.engine.kernel.partitions import Partitions
from subagents.engine.kernel.quarantine import Quarantine
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
from subagents.engine.records.track_record_log import TrackRecords
from subagents.engine.runs.agent_choice import AgentChoice
from subagents.engine.runs.control import Control
from subagents.engine.runs.emergency_stops import EmergencyStops
from subagents.engine.runs.environments import PassesProvider, passes_nothing
from subagents.engine.runs.feed import Feed
from subagents.engine.runs.grants import ProofOf, no_proof_needed
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.sessions import Sessions
from subagents.engine.runs.spawn import Spawner
from subagents.engine.runs.surroundings import Surroundings
from subagents.engine.runs.sweep import Orphans, Sweep
from subagents.engine.runs.timers import Timers
from subagents.engine.schedules.schedules import Schedules, SettingsOf
from subagents.engine.sharing import Membership, PermitDesk
from subagents.engine.verification.verifier import Verifier
from subagents.ports import (
    ArtifactLog,
    Courier,
    EngineClock,
    EnvironmentLog,
    Ids,
    OffLoop,
    OwnLoop,
    PerformanceLog,
    ProgressLog,
    ResultLog,
    Runtime,
    Store,
    TranscriptLog,
    WorkerSecrets,
    Worktrees,
)


def _always(settings: Settings) -> SettingsOf:
    async def settings_of(_cwd: str) -> Settings:
        return settings

    return settings_of


async def _no_others() -> bool:
    return True


async def _no_orphans(_known: Callable[[], set[AttemptId]]) -> list[tuple[str, int]]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Everything an engine has from outside; ``wiring`` names the real ones."""

    store: Store
    runtimes: Mapping[str, Runtime]
    """By the name that agents' configuration calls them."""
    couriers: Mapping[str, Sequence[Courier]]
    """By the first word of a route's phase: ``direct``, ``steer``."""
    clock: EngineClock
    ids: Ids
    off_loop: OffLoop
    """For the store and the logs."""
    renewing: OffLoop | None = None
    """For ``Store.renew``; None = ``off_loop``."""
    own_loop: OwnLoop = in_line
    """For the same."""
    verifier: Verifier
    settings: Settings
    """The daemon's own; a spawn brings those of its caller."""
    owner: str
    """This process, in leases."""
    node: str | None = None
    """Name of this daemon, in attempts; None = they record none."""
    progress_log: ProgressLog
    transcripts: TranscriptLog
    performance: PerformanceLog
    results: ResultLog
    artifact_copies: ArtifactLog | None = None
    """Of files that passed their contract; None = only the files themselves are read."""
    tidy_logs: Callable[[], None] = lambda: None
    """Moves what these have of archived runs to where it is cheap to keep. Blocks; may raise
    ``StoreUnavailable``."""
    close_logs: Callable[[], None] = lambda: None
    """Nobody uses them any more. Blocks."""
    worker_env: Callable[[Run], Mapping[str, str | None]] = lambda _run: {}
    """Added to the environment of a run's workers; None = not set there, whatever we have."""
    contract_env: Callable[[Run], Mapping[str, str]] = lambda _run: {}
    """Added to that of the commands of an operator's contract."""
    secrets_of: Callable[[Run], tuple[str, ...]] = secrets_of
    """What a run's worker must not repeat besides what looks like a secret."""
    orphans: Orphans = _no_orphans
    """See ``sweep.Orphans``."""
    provider_of: ProviderOf = own_provider
    worktrees: Worktrees | None = None
    """None = none can be made here."""
    environments: EnvironmentLog | None = None
    """None = callers can bring none."""
    passes_provider: PassesProvider = passes_nothing
    """Whether a run's worker is given a variable by which its caller asks a model provider."""
    worker_secrets: WorkerSecrets | None = None
    """None = variables hold what they say."""
    proof_of: ProofOf = no_proof_needed
    settings_of: SettingsOf | None = None
    """For what schedules start; None = ``settings``, wherever that is."""
    extend_work: Callable[[int], None] = lambda _until_ms: None
    """See ``Ownership``: lets this node's workers live until then."""
    taking: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Takes attempts of other nodes, until cancelled; None = there are no others."""
    places: ClusterPlaces | None = None
    """Where attempts can run besides here; None = nowhere."""
    sharing: "Sharing | None" = None
    """What there is besides where other daemons share ``store``; None = all of it is ours."""
    on_commit: tuple[CommitListener, ...] = ()
    """Called with every durable batch, after all parts."""


class Sharing(Protocol):
    """What there is besides where other daemons share the store; an extension brings it."""

    @property
    def partitions(self) -> Partitions:
        """What is ours."""

    async def all_promise(self) -> bool:
        """Whether each of the others, asked now, promises what ``Ownership.promise`` says."""

    def permit_desk(
        self, kernel: Kernel, gates: ProviderGates, spending: SharedSpending
    ) -> PermitDesk | None:
        """What asks for permits; None = nothing is counted together."""

    def membership(self, parts: "Parts", memory: asyncio.Lock) -> Membership:
        """What takes part; ``memory`` is held by whoever loads runs, or gives some back."""


class Parts:
    """Made from the lower layers up; each is given the parts that it calls."""

    def __init__(self, given: Adapters) -> None:
        settings, runtimes = given.settings, given.runtimes
        lease_ms = int(settings.daemon.lease_seconds * 1000)
        sharing = given.sharing
        self.partitions = Partitions() if sharing is None else sharing.partitions
        self.ledger = ledger = Ledger(
            given.store,
            given.off_loop,
            given.clock,
            given.ids,
            lease_ms=lease_ms,
            node=given.node,
            partitions=self.partitions,
            secrets_of=given.secrets_of,
        )
        self.ownership = Ownership(
            given.store,
            given.renewing or given.off_loop,
            given.clock,
            ledger.fail,
            extend=given.extend_work,
            all_promise=_no_others if sharing is None else sharing.all_promise,
            own_loop=given.own_loop,
        )
        self.taking = given.taking
        kernel = Kernel(ledger, given.store, given.off_loop, given.clock)
        runtime_of = partial(runtime_at, runtimes, given.places)
        self.placement = Placement(
            kernel, node=given.node, cluster=given.places, is_alive=self.partitions.is_alive
        )
        ledger.place_of = self.placement.at_grant
        quarantine = Quarantine()

        self.mailbox = Mailbox(kernel)
        self.questions = Questions(kernel)
        self.reports = Reports(kernel, given.progress_log)
        self.results = Results(kernel, given.results, bytes_max=settings.retention.result_bytes_max)
        self.counters = Counters(ledger)
        self.recorder = Recorder(kernel, given.transcripts)
        self.track_records = TrackRecords(
            kernel, given.performance, is_shared=self.partitions.is_shared
        )
        self.deliveries = Deliveries(
            kernel,
            self.mailbox,
            given.couriers,
            timeout_ms=settings.defaults.announce_timeout_ms,
        )

        self.provider_gates = ProviderGates(kernel, given.provider_of)
        self.shared_spending = SharedSpending(kernel, settings.budgets.caps)
        self.permit_desk = (
            None
            if sharing is None
            else sharing.permit_desk(kernel, self.provider_gates, self.shared_spending)
        )
        self.request_desk = RequestDesk(kernel, self.shared_spending.caps_for, self.permit_desk)
        if self.permit_desk is not None:
            self.permit_desk.on_answer = self.request_desk.look_again
        # The gate last: who passes it first is the one that tries the provider.
        ledger.may_start = lambda run: (
            self.shared_spending.admit(run) and self.provider_gates.admit(run)
        )
        self.artifacts = ArtifactFiles(given.off_loop, given.artifact_copies)
        self.workplace = LocalWorkplace(
            given.verifier, self.artifacts, given.worktrees, given.off_loop
        )
        workplace_of = partial(workplace_at, self.workplace, given.places)
        self.workspaces = Workspaces(kernel, self.recorder, given.worktrees, workplace_of)
        self.supervisor = Supervisor(
            kernel,
            runtime_of=runtime_of,
            recorder=self.recorder,
            reports=self.reports,
            results=self.results,
            provider_gates=self.provider_gates,
            workspaces=self.workspaces,
            shared_spending=self.shared_spending,
            lease_ms=lease_ms,
            worker_secrets=given.worker_secrets,
        )

        self.surroundings = partial(Surroundings, kernel, self.provider_gates, self.recorder)
        """What rows need besides their runs; made anew for each answer."""
        self.queries = Queries(kernel, self.mailbox, self.recorder, quarantine)
        self.feed = Feed(kernel)
        self.timers = Timers(
            kernel,
            backs_off=self.provider_gates.is_backing_off,
            on_step=(
                self.provider_gates.clock_stepped,
                self.recorder.clock_stepped,
                self._schedules_step,
            ),
        )
        self.emergency_stops = EmergencyStops(kernel, self.timers, runtime_of)
        self.alert_history = AlertHistory(kernel, self.queries.these, self.recorder.concerns)
        self.control = Control(kernel, self.queries, self.emergency_stops)
        self.agent_choice = AgentChoice(self.queries, self.track_records, runtimes)
        self.spawner = Spawner(
            kernel,
            agents=self.agent_choice,
            queries=self.queries,
            ids=given.ids,
            runtimes=runtimes,
            verifier=given.verifier,
            workspaces=self.workspaces,
            shared_spending=self.shared_spending,
            proof_of=given.proof_of,
            environments=given.environments,
            passes_provider=given.passes_provider,
        )
        self.sessions = Sessions(kernel, self.queries, self.control, self.spawner)
        self.schedules = schedules = Schedules(
            kernel,
            ids=given.ids,
            queries=self.queries,
            spawner=self.spawner,
            control=self.control,
            mailbox=self.mailbox,
            settings_of=given.settings_of or _always(settings),
            environments=given.environments,
        )
        self.sweep = Sweep(
            kernel,
            queries=self.queries,
            timers=self.timers,
            mailbox=self.mailbox,
            reports=self.reports,
            recorder=self.recorder,
            results=self.results,
            track_records=self.track_records,
            workspaces=self.workspaces,
            runtime_of=runtime_of,
            settings=settings,
            orphans=given.orphans,
            environments=given.environments,
            keeps=schedules.keeps,
            tidy_logs=given.tidy_logs,
            artifacts=self.artifacts,
        )
        self.outbox = Outbox(
            kernel,
            runtime_of=runtime_of,
            placement=self.placement,
            workplace_of=workplace_of,
            deliveries=self.deliveries,
            worker_env=given.worker_env,
            contract_env=given.contract_env,
            worker_secrets=given.worker_secrets,
            quarantine=quarantine,
            supervisor=self.supervisor,
            workspaces=self.workspaces,
            judges=Judges(kernel, ids=given.ids, shared_spending=self.shared_spending),
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
            self.schedules.on_commit,
            self.supervisor.on_commit,
            self.provider_gates.on_commit,
            self.request_desk.on_commit,
            self.recorder.on_commit,
            self.track_records.on_commit,
            self.outbox.on_commit,
            self.feed.on_commit,
            *given.on_commit,
        )
        ledger.on_failure(self.counters.on_failure)

    def _schedules_step(self, by_ms: int) -> None:
        self.schedules.clock_stepped(by_ms)
