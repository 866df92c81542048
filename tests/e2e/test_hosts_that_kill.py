"""Hosts end what they started when they exit; the daemon and its workers are not theirs.

opencode walks from parent to child when it exits, shells end process groups, login sessions end
sessions, and Jenkins ends every process that carries a variable of its build.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.bridge_client import PROGRAM, environment
from tests.e2e.live_home import LiveHome, live_home, until
from tests.live_processes import carrying

from subagents.runtimes.process.processes import scan

HOST = "HOST_MARK"
TASK = "touch begun; until [ -e go ]; do sleep 0.05; done; echo lived on"


def message(method: str, params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})


BY_PYTHON = """
import asyncio, sys
from subagents import Orchestrator
async def main():
    async with Orchestrator.connect() as orchestrator:
        await orchestrator.spawn(sys.argv[1], agent="sh", label="it")
        await asyncio.sleep(600)
asyncio.run(main())
"""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
SPAWN = {"name": "sessions_spawn", "arguments": {"task": TASK, "agentId": "sh", "label": "it"}}
BY_BRIDGE = f"""
{{
    cat <<'END'
{message("initialize", INITIALIZE)}
{message("tools/call", SPAWN)}
END
    exec sleep 600
}} | "$0" mcp
"""
CLIENTS: Mapping[str, list[str]] = {
    "command": [PROGRAM, "spawn", TASK, "--agent", "sh", "--label", "it"],
    "bridge": ["sh", "-c", BY_BRIDGE, PROGRAM],
    "python": [sys.executable, "-c", BY_PYTHON, TASK],
}


def children_of(host: int) -> set[int]:
    """As opencode finds them: the children, their children, and so on."""
    parents = {each.pid: each.parent for each in scan()}
    found = {host}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def group_of(host: int) -> set[int]:
    found = set()
    for each in scan():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(each.pid) == host:
                found.add(each.pid)
    return found


def session_of(host: int) -> set[int]:
    return {each.pid for each in scan() if each.session == host}


def marked_by(host: int) -> set[int]:
    return set(carrying(HOST, "1")) | {host}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LiveHome]:
    with live_home(tmp_path, started=False) as home:
        yield home


@pytest.mark.requirement("daemon:outlives-its-starter")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_end_of_all_processes_of_a_host_ends_neither_daemon_nor_worker(
    home: LiveHome, client: str
) -> None:
    assert_outlives(home, CLIENTS[client], children_of)


@pytest.mark.requirement("daemon:outlives-its-starter")
@pytest.mark.parametrize("found", [group_of, session_of, marked_by])
def test_no_group_session_or_variable_of_a_host_reaches_daemon_or_worker(
    home: LiveHome, found: Callable[[int], set[int]]
) -> None:
    assert_outlives(home, CLIENTS["command"], found)


def assert_outlives(home: LiveHome, argv: list[str], found: Callable[[int], set[int]]) -> None:
    host = subprocess.Popen(
        ["sh", "-c", '"$@"; exec sleep 600', "host", *argv],
        stdout=subprocess.DEVNULL,
        env={**environment(home), HOST: "1"},
        cwd=home.work,
        start_new_session=True,
    )
    try:
        until((home.work / "begun").exists, what="the worker")
        daemon = int(home.get("/version")["pid"])
        worker = home.worker_pid(home.row("it")["runId"])
        killed = found(host.pid)
        while living := found(host.pid) & {each.pid for each in scan()}:
            killed |= living
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert not killed & {daemon, worker}
    finally:
        host.kill()
        host.wait()
    assert int(home.get("/version")["pid"]) == daemon
    (home.work / "go").touch()
    [item] = home.finish(home.row("it")["runId"])
    assert item["result"] == "lived on"


@pytest.mark.requirement("daemon:outlives-its-starter")
@pytest.mark.parametrize(("answers", "asked"), [("works", 1), ("is too old", 2), ("fails", 2)])
def test_the_daemon_gets_a_scope_of_the_users_systemd_and_starts_also_without_one(
    home: LiveHome, answers: str, asked: int
) -> None:
    programs, runtime = home.root / "bin", home.root / "xdg"
    programs.mkdir()
    (runtime / "systemd" / "private").mkdir(parents=True)
    fake = programs / "systemd-run"
    fake.write_text(SYSTEMD_RUN)
    fake.chmod(0o755)
    done = subprocess.run(
        [PROGRAM, "up"],
        env={
            **environment(home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_RUNTIME_DIR": str(runtime),
            "PYTHON_FAKE": answers,
        },
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    said = (programs / "asked").read_text().splitlines()
    assert len(said) == asked
    assert all(line.startswith("--user --scope --quiet --collect ") for line in said)
    assert home.is_up()


SYSTEMD_RUN = """#!/bin/sh
echo "$*" >> "${0%/*}/asked"
case $PYTHON_FAKE$* in
    fails*) exit 1 ;;
    "is too old"*OOMPolicy*) exit 1 ;;
esac
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
