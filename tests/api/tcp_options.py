"""What the sockets of a listener are like once a server has accepted them."""

import asyncio
import socket


async def has_nagle(listener: socket.socket) -> bool:
    """Whether the second part of an answer waits until the client acknowledged the first."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Future[asyncio.BaseTransport] = loop.create_future()

    class Door(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.set_result(transport)

    async with await loop.create_server(Door, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        transport = await accepted
        connection = transport.get_extra_info("socket")
        is_off = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        transport.close()
        writer.close()
    return not is_off
