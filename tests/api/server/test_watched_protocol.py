import asyncio
import socket
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send
from tests.api.home_daemon import DEADLINE_S
from tests.api.server.one_server import GET, one_server

from subagents.api.calls.hand_over import is_taken

NO_REQUEST = b"\x00\r\n\r\n"


async def taken(path: Path, *, is_ours: bool) -> bool:
    """Whether an answer counts as taken that the client reads, then leaves, or makes us leave."""
    found = asyncio.get_running_loop().create_future()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"told", "more_body": True})
        found.set_result(await is_taken(scope, receive, asyncio.Event()))
        await send({"type": "http.response.body"})

    async with one_server(path, answer):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(GET + NO_REQUEST if is_ours else GET)
            client.setblocking(False)
            if not is_ours:
                async with asyncio.timeout(DEADLINE_S):
                    while b"told" not in await asyncio.get_running_loop().sock_recv(client, 65_536):
                        pass
                client.close()
            async with asyncio.timeout(DEADLINE_S):
                return bool(await found)


@pytest.mark.requirement("inbox:after-hand-over")
@pytest.mark.parametrize("is_ours", [True, False])
def test_an_answer_on_a_connection_that_we_end_is_not_taken(
    tmp_path: Path, *, is_ours: bool
) -> None:
    assert asyncio.run(taken(tmp_path / "s", is_ours=is_ours)) is not is_ours
