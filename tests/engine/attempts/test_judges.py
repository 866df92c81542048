"""The engine spawns a contract's judge once, and takes its word for the verdict."""

from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.access import AccessLevel
from subagents.domain.run.outcome import OK, CheckType, Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Abilities, Artifact, Budget, Checks, Contract, Judge
from subagents.domain.run.values import RunId, announcement_id, replace
from subagents.engine.attempts.judges import Judges
from subagents.errors import Forbidden

FILE = Contract(artifacts=(Artifact(path="out.txt"),))


def contract(agent: str = "judge_pass", *, base: Contract = FILE, **given: Any) -> Contract:
    return replace(base, judge=Judge(agent_id=agent, criteria="it is good", **given))


async def judge_of(world: World, run_id: RunId) -> Run:
    run = await world.run(run_id)
    return await world.run(run.children[-1].run_id)


async def until_judged(world: World, run_id: RunId) -> Run:
    """The judge, at work."""

    def is_running() -> bool:
        known = world.engine.ledger.published
        judges = [known.get(child.run_id) for child in known[run_id].children]
        return any(judge is not None and judge.phase is Phase.RUNNING for judge in judges)

    await world.clock.until(is_running)
    return await judge_of(world, run_id)


@pytest.mark.requirement("judge:verdict", "judge:spawn")
@pytest.mark.world(max_spawn_depth=1, max_children_per_agent=1)
async def test_a_run_is_verified_by_the_word_of_a_judge_that_is_a_run_below_it(
    world: World,
) -> None:
    run_id = await world.spawn("writer", verification=contract())

    run = await world.until(run_id)
    judge = await judge_of(world, run_id)

    assert run.outcome == OK
    assert run.verification.result is not None
    assert [each.type for each in run.verification.result.checks] == [
        CheckType.ARTIFACT,
        CheckType.JUDGE,
    ]
    assert (judge.lineage.requester_run, judge.lineage.judges) == (run_id, 1)
    assert (judge.lineage.depth, judge.resolved.cwd) == (2, run.resolved.cwd)
    assert judge.resolved.access is not None
    assert judge.resolved.access.level is AccessLevel.READ
    assert await world.folded(run_id) == run


@pytest.mark.requirement("judge:quiet")
async def test_only_the_judged_run_announces_itself(world: World) -> None:
    run_id = await world.spawn("writer", verification=contract())
    await world.until(run_id)
    await world.clock.idle()

    unread = world.store.inbox(None, unconsumed=True)

    assert [row.message.id for row in unread] == [announcement_id(run_id)]


@pytest.mark.requirement("judge:last-step")
async def test_no_judge_is_paid_for_work_that_fails_a_cheap_check(world: World) -> None:
    run = await world.until(await world.spawn("quick", verification=contract()))

    assert run.outcome is not None
    assert run.outcome.reason is Reason.VERIFICATION_FAILED
    assert not run.children


@pytest.mark.requirement("judge:undecided")
async def test_a_judge_whose_run_fails_decides_nothing(world: World) -> None:
    run_id = await world.spawn("writer", verification=contract("judge_fails"))

    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.reason is Reason.COULD_NOT_CHECK
    assert "the judge could not decide: its run failed: exit code 1" in str(run.outcome.error)


@pytest.mark.requirement("judge:deadline")
async def test_a_judge_has_a_deadline(world: World) -> None:
    wanted = contract("hang", run_timeout_seconds=30)
    begun = world.clock.now_ms()

    run = await world.until(await world.spawn("writer", verification=wanted))

    assert run.outcome is not None
    assert "the judge could not decide: its run timed out" in str(run.outcome.error)
    assert 30_000 <= world.clock.now_ms() - begun < 60_000


@pytest.mark.requirement("judge:deadline", "judge:budget")
async def test_a_judge_ends_within_the_time_that_the_judged_runs_budget_leaves(
    world: World,
) -> None:
    run_id = await world.spawn(
        "writer", verification=contract("hang"), budget=Budget(max_seconds=20)
    )

    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.status is Status.ERROR
    judge = await judge_of(world, run_id)
    assert judge.resolved.timeout_ms <= 18_000


@pytest.mark.requirement("judge:crash")
@pytest.mark.parametrize("reboot", [False, True])
async def test_a_killed_daemon_finds_the_judge_at_work_and_takes_its_verdict(
    world: World, *, reboot: bool
) -> None:
    run_id = await world.spawn("writer", verification=contract())
    judge = await until_judged(world, run_id)

    await world.restart(reboot=reboot)
    run = await world.until(run_id)

    # After a reboot its worker is gone, so there is no verdict; else the same one goes on.
    assert run.outcome is not None
    assert (run.outcome == OK) is not reboot
    assert [child.run_id for child in run.children] == [judge.id]
    # At the spawn, before the work, and once after it; and what was left, where it failed.
    assert world.checks == 3 + reboot


@pytest.mark.requirement("judge:crash", "judge:once")
def test_asking_again_after_a_crash_spawns_no_second_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    start = Judges.start

    def start_twice(self: Judges, run: Run, number: int) -> object:
        asked.append(number)
        start(self, run, number)
        return start(self, run, number)

    monkeypatch.setattr(Judges, "start", start_twice)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("writer", verification=contract())
        run = await world.until(run_id)

        assert asked == [1]
        assert len(run.children) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("judge:crash", "judge:once")
def test_a_crash_before_the_judge_was_spawned_spawns_it_after_the_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        start = Judges.start
        monkeypatch.setattr(Judges, "start", _breaks)
        run_id = await world.spawn("writer", verification=contract())

        def is_asked() -> bool:
            return bool(world.engine.ledger.published[run_id].verification.passed)

        await world.clock.until(is_asked)
        await world.crash()
        monkeypatch.setattr(Judges, "start", start)
        await world.boot()
        run = await world.until(run_id)

        assert run.outcome == OK
        assert len(run.children) == 1
        assert world.checks == 3

    in_world(tmp_path, scenario)


def _breaks(_self: Judges, _run: Run, _number: int) -> None:
    raise OSError("the daemon is killed here")


@pytest.mark.requirement("judge:cancel")
async def test_cancelling_the_judged_run_ends_its_judge_first(world: World) -> None:
    run_id = await world.spawn("writer", verification=contract("hang"))
    judge = await until_judged(world, run_id)

    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.status is Status.CANCELLED
    assert f"{judge.id}#1" in world.runtime.stopped
    assert (await world.until(judge.id)).outcome != OK


@pytest.mark.requirement("judge:budget")
@pytest.mark.world(abilities=Abilities(scope_tools=True, usage=True))
async def test_what_a_judge_uses_counts_towards_the_judged_run_and_its_budget(world: World) -> None:
    run_id = await world.spawn(
        "writer", verification=contract("judge_spends"), budget=Budget(max_tokens=200)
    )

    run = await world.until(run_id)

    assert run.children[0].spent.tokens_in == 300
    assert run.outcome is not None
    assert run.outcome.reason is Reason.COULD_NOT_CHECK
    assert "the judge could not decide: its run completed partially" in str(run.outcome.error)


@pytest.mark.requirement("judge:budget")
async def test_no_number_of_runs_keeps_a_judge_from_its_work(world: World) -> None:
    run_id = await world.spawn("writer", verification=contract(), budget=Budget(max_runs=1))

    assert (await world.until(run_id)).outcome == OK


@pytest.mark.requirement("judge:budget")
async def test_a_judge_for_which_nothing_is_left_is_not_started(world: World) -> None:
    wanted = contract(budget=Budget(max_tokens=900))
    run_id = await world.spawn("writer", verification=wanted, budget=Budget(max_tokens=500))

    run = await world.until(run_id)

    assert not run.children
    assert run.outcome is not None
    assert "the judge could not decide: the budget of run" in str(run.outcome.error)


@pytest.mark.requirement("judge:spawn")
async def test_a_judge_spawns_nothing(world: World) -> None:
    judge = await until_judged(world, await world.spawn("writer", verification=contract()))

    with pytest.raises(Forbidden, match="judges a contract"):
        await world.spawn_child(judge.id)


@pytest.mark.requirement("judge:contract")
async def test_a_judge_that_breaks_its_own_contract_decides_nothing(world: World) -> None:
    own = Checks(artifacts=(Artifact(path="review.md"),))

    run = await world.until(
        await world.spawn(
            "writer", verification=contract(verification=own, access=AccessLevel.FULL)
        )
    )

    assert run.outcome is not None
    assert "the judge could not decide: its run failed: File review.md" in str(run.outcome.error)
