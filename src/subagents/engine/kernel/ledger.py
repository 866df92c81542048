"""Every change to a run goes through here: ``apply``.

Reduce in memory, commit in groups, act after the commit (docs/decisions/0002):

- ``apply_now`` reduces at once, in memory: see ``live_runs``, which knows neither store nor loop.
- One task writes the collected batch; what arrives meanwhile forms the next one. A lone event
  costs one fsync, a thousand together cost one fsync.
- Nothing is observable before its commit: callers wait for ``committed``, readers see
  ``published``, effects start from ``on_commit``.
- A failed commit means memory is ahead of the disk. Everything in memory is then thrown away:
  ``on_failure`` is called once, and every call raises until somebody loads the ledger again. After
  ``Fenced`` nobody does.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from subagents.domain.redaction.redact_events import secrets_of
from subagents.domain.run.events import AnnouncementConsumed, Event
from subagents.domain.run.outcome import DeliveryPath
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId
from subagents.engine.kernel.lanes import LanePermits
from subagents.engine.kernel.live_runs import Failure, LiveRuns
from subagents.engine.kernel.partitions import Partitions
from subagents.engine.kernel.waiters import Waiters
from subagents.errors import Fenced, NotFound, StoreUnavailable, SubagentsError
from subagents.ports import (
    Batch,
    EngineClock,
    Ids,
    Lease,
    Loaded,
    OffLoop,
    OutboxEntry,
    SetAside,
    Store,
)

log = logging.getLogger(__name__)

GROUP_EVENTS: Final = 500
"""How many events are worth a commit while the loop has more to do."""

CommitListener = Callable[[Batch], None]
FailureListener = Callable[[Failure], None]


class Ledger:
    """The group commit that makes changes of the live runs durable."""

    def __init__(
        self,
        store: Store,
        off_loop: OffLoop,
        clock: EngineClock,
        ids: Ids,
        *,
        lease_ms: int,
        partitions: Partitions | None = None,
        secrets_of: Callable[[Run], tuple[str, ...]] = secrets_of,
        place_of: Callable[[Run], str | None] = lambda _run: None,
        may_start: Callable[[Run], bool] = lambda _run: True,
    ) -> None:
        self.partitions = partitions or Partitions()
        """Which runs are ours."""
        self.secrets_of = secrets_of
        """What a run's worker must not repeat, in addition to what looks like a secret."""
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._ids = ids
        self._lease_ms = lease_ms
        self._place_of = place_of
        """Where a run's next attempt is to run."""
        self._may_start = may_start
        """Whether a run may have a slot."""
        self._on_commit: list[CommitListener] = []
        self._on_failure: list[FailureListener] = []
        self._leaving: set[RunId] = set()
        """Runs that are about to be deleted; the disk forgets them, so no reset of memory may."""
        self.permits: LanePermits | None = None
        """What the cluster gives this node of its lanes; it holds from the next ``load`` on."""
        self.recorded: Callable[[Run | None, Run, int], None] = lambda *_: None
        """Called with a run before and after each change of its attempts in memory, and when; as
        ``permits``, it holds from the next ``load`` on.
        """
        self.commit_s = 0.0
        """How long the newest commit took."""
        self.loads = 0  # grows when memory was thrown away: what acted on it before must not go on
        self._reset()

    def _reset(self) -> None:
        self.owner = ""
        self.epoch = 0
        self.number = 0
        """The number of the newest event that ``published`` shows, in the order of all runs."""
        self.aside: dict[str, str] = {}
        """Runs that were not loaded because what is stored of them is damaged, and why."""
        self._runs = runs = LiveRuns(
            self._ids,
            place_of=self._place_of,
            secrets_of=self.secrets_of,
            may_start=self._may_start,
            recorded=self.recorded,
            on_work=self._wake,
            on_torn=self.fail,
            permits=self.permits,
        )
        # Under the ledger's name, since whoever applies an event also waits for its commit; and
        # not by way of a method, which would be one call more for each event of each run.
        self.live, self.published, self.lanes = runs.live, runs.published, runs.lanes
        self.leases, self.tokens = runs.leases, runs.tokens
        self.apply_now, self.mark_performed = runs.apply, runs.mark_performed
        self.remember, self.put_schedule = runs.remember, runs.put_schedule
        self.move_inbox, self.new_token = runs.move_inbox, runs.new_token
        self.inbox_of, self.living_inbox = runs.inbox_of, runs.living_inbox
        self.unsettled, self.evict = runs.unsettled, runs.evict
        self._committed: Waiters | None = None
        """The calls that wait for the commit of what is not being written yet."""
        self._in_flight: Waiters | None = None
        """The calls that wait for the commit that is being made; None = none is."""
        self._write: asyncio.Future[int] | None = None
        """The commit that is being made; ``run`` waits for it."""
        self._begun_s = 0.0
        self._resting: asyncio.Future[None] | None = None
        """What the task that commits waits for while nothing is to be committed."""

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
        return self._runs.failure

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
        if isinstance(self.failure, Fenced):
            raise self.failure
        # No await from here on: until everything is there, every call is refused.
        self._reset()
        self.loads += 1
        self.owner, self.epoch, self.number = owner, epoch, number
        self.aside = {each.name: each.reason for each in aside}
        for run in runs:
            self._runs.bring(run, keys.get(run.id, ()))
        self.leases.update((held.run_id, held) for held in leases)
        return [entry for entry in outbox if entry.run_id not in self.aside]

    def adopt(self, loaded: Loaded, aside: Sequence[SetAside]) -> Sequence[OutboxEntry]:
        """The runs of partitions that became ours join those in memory.

        Returns:
            Their effects that are not known to be done.
        """
        self.aside = {each.name: each.reason for each in aside}
        for run in loaded.runs:
            self._runs.bring(run, loaded.keys.get(run.id, ()))
        self.leases.update((held.run_id, held) for held in loaded.leases)
        return [entry for entry in loaded.outbox if entry.run_id not in self.aside]

    def give_back(self, runs: Collection[Run]) -> bool:
        """Runs of partitions that are ours no more leave memory.

        Returns:
            Whether they did: not while something of them is being written or is to be.
        """
        if self.failure is not None:
            return False
        ahead = self._runs.ahead(is_writing=self._write is not None)
        if any(run.id in ahead for run in runs):
            return False
        self._runs.give_back(runs)
        return True

    async def load_run(self, run_id: RunId) -> Run:
        """Return the run, loading it back into memory when it was over and gone from there.

        Raises:
            NotFound: No such run, or none any more: it is being deleted.
            Elsewhere: Another node has it.
        """
        while run_id not in self.live:
            await self.partitions.require_run(run_id)
            if run_id in self._leaving:
                raise NotFound(f"run {run_id} does not exist")
            runs, evictions = self._runs, self._runs.evictions
            stored = await self._off_loop(lambda: self._store.run(run_id))
            if stored is None:
                raise NotFound(f"run {run_id} does not exist")
            keys = await self._off_loop(lambda: self._store.load_keys([run_id]))
            # While this call waited, somebody else may have loaded the run, or even loaded,
            # changed and evicted it again: what was read is the newest only if nothing left.
            is_newest = self._runs is runs and runs.evictions == evictions
            if run_id not in self.live and is_newest:
                runs.bring(stored, keys.get(run_id, ()))
        return self.live[run_id]

    async def newest(self, run_id: RunId) -> Run | None:
        """The open run as committed, and no older than lists may have shown it already.

        Those are read from the disk, which has a commit before memory does: a change of the run
        that is being written is waited for. One that fails is not there.
        """
        if self._in_flight is not None and self._runs.is_being_written(run_id):
            with suppress(StoreUnavailable, Fenced):
                await self._in_flight.join()
        return self.published.get(run_id)

    @contextmanager
    def leaving(self, run_ids: Iterable[RunId]) -> Iterator[Sequence[RunId]]:
        """Within the block no call can load, and so change, the runs that it gives: delete them.

        It gives those of ``run_ids`` that are not in memory. Runs in memory are in use, and stay.
        """
        ids = [run_id for run_id in run_ids if run_id not in self.live]
        self._leaving.update(ids)
        self._runs.evictions += 1  # whatever is reading one of them from the store looks again
        try:
            yield ids
        finally:
            self._leaving.difference_update(ids)
            self._runs.evictions += 1  # what was read before they were deleted is old, too

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

    def consume(self, run: Run, *, reader: str, path: DeliveryPath) -> bool:
        """Hand the announcement of a settled live run over to ``reader``; False = it was before."""
        event = AnnouncementConsumed(at_ms=self._clock.now_ms(), reader=reader, path=path)
        return self._runs.consume(run, event)

    def consume_message(self, message_id: str, reader: str) -> None:
        """Record that a message other than an announcement was taken over."""
        self._runs.consume_message(message_id, self._clock.now_ms(), reader)

    def renew_lease(self, run: Run, cursor: int) -> None:
        """Extend this node's right to act for the run's attempt, which began with its slot."""
        if self.failure is not None:
            return
        lease = Lease(
            run_id=run.id,
            attempt=len(run.attempts),
            owner=self.owner,
            epoch=self.epoch,
            until_ms=self._clock.now_ms() + self._lease_ms,
            cursor=cursor,
        )
        self._runs.hold(lease)

    def fill_lanes(self) -> None:
        """Give out free slots; needed once after loading."""
        self._runs.fill_lanes(self._clock.now_ms())

    # -- the group commit ------------------------------------------------------------------

    async def committed(self) -> None:
        """Return once everything applied so far is durable.

        Raises:
            StoreUnavailable, Fenced: It is not, and never will be.
        """
        if self._runs.failure is not None:
            raise self._runs.failure
        if self._runs.has_work:
            waiting = self._committed = self._committed or Waiters()
            self.seal()
            await waiting.join()
        elif self._in_flight is not None:
            await self._in_flight.join()

    async def run(self) -> None:
        """Write batches until cancelled or until one fails."""
        while self._runs.failure is None:
            if not self._runs.has_work and self._write is None:
                self._resting = asyncio.get_running_loop().create_future()
                await self._resting
                self._resting = None
                if self._runs.failure is not None:
                    return  # what is in memory is half of what belongs together
            write = self._write or self._begin()
            try:
                number = await write
                self.commit_s = time.perf_counter() - self._begun_s
                self._publish(number)
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
        if self._write is None and len(self._runs.batch.journal) >= GROUP_EVENTS:
            self._begin()

    def _begin(self) -> "asyncio.Future[int]":
        # What is applied while this batch is written goes into the next one, and its callers
        # wait for that one: they belong to exactly one batch.
        self._in_flight, self._committed = self._committed or Waiters(), None
        batch = self._runs.take()
        self._begun_s = time.perf_counter()
        self._write = asyncio.ensure_future(self._off_loop(partial(self._store.commit, batch)))
        return self._write

    def _wake(self) -> None:
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)

    def _publish(self, number: int) -> None:
        # Readers before listeners, callers last: whoever is woken finds what woke it.
        batch = self._runs.publish()
        self.number = number
        for listener in self._on_commit:
            listener(batch)
        for run in batch.runs.values():
            if run.phase in OVER:
                self.evict(run)

    def fail(self, error: Failure) -> None:
        """Nothing in memory can be trusted any more; what was fenced stays so."""
        is_fenced_now = isinstance(error, Fenced) and not isinstance(self.failure, Fenced)
        if self.failure is not None and not is_fenced_now:
            return
        self._runs.failure = error
        for waiters in (self._in_flight, self._committed):
            if waiters is not None:
                waiters.wake(error)
        self._in_flight = None
        for listener in self._on_failure:
            listener(error)
