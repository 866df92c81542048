"""Servers that stop letting anybody in."""

import asyncio
import socket
from pathlib import Path

import pytest

from subagents.api.server.listeners import stop_accepting

WAIT_S = 60.0


@pytest.mark.requirement("daemon:stop:at-once", "daemon:socket-again")
@pytest.mark.parametrize("passes", range(5))
def test_whoever_was_let_in_at_that_moment_is_served_and_whoever_comes_later_is_not(
    tmp_path: Path, passes: int
) -> None:
    path = str(tmp_path / "s")

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async def scenario() -> bytes:
        server = await asyncio.start_unix_server(greet, path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(path)
            client.setblocking(False)
            for _ in range(passes):
                await asyncio.sleep(0)
            await stop_accepting([server])
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as late:
                assert late.connect_ex(path) != 0
            async with asyncio.timeout(WAIT_S):
                return await asyncio.get_running_loop().sock_recv(client, 5)

    if passes < 2:  # nobody had looked at the listener yet
        with pytest.raises(ConnectionResetError):
            asyncio.run(scenario())
    else:
        assert asyncio.run(scenario()) == b"hello"
