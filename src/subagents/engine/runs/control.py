"""What callers do to runs that are under way: cancel, steer, pause, resume, redeliver, dismiss."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from subagents.domain.rules import admission, ceilings
from subagents.domain.rules.budgets import reservations
from subagents.domain.rules.continuation import way_on
from subagents.domain.run.access import Ceiling
from subagents.domain.run.events import (
    Archived,
    CallRefused,
    CancelPlanned,
    CancelRequested,
    CancelWithdrawn,
    Dismissed,
    Event,
    InterruptRequested,
    Paused,
    Prioritized,
    Redelivered,
    Resumed,
    SteerRequested,
)
from subagents.domain.run.run import Phase, Run, StopCause
from subagents.domain.run.spec import PRIORITY_MAX
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.runs.emergency_stops import EmergencyStops
from subagents.engine.runs.queries import Queries
from subagents.errors import (
    Conflict,
    CorruptState,
    IllegalTransition,
    NotFound,
    StoreUnavailable,
    UsageError,
)

REFUSALS_MAX: Final = 50
"""Refusals in a run's journal; a caller that is refused must not fill the store."""


class Control:
    """Durable intents; what becomes of them is decided by the reducer."""

    def __init__(self, kernel: Kernel, queries: Queries, emergency_stops: EmergencyStops) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._queries = queries
        self._emergency_stops = emergency_stops

    async def cancel(self, run_id: RunId, *, by: str, reason: str | None = None) -> Run:
        """Store the intent to end the run and all its descendants; repeating it is harmless.

        Returns:
            The run: settled ones are returned as they are.

        Raises:
            StoreUnavailable: It could not be stored. The workers are ended all the same, and the
                cancel is recorded once the store can be written, if this process lives until then.
        """
        run = await self._queries.run(run_id)
        if run.is_settled:
            return run
        event = CancelRequested(at_ms=self._clock.now_ms(), by=by, reason=reason)
        try:
            return await self._apply(run_id, event)
        except StoreUnavailable as error:
            self._emergency_stops.cancel(run_id, event)
            raise StoreUnavailable(
                error.message,
                hint="its workers are ended all the same; cancel it again to have that on record",
            ) from error

    async def plan_cancel(
        self, run_id: RunId, *, by: str, after_ms: int, reason: str | None = None
    ) -> Run:
        """Cancel the run after a time, unless that is taken back; the newest plan holds.

        Args:
            run_id: Which; one that has ended is returned as it is.
            by: Who asks.
            after_ms: So long from now, also when the daemon is restarted meanwhile.
            reason: For the record.
        """
        run = await self._queries.run(run_id)
        if run.is_settled or run.control.cancel is not None:
            return run
        now = self._clock.now_ms()
        event = CancelPlanned(at_ms=now, by=by, due_ms=now + after_ms, reason=reason)
        return await self._apply(run_id, event)

    async def withdraw_cancel(self, run_id: RunId, *, by: str) -> Run:
        """Take a planned cancel or interrupt back; harmless where there is none.

        Raises:
            Conflict: It came to pass already, or the run has ended.
        """
        run = await self._queries.run(run_id)
        if run.control.planned is not None:
            run = await self._apply(run_id, CancelWithdrawn(at_ms=self._clock.now_ms(), by=by))
        attempt = run.attempts[-1] if run.attempts else None
        is_ending = attempt is not None and attempt.evidence.stop is StopCause.INTERRUPT
        if run.is_settled:
            raise _over(run, "it is too late to take that back")
        if run.control.cancel is not None or is_ending:
            raise Conflict(
                f"run {run_id} is ended already: it is too late", hint=f"subagents wait {run_id}"
            )
        return run

    async def interrupt(
        self, run_id: RunId, *, by: str, after_ms: int = 0, reason: str | None = None
    ) -> Run:
        """End the turn that is under way, and keep its session: what it spawned is cancelled.

        The run then ends ``partial`` (``interrupted``) with its last words, and can be continued;
        or takes up what was sent to it meanwhile. Repeating it is harmless.

        Args:
            run_id: Which.
            by: Who asks.
            after_ms: So long from now, unless that is taken back (``withdraw_cancel``), or the turn
                has ended by then.
            reason: For the record.

        Raises:
            Conflict: It is not at work, or its runtime cannot end a turn.
        """
        run = await self._queries.run(run_id)
        if run.phase not in {Phase.SPAWNING, Phase.RUNNING}:
            if run.is_settled:
                raise _over(run, "there is no turn to interrupt")
            raise Conflict(
                f"run {run_id} is {run.phase}: there is no turn to interrupt",
                hint=f"subagents cancel {run.id}",
            )
        if not run.resolved.abilities.interrupt:
            raise Conflict(
                f'runtime "{run.resolved.runtime}" cannot interrupt a turn: it lacks the ability '
                '"interrupt"',
                hint=f"end the run: subagents cancel {run.id}",
            )
        now = self._clock.now_ms()
        if not after_ms:
            return await self._apply(run_id, InterruptRequested(at_ms=now, by=by, reason=reason))
        planned = CancelPlanned(
            at_ms=now, by=by, due_ms=now + after_ms, reason=reason, of_turn=run.turn
        )
        return await self._apply(run_id, planned)

    async def steer(
        self,
        run_id: RunId,
        message: str,
        *,
        by: str,
        ceiling: Ceiling | None = None,
        next_turn: bool = False,
        added: Amounts | None = None,
        then: Callable[[], None] | None = None,
    ) -> str:
        """Put a message into the live attempt (``steered``), or keep it for the next (``queued``).

        With ``next_turn`` it is kept in any case (``accepted``): for the first turn of a run that
        has not started, else for the one after the present turn. ``ceiling`` is the most that the
        sender may do itself. By ``added`` the run's budget is raised. ``then`` is called once it
        was taken, in the same commit.

        Raises:
            UsageError: Empty or longer than 4,000 characters.
            Forbidden: Sooner than 2 s after the last, a run that steers itself, or a worker that
                may do more than the sender.
            Conflict: The run has ended, or its runtime takes no messages and no turn will follow.
        """
        run = await self._queries.run(run_id)
        now = self._clock.now_ms()
        if run.is_settled:
            raise _over(run, "there is no attempt to steer")
        if run.phase is Phase.VERIFYING:
            raise Conflict(
                f"run {run_id} is {run.phase}: there is no attempt to steer",
                hint="send it again in a moment",
            )
        resolved = run.resolved
        # To a ceiling, a worktree is where it comes from.
        ceilings.check_message(resolved.access, ceiling, run_id=run_id, cwd=resolved.project)
        admission.check_steer(run, message, by=by, now_ms=now)
        abilities = run.resolved.abilities
        is_live = run.phase in {Phase.SPAWNING, Phase.RUNNING, Phase.ENDING}
        # Its turn is over, and it waits for its children: what comes is for the next.
        is_ending = run.phase is Phase.ENDING
        if is_live and (next_turn or is_ending) and not abilities.resume:
            raise Conflict(
                f'runtime "{run.resolved.runtime}" takes no further turn',
                hint="steer it while it works, or start another run after it (chainAfter)",
            )
        if is_live and not (abilities.steer or abilities.resume):
            raise Conflict(
                f'runtime "{run.resolved.runtime}" takes no messages while it runs',
                hint=_instead_of_message(run),
            )
        if added is not None:
            reservations.check_raise(run, [*ancestors(self._ledger.live, run)], added, now_ms=now)
        event = SteerRequested(at_ms=now, by=by, message=message, next_turn=next_turn, added=added)
        with _in_time(run_id):
            self._ledger.apply_now(run_id, event)
        if then is not None:
            then()  # not before: what was looked at may be older than the run
        await self._ledger.committed()
        if next_turn:
            return "accepted"
        return "steered" if is_live and abilities.steer and not is_ending else "queued"

    async def pause(self, run_id: RunId, *, by: str) -> Run:
        """Hold a waiting or queued run, a live one before its next turn, a command where it is.

        Raises:
            Conflict: It has ended or ends, or its runtime can do neither.
        """
        run = await self._queries.run(run_id)
        able = run.resolved.abilities
        held = {Phase.WAITING, Phase.QUEUED, Phase.RETRY_WAIT}
        if run.phase not in held:
            if run.is_settled:
                raise _over(run, "it cannot be paused")
            if run.phase not in {Phase.SPAWNING, Phase.RUNNING}:
                raise Conflict(
                    f"run {run_id} is {run.phase} and cannot be paused",
                    hint=f"it ends by itself: subagents wait {run_id}",
                )
            if not (able.resume or able.freeze):
                raise Conflict(
                    f'run {run_id} is {run.phase}, and runtime "{run.resolved.runtime}" cannot '
                    "pause a worker",
                    hint=f"end it: subagents cancel {run_id}",
                )
        return await self._apply(run_id, Paused(at_ms=self._clock.now_ms(), by=by))

    async def resume(self, run_id: RunId, *, by: str) -> Run:
        """Let a paused run go on; harmless for one that is not paused.

        Raises:
            Conflict: The run has ended.
        """
        run = await self._queries.run(run_id)
        if not run.control.paused:
            if run.is_settled:
                raise _over(run, "there is nothing to resume")
            return run
        return await self._apply(run_id, Resumed(at_ms=self._clock.now_ms(), by=by))

    async def prioritize(self, run_id: RunId, priority: int, *, by: str) -> Run:
        """Give a run another place among those that wait for a slot of its lane.

        Args:
            run_id: Of one that has not ended; at work already, it holds for its retries.
            priority: -1,000,000 to 1,000,000; higher starts first.
            by: Who asks.

        Raises:
            Conflict: The run has ended.
            UsageError: Out of bounds; nothing was changed.
        """
        if abs(priority) > PRIORITY_MAX:
            raise UsageError(f"priority must be -{PRIORITY_MAX} to {PRIORITY_MAX}, not {priority}")
        run = await self._queries.run(run_id)
        if run.is_settled:
            raise _over(run, "it waits for no slot any more")
        event = Prioritized(at_ms=self._clock.now_ms(), by=by, priority=priority)
        return await self._apply(run_id, event)

    async def redeliver(self, run_id: RunId, *, by: str) -> Run:
        """Give a result once more, under the same id: on record, and to whoever reads it next.

        A delivery that was given up, or deferred, is tried again now; a result that was read is
        unread again.

        Raises:
            Conflict: It has no result yet, or one that waits to be read anyway, or the run that
                asked for it was pruned.
        """
        run = await self._queries.run(run_id)
        if not run.is_settled:
            raise Conflict(
                f"run {run_id} is {run.phase}: it has no result yet",
                hint=f"subagents wait {run_id}",
            )
        is_open = run.phase in {Phase.COMPLETED_GIVEUP, Phase.ANNOUNCE_DEFERRED}
        if run.announcement_consumed_ms is None and not is_open:
            raise Conflict(
                f"the result of run {run_id} was not read yet: it waits in the inbox",
                hint="subagents inbox",
            )
        inbox = await self._living_inbox(run)
        return await self._apply(
            run_id, Redelivered(at_ms=self._clock.now_ms(), by=by, inbox=inbox)
        )

    async def dismiss(self, run_id: RunId, *, by: str, withdrawn: bool = False) -> Run:
        """Mark how a run ended as read, or as unread again; its requester gets the result anyway.

        Raises:
            Conflict: It has not ended.
        """
        run = await self._queries.run(run_id)
        if not run.is_settled:
            raise Conflict(
                f"run {run_id} is {run.phase}: there is nothing to dismiss",
                hint="subagents inbox --attention lists what is open",
            )
        if (run.verification.dismissed_at_ms is None) == withdrawn:
            return run
        event = Dismissed(at_ms=self._clock.now_ms(), by=by, withdrawn=withdrawn)
        return await self._apply(run_id, event)

    async def _living_inbox(self, run: Run) -> SessionKey:
        """The inbox of the nearest run above that has not ended, in the end the top-level one."""
        run_id, inbox = run.id, run.requester
        while run.lineage.requester_run is not None:
            try:
                run = await self._queries.run(run.lineage.requester_run)
            except NotFound:
                raise Conflict(
                    f"the run that asked for {run_id} is no longer kept: nobody reads its inbox",
                    hint=f"read the result: subagents result {run_id}",
                ) from None
            except CorruptState:
                break  # set aside: what is above it is not known
            if not run.is_settled:
                return run.session.first_key
            inbox = run.requester
        return inbox

    async def archive(self, run_id: RunId) -> Run:
        """Hide a run that is over from lists now; harmless when it is hidden already.

        Raises:
            Conflict: It is not over.
        """
        run = await self._queries.run(run_id)
        if run.times.archived_at_ms is not None:
            return run
        return await self._apply(run_id, Archived(at_ms=self._clock.now_ms()))

    async def note_refusal(
        self, run_id: RunId, *, at_ms: int, call: str, reason: str, by: str
    ) -> bool:
        """Journal that a call on behalf of the run was refused; False = the run has enough of them.

        Raises:
            NotFound: No such run.
        """
        run = await self._queries.run(run_id)
        if run.refusals >= REFUSALS_MAX:
            return False
        await self._ledger.apply(run_id, CallRefused(at_ms=at_ms, call=call, reason=reason, by=by))
        return True

    async def _apply(self, run_id: RunId, event: Event) -> Run:
        with _in_time(run_id):
            return await self._ledger.apply(run_id, event)


@contextmanager
def _in_time(run_id: RunId) -> Iterator[None]:
    """Apply in it what a caller asked for; the run may have moved on since it was looked at.

    Raises:
        Conflict: It is in a phase in which this is not possible; nothing was changed.
    """
    try:
        yield
    except IllegalTransition as error:
        raise Conflict(
            f"run {run_id} is {error.phase}: it is too late for this",
            hint=f"subagents why {run_id}",
        ) from error


def _over(run: Run, why: str) -> Conflict:
    """What is asked of a run that has ended is refused with what can be done with it."""
    return Conflict(f"run {run.id} is {run.phase}: {why}", hint=way_on(run))


def _instead_of_message(run: Run) -> str:
    asked = next((each for each in run.pending_requests if each.priority is None), None)
    if asked is not None:
        return f"it waits for an answer: subagents answer {asked.id} TEXT"
    return "cancel the run and start it again with another task"
