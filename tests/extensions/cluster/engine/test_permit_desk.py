"""Slots of a lane, refusing providers and caps, over several engines on one database."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.attempts.test_provider_gate import refused
from tests.engine.attempts.test_request_desk import ask
from tests.engine.runs.test_budget_trees import running, use
from tests.engine.world import settings_of
from tests.extensions.cluster.engine.engine_cluster import LEASE_S, Cluster, Node, in_cluster
from tests.extensions.cluster.engine.test_moves import ALL

from subagents.config.settings import Budgets, DailyBudget
from subagents.domain.rules.budgets.request_holds import Counted, Need
from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId, replace
from subagents.errors import Forbidden
from subagents.extensions.cluster.engine.permit_desk import EVERY_S


async def balanced(cluster: Cluster, number: int = 2) -> list[Node]:
    """Nodes that have their shares, and go by three slots."""
    nodes = [await cluster.join(max_concurrent=3) for _ in range(number)]
    await cluster.clock.advance(60 * LEASE_S)
    assert all(node.owned for node in nodes)
    return nodes


async def spawned(cluster: Cluster, node: Node, agent: str, number: int) -> list[RunId]:
    session = cluster.session_of(node)
    return [await node.spawn(agent, requester=session) for _ in range(number)]


def at_work(nodes: list[Node]) -> list[int]:
    """Of each node."""
    return [
        sum(run.phase is Phase.RUNNING for run in node.engine.ledger.published.values())
        for node in nodes
    ]


@pytest.mark.requirement("cluster:lanes")
def test_a_lane_of_all_nodes_together_is_never_overfull_and_nobody_is_left_out(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        nodes = await balanced(cluster, 3)
        begun = cluster.clock.now_ms()
        runs = {node: await spawned(cluster, node, "slow", 6) for node in nodes}
        most = 0
        while any(node.engine.ledger.live for node in nodes):
            most = max(most, sum(at_work(nodes)))
            await cluster.clock.advance(0.1)

        assert most == 3
        ended = {
            node: [(await node.run(each)).ended_at_ms or 0 for each in ids]
            for node, ids in runs.items()
        }
        assert all(map(all, ended.values()))
        # Six rounds of 10 s in three slots; a slot that changes its node is idle for a second.
        assert max(map(max, ended.values())) - begun <= 66_000
        assert max(map(min, ended.values())) - begun <= 25_000, "each has its turn early"

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:lanes")
def test_the_first_run_in_a_free_lane_does_not_wait_for_the_next_half_second(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        node, _ = await balanced(cluster)
        await cluster.clock.advance(EVERY_S / 5)
        begun = cluster.clock.steady_ms()
        (run_id,) = await spawned(cluster, node, "hang", 1)
        await node.until(run_id, Phase.RUNNING)

        assert cluster.clock.steady_ms() - begun < EVERY_S / 5 * 1000

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:lanes")
def test_nobody_is_asked_while_nothing_goes_on_and_seldom_while_runs_end_and_begin(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        node, _ = await balanced(cluster)
        before = cluster.permits.settled
        await cluster.clock.advance(100)
        assert cluster.permits.settled == before

        ids = await spawned(cluster, node, "quick", 40)
        for run_id in ids:
            await node.until(run_id)
        assert cluster.permits.settled - before <= 10

        await cluster.clock.advance(10 * EVERY_S)
        assert cluster.permits.held(("default", 1)) == {}
        idle = cluster.permits.settled
        await cluster.clock.advance(100)
        assert cluster.permits.settled == idle

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:lanes", "cluster:takeover")
def test_slots_of_a_dead_node_are_free_when_its_runs_are_known_to_be_over(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await balanced(cluster)
        for run_id in await spawned(cluster, first, "slow", 3):
            await first.until(run_id, Phase.RUNNING)
        waiting = await spawned(cluster, second, "quick", 1)
        await first.crash()
        cluster.nodes.remove(first)

        await cluster.clock.advance(LEASE_S / 2)
        assert (await second.run(waiting[0])).phase is Phase.QUEUED
        await cluster.clock.until(lambda: second.owned == ALL, within_s=60)
        run = await second.until(waiting[0], within_s=5)
        assert run.phase is Phase.COMPLETED

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:lanes", "cluster:outage")
def test_while_the_database_is_away_nothing_more_begins_and_all_goes_on_afterwards(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        node, _ = await balanced(cluster)
        ids = await spawned(cluster, node, "slow", 5)
        await node.until(ids[0], Phase.RUNNING)
        cluster.database.is_away = True
        await cluster.clock.advance(2 * LEASE_S)
        cluster.database.is_away = False

        for run_id in ids:
            assert (await node.until(run_id, within_s=120)).is_settled

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:lanes")
def test_a_run_that_counts_fewer_slots_waits_until_so_few_are_used_by_all(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await balanced(cluster)
        for run_id in await spawned(cluster, first, "slow", 2):
            await first.until(run_id, Phase.RUNNING)
        session = cluster.session_of(second)
        narrow = await second.spawn(
            "quick", requester=session, settings=settings_of(max_concurrent=2)
        )
        await cluster.clock.advance(5)
        assert (await second.run(narrow)).phase is Phase.QUEUED

        assert (await second.until(narrow, within_s=8)).phase is Phase.COMPLETED

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:provider-limits")
def test_what_a_provider_refused_one_node_no_node_asks_again_before_its_time(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await balanced(cluster)
        wanted = first.with_script("limited", refused(60_000), {"exit": 1})
        refused_run = await first.spawn(
            "limited", settings=wanted, requester=cluster.session_of(first)
        )
        await first.until(refused_run, Phase.RETRY_WAIT)

        fine = second.with_script("limited", {"sleep_ms": 1_000}, {"result": "fine"})
        session = cluster.session_of(second)
        two = [await second.spawn("limited", settings=fine, requester=session) for _ in range(2)]
        await cluster.clock.advance(50)
        runs = [await second.run(run_id) for run_id in two]
        assert [run.phase for run in runs] == [Phase.QUEUED] * 2
        refusal = second.engine.provider_gates.refusal_of(runs[0])
        assert refusal is not None
        assert refusal.until_ms is not None
        assert refusal.until_ms <= cluster.clock.now_ms() + 11_000

        for run_id in two:
            assert (await second.until(run_id, within_s=20)).phase is Phase.COMPLETED
        # Who got through on one node opened it for the other, whose next try was due later.
        await cluster.clock.advance(2 * EVERY_S)
        assert first.engine.provider_gates.gate_of(await first.run(refused_run)) is None

    in_cluster(tmp_path, scenario)


# -- caps ----------------------------------------------------------------------------------------


async def capped(cluster: Cluster, most: int = 1_000) -> list[Node]:
    """Two nodes that have their shares, and go by one budget of the day."""
    nodes = [await cluster.join() for _ in range(2)]
    for node in nodes:
        await node.crash()
        node.settings = replace(settings_of(), budgets=Budgets(daily=DailyBudget(max_tokens=most)))
        await node.start()
    await cluster.clock.advance(60 * LEASE_S)
    assert all(node.owned for node in nodes)
    return nodes


async def worker(cluster: Cluster, node: Node) -> RunId:
    return await running(node, requester=cluster.session_of(node))


@pytest.mark.requirement("cluster:caps")
def test_requests_on_two_nodes_never_hold_more_of_a_cap_than_there_is(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        nodes = await capped(cluster)
        workers = [(node, await worker(cluster, node)) for node in nodes for _ in range(4)]
        need = Need(input_tokens=150, output_tokens=150, least_output_tokens=150)
        asking = [
            asyncio.ensure_future(
                node.engine.request_desk.hold(run_id, 1, need, Counted(), line_s=1)
            )
            for node, run_id in workers
        ]
        found = await cluster.clock.result(asyncio.gather(*asking))

        assert [each.granted for each in found].count(True) == 3
        assert all(each.again for each in found if not each.granted)
        # One is answered with less than it could have used: its rest is another's.
        node, run_id = next(w for w, each in zip(workers, found, strict=True) if each.granted)
        waits = next(w for w, each in zip(workers, found, strict=True) if not each.granted)
        waiting = asyncio.ensure_future(
            waits[0].engine.request_desk.hold(waits[1], 1, need, Counted())
        )
        await cluster.clock.advance(2 * EVERY_S)
        assert not waiting.done()
        await use(node, run_id, 50)
        assert (await cluster.clock.result(waiting)).granted

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:caps")
def test_a_cap_that_is_spent_on_one_node_ends_the_runs_of_all(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await capped(cluster)
        one, two = [await worker(cluster, node) for node in (first, second)]
        await use(second, two, 400)
        await cluster.clock.advance(2 * EVERY_S)
        await use(first, one, 700)

        run = await second.until(two, within_s=5)
        assert run.conclusion is not None
        assert run.conclusion.outcome.reason is Reason.BUDGET
        with pytest.raises(Forbidden, match=r"1\.1k of 1k tokens"):
            await cluster.clock.result(
                second.try_spawn("quick", requester=cluster.session_of(second))
            )

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:caps", "cluster:takeover")
def test_what_a_dead_nodes_request_held_is_free_when_its_run_is_known_to_be_over(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await capped(cluster)
        one, two = [await worker(cluster, node) for node in (first, second)]
        await use(first, one, 300)
        assert (await ask(first, one, 400, used=300)).granted
        await first.crash()
        cluster.nodes.remove(first)

        need = Need(input_tokens=200, output_tokens=200, least_output_tokens=200)
        found = await cluster.clock.result(
            second.engine.request_desk.hold(two, 1, need, Counted(), line_s=1)
        )
        assert (found.granted, found.again) == (False, True)
        await cluster.clock.until(lambda: second.owned == ALL, within_s=60)
        await second.until(one)
        assert (await ask(second, two, 400)).granted
        (cap,) = second.engine.shared_spending.caps_in_use
        await cluster.clock.advance(2 * EVERY_S)
        used = second.engine.shared_spending.used(cap)
        assert (used.tokens, used.held_tokens) == (300, 400)

    in_cluster(tmp_path, scenario)


@pytest.mark.requirement("cluster:caps")
def test_what_was_used_before_a_node_started_again_counts_once(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = await capped(cluster)
        one = await worker(cluster, first)
        await use(first, one, 300)
        await cluster.clock.advance(2 * EVERY_S)
        await first.crash()
        await first.start()
        await cluster.clock.advance(2 * LEASE_S)
        await worker(cluster, second)

        for node in (first, second):
            (cap,) = node.engine.shared_spending.caps_in_use
            assert node.engine.shared_spending.used(cap).tokens == 300

    in_cluster(tmp_path, scenario)
