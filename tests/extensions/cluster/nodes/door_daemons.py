"""Daemons of one cluster in one process: real engines, doors and certificates, on one database."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from tests.api.home_daemon import DEADLINE_S, Home, UnixConnection, until
from tests.extensions.cluster.engine.engine_cluster import owned_by
from tests.extensions.cluster.pinned_nodes import SECRET, ClusterHomes
from tests.free_ports import free_port

from subagents.api.server.daemon import serve_until_stopped
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.values import SessionKey
from subagents.engine.engine import Engine
from subagents.wiring import build_node, config_loader, services_of

ENOUGH = 24
"""Partitions of a node before a test begins."""
CONFIG = """
[daemon]
node = "{name}"
store = "{store}"

[cluster]
listen = "127.0.0.1:{port}"
secret = "{secret}"
lease_seconds = 5

[agents.defaults.subagents]
max_children_per_agent = 100
max_concurrent = 8
max_spawn_depth = 3

[agents.main]
subagents.allow_agents = ["*"]

[agents.quick]
runtime = "scripted"
script = [{{ result = "done" }}]

[agents.hang]
runtime = "scripted"
script = [{{ hang = true }}]

[agents.shell]
runtime = "command"
command = ["sh", "-c", "{{task}}"]
"""


class DoorDaemon:
    """One node."""

    def __init__(self, name: str, home: Home) -> None:
        self.name = name
        self.home = home

    @property
    def engine(self) -> Engine:
        return self.home.services.engine

    def session(self, number: int = 0) -> str:
        """A session that this node decides about; another one for each number."""
        found = (
            name
            for at in range(100_000)
            if partition_of(SessionKey(name := f"agent:main:s{at}")) in owned_by(self.engine)
        )
        for _ in range(number):
            next(found)
        return next(found)

    async def call(
        self, session: str, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        given = {"X-Subagents-Session": session, **headers}
        return await self.home.call(method, path, body, given)

    async def ok(
        self, session: str, method: str, path: str, body: object = None, **headers: str
    ) -> dict[str, Any]:
        status, document = await self.call(session, method, path, body, **headers)
        assert status < 400, document
        return document

    async def spawn(self, session: str, agent: str = "quick", **spec: object) -> dict[str, Any]:
        body = {"spec": {"task": "work", "agentId": agent, **spec}, "cwd": self.home.cwd}
        return await self.ok(session, "POST", "/v1/runs", body)

    async def tool(
        self, session: str, name: str, arguments: Mapping[str, object]
    ) -> dict[str, Any]:
        """One call of a tool over MCP; the result."""
        body = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": name, "arguments": dict(arguments)},
        }
        status, headers, content = await asyncio.to_thread(
            self._posted, json.dumps(body).encode(), session
        )
        assert status == 200, content
        if headers.startswith("text/event-stream"):
            content = content.rpartition(b"data: ")[2]
        document: dict[str, Any] = json.loads(content)
        assert document["id"] == 7
        assert "error" not in document, document
        found: dict[str, Any] = document["result"]
        return found

    def _posted(self, body: bytes, session: str) -> tuple[int, str, bytes]:
        connection = UnixConnection(self.home.services.paths.socket)
        headers = {
            "X-Subagents-Session": session,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
        }
        try:
            connection.request("POST", "/mcp", body, headers)
            answered = connection.getresponse()
            return answered.status, answered.getheader("content-type") or "", answered.read()
        finally:
            connection.close()


async def eventually(is_so: Callable[[], Awaitable[object]]) -> None:
    """Return once it is so; fails after the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        while not await is_so():  # noqa: ASYNC110 - what is asked tells nobody
            await asyncio.sleep(0.05)


def paths_of(homes: ClusterHomes, name: str) -> Paths:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(homes.root / name)})
    paths.ensure()
    return paths


@contextlib.asynccontextmanager
async def cluster(homes: ClusterHomes, *names: str) -> AsyncIterator[Sequence[DoorDaemon]]:
    """Daemons of those names, each with some of the partitions."""
    nodes = []
    async with contextlib.AsyncExitStack() as stack:
        for name in names:
            made = await stack.enter_async_context(node(homes, name))
            nodes.append(made)
        async with asyncio.timeout(DEADLINE_S):
            await until(lambda: _is_divided(nodes))
        yield nodes


def _is_divided(nodes: Sequence[DoorDaemon]) -> bool:
    """Each has some; they go on to give and take while a test runs."""
    owned = [len(owned_by(each.engine)) for each in nodes]
    return min(owned) >= ENOUGH


@contextlib.asynccontextmanager
async def node(homes: ClusterHomes, name: str) -> AsyncIterator[DoorDaemon]:
    paths, port = paths_of(homes, name), free_port()
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(
        CONFIG.format(name=name, store=homes.url, port=port, secret=SECRET)
    )
    paths.config_file.chmod(0o600)
    environ: dict[str, str] = {}
    config = load(None, environ, paths=paths, overrides={})
    loader = config_loader(paths, environ, {})
    made = build_node(paths, config, None, loader)
    services = services_of(made, environ)
    ready = asyncio.Event()
    serving = asyncio.create_task(
        serve_until_stopped(services, paths=paths, ready=ready, settings=config.settings.daemon)
    )
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    try:
        yield DoorDaemon(name, Home(services))
    finally:
        services.stopping.set()
        async with asyncio.timeout(DEADLINE_S):
            await serving
        for threads in made.threads:
            threads.close()
