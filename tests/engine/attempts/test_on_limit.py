"""What a run does when its provider refuses for longer: it waits as told, or another goes on."""

import re
from collections.abc import Mapping

import pytest
from tests.engine.attempts.test_provider_gate import BUSY, refused
from tests.engine.world import World

from subagents.config.settings import LaneSettings, Settings
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import replace
from subagents.errors import SubagentsError
from subagents.runtimes.scripted import ScriptedRuntime

DAY_MS = 24 * 3_600_000
CONTINUED: Mapping[str, object] = {"continued": True}
TEXT: Mapping[str, object] = {"said": {"subagents": "text", "text": "half of it is written"}}


def settings_of(
    world: World,
    *,
    lane: str | None = None,
    again: Mapping[str, object] = CONTINUED,
    **on_limit: tuple[str, ...],
) -> Settings:
    """``limited`` is refused for three days, and ``other`` does the work."""
    first = {"attempt": 1}, TEXT, {"usage": {"tokensIn": 7}}, refused(3 * DAY_MS), {"exit": 1}
    found = world.with_script("limited", *first, again, {"result": "mine"})
    other = replace(found.agents["quick"], lane=lane)
    limited = replace(found.agents["limited"], **on_limit)
    lanes = {} if lane is None else {lane: LaneSettings(slots=1)}
    agents = {**found.agents, "limited": limited, "other": other}
    return replace(found, agents=agents, lanes={**found.lanes, **lanes})


def saying(world: World, *script: Mapping[str, object]) -> Settings:
    """``limited`` does this."""
    found = settings_of(world)
    limited = replace(found.agents["limited"], script=script)
    return replace(found, agents={**found.agents, "limited": limited})


async def spawn(world: World, *steps: str, settings: Settings | None = None, **spec: object) -> Run:
    given = {"settings": settings or settings_of(world), "on_limit": steps, **spec}
    return await world.run(await world.spawn("limited", **given))


@pytest.mark.requirement("limits:next:agent", "limits:next:digest")
@pytest.mark.parametrize("lane", [None, "elsewhere"])
async def test_the_next_agent_goes_on_where_the_first_stopped_and_reads_what_was_done(
    world: World, lane: str | None
) -> None:
    begun = world.clock.now_ms()
    settings = settings_of(world, lane=lane)
    run = await spawn(world, "wait 1h", "agent:other", settings=settings, task="the task")
    run = await world.until(run.id)

    assert (run.outcome and run.outcome.status, run.result) == (Status.OK, "done")
    assert world.clock.now_ms() - begun < 60_000, "three days are more than an hour"
    assert (run.resolved.agent_id, run.resolved.instead_of) == ("other", "limited")
    assert (run.retry.used, run.retry.limited) == (0, None)
    first, second = world.runtime.launches
    assert (second.agent_id, second.cwd, second.native_session) == ("other", first.cwd, None)
    assert "the task" in second.prompt
    assert "rate limited; agent other takes over from limited" in second.prompt
    assert "half of it is written" in second.prompt
    assert world.engine.ledger.lanes.held_by_lane() == {}
    assert world.engine.counters.tokens == {("limited", "input"): 7}
    assert await world.folded(run.id) == run
    assert world.store.run(run.id) == run


@pytest.mark.requirement("limits:next:wait")
async def test_it_waits_for_as_long_as_it_may_and_goes_on_as_it_was(world: World) -> None:
    run = await spawn(world, "wait 2d", "wait 1d1h", "agent:other")
    waiting = await world.until(run.id, Phase.RETRY_WAIT)
    assert waiting.retry.due_ms is not None
    assert waiting.retry.due_ms - waiting.times.phase_since_ms == 3 * DAY_MS
    run = await world.until(run.id, within_s=4 * 24 * 3_600)
    assert (run.resolved.agent_id, run.result) == ("limited", "mine")


@pytest.mark.requirement("limits:next:wait")
async def test_behind_the_last_step_it_ends_where_that_was_a_wait(world: World) -> None:
    run = await world.until((await spawn(world, "wait 1h")).id)
    assert run.outcome is not None
    assert (run.outcome.reason, len(run.attempts)) == (Reason.PROVIDER_LIMIT, 1)


@pytest.mark.requirement("limits:next:model")
@pytest.mark.world(abilities=replace(ScriptedRuntime.abilities, model=True))
async def test_a_model_is_another_one_of_the_same_agent(world: World) -> None:
    settings = settings_of(world, again={"attempt": 2}, on_limit=("model:small",))
    run = await world.until((await spawn(world, settings=settings)).id)
    assert (run.resolved.agent_id, run.resolved.model, run.result) == (
        *("limited", "small", "mine"),
    )
    assert "its model is small from now on" in world.runtime.launches[-1].prompt


@pytest.mark.requirement("limits:next:gate")
async def test_who_waits_behind_a_closed_gate_for_longer_than_it_may_starts_with_the_next_agent(
    world: World,
) -> None:
    first = await spawn(world, "wait 4d")
    await world.until(first.id, Phase.RETRY_WAIT)
    patient = await spawn(world, "wait 4d", "agent:other")
    hurried = await world.until((await spawn(world, "wait 1h", "agent:other")).id)

    assert (hurried.resolved.agent_id, hurried.result) == ("other", "done")
    assert [each.agent_id for each in world.runtime.launches] == ["limited", "other"]
    assert await world.folded(hurried.id) == hurried
    assert (await world.run(patient.id)).phase is Phase.QUEUED
    # What is left of the three days is no more because somebody sets the clock back.
    world.clock.set_wall(by_s=-2 * 24 * 3_600)
    await world.clock.advance(300)
    assert (await world.run(patient.id)).phase is Phase.QUEUED


@pytest.mark.requirement("limits:next:gate", "limits:gate:probe-refused")
async def test_one_that_went_first_and_hands_over_closes_the_gate_of_who_refused_it(
    world: World,
) -> None:
    busy = (CONTINUED, {"said": BUSY}, {"hang": True})
    settings = saying(world, {"attempt": 1}, refused(), {"exit": 1}, *busy)
    run = await spawn(world, "wait 1m", "agent:other", settings=settings, run_timeout_seconds=60)
    await world.clock.advance(85)

    assert (await world.until(run.id, within_s=1)).result == "done"
    gate = world.engine.provider_gates.gate_of(await spawn(world, settings=settings))
    assert gate is not None
    assert gate.waits == 2


@pytest.mark.requirement("limits:next:gate", "timers:clock-steps")
async def test_a_clock_that_was_set_back_makes_no_wait_longer_than_the_provider_said(
    world: World,
) -> None:
    settings = saying(world, refused(120_000), {"exit": 1})
    await world.until((await spawn(world, "wait 1h", settings=settings)).id, Phase.RETRY_WAIT)
    world.clock.set_wall(by_s=-3_600)
    await world.clock.advance(6)
    patient = await spawn(world, "wait 10m", "agent:other", settings=settings)
    await world.clock.advance(6)

    assert (await world.run(patient.id)).phase is Phase.QUEUED


@pytest.mark.requirement("limits:next:restart")
async def test_after_a_restart_the_next_agent_has_it_still(world: World) -> None:
    settings = settings_of(world)
    other = replace(settings.agents["other"], script=({"sleep_ms": 60_000}, {"result": "x"}))
    settings = replace(settings, agents={**settings.agents, "other": other})
    run = await spawn(world, "agent:other", settings=settings)
    await world.clock.advance(20)
    await world.restart()
    run = await world.until(run.id)
    assert (run.resolved.agent_id, run.result, len(run.attempts)) == ("other", "x", 2)


@pytest.mark.requirement("limits:next:refused")
@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("wait", 'onLimit: "wait" is none of "wait 3d", "agent:ID" or "model:NAME"'),
        ("agent:", "is none of"),
        ("codex", "is none of"),
        ("wait long", "onLimit must be a duration"),
        ("agent:nobody", "onLimit"),
    ],
)
async def test_a_step_that_cannot_be_is_refused_at_the_spawn(
    world: World, step: str, says: str
) -> None:
    with pytest.raises(SubagentsError, match=re.escape(says)):
        await spawn(world, step)
