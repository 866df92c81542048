"""What another user of the machine gets of a daemon and its workers: tried as one, not argued."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.free_ports import free_port

from subagents.client.client import Client
from subagents.client.transport import AsyncConnection, Gone
from subagents.config.paths import Paths
from subagents.errors import DaemonUnreachable, NotFound

NOBODY: Final = 65_534
SECRET: Final = "planted-in-a-result-7351"
pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("setpriv") or not Path("/usr/bin/python3").exists(),
    reason="only root can be somebody else; needs setpriv, and a python3 that others may run",
)


BECOME: Final = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


def as_nobody(*argv: str) -> "subprocess.CompletedProcess[str]":
    """Run as a user who owns nothing here."""
    return subprocess.run(
        [*BECOME, *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )


def shell(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return as_nobody("sh", "-c", script, "sh", *arguments)


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory that everybody may enter: what is refused, our own modes refuse."""
    with tempfile.TemporaryDirectory(prefix="subagents-", dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        assert shell('ls "$1"', name).returncode == 0
        yield place


@pytest.fixture
def home(root: Path) -> Iterator[LiveHome]:
    """A daemon whose owner has an umask that keeps nothing from anybody."""
    config = f"[daemon]\nhttp_port = {free_port()}\n{DEFAULTS}"
    with live_home(root, config=config, started=False) as found:
        before = os.umask(0)
        try:
            found.start()
        finally:
            os.umask(before)
        yield found


@pytest.mark.requirement("security:other-user")
def test_another_user_reads_and_changes_nothing_of_the_state_and_reaches_no_socket(
    home: LiveHome,
) -> None:
    done = home.spawn(f"echo {SECRET}")
    home.until_phase(done, "completed", "announcing", "delivered")
    files = [each for each in home.paths.state_dir.rglob("*") if each.is_file()]
    assert len(files) > 5
    sockets = [home.paths.socket, home.paths.supervisor_socket]

    for path in (*files, *sockets):
        assert shell('cat "$1" || ls -l "$1"', str(path)).returncode != 0, path
        assert shell('echo x >> "$1"', str(path)).returncode != 0, path
        assert shell('mv "$1" "$1.gone" || rm -f "$1"', str(path)).returncode != 0, path
    found = shell('grep -r "$2" "$1"', str(home.root / "home"), SECRET)
    assert SECRET not in found.stdout
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    for path in sockets:
        tried = as_nobody("/usr/bin/python3", "-c", connect, str(path))
        assert "PermissionError" in tried.stderr
    assert home.is_up()


@pytest.mark.requirement("security:other-user")
def test_another_user_signals_neither_daemon_nor_worker_and_reads_no_token_of_theirs(
    home: LiveHome,
) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")

    for pid in (home.pid, home.worker_pid(run)):
        assert shell('kill -9 "$1"', str(pid)).returncode != 0
        assert shell('cat "/proc/$1/environ" "/proc/$1/maps"', str(pid)).returncode != 0
    assert home.row(run)["phase"] == "running"


@pytest.mark.requirement("security:other-user")
def test_another_user_gets_nothing_of_the_port_without_the_operators_token(home: LiveHome) -> None:
    port = re.findall(r"http_port = (\d+)", home.paths.config_file.read_text())[0]
    ask = (
        "import sys, urllib.request as u, urllib.error as e\n"
        "for path in ('/healthz', '/v1/runs', '/v1/config', '/metrics', '/openapi.json'):\n"
        "  request = u.Request('http://127.0.0.1:' + sys.argv[1] + path)\n"
        "  if len(sys.argv) > 2: request.add_header('Authorization', 'Bearer ' + sys.argv[2])\n"
        "  try: print(u.urlopen(request).status)\n"
        "  except e.HTTPError as refused: print(refused.code)\n"
    )

    for token in ((), ("x" * 43,)):
        said = as_nobody("/usr/bin/python3", "-c", ask, port, *token).stdout.split()
        assert said[1:] == ["401"] * 4, said


@pytest.mark.requirement("security:other-user", "login:own-user")
def test_another_user_logs_in_by_no_code_and_calls_with_no_cookie_that_it_got_hold_of(
    home: LiveHome,
) -> None:
    """A code stands in the arguments of a browser, and a browser sends our cookie to each port."""
    address, _, code = home.post("/v1/login/codes")["url"].partition("/#k=")
    ask = (
        "import sys, urllib.request as u, urllib.error as e\n"
        "address, path, body, cookie = sys.argv[1:]\n"
        "request = u.Request(address + path, body.encode() or None)\n"
        "request.add_header('Origin', address)\n"
        "request.add_header('Cookie', cookie)\n"
        "try: print(u.urlopen(request).status)\n"
        "except e.HTTPError as refused: print(refused.code, refused.read().decode())\n"
    )
    body = json.dumps({"code": code})
    program = ("/usr/bin/python3", "-c", ask, address)

    tried = as_nobody(*program, "/v1/login", body, "")
    assert f"this connection belongs to user {NOBODY}" in tried.stdout
    assert tried.stdout.startswith("403"), tried
    assert home.get("/v1/logins")["logins"] == []
    answered = httpx2.post(f"{address}/v1/login", content=body, headers={"Origin": address})
    cookie = answered.headers["Set-Cookie"].partition(";")[0]  # the code was as good as before
    assert subprocess.run(
        [*program, "/v1/runs", "", cookie], capture_output=True, text=True, check=False
    ).stdout.split() == ["200"]
    tried = as_nobody(*program, "/v1/runs", "", cookie)
    assert f"this connection belongs to user {NOBODY}" in tried.stdout


@pytest.mark.requirement("security:other-user")
def test_the_projects_file_that_another_user_leaves_on_the_way_up_is_not_believed(
    root: Path,
) -> None:
    shared = root / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    planted = f'[agents.mine]\nruntime = "command"\ncommand = ["touch", "{root}/hit"]\n'
    assert shell('printf %s "$2" > "$1/subagents.toml"', str(shared), planted).returncode == 0
    work = shared / "mine"
    work.mkdir()

    with live_home(root / "own", config=DEFAULTS) as home, pytest.raises(NotFound, match="mine"):
        home.post("/v1/runs", {"spec": {"task": "x", "agentId": "mine"}, "cwd": str(work)})

    assert not (root / "hit").exists()


@pytest.mark.requirement("security:other-user")
def test_the_task_of_a_plain_command_is_in_the_list_of_processes_that_everybody_sees(
    home: LiveHome,
) -> None:
    run = home.spawn(f"sleep 600; : {SECRET}")
    home.until_phase(run, "running")

    assert SECRET in shell('cat /proc/[0-9]*/cmdline | tr "\\0" " "').stdout


LISTEN = """
import os, socket, sys
place = os.path.dirname(sys.argv[1])
if not os.path.exists(place):
    os.mkdir(place)
    os.chmod(place, 0o777)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("there", flush=True)
listener.settimeout(20)
connection = listener.accept()[0]
connection.settimeout(20)
print(connection.recv(65536))
"""


@pytest.mark.requirement("security:other-user")
def test_a_client_tells_nothing_to_another_user_who_answers_in_the_daemons_place(
    root: Path,
) -> None:
    # So long a path that its socket is below /tmp, where anybody may make a directory first.
    environ = {"SUBAGENTS_HOME": str(root / ("x" * 120)), "PATH": os.environ["PATH"]}
    path = Paths.resolve(environ).socket
    assert path.parent.parent == Path("/tmp")
    argv = [*BECOME, "/usr/bin/python3", "-c", LISTEN, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd="/", text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "there\n"
            with Client(path) as client, pytest.raises(DaemonUnreachable, match="another user"):
                client.post("/v1/runs", {"spec": {"task": SECRET}})
            assert SECRET not in other.stdout.read()
        finally:
            other.kill()
            shutil.rmtree(path.parent)


@pytest.mark.requirement("security:other-user")
def test_neither_does_a_client_of_an_event_loop(root: Path) -> None:
    path = root / "socket"
    root.chmod(0o777)
    argv = [*BECOME, "/usr/bin/python3", "-c", LISTEN, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd="/", text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "there\n"
            with pytest.raises(Gone, match="another user"):
                asyncio.run(AsyncConnection.open(path))
        finally:
            other.kill()
