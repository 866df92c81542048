"""A client over plain HTTP that is killed before it has read an answer takes no message with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.live_home import BOUND_S, LiveHome, live_home, until
from tests.free_ports import free_port

CLIENT = """
import json, select, socket, sys, time
kind, address, head, body, reads = sys.argv[1:]
if kind == "unix":
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
else:
    line = socket.create_connection(("127.0.0.1", int(address)))
line.sendall((head + body).encode())
select.select([line], [], [])
if reads == "all":
    answer = b""
    while b'"completed"' not in answer:
        answer += line.recv(65536)
print("there", flush=True)
sys.stdin.read()
"""
CALLS = {
    "mcp": (
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "sessions_wait", "arguments": {}},
        },
    ),
    "tools": ("/v1/tools/sessions_wait", {}),
}


def client(
    home: LiveHome, kind: str, call: str, port: int, *, reads: str
) -> "subprocess.Popen[bytes]":
    """One that has the answer in its socket, or has read it, when this returns."""
    target, document = CALLS[call]
    body = json.dumps(document)
    headers = {
        "Host": f"127.0.0.1:{port}",
        "X-Subagents-Ack": "auto",
        "X-Subagents-Session": "agent:main:main",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    if kind == "tcp":
        token = (home.paths.state_dir / "operator.token").read_text().strip()
        headers["Authorization"] = f"Bearer {token}"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {target} HTTP/1.1\r\n{lines}\r\n"
    address = str(port) if kind == "tcp" else str(home.paths.socket)
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, kind, address, head, body, reads],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait(BOUND_S)
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


@pytest.mark.requirement("inbox:after-hand-over", "mcp:consumed-once")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_what_lay_unread_in_the_socket_of_a_killed_client_goes_to_the_next_at_once(
    tmp_path: Path, kind: str, call: str
) -> None:
    port = free_port()
    with live_home(tmp_path, config=f"[daemon]\nhttp_port = {port}\n") as home:
        run_id = home.spawn("echo the result")
        home.until_phase(run_id, "completed")

        end(client(home, kind, call, port, reads="nothing"))
        # Its lease would have been a minute.
        message_id = f"{run_id}:announce"
        until(lambda: home.wait(run_id)["messages"] == [message_id], what="offered", within_s=20)
        home.post("/v1/inbox/ack", {"messageIds": [message_id]})
        assert home.read("SELECT consumed_by FROM inbox") == [(home.reader,)]


@pytest.mark.requirement("inbox:after-hand-over", "mcp:consumed-once")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_what_a_client_has_read_is_consumed_although_it_says_nothing(
    tmp_path: Path, kind: str, call: str
) -> None:
    port = free_port()
    with live_home(tmp_path, config=f"[daemon]\nhttp_port = {port}\n") as home:
        run_id = home.spawn("echo the result")
        home.until_phase(run_id, "completed")

        process = client(home, kind, call, port, reads="all")
        until(
            lambda: home.read("SELECT consumed_by FROM inbox") != [(None,)],
            what="consumed, while the client lives",
        )
        end(process)
        assert home.wait(run_id, timeout_s=0)["messages"] == []
