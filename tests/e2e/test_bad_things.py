"""Bad input, a bad disk, a bad database: a clear refusal, nothing stored, nothing lost."""

import contextlib
import http.client
import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.live_home import (
    BOUND_S,
    DEFAULTS,
    MARK_ATTEMPT,
    Document,
    LiveHome,
    audit,
    lines,
    live_home,
    numbered,
    until,
)
from tests.e2e.small_disk import CannotMount, fill
from tests.e2e.small_disk import small_disk as small_disk_at

from subagents.errors import StoreUnavailable, UsageError

MIB = 1024 * 1024


def refused_start(home: LiveHome) -> tuple[int, str]:
    """Status and standard error of a daemon that must not come up."""
    process = home.launch()
    try:
        status = process.wait(BOUND_S)
    finally:
        process.kill()
        process.wait(BOUND_S)
    return status, home.stderr()


def raw(
    home: LiveHome,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Document]:
    """A call with any bytes, past the client that would refuse to send them."""
    connection = http.client.HTTPConnection("localhost", timeout=BOUND_S)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.sock.settimeout(BOUND_S)
        connection.sock.connect(str(home.paths.socket))
        connection.request(method, path, body, dict(headers or {}))
        answered = connection.getresponse()
        return answered.status, json.loads(answered.read())
    finally:
        connection.close()


def spawn_bytes(home: LiveHome, **spec: object) -> bytes:
    body = {"spec": {"agentId": "sh", **spec}, "cwd": str(home.work)}
    return json.dumps(body).encode()


# -- configuration ------------------------------------------------------------------------------


@pytest.mark.requirement("e2e:bad:config")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[agents.defaults\n", "subagents.toml:1:"),
        ("[agents.defaults.subagents]\nmax_spawn_dept = 2\n", "max_spawn_depth"),
        ("[agents.defaults.subagents]\nmax_concurrent = -1\n", "max_concurrent"),
        ("[agents.defaults.subagents]\nmax_concurrent = 'many'\n", "max_concurrent"),
        ("[daemons]\nlease_seconds = 3\n", "daemon"),
    ],
)
def test_a_daemon_with_a_bad_configuration_does_not_start_and_names_file_and_key(
    tmp_path: Path, text: str, told: str
) -> None:
    with live_home(tmp_path, started=False) as home:
        home.paths.config_file.write_text(text)
        status, message = refused_start(home)
        assert status == 2
        assert told in message
        assert str(home.paths.config_file) in message
        assert "Traceback" not in message
        assert not home.paths.database.exists()


@pytest.mark.requirement("e2e:bad:project-config")
def test_a_bad_project_file_refuses_its_spawns_and_leaves_the_daemon_alone(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        project = home.work / "subagents.toml"
        project.write_text("[agents.defaults.subagents]\nmax_spawn_dept = 2\n")
        with pytest.raises(UsageError, match="max_spawn_depth"):
            home.spawn("true")
        assert home.stored() == {}
        project.unlink()
        assert home.finish(home.spawn("echo fine"))[0]["result"] == "fine"


# -- one daemon per home -------------------------------------------------------------------------


@pytest.mark.requirement("e2e:bad:second-daemon")
def test_a_second_daemon_refuses_to_start_and_names_the_first(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("sleep 0.5; echo first")
        status, message = refused_start(home)
        assert status == 1
        assert str(home.pid) in message
        assert "Traceback" not in message
        assert home.finish(run_id)[0]["result"] == "first"


@pytest.mark.requirement("e2e:bad:stale-socket")
def test_a_socket_file_that_nobody_answers_on_is_replaced(tmp_path: Path) -> None:
    with live_home(tmp_path, started=False) as home:
        home.paths.ensure()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(str(home.paths.socket))
        home.start()
        assert home.finish(home.spawn("echo fine"))[0]["result"] == "fine"


@pytest.mark.requirement("e2e:bad:no-socket")
def test_a_file_in_the_place_of_the_socket_is_not_touched(tmp_path: Path) -> None:
    with live_home(tmp_path, started=False) as home:
        home.paths.ensure()
        home.paths.socket.write_text("somebody's notes")
        status, message = refused_start(home)
        assert status == 1
        assert str(home.paths.socket) in message
        assert home.paths.socket.read_text() == "somebody's notes"
        home.paths.socket.unlink()


# -- the database --------------------------------------------------------------------------------


def flip_pages(path: Path) -> None:
    """Damage every page but the first, so that opening works and checking does not."""
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        for at in range(start, start + 64):
            data[at] ^= 0xFF
    path.write_bytes(data)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 3 * 4096 + 17])


def overwrite(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 1000)


@pytest.mark.requirement("e2e:bad:corrupt-database")
@pytest.mark.parametrize("damage", [flip_pages, cut_off, overwrite])
def test_a_damaged_database_stops_the_start_says_how_to_restore_and_is_not_changed(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with live_home(tmp_path) as home:
        home.finish(home.spawn("echo x", agent="quick"))
        home.stop()
        damage(home.paths.database)
        before = home.paths.database.read_bytes()

        status, message = refused_start(home)
        assert status == 1
        assert str(home.paths.database) in message
        assert "restore" in message
        assert "Traceback" not in message
        assert home.paths.database.read_bytes() == before


@pytest.mark.requirement("e2e:bad:newer-schema")
def test_a_database_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        home.stop()
        with contextlib.closing(sqlite3.connect(home.paths.database)) as connection:
            connection.execute("PRAGMA user_version = 99")
        before = home.paths.database.read_bytes()

        status, message = refused_start(home)
        assert status == 1
        assert "schema 99" in message
        assert "Traceback" not in message
        assert home.paths.database.read_bytes() == before


# -- calls ---------------------------------------------------------------------------------------


@pytest.mark.requirement("e2e:bad:input")
def test_bad_calls_are_refused_with_a_reason_and_nothing_is_stored(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        escaped_nul = spawn_bytes(home, task="a\0b")
        surrogate = spawn_bytes(home, task="x").replace(b'"x"', b'"\\ud800"')
        latin = spawn_bytes(home, task="x").replace(b'"x"', b'"\xff\xfe"')
        cases: list[tuple[bytes, str]] = [
            (escaped_nul, "task"),
            (surrogate, ""),
            (latin, "UTF-8"),
            (b"", ""),
            (b"{", ""),
            (b"[]", ""),
            (b"null", ""),
            (b'{"spec": 3}', "spec"),
            (spawn_bytes(home), "task"),
            (spawn_bytes(home, task=""), "task"),
            (spawn_bytes(home, task="x" * (256 * 1024 + 1)), "task"),
            (spawn_bytes(home, task="x", labell="y"), "label"),
            (spawn_bytes(home, task="x", retryCount=-1), "retryCount"),
            (spawn_bytes(home, task="x", retryCount=10**30), "retryCount"),
            (spawn_bytes(home, task="x", runTimeoutSeconds=-1), "runTimeoutSeconds"),
            (spawn_bytes(home, task="x", mode="forever"), "mode"),
            (spawn_bytes(home, task="x", mode="session"), "thread=true"),
            (spawn_bytes(home, task="x", cwd="/does/not/exist"), "cwd"),
            (spawn_bytes(home, task="x", cwd="relative"), "cwd"),
            (spawn_bytes(home, task="x", dependsOn=["nobody"]), "nobody"),
            (spawn_bytes(home, task="x", verification={}), "nothing to check"),
            (spawn_bytes(home, task="x", verification={"mustChange": ["/"]}), "mustChange"),
            (spawn_bytes(home, task="x", lane="nowhere"), "nowhere"),
        ]
        for body, told in cases:
            status, document = raw(home, "POST", "/v1/runs", body)
            assert status == (404 if told == "nobody" else 422), (body[:80], document)
            assert document["status"] == "error"
            assert told in document["message"], (body[:80], document)
            assert document["code"]
            assert len(document["message"]) < 2000
        status, document = raw(home, "POST", "/v1/runs", b" " * MIB + spawn_bytes(home, task="x"))
        assert status in {201, 413}, document
        home.wait(timeout_s=20, until="all")
        assert len(home.stored()) <= 1


@pytest.mark.requirement("e2e:bad:big-body")
def test_a_body_of_many_megabytes_is_refused_without_being_kept(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        body = spawn_bytes(home, task="x" * MIB)
        status, document = raw(home, "POST", "/v1/runs", body)
        assert status in {413, 422}
        assert home.stored() == {}
        assert "task" in document["message"] or "body" in document["message"]
        assert home.is_up()


@pytest.mark.requirement("e2e:bad:unknown-run")
def test_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        for method, path in (
            ("GET", "/v1/runs/r-0000000000"),
            ("GET", "/v1/runs/r-0000000000/result"),
            ("GET", "/v1/runs/r-0000000000/log"),
            ("GET", "/v1/runs/r-0000000000/timeline"),
            ("GET", "/v1/runs/r-0000000000/why"),
            ("POST", "/v1/runs/r-0000000000/cancel"),
            ("POST", "/v1/runs/r-0000000000/retry"),
            ("GET", "/v1/runs/%00"),
            ("GET", "/v1/runs/..%2f..%2fetc%2fpasswd/log"),
            ("GET", "/v1/requests/r-0000000000:q1"),
            ("GET", "/v1/nothing"),
        ):
            status, document = raw(home, method, path, b"{}" if method == "POST" else None)
            assert status in {404, 422}, (path, document)
            assert document["code"] in {"not_found", "invalid"}, path


@pytest.mark.requirement("e2e:bad:others-run")
def test_a_worker_can_neither_read_nor_end_a_run_that_is_not_below_it(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        other = home.spawn("until [ -e go ]; do sleep 0.05; done; echo mine")
        worker = home.spawn("until [ -e go ]; do sleep 0.05; done")
        home.until_phase(worker, "running")
        headers = home.as_worker(worker)
        for method, path in (
            ("GET", f"/v1/runs/{other}/result"),
            ("GET", f"/v1/runs/{other}/log"),
            ("POST", f"/v1/runs/{other}/cancel"),
            ("POST", "/v1/shutdown"),
        ):
            status, document = raw(home, method, path, b"{}", headers)
            assert (status, document["code"]) == (403, "forbidden"), (path, document)
        (home.work / "go").touch()
        assert home.finish(other)[0]["result"] == "mine"


# -- the disk ------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(root: Path, mebibytes: int) -> Iterator[Path]:
    """A file system of its own for the home; the test is skipped where none can be mounted."""
    try:
        with small_disk_at(root / "e2e" / "home", mebibytes) as place:
            yield place
    except CannotMount as error:
        pytest.skip(str(error))


@pytest.mark.requirement("e2e:bad:full-disk")
def test_a_full_disk_refuses_spawns_keeps_serving_reads_and_loses_no_exit(tmp_path: Path) -> None:
    with small_disk(tmp_path, 32) as disk, live_home(tmp_path) as home:
        ended = home.spawn("echo before")
        assert home.finish(ended)[0]["result"] == "before"
        waits = f"{MARK_ATTEMPT}; echo said; until [ -e go ]; do sleep 0.02; done; exit"
        good, bad = home.spawn(f"{waits} 0"), home.spawn(f"{waits} 5")
        until(lambda: len(home.marks_written()) == 2, what="both workers at work")
        workers = [home.worker_pid(run_id) for run_id in (good, bad)]
        filler = fill(disk)

        def is_degraded() -> bool:
            with contextlib.suppress(StoreUnavailable):
                home.post(f"/v1/runs/{good}/notify", {"message": "x" * 4000})
            return bool(home.get("/v1/diagnostics")["degraded"])

        until(is_degraded, what="a commit that fails", pause_s=0)
        assert raw(home, "GET", "/readyz")[0] == 503
        (home.work / "go").touch()
        # Only their shims are left, which cannot record the end.
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), what="their end")
        for _ in range(20):
            assert home.get(f"/v1/runs/{ended}/result")["result"] == "before"
            assert home.get("/v1/runs")["total"] == 3
            assert home.row(good)["runId"] == good
            assert home.get("/healthz") == {"status": "ok"}
            with pytest.raises(StoreUnavailable):
                home.spawn("echo refused", idempotencyKey="the same")
        filler.unlink()

        def spawned() -> str | None:
            with contextlib.suppress(StoreUnavailable):
                return home.spawn("echo after", idempotencyKey="the same")
            return None

        after = until(spawned, what="spawns accepted again")
        items = home.finish(good, bad, after)
        assert [item["outcome"]["status"] for item in items] == ["ok", "error", "ok"]
        assert "exit code 5" in items[1]["outcome"]["error"]
        assert [item["result"] for item in items] == ["said", "said", "after"]
        assert len(home.stored()) == 4
        home.stop()
        audit(home, [ended, good, bad, after])


@pytest.mark.requirement("e2e:bad:full-disk-kill", "disk:noisy-worker")
def test_on_a_disk_without_a_free_byte_a_killed_daemon_starts_and_cancels_and_deadlines_hold(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path, 32) as disk, live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; echo said; until [ -e go ]; do sleep 0.02; done")
        cancelled = home.spawn(f"{MARK_ATTEMPT}; exec sleep 600")
        late = home.spawn(f"{MARK_ATTEMPT}; exec sleep 600", runTimeoutSeconds=3)
        until(lambda: len(home.marks_written()) == 3, what="the workers at work")
        fill(disk)
        home.kill()
        (home.work / "go").touch()
        home.start()

        home.post(f"/v1/runs/{cancelled}/cancel", {})
        items = home.finish(run_id, cancelled, late)

        assert [(each["outcome"]["status"], each["result"]) for each in items] == [
            ("ok", "said"), ("cancelled", ""), ("timeout", "")
        ]  # fmt: skip
        with pytest.raises(StoreUnavailable, match="almost full"):
            home.spawn("echo no room")


@pytest.mark.requirement("e2e:bad:full-disk")
def test_on_a_disk_that_fills_under_it_a_daemon_ends_what_is_cancelled_or_late(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path, 32) as disk, live_home(tmp_path) as home:
        cancelled = home.spawn(f"{MARK_ATTEMPT}; exec sleep 600")
        late = home.spawn(f"{MARK_ATTEMPT}; exec sleep 600", runTimeoutSeconds=3)
        until(lambda: len(home.marks_written()) == 2, what="the workers at work")
        fill(disk)

        home.post(f"/v1/runs/{cancelled}/cancel", {})
        items = home.finish(cancelled, late, timeout_s=90)

        assert [each["outcome"]["status"] for each in items] == ["cancelled", "timeout"]


@pytest.mark.requirement("e2e:bad:full-disk-kill")
def test_a_daemon_killed_on_a_full_disk_goes_on_once_there_is_space(tmp_path: Path) -> None:
    with small_disk(tmp_path, 32) as disk, live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; echo said; until [ -e go ]; do sleep 0.02; done")
        until(home.marks_written, what="the worker at work")
        filler = fill(disk)

        def is_spent() -> bool:
            """What is held for ends is used for something else."""
            try:
                home.post(f"/v1/runs/{run_id}/notify", {"message": "x" * 4000})
            except StoreUnavailable:
                return True
            return False

        until(is_spent, what="the reserve is spent", pause_s=0)
        home.kill()
        (home.work / "go").touch()
        try:
            home.start()
        except AssertionError as refused:
            assert "full" in str(refused)  # noqa: PT017
            filler.unlink()
            home.start()
        else:
            filler.unlink()
        item = home.finish(run_id)[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", "said")


# -- file descriptors ----------------------------------------------------------------------------


@pytest.mark.requirement("e2e:bad:few-descriptors")
def test_more_workers_than_the_daemon_may_open_files_are_all_followed_to_their_end(
    tmp_path: Path,
) -> None:
    config = DEFAULTS.replace("max_concurrent = 64", "max_concurrent = 200")
    with live_home(tmp_path, config=config, descriptors=64) as home:
        task = f"{MARK_ATTEMPT}; until [ -e go ]; do sleep 0.2; done; echo hi"
        run_ids = [home.spawn(task) for _ in range(80)]
        until(lambda: len(home.marks_written()) == 80, what="all 80 at work")
        (home.work / "go").touch()
        items = home.finish(*run_ids, timeout_s=60)
        assert [(i["outcome"]["status"], i["result"]) for i in items] == [("ok", "hi")] * 80


@pytest.mark.requirement("e2e:bad:no-descriptors")
def test_a_daemon_out_of_descriptors_calls_no_live_worker_lost(tmp_path: Path) -> None:
    with live_home(tmp_path, descriptors=64) as home:
        run_ids = [home.spawn(lines(150)) for _ in range(5)]
        for run_id in run_ids:
            home.until_phase(run_id, "running")
        with contextlib.ExitStack() as held:
            for _ in range(100):
                idle = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                idle.connect(str(home.paths.socket))
            fds = Path(f"/proc/{home.pid}/fd")
            until(lambda: len(list(fds.iterdir())) >= 63, what="no descriptor left")
            # Its workers continue writing meanwhile, and it cannot open their files.
            until(lambda: "line 100" in home.output(run_ids[0]), what="more output")
        items = home.finish(*run_ids)
        assert {(i["outcome"]["status"], i["result"]) for i in items} == {("ok", numbered(150))}


@pytest.mark.requirement("e2e:bad:cannot-look")
def test_a_process_that_could_not_be_looked_at_is_not_taken_for_ended() -> None:
    script = (
        "import os, resource\n"
        "from subagents.process_identity import boot_id\n"
        "from subagents.runtimes.process.processes import Identity, alive, scan\n"
        "own = next(p for p in scan() if p.pid == os.getpid())\n"
        "identity = Identity(own.pid, own.start, boot_id(), 0.0)\n"
        "assert alive(identity)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\n"
        "try:\n"
        "    print(alive(identity))\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
    )
    answered = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=BOUND_S, check=True
    )
    assert answered.stdout == "Too many open files\n"


# -- huge output ---------------------------------------------------------------------------------

GROWTH_MAX = 24 * MIB
"""Four times what was seen, and far less than what the worker writes."""


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.requirement("e2e:bad:huge-output")
@pytest.mark.parametrize(
    ("kind", "megabytes"),
    [
        pytest.param("one line", 200, id="one line"),
        pytest.param("many lines", 64, id="many lines"),
        pytest.param("many events", 10, id="many events"),
        pytest.param("one line", 1024, id="a gigabyte in one line", marks=pytest.mark.tier("all")),
        pytest.param("many lines", 1024, id="a gigabyte of lines", marks=pytest.mark.tier("all")),
        pytest.param("many events", 50, id="very many events", marks=pytest.mark.tier("all")),
    ],
)
def test_huge_output_costs_no_memory_and_its_end_is_the_result(
    tmp_path: Path, kind: str, megabytes: int
) -> None:
    event = '{"subagents": "progress", "phase": "busy", "percentComplete": 5}'
    size = megabytes * MIB
    source = {
        "one line": "tr '\\0' x < /dev/zero",
        "many lines": "yes 'a line of output'",
        "many events": f"yes '{event}'",
    }[kind]
    with live_home(tmp_path, config=DEFAULTS) as home:
        home.finish(home.spawn("echo warm"))
        before = resident_bytes(home.pid)
        run_id = home.spawn(f"{source} | head -c {size}; echo; echo the end")
        item = home.finish(run_id, timeout_s=250)[0]

        assert item["outcome"]["status"] == "ok"
        assert item["result"].endswith("\nthe end")
        if kind != "many events":
            assert item["resultBytes"] == size + len("\nthe end\n")
            assert 28 * 1024 <= len(item["result"].encode()) <= 32 * 1024
        assert resident_bytes(home.pid) - before < GROWTH_MAX
        assert len(home.journal(run_id)) < 200
