"""A caller that dies in the very moment in which it is answered takes nothing with it."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.api.tools.tool_seats import Seat, play

from subagents.api.mcp.mcp_calls import _unless_stopping
from subagents.api.mcp.mcp_exchange import Exchange
from subagents.api.tools.tool import Call
from subagents.api.tools.tool_registry import call_tool
from subagents.domain.run.values import RunId, announcement_id

ROUNDS = 200
MEASURED = 5


async def took_s(desk: Seat) -> float:
    """How long a call takes here and now that finds something at once; the best of a few."""
    loop = asyncio.get_running_loop()
    took = []
    for number in range(MEASURED):
        caller = replace(desk.caller, reader=f"measuring{number}")
        exchange = Exchange(services=desk.home.services, caller=caller)
        began_s = loop.time()
        await answered(exchange, Seat(desk.home, caller).make(None, {}))
        took.append(loop.time() - began_s)
        exchange.is_over = True
        exchange.release()
    return min(took)


async def answered(exchange: Exchange, call: Call) -> None:
    """One ``tools/call``, as the MCP door serves it."""
    answer = await _unless_stopping(exchange, call_tool("sessions_wait", call))
    exchange.hand_over(answer.offered)


@pytest.mark.requirement("delivery:given-back", "mcp:bridge:acknowledges")
def test_whenever_a_call_is_cancelled_again_and_again_what_it_was_offered_is_free_afterwards(
    tmp_path: Path,
) -> None:
    rng = random.Random(5)  # noqa: S311 - instants, no secrets

    async def scenario(desk: Seat) -> None:
        run_id = await desk.spawn("quick")
        await desk.until_phase(run_id, "completed")
        engine = desk.home.services.engine
        message = announcement_id(RunId(run_id))
        longest_s = 2 * await took_s(desk)
        in_time = 0
        for number in range(ROUNDS):
            dying = replace(desk.caller, reader=f"dying{number}")
            exchange = Exchange(services=desk.home.services, caller=dying)
            call = Seat(desk.home, dying).make(None, {})

            calling = asyncio.create_task(answered(exchange, call))
            await asyncio.sleep(rng.uniform(0, longest_s))
            # As the protocol's package does: cancelled anew at every await until it is over.
            while not calling.done():
                calling.cancel()
                await asyncio.sleep(0)
            in_time += not calling.cancelled()
            exchange.is_over = True
            exchange.release()
            for _ in range(100):
                rows = await engine.offer_inbox(desk.caller.session, reader="alive")
                if rows:
                    break
            offered = [row.message.id for row in rows]
            engine.release(offered, reader="alive")
            assert offered == [message], f"round {number}: {dying.reader} still holds it"
        # Some were cancelled before the answer and some after: both were tried.
        assert 0 < in_time < ROUNDS

    play(tmp_path, scenario)
