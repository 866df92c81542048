"""Clients of ``/mcp`` for tests: the protocol's own client, and one that shows the bare wire."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.api import home_daemon
from tests.api.home_daemon import DEADLINE_S, Home, UnixConnection
from tests.api.tools.tool_callers import CONFIG

from subagents.domain.run.values import RunId

ERAS = ("legacy", "auto")
"""How the client connects: with a handshake, or it asks which of the two we speak."""
MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
DESK = "agent:main:desk"
_META = "io.modelcontextprotocol/"

Document = dict[str, Any]
each_era = pytest.mark.parametrize("era", ERAS)


def play(place: Path, scenario: Callable[[Home], Awaitable[None]], config: str = CONFIG) -> None:
    home_daemon.play(place, scenario, config)


def desk(home: Home, session: str = DESK, **more: str) -> dict[str, str]:
    """The headers of a top-level session's client."""
    return {"X-Subagents-Session": session, "X-Subagents-Cwd": home.cwd, **more}


@contextlib.asynccontextmanager
async def connected(home: Home, mode: str, headers: Mapping[str, str]) -> AsyncIterator[Client]:
    """The ``mcp`` package's client, over the daemon's Unix socket."""
    transport = httpx2.AsyncHTTPTransport(uds=str(home.services.paths.socket))
    async with (
        httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=DEADLINE_S) as http,
        Client(
            streamable_http_client("http://localhost/mcp", http_client=http), mode=mode
        ) as found,
    ):
        yield found


class Wire:
    """Sends one message of the current era and shows the answer as it is."""

    def __init__(
        self,
        home: Home,
        *,
        session: str = DESK,
        tasks: bool = True,
        asks_people: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.headers = {**desk(home, session), **(headers or {})}
        self.capabilities: Document = {"extensions": {TASKS: {}}} if tasks else {}
        if asks_people:
            self.capabilities["elicitation"] = {}

    def _body(self, method: str, params: Mapping[str, Any]) -> bytes:
        meta = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientCapabilities": self.capabilities,
            **params.get("_meta", {}),
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return json.dumps(message).encode()

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        name = params.get("taskId") or params.get("name")
        named = {"Mcp-Name": name} if name else {}
        return {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            **named,
            **self.headers,
        }

    def open(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> UnixConnection:
        """Send a message; the connection is the caller's, also to break it off."""
        connection = UnixConnection(self.home.services.paths.socket)
        given = {**self._headers(method, params), **(headers or {})}
        connection.request("POST", "/mcp", self._body(method, params), given)
        return connection

    def _send(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] | None
    ) -> tuple[int, Document]:
        connection = self.open(method, params, headers)
        try:
            answered = connection.getresponse()
            text = answered.read().decode()
        finally:
            connection.close()
        if answered.getheader("content-type", "").startswith("text/event-stream"):
            text = [line[6:] for line in text.splitlines() if line.startswith("data: ")][-1]
        found: Document = json.loads(text)
        return answered.status, found

    async def send(
        self, method: str, headers: Mapping[str, str] | None = None, **params: Any
    ) -> tuple[int, Document]:
        """The HTTP status and the message."""
        return await asyncio.to_thread(self._send, method, params, headers)

    async def ok(self, method: str, **params: Any) -> Document:
        """The result of a request that must succeed."""
        status, message = await self.send(method, **params)
        assert status == 200, message
        assert "result" in message, message
        result: Document = message["result"]
        return result

    async def call(self, name: str, **arguments: Any) -> Document:
        return await self.ok("tools/call", name=name, arguments=arguments)

    async def error(self, method: str, **params: Any) -> Document:
        """The error of a request that must be refused."""
        _status, message = await self.send(method, **params)
        assert "error" in message, message
        error: Document = message["error"]
        return error

    async def settled(self, task_id: str) -> Document:
        """The task once it is at its end, or asks something."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                task = await self.ok("tasks/get", taskId=task_id)
                if task["status"] != "working":
                    return task
                await asyncio.sleep(0.02)


def text_of(result: Any) -> str:
    """What a model reads of a tool's result, from either client."""
    content = result["content"] if isinstance(result, dict) else result.content
    first = content[0]
    return str(first["text"] if isinstance(first, dict) else first.text)


async def until_consumed(home: Home, run_id: str) -> None:
    """Return once the run's announcement was consumed; fails after the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not await is_consumed(home, run_id):  # noqa: ASYNC110 - a fact of the store
            await asyncio.sleep(0.01)


async def is_consumed(home: Home, run_id: str) -> bool:
    run = await home.services.engine.queries.run(RunId(run_id))
    return run.announcement_consumed_ms is not None


async def spawned(wire: Wire, agent: str = "quick", **arguments: Any) -> str:
    """The id of the task that a spawn became."""
    task = await wire.call("sessions_spawn", **{"task": "work", "agentId": agent, **arguments})
    assert task["resultType"] == "task", task
    return str(task["taskId"])
