"""Tokens with a real daemon and real workers: with none, or an old one, nobody gets anywhere."""

import contextlib
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.file_contents import contents
from tests.e2e.live_home import BOUND_S, DEFAULTS, LiveHome, live_home, until, variable_of
from tests.free_ports import free_port

from subagents.domain.run.events import CallRefused, TokenIssued
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.processes import look

STARTS = 16
"""More than a daemon has started when it is killed right after its answer."""
HOLD = "until [ -e go ]; do sleep 0.02; done"
ASK = (
    "import http.client, os, socket, sys\n"
    "calling = http.client.HTTPConnection('localhost')\n"
    "calling.sock = socket.socket(socket.AF_UNIX)\n"
    "calling.sock.connect(os.environ['SUBAGENTS_SOCKET'])\n"
    "token = os.environ.get('SUBAGENTS_TOKEN')\n"
    "headers = {'Authorization': 'Bearer ' + token} if token else {}\n"
    "calling.request('GET', '/v1/runs', headers=headers)\n"
    "print(calling.getresponse().status)\n"
)
"""What a worker does that speaks HTTP itself; prints the status."""

Document = dict[str, Any]


def call(
    home: LiveHome,
    path: str,
    headers: Mapping[str, str],
    *,
    method: str = "GET",
    port: int | None = None,
) -> tuple[int, Document]:
    """A call with exactly these headers, over the socket or over TCP."""
    connection = http.client.HTTPConnection("127.0.0.1", port or 80, timeout=BOUND_S)
    if port is None:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(BOUND_S)
        connection.sock.connect(str(home.paths.socket))
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in {**headers, "Content-Length": "2"}.items():
            connection.putheader(name, value)
        connection.endheaders(b"{}")
        answered = connection.getresponse()
        return answered.status, json.loads(answered.read())


def refusals(home: LiveHome) -> list[Document]:
    with contextlib.suppress(FileNotFoundError):
        text = (home.paths.state_dir / "refusals.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]
    return []


def refused_calls(home: LiveHome, run_id: str, *, count: int = 1) -> list[CallRefused]:
    """The refusals that the run's journal holds, once there are so many."""
    return until(
        lambda: found if len(found := home.events(run_id, CallRefused)) >= count else None,
        what=f"{count} refusals of {run_id}",
    )


def holds(directory: Path, text: str) -> list[Path]:
    """The files below the directory that hold the text anywhere."""
    return [file for file, content in contents(directory) if text.encode() in content]


@pytest.mark.requirement("e2e:token:not-on-disk")
def test_a_workers_token_is_in_its_environment_and_nowhere_on_disk(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(HOLD)
        home.until_phase(run_id, "running")
        token = home.token_of(run_id)
        secret = token.rpartition(f"{run_id}_1_")[2]
        assert len(secret) == 43
        assert holds(home.root, run_id) != [], "the search would find it"
        assert holds(home.root, secret) == []
        assert variable_of(home.pid, "SUBAGENTS_TOKEN") is None
        (home.work / "go").touch()
        home.finish(run_id)
        home.stop()
        assert holds(home.root, secret) == []


@pytest.mark.requirement("e2e:token:worker")
def test_a_worker_calls_with_its_token_and_not_without(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        (home.work / "ask.py").write_text(ASK)
        ask = f"{sys.executable} ask.py"
        bare = f'env -i SUBAGENTS_SOCKET="$SUBAGENTS_SOCKET" {ask}'
        run_id = home.spawn(f"{ask}; env -u SUBAGENTS_TOKEN {ask}; {bare}")
        (item,) = home.finish(run_id)
        assert item["result"].split() == ["200", "401", "401"]
        for event in refused_calls(home, run_id, count=2):
            assert f"belongs to the worker {run_id}#1, and the call has no token" in event.reason


CUT_LOOSE = """
(env -i SUBAGENTS_SOCKET="$SUBAGENTS_SOCKET" setsid sh -c '
    until [ -e alone ]; do sleep 0.02; done
    echo $$ > loose; {ask} > answer; mv answer said; exec sleep 600' &)
kill -9 $PPID; touch alone; exec sleep 600
"""


@pytest.mark.requirement("e2e:token:cut-loose")
@pytest.mark.skipif(cgroups.place().path is None, reason=f"{cgroups.place().problem}")
def test_a_worker_that_cuts_itself_loose_stays_that_worker_and_ends_with_its_run(
    tmp_path: Path,
) -> None:
    """Its shim is dead, its parent is init, its session its own, its environment clean."""
    with live_home(tmp_path) as home:
        (home.work / "ask.py").write_text(ASK)
        run_id = home.spawn(CUT_LOOSE.format(ask=f"{sys.executable} ask.py"))
        said = home.work / "said"
        until(said.exists, what="the answer")
        assert said.read_text().strip() == "401"
        (event,) = refused_calls(home, run_id, count=1)
        assert f"belongs to the worker {run_id}#1, and the call has no token" in event.reason
        home.restart_after_kill()
        home.post(f"/v1/runs/{run_id}/cancel", {})
        assert home.finish(run_id)[0]["outcome"]["status"] == "cancelled"
        loose = int((home.work / "loose").read_text())
        until(lambda: look(loose) is None, what="the end of what cut itself loose")


@pytest.mark.requirement("e2e:token:another-tree")
def test_a_token_opens_no_other_tree(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        mine, other = home.spawn(HOLD), home.spawn(HOLD)
        home.until_phase(mine, "running")
        home.until_phase(other, "running")
        me = home.as_worker(mine)
        for method, path in (("GET", "/log"), ("POST", "/cancel"), ("POST", "/report")):
            status, document = call(home, f"/v1/runs/{other}{path}", me, method=method)
            assert (status, document["code"]) == (403, "forbidden"), path
        calls = [event.call for event in refused_calls(home, mine, count=3)]
        assert calls == [
            f"GET /v1/runs/{other}/log",
            f"POST /v1/runs/{other}/cancel",
            f"POST /v1/runs/{other}/report",
        ]
        session = home.row(mine)["sessionKey"]
        assert [(line["runId"], line["by"]) for line in refusals(home)] == [(mine, session)] * 3
        looked = subprocess.run(
            [sys.executable, "-m", "subagents", "doctor", "--json"],
            env=home._env,
            capture_output=True,
            timeout=BOUND_S,
            check=False,
        )
        checks = {each["name"]: each for each in json.loads(looked.stdout)["checks"]}
        assert checks["refusals"]["status"] == "warn"
        assert f"POST /v1/runs/{other}/cancel by {session}" in checks["refusals"]["detail"]
        (home.work / "go").touch()
        assert {item["outcome"]["status"] for item in home.finish(mine, other)} == {"ok"}


@pytest.mark.requirement("e2e:token:expired")
def test_a_token_is_worth_nothing_after_its_run_also_to_the_next_daemon(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(HOLD)
        home.until_phase(run_id, "running")
        me = home.as_worker(run_id)
        assert call(home, "/v1/runs", me)[0] == 200
        (home.work / "go").touch()
        home.finish(run_id)
        home.until_phase(run_id, "completed")
        assert call(home, "/v1/runs", me)[0] == 401
        refused_calls(home, run_id)
        home.restart_after_kill()
        assert call(home, "/v1/runs", me)[0] == 401
        assert [event.call for event in refused_calls(home, run_id, count=2)] == [
            "GET /v1/runs"
        ] * 2
        why = home.get(f"/v1/runs/{run_id}/why")
        assert any("refused GET /v1/runs" in step["text"] for step in why["steps"])


@pytest.mark.requirement("e2e:token:old-attempt")
def test_a_token_of_the_attempt_before_is_refused_while_the_next_one_works(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        task = f'if [ "$SUBAGENTS_ATTEMPT_NUMBER" = 1 ]; then {HOLD.replace("go", "first")}; exit 1'
        run_id = home.spawn(f"{task}; fi; {HOLD}", retryCount=1, retryDelay=1)
        home.until_phase(run_id, "running")
        first = home.as_worker(run_id, 1)
        (home.work / "first").touch()
        second = home.as_worker(run_id, 2)
        status, document = call(home, "/v1/runs", first)
        assert (status, document["code"]) == (401, "unauthorized")
        assert (
            f"belongs to attempt 1 of run {run_id}; attempt 2 is under way" in document["message"]
        )
        assert call(home, "/v1/runs", second)[0] == 200
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("e2e:token:none")
def test_a_workers_session_name_alone_opens_nothing(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(HOLD)
        named = {"X-Subagents-Session": home.until_phase(run_id, "running")["sessionKey"]}
        for method, path in (
            ("GET", "/v1/runs"),
            ("POST", "/v1/inbox"),
            ("POST", f"/v1/runs/{run_id}/report"),
        ):
            status, document = call(home, path, named, method=method)
            assert (status, document["code"]) == (401, "unauthorized"), path
            assert "SUBAGENTS_TOKEN" in document["hint"]
        assert len(refused_calls(home, run_id, count=3)) == 3
        (home.work / "go").touch()
        home.finish(run_id)


@pytest.mark.requirement("e2e:token:kill-before-start")
def test_workers_that_a_killed_daemon_had_not_started_have_tokens_that_work(
    tmp_path: Path,
) -> None:
    """The slot and the token's hash are committed, the token itself died with the daemon."""
    with live_home(tmp_path) as home:
        specs = [home.spawn_body(HOLD)["spec"] for _ in range(STARTS)]
        answered = home.post("/v1/plans", {"specs": specs, "cwd": str(home.work)})
        home.restart_after_kill()
        run_ids = [str(receipt["runId"]) for receipt in answered["receipts"]]
        for run_id in run_ids:
            home.until_phase(run_id, "running")
        late = [run_id for run_id in run_ids if home.events(run_id, TokenIssued)]
        assert late, "the daemon was killed too late: every worker was there"
        for run_id in run_ids:
            status, document = call(home, f"/v1/runs/{run_id}/status", home.as_worker(run_id))
            assert (status, document.get("runId")) == (200, run_id), document
        assert home.read("SELECT count(*) FROM run") == [(STARTS,)]
        (home.work / "go").touch()
        assert {item["outcome"]["status"] for item in home.finish(*run_ids)} == {"ok"}


# -- TCP -----------------------------------------------------------------------------------------


@pytest.mark.requirement("e2e:tcp:foreign-host")
def test_over_tcp_a_foreign_host_and_a_missing_token_are_refused_and_written_down(
    tmp_path: Path,
) -> None:
    port = free_port()
    with live_home(tmp_path, config=f"{DEFAULTS}\n[daemon]\nhttp_port = {port}\n") as home:
        file = home.paths.state_dir / "operator.token"
        operator = {"Authorization": f"Bearer {file.read_text().strip()}"}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert call(home, "/v1/runs", operator, port=port)[0] == 200
        assert call(home, "/healthz", {}, port=port)[0] == 200
        foreign = {**operator, "Host": f"rebound.example:{port}"}
        assert call(home, "/v1/runs", foreign, port=port)[0] == 421
        page = {**operator, "Origin": "https://evil.example"}
        assert call(home, "/v1/runs", page, port=port)[0] == 403
        assert call(home, "/v1/runs", {}, port=port)[0] == 401
        found = until(
            lambda: lines if len(lines := refusals(home)) == 3 else None, what="three refusals"
        )
        assert [line["reason"].split(";")[0] for line in found] == [
            f"this is not rebound.example:{port}",
            "pages of https://evil.example may not call here",
            "calls over TCP need a token",
        ]
        assert all(line["peer"].startswith("127.0.0.1:") for line in found)
        home.restart_after_kill()
        assert call(home, "/v1/runs", operator, port=port)[0] == 200


@pytest.mark.requirement("e2e:tcp:worker")
def test_a_workers_token_works_over_tcp_for_its_own_tree_only(tmp_path: Path) -> None:
    port = free_port()
    with live_home(tmp_path, config=f"{DEFAULTS}\n[daemon]\nhttp_port = {port}\n") as home:
        mine, other = home.spawn(HOLD), home.spawn(HOLD)
        home.until_phase(mine, "running")
        me = home.as_worker(mine)
        assert call(home, f"/v1/runs/{mine}/status", me, port=port)[0] == 200
        assert call(home, f"/v1/runs/{other}/status", me, port=port)[0] == 403
        assert call(home, "/v1/shutdown", me, method="POST", port=port)[0] == 403
        (home.work / "go").touch()
        home.finish(mine, other)
        assert call(home, "/version", me, port=port)[0] == 401


@pytest.mark.requirement("e2e:tcp:serve")
def test_serve_opens_the_port_it_is_given_and_refuses_one_that_others_could_reach(
    tmp_path: Path,
) -> None:
    port = free_port()
    argv = [sys.executable, "-m", "subagents", "serve", "--port", str(port)]
    with live_home(tmp_path, started=False) as home:
        refused = subprocess.run(
            [*argv, "--host", "0.0.0.0"],  # noqa: S104 - it must not be
            env=home._env,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        assert refused.returncode == 2, refused.stderr
        assert "daemon.http_host must be a loopback address" in refused.stderr
        assert not home.paths.database.exists()

        with (tmp_path / "said").open("w+") as said:
            serving = subprocess.Popen(argv, env=home._env, stdout=said, stderr=said)
            try:
                until(home.is_up, what="the daemon answers")
                assert call(home, "/healthz", {}, port=port) == (200, {"status": "ok"})
                assert call(home, "/version", {}, port=port)[0] == 401
                found = home.get("/v1/diagnostics")
                assert found["httpUrl"] == f"http://127.0.0.1:{port}"
            finally:
                serving.terminate()
                assert serving.wait(BOUND_S) == 0
            told = (tmp_path / "said").read_text()
        assert (
            f"http://127.0.0.1:{port} (token: {home.paths.state_dir}{os.sep}operator.token)" in told
        )
