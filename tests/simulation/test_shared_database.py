"""The store that the simulated nodes share does what ``ports.SharedStore`` says."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.simulation.shared_database import SharedDatabase, SharedSqlite

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.shared_store import Member, SharedStore
from subagents.extensions.testing.stored_values import ME, a_run, below, over
from subagents.ports import Batch, Lease

LEASE_S = 6.0
ALL = range(PARTITIONS)
Node = Callable[[str], SharedStore]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path, clock: Clock) -> SharedDatabase:
    return SharedDatabase(tmp_path / "shared.db", clock)


@pytest.fixture
def node(database: SharedDatabase) -> Iterator[Node]:
    """A new start of a node, by its name, which is also that of its home."""
    starts = 0
    with ExitStack() as stack:

        def start(name: str) -> SharedStore:
            nonlocal starts
            starts += 1
            member = Member(name, f"https://{name}", (), None, LEASE_S)
            store = SharedSqlite(database, home=name, member=member, identity=f"{name}-{starts}")
            store.open(name)
            return stack.enter_context(closing(store))

        yield start


def created(store: SharedStore, *numbers: int) -> None:
    runs = {run.id: run for run in map(a_run, numbers)}
    store.commit(Batch(runs=runs, created=set(runs)))


@pytest.mark.requirement("cluster:simulated-store")
def test_a_partition_that_nobody_has_is_whose_who_claims_it_first(node: Node) -> None:
    one, two = node("one"), node("two")

    assert one.claim({1, 2}) == {1, 2}
    assert two.claim({2, 3}) == {3}
    assert dict(two.survey().owners) == {1: one.identity, 2: one.identity, 3: two.identity}


@pytest.mark.requirement("cluster:simulated-store")
def test_a_node_that_did_not_renew_loses_everything_for_good(node: Node, clock: Clock) -> None:
    one, two = node("one"), node("two")
    one.claim(ALL)
    clock.now_s = 4.0
    two.renew()
    clock.now_s = LEASE_S + 0.1

    assert one.survey().nodes[one.identity].left_s < 0
    assert two.claim({7}) == frozenset()  # it is not known there
    clock.now_s = LEASE_S - 0.1
    one.tell_peers({two.home})
    clock.now_s = LEASE_S + 0.1
    assert two.claim({7}) == {7}
    for act in (lambda: one.commit(Batch()), one.renew, lambda: one.claim({7})):
        with pytest.raises(Fenced):
            act()
    assert two.claim(ALL) == frozenset(ALL)


@pytest.mark.requirement("cluster:simulated-store")
def test_a_node_that_renewed_late_keeps_what_nobody_took(node: Node, clock: Clock) -> None:
    one = node("one")
    one.claim({1})
    clock.now_s = LEASE_S * 3

    assert one.renew() == LEASE_S
    assert dict(one.survey().owners) == {1: one.identity}


@pytest.mark.requirement("cluster:simulated-store")
def test_what_was_released_is_another_s_at_once(node: Node) -> None:
    one, two = node("one"), node("two")
    mine = partition_of(ME)
    one.claim(ALL)
    created(one, 1)
    assert [run.id for run in one.load_open()] == [a_run(1).id]
    one.release({mine})
    assert two.claim({mine}) == {mine}

    assert one.load_open() == []
    assert [run.id for run in two.load_partitions({mine}).runs] == [a_run(1).id]
    assert two.run(a_run(1).id) == one.run(a_run(1).id) == a_run(1)


@pytest.mark.requirement("cluster:simulated-store")
def test_a_home_that_was_killed_has_its_partitions_back_at_once(node: Node) -> None:
    one, two = node("one"), node("two")
    one.claim({1, 2})
    two.claim({3})
    one.close()

    again = node("one")
    assert dict(again.survey().owners) == {1: again.identity, 2: again.identity, 3: two.identity}
    assert again.identity != one.identity


@pytest.mark.requirement("cluster:simulated-store")
def test_a_run_is_in_the_partition_of_the_session_at_the_root_of_its_tree(node: Node) -> None:
    one = node("one")
    one.claim(ALL)
    root, child = a_run(1), below(a_run(2), a_run(1))
    one.commit(Batch(runs={root.id: root, child.id: child}, created={root.id, child.id}))

    assert one.partition(root.id) == one.partition(child.id) == partition_of(ME)
    assert one.partition_of_worker(child.session_key) == partition_of(ME)
    assert one.partition(a_run(3).id) is None


@pytest.mark.requirement("cluster:simulated-store")
def test_a_list_shows_what_another_node_decided_last(node: Node) -> None:
    one, two = node("one"), node("two")
    one.claim(ALL)
    created(one, 1)
    ended = over(a_run(1))
    one.commit(Batch(runs={ended.id: ended}))

    assert two.run(ended.id) == ended


@pytest.mark.requirement("cluster:simulated-store")
def test_nothing_is_told_or_written_while_the_database_is_away(
    node: Node, database: SharedDatabase
) -> None:
    one = node("one")
    database.is_away = True

    for act in (lambda: one.commit(Batch()), one.renew, one.survey, one.load_open):
        with pytest.raises(StoreUnavailable):
            act()


@pytest.mark.requirement("cluster:simulated-store")
def test_a_lease_is_that_of_the_owner_also_where_the_owner_before_had_joined_later(
    node: Node,
) -> None:
    one, two = node("one"), node("two")
    mine, run_id = partition_of(ME), a_run(1).id
    two.claim(ALL)
    created(two, 1)
    later = Lease(run_id=run_id, attempt=1, owner="two", epoch=2, until_ms=1, cursor=1)
    two.commit(Batch(leases={run_id: later}))
    two.release({mine})
    one.claim({mine})
    renewed = Lease(run_id=run_id, attempt=1, owner="one", epoch=1, until_ms=2, cursor=2)
    one.commit(Batch(leases={run_id: renewed}))

    assert one.load_partitions({mine}).leases == [renewed]
