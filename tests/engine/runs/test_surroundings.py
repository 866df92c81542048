"""What rows know besides their runs, found out from memory."""

import re
from typing import Any

import pytest
from tests.builders import NOW_MS, Life
from tests.engine.world import World, settings_of

from subagents.config.settings import Settings
from subagents.domain.rules.provider_limits import PROBE_MS, Gate
from subagents.domain.rules.wait_causes import WaitKind
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.surroundings import DAY_MS, Surroundings

RUN = Life.begin().run


class Busy:
    """A kernel whose lanes are all half full, and gates of which one is closed, or none."""

    def __init__(self, gate: Gate | None, now_ms: int) -> None:
        self.gate, self.at_ms = gate, now_ms
        self.ledger = self.lanes = self.clock = self
        self.permits = None

    def gate_of(self, _run: object) -> Gate | None:
        return self.gate

    def held(self, _lane: object) -> int:
        return 3

    def now_ms(self) -> int:
        return self.at_ms


def around(gate: Gate | None, *, now_ms: int = NOW_MS) -> Surroundings:
    busy: Any = Busy(gate, now_ms)
    return Surroundings(busy, busy, busy)


@pytest.mark.requirement("limits:shown")
def test_a_lane_is_as_full_as_its_slots_and_limited_by_nothing_else() -> None:
    assert around(None).lane(RUN) == (3, RUN.resolved.lane_slots, None, None)


@pytest.mark.requirement("limits:shown")
def test_a_closed_gate_names_its_provider_and_the_time_of_day() -> None:
    soon = Gate(provider="anthropic", until_ms=NOW_MS + 60_000, status=429)
    late = Gate(provider="x", until_ms=NOW_MS + DAY_MS)

    told = around(soon).lane(RUN).limit or ""
    assert re.fullmatch(r"waiting for anthropic: 429, until \d\d:\d\d:\d\d", told)
    told = around(late).lane(RUN).limit or ""
    assert re.fullmatch(r"waiting for x: refused, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", told)


@pytest.mark.requirement("limits:shown")
def test_a_gate_that_opens_says_which_run_goes_first() -> None:
    gate = Gate(provider="anthropic", until_ms=NOW_MS, probe=RunId("r-9"), probe_at_ms=NOW_MS)

    told = around(gate, now_ms=NOW_MS + PROBE_MS - 1).lane(RUN).limit

    assert told == "waiting for anthropic: refused; one run goes first (r-9)"


def narrow() -> Settings:
    return settings_of(max_concurrent=1)


@pytest.mark.requirement("wire:wait")
async def test_runs_that_wait_for_a_slot_know_their_place_in_the_line(world: World) -> None:
    at_work = await world.spawn("hang", settings=narrow())
    await world.until(at_work, Phase.RUNNING)
    lines = [await world.spawn("quick", settings=narrow()) for _ in range(3)]
    now = world.engine.surroundings()

    runs = [await world.run(each) for each in (at_work, *lines)]
    assert [now.place(run) for run in runs] == [None, 1, 2, 3]
    causes = [now.cause(run) for run in runs]
    assert [None if each is None else each.kind for each in causes] == [
        *(None, WaitKind.LANE, WaitKind.LANE, WaitKind.LANE)
    ]


@pytest.mark.requirement("wire:wait")
async def test_a_chain_of_runs_that_wait_leads_to_the_one_at_its_end(world: World) -> None:
    first = await world.spawn("hang")
    second = await world.spawn("quick", chain_after=first)
    third = await world.spawn("quick", chain_after=second)
    await world.until(first, Phase.RUNNING)
    now = world.engine.surroundings()
    cause = now.cause(await world.run(third))

    assert cause is not None
    assert (cause.kind, [each.run_id for each in cause.runs]) == (WaitKind.RUNS, [second])
    root = now.root(cause)
    assert root is not None
    assert (root.run, root.cause) == (await world.run(first), None)
    waiting, number = now.waiting_for(await world.run(second))
    assert ([run.id for run in waiting], number) == ([third], 1)


@pytest.mark.requirement("wire:last-sign")
async def test_the_last_sign_of_life_is_what_its_worker_said_last(world: World) -> None:
    run_id = await world.spawn("tells")
    await world.until(run_id, Phase.RUNNING)
    begun = world.engine.surroundings().last_sign_ms(await world.run(run_id))
    await world.clock.advance(35)
    later = world.engine.surroundings().last_sign_ms(await world.run(run_id))
    assert begun is not None
    assert later is not None
    assert begun < later <= world.clock.now_ms()
    # As after a restart, until its output was read again.
    world.engine.recorder._open.clear()
    run = await world.run(run_id)
    assert run.progress.latest is not None
    assert world.engine.surroundings().last_sign_ms(run) == run.progress.latest.updated_at_ms
    assert world.engine.surroundings().failed_call(run) is None
    await world.engine.control.cancel(run_id, by="me")
    ended = await world.until(run_id)
    assert world.engine.surroundings().last_sign_ms(ended) is None


@pytest.mark.requirement("wire:last-sign")
async def test_a_worker_that_tells_of_no_progress_gives_a_sign_of_life_with_each_line(
    world: World,
) -> None:
    script = ({"sleep_ms": 10_000}, {"tool": "Bash"}, {"hang": True})
    world.settings.agents["hang"] = replace(world.settings.agents["hang"], script=script)
    run_id = await world.spawn("hang")
    begun = await world.until(run_id, Phase.RUNNING)
    await world.clock.advance(35)

    last = world.engine.surroundings().last_sign_ms(await world.run(run_id))

    assert begun.attempt.times.started_at_ms is not None
    assert last == begun.attempt.times.started_at_ms + 10_000
