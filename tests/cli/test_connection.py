"""Which daemon a command finds, starts or warns of, and how little it asks of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.cli_home import Home, temporary_home
from tests.client.peer import Peer, daemon_of_other_code, http

from subagents.cli import connection
from subagents.cli.command_table import commands, groups, selectors
from subagents.cli.main import main
from subagents.client import daemon_start
from subagents.client.transport import Answer, Connection
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord, own
from subagents.config.paths import Paths
from subagents.errors import (
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_UNREACHABLE,
    DaemonUnreachable,
    UsageError,
)
from subagents.version import __version__


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("home")) as found:
        found.ok("up")
        yield found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that commands of this process make, as ``POST /v1/runs``."""
    found: list[str] = []
    exchange = Connection.exchange

    def noted(self: Connection, sent: bytes, *, timeout_s: float) -> tuple[Answer, bytes]:
        found.append(sent.partition(b" HTTP/")[0].partition(b"?")[0].decode())
        return exchange(self, sent, timeout_s=timeout_s)

    monkeypatch.setattr(Connection, "exchange", noted)
    return found


@pytest.fixture
def here(running: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command in this process, as a user of ``running``."""
    monkeypatch.chdir(running.work)
    for name, value in running.env().items():
        if name.startswith("SUBAGENTS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    monkeypatch.delenv("SUBAGENTS_RUN_ID", raising=False)
    return lambda *argv: main(argv)


REQUESTS = {
    "list": ["GET /v1/runs"],
    "spawn": ["POST /v1/runs"],
    "run": ["POST /v1/runs", "POST /v1/wait", "POST /v1/inbox/ack"],
    "wait": ["POST /v1/wait", "POST /v1/inbox/ack"],
}
"""What each needs when a daemon runs; these lists may only become shorter."""


@pytest.mark.requirement("cli:requests")
def test_a_command_makes_no_request_that_it_does_not_need(
    here: Callable[..., int], asked: list[str]
) -> None:
    commands = {
        "list": ["list"],
        "spawn": ["spawn", "true", "--label", "one"],
        "run": ["run", "sleep 0.3"],
        "wait": ["wait", "one"],
    }
    found = {}
    for name, argv in commands.items():
        asked.clear()
        assert here(*argv) == EXIT_OK
        found[name] = list(asked)
    assert found == REQUESTS


@pytest.mark.requirement("cli:requests")
def test_a_result_counts_as_read_only_once_it_is_printed(
    here: Callable[..., int], asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []
    noted = Connection.exchange

    def looking(self: Connection, sent: bytes, *, timeout_s: float) -> tuple[Answer, bytes]:
        if b"/v1/inbox/ack" in sent:
            printed.append(capsys.readouterr().out)
        return noted(self, sent, timeout_s=timeout_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "exchange", looking)
        assert here("run", "echo the result") == EXIT_OK
    assert printed == ["the result\n"]


@pytest.mark.requirement("cli:daemon", "cli:version-skew")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("spawn", "true"), 0),
        (("list",), 0),
        (("list", "--json"), 0),
        (("list", "--now"), 0),
        (("show", "last"), 0),
        (("why", "last"), 0),
        (("stats",), 0),
        (("inbox",), 0),
        (("inbox", "--attention"), 0),
        (("show", "nobody"), 3),
        (("why", "last", "--verbose"), 0),
        (("list", "--tree"), 0),
    ],
)
def test_a_daemon_of_another_version_is_told_of_by_every_command_that_asks_it(
    here: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    code: int,
) -> None:
    assert here("spawn", "true") == EXIT_OK
    capsys.readouterr()
    assert here(*command) == code
    assert "this command" not in capsys.readouterr().err
    monkeypatch.setattr("subagents.cli.connection.__version__", "99.0")
    assert here(*command) == code
    said = capsys.readouterr().err
    assert said.count(f"the daemon is version {__version__}, this command 99.0") == 1


@pytest.mark.requirement("cli:spawn-flags")
def test_the_configured_default_agent_comes_before_the_command_lines(running: Home) -> None:
    chosen = {"SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__AGENT": "no-such-agent"}
    assert "no-such-agent" in running.cli("spawn", "true", env=chosen).err
    run_id = running.spawn("true")
    assert running.field(run_id, "agentId") == "command"


@pytest.mark.requirement("cli:daemon")
def test_a_daemon_of_0_1_0_that_still_runs_takes_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = {"code": "invalid", "message": "unknown", "details": {"field": "defaultAgent"}}
    missing = {"code": "invalid", "message": "agentId is missing and …", "details": {}}

    def reply(request: bytes) -> bytes:
        if b"defaultAgent" in request:
            return http(unknown, status=422)
        if b'"agentId":"command"' not in request:
            return http(missing, status=422)
        return http({"runId": "r-1", "label": "x", "agentId": "command", "phase": "queued"})

    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    monkeypatch.delenv("SUBAGENTS_RUN_ID", raising=False)
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    with closing(Peer(paths.socket, reply)):
        assert main(["spawn", "true"]) == EXIT_OK
    said = capsys.readouterr()
    assert said.out == "r-1\n"
    assert "the daemon is version 0.1.0 or older" in said.err


@pytest.mark.requirement("cli:version-skew")
def test_a_daemon_of_other_code_of_this_version_is_told_of_as_one_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon_of_other_code(tmp_path, monkeypatch, {"runs": []}):
        assert main(["list"]) == EXIT_OK
    said = capsys.readouterr().err
    assert f"the daemon is version {__version__} (other code), this command {__version__}" in said


LOOKING: dict[str, list[list[str]]] = {
    "plan list": [[]],
    "schedule list": [[]],
    "worktree list": [[]],
    "worktree diff": [["last"]],
    "inbox": [
        *([], ["--json"], ["--attention"], ["--attention", "--json"]),
        *(["--alerts"], ["--alerts", "--limit", "1"]),
    ],
    "list": [
        *([], ["--json"], ["--label", "x"], ["last"], ["--format", "csv"]),
        *(["--tree"], ["--tree", "--json"]),
        *(["--now"], ["--now", "last"], ["--now", "--json"]),
        *(["--watch"], ["--watch", "--json"]),
    ],
    "show": [["last"], *([f"{key.split()[1]}x"] for key in selectors() if key.startswith("show "))],
    "result": [["last"]],
    "log": [["last"], ["last", "--follow"]],
    "events": [[], ["--follow"]],
    "why": [["last"], ["last", "-v"]],
    "stats": [[]],
}
READING = {name: LOOKING[name] for name in LOOKING if any(name == c.name for c in commands())}
"""Commands that only look, and calls of each; of those that are installed."""
OTHERS = {"ui"}
"""Of those that show what happens: it starts a daemon at any time."""
LAST: dict[str, DaemonRecord | None] = {
    "a fresh home": None,
    "a crash": replace(own(), start="1"),
    "power that failed": replace(own(), boot="0"),
    "an orderly reboot": replace(own(), boot="0", has_ended=True),
    "a container that was made anew": replace(own(), pid_namespace="pid:[1]", has_ended=True),
    "a stop on another machine": replace(own(), boot="0", host="db2", has_ended=True),
    "a version before that was killed": DaemonRecord(pid=2**22 + 1),
}
"""After what no daemon is there, though nobody told this machine's to stop."""


@pytest.fixture
def leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[DaemonRecord | None], None]:
    """Makes a home whose last daemon left this; commands of this process are at home there."""
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    for name in ("SUBAGENTS_RUN_ID", "SUBAGENTS_SOCKET"):
        monkeypatch.delenv(name, raising=False)

    def made(last: DaemonRecord | None) -> None:
        paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
        paths.ensure()
        if last is not None:
            paths.lock_file.write_bytes(daemon_record.written(last))

    return made


@pytest.mark.requirement("cli:daemon:reading")
def test_every_command_that_shows_what_happens_has_its_row() -> None:
    assert {each.name for each in groups()["See what happens"]} <= {*READING, *OTHERS}


@pytest.mark.requirement("cli:daemon:reading")
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("name", READING)
def test_a_command_that_looks_starts_a_daemon_where_none_was_told_to_stop(
    name: str,
    last: str,
    leave: Callable[[DaemonRecord | None], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Paths] = []

    def start(paths: Paths) -> bool:
        started.append(paths)
        raise DaemonUnreachable("enough", is_lasting=True)

    monkeypatch.setattr(daemon_start, "ensure_daemon", start)
    leave(LAST[last])
    for flags in READING[name]:
        assert main([*name.split(), *flags]) == EXIT_UNREACHABLE
    assert len(started) == len(READING[name])


@pytest.mark.requirement("cli:daemon:reading", "cli:exit-codes")
@pytest.mark.parametrize("name", READING)
def test_a_command_that_looks_says_at_once_that_the_daemon_was_told_to_stop(
    name: str,
    leave: Callable[[DaemonRecord | None], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(daemon_start, "ensure_daemon", lambda _: pytest.fail("it started one"))
    # Whoever waits, for a daemon that nobody starts, fails.
    monkeypatch.setattr("subagents.client.client.RECONNECT_POLL_S", None)
    leave(own(has_ended=True))
    for flags in READING[name]:
        assert main([*name.split(), *flags]) == EXIT_UNREACHABLE
        said = capsys.readouterr()
        assert "told to stop" in said.out + said.err
        assert "subagents up" in said.out + said.err


@pytest.mark.requirement("cli:daemon:reading")
def test_on_a_fresh_home_there_is_nothing_yet_and_after_a_stop_it_stays_stopped(home: Home) -> None:
    for argv in (
        *(["list"], ["status"], ["inbox"], ["attention"], ["schedule", "list"], ["watch"]),
        *(["tree"], ["alerts"], ["stats"], ["events"], ["export"]),
    ):
        assert home.cli(*argv).code == EXIT_OK, argv
    assert home.cli("why", "last").code == EXIT_NOT_FOUND
    pid = home.pid()
    assert home.ok("down", "--yes", "--json").json == {"stopped": True, "daemonPid": pid}
    done = home.cli("list", "--json")
    assert done.code == EXIT_UNREACHABLE
    assert done.json["code"] == "daemon_unreachable"
    assert done.json["retryable"] is True
    assert home.ok("down", "--yes", "--json").json == {"stopped": False, "daemonPid": None}


@pytest.mark.requirement("cli:daemon")
def test_any_command_brings_a_crashed_daemon_back(home: Home) -> None:
    run = home.spawn("echo kept")
    home.ok("wait", run)
    home.kill_daemon()
    done = home.cli("result", run)
    assert (done.code, done.out) == (0, "kept\n")
    assert "The daemon had crashed" in done.err


@pytest.mark.requirement("cli:spawn")
def test_a_directory_that_no_request_can_name_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: "/tmp/\udcff")
    with pytest.raises(UsageError, match="the working directory has a name that is no UTF-8"):
        connection.caller_cwd()
