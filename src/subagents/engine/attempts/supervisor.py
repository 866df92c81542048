"""Watches live attempts and turns what their runtimes see into events; keeps their leases.

One task per live attempt, restarted when its runtime fails. The lease is renewed only while the
attempt is really being watched: a watcher that stays broken lets the lease run out, and then the
attempt is lost instead of running for ever unseen.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import sub
from typing import Final

from subagents.domain.rules.budgets import budgets
from subagents.domain.run.events import AttemptTakenOver, LeaseExpired, SignalReceived
from subagents.domain.run.run import HOLDS_SLOT, Phase, Run
from subagents.domain.run.signals import (
    TERMINAL,
    PermissionAsked,
    ProgressSeen,
    RemainsSeen,
    ResultSeen,
    Signal,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.usage import Amounts, Usage, amounts
from subagents.domain.run.values import AttemptId, RunId, attempt_id
from subagents.domain.run.values import replace as replaced
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.attempts.launch import ref_of
from subagents.engine.attempts.placement import RuntimeOf
from subagents.engine.attempts.provider_gate import ProviderGates
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.attempts.workspaces import Workspaces
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.due_heap import DueHeap
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import Tasks, wait_at_most
from subagents.engine.messages.reports import Reports
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.results import Results
from subagents.errors import Fenced, RuntimeUnavailable, StoreUnavailable, SubagentsError
from subagents.ports import AllowedCallLog, Batch, LongResult, Tidied, WorkerSecrets

log = logging.getLogger(__name__)

COALESCE_MS: Final = 1_000
"""How long progress, usage and results are held back, of which only the newest becomes an event: a
worker that prints a million progress lines costs a million reads, not a million commits."""

DISCARD_AFTER: Final = 8 * 1024 * 1024
"""How much output may lie around that is kept elsewhere, in the runtime's own measure (bytes, of
those that write files), before the runtime is asked to discard it."""

WATCHED: Final = frozenset({Phase.RUNNING, Phase.ENDING})
"""Where an attempt without an outcome has a worker to be watched."""

WATCH_AGAIN_S: Final = 1.0
WATCH_WELL_MS: Final = 5_000
"""A watch that has not failed for so long is well again."""


@dataclass(slots=True)
class _Watched:
    """One attempt (and turn) under watch; its times are steady ones."""

    attempt: int
    turns: int
    cursor: int
    held: dict[str, Signal] = field(default_factory=dict)
    begun_ms: int = 0
    """When the runtime was last asked to watch."""
    settled_cursor: int = 0
    """Up to here all that was read became events; what is only held is read again after a crash."""
    positions: dict[str, int] = field(default_factory=dict)
    """Up to these positions what it said was recorded."""
    discarded: int = 0
    """The farthest place when its runtime was last told what it may discard."""
    is_new: bool = False
    """It was started by this process just now: nothing of it can have been recorded."""
    broken_since_ms: int | None = None
    """When watching it began to fail again and again; None = it is well."""
    task: asyncio.Task[None] | None = None

    @property
    def place(self) -> int:
        """The farthest place that need not be read again."""
        return max(self.settled_cursor, *self.positions.values(), 0)


class Supervisor:
    """Starts and ends watching as committed runs need it."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        runtime_of: RuntimeOf,
        allowed_calls: AllowedCallLog,
        recorder: Recorder,
        reports: Reports,
        results: Results,
        provider_gates: ProviderGates,
        workspaces: Workspaces,
        shared_spending: SharedSpending,
        lease_ms: int,
        worker_secrets: WorkerSecrets | None = None,
    ) -> None:
        self._worker_secrets = worker_secrets
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._allowed, self._off_loop = allowed_calls, kernel.off_loop
        self._recorder = recorder
        self._results = results
        self._provider_gates = provider_gates
        self._remains = workspaces.remains
        self._shared_spending = shared_spending
        self._paced = reports.paced
        self._runtime_of = runtime_of
        self._lease_ms = lease_ms
        self._is_stopped = False
        self._watched: dict[RunId, _Watched] = {}
        self._cursors: dict[AttemptId, int] = {}
        self._flushes: DueHeap[RunId] = DueHeap()
        """When what is held back of an attempt becomes events."""
        self._flushes_changed = asyncio.Event()
        self._tasks = Tasks()

    @property
    def live_attempts(self) -> int:
        return len(self._watched)

    def adopt(self) -> None:
        """After a restart: go on watching where the leases say reading stopped, and keep them.

        Watching and keeping the leases end together (``stop``): a keeper that outlives the
        watchers, if only for one slow commit, would take every attempt for unseen.
        """
        self._is_stopped = False
        self._cursors.clear()
        self.take_on(tuple(self._ledger.published.values()))
        self.renew()
        self._tasks.keep(self._keep_leases, "leases", self._clock)

    def take_on(self, runs: Iterable[Run]) -> None:
        """The same for some runs, which somebody else watched before."""
        for run in runs:
            if (held := self._ledger.leases.get(run.id)) is not None:
                self._cursors[attempt_id(run.id, held.attempt)] = held.cursor
            # Never started again: its worker may live on, and two on one task harm each other.
            # Its output is read on from where the lease stands; keys make repetitions harmless.
            cursor = self._look_at(run, is_new=False)
            if cursor is not None:
                self._ledger.apply_now(
                    run.id,
                    AttemptTakenOver(
                        at_ms=self._clock.now_ms(),
                        attempt=len(run.attempts),
                        epoch=self._ledger.epoch,
                        cursor=cursor,
                    ),
                )

    def on_commit(self, batch: Batch) -> None:
        for run in batch.runs.values():
            if run.phase in WATCHED:
                # A first turn of a first attempt: no transcript can be on the disk.
                is_new = len(run.attempts) == 1 and run.attempts[0].turn.number == 1
                self._look_at(run, is_new=is_new)

    def _look_at(self, run: Run, *, is_new: bool) -> int | None:
        """Watch the run's attempt if it must be and is not; returns from where, else None."""
        if self._is_stopped or run.phase not in WATCHED:
            return None  # commits go on while the engine ends
        attempt = run.attempts[-1]
        turns = attempt.turn.number
        if attempt.outcome is not None:
            return None
        watched = self._watched.get(run.id)
        if watched is not None and (watched.attempt, watched.turns) >= (attempt.number, turns):
            return None
        if attempt.evidence.exit is not None or self._has_ended_since(run):
            return None
        name = run.attempt_id
        cursor = self._cursors.pop(name, 0) if turns == 1 else 0
        watched = _Watched(
            attempt=attempt.number, turns=turns, cursor=cursor, settled_cursor=cursor, is_new=is_new
        )
        self._watched[run.id] = watched
        watched.task = self._tasks.start(self._watch(run, watched), f"watch {name}")
        return cursor

    async def let_go(self, run_ids: Iterable[RunId]) -> None:
        """Read nothing more of these runs' attempts, and keep their leases until ``leave``."""
        found = {each: self._watched[each] for each in run_ids if each in self._watched}
        tasks = [each.task for each in found.values() if each.task is not None]
        # Nobody else begins to watch what has an entry; the one of a watch that ends goes with it.
        self._watched |= {run_id: replace(each, task=None) for run_id, each in found.items()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def reads(self, run_id: RunId) -> bool:
        """Whether an attempt of the run is watched, and was not let go."""
        watched = self._watched.get(run_id)
        return watched is not None and watched.task is not None

    def leave(self, run_ids: Iterable[RunId]) -> None:
        """Forget what was let go: it is another daemon's."""
        for run_id in run_ids:
            self._watched.pop(run_id, None)
            self._flushes.drop(run_id)

    def _has_ended_since(self, run: Run) -> bool:
        """Its end is in memory already, and not in the commit that is being looked at."""
        live = self._ledger.live.get(run.id)
        if live is None or not live.attempts:
            return live is None
        now, then = live.attempts[-1], run.attempts[-1]
        is_same = (now.number, now.turn.number) == (then.number, then.turn.number)
        return not is_same or now.outcome is not None or now.evidence.exit is not None

    async def stop(self) -> None:
        """Stop watching; the workers continue."""
        self._is_stopped = True
        await self._tasks.stop()
        self._watched.clear()
        self._flushes.clear()

    async def _watch(self, run: Run, watched: _Watched) -> None:
        try:
            if self._worker_secrets is not None:
                await self._worker_secrets.recall(run)
            while self._is_live(run) and not await self._watch_once(run, watched):
                with contextlib.suppress(MemoryError):
                    await self._clock.sleep(WATCH_AGAIN_S)
        except (StoreUnavailable, Fenced):
            return  # the ledger failed; once it is loaded again the attempt is watched again
        finally:
            if self._watched.get(run.id) is watched:
                del self._watched[run.id]

    async def _watch_once(self, run: Run, watched: _Watched) -> bool:
        """Follow the attempt until it ended (True) or its runtime failed (False)."""
        runtime = self._runtime_of(run, None)
        if runtime is None:
            text = f'runtime "{run.resolved.runtime}" is not available here'
            self._apply(run, Vanished(key=f"{run.attempt_id}:vanished", error=text))
            return True
        watched.begun_ms = self._clock.steady_ms()
        try:
            positions = await self._recorder.positions(run, is_new=watched.is_new)
            watched.is_new = False
            watching = runtime.watch(ref_of(run), cursor=watched.cursor, positions=positions)
            is_ours = True
            try:
                if await self._follow(run, watched, watching):
                    return True
            except GeneratorExit:
                is_ours = False  # this is thrown away with its loop, and may await nothing more
                raise
            finally:
                # Else the garbage collector closes it some time later, in a task made for that.
                if is_ours and isinstance(watching, AsyncGenerator):
                    await watching.aclose()
        except Exception:
            if self._ledger.failure is not None:
                raise
            # Also when the store cannot be read now: a ledger that is well is not loaded again, so
            # no one else would start watching.
            log.exception("watching %s failed", run.attempt_id)
        else:
            if not self._is_live(run):
                return True
            # Watching ended without the end of the attempt: that is as good as a failure.
        watched.broken_since_ms = watched.broken_since_ms or self._clock.steady_ms()
        return False

    async def _follow(
        self,
        run: Run,
        watched: _Watched,
        watching: AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]],
    ) -> bool:
        """Take over what the runtime sees; True = the end of the attempt was in it."""
        async for seen, cursor in watching:
            if isinstance(seen, TERMINAL):
                # Before its cursor is taken: what waits here is no event yet, and whoever
                # takes over meanwhile has to see this signal again.
                await self._recorder.written(run)
                self._flush(run, watched)
                # Before its end, too: readers of that find there what it left.
                remains = await self._remains(self._ledger.live.get(run.id, run), seen)
                if remains is not None:
                    self._apply(run, RemainsSeen(key=f"{run.attempt_id}:remains", remains=remains))
            elif isinstance(seen, LongResult | ResultSeen):
                # Before it, too: when this fails, the result has to be read again.
                seen = await self._results.kept(run, seen)  # noqa: PLW2901
            elif isinstance(seen, PermissionAsked) and seen.call is not None:
                seen = await self._looked_up(run, seen)  # noqa: PLW2901
            # A signal that comes again has the cursor it had before.
            cursor = max(cursor, watched.cursor)  # noqa: PLW2901
            watched.cursor = cursor
            if isinstance(seen, OutputBatch):
                self._provider_gates.see_output(run, seen)
                await self._recorder.record(run, seen)
                watched.positions.update(seen.positions)
                if not watched.held:
                    watched.settled_cursor = cursor
                self._discard_if_much(run, watched)
            elif isinstance(seen, TERMINAL):
                self._end(run, watched, seen)
                self._ledger.seal()
                return True
            else:
                self._hold(run, watched, seen)
                if isinstance(seen, PermissionAsked):
                    # Of its kind all count, and the program waits.
                    self._flush(run, watched)
        return False

    async def _looked_up(self, run: Run, asked: PermissionAsked) -> PermissionAsked:
        agent_id = self._ledger.live.get(run.id, run).resolved.agent_id
        try:
            known = (await self._off_loop(self._allowed.read)).get(agent_id, ())
        except SubagentsError as error:
            log.warning("the user is asked again: %s", error)
            return asked
        return replaced(asked, is_allowed=asked.call in known)

    def _end(self, run: Run, watched: _Watched, seen: Signal) -> None:
        self._flush(run, watched)
        self._apply(run, seen)
        # One that ends with us keeps no files that could go; a later turn needs them still; and
        # when the run is settled with it, the cleanup takes all files at once.
        live = self._ledger.live.get(run.id, run)
        is_last = live.is_settled and live.attempt.evidence.exit is not None
        if run.resolved.abilities.survives_daemon and not is_last and not _is_behind(run, live):
            discarding = self._discard(
                run, watched.settled_cursor, dict(watched.positions), ended=True
            )
            self._tasks.start(discarding, f"discard output of {run.attempt_id}")

    def _hold(self, run: Run, watched: _Watched, signal: Signal) -> None:
        if not watched.held:
            due = self._clock.steady_ms() + COALESCE_MS
            if self._flushes.put(run.id, due):
                self._flushes_changed.set()
        # Taken out first: what is held becomes events in the order in which it was seen last.
        watched.held.pop(type(signal).__name__, None)
        watched.held[type(signal).__name__] = signal
        if isinstance(signal, UsageSeen) and self._is_spent(run, signal):
            self._flush(run, watched)

    def _is_spent(self, run: Run, seen: UsageSeen) -> bool:
        """Whether this use ends a budget: each further second could hold many more requests."""
        live = self._ledger.live.get(run.id)
        if live is None or live.budget.stop is not None or not live.attempts:
            return False
        known = live.attempt.usage or Usage()
        more = Amounts(**amounts(sub, seen.usage, known))
        holders = (live, *ancestors(self._ledger.live, live))
        return any(
            budgets.is_ended_by(holder, more, by_holder=holder is live) for holder in holders
        ) or self._shared_spending.is_ended_by(live, more)

    def _flush(self, run: Run, watched: _Watched) -> None:
        held, watched.held = watched.held, {}
        if held:
            self._flushes.drop(run.id)
        for signal in held.values():
            self._apply(run, signal)
        watched.settled_cursor = watched.cursor

    def flush(self, run_id: RunId) -> None:
        """What was seen of the attempt so far becomes events now, before something newer does."""
        watched = self._watched.get(run_id)
        run = self._ledger.published.get(run_id)
        if watched is not None and run is not None:
            self._flush(run, watched)

    async def _discard(
        self, run: Run, cursor: int, positions: Mapping[str, int], *, ended: bool
    ) -> None:
        """Let the runtime drop what is durable here; what fails is tried again.

        Both places are those of the lease that was renewed for it: reading may be further by now.
        """
        runtime = self._runtime_of(run, None)
        if runtime is None:
            return
        try:
            if not await self._recorder.sync(run):
                return
            await self._ledger.committed()
            await runtime.discard(ref_of(run), cursor=cursor, positions=positions, ended=ended)
        except (StoreUnavailable, Fenced):
            return  # it is not durable; after the recovery it is read again from the old place
        except SubagentsError as error:
            log.warning("output of %s stays where it is: %s", run.attempt_id, error)
        except Exception:
            log.exception("output of %s stays where it is", run.attempt_id)

    async def tidy(self, run: Run) -> None:
        """Delete what is not read any more of the attempts of a run that is over.

        Attempts whose end was not seen keep everything: not all of it may have been read.
        """
        ended = [each.number for each in run.attempts if each.evidence.exit is not None]
        if not ended or not run.resolved.abilities.survives_daemon:
            return
        if not await self._recorder.sync(run):
            return
        for number in ended:
            ref, runtime = ref_of(run, number), self._runtime_of(run, number)
            if runtime is None:
                return
            try:
                if isinstance(runtime, Tidied):
                    await runtime.tidy(ref)
                else:
                    await runtime.discard(ref, cursor=0, positions={}, ended=True)
            except SubagentsError as error:
                log.warning("files of %s#%s stay where they are: %s", run.id, number, error)

    async def delete_session(self, run: Run) -> None:
        """Delete the files of all attempts, prompts and output included, and the log. Idempotent.

        Raises:
            RuntimeUnavailable: Not all could be deleted; repeat it.
        """
        for attempt in run.attempts:
            runtime = self._runtime_of(run, attempt.number)
            if runtime is None:
                raise RuntimeUnavailable(f'runtime "{run.resolved.runtime}" is not available here')
            await runtime.forget(ref_of(run, attempt.number))
        await self._recorder.forget(run.id)

    def _discard_if_much(self, run: Run, watched: _Watched) -> None:
        """Where much was read since: renew the lease with its cursor, then discard it."""
        # The cursor of a further turn is not kept: it is read from its beginning.
        if watched.turns > 1 or watched.place - watched.discarded < DISCARD_AFTER:
            return
        live = self._ledger.live.get(run.id)
        if live is None or live.phase is not Phase.RUNNING:
            return
        watched.discarded = watched.place
        self._ledger.renew_lease(live, watched.settled_cursor)
        discarding = self._discard(
            live, watched.settled_cursor, dict(watched.positions), ended=False
        )
        self._tasks.start(discarding, f"discard output of {live.attempt_id}")

    def _apply(self, run: Run, signal: Signal) -> None:
        live = self._ledger.live.get(run.id)
        if live is None or (live.attempts is not run.attempts and _is_behind(run, live)):
            # When its lease ran out before its end was seen, that is not the end of the next turn.
            return
        self._provider_gates.see(run, signal)
        if isinstance(signal, ProgressSeen):
            signal = self._paced(run.id, signal)
        attempt = run.attempts[-1]
        event = SignalReceived(at_ms=self._clock.now_ms(), attempt=attempt.number, signal=signal)
        # A follow-up turn ends with new signals under the keys of the turn before.
        number = attempt.turn.number
        turn = "" if number == 1 else f"/turn{number}"
        self._ledger.apply_now(run.id, event, key=f"{signal.key}{turn}")

    def _is_live(self, run: Run) -> bool:
        live = self._ledger.live.get(run.id)
        return (
            live is not None
            and live.phase in HOLDS_SLOT
            and live.attempts[-1].number == run.attempts[-1].number
        )

    # -- leases ----------------------------------------------------------------------------

    async def _keep_leases(self) -> None:
        """Renew at a third of the lease's time, and flush what is due, until cancelled."""
        renew_at_ms = self._clock.steady_ms() + self._lease_ms // 3
        while True:
            due = (renew_at_ms, self._flushes.next_ms or renew_at_ms)
            wait_ms = max(min(due) - self._clock.steady_ms(), 1)
            await wait_at_most(self._clock, wait_ms / 1000, self._flushes_changed)
            self._flushes_changed.clear()
            for run_id in self._flushes.take(self._clock.steady_ms()):
                self.flush(run_id)
            if self._clock.steady_ms() >= renew_at_ms:
                renew_at_ms = self._clock.steady_ms() + self._lease_ms // 3
                self.renew()

    def renew(self) -> None:
        """Extend the lease of every attempt that is being watched; end those that are not.

        An attempt that is still being started has no watcher yet and keeps its lease.
        """
        for run in tuple(self._ledger.live.values()):
            if run.phase is Phase.SPAWNING or self._is_unpublished(run):
                self._ledger.renew_lease(run, 0)
            elif run.phase is Phase.RUNNING:
                watched = self._watched.get(run.id)
                unseen_ms = self._unseen_ms(run, watched)
                if watched is not None and unseen_ms == 0:
                    self._ledger.renew_lease(run, watched.settled_cursor)
                elif unseen_ms > self._lease_ms:
                    # Not at the first failure: a runtime gets the whole lease to come back.
                    expired = LeaseExpired(at_ms=self._clock.now_ms(), attempt=len(run.attempts))
                    self._ledger.apply_now(run.id, expired)

    def _is_unpublished(self, run: Run) -> bool:
        """Its start is still being committed (a slow disk): watching begins after that."""
        known = self._ledger.published.get(run.id)
        return run.phase is Phase.RUNNING and (
            known is None
            or known.phase is not Phase.RUNNING
            or known.attempt.number != run.attempt.number
        )

    def _unseen_ms(self, run: Run, watched: _Watched | None) -> int:
        """How long the attempt was not seen by anyone; 0 = it is being watched."""
        if watched is None:
            return self._clock.now_ms() - run.times.phase_since_ms + 1
        now = self._clock.steady_ms()
        if watched.broken_since_ms is None:
            return 0
        if now - watched.begun_ms > WATCH_WELL_MS:
            watched.broken_since_ms = None
            return 0
        return now - watched.broken_since_ms + 1


def _is_behind(run: Run, live: Run) -> bool:
    """Whether the attempt is in a later turn by now than it is in ``run``."""
    now, then = live.attempts[-1], run.attempts[-1]
    return now.number == then.number and now.turn.number > then.turn.number
