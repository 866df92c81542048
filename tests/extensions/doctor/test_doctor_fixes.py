"""What ``doctor --fix`` puts right, and what it leaves alone."""

import os
import signal
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, until
from tests.live_processes import is_running

from subagents.config.paths import Paths


@pytest.mark.requirement("cli:doctor-fix")
def test_directories_are_closed_and_what_was_done_is_said(home: Home) -> None:
    home.ok("run", "true")
    state = Paths.resolve(home.env()).state_dir
    state.chmod(0o755)

    assert "chmod 700" in home.cli("doctor").out
    assert state.stat().st_mode & 0o777 == 0o755
    said = home.cli("doctor", "--fix").out

    assert f"Fixed: chmod 700 {state}" in said
    assert state.stat().st_mode & 0o777 == 0o700
    assert home.cli("doctor", "--fix", "--json").json["fixed"] == []


@pytest.mark.requirement("cli:doctor-fix")
def test_a_daemon_that_crashed_is_started_and_a_stopped_one_is_not(home: Home) -> None:
    home.ok("up")
    pid = home.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid), "the killed daemon is gone")

    found = home.cli("doctor", "--fix", "--json").json
    assert found["fixed"] == ["subagents up: the daemon had crashed and is running again"]
    assert isinstance(found["daemonPid"], int)

    home.down()
    assert home.cli("doctor", "--fix", "--json").json["daemonPid"] is None


@pytest.mark.requirement("cli:doctor-fix")
def test_a_broken_configuration_is_left_to_its_author(home: Home) -> None:
    file = Path(home.work / "subagents.toml")
    file.write_text("nonsense = \n")
    said = home.cli("doctor", "--fix")
    assert said.code == 1
    assert "Nothing was wrong that --fix could put right." in said.out
    assert file.read_text() == "nonsense = \n"
