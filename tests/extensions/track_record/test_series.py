"""Sums over time: every attempt in one bucket, unknown amounts in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Life

from subagents.domain.agents.agent_stats import Tokens
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.values import replace
from subagents.extensions.track_record.series import (
    HOUR_MS,
    Bucket,
    Cells,
    Groups,
    SeriesBy,
    put,
    series,
    status_of,
)
from subagents.extensions.track_record.track_record import (
    DAY_MS,
    AttemptRecord,
    Result,
    record_of,
)

BEGIN_MS = 20_000 * DAY_MS
ENDED = record_of(Life.begin().start().exit().run, 1)


def a_record(
    *,
    hour: int = 0,
    agent: str = "a",
    result: Result = Result.SUCCESS,
    cost: float | None = None,
    tokens: Tokens = Tokens(input=None, output=None),  # noqa: B008 - a value
) -> AttemptRecord:
    return replace(
        ENDED,
        ended_at=BEGIN_MS + hour * HOUR_MS + 1,
        agent_id=agent,
        outcome=result,
        reason=None,
        cost_usd=cost,
        tokens=tokens,
    )


def sums(
    *records: AttemptRecord,
    by: SeriesBy = SeriesBy.OUTCOME,
    bucket: Bucket = Bucket.DAY,
    days: int = 1,
) -> list[Groups]:
    cells: Cells = {}
    put(cells, records)
    until_ms = BEGIN_MS + days * DAY_MS - 1
    found = series(cells.items(), by=by, bucket=bucket, since_ms=BEGIN_MS, until_ms=until_ms)
    return [groups for _, groups in found]


@pytest.mark.requirement("stats:series")
def test_what_nobody_reported_is_no_zero_and_says_of_how_many_it_is_known() -> None:
    known = a_record(cost=0.25, tokens=Tokens(input=3, output=4, cache_read=2))
    free = a_record(cost=0.0, tokens=Tokens(input=1, output=None))

    ((groups),) = sums(known, free, a_record(), by=SeriesBy.COST)

    total = groups[None]
    assert (total.attempts, total.cost_usd, total.cost_known) == (3, 0.25, 2)
    assert (total.tokens_in, total.tokens_out, total.tokens_known) == (3, 4, 1)
    assert total.cache_read == 2


@pytest.mark.requirement("stats:series")
def test_hours_and_days_begin_in_utc_and_those_without_attempts_are_there() -> None:
    records = [a_record(hour=0), a_record(hour=23), a_record(hour=24)]

    hours = sums(*records, bucket=Bucket.HOUR, days=2)
    days = sums(*records, days=3)

    assert [index for index, groups in enumerate(hours) if groups] == [0, 23, 24]
    assert len(hours) == 48
    assert [sum(each.attempts for each in groups.values()) for groups in days] == [2, 1, 0]


@pytest.mark.requirement("stats:series")
@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (Reason.EXIT_CODE, Status.ERROR),
        (Reason.CANCELLED_BY_CALLER, Status.CANCELLED),
        (Reason.STUCK, Status.CANCELLED),
        (Reason.LEASE_LOST, Status.LOST),
    ],
)
def test_an_outcome_has_the_word_that_its_run_has(reason: Reason, status: Status) -> None:
    assert status_of(replace(a_record(result=Result.FAILURE), reason=reason)) is status


@pytest.mark.requirement("stats:series")
@given(
    st.lists(
        st.builds(
            a_record,
            hour=st.integers(0, 71),
            agent=st.sampled_from("ab"),
            result=st.sampled_from(Result),
        ),
        max_size=30,
    ),
    st.sampled_from(SeriesBy),
    st.sampled_from(Bucket),
)
def test_every_attempt_is_in_one_sum(
    records: list[AttemptRecord], by: SeriesBy, bucket: Bucket
) -> None:
    found = sums(*records, by=by, bucket=bucket, days=3)

    assert sum(each.attempts for groups in found for each in groups.values()) == len(records)
