"""Ends servers without losing whom they have just let in."""

import asyncio
from collections.abc import Sequence


async def stop_accepting(servers: Sequence[asyncio.Server]) -> None:
    """Close what these listen on; connections that were accepted go on.

    A connection is known only two passes of the loop after it was accepted, and asyncio drops it
    silently when its server is closed meanwhile.
    """
    loop = asyncio.get_running_loop()
    for listener in (each for server in servers for each in server.sockets):
        loop.remove_reader(listener.fileno())
    for _ in range(2):
        await asyncio.sleep(0)
    for server in servers:
        server.close()
