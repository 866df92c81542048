"""After a simulation: every ended attempt has its one performance record, and the right one."""

from tests.simulation.invariants import Judge

from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.extensions.track_record.track_record import AttemptRecord, ended_attempts, record_of
from subagents.extensions.track_record.track_record_files import PerformanceFiles

NAME = "one performance record per ended attempt"


def check_records(judge: Judge, log: PerformanceFiles) -> None:
    """Compare the log with the runs as the journal tells them; all is at rest."""
    found: dict[str, AttemptRecord] = {}
    for day in log.sizes():
        end, offset = 0, -1
        while end != offset:
            offset = end
            records, end = log.read(day, offset=offset)
            for record in records:
                if record.key in found:
                    judge.fail(NAME, f"{record.key} has two")
                found[record.key] = record
    for run in judge.view.values():
        _check(judge, run, found)
    for key in found:
        judge.fail(NAME, f"{key} has one and never ended")


def _check(judge: Judge, run: Run, found: dict[str, AttemptRecord]) -> None:
    for number in range(1, ended_attempts(run) + 1):
        wanted = record_of(run, number)
        record = found.pop(wanted.key, None)
        if record is None and run.id in judge.pruned:
            continue  # pruned within minutes; in a real store days pass before that
        if record is None:
            judge.fail(NAME, f"{wanted.key} has none")
            continue
        if run.lineage.retry_from is not None and number == 1:
            # What it repeats was read from the store.
            wanted = replace(wanted, retry_of=record.retry_of, escalated_from=record.escalated_from)
        if record != wanted:
            judge.fail(NAME, f"{record} is not what became of it: {wanted}")
