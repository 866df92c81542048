"""``/mcp`` with the protocol's own client, in both of its eras, and byte by byte."""

import asyncio
import http.client
import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.types import Message, Scope
from tests.api.home_daemon import Home, UnixConnection, build
from tests.extensions.mcp.mcp_clients import Wire

from subagents import extension
from subagents.api.calls.call import SPAWN_BODY_BYTES_MAX
from subagents.api.calls.services import Services
from subagents.api.server.app import create_app
from subagents.extensions.mcp import mcp_endpoint


def raw(home: Home, method: str, headers: dict[str, str], body: bytes = b"{}") -> Any:
    connection = UnixConnection(home.services.paths.socket)
    try:
        connection.request(method, "/mcp", body, headers)
        answered: http.client.HTTPResponse = connection.getresponse()
        return answered.status, dict(answered.getheaders()), answered.read()
    finally:
        connection.close()


@pytest.mark.requirement("mcp:endpoint")
async def test_there_is_no_stream_to_get_and_a_body_has_a_limit(daemon: Home) -> None:
    for method in ("GET", "DELETE"):
        status, headers, _ = await asyncio.to_thread(raw, daemon, method, {})
        assert (status, headers["allow"]) == (405, "POST")
    kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    large = b'{"a":"' + b"x" * SPAWN_BODY_BYTES_MAX + b'"}'
    status, _, _ = await asyncio.to_thread(raw, daemon, "POST", kind, large)
    assert status == 413


@pytest.mark.requirement("mcp:identity")
async def test_a_bad_token_is_told_so_in_the_protocols_form_and_noted(daemon: Home) -> None:
    status, headers, body = await asyncio.to_thread(
        raw, daemon, "POST", {"Authorization": "Bearer sa_r-nothing_1_" + "x" * 43}
    )
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (401, -32000)
    assert error["data"]["code"] == "unauthorized"
    assert headers["www-authenticate"] == "Bearer"
    await daemon.services.refusals.flush()
    noted = await asyncio.to_thread(daemon.services.refusals.file.read_text)
    assert "POST /mcp" in noted


@pytest.mark.requirement("mcp:identity")
async def test_an_agent_cannot_see_another_sessions_runs(daemon: Home) -> None:
    other = str((await daemon.spawn("hang"))["runId"])  # the operator's own session
    found = await Wire(daemon, tasks=False).call("subagents", action="status", target=other)
    assert found["isError"]
    assert found["structuredContent"]["status"] == "forbidden"


@pytest.mark.requirement("mcp:endpoint")
async def test_space_around_a_header_is_no_part_of_it(daemon: Home) -> None:
    status, message = await Wire(daemon).send(
        "tools/call", {"Mcp-Name": "  sessions_list  "}, name="sessions_list", arguments={}
    )
    assert (status, message["result"]["isError"]) == (200, False)


VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


async def kind_and_lines(wire: Wire, version: str, timeout_s: float) -> tuple[str, list[str]]:
    """How a wait of so many seconds for nothing that ends is answered."""

    def ask() -> tuple[str, list[str]]:
        params = {"name": "sessions_wait", "arguments": {"timeoutSeconds": timeout_s}}
        connection = wire.open("tools/call", params, {"MCP-Protocol-Version": version})
        try:
            answered = connection.getresponse()
            lines = answered.read().decode().splitlines()
            return answered.getheader("content-type", ""), lines
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


@pytest.mark.requirement("mcp:one-document")
@VERSIONS
async def test_what_is_answered_soon_is_one_document_and_what_lasts_a_stream_that_shows_life(
    daemon: Home, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(daemon, tasks=False)
    await wire.call("sessions_spawn", task="x", agentId="hang")
    kind, [line] = await kind_and_lines(wire, version, 0)
    assert kind == "application/json"
    assert "result" in json.loads(line)

    monkeypatch.setattr(mcp_endpoint, "PING_S", 0.02)
    kind, lines = await kind_and_lines(wire, version, 0.2)
    assert kind == "text/event-stream"
    assert lines[:2] == [": ping", ""]
    assert lines[-3] == "event: message"
    assert "result" in json.loads(lines[-2].removeprefix("data: "))


async def asked(app: Starlette, body: bytes) -> int:
    """Ask the application itself, and return the HTTP status."""
    headers = {"content-type": "application/json", "accept": "*/*", "x-subagents-cwd": "/"}
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "state": {},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    left = [body]
    sent: list[Message] = []

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert b'"result"' in sent[1]["body"], sent
    return int(sent[0]["status"])


async def cost_of(app: Starlette, body: bytes) -> tuple[int, int]:
    """How many calls of Python functions and how many tasks one request takes."""
    loop = asyncio.get_running_loop()
    calls = tasks = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    def made(loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> "asyncio.Task[Any]":
        nonlocal tasks
        tasks += 1
        return asyncio.Task(coro, loop=loop, **more)

    assert await asked(app, body) == 200  # with what is imported or made but once
    loop.set_task_factory(made)
    sys.setprofile(count)
    try:
        await asked(app, body)
    finally:
        sys.setprofile(None)
        loop.set_task_factory(None)
    return calls, tasks


CALLS_OF_A_PING_MAX = 118
"""Of Python functions, from the application on."""
TASKS_OF_A_CALL_MAX = 2
"""One works, and one notices when the client leaves."""


@pytest.mark.requirement("mcp:cost")
async def test_a_ping_takes_few_calls_and_no_task_and_a_call_of_a_tool_two(tmp_path: Path) -> None:
    """The bounds may only shrink."""
    services = build(tmp_path)
    app = create_app(services)
    await services.engine.start()
    try:
        ping: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        call = {**ping, "method": "tools/call", "params": {"name": "sessions_list"}}
        calls, tasks = await cost_of(app, json.dumps(ping).encode())
        assert tasks == 0
        assert calls <= CALLS_OF_A_PING_MAX
        _, tasks = await cost_of(app, json.dumps(call).encode())
        assert tasks <= TASKS_OF_A_CALL_MAX
    finally:
        for each in app.state.endpoints:
            await each.stop()
        await services.engine.stop()


@pytest.mark.requirement("extensions:mcp")
def test_methods_of_anothers_extension_that_cannot_be_imported_are_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    acme = extension.Extension(name="acme", mcp="acme_nowhere:methods")
    monkeypatch.setattr(extension, "found", lambda: extension.Found((acme,), ()))

    mcp_endpoint.endpoints(cast(Services, None))

    assert "the extension acme adds nothing: its mcp broke" in caplog.text
