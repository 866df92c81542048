"""Agents of several vendors on several nodes, and what is done with them through any node.

Needs Codex: ``make test-real PROGRAMS=codex`` installs it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.agent_tree import AgentTree, agent_tree, held
from tests.e2e.live_home import until
from tests.e2e.program_setups import CLAUDE
from tests.e2e.runtime_cells import RUN_S
from tests.real.codex_setup import CODEX
from tests.store.postgres_server import running

NODES = ("n1", "n2", "n3")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.thorough,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (CLAUDE.missing() or CODEX.missing()) is not None,
        reason=str(CLAUDE.missing() or CODEX.missing()),
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentTree]:
    with running() as server, agent_tree(server, tmp_path_factory.mktemp("tree")) as found:
        yield found


@pytest.mark.requirement("cluster:tree-of-vendors")
def test_each_agent_of_a_tree_works_on_its_node_and_each_result_arrives_once(
    tree: AgentTree,
) -> None:
    session, go = tree.session(), tree.work / "once"
    task = tree.plant("once", leaf=held(go))
    root = tree.spawn("n1", session, task, CLAUDE.name, place="n2")
    until(Path(f"{go}.begun").exists, what="the command works", within_s=RUN_S)
    codex, leaf = tree.labelled("once-codex"), tree.labelled("once-leaf")

    places = {root: "n2", codex: "n3", leaf: "n1"}
    for run_id, place in places.items():
        assert tree.at_work(run_id) == {place}
        assert tree.sockets_told(run_id) == {place}
    go.touch()
    found = tree.result("n3", session, root)

    assert found["outcome"]["status"] == "ok", found
    socket = tree.node("n1").home.paths.socket
    assert f"Claude Code heard: Codex heard: leaf: {socket}" in found["result"]
    for run_id, place in places.items():
        for door in NODES:
            shown = tree.show(door, run_id)
            assert [each["node"] for each in shown["attempts"]] == [place]
            assert shown["outcome"]["status"] == "ok"
        until(lambda run_id=run_id: tree.consumed(run_id), what="it is consumed")  # type: ignore[misc]
        assert tree.consumed(run_id) == 1
    for door in NODES:
        with tree.client(door, session) as client:
            assert client.get("/v1/inbox")["messages"] == []
