"""Caps over several runs, on a real engine: days, tags, agents, plans, restarts."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.engine.attempts.test_request_desk import ask
from tests.engine.runs.test_budget_trees import running, use
from tests.engine.world import ME, OTHER, World, settings_of

from subagents.config.settings import Budgets, DailyBudget, SpendingCap
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.values import RunId, replace
from subagents.engine.attempts.shared_spending import local_day
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, SpawnContext
from subagents.errors import Forbidden
from subagents.ports import RunFilter

LIMITS: Final = {"max_spawn_depth": 2, "max_children_per_agent": 100}


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def play(
    directory: Path,
    budgets: Budgets,
    scenario: Callable[[World], Awaitable[None]],
    **limits: int,
) -> None:
    """Play a scenario under these caps."""

    async def played() -> None:
        world = World(directory)
        world.settings = replace(settings_of(**{**LIMITS, **limits}), budgets=budgets)
        await world.boot()
        try:
            await scenario(world)
        finally:
            await world.crash()

    asyncio.run(played())


def daily(limit: int) -> Budgets:
    return Budgets(daily=DailyBudget(max_tokens=limit))


def sums(world: World) -> dict[str, int]:
    shared = world.engine.shared_spending
    return {cap.key: shared.used(cap).tokens for cap in shared.caps_in_use}


@pytest.mark.requirement("budget:day")
def test_a_day_begins_at_midnight_where_the_daemon_is(berlin: None) -> None:
    # 2026-10-25 has 25 hours there, and begins at 22:00 UTC of the day before.
    day = local_day(1_792_886_400_000 + 12 * 3_600_000)

    assert (day.end_ms - day.begin_ms) / 3_600_000 == 25
    assert day.end_text == "2026-10-26 00:00 CET"


@pytest.mark.requirement("budget:day")
def test_when_the_day_is_used_up_runs_stop_queued_ones_wait_and_new_ones_are_refused(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        first, second = [await running(world) for _ in range(2)]
        queued = await world.spawn("quick")
        await use(world, first, 400)
        assert (await world.run(second)).phase is Phase.RUNNING
        await use(world, second, 650)

        for each in (first, second):
            run = await world.until(each, within_s=10)
            assert run.outcome is not None
            assert (run.outcome.status, run.outcome.reason) == (Status.PARTIAL, Reason.BUDGET)
            text = "the budget of today ([budgets.daily]) is used up: 1.1k of 1k tokens"
            assert text in (run.outcome.error or "")
            assert await world.folded(each) == run
        assert (await world.run(queued)).phase is Phase.QUEUED
        with pytest.raises(Forbidden, match=r"of today \(\[budgets.daily\]\) is used up") as found:
            await world.spawn("quick")
        assert found.value.guardrail == "budget"
        end = local_day(world.clock.now_ms()).end_text
        assert f"spawn it again after {end}" in (found.value.hint or "")
        assert found.value.details["key"] == "budgets.daily"
        await world.restart()
        await world.clock.advance(60)
        assert (await world.run(queued)).phase is Phase.QUEUED

        left_s = (local_day(world.clock.now_ms()).end_ms - world.clock.now_ms()) / 1000
        await world.clock.advance(left_s + 61)
        run = await world.until(queued, within_s=60)
        assert run.outcome is not None
        assert run.outcome.is_ok
        assert sums(world) == {"budgets.daily": 0}
        await world.until(await world.spawn("quick"))

    play(tmp_path, daily(1_000), scenario, max_concurrent=2)


@pytest.mark.requirement("budget:day")
def test_a_day_that_was_used_up_while_the_clock_was_a_month_ahead_ends_at_midnight(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id, ahead_s = await running(world), 30 * 86_400
        world.clock.set_wall(by_s=ahead_s)
        await use(world, run_id, 1_050)
        await world.until(run_id, within_s=10)
        world.clock.set_wall(by_s=-ahead_s)
        await world.clock.advance(61)
        day = local_day(world.clock.now_ms())
        with pytest.raises(Forbidden, match="is used up") as found:
            await world.spawn("quick")
        assert found.value.details["until"] == day.end_text

        await world.clock.advance((day.end_ms - world.clock.now_ms()) / 1000 + 61)
        await world.until(await world.spawn("quick"))

    play(tmp_path, daily(1_000), scenario)


@pytest.mark.requirement("budget:day:kill")
def test_what_a_run_used_before_midnight_is_of_the_day_before_also_after_kill_9(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id = await running(world)
        await use(world, run_id, 4_000)
        left_s = (local_day(world.clock.now_ms()).end_ms - world.clock.now_ms()) / 1000
        await world.clock.advance(left_s + 1)
        assert sums(world) == {"budgets.daily": 0}
        await use(world, run_id, 4_700)
        ended = await running(world)
        await use(world, ended, 50)
        await world.clock.result(world.engine.control.cancel(ended, by="me"))
        await world.until(ended)
        assert sums(world) == {"budgets.daily": 750}
        await world.restart()
        assert sums(world) == {"budgets.daily": 750}

    play(tmp_path, daily(10_000), scenario)


@pytest.mark.requirement("budget:tag")
def test_a_tag_and_an_agent_have_caps_of_their_own_and_a_tag_holds_for_what_is_below(
    tmp_path: Path,
) -> None:
    budgets = Budgets(
        daily=DailyBudget(agents={"hang": SpendingCap(max_tokens=5_000)}),
        tags={"nightly": SpendingCap(max_tokens=1_000)},
    )

    async def scenario(world: World) -> None:
        lead = await running(world, tags=("nightly",))
        child = await running(world, lead)
        other = await running(world)
        waiting = await world.spawn("quick", tags=("nightly",), depends_on=(lead,))
        await use(world, other, 2_000)
        await use(world, child, 1_000)

        for each in (lead, child):
            run = await world.until(each, within_s=10)
            assert run.outcome is not None
            assert run.outcome.reason is Reason.BUDGET
        gone = await world.until(waiting, within_s=10)
        assert gone.outcome is not None
        assert not gone.attempts
        assert (await world.run(other)).phase is Phase.RUNNING
        with pytest.raises(Forbidden, match=r'tag "nightly" \(\[budgets.tags.nightly\]\)'):
            await world.spawn("quick", tags=("nightly",))
        await world.until(await world.spawn("quick"))
        expected = {"budgets.tags.nightly": 1_000, "budgets.daily.agents.hang": 3_000}
        assert sums(world) == expected
        await world.restart()
        assert sums(world) == expected

    play(tmp_path, budgets, scenario)


@pytest.mark.requirement("budget:plan")
def test_the_runs_of_a_plan_share_its_budget_with_what_they_spawn(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        specs = [RunSpec(task="x", agent_id="hang", label=f"p{n}") for n in range(3)]
        receipts = await world.clock.result(
            world.engine.spawner.spawn_batch(
                [RunAsked(spec=each) for each in specs],
                SpawnContext(session=ME, settings=world.settings, cwd=str(tmp_path)),
                plan=PlanAsked(budget=Budget(max_tokens=1_000)),
            )
        )
        first, second, third = [each.run.id for each in receipts]
        for each in (first, second, third):
            await world.until(each, Phase.RUNNING)
        child = await running(world, first)
        await use(world, child, 500)
        await world.clock.result(world.engine.control.cancel(third, by="me"))
        await world.until(third)
        await world.restart()
        assert sums(world) == {f"plan:{first}": 500}
        await use(world, second, 499)
        assert (await world.run(first)).phase is Phase.RUNNING
        await use(world, second, 500)
        for each in (first, second, child):
            run = await world.until(each, within_s=10)
            assert run.outcome is not None
            assert "the budget of the plan" in (run.outcome.error or "")
        await world.until(await world.spawn("quick"))

    play(tmp_path, Budgets(), scenario)


@pytest.mark.requirement("budget:plan")
def test_what_a_plan_used_counts_for_its_retries_also_after_a_restart(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        mine, hers = (
            SpawnContext(session=each, settings=world.settings, cwd=str(tmp_path))
            for each in (ME, OTHER)
        )
        (receipt,) = await world.clock.result(
            world.engine.spawner.spawn_batch(
                [RunAsked(spec=RunSpec(task="x", agent_id="hang"))],
                mine,
                plan=PlanAsked(budget=Budget(max_tokens=1_000)),
            )
        )
        await world.until(receipt.run.id, Phase.RUNNING)
        await use(world, receipt.run.id, 1_000)
        await world.until(receipt.run.id, Phase.COMPLETED)
        await world.restart()
        for context in (hers, mine):
            with pytest.raises(Forbidden, match="the budget of the plan") as refused:
                await world.clock.result(world.engine.spawner.retry(receipt.run.id, context))
            assert "as a plan of its own" in (refused.value.hint or "")
            await world.restart()

    play(tmp_path, Budgets(), scenario)


@pytest.mark.requirement("budget:hold", "budget:day")
def test_requests_under_a_daily_cap_are_held_like_those_under_a_budget(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        first, second = [await running(world) for _ in range(2)]
        assert (await ask(world, first, 800)).granted
        assert (await ask(world, second, 500)).again
        await use(world, first, 300)
        assert (await ask(world, second, 700)).granted
        found = await ask(world, first, 600, used=300)
        assert found.again
        await use(world, second, 650)
        found = await ask(world, first, 600, used=300)
        assert (found.granted, found.again) == (False, False)
        assert "of today" in (found.reason or "")

    play(tmp_path, daily(1_000), scenario)


@pytest.mark.requirement("budget:day:cost")
def test_a_spawn_reads_no_run_for_a_cap_and_without_caps_nothing_is_summed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        asked: list[RunFilter] = []
        runs = world.store.runs

        def counted(where: RunFilter) -> Sequence[Run]:
            asked.append(where)
            return runs(where)

        monkeypatch.setattr(world.store, "runs", counted)
        for _ in range(10):
            await use(world, await running(world), 10)
        # One is of the track records, which read what they have once.
        assert len(asked) <= 1
        assert sums(world) == {"budgets.daily": 100}
        await world.crash()
        world.settings = replace(world.settings, budgets=Budgets())
        await world.boot()
        await use(world, await running(world), 10)
        assert world.engine.shared_spending._used == {}

    play(tmp_path, daily(10**6), scenario)


@pytest.mark.requirement("budget:day:kill")
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_whatever_happens_the_sums_are_the_same_after_a_restart(data: DataObject) -> None:
    budgets = Budgets(
        daily=DailyBudget(
            max_tokens=10**9,
            agents={"hang": SpendingCap(max_tokens=10**9)},
            tags={"a": SpendingCap(max_tokens=10**9)},
        ),
        tags={"a": SpendingCap(max_tokens=10**9)},
    )

    async def scenario(world: World) -> None:
        live: list[RunId] = []
        totals = itertools.count(100, 100)
        for _ in range(data.draw(st.integers(1, 12), label="steps")):
            act = data.draw(st.sampled_from(("spawn", "use", "use", "ask", "end", "sleep")))
            if act == "spawn":
                tags = data.draw(st.sampled_from(((), ("a",), ("a", "b"))))
                live.append(await running(world, tags=tags))
            elif act == "sleep":
                await world.clock.advance(data.draw(st.sampled_from((60, 40_000))))
            elif live:
                run_id = data.draw(st.sampled_from(live))
                if act == "use":
                    await use(world, run_id, next(totals))
                elif act == "ask":
                    await ask(world, run_id, 100)
                else:
                    live.remove(run_id)
                    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
                    await world.until(run_id)
        before = sums(world)
        await world.restart()
        assert sums(world) == before

    with TemporaryDirectory() as directory:
        play(Path(directory), budgets, scenario)
