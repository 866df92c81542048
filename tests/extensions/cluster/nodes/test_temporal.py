"""Nodes whose places are found by a real Temporal: it is killed, frozen and cut off under load.

It only holds up what has no place yet. ``CLUSTER_OUTAGE_S`` says how long it is away in the long
series (60), ``CLUSTER_ROUNDS`` / 2 how often a node is cut off. What was counted is printed.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, Judgement, judge, pause
from tests.extensions.cluster.nodes.cluster_rig import ClusterRig
from tests.extensions.cluster.nodes.node_calls import client_of, other_than, result_of, spawned
from tests.extensions.cluster.places.temporal_server import TemporalServer, history, temporal
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.values import SessionKey

pytest.importorskip("temporalio")

OUTAGE_S: Final = float(os.environ.get("CLUSTER_OUTAGE_S", "60"))
CUTS: Final = max(int(os.environ.get("CLUSTER_ROUNDS", "20")) // 2, 1)
LEASE_S: Final = 6.0
AFTER_S: Final = 30.0
"""Longer than Temporal waits for an activity that a node got before the outage."""
SPAWN_S: Final = 2.0
"""Between two spawns of one caller."""
SETTLE_S: Final = 120.0
SESSION: Final = "agent:main:temporal"
SECRETS: Final = tuple(f"hush-{each}" for each in ("task", "variable", "output", "directory"))


@pytest.fixture
def temporal_server(tmp_path: Path) -> Iterator[TemporalServer]:
    """One for each test, with its memory in a file."""
    directory = tmp_path / "temporal"
    directory.mkdir()
    with temporal(directory) as server:
        yield server


def elsewhere(rig: ClusterRig) -> Callable[[str], str]:
    """The place of a session's runs: a node that does not decide about them."""
    owners = rig.owners()
    names = [node.name for node in rig.nodes]

    def place_of(session: str) -> str:
        owner = owners[partition_of(SessionKey(session))]
        return names[names.index(owner) - 1]

    return place_of


def load_of(rig: ClusterRig, *, sessions: int, seconds: float, seed: str) -> ClusterLoad:
    """Callers that spawn work for other nodes for so long, each a run every ``SPAWN_S``."""
    return ClusterLoad(
        rig,
        sessions=sessions,
        runs=max(round(seconds / SPAWN_S), 1),
        seconds=(0.5, 2),
        pause_s=SPAWN_S,
        seed=seed,
        place_of=elsewhere(rig),
    )


def require_nothing_moved_or_repeated(
    rig: ClusterRig, found: Judgement, before: tuple[dict[int, str], dict[int, int]]
) -> None:
    assert found.wrong == []
    assert found.repeated == 0
    # Nor any attempt that never came to a worker.
    again = rig.asked(
        "SELECT run_id, convert_from(data, 'UTF8') FROM journal WHERE run_id IN (SELECT run_id"
        " FROM journal WHERE type = 'SlotGranted' GROUP BY run_id HAVING count(*) > 1)"
        " ORDER BY run_id, seq"
    )
    assert again == [], "\n".join(f"{run_id} {event}" for run_id, event in again)
    assert (rig.owners(), rig.epochs()) == before


def through_outage(
    rig: ClusterRig,
    begin: Callable[[], None],
    end: Callable[[], None],
    *,
    sessions: int,
    seconds: float,
    after_s: float,
) -> str:
    """Take Temporal away under load, look at what goes on, give it back, and judge; a report."""
    load = load_of(rig, sessions=sessions, seconds=seconds + 4 * SPAWN_S, seed="outage")
    owner = rig.owner_of(SESSION)
    place = other_than(rig, owner)
    go, begun, late = (rig.root / name for name in ("go", "begun", "late"))
    held = f"touch {begun}; until test -e {go}; do sleep 0.05; done; echo $SUBAGENTS_SOCKET"
    there = ("ok", str(place.home.paths.socket))
    with ExitStack() as stack:
        client = stack.enter_context(client_of(owner, SESSION))
        running = spawned(client, rig.root, held, place=place.name)
        load.begin()
        load.until_accepted(sessions)
        until(begun.exists, what="a run works on another node")
        before = rig.owners(), rig.epochs()

        begin()
        away_at = time.monotonic()
        try:
            delayed = spawned(client, rig.root, f"touch {late}", place=place.name)
            go.touch()
            assert result_of(client, running) == there
            here = spawned(client, rig.root, "echo here")
            assert result_of(client, here) == ("ok", "here")
            pause(seconds - (time.monotonic() - away_at))
            assert (rig.owners(), rig.epochs()) == before
            assert not late.exists()
        finally:
            end()
        back_at = time.monotonic()

        until(late.exists, what="what waited is placed", within_s=SETTLE_S)
        first_s = time.monotonic() - back_at
        load.finish(SETTLE_S)
        all_s = time.monotonic() - back_at
        assert result_of(client, delayed)[0] == "ok"
        pause(after_s)
        shown: Any = client.get(f"/v1/runs/{delayed}")
        assert [each["node"] for each in shown["attempts"]] == [place.name]
    found = judge(load)
    require_nothing_moved_or_repeated(rig, found, before)
    ended = [run.settled_at or 0 for run in load.accepted.values()]
    return (
        f"{found.runs} runs, {sum(away_at < each < back_at for each in ended)} of them ended"
        f" meanwhile, {found.repeated} attempts repeated, 0 owners changed; what waited was placed"
        f" within {first_s:.1f} s, all had ended after {all_s:.1f} s"
    )


def told(text: str) -> None:
    """For whoever watches."""
    sys.stdout.write(f"\n{text}\n")


@pytest.mark.requirement("cluster:temporal-away")
def test_work_goes_on_while_temporal_is_away_and_new_work_elsewhere_waits_for_it(
    server: PostgresServer, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path, nodes=2, temporal=temporal_server) as rig:
        through_outage(
            rig,
            temporal_server.kill,
            temporal_server.start,
            sessions=3,
            seconds=3 * rig.lease_s,
            after_s=0,
        )


@pytest.mark.timeout(600 + 3 * OUTAGE_S)
@pytest.mark.requirement("cluster:temporal-away")
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_no_owner_changes_and_no_attempt_is_repeated_when_temporal_is_away(
    server: PostgresServer, temporal_server: TemporalServer, tmp_path: Path, how: str
) -> None:
    begin, end = {
        "killed": (temporal_server.kill, temporal_server.start),
        "frozen": (temporal_server.freeze, temporal_server.thaw),
    }[how]
    with ClusterRig(
        server, tmp_path, lease_s=LEASE_S, slots=256, beat_s=0.5, temporal=temporal_server
    ) as rig:
        report = through_outage(rig, begin, end, sessions=12, seconds=OUTAGE_S, after_s=AFTER_S)
    told(f"Temporal {how} for {OUTAGE_S:g} s: {report}")


@pytest.mark.timeout(300 + CUTS * SETTLE_S)
@pytest.mark.requirement("cluster:cut-from-temporal")
def test_a_node_that_is_cut_from_temporal_moves_and_repeats_nothing(
    server: PostgresServer, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    runs, waited_s = 0, list[float]()
    with ClusterRig(
        server, tmp_path, lease_s=LEASE_S, slots=256, beat_s=0.5, temporal=temporal_server
    ) as rig:
        before = rig.owners(), rig.epochs()
        for number, victim in enumerate(islice(cycle(rig.nodes), CUTS)):
            cut_s = chance.uniform(0.5, 2) * LEASE_S
            load = load_of(rig, sessions=12, seconds=cut_s + 2 * SPAWN_S, seed=f"cut{number}")
            load.begin()
            load.until_accepted(12)
            assert victim.to_temporal is not None
            victim.to_temporal.cut()
            pause(cut_s)
            victim.to_temporal.mend()
            mended_at = time.monotonic()
            load.finish(SETTLE_S)
            waited_s.append(time.monotonic() - mended_at)
            found = judge(load)
            require_nothing_moved_or_repeated(rig, found, before)
            runs += found.runs
    told(
        f"{CUTS} × a node cut from Temporal among {runs} runs: 0 attempts repeated, 0 owners"
        f" changed; all had ended {max(waited_s):.1f} s after the mend at most"
    )


@pytest.mark.requirement("cluster:temporal-secrets")
def test_temporal_is_told_ids_and_labels_and_nothing_of_what_a_run_is_about(
    server: PostgresServer, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    in_task, in_variable, said, directory = SECRETS
    (tmp_path / directory).mkdir()
    with ClusterRig(server, tmp_path, nodes=2, temporal=temporal_server) as rig:
        owner = rig.owner_of(SESSION)
        place = other_than(rig, owner)
        with client_of(owner, SESSION) as client:
            run_id = spawned(
                client,
                tmp_path / directory,
                f": {in_task}; echo {said}; echo $TOKEN | wc -c",
                environment={"TOKEN": in_variable},
                place=place.name,
            )
            assert result_of(client, run_id) == ("ok", f"{said}\n{len(in_variable) + 1}")
        told_to_it = asyncio.run(history(temporal_server.target))
        kept = b"".join(
            each.read_bytes() for each in temporal_server.database.parent.glob("temporal.db*")
        )

    [(queue, arguments, described)] = told_to_it
    assert queue == f"subagents/label/{place.name}"
    attempt, epoch = arguments
    assert attempt == f"{run_id}#1"
    assert isinstance(epoch, int)
    # What is looked for would be found, had it been said.
    assert run_id.encode() in kept
    assert run_id in described
    for secret in SECRETS:
        assert secret not in described
        assert secret.encode() not in kept
