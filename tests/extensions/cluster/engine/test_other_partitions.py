"""What a node does with runs and sessions of partitions that are not its own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.world import settings_of
from tests.extensions.cluster.engine.engine_cluster import (
    LEASE_S,
    AnyNode,
    Cluster,
    Node,
    in_cluster,
)

from subagents.domain.run.run import Decision, Phase
from subagents.domain.run.values import AttemptId, RunId, SessionKey
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import Elsewhere, UsageError
from subagents.extensions.cluster.node_ports import Offer


async def two_nodes(cluster: Cluster) -> tuple[Node, Node]:
    first, second = await cluster.join(), await cluster.join()
    await cluster.clock.advance(60 * LEASE_S)
    return first, second


@pytest.mark.requirement("cluster:places", "sweep:orphans")
def test_a_worker_whose_run_another_node_decides_about_is_no_orphan_until_that_run_is_over(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, place = await two_nodes(cluster)
        run_id = await owner.spawn("hang", requester=cluster.session_of(owner))
        await owner.until(run_id, Phase.RUNNING)
        marked = [(f"{run_id}#1", 4711)]

        async def processes(known: Callable[[], set[AttemptId]]) -> list[tuple[str, int]]:
            return [each for each in marked if each[0] not in known()]

        place.engine.sweep._orphans = processes
        assert (await cluster.clock.result(place.engine.sweep.once())).orphans == ()
        assert await place.engine.sweep.orphans() == []

        await cluster.clock.result(owner.engine.control.cancel(run_id, by="me"))
        await owner.until(run_id)
        assert (await cluster.clock.result(place.engine.sweep.once())).orphans == tuple(marked)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:places", "cluster:slots")
def test_what_is_cancelled_while_it_waits_for_a_place_is_offered_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[AttemptId] = []

    async def place(_: AnyNode, offer: Offer) -> str:
        offered.append(offer.attempt_id)
        found: str = await asyncio.Future()
        return found

    async def settle(_: AnyNode, attempt: AttemptId) -> None:
        offered.remove(attempt)

    monkeypatch.setattr(AnyNode, "place", place)
    monkeypatch.setattr(AnyNode, "settle", settle)

    async def scenario(cluster: Cluster) -> None:
        node = await cluster.join()
        node.slots._most = 0
        run_id = await node.spawn("hang", requester=cluster.session_of(node))
        await cluster.clock.until(lambda: bool(offered), within_s=5)
        await cluster.clock.result(node.engine.control.cancel(run_id, by="me"))
        await node.until(run_id)
        assert not offered

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:sessions")
def test_a_session_goes_on_in_its_partition_whoever_writes_into_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, other = await two_nodes(cluster)
        session, beside = cluster.sessions_of(owner)
        stranger = cluster.session_of(other)
        run_id = await owner.spawn(requester=session)
        await owner.until(run_id, Phase.ANNOUNCE_DEFERRED, Phase.COMPLETED)

        async def sent(node: Node, by: SessionKey, newest: RunId) -> Sent:
            message = node.engine.sessions.send(
                newest, "and now?", SpawnContext(session=by, settings=node.settings)
            )
            return await cluster.clock.result(message)

        with pytest.raises(Elsewhere):
            await sent(other, stranger, run_id)
        for by in (stranger, beside, session):
            found = await sent(owner, by, run_id)
            assert (found.is_new, found.run.requester) == (True, session)
            await owner.until(found.run.id, Phase.ANNOUNCE_DEFERRED, Phase.COMPLETED)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:sessions")
def test_a_spawn_that_continues_a_session_of_another_partition_is_refused_wherever_that_is(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, other = await two_nodes(cluster)
        session, beside = cluster.sessions_of(owner)
        run_id = await owner.spawn(requester=session)
        await owner.until(run_id, Phase.ANNOUNCE_DEFERRED, Phase.COMPLETED)
        for node, by in ((owner, beside), (other, cluster.session_of(other))):
            with pytest.raises(UsageError, match="decides about the two apart") as refused:
                await node.spawn(requester=by, continues=run_id)
            assert refused.value.hint is not None
            assert f"subagents continue {run_id}" in refused.value.hint
        again = await owner.spawn(requester=session, continues=run_id)
        found = (await owner.until(again)).session.continues
        assert found is not None
        assert found.run_id == run_id

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("why:now:cluster")
def test_what_is_free_of_a_lane_is_told_by_the_node_that_decides(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, other = await two_nodes(cluster)
        for node in (owner, other):
            node.settings = settings_of(max_concurrent=1)
        first = await owner.spawn("hang", requester=cluster.session_of(owner))
        await owner.until(first, Phase.RUNNING)
        waits = await other.spawn("quick", requester=cluster.session_of(other))
        await cluster.clock.advance(5)
        run = await other.run(waits)
        assert run.phase is Phase.QUEUED
        found = other.engine.surroundings().lane_of(run)
        assert found == (0, 1, None, 0)
        assert owner.engine.surroundings().lane_of(run) is None
        assert owner.engine.surroundings().is_cluster

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_what_a_worker_asks_is_seen_by_the_operator_at_every_node(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, other = await two_nodes(cluster)
        session = cluster.session_of(owner)
        run_id = await owner.spawn("hang", requester=session)
        await owner.until(run_id, Phase.RUNNING)
        asked = await cluster.clock.result(owner.engine.questions.ask(run_id, "Which colour?"))
        for node in (owner, other):
            found = await cluster.clock.result(node.engine.queries.attention())
            assert [(each.run.id, each.text) for each in found] == [(run_id, "Which colour?")]
        assert len(await cluster.clock.result(owner.engine.queries.attention(session))) == 1
        with pytest.raises(Elsewhere):
            await cluster.clock.result(other.engine.queries.attention(session))
        answered = owner.engine.questions.answer(
            asked.id, "blue", decision=Decision.ANSWER, by="me"
        )
        assert await cluster.clock.result(answered)
        assert await cluster.clock.result(other.engine.queries.attention()) == ()

    in_cluster(tmp_path, scenario)
