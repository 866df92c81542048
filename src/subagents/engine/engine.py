"""The engine: what callers may ask of it, and the life of its parts.

``start`` reads the store, takes the leases over and resumes everything; ``stop`` ends the
tasks and leaves workers running. When a commit fails the engine throws its memory away, waits
until the store can be written again and starts over from the disk: see ``ledger``. When another
process took the store over it ends all that acts and says so: its workers are that one's now.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from subagents.domain.run.run import Phase, Report, Run
from subagents.domain.run.values import RunId, Value
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.kernel.live_runs import Failure
from subagents.engine.kernel.tasks import Tasks
from subagents.engine.kernel.worker_tokens import Identity, identify
from subagents.engine.parts import Adapters, Parts
from subagents.engine.sharing import Membership
from subagents.errors import Fenced, StoreUnavailable, UsageError
from subagents.ports import Lease, OutboxEntry, Runtime

log = logging.getLogger(__name__)

RECOVER_S: Final = 1.0
"""Between two tries whether the store can be written again."""


class Recovery(Value, frozen=True):
    """What a start decided about one open run."""

    run_id: RunId
    phase: Phase
    decision: str


class Engine:
    """One node, as its callers see it: every change is a call, everything else is read only."""

    def __init__(self, given: Adapters) -> None:  # noqa: PLR0915 - one line per call
        self._store, self._clock, self._off_loop = given.store, given.clock, given.off_loop
        self._owner = given.owner
        self._close_logs = given.close_logs
        self._parts = parts = Parts(given)
        self._tasks = Tasks()
        self._life = Tasks()
        self._holding = Tasks()
        """What renews our right, from the store's opening to its closing."""
        self._memory = asyncio.Lock()
        """Whoever loads runs, or gives some back, does it alone."""
        self.promise = parts.ownership.promise
        self.partitions = parts.partitions
        """Which sessions and runs this node decides about."""
        self._membership: Membership | None = None
        if given.sharing is not None:
            self._membership = given.sharing.membership(parts, self._memory)
        self._epoch = 0
        self._on_fenced: list[Callable[[], None]] = []
        self.may_be_over = False
        """Whether ``require_ownership`` can refuse, or what holds now can end during a call."""
        self.recoveries: tuple[Recovery, ...] = ()
        """What the newest start decided about each open run."""
        self.runtimes: Mapping[str, Runtime] = given.runtimes
        """Every runtime that workers can be started with, by its name."""
        parts.ledger.on_failure(self._failed)
        parts.schedules.begin = self._begin_schedules

        # To be read.
        self.queries = parts.queries
        self.alerts = parts.alert_history.page
        self.feed = parts.feed
        self.counters = parts.counters
        self.surroundings = parts.surroundings
        self.backing_off = parts.provider_gates.backing_off
        self.read_log = parts.recorder.read
        self.new_lines = parts.recorder.listening
        self.watch_of = parts.recorder.watch_of
        self.stats, self.series = parts.track_records.stats, parts.track_records.series
        self.known_agents = parts.agent_choice.known
        self.progress_of = parts.reports.progress_of
        self.results, self.artifacts = parts.results, parts.artifacts
        self.diff_of = parts.workspaces.diff
        self.answer_of = parts.questions.answer_of
        self.unread_count = parts.mailbox.unread_count
        self.courier_of = parts.deliveries.courier_of
        self.is_under_way = parts.mailbox.is_under_way

        # Calls, each on the part that answers it.
        self.spawn = parts.spawner.spawn
        self.spawn_batch = parts.spawner.spawn_batch
        self.retry, self.retry_all = parts.spawner.retry, parts.spawner.retry_all
        self.workplace = parts.workplace
        self.schedules = parts.schedules
        self.send = parts.sessions.send
        self.cancel = parts.control.cancel
        self.plan_cancel = parts.control.plan_cancel
        self.withdraw_cancel = parts.control.withdraw_cancel
        self.interrupt = parts.control.interrupt
        self.steer = parts.control.steer
        self.pause = parts.control.pause
        self.prioritize = parts.control.prioritize
        self.resume = parts.control.resume
        self.redeliver, self.dismiss = parts.control.redeliver, parts.control.dismiss
        self.archive = parts.control.archive
        self.note_refusal = parts.control.note_refusal
        self.hold = parts.request_desk.hold
        self.ask = parts.questions.ask
        self.answer = parts.questions.answer
        self.notify = parts.questions.notify
        self.progress = parts.reports.progress
        self.wait = parts.mailbox.wait
        self.offer_inbox = parts.mailbox.offer_inbox
        self.expect = parts.mailbox.expect
        self.release = parts.mailbox.release
        self.note_returned, self.note_told = parts.mailbox.note_returned, parts.mailbox.note_told
        self.acknowledge = parts.mailbox.acknowledge
        self.sweep, self.orphans = parts.sweep.once, parts.sweep.orphans
        self.on_commit = parts.ledger.on_commit

    # -- life ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the store over and resume everything that is open.

        Raises:
            AlreadyRunning: Another process holds the store.
            CorruptState: The store cannot be trusted; nothing was changed.
        """
        ownership = self._parts.ownership
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
        if self._parts.taking is not None:
            self._life.keep(self._parts.taking, "taking", self._clock)

    def _take_over(self) -> tuple[int, float | None, int]:
        epoch = self._store.open(self._owner)
        asked_ms = self._clock.elapsed_ms()
        return epoch, self._store.renew(), asked_ms

    async def _load_and_resume(self) -> None:
        async with self._memory:
            await self._load_all()

    async def _load_all(self) -> None:
        parts, ledger = self._parts, self._parts.ledger
        await parts.partitions.load()
        await parts.spawner.keys.load()
        await parts.shared_spending.load()
        stored = await self._off_loop(self._store.load_schedules)
        parts.schedules.load([e for e in stored if await parts.partitions.has(e.requester)])
        await parts.recorder.pause()
        # Last, and nothing is awaited after it: from here on calls are served again.
        outbox = await ledger.load(self._owner, self._epoch)
        parts.recorder.reset()
        parts.counters.reset()
        parts.track_records.reset()
        parts.timers.tell_again()
        parts.emergency_stops.record()
        self.recoveries = decisions(ledger.published.values(), outbox, ledger.leases)
        for run in ledger.published.values():
            parts.timers.arm(run)
        parts.supervisor.adopt()
        for entry in outbox:
            parts.outbox.add(entry)
        ledger.fill_lanes()
        for name, work in (
            ("ledger", ledger.run),
            ("timers", parts.timers.run),
            ("shared budgets", parts.shared_spending.run),
            ("provider gates", parts.provider_gates.run),
            ("sweep", parts.sweep.run),
            ("silence", parts.recorder.run),
            ("recorder", parts.recorder.write_on),
            ("track records", parts.track_records.run),
        ):
            self._tasks.keep(work, name, self._clock)
        if parts.permit_desk is not None:
            self._tasks.keep(parts.permit_desk.run, "permits", self._clock)
        parts.schedules.begin_if_needed()

    def _begin_schedules(self) -> None:
        self._tasks.keep(self._parts.schedules.run, "schedules", self._clock)

    async def stop(self) -> None:
        """End all tasks and close the store; workers that can outlive us go on."""
        await self._life.stop()
        if self._membership is not None:
            await self._membership.leave()
        await self._parts.outbox.stop()
        await self._parts.supervisor.stop()
        try:
            await self._parts.ledger.committed()
        except StoreUnavailable:
            log.warning("stopping with uncommitted changes: the store cannot be written")
        except Fenced:
            log.warning("stopping with uncommitted changes: the store is another's")
        await self._parts.reports.stop()
        if self.fence is None:
            await self._parts.track_records.settle()
        await self._tasks.stop()
        if self._parts.permit_desk is not None:
            await self._parts.permit_desk.close()
        if self.fence is None:
            await self._off_loop(self._store.checkpoint)
        await self._off_loop(self._close_logs)
        # Not before: until then our workers are ours, whoever waits for what is committed last.
        await self._holding.stop()
        await self._off_loop(self._store.close)

    async def drain(self, *, is_on: bool) -> None:
        """Take no more partitions and give back those that we have, or take part again.

        Returns at once; one with a worker of ours is given back when that has ended.

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
        failure = self._parts.ledger.failure
        return failure if isinstance(failure, Fenced) else None

    def _failed(self, error: Failure) -> None:
        self._parts.mailbox.failed()
        self._parts.questions.wake_all()
        if isinstance(error, Fenced):
            self.may_be_over = True
            log.error("the store is another's, nothing is done here any more: %s", error)
            self._life.start(self._give_up(), "give up")
        else:
            log.error("a commit failed, starting over from the disk: %s", error)
            self._life.start(self._recover(), "recover")

    async def _end_acting(self) -> None:
        """Nobody acts on memory any more; workers go on."""
        await self._parts.outbox.stop()
        await self._parts.supervisor.stop()
        await self._tasks.stop()

    async def _give_up(self) -> None:
        """Leave everything to who took the store over, workers past their deadline, too."""
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
            await self._parts.emergency_stops.end_due()
            try:
                await self._clock.sleep(RECOVER_S)
                await self._off_loop(self._store.probe)
                await self._load_and_resume()
            except Fenced as error:
                self._parts.ledger.fail(error)
                return
            except StoreUnavailable as error:
                log.warning("the store cannot be written yet: %s", error)
                continue
            except Exception:
                # Out of memory, say. Nobody else would ever begin anew.
                log.exception("starting over from the disk failed")
                continue
            break
        log.info("the store can be written again; %s runs are open", len(self._parts.ledger.live))

    # -- calls and properties that concern several parts -----------------------------------

    @property
    def degraded(self) -> str | None:
        """Why nothing can be changed now; None while all is well."""
        failure = self._parts.ledger.failure or self._parts.ownership.lapse
        return failure.message if failure is not None else None

    def require_ownership(self) -> None:
        """Refuse an answer that was made from memory, when others may know better by now.

        To be asked after it was made: one that was frozen in between must not tell what was.

        Raises:
            Fenced: The store is another's.
            StoreUnavailable: It may be; the same call can be repeated.
        """
        refusal = self.fence or self._parts.ownership.lapse
        if refusal is not None:
            raise refusal

    @property
    def shared_spending(self) -> SharedSpending:
        """The caps over several runs, and what is used of them."""
        return self._parts.shared_spending

    @property
    def live_attempts(self) -> int:
        return self._parts.supervisor.live_attempts

    @property
    def effects_pending(self) -> int:
        """Committed effects that are not done yet."""
        return self._parts.outbox.pending

    async def report(self, run_id: RunId, report: Report) -> None:
        """See ``Reports.report``; what was seen of the worker's output so far comes before it."""
        self._parts.supervisor.flush(run_id)
        await self._parts.reports.report(run_id, report)

    async def tool_used(self, run_id: RunId, attempt: int, name: str) -> None:
        """See ``Reports.tool_used``; what was seen of the worker's output comes before it."""
        self._parts.supervisor.flush(run_id)
        await self._parts.reports.tool_used(run_id, attempt, name)

    def identify(self, token: str) -> Identity:
        """Whom a worker's token stands for; see ``worker_tokens.identify``."""
        return identify(token, self._parts.ledger.published, self._parts.ledger.aside)


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
