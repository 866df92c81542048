"""Who gets which partitions."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.cluster.partitions import PARTITIONS, excess, partition_of, wanted
from subagents.domain.run.values import SessionKey

NODES = st.sets(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=6)
FREE = st.sets(st.integers(0, PARTITIONS - 1))


@pytest.mark.requirement("cluster:ownership")
def test_a_session_has_the_same_partition_on_every_machine_and_for_ever() -> None:
    # Written down: it is in the rows of every database there is.
    found = [partition_of(SessionKey(f"agent:main:{name}")) for name in ("main", "a", "b")]
    assert found == [EXPECTED["main"], EXPECTED["a"], EXPECTED["b"]]


EXPECTED = {"main": 81, "a": 125, "b": 97}


@pytest.mark.requirement("cluster:ownership")
def test_sessions_are_spread_over_all_partitions() -> None:
    found = {partition_of(SessionKey(f"agent:main:{number}")) for number in range(10_000)}
    assert found == set(range(PARTITIONS))


@pytest.mark.requirement("cluster:ownership")
@given(FREE, NODES)
def test_nodes_that_ask_at_the_same_time_leave_nothing_after_a_few_rounds(
    free: set[int], names: set[str]
) -> None:
    owned = dict.fromkeys(names, 0)
    left, rounds = set(free), 0
    while left:
        taken = [part for name in names for part in wanted(left, owned, name)]
        assert taken
        assert set(taken) <= left
        left -= set(taken)
        rounds += 1
    assert rounds <= 10


@pytest.mark.requirement("cluster:ownership")
@given(NODES)
def test_together_nodes_are_above_their_shares_only_by_what_others_lack(names: set[str]) -> None:
    share = ceil(PARTITIONS / len(names))
    first, *others = sorted(names)
    owned = {first: PARTITIONS, **dict.fromkeys(others, 0)}
    assert excess(owned, first) == PARTITIONS - share
    assert all(excess(owned, name) == 0 for name in others)
