"""Waiting continues over interruptions and a daemon that dies."""

import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.cli_home import Home, gate, until

from subagents.cli.runs import follow
from subagents.client.client import Document
from subagents.version import __version__


@pytest.mark.requirement("cli:interrupt", "cli:exit-codes")
def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(shared: Home) -> None:
    waiting = shared.start("run", "sleep 60", "--label", "left")
    try:
        until(lambda: shared.cli("list", "--now", "left").code == 0, "the run is there")
        run = str(shared.field("left", "runId"))
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=90)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (130, "")
    assert f"subagents wait {run}" in err
    assert "Traceback" not in err
    assert shared.field(run, "outcome") is None
    shared.ok("cancel", run)


@pytest.mark.requirement("cli:survives-daemon")
def test_a_wait_outlives_a_killed_daemon_and_brings_it_back(home: Home) -> None:
    waiting = home.start("run", f"{gate('killed')}; echo survived", "--label", "survivor")
    try:
        until(lambda: home.cli("list", "--now", "survivor").code == 0, "the run is there")
        until(lambda: home.field("survivor", "phase") == "running", "it runs")
        home.kill_daemon()
        (home.work / "killed").touch()
        out, err = waiting.communicate(timeout=90)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (0, "survived\n"), err
    assert "was restarted" in err


@pytest.mark.requirement("cli:survives-daemon", "cli:worker-verbs")
def test_a_question_outlives_a_killed_daemon(home: Home) -> None:
    run = home.spawn("echo got $(subagents ask 'still there?' --timeout 60s)")
    until(lambda: home.field(run, "pendingRequestCount") == 1, "the question is there")
    home.kill_daemon()
    home.ok("up")
    home.ok("answer", run, "yes")
    assert home.ok("wait", run).out == "got yes\n"


@pytest.mark.requirement("cli:wait")
def test_a_wait_for_the_last_run_stays_with_it_when_another_one_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []

    def post(_: str, body: Any, **__: object) -> Document:
        asked.append(list(body["runIds"]))
        found: Document = {"completed": [], "pending": [], "errors": [], "messages": []}
        return {**found, ("pending", "completed")[len(asked) - 1]: [{"runId": "r-1"}]}

    client = SimpleNamespace(post=post, daemon_version=__version__)
    monkeypatch.setattr(follow, "connect", lambda **_: nullcontext(client))
    waiting = follow.Waiting(["last"], until="all", timeout_s=None, starts=False)
    waiting.run()

    assert (waiting.error, asked) == (None, [["last"], ["r-1"]])
