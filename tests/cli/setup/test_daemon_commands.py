"""The daemon's life at the command line."""

import os

import msgspec
import pytest
from tests.cli.cli_home import Home, gate, until

from subagents.config.paths import Paths


@pytest.mark.requirement("client:start", "cli:daemon")
def test_ten_commands_at_once_start_one_daemon(home: Home) -> None:
    started = [home.start("up", "--json") for _ in range(10)]
    try:
        answers = [each.communicate(timeout=90) for each in started]
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
    assert "the daemon ended at its start" in str(done.json["message"])
    assert "runtim" in str(done.json["details"])


@pytest.mark.requirement("daemon:socket-again", "cli:daemon")
def test_a_daemon_without_its_socket_file_is_found_by_every_command(home: Home) -> None:
    home.ok("up")
    pid = home.pid()
    path = Paths.resolve(home.env()).socket
    path.unlink()
    assert home.ok("list", "--json").json["runs"] == []
    path.unlink()
    again = home.ok("up", "--json").json
    assert (again["daemonPid"], again["started"]) == (pid, False)
    path.unlink()
    assert home.ok("down", "--yes", "--json").json == {"stopped": True, "daemonPid": pid}


@pytest.mark.requirement("daemon:last-good-config")
def test_a_daemon_starts_with_a_broken_file_and_refuses_only_new_runs(home: Home) -> None:
    config = Paths.resolve(home.env()).config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    good = "[agents.mine]\nruntime = 'command'\ncommand = ['sh', '-c', '{task}']\n"
    config.write_text(good)
    run = home.spawn(f"{gate('go')}; echo went on", "--agent", "mine")
    until(lambda: home.field(run, "phase") == "running", "it runs")
    config.write_text(good + "\n[agents.other]\nruntim = 'command'\n")
    home.ok("down", "--yes")
    up = home.ok("up")
    assert "new runs are refused" in up.err
    assert "runtim" in up.err

    refused = home.cli("spawn", "echo new", "--agent", "mine", "--json")
    assert refused.code == 2
    assert f"{config}:6: unknown key agents.other.runtim" in str(refused.json["message"])
    assert "new runs are refused" in home.ok("list", "--now", run).err

    (home.work / "go").touch()
    assert home.ok("wait", run).out == "went on\n"
    config.write_text(good)
    until(lambda: home.cli("spawn", "true", "--agent", "mine").code == 0, "the mend is seen")
    until(lambda: "refused" not in home.ok("list", "--now", run).err, "all is well again")


@pytest.mark.requirement("daemon:last-good-config")
def test_without_a_good_configuration_before_a_broken_one_starts_nothing(home: Home) -> None:
    config = Paths.resolve(home.env()).config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[agents.x\n")
    assert home.cli("up").code == 7


@pytest.mark.requirement("files:private")
def test_what_is_said_to_be_its_owners_alone_is_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        home.ok("run", "echo hello")
    finally:
        os.umask(before)
    state = Paths.resolve(home.env()).state_dir
    files = [state / "subagents.db", state / "daemon.log", *state.glob("transcripts/*/*.jsonl")]
    assert len(files) >= 3
    kept = [*files, state / "last-good-config.toml", Paths.resolve(home.env()).socket]
    directories = [each for each in (state, *state.rglob("*")) if each.is_dir()]
    assert {oct(each.stat().st_mode & 0o077) for each in (*kept, *directories)} == {"0o0"}
