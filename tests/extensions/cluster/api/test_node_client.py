"""Nodes are called by their names, wherever the start of them that is alive listens."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.api.tcp_options import has_nagle
from tests.extensions.cluster.api.door_nodes import Nodes, play

from subagents.errors import NodeOver, NodeUnreachable
from subagents.extensions.cluster.api import node_listener
from subagents.extensions.cluster.api.node_client import PeerClient


async def told(request: Request) -> Response:
    body = (await request.body()).decode()
    asked = {"method": request.method, "query": str(request.query_params), "body": body}
    return JSONResponse(asked, status_code=418)


async def pieces(_request: Request) -> Response:
    async def never_ending() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    return StreamingResponse(never_ending())


ROUTES = (
    Route("/node/v1/told", told, methods=["GET", "POST"]),
    Route("/node/v1/pieces", pieces, methods=["POST"]),
)


@pytest.mark.requirement("cluster:node-calls")
def test_the_second_part_of_an_answer_waits_for_no_acknowledgement_of_the_first(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        anywhere = replace(nodes["a"].member, address=("127.0.0.1", 0))
        with node_listener.bound(anywhere) as listener:
            assert not await has_nagle(listener)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_a_node_answers_whatever_status_it_likes(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        nodes["b"].door._own.router.routes.extend(ROUTES)
        calls = PeerClient(nodes["a"].peers, nodes.table.survey)
        found = await calls.request("b", "POST", "/node/v1/told?x=%2F", b"{}", timeout_s=20)
        assert found.status == 418
        assert found.body == b'{"method":"POST","query":"x=%2F","body":"{}"}'
        found = await calls.request("b", "GET", "/node/v1/nowhere", timeout_s=20)
        assert found.status == 404

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_a_stream_that_says_nothing_or_loses_its_node_is_cut_off(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        nodes["b"].door._own.router.routes.extend(ROUTES)
        calls = PeerClient(nodes["a"].peers, nodes.table.survey)
        async with calls.stream("b", "POST", "/node/v1/pieces", b"", idle_s=0.2) as found:
            assert await anext(found.pieces) == b"one"
            with pytest.raises(NodeUnreachable, match="node b does not answer"):
                await anext(found.pieces)
        async with calls.stream("b", "POST", "/node/v1/pieces", b"", idle_s=20) as found:
            assert await anext(found.pieces) == b"one"
            await nodes.kill("b")
            with pytest.raises(NodeUnreachable):
                await anext(found.pieces)
        with pytest.raises(NodeUnreachable):
            await calls.request("b", "GET", "/node/v1/told", timeout_s=20)
        with pytest.raises(NodeUnreachable):
            async with calls.stream("b", "GET", "/node/v1/told", idle_s=20):
                pass

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_a_node_that_is_over_is_not_called(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        calls = PeerClient(nodes["a"].peers, nodes.table.survey)
        frozen = nodes.table.nodes["start-of-b"]
        nodes.table.nodes["start-of-b"] = frozen._replace(left_s=0.0)
        for name in ("b", "nobody"):
            with pytest.raises(NodeOver):
                await calls.request(name, "GET", "/node/v1/told", timeout_s=20)
            with pytest.raises(NodeOver):
                async with calls.stream(name, "GET", "/node/v1/told", idle_s=20):
                    pass
        nodes.table.nodes["start-of-b"] = frozen._replace(url=None)
        with pytest.raises(NodeUnreachable, match="no address"):
            await calls.request("b", "GET", "/node/v1/told", timeout_s=20)

    play(tmp_path, scenario)
