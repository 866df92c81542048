"""Numbers in other programs' JSON: what is no count is taken for absent."""

import math

import pytest

from subagents.runtimes.output.counts import COUNT_MAX, as_count


@pytest.mark.requirement("conversation:stream:garbage")
@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (2.0, 2),
        (True, None),
        (-1, None),
        (math.nan, None),
        (COUNT_MAX + 2, None),
        (10**400, None),
        (math.inf, None),
        ("3", None),
    ],
)
def test_a_count_is_a_whole_number_in_bounds(value: object, count: int | None) -> None:
    assert as_count(value) == count
