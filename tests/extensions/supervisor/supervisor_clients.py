"""A supervisor for tests: lines of JSON to a daemon's supervisor socket, and what comes back."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.api.home_daemon import DEADLINE_S, Document, Home


class Supervisor:
    """One connection; answers are found by their request, events in the order they came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.events: list[Document] = []
        self._ids = itertools.count(1)

    async def line(self) -> Document:
        async with asyncio.timeout(DEADLINE_S):
            raw = await self.reader.readline()
        assert raw.endswith(b"\n"), "the connection was closed"
        document: Document = json.loads(raw)
        return document

    async def answer(self) -> Document:
        """The next line that is no event."""
        while (found := await self.line())["type"] == "event":
            self.events.append(found)
        return found

    async def say(self, raw: bytes) -> Document:
        self.writer.write(raw + b"\n")
        return await self.answer()

    async def register(self, name: str = "openclaw") -> Document:
        said = {"type": "register_supervisor", "agentId": name}
        return await self.say(json.dumps(said).encode())

    async def ask(self, action: str, **params: Any) -> Document:
        """The whole answer to a command."""
        request_id = f"q{next(self._ids)}"
        said = {"type": "command", "requestId": request_id, "action": action, "params": params}
        found = await self.say(json.dumps(said).encode())
        assert (found["type"], found["requestId"]) == ("response", request_id)
        return found

    async def do(self, action: str, **params: Any) -> Any:
        found = await self.ask(action, **params)
        assert "error" not in found, found
        return found["result"]

    async def refused(self, action: str, **params: Any) -> tuple[str, str]:
        error = (await self.ask(action, **params))["error"]
        return error["code"], error["message"]

    async def told(self, count: int) -> list[Document]:
        """The first ``count`` events."""
        while len(self.events) < count:
            self.events.append(await self.line())
        return self.events

    async def until_end(self, name: str) -> Document:
        """The completion of that agent."""
        while True:
            for each in self.events:
                if each["event"] == "completion" and each["agentId"] == name:
                    return each
            await self.told(len(self.events) + 1)


@contextlib.asynccontextmanager
async def supervisor(home: Home, name: str | None = "openclaw") -> AsyncIterator[Supervisor]:
    path = home.services.paths.supervisor_socket
    reader, writer = await asyncio.open_unix_connection(path, limit=16 * 1024 * 1024)
    try:
        found = Supervisor(reader, writer)
        if name is not None:
            assert (await found.register(name))["type"] == "registered"
        yield found
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def create(one: Supervisor, home: Home, name: str, agent: str, **more: Any) -> str:
    params = {"agentId": name, "agent": agent, "task": "work", "cwd": home.cwd, **more}
    return str((await one.do("create_agent", **params))["runId"])
