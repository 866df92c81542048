"""The bridge against a daemon that dies at will: what is asked again, and what is told."""

import contextlib
import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest
from tests.extensions.mcp.bridge.dying_daemon import BOUND_S, FakeDaemon, answers, dies, result

from subagents.api.tools.repeatable import may_repeat
from subagents.cli.connection import session_of
from subagents.client import transport
from subagents.client.transport import Absence, Gone
from subagents.errors import DaemonUnreachable, UsageError
from subagents.extensions.mcp.bridge import bridge as bridge_module
from subagents.extensions.mcp.bridge.bridge import Bridge
from subagents.extensions.mcp.bridge.bridge_rpc import header_value
from subagents.extensions.mcp.bridge.daemon_link import Daemon
from subagents.extensions.mcp.bridge.mcp_command import daemon_of


class BridgeClient:
    """A client at a bridge in this process."""

    def __init__(self, daemon: FakeDaemon) -> None:
        self.daemon = daemon
        self.started = 0
        incoming, self._to = os.pipe()
        self._from, outgoing = os.pipe()
        self._in: IO[bytes] = os.fdopen(incoming, "rb")
        self._out: IO[bytes] = os.fdopen(self._from, "rb")
        found = Daemon(str(daemon.path), {"x-subagents-session": "agent:main:x"}, self._start)
        serving = Bridge(found, stdin=self._in, stdout=outgoing)
        self._thread = threading.Thread(target=serving.run, daemon=True)
        self._thread.start()
        self._outgoing = outgoing

    def _start(self) -> None:
        self.started += 1

    def send(self, number: object, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        os.write(self._to, json.dumps(message).encode() + b"\n")

    def receive(self) -> Any:
        return json.loads(self._out.readline())

    def close(self) -> None:
        os.close(self._to)
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive()
        os.close(self._outgoing)
        self._in.close()
        self._out.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[BridgeClient]:
    daemon = FakeDaemon(tmp_path / "s")
    found = BridgeClient(daemon)
    yield found
    found.close()
    daemon.stop()


def call_id(head: str) -> str:
    return next(line for line in head.splitlines() if line.startswith("x-subagents-call-id"))


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_what_may_be_repeated_is_asked_again_under_the_same_id(client: BridgeClient) -> None:
    for turn in (dies, answers(result(1, ok=True))):
        client.daemon.turns.put(turn)
    client.send(1, "tools/call", name="sessions_spawn", arguments={"task": "x"})
    assert client.receive()["result"] == {"ok": True}
    first, second = client.daemon.heads
    assert call_id(first) == call_id(second)
    assert client.started == 1


@pytest.mark.requirement("mcp:bridge:outcome-unknown")
@pytest.mark.parametrize(
    "params",
    [
        {"name": "sessions_send", "arguments": {"message": "x"}},
        {"name": "notify_parent", "arguments": {"message": "x"}},
        {"name": "subagents", "arguments": {"action": "steer", "message": "x"}},
    ],
    ids=["send", "notify", "steer"],
)
def test_what_may_not_be_repeated_is_told_to_be_unknown(client: BridgeClient, params: Any) -> None:
    client.daemon.turns.put(dies)
    client.send(1, "tools/call", **params)
    answer = client.receive()["result"]
    assert answer["isError"]
    assert answer["structuredContent"]["code"] == "outcome_unknown"
    assert "check before repeating it" in answer["structuredContent"]["hint"]
    assert len(client.daemon.heads) == 1


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_a_daemon_that_says_it_is_stopping_is_asked_again(client: BridgeClient) -> None:
    data = {"code": "unavailable", "message": "stopping", "retryable": True}
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x", "data": data}}
    client.daemon.turns.put(answers(msgspec.json.encode(error)))
    client.daemon.turns.put(answers(result(1)))
    client.send(1, "tools/list")
    assert client.receive()["result"] == {}


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_a_daemon_stopped_on_purpose_is_not_started_by_a_call_it_left_unanswered(
    client: BridgeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "RECONNECT_S", 0.3)
    client.daemon.turns.put(lambda _connection: client.daemon.stop())
    client.send(1, "tools/call", name="sessions_wait", arguments={})
    answer = client.receive()["result"]
    assert answer["structuredContent"]["code"] == "daemon_unreachable"
    assert client.started == 0
    # A new call starts it.
    client.send(2, "tools/list")
    error = client.receive()["error"]
    assert error["data"]["code"] == "daemon_unreachable"
    assert client.started >= 1


@pytest.mark.requirement("mcp:bridge:handshake")
def test_who_asked_for_progress_hears_that_its_call_waits_for_the_daemon(
    client: BridgeClient,
) -> None:
    for turn in (dies, dies, answers(result(1, ok=True))):
        client.daemon.turns.put(turn)
    meta = {"progressToken": "t"}
    client.send(1, "tools/call", name="sessions_list", arguments={}, _meta=meta)
    told = client.receive()
    assert told["method"] == "notifications/progress"
    assert told["params"]["progressToken"] == "t"
    assert client.receive()["result"] == {"ok": True}


@pytest.mark.requirement("mcp:bridge:protocol")
def test_progress_is_passed_on_as_it_comes_and_pings_are_not(client: BridgeClient) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    events = (
        f": ping\r\n\r\nevent: message\r\ndata: {json.dumps(note)}\r\n\r\n".encode(),
        b": ping\r\n\r\nevent: message\r\nda",
        b"ta: " + result(1, text="a\nb") + b"\r\n\r\n",
    )

    def stream(connection: socket.socket) -> None:
        head = "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        for event in events:
            connection.sendall(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        with contextlib.suppress(BrokenPipeError):  # who has its answer may be gone
            connection.sendall(b"0\r\n\r\n")

    client.daemon.turns.put(stream)
    client.send(1, "tools/call", name="sessions_wait", arguments={})
    assert client.receive() == note
    assert client.receive()["result"] == {"text": "a\nb"}


@pytest.mark.requirement("mcp:bridge:protocol")
def test_an_answer_of_http_becomes_one_of_the_protocol(client: BridgeClient) -> None:
    refused = {"code": "unauthorized", "message": "no token", "status": 401}
    client.daemon.turns.put(answers(msgspec.json.encode(refused), status=401))
    client.send("one", "tools/list")
    assert client.receive() == {
        "jsonrpc": "2.0",
        "id": "one",
        "error": {"code": -32000, "message": "no token", "data": refused},
    }
    nameless = {"jsonrpc": "2.0", "id": None, "error": {"code": -32020, "message": "mismatch"}}
    client.daemon.turns.put(answers(msgspec.json.encode(nameless), status=400))
    client.send(2, "tools/list")
    assert client.receive()["id"] == 2
    client.daemon.turns.put(answers(b"<html>", status=502, kind="text/html"))
    client.send(3, "tools/list")
    assert "HTTP 502" in client.receive()["error"]["message"]


@pytest.mark.requirement("mcp:bridge:protocol")
def test_the_headers_repeat_what_the_body_says(client: BridgeClient) -> None:
    client.daemon.turns.put(answers(result(1, protocolVersion="2025-06-18")))
    client.send(1, "initialize", protocolVersion="2025-06-18")
    client.receive()
    client.daemon.turns.put(answers(result(2)))
    client.send(2, "tools/call", name="größe", arguments={})
    client.receive()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    client.daemon.turns.put(answers(result(3)))
    client.send(3, "tasks/get", taskId="r-1", _meta=meta)
    client.receive()
    first, second, third = (head.splitlines() for head in client.daemon.heads)
    assert not any(line.startswith("mcp-protocol-version") for line in first)
    assert {
        "mcp-protocol-version: 2025-06-18",
        "mcp-method: tools/call",
        "mcp-name: =?base64?Z3LDtsOfZQ==?=",
        "x-subagents-session: agent:main:x",
        "x-subagents-ack: explicit",
    } <= set(second)
    assert {"mcp-protocol-version: 2026-07-28", "mcp-name: r-1"} <= set(third)


@pytest.mark.requirement("mcp:bridge:acknowledges")
def test_a_cancel_that_crossed_the_answer_does_not_acknowledge_it(
    client: BridgeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "LIVES_ON_S", 100.0)
    client.daemon.turns.put(answers(result(1, _meta={"subagents/offered": ["r-1:announce"]})))
    client.send(1, "tools/call", name="sessions_wait", arguments={})
    client.receive()
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    os.write(client._to, json.dumps(note).encode() + b"\n")
    for _ in range(2):  # one more than it needs
        client.daemon.turns.put(answers(result(2)))
    client.send(2, "ping")
    client.receive()

    assert [each.split()[1] for each in client.daemon.heads] == ["/mcp", "/mcp"]


@pytest.mark.requirement("mcp:bridge:protocol")
def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_read(
    client: BridgeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "LINE_BYTES_MAX", 1000)
    client.daemon.turns.put(answers(result(0)))
    client.send(0, "ping")
    client.receive()
    client.send(1, "x" * 5000)
    assert client.receive()["error"]["message"] == "the line is too long"
    client.daemon.turns.put(answers(result(2)))
    client.send(2, "ping")
    assert client.receive()["result"] == {}


@pytest.mark.requirement("mcp:bridge:protocol")
def test_a_line_that_is_nested_too_deeply_is_refused_and_the_next_one_is_read(
    client: BridgeClient,
) -> None:
    client.daemon.turns.put(answers(result(0)))
    client.send(0, "ping")
    client.receive()
    # As much as a pipe holds.
    os.write(client._to, b"[" * 50_000 + b"\n")
    assert client.receive()["error"]["message"] == "the line is nested too deeply"
    client.daemon.turns.put(answers(result(2)))
    client.send(2, "ping")
    assert client.receive()["result"] == {}


@pytest.mark.requirement("mcp:bridge:protocol")
def test_a_value_travels_in_a_header_as_it_is_or_in_base64() -> None:
    assert header_value("sessions_wait") == "sessions_wait"
    assert header_value(" x") == "=?base64?IHg=?="
    assert header_value("a\r\nb") == "=?base64?YQ0KYg==?="
    assert header_value("=?base64?YQ==?=") == "=?base64?PT9iYXNlNjQ/WVE9PT89?="


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_reads_are_repeated_and_deeds_are_not() -> None:
    assert may_repeat("tools/list", {})
    assert may_repeat("tools/call", {"name": "subagents", "arguments": {"action": "inbox"}})
    assert not may_repeat("tools/call", {"name": "subagents", "arguments": {"action": "steer"}})
    assert not may_repeat("tools/call", {"name": "subagents"})
    assert not may_repeat("tools/call", {"name": "unknown"})


# -- who it is ----------------------------------------------------------------------------------


@pytest.mark.requirement("mcp:bridge:session")
def test_a_session_is_named_shortly_or_by_its_whole_key() -> None:
    assert session_of("review") == "agent:main:review"
    assert session_of("agent:helper:x") == "agent:helper:x"
    for wrong in ("", "two words", "ö", "x" * 201, "agent:"):
        with pytest.raises(UsageError) as refusal:
            session_of(wrong)
        assert refusal.value.details == {"field": "--session"}


@pytest.mark.requirement("mcp:bridge:worker")
def test_a_workers_bridge_has_its_token_and_starts_no_daemon(tmp_path: Path) -> None:
    environ = {
        "SUBAGENTS_SOCKET": str(tmp_path / "s"),
        "SUBAGENTS_SESSION_KEY": "agent:x:subagent:1",
        "SUBAGENTS_TOKEN": "sa_r-1_1_secret",
        "CLAUDE_PROJECT_DIR": "/tmp/Ü",
    }
    found = daemon_of(environ, None)
    assert found.headers == {
        "authorization": "Bearer sa_r-1_1_secret",
        "x-subagents-caller": "agent",
        "x-subagents-cwd": "/tmp/%C3%9C",
        "x-subagents-session": "agent:x:subagent:1",
    }
    gone = Gone("nobody listens", was_sent=False)
    assert not found.come_back(gone, Absence(for_s=0.0), may_have_acted=False)


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_a_daemon_that_cannot_be_started_is_given_up_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise DaemonUnreachable("the disk is full")

    found = Daemon(str(tmp_path / "s"), {}, fails)
    gone = Gone("nobody listens", was_sent=False)
    assert found.come_back(gone, Absence(for_s=10.0), may_have_acted=False)
    assert not found.come_back(gone, Absence(for_s=0.0), may_have_acted=False)
    assert capsys.readouterr().err.count("the disk is full") == 1


@pytest.mark.requirement("mcp:bridge:ends")
def test_a_signal_that_comes_before_the_thread_of_a_call_has_begun_ends_it_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(threading.Thread):
        def start(self) -> None:
            if self.name == "acknowledge":
                super().start()
            else:
                raise SystemExit(0)

    monkeypatch.setattr(threading, "Thread", Interrupted)
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"subagents"}}\n'
    daemon = Daemon(str(tmp_path / "s"), {}, None)
    with Path(os.devnull).open("wb") as nowhere, pytest.raises(SystemExit) as ended:
        Bridge(daemon, stdin=io.BytesIO(line), stdout=nowhere.fileno()).run()
    assert ended.value.code == 0


@pytest.mark.requirement("mcp:bridge:survives-daemon", "client:start:elsewhere")
def test_a_daemon_that_will_not_come_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise DaemonUnreachable("it is at work on db2", is_lasting=True)

    found = Daemon(str(tmp_path / "s"), {}, fails)
    gone = Gone("nobody listens", was_sent=False)
    assert not found.come_back(gone, Absence(for_s=60.0), may_have_acted=False)
    assert found.problem == "it is at work on db2"
    assert capsys.readouterr().err == "subagents mcp: it is at work on db2\n"


@pytest.mark.requirement("mcp:bridge:any-line")
@pytest.mark.parametrize(
    "params", [{"name": ["x"]}, {"name": "subagents", "arguments": {"action": {}}}, {}]
)
def test_a_call_whose_name_is_no_text_gets_an_answer_also_when_its_daemon_dies(
    client: BridgeClient, params: dict[str, Any]
) -> None:
    client.daemon.turns.put(dies)
    client.send(1, "tools/call", **params)
    assert client.receive()["result"]["structuredContent"]["code"] == "outcome_unknown"
