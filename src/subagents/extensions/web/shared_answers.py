"""Equal questions of several browsers within a moment get one answer.

Open pages look at the same second for the same lists, and the loop that answers is the one that
hands results over. Nobody hears anything older than its question: an answer is begun after the last
of those who share it asked. See docs/decisions/0116.
"""

import asyncio
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subagents.api.calls.auth import CONNECTION, Connection
from subagents.api.calls.login import Role

LISTS: Final = frozenset({"/v1/runs", "/v1/attention"})
"""What each page asks for whenever any run changes, and answers by role alone."""
GATHER_S: Final = 0.1
"""So long a question that others ask, too, waits for theirs."""
KNOWN_MAX: Final = 100


class Question(NamedTuple):
    """What must be the same for the answer to be."""

    path: str
    query: bytes
    role: Role
    encoding: str


class SharedAnswers:
    """An application that answers equal questions about lists together.

    Args:
        app: What answers the calls.
        gather_s: See ``GATHER_S``.
    """

    def __init__(self, app: ASGIApp, gather_s: float = GATHER_S) -> None:
        self._app = app
        self._gather_s = gather_s
        self._gathering: dict[Question, asyncio.Task[list[Message]]] = {}
        self._last: dict[Question, str] = {}
        """The login that asked last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope.get("state", {}).get(CONNECTION, Connection(""))
        login, path = connection.login, scope.get("path", "")
        if login is None or scope["method"] != "GET" or path not in LISTS:
            await self._app(scope, receive, send)
            return
        encoding = Headers(scope=scope).get("accept-encoding", "")
        question = Question(path, scope["query_string"], login.role, encoding)
        is_watched = self._last.get(question, login.id) != login.id
        if len(self._last) >= KNOWN_MAX:
            self._last.clear()
        self._last[question] = login.id
        if (answer := self._gathering.get(question)) is None:
            answer = asyncio.ensure_future(self._answer(question, scope, gathers=is_watched))
            self._gathering[question] = answer
        # A browser that goes away ends the answer of no other.
        for message in await asyncio.shield(answer):
            await send(message)

    async def _answer(self, question: Question, scope: Scope, *, gathers: bool) -> list[Message]:
        try:
            await asyncio.sleep(self._gather_s if gathers else 0)
        finally:
            del self._gathering[question]
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def keep(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, keep)
        return sent
