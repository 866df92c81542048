"""Waiting for runs, and the inbox: how agents learn what became of each other's work.

A message is *offered* to one reader at a time (``offers``), the consumption is a commit.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from subagents.domain.run.events import ChildReturned
from subagents.domain.run.outcome import DeliveryPath
from subagents.domain.run.run import SETTLED, Message, MessageKind, Phase, Request, Run
from subagents.domain.run.values import (
    MessageId,
    RunId,
    SessionKey,
    Value,
    announcement_id,
    replace,
)
from subagents.engine.kernel import addresses
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.engine.kernel.waiters import Wakeups
from subagents.engine.messages.leases import Held, MessageLeases
from subagents.errors import NotFound, StoreUnavailable, UsageError
from subagents.ports import Batch, InboxRow

WAIT_S_MAX: Final = 600.0
WAIT_RUNS_MAX: Final = 1_000
ANNOUNCE_SUFFIX: Final = ":announce"
TOLD_MAX: Final = 10_000
"""Questions that sessions are remembered to know; beyond that the oldest are reported once more."""
UNREAD_HELD_MAX: Final = 1_000
"""How many messages that others hold are skipped when unread ones are counted."""


class Need(Value, frozen=True):
    """Why an awaited run does not go on by itself: it asks, is blocked, or its provider refuses."""

    id: str
    """The id of the question or notice, or of this wait for the provider."""
    run: Run
    request: Request | None = None
    """None = the limit of its model's provider."""


class WaitResult(Value, frozen=True):
    """What ``wait`` found; a timeout is no error, what is missing is named."""

    completed: tuple[Run, ...] = ()
    pending: tuple[Run, ...] = ()
    missing: tuple[str, ...] = ()
    offered: tuple[MessageId, ...] = ()
    """Announcements leased to this reader: acknowledge them to consume them."""
    needs: tuple[Need, ...] = ()
    """Those that the waiting session was not told of; asked for by ``returns_on_needs``."""
    leased_until_ms: int | None = None
    """When the first of those that other readers hold will be free again; for the engine."""


class _Unread(NamedTuple):
    """A session's unread messages as one reader finds them."""

    free: Sequence[InboxRow]
    leased_until_ms: int | None
    """See ``WaitResult``."""


class Mailbox:
    """Everything between a session and its runs that is not spawning."""

    def __init__(self, kernel: Kernel) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self.leases = MessageLeases(kernel.clock)
        self._wakeups: Wakeups[str] = Wakeups()
        """Waits that are under way, by the runs and sessions that they are for."""
        self._expected: dict[str, int] = {}
        """Messages that a client polls for, and until when it should have come."""
        self._consuming: dict[str, Held | None] = {}
        """Messages whose consumption is on its way to the disk, and who had them."""
        self._told: dict[tuple[SessionKey, str], None] = {}
        """Needs that a wait has reported to a session; a restart forgets them."""

    def on_commit(self, batch: Batch) -> None:
        """Wake everybody who waits for one of these runs, or for anything of their requester."""
        for message_id, _, _ in batch.consumed:
            self.leases.close(message_id)
            self._consuming.pop(message_id, None)
        for message_id in batch.reopened:
            self.leases.reopen(message_id)
        if not self._wakeups:
            return
        changed: dict[str, None] = {}
        for run in batch.runs.values():
            changed[run.id] = changed[run.requester] = None
            if run.questions.requests:
                # What it asks goes to the nearest ancestor at work: that one's waiters look, too.
                for above in addresses.ancestors(self._ledger.live, run):
                    changed[above.id] = changed[above.requester] = None
        self._wakeups.wake(changed)

    def failed(self) -> None:
        """The ledger failed: what was to be consumed is unread again, and every waiter finds out.

        Else a reader that acknowledges it next would hear that this is done already.
        """
        for message_id, held in self._consuming.items():
            self.leases.reopen(message_id, held)
        self._consuming.clear()
        self.wake_all()

    def wake_all(self) -> None:
        """See ``Wakeups.wake_all``."""
        self._wakeups.wake_all()

    # -- waiting ---------------------------------------------------------------------------

    async def wait(
        self,
        run_ids: Sequence[RunId],
        *,
        session: SessionKey,
        until: str = "any",
        timeout_s: float = 30.0,
        reader: str,
        returns_on_needs: bool = False,
    ) -> WaitResult:
        """Wait until any or all of the runs have their outcome, at most ``timeout_s`` seconds.

        Args:
            run_ids: At most 1,000; empty = all of the session's: the active ones and those whose
                announcement is unread.
            session: Who waits.
            until: ``any`` or ``all``.
            timeout_s: 0 to 600; 0 = look once.
            reader: To whom announcements are offered.
            returns_on_needs: Return also when one of the runs, or one below it whose questions come
                to this session, needs somebody and the session was not told of that by a wait
                before (``note_told``).

        Raises:
            UsageError: A bound was broken; nothing was offered.
        """
        if until not in {"any", "all"}:
            raise UsageError(f'until must be "any" or "all", not "{until}"')
        if len(run_ids) > WAIT_RUNS_MAX:
            raise UsageError(f"runIds has {len(run_ids)} entries, at most {WAIT_RUNS_MAX}")
        await self._require(run_ids, session)
        session = self._ledger.inbox_of(session)
        deadline_ms = self._clock.steady_ms() + int(min(max(timeout_s, 0), WAIT_S_MAX) * 1000)
        with self._wakeups.waiting(*(run_ids or (session,))) as woken:
            while True:
                woken.clear()
                found = await self._look(run_ids, session, reader)
                if returns_on_needs:
                    found = replace(found, needs=self._needs(found.pending, session))
                left_ms = deadline_ms - self._clock.steady_ms()
                if left_ms <= 0 or _is_enough(found, until):
                    taken = self._offer_completed(found, session, reader, are_named=bool(run_ids))
                    is_beaten = len(taken.completed) < len(found.completed)
                    if left_ms <= 0 or not is_beaten or _is_enough(taken, until):
                        return taken
                    continue  # another reader came first while this one read the rows: look again
                if found.leased_until_ms is not None:
                    # Nothing happens when a lease runs out: whoever waits has to check again.
                    left_ms = min(left_ms, found.leased_until_ms - self._clock.steady_ms())
                await wait_at_most(self._clock, max(left_ms, 0) / 1000, woken)
                await self._require(run_ids, session)

    async def _require(self, run_ids: Sequence[RunId], session: SessionKey) -> None:
        """Refuse what another node decides: it alone knows what becomes of these runs.

        Raises:
            Elsewhere: Says whose it is.
        """
        partitions = self._ledger.partitions
        if not partitions.is_shared:
            return
        if not run_ids:
            await partitions.require_session(session)
        for run_id in run_ids:
            if run_id not in self._ledger.published:
                await partitions.require_run(run_id)

    async def _look(self, run_ids: Sequence[RunId], session: SessionKey, reader: str) -> WaitResult:
        if not run_ids:
            return await self._look_at_session(session, reader)
        completed: list[Run] = []
        pending: list[Run] = []
        missing: list[str] = []
        for run_id in dict.fromkeys(run_ids):
            run = self._ledger.published.get(run_id)
            if run is None:
                run = await self._off_loop(partial(self._store.run, run_id))
            if run is None:
                missing.append(run_id)
            else:
                (completed if run.phase in SETTLED else pending).append(run)
        return WaitResult(
            completed=tuple(completed), pending=tuple(pending), missing=tuple(missing)
        )

    async def _look_at_session(self, session: SessionKey, reader: str) -> WaitResult:
        # First what is open, then what is unread: one that settles in between is in both, and
        # none falls between the two looks.
        open_runs = self._ledger.unsettled(session)
        unread = await self._unread(session, reader, limit=WAIT_RUNS_MAX)
        completed: list[Run] = []
        for row in unread.free:
            if row.message.kind is not MessageKind.ANNOUNCEMENT:
                continue
            run = self._ledger.published.get(row.message.run_id)
            if run is None:
                run = await self._off_loop(partial(self._store.run, row.message.run_id))
            if run is not None and run.is_settled:
                completed.append(run)
        ended = frozenset(run.id for run in completed)
        return WaitResult(
            completed=tuple(completed),
            pending=tuple(run for run in open_runs if run.id not in ended),
            leased_until_ms=unread.leased_until_ms,
        )

    def _offer_completed(
        self, found: WaitResult, session: SessionKey, reader: str, *, are_named: bool
    ) -> WaitResult:
        """Lease the announcements of what completed.

        Args:
            are_named: The runs were asked for by id, so they are answered whoever holds their
                announcements; else only what no other reader is given is.
        """
        offered: list[MessageId] = []
        completed: list[Run] = []
        for run in found.completed:
            is_addressed = self.is_addressed_to(run, session)
            message_id = announcement_id(run.id)
            if (
                is_addressed
                and not self._is_consumed(run)
                and self.leases.acquire(message_id, reader)
            ):
                offered.append(message_id)
            elif is_addressed and not are_named:
                continue
            completed.append(run)
        return replace(found, completed=tuple(completed), offered=tuple(offered))

    def _needs(self, awaited: Iterable[Run], session: SessionKey) -> tuple[Need, ...]:
        """What keeps these runs, and those below them, from going on; news to the session."""
        live = self._ledger.live
        found: dict[str, Need] = {}
        left = list(awaited)
        for run in left:
            limited = run.retry.limited
            if limited is not None and run.phase in {Phase.RETRY_WAIT, Phase.QUEUED}:
                name = f"{run.id}:limit:{limited.since_ms}"
                found[name] = Need(id=name, run=run)
            if run.pending_requests and addresses.answering_inbox(live, run) == session:
                for request in run.pending_requests:
                    found[request.id] = Need(id=request.id, run=run, request=request)
            left += [
                below
                for child in run.active_children
                if (below := self._ledger.published.get(child.run_id)) is not None
            ]
        return tuple(need for need in found.values() if (session, need.id) not in self._told)

    def note_told(self, need_ids: Iterable[str], *, session: SessionKey) -> None:
        """An answer with these leaves: no wait of this session returns because of them again."""
        session = self._ledger.inbox_of(session)
        for need_id in need_ids:
            # Moved to the end: those that were reported longest ago are forgotten first.
            self._told.pop((session, need_id), None)
            self._told[session, need_id] = None
        while len(self._told) > TOLD_MAX:
            del self._told[next(iter(self._told))]

    def is_addressed_to(self, run: Run, session: SessionKey) -> bool:
        """Whether the run's announcement is in this inbox: its requester's, or an ancestor's.

        Whoever else waits for the run sees its end and takes nothing from that inbox.
        """
        if run.delivery is not None and run.delivery.target == session:
            return True
        return self._ledger.living_inbox(run) == session

    def _is_consumed(self, run: Run) -> bool:
        # A consumption counts as soon as it is decided, a redelivery only once it is committed.
        newest = self._ledger.live.get(run.id, run)
        return (
            run.announcement_consumed_ms is not None or newest.announcement_consumed_ms is not None
        )

    # -- the inbox -------------------------------------------------------------------------

    async def offer_inbox(
        self,
        session: SessionKey,
        *,
        reader: str,
        limit: int = 100,
        only: Collection[str] | None = None,
    ) -> tuple[InboxRow, ...]:
        """Lease the session's unread messages to ``reader``, oldest first.

        Args:
            session: Whose inbox.
            reader: Who gets them.
            limit: Of the messages looked at.
            only: Ids of those that are wanted; None = all.
        """
        await self._require((), session)
        inbox = self._ledger.inbox_of(session)
        unread = await self._unread(inbox, reader, limit=limit)
        return tuple(
            row
            for row in unread.free
            if (only is None or row.message.id in only)
            and self._is_free(row.message.id, reader)  # it may have been consumed since it was read
            and self.leases.acquire(row.message.id, reader)
        )

    async def _unread(self, session: SessionKey, reader: str, *, limit: int) -> _Unread:
        wanted = limit
        while True:
            found = await self._off_loop(
                partial(self._store.inbox, session, unconsumed=True, limit=wanted)
            )
            free = [row for row in found if self._is_free(row.message.id, reader)]
            if len(free) >= limit or len(found) < wanted:
                held = {row.message.id for row in found} - {row.message.id for row in free}
                ends = [
                    self.leases.leased_until_ms(name)
                    for name in held
                    if name.endswith(ANNOUNCE_SUFFIX)
                ]
                return _Unread(
                    free[:limit], min((end for end in ends if end is not None), default=None)
                )
            # Those that other readers hold must not hide the ones behind them.
            wanted *= 4

    async def unread_count(self, session: SessionKey, *, most: int) -> int:
        """How many unread messages no reader holds, at most ``most``; none is offered by it."""
        await self._require((), session)
        inbox = self._ledger.inbox_of(session)
        found = await self._off_loop(lambda: self._store.unread(inbox, most + UNREAD_HELD_MAX))
        return min(sum(self._is_free(each, None) for each in found), most)

    def release(self, message_ids: Iterable[str], *, reader: str) -> None:
        """The reader does not get these after all: whoever asks next is offered them.

        What was consumed or is held by another stays so; repeating it is harmless.
        """
        for message_id in message_ids:
            self.leases.release(message_id, reader)
            run = self._ledger.published.get(RunId(message_id.partition(":")[0]))
            if run is not None:
                self._wakeups.wake((run.id, self._ledger.living_inbox(run)))

    def is_awaited(self, run_id: RunId, session: SessionKey) -> bool:
        """Somebody waits for this run or for anything of this session, or polls."""
        is_waited_for = run_id in self._wakeups or session in self._wakeups
        return is_waited_for or self._is_expected(announcement_id(run_id))

    def is_under_way(self, message: Message) -> bool:
        """Whether a call that waits, or a client that polls, is about to fetch it."""
        if message.kind is MessageKind.ANNOUNCEMENT:
            return self.is_awaited(message.run_id, message.session_key)
        return self._is_expected(message.id)

    def _is_expected(self, message_id: str) -> bool:
        return self._expected.get(message_id, 0) > self._clock.steady_ms()

    def expect(self, message_ids: Iterable[str], *, for_ms: int) -> None:
        """A client polls and will take these to whoever spawned the runs.

        Args:
            message_ids: Questions, and announcements, also of runs that have not ended.
            for_ms: So soon it looks again, unless it is gone.
        """
        now = self._clock.steady_ms()
        self._expected = {name: until for name, until in self._expected.items() if until > now}
        self._expected.update(dict.fromkeys(message_ids, now + for_ms))

    def _is_free(self, message_id: str, reader: str | None) -> bool:
        if message_id.endswith(ANNOUNCE_SUFFIX):
            run = self._ledger.live.get(RunId(message_id.removesuffix(ANNOUNCE_SUFFIX)))
            if run is not None and run.announcement_consumed_ms is not None:
                return False
        return self.leases.is_free(message_id, reader)

    async def note_returned(self, message_ids: Iterable[str], *, session: SessionKey) -> None:
        """An answer with these is about to leave; call it before the first byte of that.

        A run whose worker asked remembers, durably, which of its children's results went out:
        the worker may end before it can acknowledge them. Anybody else costs nothing.

        Raises:
            StoreUnavailable: Nothing was remembered; do not answer, the call can be repeated.
        """
        run_id = self._ledger.lanes.run_of(session)
        run = None if run_id is None else self._ledger.live.get(run_id)
        if run is None or run.phase not in {Phase.RUNNING, Phase.ENDING}:
            return
        wanted = dict.fromkeys(each.removesuffix(ANNOUNCE_SUFFIX) for each in message_ids)
        place = (run.attempt.number, run.attempt.turn.number)
        new = [
            child.run_id
            for child in map(run.children.get, wanted)
            if child is not None and not child.told and child.returned_in != place
        ]
        for child_id in new:
            event = ChildReturned(
                at_ms=self._clock.now_ms(), child=child_id, attempt=place[0], turn=place[1]
            )
            self._ledger.apply_now(run.id, event)
        if new:
            await self._ledger.committed()

    async def acknowledge(self, message_ids: Iterable[str], *, reader: str) -> int:
        """Consume messages for good; returns how many this call consumed.

        A message that somebody consumed before is left alone: repeating is harmless. Questions
        are consumed by their answer, not by being read.

        Raises:
            NotFound: No such message; those before it in the list were consumed.
            StoreUnavailable: A commit failed on the way; some may not be consumed, so call again.
        """
        consumed, loads = 0, self._ledger.loads
        for message_id in dict.fromkeys(message_ids):
            if message_id.endswith(ANNOUNCE_SUFFIX):
                run_id = RunId(message_id.removesuffix(ANNOUNCE_SUFFIX))
                run = self._ledger.live.get(run_id) or await self._ledger.load_run(run_id)
                if not run.is_settled:
                    raise NotFound(f"message {message_id} does not exist")
                if self._ledger.consume(run, reader=reader, path=DeliveryPath.PULLED):
                    self._ledger.seal()  # a long list is committed in parts
                    consumed += 1
                else:
                    self._ledger.evict(run)
            elif await self._consume_other(message_id, reader):
                consumed += 1
            else:
                self.leases.release(message_id, reader)
        await self._ledger.committed()
        if self._ledger.loads != loads:
            # The first ones were in a commit that failed; the last ones came after the recovery.
            raise StoreUnavailable(
                "a commit failed while messages were acknowledged",
                hint="acknowledge them again: it is harmless",
            )
        return consumed

    async def _consume_other(self, message_id: str, reader: str) -> bool:
        """Consume what is no announcement; False = that was done before, or is not for readers."""
        row = await self._off_loop(lambda: self._store.message(message_id))
        if row is None:
            raise NotFound(f"message {message_id} does not exist")
        if row.consumed_at_ms is not None or row.message.kind is MessageKind.QUESTION:
            return False
        await self._ledger.partitions.require_run(row.message.run_id)
        if self.leases.is_closed(message_id):
            return False  # by another call, whose commit this row did not show yet
        self._ledger.consume_message(message_id, reader)
        self._consuming[message_id] = self.leases.close(message_id)
        return True


def _is_enough(found: WaitResult, until: str) -> bool:
    """Whether a wait has what it waits for, or nothing is left that it could wait for."""
    if found.needs or (found.completed and (until == "any" or not found.pending)):
        return True
    # What another reader holds and never acknowledges comes back when its lease is over.
    return not found.pending and found.leased_until_ms is None
