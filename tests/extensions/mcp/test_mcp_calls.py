"""One call of a tool by MCP: progress while it lasts, and its errors in the protocol's form."""

import asyncio
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from tests.api.home_daemon import DEADLINE_S, Home, until
from tests.extensions.mcp.mcp_clients import (
    DESK,
    ERAS,
    Wire,
    connected,
    desk,
    each_era,
    play,
    text_of,
)

from subagents.api.answers.waking import NOT_WOKEN
from subagents.api.tools import wait_tool, worker_tools
from subagents.api.tools.tool import Answer, Call


@pytest.mark.requirement("mcp:errors")
@each_era
async def test_an_unknown_tool_is_an_error_of_the_protocol_and_a_wrong_parameter_one_of_the_tool(
    daemon: Home, era: str
) -> None:
    async with connected(daemon, era, desk(daemon)) as client:
        with pytest.raises(MCPError) as failure:
            await client.call_tool("session_spawn", {"task": "x"})
        assert failure.value.error.code == -32602
        assert 'did you mean "sessions_spawn"' in failure.value.error.message
        wrong = await client.call_tool("sessions_spawn", {"task": "x", "agentID": "quick"})
        assert wrong.is_error
        assert wrong.structured_content is not None
        assert wrong.structured_content["code"] == "invalid"
        assert "agentId" in text_of(wrong)
        for unknown in ("nonsense", "-1", "٥", "9" * 5_000):
            with pytest.raises(MCPError, match="unknown cursor") as failure:
                await client.list_tools(cursor=unknown)
            assert failure.value.error.code == -32602
        assert (await client.list_tools(cursor="50")).tools == []


@pytest.mark.requirement("mcp:progress")
@each_era
def test_a_long_wait_shows_progress_to_who_asked_for_it(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_tool, "TELL_S", 0.02)
    told: list[tuple[float, str | None]] = []
    is_told = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        if len(told) == 2:
            is_told.set()

    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            await client.call_tool("sessions_spawn", {"task": "x", "agentId": "hang", "label": "w"})
            wait = asyncio.create_task(
                client.call_tool("sessions_wait", {}, progress_callback=note)
            )
            await is_told.wait()
            await client.call_tool("subagents", {"action": "kill", "target": "w"})
            answer = await wait
            assert answer.structured_content is not None
            assert len(answer.structured_content["completed"]) == 1

    play(tmp_path, scenario)
    assert len(told) >= 2
    assert [number for number, _ in told] == sorted({number for number, _ in told})
    assert "waiting for w (" in str(told[0][1])


@pytest.mark.requirement("mcp:our-mistake")
@pytest.mark.parametrize("era", ERAS)
def test_a_mistake_of_ours_is_told_without_its_insides(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_name: str, _call: Call) -> Answer:
        raise TypeError("our insides")

    monkeypatch.setattr("subagents.extensions.mcp.mcp_calls.call_tool", broken)

    async def scenario(home: Home) -> None:
        async with connected(home, era, desk(home)) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("agents_list", {})
        assert "its log says why" in str(caught.value)
        assert "insides" not in f"{caught.value.error.data} {caught.value}"

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:stopping")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_wait_ends_at_once_when_the_daemon_stops_and_says_that_it_may_be_repeated(
    daemon: Home, version: str
) -> None:
    wire = Wire(daemon, tasks=False)
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
    mailbox = daemon.services.engine.mailbox
    await until(lambda: DESK in mailbox._wakeups)
    daemon.services.stopping.set()
    async with asyncio.timeout(DEADLINE_S):
        _, message = await calling
    assert message["error"]["data"]["code"] == "unavailable"
    assert message["error"]["data"]["retryable"]
    assert run_id


@pytest.mark.requirement("tools:spawn:wake")
async def test_a_receipt_says_how_its_session_hears_of_the_end(daemon: Home) -> None:
    spawn = {"name": "sessions_spawn", "arguments": {"task": "x", "agentId": "quick"}}
    plain = Wire(daemon, tasks=False)
    assert (await plain.ok("tools/call", **spawn))["structuredContent"]["wake"] == NOT_WOKEN
    hooked = Wire(daemon, tasks=False, headers={"X-Subagents-Wake": "hook"})
    assert "hook" in (await hooked.ok("tools/call", **spawn))["structuredContent"]["wake"]


@pytest.mark.requirement("tools:request:pending")
@pytest.mark.parametrize("is_heard", [False, True])
def test_a_call_waits_longer_for_an_answer_where_its_client_hears_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_heard: bool
) -> None:
    assert worker_tools.HEARD_WAIT_S < 300  # what a model has read is forgotten then
    monkeypatch.setattr(worker_tools, "ANSWER_WAIT_S", 0.0)
    monkeypatch.setattr(worker_tools, "TELL_S", 0.05)

    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        wire = Wire(home, tasks=False, headers=home.worker(run_id))
        meta = {"progressToken": 1} if is_heard else {}
        asking = asyncio.create_task(
            wire.ok(
                "tools/call",
                name="request_orchestrator",
                arguments={"question": "which?"},
                _meta=meta,
            )
        )
        published = home.services.engine.ledger.published
        await until(lambda: bool(published[run_id].pending_requests))
        if not is_heard:
            assert (await asking)["structuredContent"]["status"] == "pending"
            return
        await home.ok("POST", f"/v1/requests/{run_id}:q1/respond", {"response": "this one"})
        assert (await asking)["structuredContent"]["answer"] == "this one"

    play(tmp_path, scenario)
