"""Without a token nobody gets much of the daemon's memory, descriptors or time."""

import asyncio
import resource
import sys
from pathlib import Path

import pytest
from tests.extensions.web.test_tcp import Port, play

from subagents.extensions.web import tcp_protocol


async def said(port: Port, *sent: bytes) -> bytes:
    """What the daemon answers before it closes the connection."""
    reader, writer = await asyncio.open_connection(port.host, port.number)
    try:
        async with asyncio.timeout(20):
            try:
                for each in sent:
                    writer.write(each)
                    await writer.drain()
                return await reader.read()
            except ConnectionError:
                return b"cut off"
    finally:
        writer.close()


HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LARGE = {
    "one long header": HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
    "a header without end": HEAD + b"X: " + b"a" * 300_000,
    "a name without end": HEAD + b"a" * 300_000,
    "a long address": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n",
    "many headers": HEAD + b"a: b\r\n" * 200 + b"\r\n",
}


@pytest.mark.requirement("tcp:bounded-head")
@pytest.mark.parametrize("head", LARGE.values(), ids=LARGE)
def test_a_large_head_is_refused(tmp_path: Path, head: bytes) -> None:
    async def scenario(port: Port) -> None:
        assert (await said(port, head)).startswith((b"HTTP/1.1 431 ", b"cut off"))
        assert await port.status("/healthz", {}) == 200

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:bounded-head")
def test_a_head_that_does_not_end_in_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_protocol, "HEAD_S", 0.2)

    async def scenario(port: Port) -> None:
        for begun in (b"", HEAD):
            assert (await said(port, begun)).startswith(b"HTTP/1.1 408 ")
        # A second request on a connection has the same time again.
        whole = HEAD.replace(b"Host: x", f"Host: 127.0.0.1:{port.number}".encode()) + b"\r\n"
        answers = await said(port, whole, HEAD)
        assert answers.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answers

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:connections")
def test_so_many_connections_and_no_more_until_one_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_protocol, "CONNECTIONS_PER_PEER_MAX", 3)

    async def scenario(port: Port) -> None:
        held = [await asyncio.open_connection(port.host, port.number) for _ in range(3)]
        assert (await said(port, b"")).startswith(b"HTTP/1.1 503 ")
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(20):
            while (await said(port, HEAD + b"Connection: close\r\n\r\n")).startswith(
                b"HTTP/1.1 503"
            ):
                pass

    play(tmp_path, scenario)


@pytest.mark.requirement("tcp:connections")
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in kilobytes")
def test_memory_is_flat_under_a_thousand_requests_that_are_half_sent(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        writers = []
        for _ in range(1_000):
            _, writer = await asyncio.open_connection(port.host, port.number)
            writer.write(HEAD + b"X: " + b"a" * 60_000)
            writers.append(writer)
        assert await port.home.ok("GET", "/healthz") == {"status": "ok"}
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        for writer in writers:
            writer.transport.abort()
        assert grown_kb < 150_000

    play(tmp_path, scenario)
