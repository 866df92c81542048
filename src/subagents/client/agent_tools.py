"""The agents' tools as methods, for programs that give them to a model that they drive.

Same names, same answers, same errors as over MCP. Names of tools stay as they are everywhere,
parameters are snake_case as all of Python, and go over the wire in camelCase. A call speaks for an
agent: what ``allow_agents`` does not name it cannot spawn, which ``Orchestrator.spawn``, a person's
own hand, can.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, Unpack, cast

from subagents.api.tools.repeatable import WAIT, WAIT_S
from subagents.api.wire.requests import Action
from subagents.client.client import AsyncClient, Document, error_from, persistently_async, segment
from subagents.client.spawn_keywords import SpawnParameters
from subagents.client.spawn_request import camel_keys
from subagents.text import camel


class Tools:
    """One method for each tool of a requester; each returns the tool's structured document.

    What an answer hands over is consumed by it. Every method raises the ``SubagentsError`` that the
    tool refuses with, and ``DaemonUnreachable`` when nobody answers; then the call may be repeated.
    ``sessions_wait`` goes on with the next daemon by itself.
    """

    def __init__(self, client: AsyncClient) -> None:
        """Use ``Orchestrator.tools``."""
        self._client = client

    async def sessions_spawn(
        self,
        task: str | None = None,
        *,
        batch: Sequence[Mapping[str, object]] | None = None,
        **parameters: Unpack[SpawnParameters],
    ) -> Document:
        """Start a run, or with ``batch`` many that name each other by label.

        Args:
            task: What to do, complete in itself; 1 byte to 256 KiB.
            batch: 1 to 1,000 sets of parameters, instead of ``task``: all or nothing.
            parameters: As for ``Orchestrator.spawn``; with ``batch`` they hold for all its runs.

        Returns:
            The receipt; with ``batch``: ``{status, receipts}``.

        Raises:
            Forbidden: A guardrail; nothing was stored.
            UsageError: A parameter; nothing was stored.
        """
        asked = {"task": task, "batch": batch, **parameters}
        return await self._use("sessions_spawn", asked)

    async def sessions_wait(
        self,
        run_ids: Sequence[str] = (),
        *,
        until: Literal["any", "all"] = "any",
        timeout_seconds: float = WAIT_S,
    ) -> Document:
        """Wait for runs: ``{completed, pending, errors}``; no error on timeout, safe to repeat.

        Args:
            run_ids: At most 1,000; empty = all of this session's.
            until: Whether the first of them is enough.
            timeout_seconds: 0 to 600.
        """
        clock = asyncio.get_running_loop().time
        due = clock() + timeout_seconds

        async def wait() -> Document:
            # A negative time is left as it is: the daemon refuses it.
            left = max(due - clock(), min(timeout_seconds, 0.0))
            asked = {"run_ids": list(run_ids), "until": until, "timeout_seconds": left}
            return await self._use(WAIT, asked, wait_s=left)

        return await persistently_async(wait, until=due)

    async def sessions_list(
        self,
        *,
        kinds: Sequence[Literal["run", "session"]] = (),
        active_minutes: float | None = None,
        label: str | None = None,
        agent_id: str | None = None,
        phase: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Document:
        """This session's runs, newest first; paged by ``nextOffset``."""
        asked = {
            "kinds": list(kinds),
            "active_minutes": active_minutes,
            "label": label,
            "agent_id": agent_id,
            "phase": phase,
            "tag": tag,
            "limit": limit,
            "offset": offset,
        }
        return await self._use("sessions_list", asked)

    async def sessions_tree(self, root: str | None = None, *, depth: int | None = None) -> Document:
        """The trees of this session, or the one below ``root``."""
        return await self._use("sessions_tree", {"root": root, "depth": depth})

    async def sessions_history(
        self,
        session_key: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        include_tools: bool = False,
    ) -> Document:
        """The messages of a child session, without secrets; paged by ``nextOffset``."""
        asked = {
            "session_key": session_key,
            "limit": limit,
            "offset": offset,
            "include_tools": include_tools,
        }
        return await self._use("sessions_history", asked)

    async def sessions_send(
        self,
        message: str,
        *,
        session_key: str | None = None,
        label: str | None = None,
        mode: Literal["steer", "followup"] = "steer",
        add_tokens: int | None = None,
        add_cost_usd: float | None = None,
    ) -> Document:
        """Send a worker a message; ``{status}`` is ``steered``, ``queued`` or ``accepted``."""
        asked = {"message": message, "session_key": session_key, "label": label, "mode": mode}
        more = {"add_tokens": add_tokens, "add_cost_usd": add_cost_usd}
        return await self._use("sessions_send", {**asked, **more})

    async def subagents(
        self,
        action: Action,
        target: str | None = None,
        *,
        message: str | None = None,
        **parameters: object,
    ) -> Document:
        """One of the smaller acts; ``log`` takes ``grep``, ``since``, ``type``, …"""
        asked = {"action": action, "target": target, "message": message, **parameters}
        return await self._use("subagents", asked)

    async def agents_list(
        self,
        hint: str | None = None,
        *,
        tags: Sequence[str] = (),
        cost_tier: Literal["free", "cheap", "medium", "expensive"] | None = None,
        limit: int | None = None,
    ) -> Document:
        """The agents this session may spawn, with a hint or tags ranked; spawns nothing."""
        asked = {"hint": hint, "tags": list(tags), "cost_tier": cost_tier, "limit": limit}
        return await self._use("agents_list", asked)

    async def respond_orchestrator_request(
        self,
        request_id: str,
        response: str,
        *,
        decision: Literal["answer", "approve", "deny"] = "answer",
    ) -> Document:
        """Answer a worker's question; the first answer counts."""
        asked = {"request_id": request_id, "response": response, "decision": decision}
        return await self._use("respond_orchestrator_request", asked)

    async def _use(
        self, name: str, arguments: Mapping[str, object], *, wait_s: float = 0.0
    ) -> Document:
        given = {camel(key): value for key, value in arguments.items() if value is not None}
        body = camel_keys(given)
        answer = await self._client.post(f"/v1/tools/{segment(name)}", body, timeout_s=wait_s)
        structured = cast("Document", answer["structured"])
        if answer["isError"]:
            raise error_from(structured)
        offered = answer.get("offered") or ()
        if offered:
            # Not acknowledged by the daemon with its answer, nor here before the caller has it.
            self._client.hand_over(cast("list[str]", offered))
        return structured
