"""What is known of a run that is not in it: why it waits, its place in the line, its pulse.

From memory alone: a row of a list costs no query and no look at a file, however many there are.
"""

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors import FailedCall
from subagents.domain.rules.admission import LaneUse, lane_key, queue_order
from subagents.domain.rules.provider_limits import Gate, refusal_text
from subagents.domain.rules.wait_causes import WaitCause, WaitKind, wait_cause
from subagents.domain.run.linked_runs import LinkedRun
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId
from subagents.engine.attempts.provider_gate import ProviderGates
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.records.recorder import Recorder
from subagents.ports import LaneKey

HOPS_MAX: Final = 64
"""How far a chain of runs that wait for each other is followed."""
DAY_MS: Final = 24 * 3_600_000
WAITING_MAX: Final = 20
"""How many of the runs that wait for one are named."""


class Root(NamedTuple):
    """The run at the end of a chain of runs that wait for each other."""

    run: LinkedRun | Run
    cause: WaitCause | None
    """What it waits for in turn; None = it is at work."""


class Surroundings:
    """For one answer: what several of its rows need is found out once.

    Args:
        kernel: Has the open runs.
        gates: What their providers refuse.
        recorder: When their workers last said anything.
    """

    def __init__(self, kernel: Kernel, gates: ProviderGates, recorder: Recorder) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._gates, self._recorder = gates, recorder
        self._lines: dict[LaneKey, Mapping[RunId, int]] = {}
        self._roots: dict[RunId, Root | None] = {}

    def open_run(self, run_id: RunId) -> Run | None:
        """That run, while it is open."""
        return self._ledger.published.get(run_id)

    def cause(self, run: Run) -> WaitCause | None:
        """What it waits for; None = it is at work, or has ended."""
        if run.is_settled:
            return None
        found = wait_cause(run, self._gates.refusal_of(run))
        is_lane = found is not None and found.kind is WaitKind.LANE
        has_room = self._ledger.lanes.has_room_for_step(run)
        return WaitCause(WaitKind.PLAN) if is_lane and not has_room else found

    def root(self, cause: WaitCause) -> Root | None:
        """Where the chain of the runs that it waits for ends; None = it waits for no run."""
        if cause.kind is not WaitKind.RUNS or not cause.runs:
            return None
        first = cause.runs[0].run_id
        if first not in self._roots:
            self._roots[first] = self._end_of(cause.runs[0])
        return self._roots[first]

    def _end_of(self, awaited: LinkedRun) -> Root:
        at: LinkedRun | Run = awaited
        found: WaitCause | None = None
        for _ in range(HOPS_MAX):
            run = self._ledger.published.get(awaited.run_id)
            if run is None:
                break
            at, found = run, self.cause(run)
            if found is None or found.kind is not WaitKind.RUNS or not found.runs:
                break
            awaited = found.runs[0]
        return Root(at, found)

    @property
    def is_cluster(self) -> bool:
        """Whether there are other nodes: a process is found only where its node is named."""
        return self._ledger.partitions.is_shared

    def lane_of(self, run: Run) -> LaneUse | None:
        """The same of an open run; None = it is over, or another node decides about it."""
        return self.lane(run) if run.id in self._ledger.published else None

    def lane(self, run: Run) -> LaneUse:
        """How full its lane is now: where others share it, that part which is ours."""
        lane, permits = lane_key(run), self._ledger.permits
        held = self._ledger.lanes.held(lane)
        given = None if permits is None else permits.given_of(lane)
        gate = self._gates.gate_of(run)
        limit = None if gate is None else _refusing(gate, self._clock.now_ms())
        step = run.resolved.step
        is_queued = run.phase is Phase.QUEUED
        if is_queued and step is not None and not self._ledger.lanes.has_room_for_step(run):
            plan = step.name or step.plan
            limit = f'waits for others of plan "{plan}": at most {step.jobs} work at once'
        return LaneUse(used=held, slots=run.resolved.lane_slots, limit=limit, given=given)

    def place(self, run: Run) -> int | None:
        """Its place in the line of its lane, 1 = next; None = it is not in one."""
        if run.phase is not Phase.QUEUED:
            return None
        lane = lane_key(run)
        if lane not in self._lines:
            line = self._ledger.lanes.line(lane)
            self._lines[lane] = {run_id: place for place, run_id in enumerate(line, 1)}
        return self._lines[lane].get(run.id)

    def ahead_of(self, run: Run) -> int:
        """Queued runs that would get a slot before a new one such as this."""
        return self._ledger.lanes.ahead(lane_key(run), queue_order(run))

    def last_sign_ms(self, run: Run) -> int | None:
        """When its worker last gave a sign of life; None before it began, and once it has ended."""
        if run.is_settled or not run.attempts or run.attempt.times.started_at_ms is None:
            return None
        latest, said_ms = run.progress.latest, self._recorder.known_watch(run.id).last_at_ms
        return max(
            run.attempt.times.started_at_ms,
            said_ms or 0,
            0 if latest is None else latest.updated_at_ms,
            *(each.asked_at_ms for each in run.questions.requests),
        )

    def failed_call(self, run: Run) -> FailedCall | None:
        """The tool that failed last in its newest attempt, while that is at work."""
        return None if run.is_settled else self._recorder.known_watch(run.id).failed_call

    def charged_to(self, run: Run) -> Run | None:
        """The nearest run above whose budget pays for it, while both are open."""
        if run.is_settled or run.spec.budget is not None:
            return None
        above = ancestors(self._ledger.published, run)
        return next((each for each in above if each.spec.budget is not None), None)

    def waiting_for(self, run: Run) -> tuple[tuple[Run, ...], int]:
        """Runs that cannot begin before it has ended, at most ``WAITING_MAX``, and how many."""
        ids = self._ledger.lanes.dependants(run.id)
        found = (self._ledger.published.get(each) for each in ids[:WAITING_MAX])
        return tuple(each for each in found if each is not None), len(ids)


def _refusing(gate: Gate, now_ms: int) -> str:
    """``waiting for anthropic: 429, until 14:05:10``."""
    text = f"waiting for {refusal_text(gate.provider, gate.status)}"
    if not gate.is_closed(now_ms):
        return f"{text}; one run goes first ({gate.probe})"
    at = time.localtime(gate.until_ms / 1000)
    day = "%H:%M:%S" if gate.until_ms - now_ms < DAY_MS else "%Y-%m-%d %H:%M:%S"
    return f"{text}, until {time.strftime(day, at)}"
