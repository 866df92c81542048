"""A call that ends with the login it was made with: a stream outlives no cookie."""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subagents.api.calls.login import Login
from subagents.extensions.web.logins import Logins

EVENTS: Final = "/v1/events"
# Many pages that are told of each commit keep the loop from handing results over; decision 0116.
REST_S: Final = 0.25
"""The stream's pause after what it said, to say more at once then; no page looks as often."""


class LoginCall:
    """One call of a browser that is logged in.

    Args:
        logins: Say when it is over.
        login: The browser's.
    """

    def __init__(self, logins: Logins, login: Login) -> None:
        self._logins = logins
        self._login = login
        self._is_open_ended = False
        """The answer has begun, says no length, and is not complete."""

    async def __call__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have it answered; when the login is over, its client is gone."""

        async def receive_or_end() -> Message:
            receiving = asyncio.ensure_future(receive())
            over = asyncio.ensure_future(self._logins.until_over(self._login.id))
            try:
                await asyncio.wait({receiving, over}, return_when=asyncio.FIRST_COMPLETED)
                return receiving.result() if receiving.done() else {"type": "http.disconnect"}
            finally:
                receiving.cancel()
                over.cancel()

        async def watched(message: Message) -> None:
            self._watch(message)
            await send(message)
            if message.get("more_body", False) and scope["path"] == EVENTS:
                await asyncio.sleep(REST_S)

        await app(scope, receive_or_end, watched)
        if self._is_open_ended:
            # The client is there, whatever the application was told: it reads an end, no error.
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _watch(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            self._is_open_ended = b"content-length" not in names
        elif not message.get("more_body", False):
            self._is_open_ended = False
