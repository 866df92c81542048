"""Whoever has the same home reaches the same daemon, whoever started it; real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from subagents.client.daemon_start import holder
from subagents.config.paths import Paths

BOUND_S = 90
SDK = {"LOGNAME": "u", "SHELL": "/bin/sh", "TERM": "dumb", "USER": "u"}
CALLERS: dict[str, dict[str, str]] = {
    "login": {"HOME": "{home}", "XDG_RUNTIME_DIR": "{rt}", "USER": "u"},
    "cron": {"HOME": "{home}", "LOGNAME": "u", "SHELL": "/bin/sh"},
    "client": {"HOME": "{home}", **SDK},
    "env -i": {"HOME": "{home}"},
    "logged out": {"HOME": "{home}", "XDG_RUNTIME_DIR": "{rt}/gone"},
    "relative": {"HOME": "{home}/", "XDG_STATE_HOME": "state", "SUBAGENTS_HOME": ""},
}
PAIRS = (
    ("login", "cron"),
    ("cron", "login"),
    ("login", "client"),
    ("client", "env -i"),
    ("logged out", "login"),
    ("relative", "cron"),
)
PYTHON = """
from subagents import Subagents
with Subagents.connect() as mine:
    print(mine.spawn("echo from python", agent="command").wait().result)
"""
ASYNC = """
import asyncio
from subagents import Orchestrator
async def main():
    async with Orchestrator.connect() as mine:
        print((await (await mine.spawn("echo from a loop", agent="command")).wait()).result)
asyncio.run(main())
"""
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "sessions_list", "arguments": {}},
}


class Place:
    """A user's directory, and the commands of those that have it for their home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("home", "rt", "work"):
            (root / name).mkdir(mode=0o700)
        self.paths = Paths.resolve({"HOME": str(root / "home")})

    def environ(self, caller: str) -> Mapping[str, str]:
        names = {"home": self.root / "home", "rt": self.root / "rt"}
        found = {key: value.format(**names) for key, value in CALLERS[caller].items()}
        return {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **found}

    def call(self, caller: str, *argv: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *argv],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.root / "work",
            env=self.environ(caller),
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    def cli(self, caller: str, *argv: str, stdin: str = "") -> str:
        return self.call(caller, "-m", "subagents", *argv, stdin=stdin)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    try:
        yield found
    finally:
        found.cli("env -i", "down", "--yes")


@pytest.mark.requirement("paths:socket-of-home")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_second_caller_reaches_the_daemon_that_the_first_one_started(
    place: Place, first: str, second: str
) -> None:
    pid = json.loads(place.cli(first, "up", "--json"))["daemonPid"]
    assert place.cli(second, "run", "echo two") == "two\n"
    assert json.loads(place.cli(second, "doctor", "--json"))["daemonPid"] == pid
    assert json.loads(place.cli(second, "down", "--yes", "--json"))["daemonPid"] == pid
    assert holder(place.paths) is None


@pytest.mark.requirement("paths:socket-of-home")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_every_kind_of_client_reaches_it(place: Place) -> None:
    config = place.paths.config_file
    config.parent.mkdir(parents=True)
    config.write_text(
        '[agents.main]\nsubagents.allow_agents = ["*"]\n'
        '[agents.command]\nruntime = "command"\ncommand = ["sh", "-c", "{task}"]\n'
    )
    pid = json.loads(place.cli("login", "up", "--json"))["daemonPid"]
    (place.root / "rt").chmod(0o700)
    os.rmdir(place.root / "rt")  # noqa: PTH106  it must be empty: nothing of ours was in it
    assert place.call("client", "-c", PYTHON) == "from python\n"
    assert place.call("env -i", "-c", ASYNC) == "from a loop\n"
    answer = json.loads(place.cli("client", "mcp", stdin=json.dumps(CALL) + "\n"))
    assert not answer["result"].get("isError"), answer
    place.cli("cron", "hook", "session-start", stdin="{}")
    found = holder(place.paths)
    assert found is not None
    assert found.pid == pid
