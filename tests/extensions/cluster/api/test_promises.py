"""Workers live on over an outage of the database while every other node promises to wait, too."""

from pathlib import Path

import httpx2
import pytest
from tests.extensions.cluster.api.door_nodes import Nodes, play

from subagents.extensions.cluster.api import promises
from subagents.extensions.cluster.api.node_client import PeerClient


@pytest.mark.requirement("cluster:workers-end", "cluster:outage")
def test_all_have_to_promise_and_who_says_nothing_does_not(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        says = {"b": True, "c": True}
        for name in ("b", "c"):
            routes = promises.routes(lambda name=name: says[name], lambda name=name: name)  # type: ignore[misc]  # the default binds this name
            nodes[name].door._own.router.routes.extend(routes)
        client = PeerClient(nodes["a"].peers, nodes.table.survey)
        others = [each for each in nodes.table.survey().nodes.values() if each.name != "a"]
        assert {each.name for each in others} == {"b", "c"}

        assert await promises.all_promise(client, others)
        says["c"] = False
        assert not await promises.all_promise(client, others)
        says["c"] = True
        await nodes.kill("b")
        assert not await promises.all_promise(client, others)
        assert await promises.all_promise(client, [])

    play(tmp_path, scenario)
