"""Workers that ask before each request, on a real engine: races, crashes, ends."""

import asyncio
import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.engine.runs.test_budget_trees import running, use
from tests.engine.world import World, in_world

from subagents.domain.rules.budgets.request_holds import Counted, Need
from subagents.domain.run import spending
from subagents.domain.run.events import RequestHeld
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Budget
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RunId
from subagents.engine.attempts.request_desk import HoldAnswer
from subagents.errors import Conflict, NotFound

DEPTH: Final = {"max_spawn_depth": 2, "max_children_per_agent": 100, "max_concurrent": 100}


async def ask(
    world: World, run_id: RunId, tokens: int, *, used: int = 0, lost: int = 0
) -> HoldAnswer:
    """A worker asks for a request that wants half of ``tokens`` as its answer."""
    need = Need(input_tokens=tokens - tokens // 2, output_tokens=tokens // 2)
    usage = Usage(tokens_in=used) if used else Usage()
    counted = Counted(usage=usage, lost_tokens=lost)
    number = len(world.engine.ledger.live[run_id].attempts)
    asking = world.engine.request_desk.hold(run_id, number, need, counted, line_s=0)
    return await world.clock.result(asking)


@pytest.mark.requirement("budget:hold")
async def test_without_a_cap_nothing_is_kept_free_and_nothing_written(world: World) -> None:
    run_id = await running(world)
    before = world.store.commits
    assert await ask(world, run_id, 10**9) == HoldAnswer(granted=True)
    assert world.store.commits == before


@pytest.mark.requirement("budget:hold")
@pytest.mark.world(**DEPTH)
async def test_of_many_that_ask_at_once_only_those_are_granted_for_whom_there_is_room(
    world: World,
) -> None:
    lead = await running(world, budget=Budget(max_tokens=100_000))
    workers = [await running(world, lead) for _ in range(20)]
    need = Need(input_tokens=8_000, output_tokens=2_000, least_output_tokens=2_000)
    asking = [
        world.engine.request_desk.hold(each, 1, need, Counted(), line_s=0, is_firm=True)
        for each in workers
    ]
    found = await world.clock.result(asyncio.gather(*asking))
    # A tenth is the lead's own.
    assert [each.granted for each in found].count(True) == 9
    assert all(each.again for each in found if not each.granted)
    assert spending.promised(await world.run(lead)).tokens == 90_000


@pytest.mark.requirement("budget:hold")
@pytest.mark.world(**DEPTH)
async def test_who_is_short_waits_for_the_answers_of_others(world: World) -> None:
    lead = await running(world, budget=Budget(max_tokens=1_000))
    first, second = [await running(world, lead) for _ in range(2)]
    assert (await ask(world, first, 800)).granted
    need = Need(input_tokens=250, output_tokens=250, least_output_tokens=250)
    waiting = asyncio.ensure_future(world.engine.request_desk.hold(second, 1, need, Counted()))
    await world.clock.idle()
    assert not waiting.done()
    await use(world, first, 300)
    assert (await world.clock.result(waiting)).granted
    assert spending.promised(await world.run(lead)).tokens == 800


@pytest.mark.requirement("budget:hold")
async def test_a_request_whose_input_alone_is_too_much_ends_the_run_with_what_it_has(
    world: World,
) -> None:
    run_id = await running(world, budget=Budget(max_tokens=10_000))
    assert (await ask(world, run_id, 9_000)).granted
    found = await ask(world, run_id, 4_000, used=8_100)
    assert not found.granted
    assert not found.again
    run = await world.until(run_id)
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.PARTIAL, Reason.BUDGET)
    assert "8.1k of 10k tokens, and the next request may need 2k" in (run.outcome.error or "")
    assert await world.folded(run_id) == run
    need = Need(input_tokens=1, output_tokens=1)
    with pytest.raises(NotFound):
        await world.engine.request_desk.hold(run_id, 1, need, Counted())


@pytest.mark.requirement("budget:hold:kill")
@pytest.mark.world(**DEPTH)
async def test_what_is_held_is_still_held_after_kill_9_and_over_with_the_attempt(
    world: World,
) -> None:
    lead = await running(world, budget=Budget(max_tokens=1_000))
    first, second = [await running(world, lead) for _ in range(2)]
    assert (await ask(world, first, 800)).granted
    await world.restart()
    assert spending.promised(await world.run(lead)).tokens == 800
    assert (await ask(world, second, 500)).again
    await world.clock.result(world.engine.control.cancel(first, by="me"))
    await world.until(first)
    assert spending.promised(await world.run(lead)).tokens == 0
    assert (await ask(world, second, 500)).granted


@pytest.mark.requirement("budget:hold")
async def test_the_worker_of_an_attempt_before_gets_nothing(world: World) -> None:
    run_id = await running(world, budget=Budget(max_tokens=1_000))
    with pytest.raises(Conflict, match="attempt 0"):
        await world.engine.request_desk.hold(
            run_id, 0, Need(input_tokens=1, output_tokens=1), Counted()
        )


@pytest.mark.requirement("budget:hold:kill")
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_whatever_happens_spent_and_held_together_never_exceed_the_cap(  # noqa: C901  one branch for each thing that can happen
    data: DataObject,
) -> None:
    limit = data.draw(st.integers(1_000, 20_000), label="cap")

    async def scenario(world: World) -> None:
        lead = await running(world, budget=Budget(max_tokens=limit))
        workers = [lead, *[await running(world, lead) for _ in range(3)]]
        used = dict.fromkeys(workers, 0)
        lost = dict.fromkeys(workers, 0)
        holding: dict[RunId, int] = {}
        numbers = itertools.count()
        for _ in range(data.draw(st.integers(1, 25), label="steps")):
            run_id = data.draw(st.sampled_from(workers))
            live = world.engine.ledger.live.get(run_id)
            if live is None or live.phase is not Phase.RUNNING or live.attempt.evidence.stop:
                continue
            act = data.draw(st.sampled_from(("ask", "ask", "answer", "lose", "kill -9", "cancel")))
            if act == "ask":
                if run_id in holding:
                    continue
                tokens = data.draw(st.integers(2, limit))
                found = await ask(world, run_id, tokens, used=used[run_id], lost=lost[run_id])
                if found.granted:
                    least = tokens - tokens // 2
                    answer = tokens // 2 if found.output_tokens is None else found.output_tokens
                    holding[run_id] = least + answer
            elif act == "answer" and run_id in holding:
                used[run_id] += data.draw(st.integers(1, holding.pop(run_id)))
                if data.draw(st.booleans(), label="its stream is read now"):
                    await use(world, run_id, used[run_id])
            elif act == "lose" and run_id in holding:
                lost[run_id] += holding.pop(run_id)
            elif act == "kill -9":
                await world.restart()
            elif act == "cancel" and run_id != lead and next(numbers) % 4 == 0:
                await world.clock.result(world.engine.control.cancel(run_id, by="me"))
                await world.until(run_id)
                # What its stream did not say before it was killed nobody will ever know.
                run = await world.run(run_id)
                used[run_id] = spending.total_usage(run).tokens or 0
                lost[run_id] = 0
                holding.pop(run_id, None)
            assert sum(used.values()) + sum(lost.values()) + sum(holding.values()) <= limit
            assert spending.promised(await world.run(lead)).tokens <= limit
        for each in workers:
            assert await world.folded(each) == await world.run(each)

    with TemporaryDirectory() as directory:
        in_world(Path(directory), scenario, **DEPTH)


@pytest.mark.requirement("budget:hold:cost")
@pytest.mark.world(**DEPTH)
async def test_asking_costs_one_event_for_each_level_and_no_look_at_any_other_run(
    world: World,
) -> None:
    lead = await running(world, budget=Budget(max_tokens=10**6))
    workers = [await running(world, lead) for _ in range(10)]
    before = {each: (await world.run(each)).seq for each in (lead, *workers)}
    assert (await ask(world, workers[0], 1_000)).granted
    after: dict[RunId, Run] = {each: await world.run(each) for each in before}
    changed = {each: after[each].seq - seq for each, seq in before.items()}
    assert changed == {**dict.fromkeys(workers, 0), workers[0]: 1, lead: 1}
    events = [e.event for e in world.store.journal(workers[0], limit=100)]
    assert sum(isinstance(each, RequestHeld) for each in events) == 1
