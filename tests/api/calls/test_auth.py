"""Who is calling: tokens, names in headers, marked processes; and who was turned away."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.api.calls.refused_calls import events, lines, working
from tests.api.home_daemon import Document, Home, build, play

from subagents.api.calls import auth
from subagents.api.calls.auth import CONNECTION, Caller, Connection, refuse_worker_without_token
from subagents.api.calls.call import own_attempt
from subagents.api.server.app import create_app
from subagents.domain.run.values import AttemptId, RunId, SessionKey
from subagents.errors import Conflict, Forbidden, Unauthorized, UsageError
from subagents.ports import Origin
from subagents.runtimes.process.processes import ATTEMPT_VARIABLE, ROOT_VARIABLE

CALL = """
import http.client, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(sys.argv[1])
calling = Unix("localhost")
calling.request("GET", "/v1/runs")
print(calling.getresponse().read().decode())
"""


def caller_of(home: Path, headers: Mapping[str, str], **scope: object) -> Caller:
    """Of a request that no server has seen."""
    services = build(home)
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    app = create_app(services)
    return Caller.of(
        Request({"type": "http", "app": app, "headers": raw, "path": "/v1/runs", **scope})
    )


# -- tokens --------------------------------------------------------------------------------------


@pytest.mark.requirement("identity:token-wins")
async def test_a_token_says_who_calls_whatever_the_session_header_says(home: Home) -> None:
    run_id = await working(home)
    me = {**home.worker(run_id), "X-Subagents-Session": "agent:main:main"}
    assert (await home.ok("GET", "/v1/runs"))["total"] == 1
    assert (await home.ok("GET", "/v1/runs", None, me))["total"] == 0
    status, document = await home.call("POST", "/v1/shutdown", {}, me)
    assert (status, document["code"]) == (403, "forbidden")


@pytest.mark.requirement("identity:worker-needs-token")
async def test_a_workers_session_without_its_token_is_refused_and_told_what_is_missing(
    home: Home,
) -> None:
    run_id = await working(home)
    row = await home.ok("GET", f"/v1/runs/{run_id}/status")
    named = {"X-Subagents-Session": row["sessionKey"]}
    for method, path in (
        ("GET", "/v1/runs"),
        ("POST", f"/v1/runs/{run_id}/report"),
        ("POST", f"/v1/runs/{run_id}/cancel"),
    ):
        status, document = await home.call(method, path, {}, named)
        assert (status, document["code"]) == (401, "unauthorized"), path
        assert "SUBAGENTS_TOKEN" in document["hint"]
    assert (await home.ok("GET", f"/v1/runs/{run_id}/status"))["phase"] == "running"
    refused = await events(home, run_id)
    assert [event.call for event in refused] == [
        "GET /v1/runs",
        f"POST /v1/runs/{run_id}/report",
        f"POST /v1/runs/{run_id}/cancel",
    ]
    assert f"{row['sessionKey']} is a worker's session" in refused[0].reason


@pytest.mark.requirement("identity:token-expired")
async def test_a_token_of_a_run_that_ended_is_refused_and_journaled_there(home: Home) -> None:
    run_id = (await home.spawn("quick"))["runId"]
    await home.until_phase(run_id, "completed")
    status, document = await home.call("GET", "/v1/runs", None, home.worker(run_id))
    assert (status, document["code"]) == (401, "unauthorized")
    (event,) = await events(home, run_id)
    assert (event.call, event.by) == ("GET /v1/runs", f"unknown (pid {os.getpid()})")
    why = await home.ok("GET", f"/v1/runs/{run_id}/why")
    shown = " ".join(step["text"] for step in why["steps"])
    assert "refused GET /v1/runs by unknown" in shown


@pytest.mark.requirement("identity:wrong-tree")
async def test_a_call_for_another_tree_is_refused_and_journaled_with_its_caller(home: Home) -> None:
    other, run_id = await working(home, "other"), await working(home)
    me = home.worker(run_id)
    status, _ = await home.call("POST", f"/v1/runs/{other}/cancel", {}, me)
    assert status == 403
    await home.ok("POST", "/v1/wait", {"runIds": [other], "timeoutSeconds": 0}, me)
    row = await home.ok("GET", f"/v1/runs/{run_id}/status")
    cancel, wait = await lines(home)
    assert cancel == {
        "atMs": cancel["atMs"],
        "call": f"POST /v1/runs/{other}/cancel",
        "reason": cancel["reason"],
        "by": row["sessionKey"],
        "peer": f"pid {os.getpid()}",
        "runId": run_id,
    }
    assert f"run {other} belongs to another session" in cancel["reason"]
    assert (wait["call"], wait["runId"]) == ("POST /v1/wait", run_id)
    assert [event.call for event in await events(home, run_id)] == [
        f"POST /v1/runs/{other}/cancel",
        "POST /v1/wait",
    ]
    assert await events(home, other) == []


@pytest.mark.requirement("identity:credentials")
@pytest.mark.parametrize(
    "given", ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "sa_r-1_1_x", "Bearer a b", "Bearer nope"]
)
def test_other_credentials_are_refused_rather_than_ignored(tmp_path: Path, given: str) -> None:
    with pytest.raises(Unauthorized):
        caller_of(tmp_path, {"Authorization": given})


@pytest.mark.requirement("identity:attempt")
async def test_a_worker_speaks_for_its_own_run_and_attempt_only(home: Home) -> None:
    run_id = RunId(await working(home))
    token = home.worker(run_id)["Authorization"].removeprefix("Bearer ")
    known = home.services.engine.identify(token)
    caller = Caller(
        session=known.session_key,
        reader="r",
        is_operator=False,
        run_id=known.run_id,
        attempt=known.attempt,
    )
    assert (await own_attempt(home.services, run_id, caller)).id == run_id
    with pytest.raises(Conflict, match="this worker's is over"):
        await own_attempt(home.services, run_id, replace(caller, attempt=2))
    other = RunId(await working(home, "other"))
    with pytest.raises(Forbidden, match="only the worker of run"):
        await own_attempt(home.services, other, caller)


# -- headers -------------------------------------------------------------------------------------


@pytest.mark.requirement("identity:headers")
def test_without_a_token_the_headers_name_a_top_level_session(tmp_path: Path) -> None:
    person = caller_of(tmp_path, {})
    assert (person.session, person.is_operator, person.run_id) == ("agent:main:main", True, None)
    agent = caller_of(
        tmp_path,
        {
            "X-Subagents-Session": "agent:main:shop",
            "X-Subagents-Reader": "r1",
            "X-Subagents-Caller": "agent",
            "X-Subagents-Cwd": "/srv/caf%C3%A9%20x",
        },
    )
    assert (agent.session, agent.reader, agent.is_operator) == ("agent:main:shop", "r1", False)
    assert agent.cwd == "/srv/café x"


@pytest.mark.requirement("identity:headers")
@pytest.mark.parametrize("cwd", ["", "srv", "%2F%00", "/%FF", f"/{'a' * 4096}"])
def test_a_directory_that_is_none_is_refused(tmp_path: Path, cwd: str) -> None:
    with pytest.raises(UsageError, match="X-Subagents-Cwd must be an absolute path"):
        caller_of(tmp_path, {"X-Subagents-Cwd": cwd})


@pytest.mark.requirement("identity:mcp-is-an-agent")
@pytest.mark.parametrize(
    ("path", "is_operator"),
    [("/mcp", False), ("/mcp/", False), ("/mcpx", True), ("/v1/runs", True)],
)
def test_whoever_calls_at_mcp_speaks_for_an_agent(
    tmp_path: Path, path: str, *, is_operator: bool
) -> None:
    over_tcp = {CONNECTION: Connection("127.0.0.1:1", is_operator=True)}
    assert caller_of(tmp_path, {}, path=path).is_operator is is_operator
    assert caller_of(tmp_path, {}, path=path, state=over_tcp).is_operator is is_operator


# -- processes -----------------------------------------------------------------------------------


def call_as(home: Home, marker: Mapping[str, str]) -> Document:
    """What a process with these variables is answered; it sends no token."""
    environ = {"PATH": os.environ["PATH"], **marker}
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(home.services.paths.socket)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    answered: Document = json.loads(done.stdout)
    return answered


@pytest.mark.requirement("identity:dropped-token")
@pytest.mark.skipif(sys.platform != "linux", reason="nobody says who is at the other end")
def test_a_worker_that_leaves_its_token_out_gains_nothing(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id, ended = await working(home), (await home.spawn("quick"))["runId"]
        await home.until_phase(ended, "completed")
        root = str(home.services.paths.attempts_dir)

        def marker(run: str, where: str = root) -> dict[str, str]:
            return {ATTEMPT_VARIABLE: f"{run}#1", ROOT_VARIABLE: where}

        refused = await asyncio.to_thread(call_as, home, marker(run_id))
        assert refused["code"] == "unauthorized"
        assert f"belongs to the worker {run_id}#1" in refused["message"]
        for allowed in ({}, marker(ended), marker(run_id, "/elsewhere"), marker("r-nope")):
            assert "runs" in await asyncio.to_thread(call_as, home, allowed), allowed
        (event,) = await events(home, run_id)
        assert event.by.startswith("unknown (pid ")

    play(tmp_path, scenario)


@pytest.mark.requirement("identity:cut-loose")
@pytest.mark.skipif(sys.platform != "linux", reason="nobody says who is at the other end")
async def test_what_the_kernel_calls_a_workers_is_refused_also_after_its_run(home: Home) -> None:
    ended = (await home.spawn("quick"))["runId"]
    await home.until_phase(ended, "completed")
    origin = Origin(AttemptId(f"{ended}#1"), is_certain=True)
    knows = replace(home.services, origin_of=lambda _pid: origin)
    with pytest.raises(Unauthorized, match=f"belongs to the worker {ended}#1") as said:
        refuse_worker_without_token(knows, SessionKey("agent:main:main"), Connection("", 7))
    assert said.value.details == {"runId": ended}


@pytest.mark.requirement("identity:gone-before-looked-at")
def test_whoever_connected_and_is_gone_is_nobody_whatever_its_id_names_now(tmp_path: Path) -> None:
    place = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        subprocess.run([sys.executable, "-S", "-c", connect, place], check=True, timeout=20)
        gone, _ = listener.accept()
        with socket.socket(socket.AF_UNIX) as here, gone:
            here.connect(place)
            ours, _ = listener.accept()
            with ours:
                assert Connection.on(ours).origin(lambda _pid: None) is None
            if not has_peer_pidfd(here):
                pytest.skip("this kernel does not say it (Linux 6.5 does)")
            with pytest.raises(ProcessLookupError):
                Connection.on(gone).origin(lambda _pid: None)


def has_peer_pidfd(connection: socket.socket) -> bool:
    try:
        os.close(connection.getsockopt(socket.SOL_SOCKET, auth._SO_PEERPIDFD))
    except OSError:
        return False
    return True


@pytest.mark.requirement("identity:dropped-token")
def test_a_process_is_looked_at_once_per_connection() -> None:
    asked: list[int] = []

    def origin_of(pid: int) -> Origin | None:
        asked.append(pid)
        return origin

    origin = Origin(AttemptId("r-1#1"), is_certain=False)
    connection = Connection("pid 7", 7)
    assert [connection.origin(origin_of) for _ in range(3)] == [origin] * 3
    assert asked == [7]
    assert Connection("127.0.0.1:9").origin(origin_of) is None


# -- refusals ------------------------------------------------------------------------------------
