"""What Claude Code was handed counts as read once a session that is resumed would have it."""

import json
import socket
import threading
from pathlib import Path

import pytest
from tests.extensions.mcp.bridge.dying_daemon import BOUND_S, FakeDaemon, answers, result
from tests.extensions.mcp.bridge.test_bridge import BridgeClient

ASKED = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1"}]}}
KEPT = {"type": "user", "message": {"content": [{"tool_use_id": "toolu_1", "content": "42"}]}}


def line(document: object) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


@pytest.mark.requirement("mcp:bridge:acknowledges")
@pytest.mark.parametrize("file", ["s-1.jsonl", "after-clear.jsonl", "s-1/subagents/agent-a.jsonl"])
def test_an_answer_counts_as_read_when_the_transcript_has_it_and_not_with_the_next_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    project = tmp_path / "projects/-work"
    kept = project / file
    kept.parent.mkdir(parents=True)
    (project / "s-1.jsonl").write_text(line(KEPT))  # a call of a former session of the same id
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")
    daemon = FakeDaemon(tmp_path / "s")
    client = BridgeClient(daemon)
    acknowledged = threading.Event()

    def serves(connection: socket.socket) -> None:
        is_ack = "/v1/inbox/ack" in daemon.heads[-1]
        answers(b"{}" if is_ack else result(2))(connection)
        if is_ack:
            acknowledged.set()

    daemon.turns.put(answers(result(1, _meta={"subagents/offered": ["r-1:announce"]})))
    client.send(1, "tools/call", name="sessions_wait", _meta={"claudecode/toolUseId": "toolu_1"})
    client.receive()
    with kept.open("a") as transcript:
        transcript.write(line(ASKED) + line(KEPT).rstrip())  # and the rest of the line is to come
        transcript.flush()
        for _ in range(2):
            daemon.turns.put(serves)
        client.send(2, "tools/list")
        assert client.receive()["id"] == 2
        assert not acknowledged.is_set()
        transcript.write("\n")
    assert acknowledged.wait(BOUND_S)
    client.close()
    daemon.stop()
