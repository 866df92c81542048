"""A request that can be read again: by us once more, or by the node that it is forwarded to."""

from starlette.types import Message, Receive

from subagents.api.calls.call import PLAN_BODY_BYTES_MAX, BodyTooLarge


class KeptRequest:
    """The body of a request, kept while it is read.

    In memory, as the route that reads it has it, and no more of it than any route takes.

    Args:
        receive: Of the request; nobody else reads from it any more.
        bytes_max: So much of the body is kept.
    """

    def __init__(self, receive: Receive, *, bytes_max: int = PLAN_BODY_BYTES_MAX) -> None:
        self._receive = receive
        self._left = bytes_max
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._is_complete = False

    def reader(self) -> Receive:
        """Gives the request from its beginning on; of several, one reads at a time."""
        at = 0

        async def receive() -> Message:
            nonlocal at
            if self._left < 0 or at == len(self._pieces):
                message = await self._next()
                if message["type"] != "http.request" or self._left < 0:
                    return message
            piece, at = self._pieces[at], at + 1
            more = not self._is_complete or at < len(self._pieces)
            return {"type": "http.request", "body": piece, "more_body": more}

        return receive

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            body = message.get("body", b"")
            self._left -= len(body)
            if self._left < 0:
                self._pieces.clear()  # whoever reads it now reads it alone
            else:
                self._pieces.append(body)
            self._is_complete = not message.get("more_body", False)
        return message

    async def body(self) -> bytes | None:
        """All of it; None = the client went away before.

        Raises:
            BodyTooLarge: It is more than is kept.
        """
        while not self._is_complete and self._left >= 0:
            if (await self._next())["type"] != "http.request":
                return None
        if self._left < 0:
            raise BodyTooLarge(
                f"the request body must have at most {self._bytes_max} bytes",
                details={"max": self._bytes_max},
            )
        return b"".join(self._pieces)

    async def left(self) -> None:
        """Return when the client has gone away; what else comes is kept."""
        while (await self._next())["type"] == "http.request":
            pass
