"""What an answer hands over is consumed once it has left, and free again when it did not."""

import asyncio
import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Home, UnixConnection, until
from tests.api.tools import tool_callers
from tests.api.tools.tool_callers import ToolCaller
from tests.extensions.mcp.mcp_clients import (
    DESK,
    Wire,
    connected,
    desk,
    each_era,
    is_consumed,
    play,
    text_of,
    until_consumed,
)

from subagents.api.tools.tool import Call
from subagents.api.tools.tool_registry import call_tool
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.extensions.mcp.mcp_exchange import Exchange


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
async def test_a_result_is_consumed_when_its_answer_has_left(daemon: Home, era: str) -> None:
    run_id = await ended_run(daemon)
    assert not await is_consumed(daemon, run_id)
    async with connected(daemon, era, desk(daemon)) as client:
        first = await client.call_tool("sessions_wait", {})
        await until_consumed(daemon, run_id)
        again = await client.call_tool("sessions_wait", {})
    assert run_id in text_of(first)
    assert first.meta is None or "subagents/offered" not in first.meta
    assert run_id not in text_of(again)


@pytest.mark.requirement("mcp:consumed-once")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_client_that_leaves_while_it_waits_takes_nothing_with_it(
    daemon: Home, version: str
) -> None:
    wire = Wire(daemon, tasks=False)
    spawned = await wire.call("sessions_spawn", task="x", agentId="hang")
    run_id = str(spawned["structuredContent"]["runId"])
    mailbox = daemon.services.engine.mailbox
    params = {"name": "sessions_wait", "arguments": {"runIds": [run_id]}}
    connection = await asyncio.to_thread(
        wire.open, "tools/call", params, {"MCP-Protocol-Version": version}
    )
    await until(lambda: run_id in mailbox._wakeups)
    connection.close()
    # Whoever waits for nobody is woken up and goes.
    await until(lambda: run_id not in mailbox._wakeups)
    await daemon.services.engine.control.cancel(RunId(run_id), by="test")
    found = await wire.call("sessions_wait", runIds=[run_id])
    assert found["structuredContent"]["completed"][0]["runId"] == run_id


@pytest.mark.requirement("mcp:consumed-once")
async def test_what_a_client_reads_of_a_call_that_it_took_back_comes_again(daemon: Home) -> None:
    wire = Wire(daemon, tasks=False)
    spawned = await wire.call("sessions_spawn", task="x", agentId="hang")
    run_id = str(spawned["structuredContent"]["runId"])
    older = {"MCP-Protocol-Version": "2025-11-25"}
    params = {"name": "sessions_wait", "arguments": {}}

    def took_back() -> int:
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        with closing(UnixConnection(daemon.services.paths.socket)) as telling:
            headers = {**wire._headers("", {}), **older}
            telling.request("POST", "/mcp", json.dumps(note).encode(), headers)
            return telling.getresponse().status

    connection = await asyncio.to_thread(wire.open, "tools/call", params, older)
    await until(lambda: SessionKey(DESK) in daemon.services.engine.mailbox._wakeups)
    assert await asyncio.to_thread(took_back) == 202
    await daemon.services.engine.control.cancel(RunId(run_id), by="test")
    await asyncio.to_thread(lambda: connection.getresponse().read())
    again = await wire.call("sessions_wait", timeoutSeconds=15)
    connection.close()

    assert [each["runId"] for each in again["structuredContent"]["completed"]] == [run_id]


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
async def test_what_the_client_acknowledges_before_it_leaves_is_consumed(daemon: Home) -> None:
    run_id = await ended_run(daemon)
    reader = {"X-Subagents-Reader": "r1"}
    wire = Wire(daemon, tasks=False)
    params: dict[str, Any] = {"name": "sessions_wait", "arguments": {}}
    headers = {"X-Subagents-Ack": "explicit", **reader}
    connection = await asyncio.to_thread(wire.open, "tools/call", params, headers)
    await asyncio.to_thread(connection.getresponse)
    acknowledged = await daemon.ok(
        "POST",
        "/v1/inbox/ack",
        {"messageIds": [f"{run_id}:announce"]},
        {**desk(daemon), "X-Subagents-Caller": "agent", **reader},
    )
    connection.close()
    assert acknowledged == {"consumed": 1}
    assert await is_consumed(daemon, run_id)
    found = await wire.call("sessions_wait", timeoutSeconds=0)
    assert found["structuredContent"]["completed"] == []


@pytest.mark.requirement("mcp:consumed-once")
async def test_two_calls_of_one_session_at_once_are_not_told_of_the_same_result(
    daemon: Home,
) -> None:
    wire = Wire(daemon, tasks=False)
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
        if each["structuredContent"].get("completed") or each["structuredContent"].get("messages")
    ]
    assert len(complete) == 1


ROUNDS = 200


MEASURED = 5


async def took_s(desk: ToolCaller) -> float:
    """How long a call takes here and now that finds something at once; the best of a few."""
    loop = asyncio.get_running_loop()
    took = []
    for number in range(MEASURED):
        caller = replace(desk.caller, reader=f"measuring{number}")
        exchange = Exchange(services=desk.home.services, caller=caller)
        began_s = loop.time()
        await answered(exchange, ToolCaller(desk.home, caller).make(None, {}))
        took.append(loop.time() - began_s)
        exchange.is_over = True
        exchange.release()
    return min(took)


async def answered(exchange: Exchange, call: Call) -> None:
    """One ``tools/call``, as the MCP endpoint serves it."""
    answer = await call_tool("sessions_wait", call)
    exchange.hand_over(answer.offered)


@pytest.mark.requirement("delivery:given-back", "mcp:bridge:acknowledges")
def test_whenever_a_call_is_cancelled_again_and_again_what_it_was_offered_is_free_afterwards(
    tmp_path: Path,
) -> None:
    rng = random.Random(5)  # noqa: S311 - instants, no secrets

    async def scenario(desk: ToolCaller) -> None:
        run_id = await desk.spawn("quick")
        await desk.until_phase(run_id, "completed")
        engine = desk.home.services.engine
        message = announcement_id(RunId(run_id))
        longest_s = 2 * await took_s(desk)
        in_time = 0
        for number in range(ROUNDS):
            dying = replace(desk.caller, reader=f"dying{number}")
            exchange = Exchange(services=desk.home.services, caller=dying)
            call = ToolCaller(desk.home, dying).make(None, {})

            calling = asyncio.create_task(answered(exchange, call))
            await asyncio.sleep(rng.uniform(0, longest_s))
            # As task groups do: cancelled anew at every await until it is over.
            while not calling.done():
                calling.cancel()
                await asyncio.sleep(0)
            in_time += not calling.cancelled()
            exchange.is_over = True
            exchange.release()
            for _ in range(100):
                rows = await engine.mailbox.offer_inbox(desk.caller.session, reader="alive")
                if rows:
                    break
            offered = [row.message.id for row in rows]
            engine.mailbox.release(offered, reader="alive")
            assert offered == [message], f"round {number}: {dying.reader} still holds it"
        # Some were cancelled before the answer and some after: both were tried.
        assert 0 < in_time < ROUNDS

    tool_callers.play(tmp_path, scenario)
