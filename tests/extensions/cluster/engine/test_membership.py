"""Who gets which partitions."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.extensions.cluster.engine.membership import excess, wanted

NODES = st.sets(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=6)


@pytest.mark.requirement("cluster:ownership")
@given(NODES, st.data())
def test_the_shares_of_all_nodes_take_all_that_nobody_has(
    names: set[str], data: st.DataObject
) -> None:
    rest = data.draw(st.lists(st.sampled_from([*sorted(names), ""]), min_size=256, max_size=256))
    owned = {name: rest.count(name) for name in names}
    free = {part for part, owner in enumerate(rest) if not owner}
    for name in sorted(names):
        taken = wanted(free, owned, name)
        assert len(taken) <= max(ceil(PARTITIONS / len(names)) - owned[name], 0)
        free -= set(taken)
        owned[name] += len(taken)
    assert not free


@pytest.mark.requirement("cluster:ownership")
@given(NODES)
def test_nodes_that_ask_together_for_all_begin_at_different_places(names: set[str]) -> None:
    owned = dict.fromkeys(names, 0)
    taken = [wanted(range(PARTITIONS), owned, name)[0] for name in names]
    assert len(set(taken)) == len(names)


@pytest.mark.requirement("cluster:ownership")
@given(NODES)
def test_together_nodes_are_above_their_shares_only_by_what_others_lack(names: set[str]) -> None:
    share = ceil(PARTITIONS / len(names))
    first, *others = sorted(names)
    owned = {first: PARTITIONS, **dict.fromkeys(others, 0)}
    assert excess(owned, first) == PARTITIONS - share
    assert all(excess(owned, name) == 0 for name in others)
