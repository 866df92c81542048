"""A machine that can start nothing: its node gives its sessions to others, and no attempt fails."""

import errno
from pathlib import Path

import pytest
from tests.engine.runs.test_dependencies import CONTRACT
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, Node, in_cluster

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.outcome import Status
from subagents.domain.run.values import RunId
from subagents.errors import LACKS

ALL = frozenset(range(PARTITIONS))


async def assert_ended_well(node: Node, run_id: RunId, *, at: Node) -> None:
    run = await node.until(run_id)
    assert run.conclusion is not None
    assert run.conclusion.outcome.status is Status.OK
    assert [each.node for each in run.attempts] == [at.directory.name]


@pytest.mark.requirement("cluster:sick-node")
@pytest.mark.parametrize(
    "lack", [each for each in LACKS if each != errno.ECHILD], ids=errno.errorcode.__getitem__
)
def test_what_a_machine_cannot_start_is_started_elsewhere_without_a_retry(
    lack: int, tmp_path: Path
) -> None:
    async def scenario(cluster: Cluster) -> None:
        sick, well = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(sick)
        sick.runtime.lacks = lack
        run_id = await sick.spawn("quick", requester=session)

        await cluster.clock.until(lambda: well.owned == ALL, within_s=4 * LEASE_S)

        assert sick.engine.partitions.problem == LACKS[lack]
        await assert_ended_well(well, run_id, at=well)
        sick.runtime.lacks = None
        await cluster.clock.until(lambda: len(sick.owned) == PARTITIONS // 2, within_s=120)
        assert sick.engine.partitions.problem is None
        await assert_ended_well(
            sick, await sick.spawn("quick", requester=cluster.session_of(sick)), at=sick
        )

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:sick-node")
def test_what_is_bound_to_files_begins_where_its_session_went(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        sick, well = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        sick.runtime.lacks = errno.ENOMEM
        session = cluster.session_of(sick)
        run_id = await sick.spawn("writer", requester=session, verification=CONTRACT)

        await cluster.clock.until(lambda: well.owned == ALL, within_s=4 * LEASE_S)

        # Its place was the sick node, which says that nothing is there.
        await assert_ended_well(well, run_id, at=well)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:sick-node")
def test_where_no_machine_can_start_anything_each_keeps_what_it_has_and_waits(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        nodes = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        runs = {}
        for node in nodes:
            node.runtime.lacks = errno.ENOSPC
            session = cluster.session_of(node)
            for _ in range(3):
                runs[await node.spawn("quick", requester=session)] = session

        await cluster.clock.advance(10 * LEASE_S)

        assert [node.engine.partitions.problem is None for node in nodes] == [False, False]
        assert sum(len(node.owned) for node in nodes) == PARTITIONS
        for node in nodes:
            node.runtime.lacks = None
        await cluster.clock.advance(60 * LEASE_S)
        for run_id, session in runs.items():
            owner = next(node for node in nodes if partition_of(session) in node.owned)
            run = await owner.until(run_id)
            assert run.conclusion is not None
            assert (run.conclusion.outcome.status, len(run.attempts)) == (Status.OK, 1)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:sick-node")
def test_a_node_that_is_alone_gives_nothing_away_and_goes_on_by_itself(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        node = await cluster.join()
        session = cluster.session_of(node)
        node.runtime.lacks = errno.EMFILE
        run_id = await node.spawn("quick", requester=session)

        await cluster.clock.advance(20 * LEASE_S)

        assert (node.owned, node.engine.partitions.problem is None) == (ALL, False)
        node.runtime.lacks = None
        await cluster.clock.advance(20)
        await assert_ended_well(node, run_id, at=node)

    in_cluster(tmp_path, scenario)
