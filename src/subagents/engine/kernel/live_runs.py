"""All open runs in memory, and what one event makes of them: what is synchronous in the ledger.

No store, no clock, no loop: time comes inside events, and the host of this hears when there is
something to write (``on_work``), takes it (``take``) and says when it is durable (``publish``).

One event is reduced with all follow-ups for other runs and the lanes that this may fill: they
belong to the same commit. What workers and programs say is redacted before it is reduced.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.redaction.redact_events import BY_WORKERS, has_text, redact_event
from subagents.domain.run.effects import FollowUp, Transition
from subagents.domain.run.events import AnnouncementConsumed, CleanedUp, Event, SlotGranted
from subagents.domain.run.run import HOLDS_SLOT, OVER, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.schedules.schedule import Schedule, ScheduleId
from subagents.engine.kernel import addresses, cascade
from subagents.engine.kernel.lanes import LanePermits, Lanes
from subagents.engine.kernel.worker_tokens import Issued
from subagents.errors import Fenced, StoreUnavailable
from subagents.ports import Batch, Ids, JournalEntry, Lease, OutboxEntry, RememberedKey

log = logging.getLogger(__name__)

Failure: TypeAlias = StoreUnavailable | Fenced


class LiveRuns:
    """The open runs of one owner, as reduced and as committed, and what is to be written.

    Args:
        ids: Sessions and tokens of attempts.
        place_of: Name of the node on which a run's next attempt is to run, which gets a slot now;
            None = that is not decided yet.
        secrets_of: What a run's worker must not repeat, in addition to what looks like a secret.
        may_start: Whether a run may have a slot now; asked again after ``Lanes.unpark``.
        recorded: Called with a run before and after each change of its attempts, and when.
        on_work: Called when ``batch`` has something to be written, once until it is taken.
        on_torn: Called when half of what belongs together is in memory; it sets ``failure``.
        permits: See ``Lanes``.
    """

    def __init__(
        self,
        ids: Ids,
        *,
        place_of: Callable[[Run], str | None],
        secrets_of: Callable[[Run], tuple[str, ...]],
        may_start: Callable[[Run], bool],
        recorded: Callable[[Run | None, Run, int], None],
        on_work: Callable[[], None],
        on_torn: Callable[[Failure], None],
        permits: LanePermits | None = None,
    ) -> None:
        self._ids = ids
        self._place_of = place_of
        self._secrets_of = secrets_of
        self._may_start = may_start
        self._recorded = recorded
        self._on_work = on_work
        self._on_torn = on_torn
        self.live: dict[RunId, Run] = {}
        """Reduced; may be ahead of the disk. For decisions of the engine only."""
        self.published: dict[RunId, Run] = {}
        """Committed. For everything that somebody can see."""
        self.lanes = Lanes(permits)
        self.leases: dict[RunId, Lease] = {}
        """Those that were renewed; ahead of the disk as ``live`` is."""
        self.tokens = Issued()
        self.batch = Batch()
        self.has_work = False
        """Something is to be written, in ``batch``."""
        self.failure: Failure | None = None
        """Why nothing can be changed any more; None while all is well."""
        self.evictions = 0
        """Grows when runs leave memory: what was read of them before may be old."""
        self._writing = Batch()
        """What is being written; memory is ahead of the disk by this and by ``batch``."""
        self._keys: dict[RunId, set[str]] = {}
        self._kept_by: dict[RunId, int] = {}
        """Runs that are over, and the place of the child that is not: it keeps both in memory."""

    def bring(self, run: Run, keys: Collection[str] = ()) -> None:
        """Take over a run as it is stored, with the keys of the events that it has had."""
        self.live[run.id] = self.published[run.id] = run
        if keys:
            self._keys[run.id] = set(keys)
        self.lanes.put(None, run)

    # -- changing --------------------------------------------------------------------------

    def apply(
        self,
        run_id: RunId,
        event: Event,
        *,
        key: str | None = None,
        performed: OutboxEntry | None = None,
    ) -> Run:
        """Reduce in memory and put all that follows into the next commit.

        Args:
            run_id: A live run, or a new one.
            event: What happened.
            key: Unique within the run; the same key again changes nothing.
            performed: The effect that ``event`` answers: it leaves the outbox in that commit.

        Raises:
            IllegalTransition: Nothing was changed.
            StoreUnavailable, Fenced: ``failure``; nothing was changed.
        """
        if performed is not None:
            self.mark_performed(performed)
        elif self.failure is not None:
            raise self.failure
        run = self.live.get(run_id)
        # The same signal or answer comes again after every crash and retry: its key makes the
        # repetition harmless, so that those who send it need not know whether it arrived.
        if run is not None and key is not None and key in self._keys.get(run_id, ()):
            return run
        if run is not None and type(event) in BY_WORKERS and has_text(event):
            event = redact_event(event, self._secrets_of(run))
        step = reduce(run, event)
        try:
            self._record(step, event, key=key, is_new=run is None)
            if step.followups or self.lanes.touched:
                self._settle_followups([(step.run, each) for each in step.followups], event.at_ms)
        except Exception as error:
            # Half of what belongs together is in memory: only the disk can be trusted now.
            log.exception("%s of run %s broke", type(event).__name__, step.run.id)
            self._on_torn(StoreUnavailable(f"an event could not be applied: {error!r}"))
            raise
        return self.live[step.run.id]

    def consume(self, run: Run, event: AnnouncementConsumed) -> bool:
        """Hand the announcement of a settled live run over; False = it was before."""
        if self.failure is not None:
            raise self.failure
        if run.announcement_consumed_ms is not None:
            return False
        self._settle_followups(cascade.consume(self, run, event), event.at_ms)
        return True

    def mark_performed(self, entry: OutboxEntry) -> None:
        """The effect is done and needs no event (any more)."""
        if self.failure is not None:
            raise self.failure
        self.batch.performed.append((entry.run_id, entry.seq, entry.index))
        if not self.has_work:
            self._note_work()

    def consume_message(self, message_id: str, at_ms: int, reader: str) -> None:
        """Record that a message other than an announcement was taken over."""
        if self.failure is not None:
            raise self.failure
        self.batch.consumed.append((message_id, at_ms, reader))
        self._note_work()

    def move_inbox(self, source: SessionKey, target: SessionKey) -> None:
        """Unread messages change hands in the next commit."""
        if self.failure is not None:
            raise self.failure
        self.batch.moved.append((source, target))
        self._note_work()

    def remember(self, key: RememberedKey) -> None:
        """Store an idempotency key with the run it made."""
        # This wakes no one: the event of the same step does. A key alone means nothing.
        self.batch.idempotency.append(key)

    def put_schedule(self, schedule_id: ScheduleId, schedule: Schedule | None) -> None:
        """A schedule is as it is now, or gone, with the next commit."""
        if self.failure is not None:
            raise self.failure
        self.batch.schedules[schedule_id] = schedule
        self._note_work()

    def hold(self, lease: Lease) -> None:
        """This node acts for an attempt until the lease ends."""
        self.leases[lease.run_id] = self.batch.leases[lease.run_id] = lease
        self._note_work()

    def step(self, run_id: RunId, event: Event) -> list[tuple[Run, FollowUp]]:
        """See ``cascade.Changes.step``."""
        step = reduce(self.live[run_id], event)
        self._record(step, event, key=None, is_new=False)
        return [(step.run, each) for each in step.followups] if step.followups else []

    def _settle_followups(self, followups: Iterable[tuple[Run, FollowUp]], at_ms: int) -> None:
        """Apply all that follows for other runs, and give out the slots this made free."""
        # Breadth first and in this commit: a crash leaves no parent that was never told of its
        # child, and no child that works on under a parent that was cancelled.
        pending = deque(followups)
        while pending:
            source, followup = pending.popleft()
            pending.extend(cascade.follow(self, source, followup, at_ms))
        if self.lanes.touched:
            self.fill_lanes(at_ms)

    def _record(self, step: Transition, event: Event, *, key: str | None, is_new: bool) -> None:
        run, batch = step.run, self.batch
        run_id = run.id
        before = None if is_new else self.live[run_id]
        self.live[run_id] = run
        # However many events of a run are in one batch, its row is written once, as it is last.
        batch.runs[run_id] = run
        if is_new:
            batch.created.add(run_id)
        batch.journal.append(
            JournalEntry(run_id=run_id, seq=run.seq, at_ms=event.at_ms, event=event, key=key)
        )
        if type(event) is CleanedUp and event.erased:
            batch.erased.add(run_id)
        if key is not None:
            if run_id in self._keys:
                self._keys[run_id].add(key)
            else:
                self._keys[run_id] = {key}
        # What did not change is not looked at: most of this is done for every event of every run.
        if step.effects:
            batch.outbox += [
                OutboxEntry(run_id=run_id, seq=run.seq, index=number, effect=effect)
                for number, effect in enumerate(step.effects)
            ]
        if step.messages:
            batch.messages += [addresses.addressed(self.live, run, each) for each in step.messages]
        if before is not None and before.phase in HOLDS_SLOT and run.phase not in HOLDS_SLOT:
            self._end_lease(run)
        self.lanes.put(before, run)
        if before is None or before.attempts is not run.attempts:
            self._recorded(before, run, event.at_ms)
        if not self.has_work:
            self._note_work()

    def _note_work(self) -> None:
        self.has_work = True
        self._on_work()

    def _end_lease(self, run: Run) -> None:
        # Most attempts are over before their lease is renewed, and of those nothing is stored: an
        # attempt's slot says who acts for it, and its output is read from the beginning.
        if self.leases.pop(run.id, None) is not None:
            self.batch.leases[run.id] = None
        # Its agent answers nothing more: what its children asked goes to one that can.
        self.batch.readdressed += addresses.left_open(self.live, run)

    # -- slots and tokens ------------------------------------------------------------------

    def fill_lanes(self, at_ms: int) -> None:
        """Give out free slots; to be called once after all runs were brought, too."""
        for run_id in self.lanes.grants(self._may_begin):
            run = self.live[run_id]
            session = (
                SessionKey(f"agent:{run.resolved.agent_id}:subagent:{self._ids.session_uuid()}")
                if run.attempts
                else run.session.first_key
            )
            hashed = self.new_token(run_id, len(run.attempts) + 1)
            granted = SlotGranted(
                at_ms=at_ms, session_key=session, token_hash=hashed, node=self._place_of(run)
            )
            self.step(run_id, granted)

    def _may_begin(self, run_id: RunId) -> bool:
        run = self.live[run_id]
        return self.lanes.has_room_for_step(run) and self._may_start(run)

    def new_token(self, run_id: RunId, attempt: int) -> str:
        """Make a token for the attempt, kept in ``tokens``; returns the hash that is journaled."""
        return self.tokens.issue(run_id, attempt, self._ids.token_secret())

    # -- questions -------------------------------------------------------------------------

    def living_inbox(self, run: Run) -> SessionKey:
        """The inbox of the nearest ancestor that is not settled, in the end the top-level one."""
        return addresses.nearest_inbox(self.live, run, lambda above: not above.is_settled)

    def inbox_of(self, session: SessionKey) -> SessionKey:
        """The session under which a caller's runs and messages are kept.

        A worker's is its run's first session, whichever attempt speaks.
        """
        run_id = self.lanes.run_of(session)
        run = self.published.get(run_id) if run_id is not None else None
        return run.session.first_key if run is not None else session

    def unsettled(self, requester: SessionKey) -> list[Run]:
        """The requester's runs without an outcome, as everybody can see them.

        The index is ahead of the disk: what it has dropped may not be visible as settled yet.
        """
        ahead = (*self._writing.runs.values(), *self.batch.runs.values())
        settling = (run.id for run in ahead if run.requester == requester)
        wanted = dict.fromkeys((*self.lanes.active(requester), *settling))
        found = map(self.published.get, wanted)
        return [run for run in found if run is not None and not run.is_settled]

    # -- what was written ------------------------------------------------------------------

    def take(self) -> Batch:
        """What is to be written now; what is applied from here on goes into the next batch."""
        batch, self.batch = self.batch, Batch()
        self._writing, self.has_work = batch, False
        return batch

    def publish(self) -> Batch:
        """What was taken last is durable: everybody may see it."""
        self.published.update(self._writing.runs)
        return self._writing

    def is_being_written(self, run_id: RunId) -> bool:
        """Whether what was taken last, which may be on the disk by now, changes this run."""
        return run_id in self._writing.runs

    def evict(self, run: Run) -> None:
        """Runs that are over leave memory, a parent and its children together."""
        if run.phase not in OVER or self.live.get(run.id) is not run:
            return
        if (parent := addresses.parent_of(self.live, run)) is not None:
            self.evict(parent)
            return
        if not run.children:
            if self.published.get(run.id) is run:
                self._leave((run,))
            return
        # This is called at the end of each child, of which there may be a thousand: it goes on from
        # the one that was not over last time, so that all calls together visit each child once.
        at = self._kept_by.pop(run.id, 0)
        while at < len(run.children) and self._may_leave(run.children[at].run_id):
            at += 1
        if at < len(run.children):
            self._kept_by[run.id] = at
            return
        found = (self.live.get(child.run_id) for child in run.children)
        family = [run, *(member for member in found if member is not None)]
        # One that was looked at before may have been taken up again since (continued, redelivered).
        if not all(self._may_leave(member.id) for member in family):
            return
        self._leave(family)
        for member in family[1:]:
            for child in member.children:
                grandchild = self.live.get(child.run_id)
                if grandchild is not None:
                    self.evict(grandchild)

    def ahead(self, *, is_writing: bool) -> set[RunId]:
        """Runs that are not on the disk as they are here.

        Args:
            is_writing: What was taken last is not durable yet.
        """
        return {*self.batch.runs, *(self._writing.runs if is_writing else ())}

    def give_back(self, runs: Collection[Run]) -> None:
        """Runs leave memory though they are open, for another node; all of them is written."""
        for run in runs:
            self.lanes.remove(run)
            self._kept_by.pop(run.id, None)
            self.leases.pop(run.id, None)
        self._leave(runs)

    def _leave(self, family: Iterable[Run]) -> None:
        self.evictions += 1
        for member in family:
            self.lanes.drop(member)
            del self.live[member.id], self.published[member.id]
            self._keys.pop(member.id, None)
            self.tokens.throw_away(member.id)

    def _may_leave(self, run_id: RunId) -> bool:
        """Whether the run is over, or not in memory at all, and on the disk as it is here."""
        run = self.live.get(run_id)
        # One that is ahead of the disk would be loaded again as it was before.
        return run is None or (run.phase in OVER and self.published.get(run_id) is run)
