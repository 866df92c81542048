"""What attempts came to over time: sums for each hour or day, by outcome, agent or model; pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from subagents.domain.run.outcome import Reason, Status
from subagents.extensions.track_record.track_record import DAY_MS, AttemptRecord, Result, Sum

HOUR_MS: Final = 3_600_000
_STATUSES: Final[Mapping[Result, Status]] = {
    Result.SUCCESS: Status.OK,
    Result.PARTIAL: Status.PARTIAL,
    Result.TIMEOUT: Status.TIMEOUT,
    Result.FAILURE: Status.ERROR,
}
_OTHER_FAILURES: Final[Mapping[Reason, Status]] = {
    Reason.CANCELLED_BY_CALLER: Status.CANCELLED,
    Reason.PARENT_ENDED: Status.CANCELLED,
    Reason.STUCK: Status.CANCELLED,
    Reason.LEASE_LOST: Status.LOST,
    Reason.EXIT_UNKNOWN: Status.LOST,
    Reason.RECORD_LOST: Status.LOST,
}
"""What a record calls a failure, too, by its reason."""


class SeriesBy(StrEnum):
    """What is added up together; ``COST`` and ``TOKENS`` add up everything."""

    OUTCOME = "outcome"
    AGENT = "agent"
    MODEL = "model"
    COST = "cost"
    TOKENS = "tokens"


class Bucket(StrEnum):
    """How long the time is of which there is one sum; both begin in UTC."""

    HOUR = "hour"
    DAY = "day"

    @property
    def span_ms(self) -> int:
        return HOUR_MS if self is Bucket.HOUR else DAY_MS


class Cell(NamedTuple):
    """Attempts that are never distinguished."""

    hour: int
    """The hour in which they ended, in hours since 1970."""
    agent: str
    model: str | None
    status: Status


Cells = dict[Cell, Sum]
Groups = Mapping[str | None, Sum]
"""Sums by outcome, agent or model; None = all together, or a model that was not chosen."""


def status_of(record: AttemptRecord) -> Status:
    """What it came to, in the word that its run's outcome has."""
    status = _STATUSES[record.outcome]
    if record.outcome is not Result.FAILURE or record.reason is None:
        return status
    return _OTHER_FAILURES.get(record.reason, status)


def put(cells: Cells, records: Iterable[AttemptRecord]) -> None:
    """Add records to the cells."""
    for record in records:
        hour = record.ended_at // HOUR_MS
        cell = Cell(hour, record.agent_id, record.model, status_of(record))
        cells.setdefault(cell, Sum()).add(record)


def series(
    cells: Iterable[tuple[Cell, Sum]],
    *,
    by: SeriesBy,
    bucket: Bucket,
    since_ms: int,
    until_ms: int,
    agent: str | None = None,
    model: str | None = None,
) -> Sequence[tuple[int, Groups]]:
    """One sum for each group of each bucket, those without any attempt included.

    Args:
        cells: What there is.
        by: What is added up together.
        bucket: The length of time.
        since_ms: The first bucket is the one that this lies in.
        until_ms: The last one.
        agent: Only attempts of this agent.
        model: Only attempts with this model.

    Returns:
        When each bucket begins, the oldest first, and its groups.
    """
    span = bucket.span_ms
    found: dict[int, dict[str | None, Sum]] = {
        at * span: {} for at in range(since_ms // span, until_ms // span + 1)
    }
    for cell, sum_ in cells:
        groups = found.get(cell.hour * HOUR_MS // span * span)
        if groups is None or agent not in {None, cell.agent} or model not in {None, cell.model}:
            continue
        name = _name(cell, by)
        groups.setdefault(name, Sum()).merge(sum_)
    return [*found.items()]


def _name(cell: Cell, by: SeriesBy) -> str | None:
    match by:
        case SeriesBy.OUTCOME:
            return cell.status.value
        case SeriesBy.AGENT:
            return cell.agent
        case SeriesBy.MODEL:
            return cell.model
        case SeriesBy.COST | SeriesBy.TOKENS:
            return None
