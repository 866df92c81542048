"""Partitions come into engines at work, and leave them."""

from pathlib import Path

import pytest
from tests.engine.world import settings_of
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, in_cluster

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase
from subagents.domain.run.values import announcement_id
from subagents.errors import Elsewhere, Fenced, StoreUnavailable

ALL = frozenset(range(PARTITIONS))


@pytest.mark.requirement("cluster:ownership")
def test_the_first_node_has_everything_before_anybody_calls(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        node = await cluster.join()
        assert node.owned == ALL

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership")
def test_a_node_that_joins_has_its_share_in_the_end_and_nothing_is_two_nodes(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first = await cluster.join()
        second, third = await cluster.join(), await cluster.join()

        await cluster.clock.advance(60 * LEASE_S)

        shares = [first.owned, second.owned, third.owned]
        assert frozenset().union(*shares) == ALL
        assert sum(map(len, shares)) == PARTITIONS
        assert max(map(len, shares)) <= 86

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:takeover")
def test_what_a_dead_node_had_goes_on_elsewhere_as_soon_as_its_lease_is_over(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)
        run_id = await first.spawn("slow", requester=session)
        await first.until(run_id, Phase.RUNNING)
        begun = cluster.clock.steady_ms()
        await first.crash()
        cluster.nodes.remove(first)

        await cluster.clock.until(lambda: second.owned == ALL, within_s=60)

        assert cluster.clock.steady_ms() - begun <= (LEASE_S + 2) * 1000
        run = await second.until(run_id)
        assert run.conclusion is not None
        assert run.conclusion.outcome.status is Status.LOST
        found = await cluster.clock.result(
            second.engine.mailbox.wait([], session=session, timeout_s=1, reader="me")
        )
        assert found.offered == (announcement_id(run_id),)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:outage")
def test_after_an_outage_of_the_database_nobody_takes_anything_from_anybody(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        before = first.owned, second.owned
        cluster.database.is_away = True
        await cluster.clock.advance(60)
        cluster.database.is_away = False
        await cluster.clock.advance(5 * LEASE_S)

        assert (first.owned, second.owned) == before
        assert first.engine.fence is None
        assert second.engine.fence is None

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:outage")
def test_a_node_that_looks_before_its_right_is_renewed_again_gives_nothing_away(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, _ = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        before = first.owned
        cluster.database.is_away = True
        await cluster.clock.advance(3 * LEASE_S)
        cluster.database.is_away = False
        membership = first.engine._membership
        assert membership is not None

        await membership.look()

        assert not first.engine.partitions.is_alive(first.directory.name)
        assert first.owned == before

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_what_another_node_decides_is_refused_and_says_whose_it_is(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(second)
        run_id = await second.spawn("slow", requester=session)
        calls = (
            first.try_spawn("quick", requester=session),
            first.engine.mailbox.wait([], session=session, timeout_s=1, reader="me"),
            first.engine.mailbox.wait([run_id], session=session, timeout_s=1, reader="me"),
            first.engine.control.cancel(run_id, by="me"),
            first.engine.mailbox.offer_inbox(session, reader="me"),
            first.engine.queries.run(run_id),
        )
        for call in calls:
            with pytest.raises(Elsewhere) as refused:
                await cluster.clock.result(call)
            assert refused.value.details["node"] == "node1"
            assert refused.value.details["url"] == "https://node1"

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:drain")
def test_a_node_that_drains_gives_back_what_is_idle_at_once_and_the_rest_when_its_worker_ended(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)
        run_id = await first.spawn("slow", requester=session)
        await first.until(run_id, Phase.RUNNING)

        await cluster.clock.result(first.engine.drain(is_on=True))
        await cluster.clock.advance(2)
        assert first.owned == {partition_of(session)}

        run = await first.until(run_id)
        assert run.conclusion is not None
        assert run.conclusion.outcome.status is Status.OK
        await cluster.clock.until(lambda: not first.owned, within_s=10)
        await cluster.clock.until(lambda: second.owned == ALL, within_s=10)
        assert len(run.attempts) == 1

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership")
def test_a_queued_run_moves_with_its_partition_and_is_started_by_the_other_node(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first = await cluster.join()
        session, other = cluster.sessions_of(first)
        one_slot = settings_of(max_concurrent=1)
        at_work = await first.spawn("slow", requester=other, settings=one_slot)
        queued = await first.spawn("quick", requester=session, settings=one_slot)
        second = await cluster.join()

        await cluster.clock.result(first.engine.drain(is_on=True))

        await cluster.clock.until(lambda: queued in second.engine.ledger.live, within_s=4)
        assert queued not in first.engine.ledger.live
        assert first.engine.ledger.published[at_work].phase is Phase.RUNNING
        assert first.owned == {partition_of(other)}
        # The lane has one slot on all nodes together.
        run = await second.until(queued, Phase.COMPLETED, within_s=12)
        assert run.attempts[0].node == "node1"
        assert (await first.run(at_work)).is_settled

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:fence")
def test_a_node_that_was_frozen_past_its_lease_is_over_for_good_and_says_so(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)
        row = cluster.database.nodes[first.store.identity]
        first.store.is_frozen = True  # its renewals never arrive
        await cluster.clock.until(lambda: second.owned == ALL, within_s=60)
        assert row.is_over
        first.store.is_frozen = False

        with pytest.raises((Fenced, StoreUnavailable)):
            await cluster.clock.result(first.try_spawn("quick", requester=session))
        await cluster.clock.advance(LEASE_S)
        assert first.engine.fence is not None

    in_cluster(tmp_path, scenario)
