"""Who is calling: tokens, names in headers, marked processes; and who was turned away."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.api.home_daemon import Document, Home, UnixConnection, build, serving, until

from subagents.api.calls import refusals
from subagents.api.calls.auth import CONNECTION, Caller, Connection
from subagents.api.calls.call import own_attempt
from subagents.api.calls.refusals import is_refusal
from subagents.api.server.app import create_app
from subagents.domain.run.events import CallRefused
from subagents.domain.run.values import AttemptId, RunId
from subagents.engine.runs.control import REFUSALS_MAX
from subagents.errors import (
    Conflict,
    Forbidden,
    SubagentsError,
    Unauthorized,
    UsageError,
)
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


def play(home: Path, scenario: Callable[[Home], Awaitable[None]]) -> None:
    async def run() -> None:
        async with serving(home) as daemon:
            await scenario(daemon)

    asyncio.run(run())


async def lines(home: Home) -> list[Document]:
    """Everything in the file of refusals."""
    await home.services.refusals.flush()
    text = await asyncio.to_thread(home.services.refusals.file.read_text)
    return [json.loads(line) for line in text.splitlines()]


async def events(home: Home, run_id: str) -> list[CallRefused]:
    await home.services.refusals.flush()
    entries = await home.services.queries.journal(RunId(run_id), limit=500)
    return [entry.event for entry in entries if isinstance(entry.event, CallRefused)]


async def working(home: Home, label: str = "w") -> str:
    """A run whose worker is there and hangs."""
    run_id = str((await home.spawn("hang", label=label))["runId"])
    await home.until_phase(run_id, "running")
    return run_id


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
def test_a_token_says_who_calls_whatever_the_session_header_says(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await working(home)
        me = {**home.worker(run_id), "X-Subagents-Session": "agent:main:main"}
        assert (await home.ok("GET", "/v1/runs"))["total"] == 1
        assert (await home.ok("GET", "/v1/runs", None, me))["total"] == 0
        status, document = await home.call("POST", "/v1/shutdown", {}, me)
        assert (status, document["code"]) == (403, "forbidden")

    play(tmp_path, scenario)


@pytest.mark.requirement("identity:worker-needs-token")
def test_a_workers_session_without_its_token_is_refused_and_told_what_is_missing(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("identity:token-expired")
def test_a_token_of_a_run_that_ended_is_refused_and_journaled_there(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("quick"))["runId"]
        await home.until_phase(run_id, "completed")
        status, document = await home.call("GET", "/v1/runs", None, home.worker(run_id))
        assert (status, document["code"]) == (401, "unauthorized")
        (event,) = await events(home, run_id)
        assert (event.call, event.by) == ("GET /v1/runs", f"unknown (pid {os.getpid()})")
        why = await home.ok("GET", f"/v1/runs/{run_id}/why")
        shown = " ".join(step["text"] for step in why["steps"])
        assert "refused GET /v1/runs by unknown" in shown

    play(tmp_path, scenario)


@pytest.mark.requirement("identity:wrong-tree")
def test_a_call_for_another_tree_is_refused_and_journaled_with_its_caller(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("identity:credentials")
@pytest.mark.parametrize(
    "given", ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "sa_r-1_1_x", "Bearer a b", "Bearer nope"]
)
def test_other_credentials_are_refused_rather_than_ignored(tmp_path: Path, given: str) -> None:
    with pytest.raises(Unauthorized):
        caller_of(tmp_path, {"Authorization": given})


@pytest.mark.requirement("identity:attempt")
def test_a_worker_speaks_for_its_own_run_and_attempt_only(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = RunId(await working(home))
        token = home.worker(run_id)["Authorization"].removeprefix("Bearer ")
        known = home.services.engine.identify(token)
        caller = Caller(
            session=known.session_key,
            reader="r",
            is_worker=True,
            is_operator=False,
            run_id=known.run_id,
            attempt=known.attempt,
        )
        assert (await own_attempt(home.services, run_id, caller)).id == run_id
        nameless = Caller(
            session=known.session_key, reader="r", is_worker=True, is_operator=False, attempt=2
        )
        with pytest.raises(Conflict, match="this worker's is over"):
            await own_attempt(home.services, run_id, nameless)
        other = RunId(await working(home, "other"))
        with pytest.raises(Forbidden, match="only the worker of run"):
            await own_attempt(home.services, other, caller)

    play(tmp_path, scenario)


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
    over_tcp = {CONNECTION: Connection("127.0.0.1:1", is_tcp=True, is_operator=True)}
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


@pytest.mark.requirement("identity:dropped-token")
def test_a_process_is_looked_at_once_per_connection() -> None:
    asked: list[int] = []

    def attempt_of(pid: int) -> AttemptId | None:
        asked.append(pid)
        return AttemptId("r-1#1")

    connection = Connection("pid 7", 7)
    assert [connection.attempt(attempt_of) for _ in range(3)] == ["r-1#1"] * 3
    assert asked == [7]
    assert Connection("127.0.0.1:9").attempt(attempt_of) is None


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.requirement("refusals:bounded")
def test_a_run_keeps_at_most_fifty_refusals_and_the_file_all(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await working(home)
        me = home.worker(run_id)

        def call_many() -> None:
            calling = UnixConnection(home.services.paths.socket)
            for _ in range(60):
                calling.request("POST", "/v1/sweep", b"{}", me)
                assert calling.getresponse().read()
            calling.close()

        await asyncio.to_thread(call_many)
        assert len(await lines(home)) == 60
        assert len(await events(home, run_id)) == REFUSALS_MAX
        assert (await home.services.queries.run(RunId(run_id))).refusals == REFUSALS_MAX

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:no-secrets")
def test_the_file_of_refusals_is_private_and_holds_no_token(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("quick"))["runId"]
        await home.until_phase(run_id, "completed")
        me = home.worker(run_id)
        forged = {"Authorization": f"Bearer sa_r-9_1_{'x' * 43}"}
        for headers in (me, forged):
            assert (await home.call("GET", "/v1/runs?label=secret", None, headers))[0] == 401
        found = await lines(home)
        assert [line["runId"] for line in found] == [run_id, "r-9"]
        text = json.dumps(found)
        assert me["Authorization"].rpartition("_")[2] not in text
        assert "x" * 43 not in text
        assert "label" not in text
        mode = (await asyncio.to_thread(home.services.refusals.file.stat)).st_mode
        assert stat.S_IMODE(mode) == 0o600

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:bounded")
def test_a_large_file_of_refusals_is_moved_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "FILE_BYTES_MAX", 500)

    async def scenario(home: Home) -> None:
        for _ in range(12):
            await home.call("GET", "/v1/runs", None, {"Authorization": "Basic x"})
            await home.services.refusals.flush()
        file = home.services.refusals.file
        old = file.with_name(f"{file.name}.1")
        sizes = [each.stat().st_size for each in (file, old)]
        assert all(0 < size <= 800 for size in sizes), sizes
        assert sorted(each.name for each in file.parent.glob("refusals*")) == [file.name, old.name]

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:never-in-the-way")
def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        await asyncio.to_thread(home.services.refusals.file.mkdir)
        run_id = await working(home)
        status, _ = await home.call("POST", "/v1/sweep", {}, home.worker(run_id))
        assert status == 403
        assert len(await events(home, run_id)) == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:shown")
def test_diagnostics_show_who_was_turned_away_in_the_last_day(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        assert (await home.ok("GET", "/v1/diagnostics"))["refusals"]["lastDay"] == 0
        for number in range(7):
            await home.call("GET", f"/v1/runs/x{number}", None, {"Authorization": "Basic x"})
        found = (await home.ok("GET", "/v1/diagnostics"))["refusals"]
        assert found["lastDay"] == 7
        assert [each["call"] for each in found["newest"]] == [
            f"GET /v1/runs/x{number}" for number in range(2, 7)
        ]
        assert found["file"] == str(home.services.refusals.file)

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:which")
def test_only_who_somebody_is_makes_a_refusal(tmp_path: Path) -> None:
    cases: list[tuple[SubagentsError, bool]] = [
        (Unauthorized("x"), True),
        (Forbidden("x", guardrail="ownership"), True),
        (Forbidden("x", guardrail="role"), True),
        (Forbidden("x", guardrail="depth"), False),
        (UsageError("x"), False),
    ]
    assert [is_refusal(error) for error, _ in cases] == [expected for _, expected in cases]

    async def scenario(home: Home) -> None:
        spec = {"task": "x", "agentId": "shell"}
        agent = {"X-Subagents-Caller": "agent"}
        body = {"spec": spec, "cwd": home.cwd}
        assert (await home.call("POST", "/v1/runs", body, agent))[0] == 403
        await home.services.refusals.flush()
        assert not await asyncio.to_thread(home.services.refusals.file.exists)
        await until(lambda: home.services.refusals._writing is None)

    play(tmp_path, scenario)
