"""``/mcp`` with the protocol's own client, in both of its eras, and byte by byte."""

import asyncio
import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.api.home_daemon import Home, UnixConnection, until
from tests.api.mcp.mcp_clients import (
    DESK,
    ERAS,
    Wire,
    connected,
    desk,
    is_consumed,
    play,
    text_of,
    until_consumed,
)
from tests.api.tools.tool_seats import CONFIG

from subagents.api.mcp.mcp_endpoint import BODY_BYTES_MAX
from subagents.api.tools import wait_tool
from subagents.api.tools.requester_tools import REQUESTER_TOOLS
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.worker_tools import WORKER_TOOLS
from subagents.domain.run.values import RunId
from subagents.version import __version__

REQUESTER = [tool.name for tool in REQUESTER_TOOLS]
WORKER = [tool.name for tool in WORKER_TOOLS]
each_era = pytest.mark.parametrize("era", ERAS)


@pytest.mark.requirement("mcp:eras", "mcp:fleet")
@each_era
def test_a_client_of_either_era_is_told_who_we_are_and_whom_it_may_use(
    era: str, tmp_path: Path
) -> None:
    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == (
                "subagents",
                __version__,
            )
            told = client.instructions or ""
            assert "sessions_spawn" in told
            assert "- quick: Answers at once (fast; cost free; about 1s; No tools)" in told
            assert "hidden" not in told
            assert len(told) < 3000
            extensions = client.server_capabilities.extensions or {}
            assert ("io.modelcontextprotocol/tasks" in extensions) == (era != "legacy")

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:tools-listed")
@each_era
def test_every_tool_is_listed_with_its_marks(era: str, tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = str((await home.spawn("boss"))["runId"])
        await home.until_phase(run_id, "running")
        leaf = str((await home.spawn("hang", headers=home.worker(run_id)))["runId"])
        await home.until_phase(leaf, "running")

        async with connected(home, era, desk(home)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        async with connected(home, era, home.worker(run_id)) as client:
            of_boss = [tool.name for tool in (await client.list_tools()).tools]
        async with connected(home, era, home.worker(leaf)) as client:
            of_leaf = [tool.name for tool in (await client.list_tools()).tools]
            assert "report_completion" in (client.instructions or "")
            assert "sessions_spawn" not in (client.instructions or "")

        assert list(tools) == REQUESTER
        assert of_boss == [*WORKER, *REQUESTER]
        assert of_leaf == WORKER
        for known in REQUESTER_TOOLS:
            shown = tools[known.name]
            assert shown.meta == {"anthropic/alwaysLoad": True}
            assert shown.title is not None
            assert shown.input_schema == known.schema
            assert shown.annotations is not None
            assert shown.annotations.read_only_hint == known.read_only
            assert shown.annotations.destructive_hint == known.destructive
            assert shown.annotations.open_world_hint is False

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:tools-called")
@each_era
def test_every_tool_of_a_requester_answers(era: str, tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            spawned = await client.call_tool("sessions_spawn", {"task": "x", "agentId": "hang"})
            assert spawned.structured_content is not None
            run_id = spawned.structured_content["runId"]
            key = spawned.structured_content["childSessionKey"]
            await home.until_phase(run_id, "running")
            question = await home.services.engine.ask(RunId(run_id), "which?")
            calls: dict[str, dict[str, Any]] = {
                "sessions_wait": {"runIds": [run_id], "timeoutSeconds": 0},
                "sessions_list": {},
                "sessions_tree": {},
                "sessions_history": {"sessionKey": key},
                "subagents": {"action": "status", "target": run_id},
                "agents_list": {"hint": "review code"},
                "respond_orchestrator_request": {"requestId": question.id, "response": "that"},
            }
            for name, arguments in calls.items():
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, (name, text_of(answer))
                assert isinstance(answer.structured_content, dict)
                assert text_of(answer)
            # The scripted runtime takes no messages; the refusal says so.
            sent = await client.call_tool("sessions_send", {"sessionKey": key, "message": "hi"})
            assert isinstance(sent.structured_content, dict)
            assert {*calls, "sessions_spawn", "sessions_send"} == set(REQUESTER)

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:tools-called")
@each_era
def test_every_tool_of_a_worker_answers_to_its_token(era: str, tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = str((await home.spawn("hang"))["runId"])
        await home.until_phase(run_id, "running")
        calls: dict[str, dict[str, Any]] = {
            "report_progress": {"phase": "half way", "percentComplete": 50},
            "notify_parent": {"message": "look"},
            "request_orchestrator": {
                "question": "go on?",
                "timeoutSeconds": 1,
                "defaultAnswer": "yes",
            },
            "report_completion": {"summary": "done"},
        }
        async with connected(home, era, home.worker(run_id)) as client:
            for name, arguments in calls.items():
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, (name, text_of(answer))
        assert set(calls) == set(WORKER)
        run = await home.services.queries.run(RunId(run_id))
        assert run.attempt.reported.report is not None
        assert run.questions.requests[0].answer is not None

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:errors")
@each_era
def test_an_unknown_tool_is_an_error_of_the_protocol_and_a_wrong_parameter_one_of_the_tool(
    era: str, tmp_path: Path
) -> None:
    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            with pytest.raises(MCPError) as failure:
                await client.call_tool("session_spawn", {"task": "x"})
            assert failure.value.error.code == -32602
            assert 'did you mean "sessions_spawn"' in failure.value.error.message
            wrong = await client.call_tool("sessions_spawn", {"task": "x", "agentID": "quick"})
            assert wrong.is_error
            assert wrong.structured_content is not None
            assert wrong.structured_content["code"] == "invalid"
            assert "agentId" in text_of(wrong)
            with pytest.raises(MCPError) as failure:
                await client.list_tools(cursor="nonsense")
            assert failure.value.error.code == -32602
            assert (await client.list_tools(cursor="50")).tools == []

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:progress")
@each_era
def test_a_long_wait_shows_progress_to_who_asked_for_it(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_tool, "TELL_S", 0.02)
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            await client.call_tool("sessions_spawn", {"task": "x", "agentId": "slow", "label": "w"})
            answer = await client.call_tool("sessions_wait", {}, progress_callback=note)
            assert answer.structured_content is not None
            assert len(answer.structured_content["completed"]) == 1

    play(tmp_path, scenario)
    assert len(told) >= 2
    assert [number for number, _ in told] == sorted({number for number, _ in told})
    assert "waiting for w (" in str(told[0][1])


# -- consumed once ------------------------------------------------------------------------------


async def ended_run(home: Home) -> str:
    """A run of the desk that is over and of which nobody has heard."""
    spawned = await Wire(home, tasks=False).call("sessions_spawn", task="x", agentId="quick")
    run_id = str(spawned["structuredContent"]["runId"])
    await home.until_phase(
        run_id, "announcing", "cleanup_pending", "announce_deferred", "completed"
    )
    return run_id


@pytest.mark.requirement("mcp:consumed-once")
@each_era
def test_a_result_is_consumed_when_its_answer_has_left(era: str, tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended_run(home)
        assert not await is_consumed(home, run_id)
        async with connected(home, era, desk(home)) as client:
            first = await client.call_tool("sessions_wait", {})
            await until_consumed(home, run_id)
            again = await client.call_tool("sessions_wait", {})
        assert run_id in text_of(first)
        assert first.meta is None or "subagents/offered" not in first.meta
        assert run_id not in text_of(again)

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:consumed-once")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_client_that_leaves_while_it_waits_takes_nothing_with_it(
    version: str, tmp_path: Path
) -> None:
    async def scenario(home: Home) -> None:
        wire = Wire(home, tasks=False)
        spawned = await wire.call("sessions_spawn", task="x", agentId="hang")
        run_id = str(spawned["structuredContent"]["runId"])
        mailbox = home.services.engine._parts.mailbox
        params = {"name": "sessions_wait", "arguments": {"runIds": [run_id]}}
        connection = await asyncio.to_thread(
            wire.open, "tools/call", params, {"MCP-Protocol-Version": version}
        )
        await until(lambda: run_id in mailbox._waiters)
        connection.close()
        # Whoever waits for nobody is woken up and goes.
        await until(lambda: run_id not in mailbox._waiters)
        await home.services.engine.cancel(RunId(run_id), by="test")
        found = await wire.call("sessions_wait", runIds=[run_id])
        assert found["structuredContent"]["completed"][0]["runId"] == run_id

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:acknowledged-by-the-client")
def test_what_a_client_that_acknowledges_by_itself_has_not_acknowledged_goes_back_when_it_leaves(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended_run(home)
        explicit = {"X-Subagents-Ack": "explicit"}
        wire = Wire(home, tasks=False)
        params: dict[str, Any] = {"name": "sessions_wait", "arguments": {}}

        def read(connection: UnixConnection) -> dict[str, Any]:
            answered = connection.getresponse()
            length = int(answered.getheader("content-length") or 0)
            found: dict[str, Any] = json.loads(answered.read(length))
            return found

        connection = await asyncio.to_thread(wire.open, "tools/call", params, explicit)
        message = await asyncio.to_thread(read, connection)
        offered = message["result"]["_meta"]["subagents/offered"]
        assert offered == [f"{run_id}:announce"]
        # It is still there, so nobody else is told.
        held = await wire.call("sessions_wait", timeoutSeconds=0)
        assert held["structuredContent"]["completed"] == []
        assert not await is_consumed(home, run_id)

        connection.close()
        # Long before its lease would be over.
        again = await wire.call("sessions_wait", timeoutSeconds=15)
        assert again["structuredContent"]["completed"][0]["runId"] == run_id

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:acknowledged-by-the-client")
def test_what_the_client_acknowledges_before_it_leaves_is_consumed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended_run(home)
        reader = {"X-Subagents-Reader": "r1"}
        wire = Wire(home, tasks=False)
        params: dict[str, Any] = {"name": "sessions_wait", "arguments": {}}
        headers = {"X-Subagents-Ack": "explicit", **reader}
        connection = await asyncio.to_thread(wire.open, "tools/call", params, headers)
        await asyncio.to_thread(connection.getresponse)
        acknowledged = await home.ok(
            "POST",
            "/v1/inbox/ack",
            {"messageIds": [f"{run_id}:announce"]},
            {**desk(home), "X-Subagents-Caller": "agent", **reader},
        )
        connection.close()
        assert acknowledged == {"consumed": 1}
        assert await is_consumed(home, run_id)
        found = await wire.call("sessions_wait", timeoutSeconds=0)
        assert found["structuredContent"]["completed"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:consumed-once")
def test_two_calls_of_one_session_at_once_are_not_told_of_the_same_result(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        wire = Wire(home, tasks=False)
        spawned = await wire.call("sessions_spawn", task="x", agentId="slow")
        run_id = spawned["structuredContent"]["runId"]
        both = await asyncio.gather(
            *(wire.call("subagents", action="inbox") for _ in range(2)),
            *(wire.call("sessions_wait", timeoutSeconds=15) for _ in range(2)),
        )
        told = [each for each in both if run_id in json.dumps(each["structuredContent"])]
        complete = [
            each
            for each in told
            if each["structuredContent"].get("completed")
            or each["structuredContent"].get("messages")
        ]
        assert len(complete) == 1

    play(tmp_path, scenario)


# -- the door -----------------------------------------------------------------------------------


def raw(home: Home, method: str, headers: dict[str, str], body: bytes = b"{}") -> Any:
    connection = UnixConnection(home.services.paths.socket)
    try:
        connection.request(method, "/mcp", body, headers)
        answered: http.client.HTTPResponse = connection.getresponse()
        return answered.status, dict(answered.getheaders()), answered.read()
    finally:
        connection.close()


@pytest.mark.requirement("mcp:our-mistake")
@pytest.mark.parametrize("era", ERAS)
def test_a_mistake_of_ours_is_told_without_its_insides(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_name: str, _call: Call) -> Answer:
        raise TypeError("our insides")

    monkeypatch.setattr("subagents.api.mcp.mcp_calls.call_tool", broken)

    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("agents_list", {})
        assert "its log says why" in str(caught.value)
        assert "insides" not in f"{caught.value.error.data} {caught.value}"

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:door")
def test_there_is_no_stream_to_get_and_a_body_has_a_limit(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        for method in ("GET", "DELETE"):
            status, headers, _ = await asyncio.to_thread(raw, home, method, {})
            assert (status, headers["allow"]) == (405, "POST")
        kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        large = b'{"a":"' + b"x" * BODY_BYTES_MAX + b'"}'
        status, _, _ = await asyncio.to_thread(raw, home, "POST", kind, large)
        assert status == 413

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:identity")
def test_a_bad_token_is_told_so_in_the_protocols_form_and_noted(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        status, headers, body = await asyncio.to_thread(
            raw, home, "POST", {"Authorization": "Bearer sa_r-nothing_1_" + "x" * 43}
        )
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (401, -32000)
        assert error["data"]["code"] == "unauthorized"
        assert headers["www-authenticate"] == "Bearer"
        await home.services.refusals.flush()
        noted = await asyncio.to_thread(home.services.refusals.file.read_text)
        assert "POST /mcp" in noted

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:identity")
def test_an_agent_cannot_see_another_sessions_runs(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        other = str((await home.spawn("hang"))["runId"])  # the operator's own session
        found = await Wire(home, tasks=False).call("subagents", action="status", target=other)
        assert found["isError"]
        assert found["structuredContent"]["status"] == "forbidden"

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:door")
def test_space_around_a_header_is_no_part_of_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        status, message = await Wire(home).send(
            "tools/call", {"Mcp-Name": "  sessions_list  "}, name="sessions_list", arguments={}
        )
        assert (status, message["result"]["isError"]) == (200, False)

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:stopping")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_wait_ends_at_once_when_the_daemon_stops_and_says_that_it_may_be_repeated(
    version: str, tmp_path: Path
) -> None:
    async def scenario(home: Home) -> None:
        wire = Wire(home, tasks=False)
        spawned = await wire.call("sessions_spawn", task="x", agentId="hang")
        run_id = spawned["structuredContent"]["runId"]
        calling = asyncio.create_task(
            wire.send(
                "tools/call",
                {"MCP-Protocol-Version": version},
                name="sessions_wait",
                arguments={"timeoutSeconds": 60},
            )
        )
        mailbox = home.services.engine._parts.mailbox
        await until(lambda: DESK in mailbox._waiters)
        home.services.stopping.set()
        async with asyncio.timeout(5):
            _, message = await calling
        assert message["error"]["data"]["code"] == "unavailable"
        assert message["error"]["data"]["retryable"]
        assert run_id

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:loaded-late")
def test_a_daemon_that_no_mcp_client_calls_never_loads_the_package() -> None:
    code = "import sys, subagents.api.server.daemon; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.requirement("mcp:fleet")
def test_who_may_spawn_nobody_is_told_which_key_allows_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        other = desk(home, "agent:nobody:desk")
        async with connected(home, ERAS[1], other) as client:
            assert "agents.nobody.subagents.allow_agents" in (client.instructions or "")

    play(tmp_path, scenario, CONFIG)
