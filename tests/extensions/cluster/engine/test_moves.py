"""Partitions come into engines at work, and leave them."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.engine.runs.test_dependencies import CONTRACT
from tests.engine.world import settings_of
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, in_cluster

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import DeliveryTry, Phase, Run
from subagents.domain.run.values import SessionKey, announcement_id
from subagents.errors import Elsewhere, Fenced, StoreUnavailable
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions

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


@pytest.mark.requirement("cluster:ownership", "cluster:node-lost")
def test_after_a_power_cut_of_all_the_one_that_is_back_has_everything_after_a_lease(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        for node in (first, second):
            await node.crash()
        cluster.nodes.remove(first)
        await second.start()
        assert second.owned != ALL

        await cluster.clock.until(lambda: second.owned == ALL, within_s=2 * LEASE_S)

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

        partitions = first.engine.partitions
        assert isinstance(partitions, SharedPartitions)
        assert not partitions.is_alive(first.directory.name)
        assert first.owned == before

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:outage")
def test_who_has_not_renewed_right_after_an_outage_is_late_and_not_over(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        partitions = first.engine.partitions
        assert isinstance(partitions, SharedPartitions)
        cluster.database.is_away = True
        await cluster.clock.advance(3 * LEASE_S)
        await second.crash()
        cluster.nodes.remove(second)
        cluster.database.is_away = False

        await partitions.look()
        assert partitions.is_alive(second.directory.name)

        await cluster.clock.advance(2 * LEASE_S)
        assert not partitions.is_alive(second.directory.name)

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
def test_a_node_that_drains_hands_over_what_is_at_work_and_its_workers_go_on(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)
        run_id = await first.spawn("tells", requester=session)
        await first.until(run_id, Phase.RUNNING)
        waiting = asyncio.ensure_future(
            first.engine.mailbox.wait([run_id], session=session, timeout_s=600, reader="me")
        )
        await cluster.clock.advance(20)

        await cluster.clock.result(first.engine.drain(is_on=True))
        await cluster.clock.until(lambda: second.owned == ALL, within_s=LEASE_S)

        assert not first.owned
        assert not first.engine.ledger.live
        assert not first.engine.supervisor.live_attempts
        with pytest.raises(Elsewhere):
            await cluster.clock.result(waiting)
        run = await second.until(run_id)
        assert run.conclusion is not None
        assert run.conclusion.outcome.status is Status.OK
        assert [(each.number, each.node) for each in run.attempts] == [(1, "node0")]
        assert run.progress.latest is not None
        assert run.progress.latest.phase == "step 9"
        assert first.runtime.starts_of(run_id) == 1
        assert await second.folded(run_id) == run

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:drain", "cluster:ownership")
def test_what_cannot_be_given_back_now_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: SessionKey) -> int:
        raise StoreUnavailable("for a moment")

    async def scenario(cluster: Cluster) -> None:
        node = await cluster.join()
        run_id = await node.spawn("hang", requester=cluster.session_of(node))
        await node.until(run_id, Phase.RUNNING)
        held = node.engine.queries.slots_by_lane()
        its = SimpleNamespace(sessions={SessionKey("agent:x:subagent:y")})
        monkeypatch.setattr(node.engine, "parts", {"its": its})
        monkeypatch.setattr(node.store, "partition_of_worker", away)
        with pytest.raises(StoreUnavailable):
            await cluster.clock.result(node.engine.drain(is_on=True))
        monkeypatch.undo()
        assert node.owned == ALL
        assert node.engine.queries.slots_by_lane() == held

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:drain", "verification:restart")
def test_what_takes_long_is_begun_anew_by_whoever_a_draining_node_hands_it_to(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session, other = cluster.sessions_of(first)
        checked = await first.spawn("late_writer", requester=session, verification=CONTRACT)
        await first.until(checked, Phase.RUNNING)
        first.checks_are_stuck = first.runtime.hangs = True
        starting = await first.spawn("quick", requester=other)
        await first.until(checked, Phase.VERIFYING)

        await cluster.clock.result(first.engine.drain(is_on=True))
        assert first.owned == {partition_of(session), partition_of(other)}
        await cluster.clock.until(lambda: not first.owned, within_s=2 * LEASE_S)
        first.checks_are_stuck = first.runtime.hangs = False
        await cluster.clock.until(lambda: second.owned == ALL, within_s=LEASE_S)

        for run_id in (checked, starting):
            run = await second.until(run_id)
            assert run.conclusion is not None
            assert run.conclusion.outcome.status is Status.OK
            assert [each.node for each in run.attempts] == ["node0"]

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:ownership", "cluster:drain", "cluster:lanes")
def test_the_slot_of_a_worker_is_counted_by_somebody_while_its_run_is_handed_over(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first = await cluster.join()
        one_slot = settings_of(max_concurrent=1)
        session, other = cluster.sessions_of(first)
        at_work = await first.spawn("slow", requester=other, settings=one_slot)
        queued = await first.spawn("quick", requester=session, settings=one_slot)
        third = await cluster.join()
        await cluster.join()

        await cluster.clock.result(first.engine.drain(is_on=True))
        for _ in range(20):
            held = cluster.permits.held(("default", 1))
            assert sum(held.values()) >= 1, "another one could begin"
            await cluster.clock.advance(0.2)
        assert not first.owned
        found = third.store.run(queued)
        assert found is not None
        assert found.phase is Phase.QUEUED

        node = third if queued in third.engine.ledger.live else cluster.nodes[2]
        run = await node.until(queued, Phase.COMPLETED, within_s=12)
        ended = cluster.nodes[1].store.run(at_work)
        assert ended is not None
        assert (run.attempts[0].times.started_at_ms or 0) >= (ended.ended_at_ms or 0) > 0
        assert run.attempts[0].node != "node0"
        await cluster.clock.advance(2)
        assert cluster.permits.held(("default", 1)) == {}

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:drain")
def test_a_node_that_drains_begins_nothing_and_does_again_when_it_is_taken_back(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await cluster.join(), await cluster.join()
        await cluster.clock.advance(60 * LEASE_S)
        session = cluster.session_of(first)
        first.runtime.hangs = True
        starting = await first.spawn("quick", requester=session)
        await cluster.clock.result(first.engine.drain(is_on=True))
        queued = await first.spawn("quick", requester=session)
        await cluster.clock.advance(2)
        assert first.owned == {partition_of(session)}
        assert (await first.run(queued)).phase is Phase.QUEUED

        first.runtime.hangs = False
        await cluster.clock.result(first.engine.drain(is_on=False))
        assert (await first.until(queued, within_s=5)).attempts[0].node == "node0"
        assert starting in first.engine.ledger.live
        assert second.engine.fence is None

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


@pytest.mark.requirement("cluster:ownership", "cluster:drain")
def test_what_is_still_to_be_done_for_a_run_whose_tree_left_memory_keeps_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first = await cluster.join(max_spawn_depth=3)
        session, may_go = cluster.session_of(first), asyncio.Event()
        top = await first.spawn("parent", requester=session)
        await first.until(top, Phase.RUNNING)
        middle = await first.spawn_child(top, "parent")
        await first.until(middle, Phase.RUNNING)
        deliveries = first.engine.outbox._deliveries
        deliver = deliveries.deliver

        async def slowly(run: Run, number: int) -> DeliveryTry:
            if run.lineage.requester_run == middle:
                await may_go.wait()
            return await deliver(run, number)

        monkeypatch.setattr(deliveries, "deliver", slowly)
        low = await first.spawn_child(middle, "quick")
        await first.until(top, Phase.COMPLETED)
        assert [*first.engine.ledger.live] == [*first.engine.outbox.busy] == [low]
        second = await cluster.join(max_spawn_depth=3)

        await first.engine.drain(is_on=True)
        await cluster.clock.advance(LEASE_S / 2)
        assert first.owned == {partition_of(session)}
        may_go.set()
        await cluster.clock.until(lambda: second.owned == ALL, within_s=2 * LEASE_S)

        assert (await second.until(low, Phase.COMPLETED)).phase is Phase.COMPLETED

    in_cluster(tmp_path, scenario)
