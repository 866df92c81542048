"""Who gets which partitions."""

import pytest

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.values import SessionKey


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
