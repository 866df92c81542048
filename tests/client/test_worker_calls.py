"""A worker's word is one request, made again only where the daemon cannot have heard it."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.client.peer import Peer, http, peer

from subagents.client.client import Client
from subagents.client.worker_calls import WorkerCalls
from subagents.errors import DaemonUnreachable


@pytest.mark.requirement("cli:worker-verbs")
def test_a_report_is_one_request(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: http({"status": "ok"})) as found, Client(found.path) as client:
        assert WorkerCalls(client, "r-1").tell("report", {"summary": "done"}) == {"status": "ok"}
    (request,) = found.requests
    assert request.startswith(b"POST /v1/runs/r-1/report ")


@pytest.mark.requirement("cli:worker-verbs", "cli:survives-daemon")
def test_a_daemon_that_is_away_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back: list[Peer] = []
    with ExitStack() as open_:

        def come_back(_seconds: float) -> None:
            if not back:
                back.append(open_.enter_context(peer(tmp_path, lambda _: http({"status": "ok"}))))

        with peer(tmp_path, lambda _: http({})) as gone:
            path = gone.path
        path.unlink(missing_ok=True)
        monkeypatch.setattr("subagents.client.client.time.sleep", come_back)
        with Client(path) as client:
            WorkerCalls(client, "r-1").tell("notify", {"message": "here"})
        assert len(back[0].requests) == 1


@pytest.mark.requirement("cli:worker-verbs", "cli:survives-daemon")
def test_a_word_that_may_have_been_heard_is_not_said_again(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: b"") as found, Client(found.path) as client:
        with pytest.raises(DaemonUnreachable, match="closed the connection"):
            WorkerCalls(client, "r-1").tell("notify", {"message": "here"})
        assert len(found.requests) == 1


@pytest.mark.requirement("cli:worker-verbs", "requests:deadline")
@pytest.mark.parametrize(
    ("given", "deadline", "sent"),
    [
        ({}, None, None),
        ({"default": "yes"}, "2026-11-28T00:10:00.000Z", None),
        ({"timeout_s": 90.0}, "2026-11-28T00:01:30.000Z", 90.0),
    ],
)
def test_a_question_says_how_long_it_stands_only_where_somebody_said_so(
    tmp_path: Path, given: dict[str, Any], deadline: str | None, sent: float | None
) -> None:
    stored = {"requestId": "r-1:q1", "status": "pending", "deadlineAt": deadline}

    def answer(request: bytes) -> bytes:
        is_asked = request.startswith(b"POST")
        return http(stored if is_asked else {**stored, "status": "answered", "answer": "a"})

    with peer(tmp_path, answer) as found, Client(found.path) as client:
        settled = WorkerCalls(client, "r-1").ask("which?", **{"timeout_s": None, **given})
    assert settled["answer"] == "a"
    body = json.loads(found.requests[0].partition(b"\r\n\r\n")[2])
    assert body.get("timeoutSeconds") == sent
