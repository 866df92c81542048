"""Schedules where several daemons share a database."""

from pathlib import Path

import pytest
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, in_cluster
from tests.extensions.schedules.test_schedules import wanted

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.extensions.schedules.schedules import Schedules


@pytest.mark.requirement("schedule:once", "cluster:ownership")
def test_a_schedule_moves_with_its_session_and_the_other_node_starts_its_work(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first = await cluster.join()
        session = cluster.session_of(first)
        adding = Schedules.of(first.engine).add(wanted(first, requester=session))
        schedule = await cluster.clock.result(adding)
        second = await cluster.join()

        await cluster.clock.result(first.engine.drain(is_on=True))
        await cluster.clock.until(lambda: len(second.owned) == PARTITIONS, within_s=60 * LEASE_S)

        assert Schedules.of(first.engine).all == ()
        assert Schedules.of(second.engine).all == (schedule,)
        await cluster.clock.advance(3_600)
        (time,) = Schedules.of(second.engine).all[0].times
        (run_id,) = time.run_ids
        run = await second.until(run_id)
        assert [each.node for each in run.attempts] == ["node1"]

    in_cluster(tmp_path, scenario)
