"""Nodes of a cluster in one process: real doors on real sockets, and a small application behind.

Who owns what is a table here, that tests change; everything else is what daemons have.
"""

import asyncio
import contextlib
import hashlib
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from tests.extensions.cluster.pinned_nodes import PinnedNodes
from tests.free_ports import free_port

from subagents.api.calls.auth import CONNECTION, Caller, Connection
from subagents.api.calls.call import body_of, path_part, problem, status_of, while_connected
from subagents.api.calls.hand_over import is_taken
from subagents.api.server.app import RawPaths, abandoned
from subagents.api.server.daemon import _Server
from subagents.api.server.watched_protocol import WatchedProtocol
from subagents.domain.run.values import RunId, SessionKey
from subagents.errors import Elsewhere, SubagentsError, Unauthorized
from subagents.extensions.cluster.api.cluster_member import ClusterMember
from subagents.extensions.cluster.api.forwarding import Forwarding
from subagents.extensions.cluster.api.node_endpoint import NodeEndpoint
from subagents.extensions.cluster.api.node_headers import STATE
from subagents.extensions.cluster.api.node_listener import bound, node_config
from subagents.extensions.cluster.api.peers import Peers
from subagents.extensions.cluster.api.relayed_calls import RelayedCalls
from subagents.extensions.cluster.shared_store import SeenNode, Survey
from subagents.extensions.cluster.trust.node_trust import NodeTrust

DEADLINE_S = 90.0
TOKEN = "sa_r-of-b_1_" + 43 * "x"


class Table:
    """Who has which partition, as the store would know it."""

    def __init__(self) -> None:
        self.nodes: dict[str, SeenNode] = {}
        self.owners: dict[int, str] = {}
        self.runs: dict[str, int] = {}

    def survey(self) -> Survey:
        return Survey(dict(self.nodes), dict(self.owners))


class Owners:
    """What one node knows of the table: as of its last look."""

    def __init__(self, table: Table, identity: str) -> None:
        self._table = table
        self._identity = identity
        self.survey = Survey({}, {})
        self.looks = 0
        self._looked = asyncio.Condition()
        self.is_loaded = True

    async def look(self) -> None:
        self.survey = self._table.survey()
        async with self._looked:
            self.looks += 1
            self._looked.notify_all()

    async def looked(self, count: int) -> None:
        """Return when it has looked so often."""
        async with self._looked, asyncio.timeout(DEADLINE_S):
            await self._looked.wait_for(lambda: self.looks >= count)

    def owner_of(self, partition: int) -> SeenNode | None:
        identity = self.survey.owners.get(partition)
        node = None if identity is None else self.survey.nodes.get(identity)
        return node if node is not None and node.left_s > 0 else None

    @property
    def owned(self) -> set[int]:
        owners = self.survey.owners.items()
        return {part for part, owner in owners if owner == self._identity and self.is_loaded}

    def require(self, partition: int) -> None:
        if partition in self.owned:
            return
        owner = self.owner_of(partition)
        if owner is not None and owner.identity == self._identity:
            owner = None
        raise Elsewhere(
            partition,
            url=None if owner is None else owner.url,
            node=None if owner is None else owner.name,
        )

    async def require_run(self, run_id: RunId) -> None:
        if run_id in self._table.runs:
            self.require(self._table.runs[run_id])

    async def require_session(self, _session: SessionKey) -> None:
        """Nobody's: what a spawn is about stands in its body."""


class Node:
    """One node: a plain door for clients, and a node door for the others."""

    def __init__(self, name: str, table: Table, trust: NodeTrust, port: int) -> None:
        self.name = name
        self.identity = f"start-of-{name}"
        url = f"https://127.0.0.1:{port}"
        self.member = ClusterMember(
            name=name, address=("127.0.0.1", port), url=url, trust=trust, peers=Peers(trust)
        )
        table.nodes[self.identity] = SeenNode(
            self.identity, name, name, url, (), None, "1", 6.0, False, trust.certificate
        )
        self.table = table
        self.owners = Owners(table, self.identity)
        self.peers = self.member.peers
        self.stopping = asyncio.Event()
        self.calls = RelayedCalls(self.stopping)
        self.served: Counter[str] = Counter()
        """Requests that were answered here, by method and path."""
        self.keys: dict[str, int] = {}
        """Spawns by their key."""
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        """What streams say; None = the end."""
        self.left = asyncio.Event()
        """The client of a stream or of a wait is gone."""
        self.begun = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.taken: asyncio.Queue[bool] = asyncio.Queue()
        self.connection: Connection | None = None
        """Of plain clients, where a test says it."""
        self.plain_url = ""
        self.app = self._application()
        self.door = NodeEndpoint(self.app, member=self.member, calls=self.calls)

    def _application(self) -> Starlette:
        app = Starlette(
            routes=[
                Route("/who/{part}", self.who, methods=["GET", "HEAD", "POST"]),
                Route("/stream/{part}", self.stream, methods=["GET"]),
                Route("/wait/{part}", self.wait, methods=["GET"]),
                Route("/steer/{part}", self.wait, methods=["POST"]),
                Route("/offer/{part}", self.offer, methods=["POST"]),
                Route("/v1/runs", self.spawn, methods=["POST"]),
                Route("/v1/wait", self.wait_for, methods=["POST"]),
            ],
            exception_handlers={SubagentsError: self._refused, ClientDisconnect: abandoned},
            middleware=[
                Middleware(RawPaths),
                Middleware(
                    Forwarding,
                    owners=self.owners,  # type: ignore[arg-type]  # as ``SharedPartitions``
                    member=self.member,
                    calls=self.calls,
                    identify=self.identify,
                    refuse=_refusal,
                ),
            ],
        )
        queries = SimpleNamespace(run_of=lambda _: None, open_run=lambda _: None)
        engine = SimpleNamespace(identify=self.identify, queries=queries)
        app.state.services = SimpleNamespace(
            engine=engine,
            origin_of=lambda _: None,
            stopping=self.stopping,
        )
        return app

    def identify(self, token: str) -> object:
        if token == TOKEN and self.table.owners.get(self.table.runs["r-of-b"]) == self.identity:
            return SimpleNamespace(session_key="agent:x:subagent:b", run_id="r-of-b", attempt=1)
        details = {"runId": "r-of-b"} if token == TOKEN else {}
        raise Unauthorized("the token is unknown", details=details)

    async def _refused(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, SubagentsError) or isinstance(error, Elsewhere):
            raise error
        return _refusal(request, error, b"")

    # -- what it answers ------------------------------------------------------------------------

    def _mine(self, request: Request) -> Caller:
        caller = Caller.of(request)
        self.owners.require(int(path_part(request, "part")))
        self.served[f"{request.method} {request.scope['path']}"] += 1
        return caller

    async def who(self, request: Request) -> Response:
        body = await body_of(request, bytes_max=64 << 20)
        caller = self._mine(request)
        forwarded = request.scope["state"].get(STATE)
        return JSONResponse(
            {
                "node": self.name,
                "session": caller.session,
                "worker": caller.run_id,
                "operator": caller.is_operator,
                "peer": caller.peer,
                "cwd": caller.cwd,
                "authorization": request.headers.get("authorization"),
                "cookie": request.headers.get("cookie"),
                "by": None if forwarded is None else forwarded.node,
                "query": str(request.query_params),
                "raw": request.scope["path"],
                "bytes": len(body),
                "digest": hashlib.sha256(body).hexdigest(),
            },
            headers={"X-Mine": self.name},
        )

    async def spawn(self, request: Request) -> Response:
        asked = json.loads(await body_of(request))
        Caller.of(request)
        self.owners.require(asked["part"])
        key = request.headers.get("idempotency-key", "none")
        self.keys[key] = self.keys.get(key, 0) + 1
        self.begun.set()
        await self.may_answer.wait()
        return JSONResponse({"node": self.name, "key": key}, status_code=201)

    async def wait(self, request: Request) -> Response:
        self._mine(request)
        self.begun.set()
        try:
            await while_connected(request, self.may_answer.wait())
        except ClientDisconnect:
            self.left.set()
            raise
        return JSONResponse({"node": self.name})

    async def wait_for(self, request: Request) -> Response:
        self.served["POST /v1/wait"] += 1
        for run_id in json.loads(await body_of(request))["runIds"]:
            await self.owners.require_run(run_id)
        return JSONResponse({"node": self.name})

    async def stream(self, request: Request) -> Response:
        self._mine(request)

        async def frames() -> AsyncIterator[bytes]:
            self.begun.set()
            try:
                while (line := await self.lines.get()) is not None:
                    yield f"data: {line}\n\n".encode()
            finally:
                self.left.set()

        return StreamingResponse(frames(), media_type="text/event-stream")

    async def offer(self, request: Request) -> Response:
        await body_of(request)
        self._mine(request)
        return _Offer(self, 200_000 if "large" in request.query_params else 20)


class _Offer(Response):
    """An answer that hands something over, as those of MCP and of tools do."""

    def __init__(self, node: Node, size: int) -> None:
        super().__init__(b"x" * size, media_type="text/plain")
        self._node = node

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        self._node.taken.put_nowait(await is_taken(scope, receive, self._node.stopping))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _refusal(_request: Request, error: SubagentsError, _body: bytes) -> Response:
    status = status_of(error)
    return problem({**error.to_wire(), "status": status}, status)


class Nodes:
    """All of them, by name."""

    def __init__(self, table: Table, nodes: Mapping[str, Node]) -> None:
        self.table = table
        self._nodes = nodes
        self._servers: dict[str, list[_Server]] = {}

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def __iter__(self) -> Any:
        return iter(self._nodes.values())

    async def give(self, owner: str | None, *partitions: int, seen: Sequence[str] = "abc") -> None:
        """Change who owns partitions, and let those nodes know of it."""
        for each in partitions:
            if owner is None:
                self.table.owners.pop(each, None)
            else:
                self.table.owners[each] = self[owner].identity
        for node in self:
            if node.name in seen:
                await node.owners.look()

    async def serve(self, node: Node, stack: contextlib.AsyncExitStack) -> None:
        plain = socket.create_server(("127.0.0.1", 0))
        plain.setblocking(False)
        stack.callback(plain.close)
        node.plain_url = f"http://127.0.0.1:{plain.getsockname()[1]}"

        async def as_told(scope: Scope, receive: Receive, send: Send) -> None:
            if node.connection is not None:
                scope = {**scope, "state": {**scope["state"], CONNECTION: node.connection}}
            await node.app(scope, receive, send)

        config = uvicorn.Config(
            as_told, http=WatchedProtocol, ws="none", lifespan="off", log_config=None
        )
        listener = stack.enter_context(bound(node.member))
        servers = []
        for each, on in ((config, plain), (node_config(node.door, node.member.trust), listener)):
            server = _Server(each, asyncio.Event())
            server.serving = asyncio.create_task(server.serve(sockets=[on]))
            await server.opened()
            servers.append(server)
        self._servers[node.name] = servers

    async def kill(self, name: str) -> None:
        """As a process that dies: its listeners and connections are gone at once."""
        # The node door first: a process that is gone answers nothing about its clients, not even
        # on a connection that is only shaking hands, which an abort below does not reach.
        self[name].calls._calls.clear()
        for server in reversed(self._servers.pop(name)):
            for listening in server.servers:
                listening.close()
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            server.serving.cancel()
            await asyncio.gather(server.serving, return_exceptions=True)
        await self[name].peers.close()

    async def close(self) -> None:
        for name in list(self._servers):
            self[name].stopping.set()
            self[name].may_answer.set()
            await self.kill(name)


async def until(is_so: Callable[[], object]) -> None:
    """Return when it is so; the loop has nothing to wait on for it."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


Scenario = Callable[[Nodes, httpx2.AsyncClient], Awaitable[None]]


def play(folder: Path, scenario: Scenario) -> None:
    """Three nodes: partition 1 is a's, 2 is b's, 3 is c's, 4 is nobody's."""

    async def run() -> None:
        pins, table = PinnedNodes(folder), Table()
        # A node that was killed comes back at its address, which nobody may be given meanwhile.
        ports = [free_port() for _ in range(3)]
        nodes = {
            name: Node(name, table, pins.listed(name), port)
            for name, port in zip("abc", ports, strict=True)
        }
        table.owners = {1: "start-of-a", 2: "start-of-b", 3: "start-of-c"}
        table.runs = {"r-of-a": 1, "r-of-b": 2}
        cluster = Nodes(table, nodes)
        async with contextlib.AsyncExitStack() as stack:
            for node in nodes.values():
                await node.owners.look()
                await cluster.serve(node, stack)
            stack.push_async_callback(cluster.close)
            client = await stack.enter_async_context(
                httpx2.AsyncClient(trust_env=False, timeout=DEADLINE_S)
            )
            async with asyncio.timeout(3 * DEADLINE_S):
                await scenario(cluster, client)

    asyncio.run(run())
