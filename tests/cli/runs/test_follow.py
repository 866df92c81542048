"""Waiting continues over interruptions and a daemon that dies."""

import signal

import pytest
from tests.cli.cli_home import Home, gate, until


@pytest.mark.requirement("cli:interrupt", "cli:exit-codes")
def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(shared: Home) -> None:
    waiting = shared.start("run", "sleep 60", "--label", "left")
    try:
        until(lambda: shared.cli("list", "--now", "left").code == 0, "the run is there")
        run = str(shared.field("left", "runId"))
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=20)
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
        out, err = waiting.communicate(timeout=40)
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
