"""Plans and trees as graphs, and lists whose queries do not grow with their rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Document, Home, play

from subagents.api.calls.services import Services


@contextmanager
def statements_of(services: Services) -> Iterator[list[str]]:
    """The SQL that the store reads with within the block."""
    store: Any = services.engine._store
    found: list[str] = []
    before = store._fetched

    def counted(statement: str, parameters: Any) -> Any:
        found.append(statement)
        return before(statement, parameters)

    store._fetched = counted
    try:
        yield found
    finally:
        del store._fetched


async def a_family(home: Home, width: int = 3) -> tuple[str, list[str]]:
    parent = (await home.spawn("hang", label="parent"))["runId"]
    await home.until_phase(parent, "running")
    children = [
        (await home.spawn(label=f"child{n}", headers=home.worker(parent)))["runId"]
        for n in range(width)
    ]
    await home.wait(*children)
    return parent, children


def edges(found: Document) -> set[tuple[str, str, str]]:
    names = {node["runId"]: node["label"] for node in found["nodes"]}
    return {(names[each["source"]], names[each["target"]], each["kind"]) for each in found["edges"]}


@pytest.mark.requirement("http:graph")
async def test_a_plan_is_a_graph_of_what_waits_for_what(daemon: Home) -> None:
    specs = [
        {"task": "x", "agentId": "hang", "label": "build"},
        {"task": "x", "agentId": "quick", "label": "lint"},
        {"task": "x", "agentId": "quick", "label": "ship", "dependsOn": ["build", "lint"]},
    ]
    receipt = await daemon.ok("POST", "/v1/plans", {"specs": specs, "cwd": daemon.cwd, "name": "p"})
    runs = {each["label"]: each["runId"] for each in receipt["receipts"]}
    await daemon.wait(runs["lint"])
    await daemon.until_phase(runs["build"], "running")

    found = await daemon.ok("GET", "/v1/graph?plan=p")
    cut = await daemon.ok("GET", "/v1/graph?plan=p&limit=2")

    assert (found["planId"], found["name"], found["runs"]) == (receipt["planId"], "p", 3)
    assert [node["label"] for node in found["nodes"]] == ["build", "lint", "ship"]
    assert edges(found) == {("build", "ship", "waits"), ("lint", "ship", "waits")}
    assert found["states"] == {"running": 1, "ok": 1, "waiting": 1}
    ship = found["nodes"][2]["wait"]
    assert (ship["kind"], [each["label"] for each in ship["runs"]]) == ("runs", ["build"])
    assert found["truncated"] is None
    assert cut["truncated"] == {"shown": 2, "total": 3, "totalIsBound": False}
    assert cut["states"] == found["states"], "counts are of all"
    assert edges(cut) == set()
    for query in ("", "?plan=p&tree=last"):
        assert (await daemon.call("GET", f"/v1/graph{query}"))[0] == 422


@pytest.mark.requirement("http:graph")
async def test_a_tree_is_a_graph_of_what_spawned_what_and_counts_what_it_cuts(daemon: Home) -> None:
    parent, _ = await a_family(daemon)

    found = await daemon.ok("GET", f"/v1/graph?tree={parent}")
    cut = await daemon.ok("GET", f"/v1/graph?tree={parent}&limit=2")

    assert edges(found) == {("parent", f"child{n}", "spawned") for n in range(3)}
    assert found["states"] == {"running": 1, "ok": 3}
    assert (cut["truncated"]["shown"], cut["truncated"]["total"]) == (2, 4)
    assert cut["runs"] == 4


@pytest.mark.requirement("http:list:below")
async def test_rows_of_roots_count_the_runs_below_them_by_state(daemon: Home) -> None:
    await a_family(daemon)
    await daemon.spawn(label="alone")

    found = (await daemon.ok("GET", "/v1/runs?roots=1"))["runs"]

    assert {row["label"]: row["below"] for row in found} == {
        "parent": {"runs": 3, "states": {"ok": 3}, "isBound": False},
        "alone": None,
    }
    plain = (await daemon.ok("GET", "/v1/runs"))["runs"]
    assert {row["below"] and 1 for row in plain} == {None}


@pytest.mark.requirement("http:list:queries")
@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/v1/runs", 3),
        ("/v1/runs?roots=1", 4),
        ("/v1/tree", 3),
        ("/v1/graph?tree=parent", 3),
        ("/v1/inbox?all=1", 2),
        ("/v1/attention", 5),
    ],
)
def test_what_a_list_asks_the_store_does_not_grow_with_its_rows(
    tmp_path: Path, path: str, most: int
) -> None:
    async def scenario(home: Home) -> None:
        async def once() -> int:
            with statements_of(home.services) as found:
                await home.ok("GET", path)
            return len(found)

        async def asked() -> int:
            # The fewest: what ended just now is cleaned up meanwhile, which reads, too.
            return min([await once() for _ in range(5)])

        parent, _ = await a_family(home, 2)
        before = await asked()
        for number in range(6):
            await home.spawn("bad", label=f"more{number}")
            child = await home.spawn(label=f"c{number}", headers=home.worker(parent))
            await home.until_phase(child["runId"], "completed")
        after = await asked()

        assert after <= max(before, most) <= most

    play(tmp_path, scenario)
