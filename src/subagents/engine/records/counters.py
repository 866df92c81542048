"""Counts what was committed, for ``/metrics``: since this process started, in memory.

Everything comes from the durable batches, so a number never speaks of what a crash undid. Counting
costs a dictionary entry per event, and nothing more is done before somebody scrapes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from subagents.domain.rules.provider_limits import agent_of
from subagents.domain.run.events import (
    Alerted,
    DeliverySettled,
    SlotGranted,
    Spawned,
    VerificationFinished,
)
from subagents.domain.run.outcome import Deferred, Delivered, DeliveryOutcome, Skipped
from subagents.domain.run.run import SETTLED, Conclusion, Phase, Run
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RunId
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.kernel.live_runs import Failure
from subagents.ports import Batch, JournalEntry

AGENTS_MAX: Final = 100
"""Agents that are counted each by itself; later ones share the counts of ``OTHER``."""
OTHER: Final = "other"

WAITS_S: Final = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)
RUNS_S: Final = (0.1, 1, 5, 15, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600)
COMMITS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
COUNTED: Final = frozenset({Spawned, SlotGranted, Alerted, VerificationFinished, DeliverySettled})
"""The events that count for more than their number."""
BATCHES: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000)


class Histogram:
    """How often a value was at most each bound.

    Args:
        bounds: Ascending; a value above the last one is counted too.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        """One for each bound, then one for all that is larger; not cumulative."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Counters:
    """Hears of every commit of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._queued: dict[RunId, int] = {}
        self._agents: set[str] = set()
        self.spawned: Counter[str] = Counter()
        """Runs that were spawned, by agent."""
        self.ended: Counter[tuple[str, str]] = Counter()
        """Runs that ended, by agent and outcome."""
        self.tokens: Counter[tuple[str, str]] = Counter()
        """Tokens of ended runs, by agent and ``input`` or ``output``, where their runtime says."""
        self.cost_usd: dict[str, float] = {}
        self.alerts: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.deliveries: Counter[tuple[str, str]] = Counter()
        """Delivery tries, by outcome and, of those delivered, path."""
        self.commit_failures = 0
        self.queue_wait_s = Histogram(WAITS_S)
        self.run_s: dict[str, Histogram] = {}
        self.commit_s = Histogram(COMMITS_S)
        self.commit_events = Histogram(BATCHES)

    def reset(self) -> None:
        """The ledger was loaded: runs that wait go on waiting since when they did."""
        self._queued = {
            run.id: run.times.phase_since_ms
            for run in self._ledger.published.values()
            if run.phase is Phase.QUEUED
        }

    def agent(self, agent_id: str) -> str:
        """The label for an agent: its id, while there are not too many."""
        # Each label is one more time series for whatever scrapes; ids come from configurations.
        if agent_id not in self._agents:
            if len(self._agents) >= AGENTS_MAX:
                return OTHER
            self._agents.add(agent_id)
        return agent_id

    def on_failure(self, _error: Failure) -> None:
        self.commit_failures += 1

    def on_commit(self, batch: Batch) -> None:
        self.commit_s.observe(self._ledger.commit_s)
        self.commit_events.observe(len(batch.journal))
        for entry in batch.journal:
            run = batch.runs[entry.run_id]
            if run.conclusion is not None and run.conclusion.seq == entry.seq:
                self._ended(run, run.conclusion)
            if type(entry.event) in COUNTED:
                self._count(entry, run)
        for run in batch.runs.values():
            if run.phase is Phase.QUEUED:
                self._queued[run.id] = run.times.phase_since_ms
            elif run.id in self._queued and run.phase in SETTLED:
                del self._queued[run.id]

    def _count(self, entry: JournalEntry, run: Run) -> None:
        match entry.event:
            case Spawned():
                self.spawned[self.agent(run.resolved.agent_id)] += 1
            case SlotGranted(at_ms=at_ms):
                since_ms = self._queued.pop(run.id, at_ms)
                self.queue_wait_s.observe(max(at_ms - since_ms, 0) / 1000)
            case Alerted(alert=alert):
                self.alerts[str(alert.kind)] += 1
            case VerificationFinished(verification=verification):
                self.verdicts[str(verification.verdict)] += 1
            case DeliverySettled(record=record):
                self.deliveries[_delivery(record.outcome)] += 1

    def _ended(self, run: Run, ended: Conclusion) -> None:
        agent = self.agent(run.resolved.agent_id)
        self.ended[agent, str(ended.outcome.status)] += 1
        if run.times.started_at_ms is not None:
            took_s = max(ended.ended_at_ms - run.times.started_at_ms, 0) / 1000
            if agent not in self.run_s:
                self.run_s[agent] = Histogram(RUNS_S)
            self.run_s[agent].observe(took_s)
        for attempt in run.attempts:
            if attempt.usage is not None:
                self._used(self.agent(agent_of(run, attempt.number).agent_id), attempt.usage)

    def _used(self, agent: str, usage: Usage) -> None:
        if usage.tokens_in is not None:
            self.tokens[agent, "input"] += usage.tokens_in
        if usage.tokens_out is not None:
            self.tokens[agent, "output"] += usage.tokens_out
        if usage.cost_usd is not None:
            self.cost_usd[agent] = self.cost_usd.get(agent, 0.0) + usage.cost_usd


def _delivery(outcome: DeliveryOutcome) -> tuple[str, str]:
    match outcome:
        case Delivered(path=path):
            return "delivered", str(path)
        case Deferred():
            return "deferred", ""
        case Skipped():
            return "skipped", ""
        case _:
            return "failed", ""
