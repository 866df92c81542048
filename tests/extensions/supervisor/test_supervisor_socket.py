"""The supervisor socket: lines of JSON in, answers and events out, and nobody else comes in."""

import asyncio
import contextlib
import json
import os
import socket
import stat
from pathlib import Path

import pytest
from tests.api.home_daemon import DEADLINE_S, build, serving
from tests.extensions.supervisor.supervisor_clients import create, supervisor

from subagents.api.server import listeners
from subagents.api.server.daemon import run_daemon
from subagents.errors import AlreadyRunning
from subagents.extensions.supervisor import supervisor_socket

# -- coming in -----------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:socket")
def test_the_socket_lies_beside_the_daemons_is_as_private_and_goes_with_it(tmp_path: Path) -> None:
    async def scenario() -> Path:
        async with serving(tmp_path) as home:
            path = home.services.paths.supervisor_socket
            assert path == home.services.paths.socket.with_name("supervisor.sock")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        return path

    assert not asyncio.run(scenario()).exists()


@pytest.mark.requirement("supervisor:socket")
async def test_a_stale_socket_is_replaced_and_one_that_answers_is_left_alone(
    tmp_path: Path,
) -> None:
    services = build(tmp_path)
    path = services.paths.supervisor_socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    async with serving(tmp_path) as home, supervisor(home) as one:
        assert (await one.do("ping"))["pong"] is True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        again = build(tmp_path)
        with pytest.raises(AlreadyRunning):
            await run_daemon(again, paths=again.paths, log_path=again.paths.log_file)
        assert path.is_socket()


@pytest.mark.requirement("supervisor:same-user")
async def test_a_supervisor_of_another_user_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as home:
        monkeypatch.setattr(supervisor_socket, "peer_uid", lambda _connection: os.getuid() + 1)
        async with supervisor(home, None) as one:
            assert await one.reader.read() == b""
        monkeypatch.undo()
        async with supervisor(home) as one:
            await one.do("ping")
    assert f"refused a supervisor of user {os.getuid() + 1}" in (
        home.services.paths.log_file.read_text()
    )


@pytest.mark.requirement("ownership:lapse")
async def test_a_supervisor_is_told_nothing_from_memory_while_the_runs_may_be_anothers(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        assert (await one.do("status"))["total"] == 0
        home.services.engine.ownership.given(0.0, asked_ms=0)
        code, message = await one.refused("status")
        assert (code, "whether its runs are still ours" in message) == (
            "store_unavailable",
            True,
        )


@pytest.mark.requirement("supervisor:register")
async def test_before_registering_only_ping_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as home, supervisor(home, None) as one:
        assert (await one.do("ping"))["pong"] is True
        code, message = await one.refused("status")
        assert (code, message[:14]) == ("unauthorized", "register first")
        assert (await one.refused("subscribe"))[0] == "unauthorized"
        found = await one.register("openclaw")
        assert {k: found[k] for k in ("type", "agentId", "session", "seq")} == {
            "type": "registered",
            "agentId": "openclaw",
            "session": "agent:openclaw:main",
            "seq": 0,
        }
        assert await one.do("status") == {"agents": [], "total": 0}


@pytest.mark.requirement("supervisor:register")
async def test_a_supervisor_is_one_session_which_owns_what_it_creates(tmp_path: Path) -> None:
    async with serving(tmp_path) as home, supervisor(home, None) as one:
        assert (await one.register("agent:ci:night"))["session"] == "agent:ci:night"
        assert (await one.register("agent:ci:night"))["type"] == "registered"
        assert (await one.register("other"))["error"]["code"] == "conflict"
        run_id = await create(one, home, "builder", "quick")
        await one.until_end("builder")
        row = await home.ok("GET", f"/v1/runs/{run_id}/status")
        assert (row["requester"], row["label"]) == ("agent:ci:night", "builder")
        for wrong in ("", "Open Claw", "agent:x", "ä", "a" * 65):
            refused = await one.register(wrong)
            assert refused["error"]["code"] == "invalid", wrong


@pytest.mark.requirement("supervisor:no-worker")
async def test_a_worker_gets_no_operators_rights_here(tmp_path: Path) -> None:
    """Neither by the name of its session, nor by leaving its name out."""
    async with serving(tmp_path) as home:
        receipt = await home.spawn("hang")
        await home.until_phase(receipt["runId"], "running")
        async with supervisor(home, None) as one:
            refused = await one.register(receipt["childSessionKey"])
            assert refused["error"]["code"] == "unauthorized"
            assert (await one.refused("status"))[0] == "unauthorized"
        talk = (
            "import json, socket; s = socket.socket(socket.AF_UNIX);"
            f"s.connect({str(home.services.paths.supervisor_socket)!r});"
            "s.sendall(json.dumps({'type': 'register_supervisor', 'agentId': 'me'}).encode()"
            " + b'\\n'); print(s.makefile().readline())"
        )
        found = await home.spawn("shell", task=f'python3 -c "{talk}"')
        await home.until_phase(found["runId"], "completed")
        result = await home.ok("GET", f"/v1/runs/{found['runId']}/result")
        told = json.loads(result["result"])
        assert told["error"]["code"] == "unauthorized"
        assert "belongs to the worker" in told["error"]["message"]
        log = home.services.refusals
        assert {each.call for each in await log.recent()} == {"register_supervisor"}


@pytest.mark.requirement("supervisor:many")
async def test_more_supervisors_than_there_may_be_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_socket, "SUPERVISORS_MAX", 2)
    async with serving(tmp_path) as home:
        async with supervisor(home, "a") as one, supervisor(home, "b") as two:
            async with supervisor(home, None) as three:
                assert (await three.answer())["error"]["code"] == "rate_limited"
                assert await three.reader.read() == b""
            await one.do("ping")
            await two.do("ping")
        async with asyncio.timeout(DEADLINE_S):
            while True:
                async with supervisor(home, None) as again:
                    if "registered" in (await again.register())["type"]:
                        break


# -- stopping ------------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:stop")
def test_the_daemon_stops_at_once_with_supervisors_connected_and_some_not_reading(
    tmp_path: Path,
) -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        async with serving(tmp_path) as home, contextlib.AsyncExitStack() as stack:
            ones = [await stack.enter_async_context(supervisor(home, f"s{n}")) for n in range(5)]
            for one in ones:
                await one.do("subscribe", **{"from": 0}, events=["run"])
            began = loop.time()
            home.services.stopping.set()
            for one in ones:
                async with asyncio.timeout(DEADLINE_S):
                    with contextlib.suppress(ConnectionError):
                        await one.reader.read()
        return loop.time() - began

    assert asyncio.run(scenario()) < 4
    assert listeners.STOP_S == 5
