"""What a browser may keep of an answer: nothing, but of a run that ended what it has seen already.

The answer is built all the same, and compared as it is: nobody has to know what it depends on.
"""

import hashlib
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subagents.api.calls.call import is_about_settled_run

JSON: Final = "application/json"
ASK_FIRST: Final = "private, no-cache"
"""Kept, and asked for each time whether it is still so."""
NOT_MODIFIED: Final = 304


class Unchanged:
    """An application that says 304 for what the client has, as RFC 9110 13.1.2 has it.

    Args:
        app: What answers the calls.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: Message | None = None

        async def compare(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if _may_be_kept(scope, message, headers):
                    held = message
                    return
                headers.setdefault("cache-control", "no-store")
            elif held is not None:
                started, held = held, None
                message = _compared(scope, started, message)
                await send(started)
            await send(message)

        await self._app(scope, receive, compare)


def _may_be_kept(scope: Scope, start: Message, headers: Headers) -> bool:
    """Whether it is a whole answer about a run that ended."""
    return (
        scope["method"] == "GET"
        and start["status"] == 200
        and headers.get("content-type") == JSON
        and is_about_settled_run(scope)
    )


def _compared(scope: Scope, start: Message, body: Message) -> Message:
    """Complete the start of the answer, and give the body that belongs to it."""
    headers = MutableHeaders(raw=start["headers"])
    # Weak: compressed or not, it is the same.
    etag = f'W/"{hashlib.blake2b(body["body"], digest_size=16).hexdigest()}"'
    headers["etag"], headers["cache-control"] = etag, ASK_FIRST
    if etag not in Headers(scope=scope).get("if-none-match", ""):
        return body
    start["status"] = NOT_MODIFIED
    del headers["content-length"]
    return {**body, "body": b""}
