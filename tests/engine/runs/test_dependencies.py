"""Dependencies, fan-in and retries, from spawn to announcement."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.world import ME, OTHER, World, in_world

from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
    VerificationState,
)
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import (
    Artifact,
    Contract,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.domain.run.values import RunId, replace
from subagents.domain.text.event_words import sentence
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, SpawnContext
from subagents.errors import (
    Conflict,
    NotFound,
    UsageError,
)
from subagents.ports import RunFilter

CONTRACT = Contract(artifacts=(Artifact(path="out.txt"),))


@pytest.mark.requirement("dependencies:released", "sessions:continue:once")
async def test_a_dependency_that_ends_while_a_session_is_loaded_is_not_awaited_for_ever(
    world: World,
) -> None:
    before = await world.spawn()
    await world.until(before, Phase.COMPLETED)
    awaited = await world.spawn("slow", label="research")
    ledger, goes_on = world.engine.ledger, asyncio.Event()
    load_run = ledger.load_run

    async def late(run_id: RunId) -> Run:
        await goes_on.wait()
        return await load_run(run_id)

    ledger.load_run = late  # type: ignore[method-assign]
    spawning = asyncio.ensure_future(world.try_spawn(continues=before, depends_on=("research",)))
    await world.clock.idle()
    await world.until(awaited, Phase.COMPLETED)
    goes_on.set()

    receipt = await world.clock.result(spawning)
    assert (await world.until(receipt.run.id)).outcome == OK


@pytest.mark.requirement("dependencies:released", "dependencies:chain-running")
async def test_a_chained_run_waits_for_the_one_before_and_gets_its_result(world: World) -> None:
    first = await world.spawn("slow", label="research")
    second = await world.spawn(chain_after="research", include_dependency_result=True)
    assert (await world.run(second)).phase is Phase.WAITING
    await world.clock.advance(9)
    assert (await world.run(second)).phase is Phase.WAITING
    assert world.runtime.starts_of(second) == 0

    run = await world.until(second)

    assert run.outcome == OK
    assert (await world.run(first)).is_settled
    launch = world.runtime.launches[-1]
    assert launch.prompt == ("[Previous step result]:\nslowly done\n\n[Current task]:\ndo quick")
    assert launch.task == "do quick"


@pytest.mark.requirement("dependencies:released", "dependencies:chain-completed")
async def test_a_run_chained_to_an_ended_one_starts_at_once(world: World) -> None:
    first = await world.spawn("quick")
    await world.until(first, Phase.COMPLETED)
    assert first not in world.engine.ledger.live
    begun = world.clock.now_ms()
    second = await world.spawn(depends_on=(first,), include_dependency_result=True)

    await world.until(second)

    assert world.clock.now_ms() == begun
    assert world.runtime.launches[-1].previous_results == "done"


@pytest.mark.requirement("dependencies:fan-in")
async def test_many_are_joined_by_one_that_gets_all_results_in_the_order_given(
    world: World,
) -> None:
    slow = await world.spawn("slow", label="s")
    quick = await world.spawn("quick", label="q")
    join = await world.spawn(depends_on=("s", quick), include_dependency_result=True)

    assert (await world.until(join)).outcome == OK
    assert world.runtime.launches[-1].previous_results == (
        "[Previous step result: s]:\nslowly done\n\n[Previous step result: q]:\ndone"
    )
    assert (await world.run(slow)).is_settled


@pytest.mark.requirement("dependencies:failure-cancels", "engine:dependants-survive")
async def test_a_failed_step_ends_those_that_need_it_and_only_those(world: World) -> None:
    """The first dependant is over and gone from memory when its other dependency ends."""
    bad = await world.spawn("fail", label="bad")
    slow = await world.spawn("slow", label="slow")
    both = await world.spawn(depends_on=(bad, slow))
    only_slow = await world.spawn(depends_on=(slow,))
    failed = await world.until(both, Phase.COMPLETED)
    assert both not in world.engine.ledger.live

    run = await world.until(only_slow, within_s=60)

    assert failed.outcome == Outcome(
        status=Status.ERROR,
        reason=Reason.DEPENDENCY_FAILED,
        error=f"Dependency run {bad} error: exit code 1",
    )
    assert run.outcome == OK
    assert world.runtime.starts_of(both) == 0


@pytest.mark.requirement("engine:dependants-survive")
async def test_cancelling_one_dependant_does_not_strand_the_others(world: World) -> None:
    slow = await world.spawn("slow")
    dropped = await world.spawn(depends_on=(slow,))
    kept = await world.spawn(depends_on=(slow,))
    await world.clock.result(world.engine.control.cancel(dropped, by="me"))
    await world.until(dropped, Phase.COMPLETED)

    assert (await world.until(kept, within_s=60)).outcome == OK


@pytest.mark.requirement("dependencies:fallback")
async def test_the_fallback_agent_takes_over_and_is_still_there_after_a_restart(
    world: World,
) -> None:
    bad = await world.spawn("fail", label="bad")
    run_id = await world.spawn(
        "fail",
        depends_on=(bad,),
        on_dependency_failure=OnDependencyFailure.FALLBACK,
        fallback_agent_id="quick",
    )
    ended = await world.until(run_id)
    assert (ended.outcome, ended.resolved.agent_id) == (OK, "quick")
    stored = world.store.run(run_id)
    assert stored is not None
    assert stored.resolved == ended.resolved
    assert stored.waiting.fell_back == bad
    texts = [sentence(each.event, stored) for each in world.store.journal(run_id)]
    assert any(f'{bad} failed: exit code 1; agent "quick" takes over' in each for each in texts)


@pytest.mark.requirement("dependencies:failure-runs")
async def test_with_run_on_failure_the_next_step_is_told_what_it_lacks(world: World) -> None:
    bad = await world.spawn("fail", label="bad")
    run_id = await world.spawn(depends_on=(bad,), on_dependency_failure=OnDependencyFailure.RUN)

    assert (await world.until(run_id)).outcome == OK
    assert world.runtime.launches[-1].prompt == (
        "[Previous step failed: bad]: error: exit code 1\n\ndo quick"
    )


@pytest.mark.requirement("dependencies:timeout")
async def test_a_run_may_wait_for_a_job_of_two_hours(world: World) -> None:
    job = await world.spawn("hang")
    run_id = await world.spawn(depends_on=(job,))
    await world.until(job, Phase.RUNNING)
    world.clock.jump(2 * 3_600)
    await world.clock.idle()
    assert (await world.run(run_id)).phase is Phase.WAITING

    await world.restart()
    world.clock.jump(2 * 3_600)
    await world.clock.idle()
    assert (await world.run(run_id)).phase is Phase.WAITING


@pytest.mark.requirement("dependencies:timeout")
async def test_a_dependency_that_takes_too_long_is_named_with_the_time(world: World) -> None:
    hang = await world.spawn("hang")
    run_id = await world.spawn(depends_on=(hang,), dependency_timeout_seconds=90)
    begun = world.clock.now_ms()

    run = await world.until(run_id)

    assert world.clock.now_ms() - begun == 90_000
    assert run.outcome == Outcome(
        status=Status.TIMEOUT,
        reason=Reason.DEPENDENCY_TIMEOUT,
        error=f"Timed out after 90000ms waiting for run {hang}",
    )


@pytest.mark.requirement("dependencies:released", "recovery:goes-on")
async def test_a_pipeline_goes_on_after_a_crash_between_its_steps(world: World) -> None:
    first = await world.spawn("slow")
    second = await world.spawn(depends_on=(first,), include_dependency_result=True)
    await world.clock.advance(3)
    await world.restart()

    assert (await world.until(second)).outcome == OK
    assert world.runtime.launches[-1].previous_results == "slowly done"
    assert world.runtime.starts_of(first) == world.runtime.starts_of(second) == 1


# -- retries -------------------------------------------------------------------------------------


@pytest.mark.requirement("retry:stored-due-time", "retry:retry-count-3", "field:early-notification")
async def test_a_failure_is_retried_as_often_as_asked_and_announced_once(world: World) -> None:
    run_id = await world.spawn("fail", retry_count=3)
    times = []
    for number in range(1, 5):
        await world.clock.until(lambda n=number: len(world.runtime.launches) == n)  # type: ignore[misc]
        times.append(world.clock.now_ms())
    run = await world.until(run_id)

    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [1000, 2000, 4000]
    assert [launch.number for launch in world.runtime.launches] == [1, 2, 3, 4]
    assert len({launch.session_key for launch in world.runtime.launches}) == 4
    assert run.outcome == Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="exit code 1")
    assert len(world.store.inbox(None, unconsumed=False)) == 1


@pytest.mark.requirement("retry:stored-due-time", "recovery:goes-on")
async def test_a_due_retry_survives_a_restart_and_is_exactly_one_attempt(world: World) -> None:
    run_id = await world.spawn("flaky", retry_count=2, retry_delay=60_000)
    waiting = await world.until(run_id, Phase.RETRY_WAIT)
    await world.clock.advance(20)
    await world.restart(reboot=True)
    assert (await world.run(run_id)).retry.due_ms == waiting.retry.due_ms

    run = await world.until(run_id)

    assert world.clock.now_ms() == waiting.retry.due_ms
    assert (run.result, len(run.attempts)) == ("second time lucky", 2)
    assert world.runtime.starts_of(run_id) == 1
    assert run.attempts[1].number == 2


@pytest.mark.requirement("retry:start-failures")
async def test_failing_to_start_is_retried_and_then_reported(world: World) -> None:
    run_id = await world.spawn("unstartable", retry_count=1)

    run = await world.until(run_id)

    assert len(run.attempts) == 2
    assert run.outcome == Outcome(
        status=Status.ERROR, reason=Reason.START_FAILED, error="no such program"
    )


@pytest.mark.requirement("retry:by-hand:dependencies")
async def test_what_a_retried_run_waits_for_is_the_newest_of_what_it_waited_for(
    world: World,
) -> None:
    first = await world.spawn("fail", label="first")
    after = await world.spawn("quick", depends_on=("first",))
    await world.until(after)
    context = SpawnContext(session=ME, settings=world.settings)
    for _ in range(2):
        receipt = await world.clock.result(world.engine.spawner.retry(first, context))
        first = receipt.run.id
        await world.until(first)
    receipt = await world.clock.result(world.engine.spawner.retry(after, context))
    (awaited,) = (await world.until(receipt.run.id)).waiting.dependencies
    assert awaited.run_id == first


@pytest.mark.requirement("retry:by-hand")
async def test_runs_without_labels_that_begin_alike_are_started_again_together(
    world: World,
) -> None:
    runs = [await world.until(await world.spawn("fail")) for _ in range(2)]
    context = SpawnContext(session=ME, settings=world.settings)
    again = await world.clock.result(world.engine.spawner.retry_all(runs, context))
    assert [each.run.lineage.retry_from for each in again] == [run.id for run in runs]


@pytest.mark.requirement("plan:found")
async def test_a_plan_is_told_of_a_label_that_only_an_ended_run_has(world: World) -> None:
    old = (await world.until(await world.spawn("quick", label="build"))).id
    context = SpawnContext(session=ME, settings=world.settings)

    async def warnings(*after: str) -> list[tuple[str, ...]]:
        first = RunSpec(task="t", agent_id="quick", cwd="/", label="b")
        specs = [first, replace(first, label=None, depends_on=after)]
        asked = [RunAsked(spec=each) for each in specs]
        plan = PlanAsked(name="p")
        made = await world.clock.result(world.engine.spawner.spawn_batch(asked, context, plan=plan))
        return [each.warnings for each in made]

    told = f'"build" is no run of this plan, but {old}, which has ended'
    assert await warnings("build", "b") == [(), (told,)]
    assert await warnings(old) == [(), ()]


@pytest.mark.requirement("retry:by-hand", "attention:escalation-stays")
async def test_a_failure_that_was_started_again_needs_nobody_and_is_delivered_all_the_same(
    world: World,
) -> None:
    first = (await world.until(await world.spawn("fail"))).id
    queries, context = world.engine.queries, SpawnContext(session=ME, settings=world.settings)
    assert [each.run.id for each in await queries.attention(ME)] == [first]
    again = (await world.clock.result(world.engine.spawner.retry(first, context))).run.id
    await world.until(again)

    assert [each.run.id for each in await queries.attention(ME)] == [again]
    unread = await queries.inbox(ME, unconsumed=True)
    assert {each.message.run_id for each in unread} == {first, again}


@pytest.mark.requirement("retry:by-hand")
async def test_a_run_can_be_started_again_from_its_stored_parameters(world: World) -> None:

    first = await world.spawn("fail", tags=("a",))
    slow = await world.spawn("slow")
    await world.until(first, Phase.COMPLETED)
    with pytest.raises(Conflict, match="cancel it first"):
        await world.engine.spawner.retry(slow, SpawnContext(session=ME, settings=world.settings))

    receipt = await world.clock.result(
        world.engine.spawner.retry(first, SpawnContext(session=ME, settings=world.settings))
    )

    assert receipt.run.id != first
    assert (receipt.run.lineage.retry_from, receipt.run.spec.tags) == (first, ("a",))
    assert receipt.run.resolved.agent_id == "fail"


# -- deadlines -----------------------------------------------------------------------------------


@pytest.mark.requirement("deadline:enforced-by-us", "field:timeouts-ignored")
async def test_a_deadline_is_enforced_by_the_engine_and_partial_output_is_kept(
    world: World,
) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=100)

    run = await world.until(run_id)

    assert run.outcome is not None
    assert (run.outcome.status, run.result) == (Status.TIMEOUT, "so far")
    assert run.ended_at_ms is not None
    assert run.times.started_at_ms is not None
    assert run.ended_at_ms - run.times.started_at_ms == 100_000
    assert world.runtime.stopped == [f"{run_id}#1"]
    assert world.runtime.steered[0].startswith("[System Message] 10s left")


@pytest.mark.requirement("deadline:stored-absolute", "recovery:goes-on")
async def test_a_deadline_that_passed_while_nobody_was_there_is_enforced_at_once(
    world: World,
) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=100)
    await world.until(run_id, Phase.RUNNING)
    await world.crash()
    world.clock.jump(500)
    await world.boot()

    run = await world.until(run_id, within_s=1)

    assert run.outcome is not None
    assert run.outcome.status is Status.TIMEOUT


# -- verification --------------------------------------------------------------------------------


@pytest.mark.requirement(
    "contract:accepted-at-spawn", "contract:valid-file-passes", "verification:end-to-end"
)
async def test_a_contract_that_is_met_passes(world: World) -> None:
    run = await world.until(await world.spawn("writer", verification=CONTRACT))

    assert run.outcome == OK
    assert run.verification.result is not None
    assert [(check.target, check.passed) for check in run.verification.result.checks] == [
        ("out.txt", True)
    ]
    text = world.store.inbox(None, unconsumed=True)[0].message.text
    assert "verified: 1/1 checks" in text


@pytest.mark.requirement("contract:invalid-file-triggers-on-failure", "verification:end-to-end")
@pytest.mark.parametrize("on_failure", list(OnFailure))
async def test_a_contract_that_is_not_met_triggers_its_on_failure(
    world: World, on_failure: OnFailure
) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),), on_failure=on_failure)
    run = await world.until(await world.spawn("quick", verification=contract))

    assert run.outcome is not None
    assert run.outcome.reason is Reason.VERIFICATION_FAILED
    is_retry = on_failure is OnFailure.RETRY_ONCE
    assert len(run.attempts) == 1 + is_retry
    kinds = [row.message.kind.value for row in world.store.inbox(None, unconsumed=True)]
    assert kinds == ["announcement"] + ["blocker"] * (on_failure is OnFailure.ESCALATE)
    if is_retry:
        assert world.runtime.launches[1].prompt.startswith(
            "[RETRY — Previous attempt failed verification]\nFailure reason: File out.txt "
        )


@pytest.mark.requirement("contract:fresh")
async def test_what_a_dependency_left_is_not_the_work_of_the_run_behind_it(world: World) -> None:
    first = await world.spawn("writer", label="first", verification=CONTRACT)
    idle = await world.spawn("quick", chain_after=first, verification=CONTRACT)
    run = await world.until(idle)

    assert (await world.run(first)).outcome == OK
    assert run.outcome is not None
    assert (run.outcome.error or "").startswith("File out.txt was there before the run")
    assert await world.folded(idle) == run


@pytest.mark.requirement(
    "contract:restart-verifies-again", "contract:restart-resumes", "verification:restart"
)
async def test_a_restart_during_verification_runs_it_again(world: World) -> None:
    run_id = await world.spawn("late_writer", verification=CONTRACT)
    world.checks_are_stuck = True
    await world.until(run_id, Phase.VERIFYING)
    assert (await world.run(run_id)).verification.state is VerificationState.RUNNING
    world.checks_are_stuck = False
    before = world.checks
    await world.restart()

    run = await world.until(run_id)

    assert run.outcome == OK
    assert (len(run.attempts), world.checks) == (1, before + 1)
    assert len(world.store.inbox(None, unconsumed=False)) == 1


@pytest.mark.requirement(
    "contract:retry-guard-persists", "contract:no-duplicate-retry", "verification:retry-once"
)
async def test_the_one_retry_after_a_failed_contract_is_one_across_restarts(world: World) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),), on_failure=OnFailure.RETRY_ONCE)
    run_id = await world.spawn("slow", verification=contract)
    await world.clock.until(lambda: world.runtime.starts_of(run_id) == 2)
    await world.restart()
    run = await world.until(run_id)
    await world.restart()
    await world.clock.advance(120)

    assert len(run.attempts) == 2
    assert (await world.run(run_id)).outcome == run.outcome
    assert world.runtime.starts_of(run_id) == 2


@pytest.mark.requirement("contract:timeout-triggers-on-failure", "verification:end-to-end")
async def test_a_verification_that_takes_too_long_counts_as_failed(world: World) -> None:
    contract = Contract(
        artifacts=(Artifact(path="out.txt"),),
        verification_timeout_ms=1,
        on_failure=OnFailure.ESCALATE,
    )
    run_id = await world.spawn("late_writer", verification=contract)
    world.checks_are_stuck = True
    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.status is Status.ERROR
    assert run.verification.result is not None
    assert "1 ms" in (run.verification.result.checks[0].reason or "")


def stored(world: World) -> int:
    return world.store.count(RunFilter(archived=True), most=10_000)


@pytest.mark.requirement("dependencies:cycles")
def test_cycles_are_refused_with_the_cycle_spelled_out(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def spec(label: str, *after: str) -> RunSpec:
            return RunSpec(task=label, agent_id="quick", label=label, depends_on=after)

        with pytest.raises(UsageError, match=r"^Circular dependency: a → b → c → a$"):
            await world.batch(spec("a", "b"), spec("b", "c"), spec("c", "a"))
        with pytest.raises(UsageError, match=r"^Circular dependency: a → a$"):
            await world.batch(spec("a", "a"))
        assert stored(world) == 0

    in_world(tmp_path, scenario)


@pytest.mark.requirement("dependencies:cycles")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_run_cannot_wait_for_the_ancestor_that_waits_for_it(world: World) -> None:
    parent = await world.spawn("hang", label="top")
    await world.until(parent, Phase.RUNNING)
    with pytest.raises(UsageError, match=r"^Circular dependency: do quick → top → do quick"):
        await world.spawn_child(parent, depends_on=(parent,))
    assert stored(world) == 1


@pytest.mark.requirement("dependencies:not-found", "dependencies:chain-not-found")
async def test_a_dependency_that_does_not_exist_is_an_error_at_once(world: World) -> None:
    theirs = await world.spawn(requester=OTHER)
    for wanted in ("non-existent-run-id", theirs):
        with pytest.raises(NotFound, match=f"Dependency run not found: {wanted}"):
            await world.try_spawn(chain_after=wanted)
    assert stored(world) == 1


@pytest.mark.requirement("dependencies:cycles")
@pytest.mark.world(max_spawn_depth=4)
async def test_a_child_that_would_wait_for_a_run_above_it_is_told_that_this_is_a_circle(
    world: World,
) -> None:
    above = await world.until(await world.spawn("hang", label="above"), Phase.RUNNING)
    middle = await world.spawn_child(above.id, "hang", label="middle")
    await world.until(middle, Phase.RUNNING)
    through = r"^Circular dependency: leaf → above → middle → leaf$"
    for name in ("above", above.id, above.session_key):
        with pytest.raises(UsageError, match=through):
            await world.spawn_child(middle, label="leaf", chain_after=name)
    with pytest.raises(UsageError, match=r"^Circular dependency: leaf → middle → leaf$"):
        await world.spawn_child(middle, label="leaf", chain_after="middle")


@pytest.mark.requirement("spawn:long-chain")
@pytest.mark.world(max_children_per_agent=1000)
async def test_a_batch_of_a_thousand_in_a_chain_is_accepted_and_its_circle_refused(
    world: World,
) -> None:
    chain = [
        RunSpec(
            task="x",
            agent_id="quick",
            label=f"n{number}",
            depends_on=(f"n{number - 1}",) if number else ("n999",),
        )
        for number in range(1000)
    ]
    with pytest.raises(UsageError, match=r"Circular dependency: .* → n999 → .*"):
        await world.batch(*chain)
    assert stored(world) == 0

    ids = await world.clock.result(
        world.batch(RunSpec(task="x", agent_id="quick", label="n0"), *chain[1:])
    )
    assert (await world.until(ids[-1])).outcome == OK
