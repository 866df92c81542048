"""Processes that belong to no run any more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.live_home import LiveHome, live_home, until


def _sleeper(home: LiveHome, attempt: str, root: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        env={
            "PATH": os.environ["PATH"],
            "E2E_MARK": home.mark,
            "SUBAGENTS_ATTEMPT": attempt,
            "SUBAGENTS_ATTEMPTS_DIR": str(root),
        },
        start_new_session=True,
    )


@pytest.mark.requirement("e2e:orphans")
def test_the_sweep_ends_what_is_left_of_an_ended_run_and_only_that(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("echo done")
        home.finish(run_id)
        ours = home.paths.attempts_dir
        left = _sleeper(home, f"{run_id}#1", ours)
        unknown = _sleeper(home, "r-0000000000#1", ours)
        elsewhere = _sleeper(home, f"{run_id}#1", tmp_path / "other")

        found = home.post("/v1/sweep")["orphans"]

        assert {each["pid"] for each in found} == {left.pid, unknown.pid}
        assert left.wait(10) != 0
        assert unknown.poll() is None
        assert elsewhere.poll() is None
        for process in (unknown, elsewhere):
            process.kill()
            process.wait(10)


@pytest.mark.requirement("e2e:orphans")
def test_the_sweep_leaves_a_working_run_alone(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("while [ ! -e go ]; do sleep 0.02; done; echo went")
        home.until_phase(run_id, "running")
        assert home.post("/v1/sweep")["orphans"] == []
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["result"] == "went"
        until(lambda: home.row(run_id)["phase"] == "completed", what="the run is over")
