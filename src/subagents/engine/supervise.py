"""Watches live attempts and turns what their runtimes see into events; keeps their leases.

One task per live attempt, restarted when its runtime fails. The lease is renewed only while the
attempt is really being watched: a watcher that stays broken lets the lease run out, and then the
attempt is lost instead of running for ever unseen.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from subagents.domain.events import AttemptTakenOver, LeaseExpired, SignalReceived
from subagents.domain.model import HOLDS_SLOT, Phase, Run
from subagents.domain.signals import TERMINAL, Signal, Vanished
from subagents.domain.values import AttemptId, RunId, attempt_id
from subagents.engine.launch import ref_of
from subagents.engine.ledger import Ledger
from subagents.engine.tasks import Tasks
from subagents.errors import StoreUnavailable
from subagents.ports import Batch, Clock, Lease, Runtime

log = logging.getLogger(__name__)

COALESCE_S: Final = 1.0
"""Of progress, usage and results only the newest within so long becomes an event: a worker that
prints a million progress lines costs a million reads, not a million commits."""

WATCH_AGAIN_S: Final = 1.0
WATCH_WELL_MS: Final = 5_000
"""A watch that has not failed for so long is well again."""


@dataclass(slots=True)
class _Watched:
    """One attempt (and turn) under watch."""

    attempt: int
    turns: int
    cursor: int
    seen_ms: int
    held: dict[str, Signal] = field(default_factory=dict)
    flush_at_ms: int = 0
    begun_ms: int = 0
    """When the runtime was last asked to watch."""
    settled_cursor: int = 0
    """Up to here all that was read became events; what is only held is read again after a crash."""
    broken_since_ms: int | None = None
    """Since when watching it keeps failing."""


class Supervisor:
    """Starts and ends watching as committed runs need it."""

    def __init__(
        self, ledger: Ledger, clock: Clock, runtimes: Mapping[str, Runtime], *, lease_ms: int
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._runtimes = runtimes
        self._lease_ms = lease_ms
        self._watched: dict[RunId, _Watched] = {}
        self._cursors: dict[AttemptId, int] = {}
        self._tasks = Tasks()

    @property
    def live_attempts(self) -> int:
        return len(self._watched)

    def adopt(self, leases: Mapping[RunId, Lease]) -> None:
        """After a restart: go on watching where the leases say reading stopped, and keep them.

        Watching and keeping the leases end together (``stop``): a keeper that outlives the
        watchers, if only for one slow commit, would take every attempt for unseen.
        """
        self._cursors = {attempt_id(run_id, h.attempt): h.cursor for run_id, h in leases.items()}
        for run in tuple(self._ledger.published.values()):
            cursor = self._look_at(run)
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
        self.renew()
        self._tasks.start(self._keep_leases(), "leases")

    def on_commit(self, batch: Batch) -> None:
        for run in batch.runs.values():
            self._look_at(run)

    def _look_at(self, run: Run) -> int | None:
        """Watch the run's attempt if it needs it and nobody does; from where, else None."""
        if run.phase not in {Phase.RUNNING, Phase.ENDING} or run.attempt.outcome is not None:
            return None
        watched = self._watched.get(run.id)
        if watched is not None and (watched.attempt, watched.turns) >= (
            run.attempt.number,
            run.attempt.turns,
        ):
            return None
        if run.attempt.evidence.exit is not None:
            return None
        cursor = self._cursors.pop(run.attempt_id, 0) if run.attempt.turns == 1 else 0
        watched = _Watched(
            attempt=run.attempt.number,
            turns=run.attempt.turns,
            cursor=cursor,
            settled_cursor=cursor,
            seen_ms=self._clock.now_ms(),
        )
        self._watched[run.id] = watched
        self._tasks.start(self._watch(run, watched), f"watch {run.attempt_id}")
        return cursor

    async def stop(self) -> None:
        """Stop watching; the workers go on."""
        await self._tasks.stop()
        self._watched.clear()

    async def _watch(self, run: Run, watched: _Watched) -> None:
        try:
            while self._is_live(run) and not await self._watch_once(run, watched):
                await self._clock.sleep(WATCH_AGAIN_S)
        except StoreUnavailable:
            return  # the ledger failed; after it is loaded again the attempt is looked at anew
        finally:
            if self._watched.get(run.id) is watched:
                del self._watched[run.id]

    async def _watch_once(self, run: Run, watched: _Watched) -> bool:
        """Follow the attempt until it ended (True) or its runtime failed (False)."""
        runtime = self._runtimes.get(run.resolved.runtime)
        if runtime is None:
            text = f'runtime "{run.resolved.runtime}" is not available here'
            self._apply(run, Vanished(key=f"{run.attempt_id}:vanished", error=text))
            return True
        watched.begun_ms = self._clock.now_ms()
        try:
            async for signal, cursor in runtime.watch(ref_of(run), cursor=watched.cursor):
                watched.cursor = cursor
                watched.seen_ms = self._clock.now_ms()
                if isinstance(signal, TERMINAL):
                    self._flush(run, watched)
                    self._apply(run, signal)
                    return True
                self._hold(run, watched, signal)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("watching %s failed", run.attempt_id)
            watched.broken_since_ms = watched.broken_since_ms or self._clock.now_ms()
            return False
        if self._is_live(run):
            # It ended without saying how the attempt did: as good as a failure.
            watched.broken_since_ms = watched.broken_since_ms or self._clock.now_ms()
            return False
        return True

    def _hold(self, run: Run, watched: _Watched, signal: Signal) -> None:
        now = self._clock.now_ms()
        if not watched.held:
            watched.flush_at_ms = now + int(COALESCE_S * 1000)
        watched.held.pop(type(signal).__name__, None)
        watched.held[type(signal).__name__] = signal
        if now >= watched.flush_at_ms:
            self._flush(run, watched)

    def _flush(self, run: Run, watched: _Watched) -> None:
        held, watched.held = watched.held, {}
        for signal in held.values():
            self._apply(run, signal)
        watched.settled_cursor = watched.cursor

    def flush(self, run_id: RunId) -> None:
        """What was seen of the attempt so far becomes events now, before something newer does."""
        watched = self._watched.get(run_id)
        run = self._ledger.published.get(run_id)
        if watched is not None and run is not None:
            self._flush(run, watched)

    def flush_due(self) -> None:
        """Signals held back long enough become events; asked regularly by the lease keeper."""
        now = self._clock.now_ms()
        for run_id, watched in tuple(self._watched.items()):
            run = self._ledger.published.get(run_id)
            if run is not None and watched.held and now >= watched.flush_at_ms:
                self._flush(run, watched)

    def _apply(self, run: Run, signal: Signal) -> None:
        if run.id not in self._ledger.live:
            return
        event = SignalReceived(at_ms=self._clock.now_ms(), attempt=len(run.attempts), signal=signal)
        # A follow-up turn ends with signals of its own under the keys of the turn before.
        turn = "" if run.attempt.turns == 1 else f"/turn{run.attempt.turns}"
        self._ledger.apply_now(run.id, event, key=f"{signal.key}{turn}")

    def _is_live(self, run: Run) -> bool:
        live = self._ledger.live.get(run.id)
        return (
            live is not None
            and live.phase in HOLDS_SLOT
            and len(live.attempts) == len(run.attempts)
        )

    # -- leases ----------------------------------------------------------------------------

    async def _keep_leases(self) -> None:
        """Renew at a third of the lease's time, until cancelled."""
        beat_s = min(self._lease_ms / 3000, COALESCE_S)
        renewed_ms = self._clock.now_ms()
        while True:
            await self._clock.sleep(beat_s)
            self.flush_due()
            if self._clock.now_ms() - renewed_ms >= self._lease_ms // 3:
                renewed_ms = self._clock.now_ms()
                self.renew()

    def renew(self) -> None:
        """Extend the lease of every attempt that is being watched; end those that nobody watches.

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
        """For how long nobody could see the attempt; 0 = it is being watched."""
        now = self._clock.now_ms()
        if watched is None:
            return now - run.phase_since_ms + 1
        if watched.broken_since_ms is None:
            return 0
        if now - watched.begun_ms > WATCH_WELL_MS:
            watched.broken_since_ms = None
            return 0
        return now - watched.broken_since_ms + 1
