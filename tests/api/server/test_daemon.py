"""The daemon's process: one per home, stale sockets, signals, shutdown."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.api.home_daemon import DEADLINE_S, Home, UnixConnection, build, serving, until
from tests.api.server.one_server import GET, one_server

from subagents.api.calls.auth import peer_uid
from subagents.api.server import daemon, listeners, unix_sockets
from subagents.api.server.daemon import run_daemon, serve_until_stopped
from subagents.api.server.daemon_log import writing_log
from subagents.config import daemon_record
from subagents.errors import AlreadyRunning, Fenced
from subagents.store.sqlite.sqlite_store import SqliteStore

PROGRAM = Path(__file__).parents[1] / "home_daemon.py"
IDLE_WAKEUPS_MAX = 2
"""In two seconds. It may only become smaller."""


def start(home: Path) -> "subprocess.Popen[bytes]":
    """A daemon process that answers; its working directory is the test's own."""
    process = subprocess.Popen([sys.executable, PROGRAM, home], cwd=home)
    due = time.monotonic() + DEADLINE_S
    path = build(home).paths.socket
    while time.monotonic() < due:
        assert process.poll() is None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                time.sleep(0.02)
            else:
                return process
    process.kill()
    raise TimeoutError("the daemon does not answer")


@pytest.mark.requirement("daemon:one-per-home")
async def test_a_second_daemon_refuses_names_the_first_and_leaves_its_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as home:
        other = build(tmp_path)
        monkeypatch.setattr(daemon, "LOG_BYTES_MAX", 0)
        with pytest.raises(AlreadyRunning) as caught:
            await run_daemon(other, paths=other.paths, log_path=other.paths.log_file)
        assert f"pid {os.getpid()}" in caught.value.message
        assert str(other.paths.socket) in caught.value.message
        assert caught.value.exit_code == 1
        assert "starts, pid" in other.paths.log_file.read_text()
        assert await home.ok("GET", "/healthz") == {"status": "ok"}


LEFT: dict[str, bytes] = {
    "of the first daemon ever": b"",
    "of one that was told to stop": daemon_record.written(daemon_record.own(has_ended=True)),
    "of one inside a program that ended": daemon_record.written(None),
    "of one that was killed": daemon_record.written(replace(daemon_record.own(), start="1")),
    "of one before a reboot": daemon_record.written(replace(daemon_record.own(), boot="0")),
    "of one on another machine": daemon_record.written(
        replace(daemon_record.own(), boot="0", host="db2")
    ),
    "of a version before that was killed": b"4194305".ljust(31) + b"\n",
}


@pytest.mark.requirement("daemon:one-per-home")
@pytest.mark.parametrize("name", LEFT)
async def test_a_look_at_the_lock_keeps_no_daemon_from_starting(name: str, tmp_path: Path) -> None:
    paths = build(tmp_path).paths
    paths.ensure()
    paths.lock_file.write_bytes(LEFT[name])
    with paths.lock_file.open("rb") as look:
        fcntl.flock(look, fcntl.LOCK_SH | fcntl.LOCK_NB)
        asyncio.get_running_loop().call_later(0.05, fcntl.flock, look, fcntl.LOCK_UN)
        async with daemon.hold_lock(paths):
            assert daemon_record.read(paths.lock_file) == daemon_record.own()
    assert daemon_record.read(paths.lock_file) == daemon_record.own(has_ended=True)


@pytest.mark.requirement("daemon:one-per-home")
@pytest.mark.parametrize("name", LEFT)
def test_whoever_holds_the_lock_is_not_given_the_name_of_one_that_is_gone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "LOOKERS_S", 0.0)
    paths = build(tmp_path).paths
    paths.ensure()
    paths.lock_file.write_bytes(LEFT[name])

    async def scenario() -> AlreadyRunning:
        with paths.lock_file.open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(AlreadyRunning) as caught:
                async with daemon.hold_lock(paths):
                    raise AssertionError
        return caught.value

    found = asyncio.run(scenario())
    unsure = {
        "of one on another machine": "on db2",
        "of a version before that was killed": "pid 4194305",
    }
    assert unsure.get(name, "pid unknown") in found.message
    assert paths.lock_file.read_bytes() == LEFT[name]


@pytest.mark.requirement("daemon:socket:former")
async def test_a_daemon_takes_the_place_of_a_link_to_one_of_a_version_before(
    tmp_path: Path,
) -> None:
    path = build(tmp_path).paths.socket
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path / "gone")
    async with serving(tmp_path) as home:
        assert stat.S_ISSOCK(path.lstat().st_mode)
        assert await home.ok("GET", "/healthz") == {"status": "ok"}


@pytest.mark.requirement("daemon:socket:modes")
def test_the_socket_is_for_its_owner_alone_and_gone_after_the_stop(tmp_path: Path) -> None:
    async def scenario() -> Path:
        async with serving(tmp_path) as home:
            path = home.services.paths.socket
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        return path

    assert not asyncio.run(scenario()).exists()


@pytest.mark.requirement("daemon:socket:stale")
async def test_a_socket_left_by_a_killed_daemon_is_replaced(tmp_path: Path) -> None:
    process = start(tmp_path)
    process.kill()
    process.wait(DEADLINE_S)
    assert build(tmp_path).paths.socket.exists()
    async with serving(tmp_path) as home:
        assert await home.ok("GET", "/healthz") == {"status": "ok"}


@pytest.mark.requirement("daemon:socket:in-the-way")
def test_what_answers_or_is_no_socket_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(AlreadyRunning, match="is in the way"), unix_sockets.listening(path):
        pass
    assert path.read_text() == "precious"
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(AlreadyRunning), unix_sockets.listening(path):
            pass
    assert path.is_socket()


@pytest.mark.requirement("recovery:fenced")
async def test_a_daemon_whose_store_another_process_took_over_ends_and_says_why(
    tmp_path: Path,
) -> None:
    home = Home(build(tmp_path))
    paths, ready = home.services.paths, asyncio.Event()
    running = asyncio.ensure_future(serve_until_stopped(home.services, paths=paths, ready=ready))
    await ready.wait()
    paths.database.with_name(f"{paths.database.name}.lock").unlink()
    other = SqliteStore(paths.database)
    epoch = other.open("another")
    try:
        spec = {"task": "work", "agentId": "quick"}
        status, document = await home.call("POST", "/v1/runs", {"spec": spec, "cwd": home.cwd})
        assert (status, document["code"]) == (503, "fenced")
        with pytest.raises(Fenced, match=f"epoch {epoch - 1} is over"):
            await running
        assert not paths.socket.exists()
    finally:
        other.close()


@pytest.mark.requirement("daemon:stop:signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_daemon_cleanly_and_leaves_workers_running(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = start(tmp_path)
    home = Home(build(tmp_path))
    task = "echo $$ > pid; while [ ! -e end ]; do sleep 0.02; done"
    spec = {"task": task, "agentId": "shell"}
    _, receipt = home.call_blocking("POST", "/v1/runs", {"spec": spec, "cwd": str(tmp_path)})
    pid_file = tmp_path / "pid"
    try:
        due = time.monotonic() + DEADLINE_S
        while not (pid_file.exists() and pid_file.read_text().strip()):
            assert time.monotonic() < due
            time.sleep(0.02)
        body = {"runIds": [receipt["runId"]], "timeoutSeconds": 600}
        waiting = UnixConnection(home.services.paths.socket)
        waiting.request("POST", "/v1/wait", json.dumps(body))
        # Connections are served in the order they came: after this answer the wait is under way.
        assert home.call_blocking("GET", "/healthz")[0] == 200
        process.send_signal(number)
        assert waiting.getresponse().status == 503
        waiting.close()
        assert process.wait(DEADLINE_S) == 0
        assert not home.services.paths.socket.exists()
        os.kill(int(pid_file.read_text()), 0)
    finally:
        (tmp_path / "end").touch()
        process.kill()
        process.wait(DEADLINE_S)

    async def next_daemon() -> str:
        async with serving(tmp_path) as again:
            (item,) = (await again.wait(receipt["runId"]))["completed"]
            return str(item["outcome"]["status"])

    assert asyncio.run(next_daemon()) == "ok"


@pytest.mark.requirement("daemon:stop:call")
async def test_shutdown_ends_long_polls_with_a_retryable_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        run_id = (await home.spawn("hang"))["runId"]
        body = {"runIds": [run_id], "timeoutSeconds": 600}
        waiting = asyncio.create_task(home.call("POST", "/v1/wait", body))
        await until(lambda: run_id in home.services.engine.mailbox._wakeups)
        async with asyncio.timeout(DEADLINE_S):
            assert (await home.ok("POST", "/v1/shutdown"))["status"] == "stopping"
            status, document = await waiting
        assert (status, document["code"], document["retryable"]) == (503, "unavailable", True)


@pytest.mark.requirement("daemon:stop:at-once")
def test_a_server_that_answers_nobody_stops_without_waiting_for_any_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is set, which ends the wait for calls; a shorter one would be a look whether it is so."""
    timers: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def noted(when: float, *args: Any, **more: Any) -> asyncio.TimerHandle:
            timers.append(when - loop.time())
            return call_at(when, *args, **more)

        async with one_server(tmp_path / "s", PlainTextResponse("ok")):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(GET)
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
            monkeypatch.setattr(loop, "call_at", noted)
        assert await reader.read() == b""
        writer.close()

    asyncio.run(scenario())
    # The test's own bound is the longest.
    assert [each for each in timers if each < DEADLINE_S - 1] == [
        pytest.approx(listeners.STOP_S, abs=1)
    ]


@pytest.mark.requirement("daemon:stop:at-once")
def test_a_call_under_way_at_a_stop_is_answered_and_its_connection_closed(tmp_path: Path) -> None:
    async def scenario() -> bytes:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            begun.set()
            await may_end.wait()
            await PlainTextResponse("ok")(scope, receive, send)

        async with one_server(tmp_path / "s", slow) as server:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(GET)
            await begun.wait()
            server._stopping.set()
            await until(lambda: not server.servers[0].is_serving())
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_unix_connection(tmp_path / "s")
            assert not server.serving.done()
            may_end.set()
            answer = await reader.read()
        writer.close()
        return answer

    answer = asyncio.run(scenario())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer
    assert answer.endswith(b"ok")


@pytest.mark.requirement("daemon:stop:at-once")
def test_a_call_that_does_not_end_after_a_stop_is_cut_off_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        begun, cut_off = asyncio.Event(), asyncio.Event()

        async def endless(scope: Scope, receive: Receive, _send: Send) -> None:
            await Request(scope, receive).body()
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cut_off.set()

        async with one_server(tmp_path / "s", endless, stop_s=0):
            _, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(GET)
            await begun.wait()
        async with asyncio.timeout(DEADLINE_S):
            await cut_off.wait()
        writer.close()

    asyncio.run(scenario())
    assert "1 still under way 0 s after the stop: cut off" in caplog.messages


@pytest.mark.requirement("daemon:stop:at-once")
@pytest.mark.parametrize("passes", range(5))
def test_a_connection_accepted_at_the_moment_of_a_stop_is_closed(
    tmp_path: Path, passes: int
) -> None:
    async def scenario() -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(DEADLINE_S)
            async with one_server(tmp_path / "s", PlainTextResponse("ok")) as server:
                client.connect(str(tmp_path / "s"))
                for _ in range(passes):
                    await asyncio.sleep(0)
            assert not server.server_state.connections
            try:
                return await asyncio.to_thread(client.recv, 1)
            except ConnectionResetError:  # it was not accepted any more
                return b""

    assert asyncio.run(scenario()) == b""


@pytest.mark.requirement("daemon:embedded")
async def test_inside_another_program_signals_and_logs_stay_that_programs_own(
    tmp_path: Path,
) -> None:
    services = build(tmp_path)
    ready = asyncio.Event()
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    serving = asyncio.create_task(serve_until_stopped(services, paths=services.paths, ready=ready))
    async with asyncio.timeout(DEADLINE_S):
        await ready.wait()
        assert await Home(services).ok("GET", "/healthz") == {"status": "ok"}
        after = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        services.stopping.set()
        await serving
    assert after == before
    assert not services.paths.log_file.exists()


@pytest.mark.requirement("daemon:peer:same-user")
async def test_a_connection_of_another_user_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as home:
        monkeypatch.setattr(daemon, "peer_uid", lambda _connection: os.getuid() + 1)
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken pipe, by chance
            await home.call("GET", "/healthz")
        monkeypatch.undo()
        assert await home.ok("GET", "/healthz") == {"status": "ok"}
    assert f"refused a connection of user {os.getuid() + 1}" in (
        home.services.paths.log_file.read_text()
    )


@pytest.mark.requirement("daemon:peer:same-user")
def test_the_system_says_which_user_is_at_the_other_end() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        expected = os.getuid() if sys.platform == "linux" else None
        assert peer_uid(here) == expected


@pytest.mark.requirement("daemon:log:rotated")
def test_a_large_log_is_moved_aside_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    path.write_text("the old lines\n")

    with writing_log(path, bytes_max=10):
        daemon.log.info("a new line")
    with writing_log(path, bytes_max=10):
        daemon.log.info("a newer line")

    assert "a new line" in (tmp_path / "daemon.log.1").read_text()
    newest = json.loads(path.read_text().splitlines()[-1])
    assert newest["message"] == "a newer line"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("daemon:ready:service-manager")
def test_the_service_manager_is_told_when_the_daemon_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))

        async def scenario() -> bytes:
            async with serving(tmp_path / "home"):
                return await asyncio.to_thread(manager.recv, 100)

        assert asyncio.run(scenario()) == b"READY=1"


def wakeups(pid: int) -> int:
    """How often its threads were woken so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    lines = (line for task in tasks for line in (task / "status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


@pytest.mark.requirement("daemon:idle")
def test_a_daemon_with_nothing_to_do_sleeps(tmp_path: Path) -> None:
    """Counted over two seconds; more than once, since it still loads what it needs later."""
    process = start(tmp_path)
    try:
        counts = []
        for _ in range(8):
            before = wakeups(process.pid)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2)
            counts.append(wakeups(process.pid) - before)
            if counts[-1] <= IDLE_WAKEUPS_MAX:
                break
        assert min(counts) <= IDLE_WAKEUPS_MAX, counts
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0


@pytest.mark.requirement("daemon:socket-again")
async def test_a_socket_file_that_was_removed_is_there_again_and_calls_under_way_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix_sockets, "LOOK_S", 0.01)
    async with serving(tmp_path) as home:
        paths = build(tmp_path).paths
        for _ in range(3):
            before = paths.socket.stat().st_ino
            shutil.rmtree(paths.socket.parent)
            await until(paths.socket.exists)
            assert before != paths.socket.stat().st_ino
            assert stat.S_IMODE(paths.socket.stat().st_mode) == 0o600
            assert await home.ok("GET", "/healthz") == {"status": "ok"}
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.connect(str(paths.socket))
    assert not paths.socket.exists()


@pytest.mark.requirement("daemon:socket-again")
async def test_what_answers_in_place_of_the_socket_is_left_alone_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unix_sockets, "LOOK_S", 0.01)
    async with serving(tmp_path):
        path = build(tmp_path).paths.socket
        path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(str(path))
            other.listen()
            own = path.stat().st_ino
            await until(lambda: "cannot be made again" in caplog.text)
            assert path.stat().st_ino == own
        await until(lambda: "it is there again" in caplog.text)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(str(path))
