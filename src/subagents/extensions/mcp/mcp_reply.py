"""How one request is answered over HTTP: with one document, or with a stream when it takes long.

A stream begins with the first thing that there is to say before the answer, or after ``PING_S``:
whoever stands between, and the client itself, would take a silent line for a dead one.
"""

import asyncio
from typing import Final

import msgspec
from starlette.types import Send

from subagents.extensions.mcp.mcp_message import Message

PING_S: Final = 15.0
"""Silence after which the client is shown a sign of life; bridges give up after 60."""
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_PING: Final = b": ping\r\n\r\n"


class Reply:
    """The answer to one request."""

    def __init__(self, message: Message, send: Send) -> None:
        self._token = message.progress_token
        self._send = send
        self._told = 0
        self.is_begun = False
        """A stream was begun: what follows goes there."""
        self._turn = asyncio.Lock()
        """Keeps events whole: the call reports its progress while we send signs of life."""

    async def tell(self, text: str) -> None:
        """Report how the call is doing, to a client that asked for it."""
        if self._token is None:
            return
        self._told += 1  # the numbers must only grow
        params = {"progressToken": self._token, "progress": self._told, "message": text}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._stream(_event(msgspec.json.encode(note)))

    async def ping(self) -> None:
        """Show that it still lives."""
        await self._stream(_PING)

    async def finish(self, status: int, document: bytes) -> None:
        """Answer.

        Args:
            status: Of HTTP, unless a stream has begun.
            document: JSON.
        """
        if self.is_begun:
            async with self._turn:
                await self._send({"type": "http.response.body", "body": _event(document)})
        else:
            await answer(self._send, status, document)

    async def _stream(self, event: bytes) -> None:
        async with self._turn:
            if not self.is_begun:
                self.is_begun = True
                start = {"type": "http.response.start", "status": 200, "headers": _STREAM}
                await self._send(start)
            await self._send({"type": "http.response.body", "body": event, "more_body": True})


async def answer(send: Send, status: int, document: bytes = b"") -> None:
    """One document, or none."""
    kind = [(b"content-type", b"application/json")] if document else []
    headers = [(b"content-length", str(len(document)).encode()), *kind]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": document})


def _event(document: bytes) -> bytes:
    """JSON has no line ends in it."""
    return b"event: message\r\ndata: " + document + b"\r\n\r\n"
