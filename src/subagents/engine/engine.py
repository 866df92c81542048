"""The engine: what every door calls, and the life of its parts.

``start`` reads the store, takes the leases over and goes on with everything; ``stop`` ends the
tasks and leaves workers running. When a commit fails the engine throws its memory away, waits
until the store can be written again and starts over from the disk: see ``ledger``.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from subagents.config.settings import Settings
from subagents.domain.redaction.redact_events import secrets_of
from subagents.domain.run.run import Message, Phase, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import (
    AttemptId,
    RunId,
    SessionKey,
    Value,
    replace,
)
from subagents.engine.attempts.launch import ref_of
from subagents.engine.attempts.provider_gate import Limits, ProviderOf, own_provider
from subagents.engine.attempts.supervisor import Supervisor
from subagents.engine.attempts.workspaces import Places
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.kernel.quarantine import Quarantine
from subagents.engine.kernel.tasks import Tasks
from subagents.engine.kernel.worker_tokens import Identity, identify
from subagents.engine.messages.delivery import Delivering
from subagents.engine.messages.mailbox import Mailbox, WaitResult
from subagents.engine.messages.questions import Requests
from subagents.engine.messages.reports import Reports
from subagents.engine.outbox import Outbox
from subagents.engine.records.counters import Meter
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.track_record_log import Performance
from subagents.engine.runs.control import Control
from subagents.engine.runs.feed import Feed
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.sessions import Sessions
from subagents.engine.runs.spawn import ProofOf, Receipt, Spawner, no_proof_needed
from subagents.engine.runs.sweep import Sweep, SweepReport
from subagents.engine.runs.timers import Timers
from subagents.engine.verification.verifier import Verifier
from subagents.errors import Conflict, RuntimeUnavailable, StoreUnavailable
from subagents.ports import (
    Batch,
    Clock,
    Courier,
    Ids,
    InboxRow,
    Lease,
    OffLoop,
    OutboxEntry,
    PerformanceLog,
    ProgressLog,
    Runtime,
    Store,
    TranscriptLog,
    Worktrees,
)

log = logging.getLogger(__name__)

RECOVER_S: Final = 1.0
"""Between two looks whether the store can be written again."""


async def _no_orphans(_expected: set[AttemptId]) -> list[tuple[str, int]]:
    return []


class Recovery(Value, frozen=True):
    """What a start decided about one open run."""

    run_id: RunId
    phase: Phase
    decision: str


class Engine:
    """One node: the ledger, and everything that acts on what it committed."""

    def __init__(
        self,
        *,
        store: Store,
        runtimes: Mapping[str, Runtime],
        couriers: Mapping[str, Sequence[Courier]],
        clock: Clock,
        ids: Ids,
        off_loop: OffLoop,
        verifier: Verifier,
        settings: Settings,
        owner: str,
        progress_log: ProgressLog,
        transcripts: TranscriptLog,
        performance: PerformanceLog,
        worker_env: Callable[[Run], Mapping[str, str]] = lambda _run: {},
        secrets_of: Callable[[Run], tuple[str, ...]] = secrets_of,
        orphans: Callable[[set[AttemptId]], Awaitable[list[tuple[str, int]]]] = _no_orphans,
        provider_of: ProviderOf = own_provider,
        worktrees: Worktrees | None = None,
        proof_of: ProofOf = no_proof_needed,
    ) -> None:
        lease_ms = int(settings.daemon.lease_seconds * 1000)
        self._store, self._clock, self._off_loop = store, clock, off_loop
        self._runtimes = runtimes
        self._owner = owner
        self.ledger = Ledger(store, off_loop, clock, ids, lease_ms=lease_ms, secrets_of=secrets_of)
        self.limits = Limits(self.ledger, clock, provider_of)
        self._mailbox = Mailbox(self.ledger, store, off_loop, clock)
        quarantine = Quarantine()
        self.feed = Feed(self.ledger, store, off_loop, clock)
        self._timers = Timers(self.ledger, clock)
        self.meter = Meter(self.ledger)
        self.recorder = Recorder(
            ledger=self.ledger,
            store=store,
            transcripts=transcripts,
            off_loop=off_loop,
            clock=clock,
        )
        self.queries = Queries(
            self.ledger,
            store,
            off_loop,
            self._mailbox.offers,
            quarantine,
            concerns=self.recorder.concerns,
        )
        self.performance = Performance(
            ledger=self.ledger, store=store, records=performance, off_loop=off_loop, clock=clock
        )
        self._places = places = Places(
            ledger=self.ledger,
            store=store,
            off_loop=off_loop,
            clock=clock,
            recorder=self.recorder,
            worktrees=worktrees,
        )
        self._supervisor = Supervisor(
            self.ledger,
            clock,
            runtimes,
            self.recorder,
            limits=self.limits,
            remains=places.remains,
            lease_ms=lease_ms,
            paced=lambda run_id, seen: self._reports.paced(run_id, seen),  # noqa: PLW0108  made below
        )
        self._requests = requests = Requests(self.ledger, store, off_loop, clock)
        self._reports = reports = Reports(
            ledger=self.ledger,
            log=progress_log,
            off_loop=off_loop,
            clock=clock,
            flush=self._supervisor.flush,
        )
        control = Control(self.ledger, self.queries, clock)
        self.cancel, self.steer, self.redeliver = control.cancel, control.steer, control.redeliver
        self.pause, self.resume = control.pause, control.resume
        self.archive, self.interrupt = control.archive, control.interrupt
        # What a worker says and hears is called on its parts as it is.
        self.ask, self.answer_of, self.answer = requests.ask, requests.answer_of, requests.answer
        self.notify = requests.notify
        self.report, self.tool_used = reports.report, reports.tool_used
        self.progress, self.progress_of = reports.progress, reports.progress_of
        delivering = Delivering(
            self.ledger,
            self._mailbox,
            clock,
            couriers,
            timeout_ms=settings.defaults.announce_timeout_ms,
        )
        self._outbox = Outbox(
            ledger=self.ledger,
            clock=clock,
            runtimes=runtimes,
            verifier=verifier,
            delivering=delivering,
            worker_env=worker_env,
            quarantine=quarantine,
            let_go_of=self._supervisor.let_go_of,
            places=places,
        )
        self._spawner = Spawner(
            ledger=self.ledger,
            queries=self.queries,
            store=store,
            off_loop=off_loop,
            clock=clock,
            ids=ids,
            runtimes=runtimes,
            verifier=verifier,
            places=places,
            proof_of=proof_of,
        )
        self.sessions = Sessions(
            self.ledger,
            self.queries,
            control,
            spawn=self.spawn,
            known=self._spawner.keys.known,
            remember=self._spawner.keys.remember,
            inbox_of=self.inbox_of,
        )
        self._sweep = Sweep(
            ledger=self.ledger,
            mailbox=self._mailbox,
            store=store,
            off_loop=off_loop,
            clock=clock,
            settings=settings,
            orphans=orphans,
            forget=self._forget,
            end_orphan=self._end_orphan,
            tidy=self._tidy,
        )
        self._tasks = Tasks()
        self._life = Tasks()
        self._epoch = 0
        self.recoveries: tuple[Recovery, ...] = ()
        self.ledger.listen(on_commit=self._committed, on_failure=self._failed)

    # -- life ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the store over and go on with everything that is open.

        Raises:
            AlreadyRunning: Another process holds the store.
            CorruptState: The store cannot be trusted; nothing was changed.
        """
        self._epoch = await self._off_loop(lambda: self._store.open(self._owner))
        await self._go_on()

    async def _go_on(self) -> None:
        await self._spawner.load()
        outbox = await self._off_loop(self._store.load_outbox)
        leases = {held.run_id: held for held in await self._off_loop(self._store.load_leases)}
        await self.recorder.pause()
        # Last, and nothing is awaited after it: from here on calls are served again.
        await self.ledger.load(self._owner, self._epoch)
        self.recorder.reset()
        self.meter.reset()
        self.performance.reset()
        self.recoveries = decisions(self.ledger.published.values(), outbox, leases)
        for run in self.ledger.published.values():
            self._timers.arm(run)
        self._supervisor.adopt(leases)
        for entry in outbox:
            self._outbox.add(entry)
        self.ledger.fill_lanes()
        self._tasks.start(self.ledger.run(), "ledger")
        self._tasks.start(self._timers.run(), "timers")
        self._tasks.start(self.limits.run(), "limits")
        self._tasks.start(self._sweep.run(), "sweep")
        self._tasks.start(self.recorder.run(), "silence")
        self._tasks.start(self.recorder.write_on(), "recorder")
        self._tasks.start(self.performance.run(), "performance")

    async def stop(self) -> None:
        """End all tasks and close the store; workers that can outlive us go on."""
        await self._life.stop()
        await self._outbox.stop()
        await self._supervisor.stop()
        try:
            await self.ledger.committed()
        except StoreUnavailable:
            log.warning("stopping with uncommitted changes: the store cannot be written")
        await self._reports.stop()
        await self.performance.flush()
        await self._tasks.stop()
        await self._off_loop(self._store.close)

    def _committed(self, batch: Batch) -> None:
        self._mailbox.on_commit(batch)
        self._requests.on_commit(batch)
        self._reports.on_commit(batch)
        self._timers.on_commit(batch)
        self._supervisor.on_commit(batch)
        self.limits.on_commit(batch)
        self.recorder.on_commit(batch)
        self.performance.on_commit(batch)
        self._outbox.on_commit(batch)
        self.feed.on_commit(batch)

    def _failed(self, error: StoreUnavailable) -> None:
        log.error("a commit failed, starting over from the disk: %s", error)
        self._mailbox.wake_all()
        self._requests.wake_all()
        self._life.start(self._recover(), "recover")

    async def _recover(self) -> None:
        """Memory is ahead of the disk: forget it, wait for the store, load, go on."""
        await self._outbox.stop()
        await self._supervisor.stop()
        await self._tasks.stop()
        while True:
            await self._clock.sleep(RECOVER_S)
            try:
                await self._off_loop(self._store.probe)
                await self._go_on()
            except StoreUnavailable as error:
                log.warning("the store cannot be written yet: %s", error)
                continue
            break
        log.info("the store can be written again; %s runs are open", len(self.ledger.live))

    @property
    def degraded(self) -> str | None:
        """Why nothing can be changed now; None while all is well."""
        failure = self.ledger.failure
        return failure.message if failure is not None else None

    @property
    def live_attempts(self) -> int:
        return self._supervisor.live_attempts

    @property
    def effects_pending(self) -> int:
        """Committed effects that are not done yet."""
        return self._outbox.pending

    # -- spawning --------------------------------------------------------------------------

    async def spawn(
        self,
        spec: RunSpec,
        *,
        requester: SessionKey,
        settings: Settings,
        cwd: str,
        is_operator: bool = True,
    ) -> Receipt:
        """Store one new run and return its receipt before any agent starts; see ``Spawner``."""
        receipts = await self.spawn_batch(
            [spec], requester=requester, settings=settings, cwd=cwd, is_operator=is_operator
        )
        return receipts[0]

    async def spawn_batch(
        self,
        specs: Sequence[RunSpec],
        *,
        requester: SessionKey,
        settings: Settings,
        cwd: str,
        is_operator: bool = True,
    ) -> tuple[Receipt, ...]:
        """Store all of these runs or none; they may depend on each other by label."""
        return await self._spawner.spawn(
            specs, requester=requester, settings=settings, cwd=cwd, is_operator=is_operator
        )

    async def retry(
        self,
        run_id: RunId,
        *,
        requester: SessionKey,
        settings: Settings,
        is_operator: bool = True,
    ) -> Receipt:
        """A new run from the stored parameters of an ended one, under today's guardrails.

        Raises:
            Conflict: The run has not ended.
        """
        run = await self.queries.run(run_id)
        if not run.is_settled:
            raise Conflict(f"run {run_id} is {run.phase}; cancel it first")
        spec = replace(
            run.spec,
            agent_id=run.resolved.agent_id,
            chain_after=None,
            depends_on=tuple(d.run_id for d in run.dependencies),
            idempotency_key=None,
        )
        receipts = await self._spawner.spawn(
            [spec],
            requester=requester,
            settings=settings,
            cwd=run.resolved.project,
            is_operator=is_operator,
            retry_from=run.id,
        )
        return receipts[0]

    # -- mailbox ---------------------------------------------------------------------------

    async def wait(
        self,
        run_ids: Sequence[RunId],
        *,
        session: SessionKey,
        until: str = "any",
        timeout_s: float = 30.0,
        reader: str,
    ) -> WaitResult:
        """See ``Mailbox.wait``."""
        return await self._mailbox.wait(
            run_ids,
            session=self.inbox_of(session),
            until=until,
            timeout_s=timeout_s,
            reader=reader,
        )

    async def offer_inbox(
        self,
        session: SessionKey,
        *,
        reader: str,
        limit: int = 100,
        only: Collection[str] | None = None,
    ) -> tuple[InboxRow, ...]:
        """See ``Mailbox.offer_inbox``."""
        return await self._mailbox.offer_inbox(
            self.inbox_of(session), reader=reader, limit=limit, only=only
        )

    async def unread_count(self, session: SessionKey, *, most: int) -> int:
        """See ``Mailbox.unread_count``."""
        return await self._mailbox.unread_count(self.inbox_of(session), most=most)

    def is_under_way(self, message: Message) -> bool:
        """See ``Mailbox.is_under_way``."""
        return self._mailbox.is_under_way(message)

    def expect(self, message_ids: Iterable[str], *, for_ms: int) -> None:
        """See ``Mailbox.expect``."""
        self._mailbox.expect(message_ids, for_ms=for_ms)

    def give_back(self, message_ids: Iterable[str], *, reader: str) -> None:
        """See ``Mailbox.give_back``."""
        self._mailbox.give_back(message_ids, reader=reader)

    async def acknowledge(self, message_ids: Iterable[str], *, reader: str) -> int:
        """See ``Mailbox.acknowledge``."""
        return await self._mailbox.acknowledge(message_ids, reader=reader)

    def inbox_of(self, session: SessionKey) -> SessionKey:
        """The session under which a caller's runs and messages are kept.

        A worker's is its run's first session, whichever attempt speaks.
        """
        run_id = self.ledger.index.run_of(session)
        run = self.ledger.published.get(run_id) if run_id is not None else None
        return run.first_session_key if run is not None else session

    def identify(self, token: str) -> Identity:
        """Whom a worker's token stands for; see ``tokens.identify``."""
        return identify(token, self.ledger.published)

    @property
    def runtimes(self) -> Mapping[str, Runtime]:
        """Every runtime that workers can be started with, by its name."""
        return self._runtimes

    # -- upkeep ----------------------------------------------------------------------------

    async def sweep(self) -> SweepReport:
        """One recovery pass now; see ``Sweep``."""
        return await self._sweep.once()

    async def _tidy(self) -> None:
        await self.performance.tidy()
        await self._places.sweep()

    async def _end_orphan(self, name: AttemptId) -> bool:
        """End what is left of an attempt that is over; False = not ours beyond doubt."""
        run_id, _, number = name.rpartition("#")
        stored = self.ledger.live.get(RunId(run_id)) or await self._off_loop(
            lambda: self._store.run(RunId(run_id))
        )
        if stored is None or not number.isdecimal():
            return False
        run, attempt = stored, int(number)
        is_over = run.is_settled or attempt < len(run.attempts)
        runtime = self._runtimes.get(run.resolved.runtime)
        if not is_over or runtime is None or not 1 <= attempt <= len(run.attempts):
            return False
        try:
            await runtime.stop(ref_of(run, attempt), grace_s=run.resolved.grace_ms / 1000)
        except RuntimeUnavailable as error:
            log.warning("%s", error)
            return False
        return True

    async def _forget(self, run_id: RunId) -> None:
        """Delete the files of a run that is about to be pruned: its progress, its attempts'."""
        await self._reports.forget(run_id)
        await self.recorder.forget(run_id)
        run = await self.queries.run(run_id)
        await self._places.tidy(run)
        runtime = self._runtimes.get(run.resolved.runtime)
        if runtime is None or not run.attempts:
            return
        for attempt in run.attempts:
            await runtime.forget(ref_of(run, attempt.number))


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
