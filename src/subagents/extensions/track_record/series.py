"""What attempts came to over time: sums for each hour or day, by outcome, agent or model; pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.values import Value
from subagents.extensions.track_record.track_record import DAY_MS, AttemptRecord, Result

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


class Sum(Value, frozen=True):
    """Over attempts that ended."""

    attempts: int = 0
    runs: int = 0
    """First attempts: fewer than ``attempts`` when some were tried again."""
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    """The part of ``tokens_in`` that came from a cache."""
    tokens_known: int = 0
    """How many attempts' tokens are known."""
    cost_usd: float = 0.0
    cost_known: int = 0
    """How many attempts' cost is known."""

    def plus(self, other: "Sum") -> "Sum":
        """Both together."""
        return Sum(
            attempts=self.attempts + other.attempts,
            runs=self.runs + other.runs,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cache_read=self.cache_read + other.cache_read,
            tokens_known=self.tokens_known + other.tokens_known,
            cost_usd=self.cost_usd + other.cost_usd,
            cost_known=self.cost_known + other.cost_known,
        )


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
        cells[cell] = cells.get(cell, Sum()).plus(_sum_of(record))


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
        groups[name] = groups.get(name, Sum()).plus(sum_)
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


def _sum_of(record: AttemptRecord) -> Sum:
    tokens_in, tokens_out = record.tokens.input, record.tokens.output
    are_known = tokens_in is not None and tokens_out is not None
    return Sum(
        attempts=1,
        runs=int(record.attempt == 1),
        tokens_in=tokens_in or 0 if are_known else 0,
        tokens_out=tokens_out or 0 if are_known else 0,
        cache_read=record.tokens.cache_read or 0 if are_known else 0,
        tokens_known=int(are_known),
        cost_usd=record.cost_usd or 0.0,
        cost_known=int(record.cost_usd is not None),
    )
