"""(m): what several nodes cost over one daemon: runs per second, and processor time of each part.

Sixteen sessions spawn twenty runs each at once, every one at a node of its own choice, and each
waits until all of its runs have ended and consumes what they say. The workers are ``true``, so that
nothing is measured but us. Without a place a run works where its owner is; ``remote`` are runs that
ask for a label that another node than their owner has, so that each is offered, taken, started and
watched from afar: the worst that places can cost.

All nodes, PostgreSQL, Temporal and the callers share one machine. Read processor time: runs per
second say what is left on it.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench.cluster_caller import Caller, play
from bench.cluster_nodes import Nodes, serving_alone, serving_cluster
from bench.table import percentiles
from subagents.client.client import Client

SESSIONS: Final = 16
SLOTS: Final = 64
AGENT: Final = "true"
SINGLES: Final = 15
"""Runs one after the other, for the time of one."""

PlaceOf = Callable[[str], str | None]
"""Where the runs of a session are to work; None = they do not say."""


def alone(home: Path, *, runs: int, is_shared: bool) -> dict[str, float]:
    """One daemon that is no member, on SQLite or on PostgreSQL; see ``cluster``."""
    with serving_alone(home, is_shared=is_shared, slots=SLOTS) as nodes:
        return _measured(nodes, {"plain": _anywhere}, runs)


def cluster(home: Path, *, runs: int, nodes: int, places: str) -> dict[str, float]:
    """Runs per second, and milliseconds of processor of each part for each run.

    Args:
        home: A fresh directory.
        runs: How many in a burst, about.
        nodes: How many; of one, nothing is remote.
        places: One of ``cluster_nodes.PLACES``.

    Raises:
        RuntimeError: A node was fenced meanwhile.
    """
    serving = serving_cluster(home, nodes=nodes, slots=SLOTS, places=places)
    with serving as found:
        before = found.identities()
        kinds: dict[str, PlaceOf] = {} if places == "temporal" else {"plain": _anywhere}
        if nodes > 1:
            owners = {each: found.owner_of(each) for each in _sessions()}
            kinds["remote"] = lambda session: f"n{(owners[session] + 1) % nodes + 1}"
        sample = _measured(found, kinds, runs)
        if found.identities() != before:
            raise RuntimeError("a node was taken for dead while it was measured")
        return sample


def _sessions() -> list[str]:
    return [f"agent:main:{number}" for number in range(SESSIONS)]


def _anywhere(session: str) -> None:
    del session


def _measured(nodes: Nodes, kinds: dict[str, PlaceOf], runs: int) -> dict[str, float]:
    """Of each kind: ``…_runs_per_s``, ``…_ms`` (p50 of one run) and the parts' ``…_<part>_ms``."""
    each = max(runs // SESSIONS, 1)
    number = each * SESSIONS
    found: dict[str, float] = {}
    for kind, place_of in kinds.items():
        _burst(nodes, place_of, 1)  # imports, connections, what starts workers
        before, began = nodes.cpu(), time.perf_counter()
        _burst(nodes, place_of, each)
        took = time.perf_counter() - began
        used = nodes.cpu().since(before)
        found |= {
            f"{kind}_runs_per_s": number / took,
            f"{kind}_ms": _one_ms(nodes, place_of),
            f"{kind}_nodes_ms": used.nodes * 1000 / number,
            f"{kind}_postgres_ms": used.postgres * 1000 / number,
            f"{kind}_temporal_ms": used.temporal * 1000 / number,
        }
    return found


def _burst(nodes: Nodes, place_of: PlaceOf, runs: int) -> None:
    """Each session's runs at once, each session at one of the nodes."""
    with ThreadPoolExecutor(SESSIONS) as pool:
        playing = [
            pool.submit(
                play,
                nodes.daemons[number % len(nodes.daemons)].socket,
                session,
                runs,
                AGENT,
                place_of(session),
            )
            for number, session in enumerate(_sessions())
        ]
    for each in playing:
        each.result()


def _one_ms(nodes: Nodes, place_of: PlaceOf) -> float:
    """From spawning one run to having consumed its result, at the node that decides about it."""
    session = _sessions()[0]
    owner = nodes.owner_of(session) if len(nodes.daemons) > 1 else 0
    taken = []
    with Client(nodes.daemons[owner].socket, session=session) as client:
        caller = Caller(client, AGENT, place_of(session))
        for _ in range(SINGLES):
            began = time.perf_counter()
            caller.play(1)
            taken.append(time.perf_counter() - began)
    return percentiles(taken).p50_ms
