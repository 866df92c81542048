"""Schedules on three nodes, of which one is killed and one drained while their work is due."""

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig, patiently
from tests.extensions.cluster.nodes.node_calls import client_of
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.client.client import Client
from subagents.text import milliseconds_of

SCHEDULES: Final = 200
EVERY_S: Final = 30
NAMES: Final = [f"s{number:03}" for number in range(SCHEDULES)]


def asked(node: ClusterNode, ask: Callable[[Client], Any]) -> Any:
    def once() -> Any:
        with client_of(node, "agent:main:main") as client:
            return ask(client)

    return patiently(once, within_s=60)


def add(rig: ClusterRig, node: ClusterNode, name: str) -> None:
    spec = {"task": "work", "agentId": "quick"}
    when = f"every {EVERY_S}s"
    body = {"name": name, "when": when, "specs": [spec], "cwd": str(rig.root), "overlap": "allow"}

    def once() -> None:
        with client_of(node, f"agent:main:{name}") as client:
            client.post("/v1/schedules", body)

    patiently(once, within_s=60)


def changed(node: ClusterNode, what: str) -> None:
    """Do what is behind a name, or remove the schedule."""
    path = f"/v1/schedules/{what}"
    asked(node, lambda client: client.post(path, {}) if "/" in what else client.delete(path))


def listed(node: ClusterNode) -> dict[str, bool]:
    """The schedules, by what this node says, and whether each is paused."""
    found = asked(node, lambda client: client.get("/v1/schedules"))
    return {str(each["name"]): each["pausedAt"] is not None for each in found["schedules"]}


def decided(node: ClusterNode, name: str) -> tuple[list[int], list[str]]:
    """When the work of a schedule was due that was started, the earliest first, and its runs."""
    found = asked(node, lambda client: client.get(f"/v1/schedules/{name}"))["times"]
    started = [each for each in found if each["decision"] == "started"]
    due = sorted(milliseconds_of(each["dueAt"]) or 0 for each in started)
    return due, [str(run) for each in started for run in each["runIds"]]


def has_come(moment_s: float) -> bool:
    return time.monotonic() >= moment_s


@pytest.mark.requirement("schedule:once", "cluster:node-lost", "cluster:drain")
@pytest.mark.timeout(600)
def test_each_of_two_hundred_schedules_fires_once_over_a_kill_and_a_drain(
    server: PostgresServer, tmp_path: Path
) -> None:
    chance = random.Random(34)  # noqa: S311 - no secret
    with ClusterRig(server, tmp_path) as rig:
        killed, drained, _ = rig.nodes
        for name in NAMES:
            add(rig, chance.choice(rig.nodes), name)
        begun = time.monotonic()
        killed.kill_with_workers()
        until(partial(has_come, begun + EVERY_S), what="all were due", within_s=60)
        killed.start()
        rig.until_divided()
        drained.drain()
        until(partial(has_come, begun + 2.5 * EVERY_S), what="all again", within_s=120)
        drained.start()
        for node in rig.nodes:
            assert listed(node) == dict.fromkeys(NAMES, False)
        for name in NAMES:
            changed(chance.choice(rig.nodes), f"{name}/pause")
        for node in rig.nodes:
            assert listed(node) == dict.fromkeys(NAMES, True)

        made = Counter(
            str(tag) for (tag,) in rig.asked("SELECT json_array_elements_text(tags::json) FROM run")
        )
        wrong = []
        for name in NAMES:
            due, runs = decided(chance.choice(rig.nodes), name)
            gaps = {later - due[0] - number * EVERY_S * 1000 for number, later in enumerate(due)}
            if len(due) < 2 or gaps != {0} or not len(runs) == len({*runs}) == len(due):
                wrong.append(f"{name} was started at {due}: {runs}")
            if made[f"schedule:{name}"] != len(runs):
                wrong.append(f"{name} has {made[f'schedule:{name}']} runs, and knows {runs}")
        assert wrong == []

        for name in NAMES:
            changed(chance.choice(rig.nodes), name)
        assert [listed(node) for node in rig.nodes] == [{}, {}, {}]
