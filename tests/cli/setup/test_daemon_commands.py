"""The daemon's life at the command line."""

import msgspec
import pytest
from tests.cli.cli_home import Home, gate, until


@pytest.mark.requirement("client:start", "cli:daemon")
def test_ten_commands_at_once_start_one_daemon(home: Home) -> None:
    started = [home.start("up", "--json") for _ in range(10)]
    try:
        answers = [each.communicate(timeout=40) for each in started]
    finally:
        for each in started:
            each.kill()
    documents = [msgspec.json.decode(out, type=dict[str, object]) for out, _ in answers]
    assert len({each["daemonPid"] for each in documents}) == 1
    assert [each["started"] for each in documents].count(True) == 1


@pytest.mark.requirement("cli:daemon")
def test_run_starts_the_daemon_and_down_stops_it(home: Home) -> None:
    assert home.ok("run", "echo first").out == "first\n"
    pid = home.pid()
    assert home.ok("down", "--yes", "--json").json == {"stopped": True, "daemonPid": pid}
    assert home.ok("doctor", "--json").json["daemonPid"] is None
    assert home.cli("list").code == 7


@pytest.mark.requirement("cli:daemon", "cli:confirm")
def test_down_with_open_runs_needs_a_yes_and_the_work_goes_on_without_a_daemon(home: Home) -> None:
    run = home.spawn(f"{gate('stopped')}; echo went on")
    until(lambda: home.field(run, "phase") == "running", "it runs")
    refused = home.cli("down")
    assert refused.code == 2
    assert "1 run is active" in refused.err
    home.ok("down", "--yes")
    (home.work / "stopped").touch()
    assert home.ok("wait", run).out == "went on\n"


@pytest.mark.requirement("client:start")
def test_a_daemon_that_cannot_start_is_said_at_once_with_its_reason(home: Home) -> None:
    config = home.root / "h" / "config" / "subagents.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[agents.x]\nruntim = 'command'\n")
    done = home.cli("up", "--json")
    assert done.code == 7
    assert "did not start and ended" in str(done.json["message"])
    assert "runtim" in str(done.json["details"])
