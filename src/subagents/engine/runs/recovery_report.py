"""What a start decided about every open run, for the record."""

from collections.abc import Iterable, Mapping

from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, Value
from subagents.ports import Lease, OutboxEntry


class Recovery(Value, frozen=True):
    """What a start decided about one open run (8-field-failures: multica #1326)."""

    run_id: RunId
    phase: Phase
    decision: str


def decisions(
    runs: Iterable[Run], outbox: Iterable[OutboxEntry], leases: Mapping[RunId, Lease]
) -> tuple[Recovery, ...]:
    """One for each run, from what the store still holds about it."""
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
