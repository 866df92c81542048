"""Calls to other nodes go over connections that are kept, as long as they are good."""

import asyncio
import socket
from pathlib import Path

import httpx2
import pytest
from tests.extensions.cluster.api.door_nodes import Nodes, play, until

from subagents.extensions.cluster.api.peers import NotSentError

HEADERS = [(b"x-subagents-forwarded", b"a"), (b"x-subagents-behalf", b"person")]


async def asked(nodes: Nodes, method: str = "GET", target: bytes = b"/who/2") -> int:
    url = nodes["b"].member.url
    async with nodes["a"].peers.call(url, method, target, HEADERS) as found:
        await found.body()
        return found.status


@pytest.mark.requirement("cluster:node-calls")
def test_one_connection_carries_call_after_call_until_an_answer_is_left_half_read(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        door = nodes._servers["b"][1].server_state.connections
        assert [await asked(nodes) for _ in range(3)] == [200] * 3
        [kept] = door
        nodes["b"].lines.put_nowait("one")
        call = nodes["a"].peers.call(nodes["b"].member.url, "GET", b"/stream/2", HEADERS)
        async with call as found:
            assert await anext(found.pieces()) == b"data: one\n\n"
            assert [*door] == [kept]
            assert await asked(nodes) == 200
            assert len(door) == 2
        await until(lambda: kept not in door)
        # An answer without a body has no length between nodes; what follows is another's.
        assert [await asked(nodes, "HEAD"), await asked(nodes)] == [200, 200]

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_a_connection_that_its_node_has_ended_carries_no_call(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        assert await asked(nodes) == 200
        [kept] = nodes._servers["b"][1].server_state.connections
        kept.transport.close()
        [connection] = nodes["a"].peers._kept[nodes["b"].member.url]
        await until(lambda: not connection.is_good)
        assert await asked(nodes) == 200

        await nodes.kill("b")
        with pytest.raises(NotSentError):
            await asked(nodes)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_a_node_that_acknowledges_nothing_is_given_up_by_the_kernel(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        assert await asked(nodes) == 200
        [connection] = nodes["a"].peers._kept[nodes["b"].member.url]
        found = connection._writer.get_extra_info("socket")
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert 0 < found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 30_000

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_an_address_without_a_port_is_that_of_https_and_one_that_is_none_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    async def connect(host: str, port: int, **_: object) -> None:
        called.append((host, port))
        raise ConnectionRefusedError

    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        monkeypatch.setattr(asyncio, "open_connection", connect)
        for url in ("https://b.example", "https://b.example:99999"):
            with pytest.raises(NotSentError):
                async with nodes["a"].peers.call(url, "GET", b"/", ()):
                    pass
        assert called == [("b.example", 443)]

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:node-calls")
def test_what_would_end_its_header_is_sent_to_nobody(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, _client: httpx2.AsyncClient) -> None:
        with pytest.raises(NotSentError, match="line break"):
            await asked(nodes, target=b"/who/2\r\nx-subagents-behalf: person")
        assert not nodes["b"].served

    play(tmp_path, scenario)
