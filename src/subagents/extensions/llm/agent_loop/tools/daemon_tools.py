"""The daemon's tools: to report, to ask, and by depth to spawn, over its Unix socket.

The same tools as over MCP, with the same schemas. The worker proves who it is with its token, by
itself. A daemon that is away comes back: calls that may be repeated wait for it.
"""

import asyncio
import math
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, cast

from subagents.api.tools.repeatable import wait_s_of
from subagents.client.client import AsyncClient, persistently_async, segment
from subagents.errors import DaemonUnreachable, SubagentsError
from subagents.extensions.llm.agent_loop.tools.loop_tools import LoopTool, Returned
from subagents.extensions.llm.agent_loop.tools.path_bounds import ToolRefused

CALL_S: Final = 660.0
"""The longest that a tool waits, and more."""
AWAY_S: Final = 120.0
"""How long a daemon may be away: a worker starts none, and has nothing better to do."""
ASK: Final = "request_orchestrator"
CALL_ID: Final = "x-subagents-call-id"
KEYED: Final = frozenset({"sessions_spawn", ASK})
"""A repeated call with the same id is the same call."""

Document = Mapping[str, object]


class DaemonTools:
    """The tools of the daemon, as the worker may use them.

    Args:
        deny: Tools that it is not to have, in lower case.
        has_news: Whether something came that the model should see before a long wait continues.
    """

    def __init__(self, deny: Collection[str], has_news: Callable[[], bool]) -> None:
        self._socket = os.environ.get("SUBAGENTS_SOCKET") or ""
        self._session = os.environ.get("SUBAGENTS_SESSION_KEY") or "agent:main:main"
        self._attempt = os.environ.get("SUBAGENTS_ATTEMPT") or "attempt"
        self._reader = os.urandom(16).hex()
        self._deny = deny
        self._has_news = has_news

    async def tools(self) -> list[LoopTool]:
        """Those that the daemon shows to this worker; none where there is no daemon.

        Raises:
            DaemonUnreachable: It did not come back in time.
        """
        if not self._socket:
            return []
        async with self._client() as client:
            answer = await persistently_async(partial(client.get, "/v1/tools"), for_s=AWAY_S)
        described = cast("list[dict[str, object]]", answer["tools"])
        return [
            self._tool(each) for each in described if str(each["name"]).lower() not in self._deny
        ]

    async def consumed(self, messages: Collection[str]) -> None:
        """Acknowledge messages of the inbox that are kept now; unacknowledged ones come again."""
        if messages:
            async with self._client() as client:
                call = partial(client.post, "/v1/inbox/ack", {"messageIds": list(messages)})
                await persistently_async(call, for_s=AWAY_S)

    @property
    def is_there(self) -> bool:
        """Whether there is a daemon at all."""
        return bool(self._socket)

    async def hold(self, need: Document, *, away_s: float) -> Document:
        """Ask for what the next request to the model may use (``POST /v1/runs/{run}/hold``).

        Raises:
            DaemonUnreachable: It did not come back within ``away_s``.
            Conflict: The attempt is being ended.
        """
        run_id = self._attempt.partition("#")[0]
        async with self._client() as client:
            call = partial(client.post, f"/v1/runs/{segment(run_id)}/hold", need, timeout_s=CALL_S)
            # What it waits for is not bounded here: another run has to use less.
            return await persistently_async(call, until=math.inf, for_s=away_s)

    def _tool(self, described: Document) -> LoopTool:
        name = str(described["name"])
        hints = cast("Document", described.get("annotations") or {})
        may_repeat = bool(name in KEYED or hints.get("readOnlyHint") or hints.get("idempotentHint"))
        return LoopTool(
            name,
            str(described["description"]),
            cast("dict[str, object]", described["inputSchema"]),
            partial(self._asked if name == ASK else self._call, name, may_repeat=may_repeat),
            is_alone=False,
        )

    async def _asked(
        self, name: str, arguments: Document, call_id: str, *, may_repeat: bool
    ) -> Returned:
        """Ask, and keep waiting for the answer without bothering the model with each pause."""
        returned, structured = await self._answer(name, arguments, call_id, may_repeat=may_repeat)
        while structured.get("status") == "pending" and not self._has_news():
            again = {"requestId": structured["requestId"]}
            returned, structured = await self._answer(name, again, call_id, may_repeat=may_repeat)
        return returned

    async def _call(
        self, name: str, arguments: Document, call_id: str, *, may_repeat: bool
    ) -> Returned:
        returned, _ = await self._answer(name, arguments, call_id, may_repeat=may_repeat)
        return returned

    async def _answer(
        self, name: str, arguments: Document, call_id: str, *, may_repeat: bool
    ) -> tuple[Returned, Document]:
        clock = asyncio.get_running_loop().time
        began, wait_s = clock(), wait_s_of(name, arguments)
        until = began + (CALL_S if wait_s is None else wait_s)
        async with self._client(call_id) as client:

            async def post() -> Document:
                left = {} if wait_s is None else {"timeoutSeconds": max(until - clock(), 0.0)}
                return await client.post(
                    f"/v1/tools/{segment(name)}", {**arguments, **left}, timeout_s=CALL_S
                )

            try:
                if may_repeat:
                    answer = await persistently_async(post, until=until, for_s=AWAY_S)
                else:
                    await persistently_async(partial(client.get, "/healthz"), for_s=AWAY_S)
                    answer = await post()
            except DaemonUnreachable as error:
                raise ToolRefused(
                    f"{error.message} Whether it received the call is unknown."
                ) from error
            except SubagentsError as error:
                raise ToolRefused(
                    f"{error.message}{f' ({error.hint})' if error.hint else ''}"
                ) from error
        offered = cast("list[str]", answer.get("offered") or [])
        returned = Returned(
            str(answer["text"]), is_error=bool(answer["isError"]), handed_over=tuple(offered)
        )
        return returned, cast("Document", answer.get("structured") or {})

    def _client(self, call_id: str | None = None) -> AsyncClient:
        headers = {} if call_id is None else {CALL_ID: f"{self._attempt}:{call_id}"}
        return AsyncClient(
            self._socket, session=self._session, reader=self._reader, headers=headers
        )
