"""What a contract's files were before and after the attempts; a part of the reducer."""

from subagents.domain.run.baseline import rebased
from subagents.domain.run.effects import Transition
from subagents.domain.run.events import BaselineTaken, FilesLeft
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace


def baseline_taken(run: Run, event: BaselineTaken) -> Transition:
    """What the files of the contract must differ from, from this attempt on."""
    record, found = run.verification, event.baseline
    if event.attempt:
        attempt = run.attempt
        if event.attempt != attempt.number or attempt.times.started_at_ms is not None:
            return Transition(run, stale=True)
    elif record.baseline is not None:
        return Transition(run, stale=True)
    if record.baseline is None:
        record = replace(record, baseline=found, vacuous=event.vacuous)
    elif record.left is not None:
        record = replace(record, baseline=rebased(record.baseline, record.left, found))
    if event.attempt:
        record = replace(record, looked=event.attempt, left=found)
    return Transition(replace(run, verification=record))


def files_left(run: Run, event: FilesLeft) -> Transition:
    """What others change from now on is no work of the run."""
    return Transition(replace(run, verification=replace(run.verification, left=event.files)))
