"""What callers send: HTTP requests, MCP messages in both their forms, lines of the supervisor's
socket, and what lies in the files of the programs that call."""

import asyncio
import atexit
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import quote

import uvicorn
from starlette.types import Receive, Scope, Send
from tests.api import home_daemon
from tests.fuzz.target import Target
from uvicorn.server import ServerState

from subagents.api.server.app import create_app, parts
from subagents.api.tools.repeatable import may_repeat
from subagents.cli.command_table import commands, is_only_group, target_of
from subagents.cli.parser import parse
from subagents.cli.runs.spawn_flags import CHECKS, checks
from subagents.client.daemon_start import log_message
from subagents.domain.run.run import Phase
from subagents.errors import ConfigError, SubagentsError
from subagents.extensions.codex.codex_sandbox import CAPABILITY, TURN, ceiling_of
from subagents.extensions.install import claude_hook
from subagents.extensions.install.agent_programs import NAMES, agent_program
from subagents.extensions.install.claude_permission import with_rule
from subagents.extensions.mcp.bridge import caller_limits
from subagents.extensions.mcp.bridge.bridge import Bridge
from subagents.extensions.mcp.bridge.daemon_link import Daemon
from subagents.extensions.mcp.bridge.handshake import Handshake, parsed, recorded
from subagents.extensions.mcp.bridge.mcp_front import Front
from subagents.extensions.supervisor import supervisor_messages
from subagents.extensions.web.tcp_protocol import BoundedProtocol

WORKER: Final = "agent:main:fuzz"
QUERIES: Final = tuple(
    f"{sign}{name}={value}".encode()
    for sign in "?&"
    for name, value in {
        "since": "5m", "limit": "3", "offset": "1", "phase": "queued,running", "tree": "last",
        "grep": "(a*)*b", "types": "text,tool", "attempt": "1", "afterSeq": "2", "follow": "0",
        "requester": "agent:main:main", "label": "a", "agent": "quick", "cwd": "/w", "q": "x",
    }.items()
)  # fmt: skip
META: Final = "io.modelcontextprotocol/"
MODERN: Final = "2026-07-28"
WAITS: Final = re.compile(rb"(?i)/wait|wait[a-z_]*[\"=:]")
"""Calls that would hold the line."""
ANSWER_S: Final = 30
ENDLESS: Final = ("/v1/events", "/v1/shutdown", "/ag-ui", "/v1/demo")
"""And what copies the package's source each time."""


class Served:
    """The application of a daemon, in this process and without a socket."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.loop = asyncio.new_event_loop()
        self.services = home_daemon.build(Path(self.place.name))
        self.loop.run_until_complete(self.services.engine.start())
        self.app = create_app(self.services)

    def call(self, method: str, target: bytes, headers: Any, body: bytes) -> tuple[int, bytes]:
        return self.loop.run_until_complete(self._call(method, target, headers, body))

    def close(self) -> None:
        for each in self.app.state.endpoints:
            self.loop.run_until_complete(each.stop())
        self.loop.run_until_complete(self.services.engine.stop())
        self.loop.close()
        self.place.cleanup()

    async def _call(
        self, method: str, target: bytes, headers: Any, body: bytes
    ) -> tuple[int, bytes]:
        raw, _, query = target.partition(b"?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": raw.decode("latin-1"), "raw_path": raw, "root_path": "",
            "query_string": query, "headers": headers, "client": None, "server": None,
        }  # fmt: skip
        asked, status, answered = False, 0, bytearray()
        never = asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            nonlocal asked
            if asked:
                await never.wait()
            asked = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                answered.extend(message.get("body", b""))

        async with asyncio.timeout(ANSWER_S):
            await self.app(scope, receive, send)
        return status, bytes(answered)


_served: Served | None = None


def served() -> Served:
    """One for the whole process."""
    global _served  # noqa: PLW0603 - made at the first input, for it takes a second
    if _served is None:
        _served = Served()
        atexit.register(_served.close)
    return _served


def http(data: bytes) -> None:
    """``METHOD TARGET``, lines of headers, an empty line and the body, as on the wire."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    if not re.fullmatch(rb"[A-Z]{1,20}", method) or not target.startswith(b"/"):
        return  # the parser of HTTP refuses it before us
    if any(place in _unquoted(target) for place in ENDLESS) or WAITS.search(data):
        return
    headers = [(n.strip().lower(), v.strip()) for n, _, v in (x.partition(b":") for x in lines)]
    home = served()
    # Else the first refusal would be the last thing that is tried.
    status, answered = home.call(method.decode(), target, headers, body)
    assert status, "no answer"
    assert status < 500 or status == 503, answered[:500]
    if answered and not target.startswith((b"/metrics", b"/docs")):
        json.loads(answered)
    # What it began may not break the daemon either.
    home.loop.run_until_complete(asyncio.sleep(0))


def _unquoted(target: bytes) -> str:
    return re.sub(rb"%([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), target).decode("latin-1")


def _as_http(method: str, target: str, body: object = None, **headers: str) -> bytes:
    lines = [f"{method} {target}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    content = b"" if body is None else json.dumps(body).encode()
    return "\n".join(lines).encode() + b"\n\n" + content


def http_seeds() -> Iterable[bytes]:
    home = served()
    spec = {"task": "work", "agentId": "quick", "label": "a", "model": "m", "tools": ["Read"]}
    contract = {"artifacts": [{"path": "out/*.json", "json": True, "minItems": 1,
                "schema": {"type": "array"}}], "mustChange": ["src/**"]}  # fmt: skip
    body = {"spec": spec, "cwd": home.place.name}
    yield _as_http("POST", "/v1/runs", body)
    yield _as_http("POST", "/v1/runs", {**body, "spec": {**spec, "verification": contract}})
    yield _as_http("POST", "/v1/plans", {"specs": [spec, spec], "cwd": home.place.name})
    for route in (each for part in parts() for each in part.ROUTES):
        path = route.path.replace("{sel}", "last").replace("{id}", "r-x:q1")
        path = path.replace("{name}", "sessions_list").replace("{thread}", "t")
        for method in (route.methods or set()) - {"HEAD"}:
            yield _as_http(method, path, {} if method == "POST" else None)
    yield _as_http("GET", "/v1/runs?limit=5&offset=1&phase=queued,running&tree=last")
    yield _as_http("GET", "/v1/runs/last")
    for rest in ("status", "result", "log?limit=5&grep=a.*b&since=5m&types=text,tool", "timeline"):
        yield _as_http("GET", f"/v1/runs/last/{rest}")
    for rest in ("why", "events", "tree", "trace"):
        yield _as_http("GET", f"/v1/runs/{quote('a/b')}/{rest}")
    yield _as_http("POST", "/v1/runs/last/cancel", {"reason": "no"})
    yield _as_http("POST", "/v1/runs/last/steer", {"message": "hurry"})
    yield _as_http("POST", "/v1/runs/last/report", {"summary": "s", "status": "partial"})
    yield _as_http("POST", "/v1/runs/last/progress", {"phase": "x", "percentComplete": 5})
    yield _as_http("POST", "/v1/requests", {"runId": "r-x", "question": "which?"})
    yield _as_http("POST", "/v1/requests/r-x:q1/respond", {"answer": "a"})
    yield _as_http("POST", "/v1/inbox", {"limit": 5}, x_subagents_session=WORKER)
    yield _as_http("POST", "/v1/inbox/ack", {"messageIds": ["r-x:announce"]})
    for path in ("/v1/agents", "/v1/status", "/v1/usage?since=1d", "/v1/lanes", "/metrics"):
        yield _as_http("GET", path, x_subagents_caller="agent", x_subagents_cwd=home.place.name)
    yield _as_http("POST", "/v1/tools/sessions_list", {"limit": 5}, x_subagents_session=WORKER)
    yield _as_http("POST", "/v1/sessions/s/messages", {"message": "m"}, authorization="Bearer x")


def mcp(data: bytes) -> None:
    """One message of MCP over HTTP: whatever it says, it is answered in the protocol's own form."""
    if WAITS.search(data):
        return
    message = None
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(data)
    message = message if isinstance(message, dict) else {}
    params = message.get("params")
    name = params.get("name", "") if isinstance(params, dict) else ""
    headers = {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN, "mcp-method": str(message.get("method", "")),
        "mcp-name": str(name), "x-subagents-session": WORKER,
        "x-subagents-cwd": served().place.name,
    }  # fmt: skip
    pairs = [(k.encode(), v.encode("ascii", "replace")[:200]) for k, v in headers.items()]
    status, answered = served().call("POST", b"/mcp", pairs, data)
    assert status in {200, 202, 400, 404, 406, 413, 415, 503}, (status, answered[:500])
    assert b"Traceback" not in answered
    assert b'"code":-32603' not in answered or b'"data"' in answered, answered[:500]
    meta = params.get("_meta") if isinstance(params, dict) else None
    ceiling_of(meta if isinstance(meta, dict) else None, cwd="/w")


def mcp_seeds() -> Iterable[bytes]:
    sandbox = {
        CAPABILITY: {"permissionProfile": {"type": "managed", "network": "enabled",
                     "file_system": {"entries": [{"access": "write"}]}},
                     "sandboxCwd": "file:///w"},
        TURN: {"sandbox_mode": "workspace-write"},
    }  # fmt: skip
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, **sandbox}

    def asked(method: str, **params: object) -> bytes:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return json.dumps(body).encode()

    yield asked("tools/list")
    yield asked("server/discover")
    yield asked("tools/call", name="agents_list", arguments={})
    yield asked("tools/call", name="sessions_spawn", arguments={"task": "x", "agentId": "quick"})
    yield asked("tools/call", name="sessions_list", arguments={"limit": 3, "kinds": ["open"]})
    yield asked("tools/call", name="sessions_history", arguments={"sessionKey": "last"})
    yield asked("tools/call", name="subagents", arguments={"action": "list", "target": "last"})
    yield asked("tasks/get", taskId="r-abcdefghij")
    yield asked("tasks/cancel", taskId="r-abcdefghij")
    old = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    yield json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": old}).encode()


class NoDaemon(Daemon):
    """Nobody is there: only what the bridge makes of its client's lines is tried."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise SubagentsError("nobody is there")


def stdio(data: bytes) -> None:
    """Lines of a client: those that the front answers, and what the bridge makes of the others."""
    read, write = os.pipe()
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.write(write, data[:60_000])
        os.close(write)
        front = Front(Handshake(recorded()), stdin=read, stdout=sink)
        front.answer_until(read) if not data else front.answer_first()
        bridge = Bridge(NoDaemon(), stdin=front.lines, stdout=sink, handshake=front.handshake)
        begun: list[Any] = []
        with (
            mock.patch.object(Bridge, "_serve", lambda _self, call, _deliver: begun.append(call)),
            mock.patch.object(Bridge, "_start", lambda _self, call, _deliver: begun.append(call)),
        ):
            while line := front.lines.readline(100_000):
                if line.strip():
                    bridge._take(line)
        for call in begun:
            assert may_repeat(call.method, call.params) in {True, False}
            for name, value in call.headers("2025-06-18").items():
                assert "\n" not in f"{name}{value}"
                assert "\r" not in f"{name}{value}"
    finally:
        os.close(read)
        os.close(sink)


def stdio_seeds() -> Iterable[bytes]:
    for each in mcp_seeds():
        yield each + b"\n"
    first = json.loads(next(iter(mcp_seeds())))
    yield json.dumps([first, {**first, "id": "two"}]).encode() + b"\n"
    yield b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'


def sockets(data: bytes) -> None:
    """Lines of the supervisor's socket, cut as they come; and the head of a request over TCP."""
    asyncio.run(_supervised(data))
    asyncio.run(_head(data))


async def _supervised(data: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    found = [line async for line in supervisor_messages.lines(reader, bytes_max=50_000)]
    whole = data.split(b"\n")
    assert found == [x if len(x) <= 50_000 else None for x in (whole if whole[-1] else whole[:-1])]
    for line in found:
        try:
            supervisor_messages.parse(line)
        except supervisor_messages.Unreadable as refused:
            json.dumps(supervisor_messages.failure(refused.request_id, refused.error))


class Wire(asyncio.Transport):
    """Keeps what is answered."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 6)})
        self.written = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _fine(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


CONFIG: Final = uvicorn.Config(
    _fine, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, access_log=False
)


async def _head(data: bytes) -> None:
    if not CONFIG.loaded:
        CONFIG.load()
    wire, loop = Wire(), asyncio.get_running_loop()
    protocol = BoundedProtocol(CONFIG, ServerState(), {}, loop)
    protocol.connection_made(wire)
    for at in range(0, len(data), 7_000):
        if not wire.closed:
            protocol.data_received(data[at : at + 7_000])
    for _ in range(5):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    assert not wire.written or wire.written.startswith(b"HTTP/1.1 "), bytes(wire.written[:100])


def socket_seeds() -> Iterable[bytes]:
    forms: tuple[dict[str, object], ...] = (
        {"type": "register", "agentId": "openclaw"},
        {"type": "command", "requestId": 1, "action": "status", "params": {"agentId": "x"}},
        {"type": "command", "requestId": "a", "action": "subscribe", "params": {"scope": "all"}},
    )
    yield b"\n".join(json.dumps(each).encode() for each in forms) + b"\n"
    yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 2
    yield b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nabcde"
    yield b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + b"a: b\r\n" * 120


def client_files(data: bytes) -> None:
    """What lies in the files and pipes of the programs that call."""
    text = data.decode("utf-8", "replace")
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
        claude_hook._given()
    for name in NAMES:
        agent_program(name, {"HOME": "/nowhere"}, project=None).entry_in(text)
    with contextlib.suppress(ConfigError):
        for is_allowed in (True, False):
            with_rule(text, Path("settings.json"), is_allowed=is_allowed)
    log_message(text.partition("\n")[0])
    parsed(data)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        (Path(place) / "settings.json").write_bytes(data)
        caller_limits._mode_in(str(Path(place) / "settings.json"))
        caller_limits._rules({"CLAUDE_CONFIG_DIR": place})
        argv = text.split("\n")
        for program in ("claude", "gemini", "qwen", "opencode", "codex"):
            caller_limits._ceiling(program, argv, {"CLAUDE_CONFIG_DIR": place})


def client_file_seeds() -> Iterable[bytes]:
    yield b'{"session_id":"a-b","cwd":"/w","stop_hook_active":true}'
    yield b'{"permissions":{"allow":["Bash","mcp__subagents"],"deny":[]},"mcpServers":{"subagents":{"command":"x","args":["mcp"]}}}'
    yield b'{"type":"permission-mode","permissionMode":"plan"}\n{"type":"user","permissionMode":"acceptEdits"}\n'
    yield b"--permission-mode\nplan\n--approval-mode=yolo\n--dangerously-skip-permissions"
    yield b'{"message":"the daemon","level":"ERROR"}'


def command_lines(data: bytes) -> None:
    """What every command makes of one line, and a spawn of the flags about files."""
    argv = data.decode("utf-8", "replace").split("\n")
    for row in commands():
        if not is_only_group(row.name):
            with contextlib.suppress(SubagentsError):
                call = parse(target_of(row), argv)
                checks(call.keywords.get("flags", {}).get(CHECKS, ()))


def command_line_seeds() -> Iterable[bytes]:
    yield b"task\n--label=a\n-dl\nb\n--tag\na\n--tag\nb\n--\n--json\n-x"
    yield b"--verify\na\n--min-items\n3\n--verify-existing\n--sha256=x\n--required-keys\na,b"
    yield b"--verify-existing\n--keep\n--delete\n--retry\n-1\n--max-cost\nnan\n-5\n--json=false"
    yield b"--dir\n.\n--phase\nrunning\n--sort\nended\n--limit\n7\n--mine\n--session=a"


CALLER_TARGETS: Final = (
    Target("http", "requests of the HTTP interface", http, http_seeds,
           (*(f'"{each}"'.encode() for each in Phase), *QUERIES)),
    Target("mcp", "MCP over HTTP", mcp, mcp_seeds),
    Target("stdio", "MCP over standard input", stdio, stdio_seeds),
    Target("sockets", "the supervisor's socket, and heads over TCP", sockets, socket_seeds),
    Target("command-lines", "command lines", command_lines, command_line_seeds),
    Target("client-files", "hook input and files of the programs that call", client_files,
           client_file_seeds),
)  # fmt: skip
