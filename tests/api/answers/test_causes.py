"""``why`` of a run with a very long history: cheap, and in the memory of a short one."""

import asyncio
import tracemalloc
from pathlib import Path

import pytest
from tests.api.home_daemon import Home, serving
from tests.call_counts import counting_calls

from subagents.api.answers import causes
from subagents.api.answers.causes import JOURNAL_PAGE, STEPS_MAX
from subagents.domain.run.events import Paused, SignalReceived
from subagents.domain.run.signals import ToolSeen
from subagents.domain.run.values import RunId

EVENTS = 10_000
CALLS_PER_EVENT_MAX = 50
"""Functions of Python for each event told."""
MEMORY_BYTES = 3 * 1024 * 1024
"""The whole journal of this run takes 11 MB as values, one page of it less than one."""


async def with_events(home: Home, count: int) -> RunId:
    run_id = RunId((await home.spawn("hang"))["runId"])
    await home.until_phase(run_id, "running")
    ledger = home.services.engine.ledger
    for number in range(count):
        seen = ToolSeen(key=f"t{number}", name=f"Bash {number} {'x' * 200}")
        ledger.apply_now(run_id, SignalReceived(at_ms=number, attempt=1, signal=seen))
        if number % 1000 == 0:
            await ledger.committed()
    await ledger.committed()
    return run_id


@pytest.mark.requirement("why:long-history", "field:temporalio-sdk-python-1890")
async def test_why_of_ten_thousand_events_costs_so_much_for_each_and_constant_memory(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        run_id = await with_events(home, EVENTS)
        found = await home.ok("GET", f"/v1/runs/{run_id}/why")
        assert len(found["steps"]) == STEPS_MAX
        assert f"Bash {EVENTS - 1}" in found["steps"][-1]["text"]

        run = await home.services.engine.queries.run(run_id)
        with counting_calls() as counted:
            await causes.why(home.services, run)
        assert counted.calls < EVENTS * CALLS_PER_EVENT_MAX

        tracemalloc.start()
        await causes.why(home.services, run)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MEMORY_BYTES


@pytest.mark.requirement("why:now:paused-by")
async def test_a_pause_names_who_asked_for_it_last(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        first = await home.spawn("hang")
        waits = await home.spawn("hang", dependsOn=[first["runId"]])
        run_id = RunId(waits["runId"])
        ledger = home.services.engine.ledger
        for at_ms, by in enumerate(("agent:main:me", "agent:main:you")):
            ledger.apply_now(run_id, Paused(at_ms=at_ms, by=by))
        await ledger.committed()
        found = await home.ok("GET", f"/v1/runs/{run_id}/why")
        assert found["why"].startswith("paused by you; ")


@pytest.mark.requirement("why:long-history")
async def test_other_calls_get_their_turn_after_each_page_while_a_long_history_is_told(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        run_id = await with_events(home, 3_000)
        run = await home.services.engine.queries.run(run_id)
        telling = asyncio.create_task(causes.why(home.services, run))
        longest, before = 0, 0
        with counting_calls() as counted:
            while not telling.done():
                await asyncio.sleep(0)
                longest, before = max(longest, counted.calls - before), counted.calls
        assert 0 < longest < JOURNAL_PAGE * CALLS_PER_EVENT_MAX < counted.calls
