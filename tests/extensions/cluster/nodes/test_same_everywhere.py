"""Every route that reads answers the same at every node, whoever decides about what is asked for;
and what changes a schedule does so at any.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest
from tests.api.home_daemon import UnixConnection
from tests.extensions.cluster.nodes.door_daemons import DoorDaemon, cluster, eventually
from tests.extensions.cluster.pinned_nodes import ClusterHomes

from subagents.api.server import openapi

ITS_OWN: Final[Mapping[str, str]] = {
    "/healthz": "of the process that answers",
    "/readyz": "of the process that answers",
    "/metrics": "each is scraped",
    "/openapi.json": "of its version",
    "/v1/cluster": "says which of them answers",
    "/v1/config": "files of its machine",
    "/v1/diagnostics": "of its machine; its schedules are compared",
    "/v1/logins": "of browsers at its port",
    "/version": "of the process that answers",
    "/v1/worktrees": "directories of its machine",
}
"""What a node answers for itself, by the beginning of the path."""
STREAMS: Final = ("/v1/events", "/v1/wait", "follow")
VOLATILE: Final = frozenset(
    {
        *("seq", "nowAt", "cursor", "number", "upTo", "behind"),
        *("elapsedMs", "tookMs", "ageMs", "lastActivityAgeMs", "leftMs", "waitedMs", "workedMs"),
    }
)
"""Fields that go on with the clock, or say how far somebody knows the feed."""


def steady(found: object) -> object:
    """An answer without what changes between two calls."""
    match found:
        case dict():
            return {k: steady(v) for k, v in found.items() if k not in VOLATILE}
        case list():
            return [steady(each) for each in found]
        case str():
            return re.sub(r"\d+(\.\d+)? ?(ms|s|min)\b", "some time", found)
        case _:
            return found


class Known:
    """What there is to ask for: of one session."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.of_sel: list[str] = []
        self.schedule = self.plan = self.request = ""

    def paths(self, path: str) -> Sequence[str]:
        """The route's path, once for each thing that it can be asked about; () = for none."""
        if path.startswith("/v1/schedules/"):
            return [path.replace("{sel}", self.schedule)]
        if path.startswith("/v1/plans/"):
            return [re.sub(r"\{\w+\}", self.plan, path)]
        if path.startswith("/v1/requests/"):
            return [re.sub(r"\{\w+\}", self.request.replace(":", "%3A"), path)]
        if "{sel}" in path:
            return [path.replace("{sel}", sel) for sel in self.of_sel]
        return [] if "{" in path else [path]


async def filled(node: DoorDaemon, name: str) -> Known:
    """A session of this node with a run that ended, one at work with a question, and a schedule."""
    known = Known(node.session())
    ended = (await node.spawn(known.session, label=f"ended-{name}"))["runId"]
    at_work = (await node.spawn(known.session, "hang", label=f"work-{name}"))["runId"]
    waited = {"runIds": [ended], "timeoutSeconds": 30}
    await node.ok(known.session, "POST", "/v1/wait", waited)

    async def works() -> bool:
        shown = await node.ok(known.session, "GET", f"/v1/runs/{at_work}/status")
        return bool(shown["phase"] == "running")

    await eventually(works)
    spec = {"task": "work", "agentId": "quick", "label": "p"}
    plan = {"specs": [spec], "cwd": node.home.cwd, "name": f"plan-{name}"}
    known.plan = (await node.ok(known.session, "POST", "/v1/plans", plan))["planId"]
    steps = {"runIds": [], "until": "all", "timeoutSeconds": 2}
    await node.ok(known.session, "POST", "/v1/wait", steps)
    asked = await node.engine.questions.ask(at_work, "which?")
    known.request = asked.id
    body = {"name": f"nightly-{name}", "when": "@daily", "specs": [spec], "cwd": node.home.cwd}
    await node.ok(known.session, "POST", "/v1/schedules", body)
    known.of_sel, known.schedule = [ended, at_work], f"nightly-{name}"
    return known


def readings() -> list[str]:
    """The paths of all routes that read and answer at once."""
    return sorted(
        path
        for method, path in openapi.operations()
        if method == "GET"
        and not path.startswith(tuple(ITS_OWN))
        and not any(each in path for each in STREAMS)
    )


@pytest.mark.requirement("cluster:doors")
def test_every_route_that_reads_answers_the_same_whoever_decides(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as nodes:
            known = [await filled(node, node.name) for node in nodes]
            asked: set[str] = set()
            differ: list[str] = []
            for path in readings():
                for each in known:
                    for concrete in each.paths(path):
                        asked.add(path)
                        differ += await differing(nodes, each.session, concrete)
            assert not differ, "\n".join(differ)
            assert {"/v1/runs", "/v1/schedules", "/v1/runs/{sel}/log", "/v1/plans"} <= asked

    asyncio.run(scenario())


def answered(node: DoorDaemon, session: str, path: str) -> tuple[int, object]:
    """What a node says, whatever the form."""
    connection = UnixConnection(node.home.services.paths.socket)
    try:
        connection.request("GET", path, headers={"X-Subagents-Session": session})
        found = connection.getresponse()
        body = found.read()
    finally:
        connection.close()
    is_json = "json" in (found.getheader("content-type") or "")
    return found.status, steady(json.loads(body) if is_json else body.decode())


def differences(one: object, other: object, at: str) -> Iterator[str]:
    """Where two answers say something else."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name], f"{at} {name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{at} {number}")
    elif one != other:
        yield f"{at}: {str(one)[:200]} | {str(other)[:200]}"


async def differing(nodes: Sequence[DoorDaemon], session: str, path: str) -> list[str]:
    """What two nodes say that is not the same, also when they are asked again."""
    found: list[str] = []
    for _ in range(2):  # something may go on between the two calls
        answers = [await asyncio.to_thread(answered, node, session, path) for node in nodes]
        one, other = ([status, body] for status, body in answers)
        if not (found := [*differences(one, other, path)]):
            break
    return found


async def schedule_calls(node: DoorDaemon, session: str, name: str) -> list[tuple[int, Any]]:
    """Every call that changes a schedule, and what was answered."""
    path = f"/v1/schedules/{name}"
    calls = [("POST", f"{path}/pause"), ("POST", f"{path}/resume"), ("POST", f"{path}/run")]
    return [await node.call(session, method, each) for method, each in (*calls, ("DELETE", path))]


@pytest.mark.requirement("cluster:doors", "schedule:once")
def test_a_schedule_is_changed_at_any_node_and_its_name_is_of_one_alone(
    homes: ClusterHomes,
) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            sessions = {node: node.session() for node in (a, b)}

            def wanted(name: str) -> dict[str, object]:
                spec = {"task": "work", "agentId": "quick"}
                return {"name": name, "when": "@daily", "specs": [spec], "cwd": a.home.cwd}

            for asked in (a, b):
                added = await asked.call(sessions[b], "POST", "/v1/schedules", wanted("nightly"))
                assert added[0] == 201, added
                for node in (a, b):
                    shown = await node.ok(sessions[a], "GET", "/v1/diagnostics")
                    assert [each["name"] for each in shown["schedules"]] == ["nightly"]
                    page = await node.ok(sessions[a], "GET", "/v1/runs")
                    assert [each["name"] for each in page["scheduled"]] == ["nightly"]
                    again = await node.call(sessions[a], "POST", "/v1/schedules", wanted("nightly"))
                    assert (again[0], again[1]["code"]) == (409, "conflict")
                    instead = {**wanted("nightly"), "replace": True}
                    moved = await node.call(sessions[a], "POST", "/v1/schedules", instead)
                    assert "subagents schedule remove nightly" in moved[1]["hint"]
                    same = await node.call(sessions[b], "POST", "/v1/schedules", instead)
                    assert same[0] == 201, same
                changed = await schedule_calls(asked, sessions[a], "nightly")
                assert [status for status, _ in changed] == [200, 200, 201, 200], changed
                gone = await schedule_calls(asked, sessions[a], "nightly")
                assert [status for status, _ in gone] == [404] * 4

            both = [
                node.call(sessions[node], "POST", "/v1/schedules", wanted("weekly"))
                for node in (a, b)
            ]
            assert sorted(status for status, _ in await asyncio.gather(*both)) == [201, 409]

    asyncio.run(scenario())
