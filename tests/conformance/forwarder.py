"""Puts a bearer token before each request of a client that cannot send one; changes nothing else.

The conformance suite takes a URL and no headers, and the daemon answers nobody on TCP who brings no
token. ``Host`` and ``Origin`` pass as they came, because the suite tests what the daemon makes of
them: so the forwarder listens on the daemon's own port, one loopback address before it.
"""

import asyncio
import contextlib
import os
import sys

LISTENS_ON = "127.0.0.1"
DAEMON_ON = "127.0.0.2"
"""Linux takes all of 127.0.0.0/8 for loopback."""
VARIABLE = "FORWARDED_TOKEN"
HEAD_BYTES_MAX = 256 * 1024


async def serve(port: int, token: str) -> asyncio.Server:
    """Forward ``127.0.0.1:PORT`` to ``127.0.0.2:PORT``; each connection carries one request."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await _forward(reader, writer, port, token)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    return await asyncio.start_server(handle, LISTENS_ON, port, limit=HEAD_BYTES_MAX)


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, token: str
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    kept = [
        line
        for line in head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        if not line.lower().startswith(b"connection:")
    ]
    added = [f"Authorization: Bearer {token}".encode(), b"Connection: close"]
    there, to_there = await asyncio.open_connection(DAEMON_ON, port, limit=HEAD_BYTES_MAX)
    try:
        to_there.write(b"\r\n".join([*kept, *added]) + b"\r\n\r\n")
        copies = (
            asyncio.create_task(_copy(there, writer)),
            asyncio.create_task(_copy(reader, to_there)),
        )
        # Either side may leave first: the daemon after its answer, a client that has heard enough.
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
    finally:
        to_there.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(64 * 1024):
        writer.write(data)
        await writer.drain()


async def main(port: int) -> None:
    server = await serve(port, os.environ[VARIABLE])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
