"""Schedules where several daemons share a database."""

from pathlib import Path

import pytest
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, in_cluster
from tests.extensions.schedules.test_schedules import wanted

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.errors import Elsewhere
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
        # A node that starts deletes the variables that nobody keeps.
        assert [Schedules.of(first.engine).keeps(f"{each}.0") for each in (schedule.id, "s-x")] == [
            True,
            False,
        ]
        await cluster.clock.advance(3_600)
        (time,) = Schedules.of(second.engine).all[0].times
        (run_id,) = time.run_ids
        run = await second.until(run_id)
        assert [each.node for each in run.attempts] == ["node1"]

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("schedule:once", "cluster:ownership")
def test_a_schedule_whose_session_leaves_while_it_is_added_is_its_next_owners_to_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)

        async def leaves(*_: object) -> None:
            await first.engine.drain(is_on=True)

        monkeypatch.setattr(Schedules, "_keep", leaves)
        adding = Schedules.of(first.engine).add(wanted(first, requester=session))
        with pytest.raises(Elsewhere):
            await cluster.clock.result(adding)
        found = Schedules.of(second.engine).everywhere()
        assert await cluster.clock.result(found) == ()

    in_cluster(tmp_path, scenario)
