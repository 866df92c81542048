"""A supervisor written from docs/supervisor.md alone, with a real daemon, over kill -9."""

import itertools
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import BOUND_S, LiveHome, live_home, until

Document = dict[str, Any]


class SeedSupervisor:
    """What the page describes, and nothing of ours: lines of JSON over a Unix socket."""

    def __init__(self, path: Path, agent_id: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(BOUND_S)
        self.sock.connect(str(path))
        self.buffer = b""
        self.ids = itertools.count(1)
        self.events: list[Document] = []
        self.send({"type": "register_supervisor", "agentId": agent_id})
        assert self.read()["type"] == "registered"

    def send(self, message: Document) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> Document:
        while b"\n" not in self.buffer:
            chunk = self.sock.recv(65536)
            if not chunk:
                raise ConnectionError("the other side hung up")
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: Document = json.loads(line)
        if message["type"] == "event":
            self.events.append(message)
        return message

    def command(self, action: str, **params: Any) -> Document:
        """The ``result``; events that come first are kept."""
        request_id = f"req-{next(self.ids)}"
        self.send({"type": "command", "requestId": request_id, "action": action, "params": params})
        while True:
            message = self.read()
            if message["type"] == "response" and message["requestId"] == request_id:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                result: Document = message["result"]
                return result

    def event(self, name: str, agent_id: str) -> Document:
        """The first event of that name from that agent."""
        due = time.monotonic() + BOUND_S
        while time.monotonic() < due:
            for event in self.events:
                if (event["event"], event["agentId"]) == (name, agent_id):
                    return event
            self.read()
        raise TimeoutError(f"no {name} from {agent_id}")

    def hear_out(self) -> None:
        """Keep what still comes until the other side is gone, and close."""
        try:
            while True:
                self.read()
        except ConnectionError:
            self.hang_up()

    def hang_up(self) -> None:
        self.sock.close()


WORK = """
echo '{"subagents":"tool","name":"TodoWrite","input":{"todos":[
{"content":"Read specs","status":"completed"},{"content":"Build","status":"in_progress"}]}}' \
 | tr -d '\\n'; echo
echo '{"subagents":"tool","name":"Bash","input":{"command":"npm run build"},"output":"ok",\
"exitCode":0,"durationMs":2100}'
subagents notify 'Build fails. Install it?' --priority question
until [ -e %s ]; do sleep 0.02; done
echo finished
"""


def create(one: SeedSupervisor, home: LiveHome, name: str, gate: str) -> Document:
    task = WORK % (home.work / gate)
    return one.command("create_agent", agentId=name, agent="sh", task=task, cwd=str(home.work))


def keys(events: list[Document]) -> list[tuple[int, str, str]]:
    return [(each["seq"], each["event"], each["agentId"]) for each in events]


@pytest.mark.requirement("e2e:supervisor:foreign-client")
def test_a_supervisor_written_from_the_page_alone_sees_and_directs_its_agents(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        one = SeedSupervisor(home.paths.supervisor_socket, "openclaw")
        two = SeedSupervisor(home.paths.supervisor_socket, "watcher")
        two.command("subscribe", events=["cc_message", "completion"])
        create(one, home, "sentinella", "go1")

        asked = one.event("cc_message", "sentinella")
        assert (asked["text"], asked["priority"]) == ("Build fails. Install it?", "question")
        assert one.command("ping")
        status = one.command("status", agentId="sentinella")
        assert (status["agentId"], status["state"]) in {
            ("sentinella", "active"),
            ("sentinella", "blocked"),
        }
        assert status["costUsd"] is None
        log = until(
            lambda: (
                found
                if (found := one.command("get_log", agentId="sentinella", type="tool", limit=50))[
                    "returnedLines"
                ]
                >= 3
                else None
            ),
            what="the tools in the log",
        )
        assert log["totalLines"] == log["returnedLines"]
        assert any(line["text"].startswith("✅ Bash (2.1s)") for line in log["lines"])
        assert {"ts", "type", "text"} <= set(log["lines"][0])
        with pytest.raises(RuntimeError, match="takes no messages while it runs"):
            one.command("send_message", agentId="sentinella", text="yes, install it")
        (home.work / "go1").touch()
        end = one.event("completion", "sentinella")
        assert (end["status"], end["result"].splitlines()[-1]) == ("ok", "finished")
        assert two.event("completion", "sentinella") == end
        assert keys(two.events) == [
            each for each in keys(one.events) if each[1] in {"cc_message", "completion"}
        ]

        create(two, home, "doomed", "never")
        until(home.marked, what="a worker")
        two.command("kill_cc", agentId="doomed")
        assert two.event("completion", "doomed")["status"] == "cancelled"
        until(lambda: not home.marked(), what="the end of all its processes")
        assert two.command("destroy_agent", agentId="doomed")["agentId"] == "doomed"
        assert "doomed" not in {each["agentId"] for each in one.events}
        one.hang_up()
        two.hang_up()


@pytest.mark.requirement("e2e:supervisor:replay")
def test_after_kill_9_both_supervisors_get_exactly_what_they_missed(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        ones = {
            name: SeedSupervisor(home.paths.supervisor_socket, name) for name in ("red", "blue")
        }
        for name, one in ones.items():
            one.command("subscribe", session=f"agent:{name}:main")
            create(one, home, f"{name}-1", f"{name}-go")
            one.event("cc_message", f"{name}-1")
        home.kill()
        for one in ones.values():
            one.hear_out()
        before = {name: one.events for name, one in ones.items()}
        # What happens while no daemon is there, and before they are back.
        for name in ones:
            (home.work / f"{name}-go").touch()
        home.start()
        for name in ones:
            home.until_phase(f"{name}-1", "completed")

        for name in ones:
            seen = max(each["seq"] for each in before[name])
            again = SeedSupervisor(home.paths.supervisor_socket, name)
            again.command("subscribe", session=f"agent:{name}:main", **{"from": seen})
            assert again.event("completion", f"{name}-1")["status"] == "ok"
            create(again, home, f"{name}-2", f"{name}-go")
            again.event("completion", f"{name}-2")
            whole = SeedSupervisor(home.paths.supervisor_socket, "auditor")
            whole.command("subscribe", session=f"agent:{name}:main", **{"from": 0})
            whole.event("completion", f"{name}-2")

            assert keys(before[name]) + keys(again.events) == keys(whole.events)
            numbers = [number for number, _, _ in keys(whole.events)]
            assert numbers == sorted(set(numbers))
            assert {each["agentId"] for each in whole.events} == {f"{name}-1", f"{name}-2"}
            again.hang_up()
            whole.hang_up()
