"""A provider that takes no more for now: waiting is not failing, and nobody storms it."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.engine.world import World, in_world

from subagents.domain.rules import provider_limits
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, replace
from subagents.runtimes.scripted import ScriptedRuntime

REFUSED: Mapping[str, object] = {
    "subagents": "result",
    "text": "",
    "isError": True,
    "error": "429: rate limited",
    "isLimit": True,
}
BUSY: Mapping[str, object] = {"subagents": "error", "text": "429", "api": True, "status": 429}


def refused(retry_after_ms: int | None = None) -> dict[str, object]:
    asked = {} if retry_after_ms is None else {"retryAfterMs": retry_after_ms}
    return {"said": {**REFUSED, **asked}}


async def spawn(world: World, *script: Mapping[str, object], **spec: object) -> Run:
    settings = world.with_script("limited", *script)
    run_id = await world.spawn("limited", settings=settings, **spec)
    return await world.run(run_id)


@pytest.mark.requirement("limits:resume:same-session", "limits:not-a-failure")
async def test_a_refused_run_waits_uncounted_and_goes_on_in_its_own_session(world: World) -> None:
    begun = world.clock.now_ms()
    run = await spawn(
        world, refused(), {"exit": 1}, {"continued": True}, {"result": "done after all"}
    )
    waiting = await world.until(run.id, Phase.RETRY_WAIT)
    assert waiting.retry.limited is not None
    assert (waiting.retry.used, waiting.retry.limited.waits) == (0, 1)
    run = await world.until(run.id)

    assert run.outcome is not None
    assert (run.outcome.status, run.result) == (Status.OK, "done after all")
    assert [each.number for each in run.attempts] == [1, 2]
    assert run.attempts[0].outcome is not None
    assert run.attempts[0].outcome.reason is Reason.PROVIDER_LIMIT
    assert (run.retry.used, run.retry.limited) == (0, None)
    again = world.runtime.launches[-1]
    assert (again.native_session, again.prompt) == (f"{run.id}#1", provider_limits.RESUME_TEXT)
    assert world.clock.now_ms() - begun >= provider_limits.FIRST_WAIT_MS
    assert await world.folded(run.id) == run


@pytest.mark.requirement("limits:resume:no-session")
@pytest.mark.world(abilities=replace(ScriptedRuntime.abilities, resume=False))
async def test_a_program_without_sessions_is_given_the_whole_task_again(world: World) -> None:
    script = ({"attempt": 1}, refused(), {"attempt": 2}, {"result": "second"})
    run = await spawn(world, *script, task="the task")
    run = await world.until(run.id)

    assert (run.result, run.attempts[1].session.resumes) == ("second", None)
    assert world.runtime.launches[-1].native_session is None
    assert world.runtime.launches[-1].prompt == "the task"


@pytest.mark.requirement("limits:wait:retry-after", "limits:wait:backoff")
async def test_the_wait_is_what_the_provider_asks_for_else_doubles_up_to_five_minutes(
    world: World,
) -> None:
    run = await spawn(world, refused(7_000), {"continued": True}, refused())
    waits = []
    for number in range(1, 9):
        await until_wait(world, run.id, number)
        run = await world.run(run.id)
        assert run.retry.due_ms is not None
        waits.append(run.retry.due_ms - run.times.phase_since_ms)
    assert waits == [7_000, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000, 300_000]


async def until_wait(world: World, run_id: RunId, number: int) -> None:
    def has_come() -> bool:
        now = world.engine.ledger.published[run_id]
        is_waiting = now.phase is Phase.RETRY_WAIT and now.retry.limited is not None
        return is_waiting and now.retry.limited is not None and now.retry.limited.waits == number

    await world.clock.until(has_come)


@pytest.mark.requirement("limits:wait:bounded")
async def test_after_six_hours_of_refusals_the_run_ends_and_says_so(world: World) -> None:
    begun = world.clock.now_ms()
    run = await spawn(world, refused(), {"continued": True}, refused(), retry_count=3)
    run = await world.until(run.id, within_s=8 * 3600)

    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.ERROR, Reason.PROVIDER_LIMIT)
    assert "429: rate limited (waited 5h" in (run.outcome.error or "")
    assert world.clock.now_ms() - begun <= provider_limits.TOTAL_MS_MAX
    assert run.retry.used == 0


@pytest.mark.requirement("limits:wait:too-long")
async def test_a_provider_that_asks_for_longer_than_we_wait_ends_the_run_at_once(
    world: World,
) -> None:
    run = await spawn(world, refused(7 * 3_600_000))
    run = await world.until(run.id, within_s=60)

    assert run.outcome is not None
    assert run.outcome.reason is Reason.PROVIDER_LIMIT
    assert "the provider asks for 7h more" in (run.outcome.error or "")


@pytest.mark.requirement("limits:wait:deadline")
def test_waiting_for_the_provider_takes_nothing_of_the_timeout(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        script = (refused(600_000), {"continued": True}, {"sleep_ms": 50_000}, {"result": "done"})
        run = await spawn(world, *script, run_timeout_seconds=60)
        run = await world.until(run.id, within_s=700)
        assert run.outcome is not None
        assert (run.outcome.status, run.result) == (Status.OK, "done")

    async def after_it(world: World) -> None:
        script = (refused(5_000), {"continued": True}, {"hang": True})
        second = await spawn(world, *script, run_timeout_seconds=60)
        ended = await world.until(second.id, within_s=120)
        assert ended.outcome is not None
        assert ended.outcome.reason is Reason.DEADLINE
        last = ended.attempts[1].times
        assert last.started_at_ms is not None
        assert last.deadline_ms == last.started_at_ms + 60_000

    in_world(tmp_path / "while", scenario)
    in_world(tmp_path / "after", after_it)


@pytest.mark.requirement("limits:live:deadline")
@pytest.mark.parametrize("waits_at_its_end", [True, False])
async def test_a_program_that_waits_for_its_provider_at_its_deadline_was_refused_and_not_too_slow(
    world: World, *, waits_at_its_end: bool
) -> None:
    says = BUSY if waits_at_its_end else {"subagents": "text", "text": "at work"}
    busy = ({"said": BUSY}, {"sleep_ms": 5_000}, {"said": says}, {"hang": True})
    run = await spawn(world, *busy, {"continued": True}, {"result": "done"}, run_timeout_seconds=60)
    run = await world.until(run.id, within_s=200)
    first = run.attempts[0].outcome
    assert run.outcome is not None
    assert first is not None
    if waits_at_its_end:
        assert (first.reason, run.outcome.status) == (Reason.PROVIDER_LIMIT, Status.OK)
        assert "until its deadline" in (first.error or "")
        assert await world.folded(run.id) == run
    else:
        assert (first.reason, run.outcome.status) == (Reason.DEADLINE, Status.TIMEOUT)


@pytest.mark.requirement("limits:wait:cancel")
async def test_a_run_that_waits_for_its_provider_can_be_cancelled(world: World) -> None:
    run = await spawn(world, refused())
    await world.until(run.id, Phase.RETRY_WAIT)
    await world.clock.result(world.engine.control.cancel(run.id, by="me"))
    ended = await world.run(run.id)
    assert ended.outcome is not None
    assert ended.outcome.status is Status.CANCELLED


@pytest.mark.requirement("limits:wait:restart")
async def test_a_wait_for_the_provider_survives_a_crash(world: World) -> None:
    run = await spawn(world, refused(60_000), {"continued": True}, {"result": "fine"})
    before = await world.until(run.id, Phase.RETRY_WAIT)
    await world.restart()
    after = await world.run(run.id)
    assert (after.phase, after.retry.limited) == (Phase.RETRY_WAIT, before.retry.limited)
    assert (await world.until(run.id)).result == "fine"


@pytest.mark.requirement("limits:gate:no-herd", "field:provider-limits")
async def test_while_one_run_is_refused_no_other_starts_and_then_one_goes_first(
    world: World,
) -> None:
    script = ({"attempt": 1}, refused(20_000), {"attempt": 2}, {"result": "done"})
    slow = ({"sleep_ms": 5_000}, {"result": "done"})
    settings = world.with_script("limited", *script, {"continued": True}, *slow)
    first = await world.spawn("limited", settings=settings)
    await world.until(first, Phase.RETRY_WAIT)
    others = [await world.spawn("limited", settings=settings) for _ in range(3)]
    free = await world.spawn("quick")
    await world.until(free)  # somebody else's provider: not held up
    for run_id in others:
        run = await world.run(run_id)
        gate = world.engine.provider_gates.gate_of(run)
        assert run.phase is Phase.QUEUED
        assert gate is not None
        assert gate.provider == "limited"

    await world.clock.advance(21)
    started = [world.runtime.starts_of(run_id) for run_id in (first, *others)]
    assert sum(started) == 2, "the refused one before, and one that goes first now"
    await world.clock.advance(provider_limits.PROBE_MS / 1000)
    for run_id in (first, *others):
        assert (await world.until(run_id)).outcome is not None


@pytest.mark.requirement("limits:gate:probe-refused")
async def test_a_probe_that_is_refused_keeps_the_others_waiting_for_longer(world: World) -> None:
    settings = world.with_script("limited", refused(), {"continued": True}, refused())
    first = await world.spawn("limited", settings=settings)
    await world.until(first, Phase.RETRY_WAIT)
    second = await world.spawn("limited", settings=settings)
    await world.clock.advance(16)
    both = [await world.run(run_id) for run_id in (first, second)]
    assert sorted(len(run.attempts) for run in both) in ([0, 2], [1, 1])
    waiting = next(run for run in both if run.phase is Phase.QUEUED)
    gate = world.engine.provider_gates.gate_of(waiting)
    assert gate is not None
    assert gate.waits == 2
    assert gate.until_ms - world.clock.now_ms() > 20_000


@pytest.mark.requirement("limits:gate:probe-over")
async def test_a_probe_that_is_cancelled_before_it_knows_lets_the_others_go_at_once(
    world: World,
) -> None:
    hangs = ({"continued": True}, {"hang": True})
    settings = world.with_script("limited", {"attempt": 1}, refused(), *hangs)
    first = await world.spawn("limited", settings=settings)
    await world.until(first, Phase.RETRY_WAIT)
    await world.clock.advance(16)
    assert (await world.run(first)).phase is Phase.RUNNING, "it goes first"
    quick = world.with_script("limited", {"result": "done"})
    second = await world.spawn("limited", settings=quick)
    assert (await world.run(second)).phase is Phase.QUEUED

    await world.clock.result(world.engine.control.cancel(first, by="me"))

    assert (await world.until(second, within_s=5)).result == "done"


@pytest.mark.requirement("limits:live:shown", "limits:gate:learns-from-live")
async def test_a_live_attempt_that_backs_off_is_shown_and_closes_the_gate(world: World) -> None:
    busy = {"said": {**BUSY, "retryAfterMs": 4_000}}
    script = (busy, {"sleep_ms": 60_000}, {"said": {"subagents": "text", "text": "on"}})
    settings = world.with_script("limited", *script, {"hang": True})
    run_id = await world.spawn("limited", settings=settings)
    await world.until(run_id, Phase.RUNNING)
    await world.clock.advance(0.5)
    run = await world.run(run_id)
    shown = world.engine.provider_gates.backing_off(run)
    assert shown == "provider limit (429), next try in 4 s"
    other = await world.spawn("limited", settings=settings)
    assert (await world.run(other)).phase is Phase.QUEUED
    await world.clock.advance(5)
    assert world.engine.provider_gates.backing_off(run) == "provider limit (429), trying again"
    assert (await world.run(other)).phase is Phase.RUNNING
    await world.clock.advance(60)
    assert world.engine.provider_gates.backing_off(run) is None


@pytest.mark.requirement("limits:live:told-by-another")
async def test_a_live_attempt_that_waits_because_another_was_refused_says_so(world: World) -> None:
    waits = {"said": {"subagents": "system", "text": "waiting", "waitsMs": 3_000}}
    settings = world.with_script("limited", waits, {"sleep_ms": 60_000}, {"hang": True})
    run_id = await world.spawn("limited", settings=settings)
    await world.until(run_id, Phase.RUNNING)
    await world.clock.advance(0.5)
    shown = world.engine.provider_gates.backing_off(await world.run(run_id))
    assert shown == "provider limit, next try in 3 s"
    other = await world.spawn("limited", settings=settings)
    assert (await world.run(other)).phase is Phase.RUNNING


@pytest.mark.requirement("limits:gate:live-counts-nothing")
async def test_programs_that_try_again_by_themselves_do_not_lengthen_the_wait_of_others(
    world: World,
) -> None:
    busy = {"said": {**BUSY, "retryAfterMs": 300}}
    burst = [step for _ in range(8) for step in (busy, {"sleep_ms": 400})]
    settings = world.with_script("limited", *burst, {"result": "done"})
    first = await world.spawn("limited", settings=settings)
    assert (await world.until(first)).result == "done"

    settings = world.with_script("limited", refused(), {"continued": True}, {"hang": True})
    second = await world.spawn("limited", settings=settings)
    await world.until(second, Phase.RETRY_WAIT)
    third = await world.spawn("limited", settings=settings)
    gate = world.engine.provider_gates.gate_of(await world.run(third))
    assert gate is not None
    assert gate.until_ms - world.clock.now_ms() <= provider_limits.FIRST_WAIT_MS


@pytest.mark.requirement("limits:gate:any-success")
@pytest.mark.parametrize(
    "success",
    [
        {"result": "done"},
        {"said": {"subagents": "tool", "name": "read"}},
        {"said": {"subagents": "usage", "tokensOut": 5}},
    ],
)
async def test_whatever_run_gets_through_opens_the_gate_of_its_provider(
    world: World, success: Mapping[str, object]
) -> None:
    at_work = ({"sleep_ms": 5_000}, success, {"hang": True})
    at_work_id = await world.spawn("limited", settings=world.with_script("limited", *at_work))
    await world.until(at_work_id, Phase.RUNNING)
    settings = world.with_script("limited", refused(600_000))
    refused_id = await world.spawn("limited", settings=settings)
    await world.until(refused_id, Phase.RETRY_WAIT)
    waiting = await world.spawn("limited", settings=settings)
    assert (await world.run(waiting)).phase is Phase.QUEUED
    await world.clock.advance(7)
    assert (await world.run(waiting)).attempts


@pytest.mark.requirement("limits:gate:probe-refused")
async def test_while_the_first_one_tries_again_by_itself_the_others_wait_for_what_it_finds_out(
    world: World,
) -> None:
    busy = ({"said": {**BUSY, "retryAfterMs": 5_000}}, {"sleep_ms": 5_000})
    script = ({"attempt": 1}, refused(), {"continued": True}, *busy * 8, {"result": "done"})
    first = await world.spawn("limited", settings=world.with_script("limited", *script))
    await world.until(first, Phase.RETRY_WAIT)
    await world.clock.advance(16)
    assert len((await world.run(first)).attempts) == 2
    settings = world.with_script("limited", {"result": "done"})
    second = await world.spawn("limited", settings=settings)
    await world.clock.advance(35)
    run = await world.run(second)
    gate = world.engine.provider_gates.gate_of(run)
    assert (run.phase, gate is not None and gate.waits) == (Phase.QUEUED, 1)
    await world.clock.advance(7)
    for run_id in (first, second):
        assert (await world.until(run_id, within_s=1)).result == "done"


@pytest.mark.requirement("limits:gate:lane-goes-on")
@pytest.mark.world(max_concurrent=1)
async def test_runs_of_other_providers_overtake_those_that_wait_in_the_same_lane(
    world: World,
) -> None:
    settings = world.with_script("limited", refused(60_000))
    first = await world.spawn("limited", settings=settings)
    await world.until(first, Phase.RETRY_WAIT)
    held = await world.spawn("limited", settings=settings)
    behind = await world.spawn("quick")
    assert (await world.until(behind)).result == "done"
    assert (await world.run(held)).phase is Phase.QUEUED
