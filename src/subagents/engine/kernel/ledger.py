"""Every change to a run goes through here: ``apply``.

Reduce in memory, commit in groups, act after the commit (docs/decisions/0002):

- ``apply_now`` reduces at once, in memory, with all follow-ups for other runs and the lanes that
  this may fill: they belong to the same commit.
- One task writes the collected batch; what arrives meanwhile forms the next one. A lone event
  costs one fsync, a thousand together cost one fsync.
- Nothing is observable before its commit: callers wait for ``committed``, readers see
  ``published``, effects start from ``on_commit``.
- What workers and programs say is redacted here, before it is reduced (``redact_facts``).
- A failed commit means memory is ahead of the disk. Everything in memory is then thrown away:
  ``on_failure`` is called once, and every call raises until somebody loads the ledger again. After
  ``Fenced`` nobody does.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.redaction.redact_events import BY_WORKERS, has_text, redact_event, secrets_of
from subagents.domain.run.effects import FollowUp, Transition
from subagents.domain.run.events import AnnouncementConsumed, CleanedUp, Event, SlotGranted
from subagents.domain.run.outcome import DeliveryPath
from subagents.domain.run.run import HOLDS_SLOT, OVER, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.schedules.schedule import Schedule, ScheduleId
from subagents.engine.kernel import addresses, cascade
from subagents.engine.kernel.lanes import Lanes
from subagents.engine.kernel.waiters import Waiters
from subagents.engine.kernel.worker_tokens import Issued
from subagents.errors import Fenced, NotFound, StoreUnavailable, SubagentsError
from subagents.ports import (
    Batch,
    EngineClock,
    Ids,
    JournalEntry,
    Lease,
    OffLoop,
    OutboxEntry,
    RememberedKey,
    Store,
)

log = logging.getLogger(__name__)

GROUP_EVENTS: Final = 500
"""So many events are worth a commit of their own while the loop has more to do."""

CommitListener = Callable[[Batch], None]
Failure: TypeAlias = StoreUnavailable | Fenced
FailureListener = Callable[[Failure], None]


class Ledger:
    """All open runs in memory, and the group commit that makes their changes durable."""

    def __init__(
        self,
        store: Store,
        off_loop: OffLoop,
        clock: EngineClock,
        ids: Ids,
        *,
        lease_ms: int,
        secrets_of: Callable[[Run], tuple[str, ...]] = secrets_of,
    ) -> None:
        self.secrets_of = secrets_of
        """What a run's worker must not repeat besides what looks like a secret."""
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._ids = ids
        self._lease_ms = lease_ms
        self._on_commit: list[CommitListener] = []
        self._on_failure: list[FailureListener] = []
        self._evictions = 0
        self._leaving: set[RunId] = set()
        """Runs that are about to be deleted; the disk forgets them, so no reset of memory may."""
        self.may_start: Callable[[Run], bool] = lambda _run: True
        """Whether a run may have a slot now; asked again after ``Lanes.unpark``."""
        self.recorded: Callable[[Run | None, Run, int], None] = lambda *_: None
        """Called with a run before and after each change of its attempts in memory, and when."""
        self.commit_s = 0.0
        """How long the newest commit took."""
        self.loads = 0  # grows when memory was thrown away: who acted on it before must not go on
        self._reset()

    def _reset(self) -> None:
        self.owner = ""
        self.epoch = 0
        self.live: dict[RunId, Run] = {}
        """Reduced; may be ahead of the disk. For decisions of the engine only."""
        self.published: dict[RunId, Run] = {}
        """Committed. For everything that somebody can see."""
        self.number = 0
        """Of the newest event that ``published`` shows, in the order of all runs."""
        self.aside: dict[str, str] = {}
        """Runs that were not loaded because what is stored of them is damaged, and why."""
        self.lanes = Lanes()
        self.leases: dict[RunId, Lease] = {}
        """Those that were renewed; ahead of the disk as ``live`` is."""
        self._kept_by: dict[RunId, int] = {}
        """Runs that are over, and the place of the child that is not: it keeps both in memory."""
        self.tokens = Issued()
        self._keys: dict[RunId, set[str]] = {}
        self.batch = Batch()
        self._writing = Batch()
        """What is being committed; memory is ahead of the disk by this and by ``_batch``."""
        self._has_work = False
        """Something is to be committed, in ``batch``."""
        self._committed: Waiters | None = None
        """Who waits for the commit of ``batch``."""
        self._in_flight: Waiters | None = None
        """Who waits for the commit that is being made; None = none is."""
        self._write: asyncio.Future[None] | None = None
        """The commit that is being made; ``run`` waits for it."""
        self._begun_s = 0.0
        self._resting: asyncio.Future[None] | None = None
        """What the task that commits waits for while nothing is to be committed."""
        self._failure: Failure | None = None

    def on_commit(self, *listeners: CommitListener) -> None:
        """Call these with every durable batch, in order, before its callers return."""
        self._on_commit += listeners

    def on_failure(self, *listeners: FailureListener) -> None:
        """Call these once when memory is ahead of the disk and must be thrown away.

        And once more if it then turns out that the store is another's.
        """
        self._on_failure += listeners

    @property
    def failure(self) -> Failure | None:
        """Why nothing can be changed now; None while all is well."""
        return self._failure

    # -- loading ---------------------------------------------------------------------------

    async def load(self, owner: str, epoch: int) -> Sequence[OutboxEntry]:
        """Forget everything in memory and read the open runs from the store.

        Returns:
            Their effects that are not known to be done.

        Raises:
            Fenced: The store is another's; what this process did with it is over for good.
        """
        # What one of these finds damaged is left out by the next.
        number = await self._off_loop(self._store.newest_number)
        keys = await self._off_loop(self._store.load_keys)
        leases = await self._off_loop(self._store.load_leases)
        runs = await self._off_loop(self._store.load_open)
        outbox = await self._off_loop(self._store.load_outbox)
        aside = await self._off_loop(self._store.set_aside)
        if isinstance(self._failure, Fenced):
            raise self._failure
        # No await from here on: until everything is there, every call is refused.
        self._reset()
        self._evictions += 1
        self.loads += 1
        self.owner, self.epoch, self.number = owner, epoch, number
        self.aside = {each.name: each.reason for each in aside}
        for run in runs:
            self.live[run.id] = self.published[run.id] = run
            self.lanes.put(None, run)
        self.leases = {held.run_id: held for held in leases}
        self._keys = {run_id: set(found) for run_id, found in keys.items()}
        return [entry for entry in outbox if entry.run_id not in self.aside]

    async def load_run(self, run_id: RunId) -> Run:
        """Return the run, loading it back into memory when it was over and gone from there.

        Raises:
            NotFound: No such run, or none any more: it is being deleted.
        """
        while run_id not in self.live:
            if run_id in self._leaving:
                raise NotFound(f"run {run_id} does not exist")
            evictions = self._evictions
            stored = await self._off_loop(lambda: self._store.run(run_id))
            if stored is None:
                raise NotFound(f"run {run_id} does not exist")
            keys = await self._off_loop(lambda: self._store.load_keys([run_id]))
            # While this call waited, somebody else may have loaded the run, or even loaded,
            # changed and evicted it again: what was read is the newest only if nothing left.
            if run_id not in self.live and self._evictions == evictions:
                self.live[run_id] = self.published[run_id] = stored
                self._keys[run_id] = set(keys.get(run_id, ()))
                self.lanes.put(None, stored)
        return self.live[run_id]

    @contextmanager
    def leaving(self, run_ids: Iterable[RunId]) -> Iterator[Sequence[RunId]]:
        """Within the block nobody can load, and so change, the runs that it gives: delete them.

        It gives those of ``run_ids`` that are not in memory. Runs in memory are in use, and stay.
        """
        ids = [run_id for run_id in run_ids if run_id not in self.live]
        self._leaving.update(ids)
        self._evictions += 1  # who is reading one of them from the store now looks again
        try:
            yield ids
        finally:
            self._leaving.difference_update(ids)
            self._evictions += 1  # what was read before they were deleted is old, too

    # -- changing --------------------------------------------------------------------------

    async def apply(self, run_id: RunId, event: Event, *, key: str | None = None) -> Run:
        """Apply one event durably and return the run as it then was.

        Args:
            run_id: An open run, or one that ``load_run`` returned.
            event: What happened.
            key: Unique within the run; the same key again changes nothing.

        Raises:
            IllegalTransition: Nothing was changed.
            StoreUnavailable, Fenced: The commit failed; nothing of it is durable.
        """
        loaded = await self.load_run(run_id)
        try:
            run = self.apply_now(run_id, event, key=key)
        except SubagentsError:
            # Runs that are over leave memory with a commit, and this one will have none.
            self.evict(loaded)
            raise
        await self.committed()
        return run

    def apply_now(
        self,
        run_id: RunId,
        event: Event,
        *,
        key: str | None = None,
        performed: OutboxEntry | None = None,
    ) -> Run:
        """Reduce in memory and put all that follows into the next commit; see ``apply``.

        ``performed`` is the effect that ``event`` answers: it leaves the outbox in that commit.
        """
        if performed is not None:
            self.mark_performed(performed)
        elif self._failure is not None:
            raise self._failure
        run = self.live.get(run_id)
        # The same signal or answer comes again after every crash and retry: its key makes the
        # repetition harmless, so that those who send it need not know whether it arrived.
        if key is not None and key in self._keys.get(run_id, ()):
            return self._known(run_id)
        if run is not None and type(event) in BY_WORKERS and has_text(event):
            event = redact_event(event, self.secrets_of(run))
        step = reduce(run, event)
        try:
            self._record(step, event, key=key, is_new=run is None)
            if step.followups or self.lanes.touched:
                self._settle_followups([(step.run, each) for each in step.followups], event.at_ms)
        except Exception as error:
            # Half of what belongs together is in memory: only the disk can be trusted now.
            log.exception("%s of run %s broke", type(event).__name__, step.run.id)
            self.fail(StoreUnavailable(f"an event could not be applied: {error!r}"))
            raise
        return self.live[step.run.id]

    def consume(self, run: Run, *, reader: str, path: DeliveryPath) -> bool:
        """Hand the announcement of a settled live run over to ``reader``; False = it was before."""
        self._require_usable()
        if run.announcement_consumed_ms is not None:
            return False
        now = self._clock.now_ms()
        event = AnnouncementConsumed(at_ms=now, reader=reader, path=path)
        self._settle_followups(cascade.consume(self, run, event), now)
        return True

    def _settle_followups(self, followups: Iterable[tuple[Run, FollowUp]], at_ms: int) -> None:
        """Apply all that follows for other runs, and give out the slots this made free."""
        # Breadth first and in this commit: a crash leaves no parent that was never told of its
        # child, and no child that works on under a parent that was cancelled.
        pending = deque(followups)
        while pending:
            source, followup = pending.popleft()
            pending.extend(cascade.follow(self, source, followup, at_ms))
        if self.lanes.touched:
            self._fill_lanes(at_ms)

    def mark_performed(self, entry: OutboxEntry) -> None:
        """The effect is done and needs no event (any more)."""
        if self._failure is not None:
            raise self._failure
        self.batch.performed.append((entry.run_id, entry.seq, entry.index))
        if not self._has_work:
            self._note_work()

    def consume_message(self, message_id: str, reader: str) -> None:
        """Record that a message other than an announcement was taken over."""
        self._require_usable()
        self.batch.consumed.append((message_id, self._clock.now_ms(), reader))
        self._note_work()

    def move_inbox(self, source: SessionKey, target: SessionKey) -> None:
        """Unread messages change hands in the next commit."""
        self._require_usable()
        self.batch.moved.append((source, target))
        self._note_work()

    def remember(self, key: RememberedKey) -> None:
        """Store an idempotency key with the run it made."""
        # Wakes nobody: the event beside it, in the same step, does. A key alone means nothing.
        self.batch.idempotency.append(key)

    def put_schedule(self, schedule_id: ScheduleId, schedule: Schedule | None) -> None:
        """A schedule is as it is now, or gone, with the next commit."""
        self._require_usable()
        self.batch.schedules[schedule_id] = schedule
        self._note_work()

    def renew_lease(self, run: Run, cursor: int) -> None:
        """Extend this node's right to act for the run's attempt, which began with its slot."""
        if self._failure is not None:
            return
        self.leases[run.id] = self.batch.leases[run.id] = Lease(
            run_id=run.id,
            attempt=len(run.attempts),
            owner=self.owner,
            epoch=self.epoch,
            until_ms=self._clock.now_ms() + self._lease_ms,
            cursor=cursor,
        )
        self._note_work()

    def _require_usable(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _known(self, run_id: RunId) -> Run:
        run = self.live.get(run_id)
        if run is None:
            raise NotFound(f"run {run_id} does not exist")
        return run

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
            self.recorded(before, run, event.at_ms)
        if not self._has_work:
            self._note_work()

    def _note_work(self) -> None:
        self._has_work = True
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)

    def _end_lease(self, run: Run) -> None:
        # Most attempts are over before their lease is renewed, and of those nothing is stored: an
        # attempt's slot says who acts for it, and its output is read from the beginning.
        if self.leases.pop(run.id, None) is not None:
            self.batch.leases[run.id] = None
        # Its agent answers nothing more: what its children asked goes to who can.
        self.batch.readdressed += addresses.left_open(self.live, run)

    def step(self, run_id: RunId, event: Event) -> list[tuple[Run, FollowUp]]:
        step = reduce(self.live[run_id], event)
        self._record(step, event, key=None, is_new=False)
        return [(step.run, each) for each in step.followups] if step.followups else []

    def living_inbox(self, run: Run) -> SessionKey:
        """See ``addresses.living_inbox``."""
        return addresses.living_inbox(self.live, run)

    def inbox_of(self, session: SessionKey) -> SessionKey:
        """The session under which a caller's runs and messages are kept.

        A worker's is its run's first session, whichever attempt speaks.
        """
        run_id = self.lanes.run_of(session)
        run = self.published.get(run_id) if run_id is not None else None
        return run.session.first_key if run is not None else session

    def fill_lanes(self) -> None:
        """Give out free slots; needed once after loading."""
        self._fill_lanes(self._clock.now_ms())

    def _fill_lanes(self, at_ms: int) -> None:
        for run_id in self.lanes.grants(lambda run_id: self.may_start(self.live[run_id])):
            run = self.live[run_id]
            session = (
                SessionKey(f"agent:{run.resolved.agent_id}:subagent:{self._ids.session_uuid()}")
                if run.attempts
                else run.session.first_key
            )
            hashed = self.new_token(run_id, len(run.attempts) + 1)
            granted = SlotGranted(at_ms=at_ms, session_key=session, token_hash=hashed)
            self.step(run_id, granted)

    def new_token(self, run_id: RunId, attempt: int) -> str:
        """Make a token for the attempt, kept in ``tokens``; returns the hash that is journaled."""
        return self.tokens.issue(run_id, attempt, self._ids.token_secret())

    def unsettled(self, requester: SessionKey) -> list[Run]:
        """The requester's runs without an outcome, as everybody can see them.

        The index is ahead of the disk: what it has dropped may not be visible as settled yet.
        """
        ahead = (*self._writing.runs.values(), *self.batch.runs.values())
        wanted = {run.id for run in ahead if run.requester == requester}
        found = (self.published.get(each) for each in wanted | self.lanes.active(requester))
        return [run for run in found if run is not None and not run.is_settled]

    # -- the group commit ------------------------------------------------------------------

    async def committed(self) -> None:
        """Return once everything applied so far is durable.

        Raises:
            StoreUnavailable, Fenced: It is not, and never will be.
        """
        if self._failure is not None:
            raise self._failure
        if self._has_work:
            waiting = self._committed = self._committed or Waiters()
            self.seal()
            await waiting.join()
        elif self._in_flight is not None:
            await self._in_flight.join()

    async def run(self) -> None:
        """Write batches until cancelled or until one fails."""
        while self._failure is None:
            if not self._has_work and self._write is None:
                self._resting = asyncio.get_running_loop().create_future()
                await self._resting
                self._resting = None
                if self._failure is not None:
                    return  # what is in memory is half of what belongs together
            write = self._write or self._begin()
            try:
                await write
                self.commit_s = time.perf_counter() - self._begun_s
                self._publish(self._writing)
            except (StoreUnavailable, Fenced) as error:
                self.fail(error)
                return
            except Exception as error:
                # A value that cannot be written, a listener that broke: memory cannot be trusted.
                log.exception("a commit could not be made")
                self.fail(StoreUnavailable(f"a commit could not be made: {error!r}"))
                return
            waiters, self._in_flight, self._write = self._in_flight, None, None
            if waiters is not None:
                waiters.wake()

    def seal(self) -> None:
        """All that belongs together was applied: begin to write it, if it is much.

        Else that begins when the loop comes round. In a burst it does so after all of the burst,
        and loop and disk would take turns. Call it between groups of events, never within one.
        """
        if self._write is None and len(self.batch.journal) >= GROUP_EVENTS:
            self._begin()

    def _begin(self) -> "asyncio.Future[None]":
        batch, self._in_flight = self._swap()
        self._begun_s = time.perf_counter()
        self._write = asyncio.ensure_future(self._off_loop(partial(self._store.commit, batch)))
        return self._write

    def _swap(self) -> tuple[Batch, Waiters]:
        # What is applied while this batch is written goes into the next one, and its callers
        # wait for that one: they belong to exactly one batch.
        batch, self.batch = self.batch, Batch()
        self._writing = batch
        waiters, self._committed = self._committed or Waiters(), None
        self._has_work = False
        return batch, waiters

    def _publish(self, batch: Batch) -> None:
        # Readers before listeners, callers last: whoever is woken finds what woke it.
        self.published.update(batch.runs)
        self.number += len(batch.journal)
        for listener in self._on_commit:
            listener(batch)
        for run in batch.runs.values():
            if run.phase in OVER:
                self.evict(run)

    def evict(self, run: Run) -> None:
        """Runs that are over leave memory, a parent and its children together."""
        if run.phase not in OVER or self.live.get(run.id) is not run:
            return
        parent = self.live.get(run.lineage.requester_run) if run.lineage.requester_run else None
        if parent is not None:
            self.evict(parent)
            return
        if not run.children:
            if self.published.get(run.id) is run:
                self._leave((run,))
            return
        # Looked through once, not at the end of each: on from the child that was not over then.
        at = self._kept_by.pop(run.id, 0)
        while at < len(run.children) and self._may_leave(run.children[at].run_id):
            at += 1
        if at < len(run.children):
            self._kept_by[run.id] = at
            return
        found = (self.live.get(child.run_id) for child in run.children)
        family = [run, *(member for member in found if member is not None)]
        # One that was looked at before may have been taken up again since.
        if not all(self._may_leave(member.id) for member in family):
            return
        self._leave(family)
        for member in family[1:]:
            for child in member.children:
                grandchild = self.live.get(child.run_id)
                if grandchild is not None:
                    self.evict(grandchild)

    def _leave(self, family: Iterable[Run]) -> None:
        self._evictions += 1
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

    def fail(self, error: Failure) -> None:
        """Nothing in memory can be trusted any more; what was fenced stays so."""
        is_fenced_now = isinstance(error, Fenced) and not isinstance(self._failure, Fenced)
        if self._failure is not None and not is_fenced_now:
            return
        self._failure = error
        for waiters in (self._in_flight, self._committed):
            if waiters is not None:
                waiters.wake(error)
        self._in_flight = None
        for listener in self._on_failure:
            listener(error)
