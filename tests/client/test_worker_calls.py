"""A worker's word is one request, made again only where the daemon cannot have heard it."""

from contextlib import ExitStack
from pathlib import Path

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
