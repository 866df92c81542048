"""The same as ``test_cluster``, many times and under more load: ``make test-cluster``.

``CLUSTER_ROUNDS`` says how often (20; freezes and cuts half as often), ``CLUSTER_OUTAGE_S`` how
long PostgreSQL is away (60). What was timed is printed.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, Judgement, judge, pause, shown
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.nodes.loaded_nodes import LOADED_ENV, LOADED_NODE, begin_load
from tests.extensions.cluster.nodes.node_calls import client_of, result_of, spawned
from tests.extensions.cluster.postgres.postgres_server import PostgresServer, pooled, standby_of

from subagents.client.client import Client
from subagents.errors import SubagentsError

ROUNDS: Final = int(os.environ.get("CLUSTER_ROUNDS", "20"))
HALF: Final = max(ROUNDS // 2, 1)
OUTAGE_S: Final = float(os.environ.get("CLUSTER_OUTAGE_S", "60"))
LEASE_S: Final = 6.0
OPEN_MIN: Final = 50
"""So many open runs a victim decides about at least."""
P50_S: Final = 10.0
MAX_S: Final = 20.0
ROUND_S: Final = 120
DEPLOY_RUNS_PER_S: Final = 3
CONNECTIONS_MAX: Final = 4
"""Three of the pooler, and one with which the rig asks past it."""
BUSY_RUNS_PER_S: Final = 280.0
BUSY_RUNS_MIN_PER_S: Final = 20.0

pytestmark = [
    pytest.mark.timeout(300 + ROUNDS * ROUND_S),
]


def rig_of(server: PostgresServer, root: Path, *, pooler: Path | None = None) -> ClusterRig:
    return ClusterRig(server, root, lease_s=LEASE_S, slots=256, beat_s=0.5, pooler=pooler)


def burst(rig: ClusterRig, number: int) -> tuple[ClusterLoad, ClusterNode]:
    """200 runs of 50 sessions, and the node that decides about most of them."""
    load = ClusterLoad(rig, sessions=50, runs=4, seconds=(2, 4), seed=f"round{number}")
    load.begin()

    def victim() -> ClusterNode | None:
        found = [(len(rig.open_runs_of(node.name)), node) for node in rig.nodes]
        most, node = max(found, key=lambda each: each[0])
        return node if most >= OPEN_MIN else None

    return load, until(victim, what="a node with many open runs", pause_s=0.02)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many programs beside it that want a processor each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def told(name: str, found: list[Judgement]) -> None:
    """For whoever watches: what came of it."""
    times = [each for judgement in found for each in judgement.settled_after_s]
    runs = sum(each.runs for each in found)
    repeated = sum(each.repeated for each in found)
    sys.stdout.write(
        f"\n{name}: {len(found)} × among {runs} runs, {repeated} attempts repeated,"
        f" settled after {shown(times)}\n"
    )
    for number, judgement in enumerate(found):
        for why in judgement.why:
            sys.stdout.write(f"  round {number}: {why}\n")


def in_rounds(
    rig: ClusterRig,
    rounds: int,
    blow: Callable[[ClusterNode], None],
    mend: Callable[[ClusterNode], None],
    what: str,
) -> list[Judgement]:
    """Strike, let all runs end, judge, and mend, over and over."""
    found = []
    for number in range(rounds):
        load, victim = burst(rig, number)
        load.note(what, victim.name)
        blow(victim)
        load.finish(ROUND_S)
        found.append(judge(load))
        assert found[-1].wrong == [], f"round {number}"
        mend(victim)
        rig.until_divided()
    told(what, found)
    return found


@pytest.mark.requirement("cluster:node-lost")
@pytest.mark.parametrize("loops", [0, 4])
def test_nothing_is_lost_or_doubled_when_nodes_are_killed_with_their_workers(
    server: PostgresServer, tmp_path: Path, loops: int
) -> None:
    with rig_of(server, tmp_path) as rig, busy(loops):
        found = in_rounds(
            rig,
            HALF if loops else ROUNDS,
            ClusterNode.kill_with_workers,
            ClusterNode.start,
            f"killed with its workers, beside {loops} busy loops",
        )

    times = sorted(each for judgement in found for each in judgement.settled_after_s)
    if not loops:
        assert times[len(times) // 2] < P50_S
        assert times[-1] < MAX_S


@pytest.mark.requirement("cluster:daemon-killed")
def test_no_attempt_is_repeated_when_daemons_are_killed_alone_and_started_again(
    server: PostgresServer, tmp_path: Path
) -> None:
    def restart(node: ClusterNode) -> None:
        node.kill()
        node.start()

    with rig_of(server, tmp_path) as rig:
        found = in_rounds(rig, ROUNDS, restart, lambda _: None, "killed alone, started again")

    assert sum(each.repeated for each in found) == 0


@pytest.mark.requirement("cluster:drain")
def test_no_two_workers_of_a_run_overlap_when_nodes_are_stopped_at_work(
    server: PostgresServer, tmp_path: Path
) -> None:
    def restart(node: ClusterNode) -> None:
        node.stop()
        node.start()

    with rig_of(server, tmp_path) as rig:
        in_rounds(rig, HALF, restart, lambda _: None, "stopped at work, started again")


@pytest.mark.requirement("cluster:node-frozen")
def test_no_two_workers_of_a_run_overlap_when_nodes_freeze(
    server: PostgresServer, tmp_path: Path
) -> None:
    def freeze(node: ClusterNode) -> None:
        node.freeze()
        pause(30)
        node.thaw()

    with rig_of(server, tmp_path) as rig:
        in_rounds(rig, HALF, freeze, started_again, "frozen for 30 s")


@pytest.mark.requirement("cluster:cut-from-database")
def test_no_two_workers_of_a_run_overlap_when_nodes_are_cut_from_the_database(
    server: PostgresServer, tmp_path: Path
) -> None:
    def cut(node: ClusterNode) -> None:
        node.to_database.cut()
        pause(3 * LEASE_S)
        node.to_database.mend()

    with rig_of(server, tmp_path) as rig:
        in_rounds(rig, HALF, cut, started_again, f"cut from PostgreSQL for {3 * LEASE_S:g} s")


@pytest.mark.requirement("cluster:cut-from-peers")
def test_a_node_that_is_cut_from_its_peers_loses_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    def cut(node: ClusterNode) -> None:
        node.cut_from_peers = True
        pause(3 * LEASE_S)
        node.cut_from_peers = False

    with rig_of(server, tmp_path) as rig:
        before = rig.epochs()
        found = in_rounds(
            rig, HALF, cut, lambda _: None, f"cut from its peers for {3 * LEASE_S:g} s"
        )
        assert rig.epochs() == before

    assert sum(each.repeated for each in found) == 0


@pytest.mark.requirement("store:pooler")
def test_nothing_is_lost_or_doubled_when_a_node_and_the_pooler_before_the_database_are_killed(
    server: PostgresServer, tmp_path: Path
) -> None:
    most = 0
    with pooled(server) as pooler, rig_of(server, tmp_path, pooler=pooler.directory) as rig:

        def kill_both(node: ClusterNode) -> None:
            nonlocal most
            most = max(most, _connections(server))
            node.kill_with_workers()
            pooler.kill()
            pause(LEASE_S / 2)
            pooler.start()

        in_rounds(rig, HALF, kill_both, ClusterNode.start, "killed with the pooler")
        most = max(most, _connections(server))

    sys.stdout.write(f"  {most} connections of the server for {len(rig.nodes)} nodes\n")
    assert most <= CONNECTIONS_MAX


def _connections(server: PostgresServer) -> int:
    """Of clients, without the one that asks."""
    [(found,)] = server.asked(
        "SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )
    return int(str(found))


def started_again(node: ClusterNode) -> None:
    """A node that was fenced begins anew by itself, under another identity."""
    until(node.is_well, what=f"{node.name} takes part again", pause_s=0.1)


@pytest.mark.requirement("cluster:database-away")
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_no_owner_changes_when_the_database_is_away(
    server: PostgresServer, tmp_path: Path, how: str
) -> None:
    with rig_of(server, tmp_path) as rig:
        load, victim = burst(rig, 0)
        load.until_accepted(OPEN_MIN)
        before = rig.owners()
        load.note(f"PostgreSQL {how}", victim.name)
        if how == "killed":
            server.kill()
        else:
            signal_all(server, signal.SIGSTOP)
        begun = time.monotonic()
        refused = _refused(rig, begun + OUTAGE_S)
        pause(max(begun + OUTAGE_S - time.monotonic(), 0))
        if how == "killed":
            server.start()
        else:
            signal_all(server, signal.SIGCONT)
        load.finish(ROUND_S)
        found = judge(load)
        after = rig.owners()

    told(f"PostgreSQL {how} for {OUTAGE_S:g} s", [found])
    assert found.wrong == []
    assert refused
    assert after == before
    assert found.repeated == 0


@pytest.mark.requirement("cluster:database-away")
def test_a_synchronous_standby_that_takes_over_loses_nothing_and_no_owner_changes(
    server: PostgresServer, tmp_path: Path
) -> None:
    with rig_of(server, tmp_path) as rig, standby_of(server, is_synchronous=True) as standby:
        load, victim = burst(rig, 0)
        load.until_accepted(OPEN_MIN)
        before = rig.owners()
        load.note("failed over", victim.name)
        rig.fail_over(standby)
        load.finish(ROUND_S)
        found, after = judge(load), rig.owners()
        said = [*map(_went_back, rig.nodes)]

    told("failed over to a synchronous standby", [found])
    assert found.wrong == []
    assert after == before
    assert found.repeated == 0
    assert said == ["", "", ""]


@pytest.mark.requirement("cluster:database-away")
def test_a_standby_that_lacks_commits_is_said_to_have_gone_back_in_time(
    server: PostgresServer, tmp_path: Path
) -> None:
    with rig_of(server, tmp_path) as rig, standby_of(server, is_synchronous=False) as standby:
        with Client(rig.nodes[0].home.paths.socket, timeout_s=60) as client:
            client.post("/v1/runs", rig.nodes[0].home.spawn_body("true"))
            standby.set("primary_conninfo", "")
            until(
                lambda: not server.asked("SELECT 1 FROM pg_stat_replication"),
                what="it follows no more",
                pause_s=0.05,
            )
            for _ in range(5):
                client.post("/v1/runs", rig.nodes[0].home.spawn_body("true"))
        rig.fail_over(standby)
        said = until(
            lambda: next(filter(None, map(_went_back, rig.nodes)), None),
            what="its node says it",
            pause_s=0.2,
        )
    assert re.search("[0-9]+ commits of this node gone", said)


def _went_back(node: ClusterNode) -> str:
    with suppress(SubagentsError), client_of(node, "agent:main:main") as client:
        return str(client.get("/v1/cluster")["wentBack"] or "")
    return ""


def _refused(rig: ClusterRig, due: float) -> bool:
    """Whether a call that changes something is refused as one that can be repeated."""
    with Client(rig.nodes[0].home.paths.socket, timeout_s=5) as client:
        while time.monotonic() < due:
            try:
                client.post("/v1/runs", rig.nodes[0].home.spawn_body("true"))
            except SubagentsError as error:
                if error.code == "store_unavailable":
                    return True
    return False


def signal_all(server: PostgresServer, number: signal.Signals) -> None:
    """The server with all its processes."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    for pid in (server.pid, *map(int, children)):
        with suppress(ProcessLookupError):  # one that ended between the two
            os.kill(pid, number)


@pytest.mark.requirement("cluster:busy-machine")
def test_no_node_loses_anything_on_a_machine_that_is_busy(
    server: PostgresServer, tmp_path: Path
) -> None:
    seconds = 5 * 60 * ROUNDS / 20
    with ClusterRig(
        server,
        tmp_path,
        nodes=4,
        lease_s=LEASE_S,
        slots=256,
        beat_s=0.5,
        module=LOADED_NODE,
        env=LOADED_ENV,
    ) as rig:
        before = rig.owners(), rig.epochs()
        with busy(16):
            inner = begin_load(rig, runs_per_s=BUSY_RUNS_PER_S, seconds=seconds)
            # And workers that are processes, spawned over HTTP at any node.
            outer = ClusterLoad(
                rig, sessions=4, runs=round(seconds), seconds=(0.5, 1), pause_s=2, seed="busy"
            )
            outer.begin()
            done = inner.finish(within_s=2 * seconds + ROUND_S)
            outer.is_enough = True
            outer.finish(ROUND_S)
        workers = judge(outer)
        after = rig.owners(), rig.epochs()

    told("beside 16 busy loops", [workers])
    sys.stdout.write(f"  {done.runs} runs inside the nodes, {done.runs_per_s:.0f} a second\n")
    assert after == before
    assert done.wrong == []
    assert workers.wrong == []
    assert workers.repeated == 0
    assert done.runs_per_s >= BUSY_RUNS_MIN_PER_S


@pytest.mark.requirement("cluster:drain")
def test_nodes_that_are_upgraded_one_after_the_other_are_not_noticed(
    server: PostgresServer, tmp_path: Path
) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    with rig_of(server, tmp_path) as rig:
        load = ClusterLoad(
            rig, sessions=9, runs=10_000, seconds=(1, 3), pause_s=9 / DEPLOY_RUNS_PER_S, retries=0
        )
        load.begin()
        load.until_accepted(9)
        for node in chance.sample(rig.nodes, k=len(rig.nodes)):
            load.note("drained", node.name)
            node.drain()
            node.start()
            rig.until_divided()
        load.is_enough = True
        load.finish(ROUND_S)
        found = judge(load)

    told("drained and started again, one after the other, without retries", [found])
    assert found.wrong == []
    assert found.repeated == 0


@pytest.mark.requirement("cluster:node-lost")
def test_one_node_that_is_back_after_a_power_cut_of_all_answers_for_the_others(
    server: PostgresServer, tmp_path: Path
) -> None:
    with rig_of(server, tmp_path) as rig:
        sessions = {
            rig.owner_of(each).name: each for each in map("agent:main:s{}".format, range(20))
        }
        assert len(sessions) == len(rig.nodes)
        for node in rig.nodes:
            node.kill_with_workers()
        back, begun, took = rig.nodes[0], time.monotonic(), list[float]()
        back.start()
        for session in sessions.values():
            with client_of(back, session) as client:
                assert result_of(client, spawned(client, tmp_path, "true"))[0] == "ok"
            took.append(time.monotonic() - begun)
    sys.stdout.write(f"\nsessions of all answered after {[round(each, 1) for each in took]} s\n")
