"""A run for each item of another run's list, and gates, in an engine on a real database."""

import asyncio
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.engine.world import ME, TroubledStore, World, in_world

from subagents.domain.run.outcome import OK, Status
from subagents.domain.run.run import Decision, Phase, Run
from subagents.domain.run.spec import Budget, ForEach, RunSpec
from subagents.domain.run.values import RunId
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, SpawnContext
from subagents.errors import Forbidden
from subagents.extensions.plans.plans import Plans
from subagents.ports import Batch

THREE: Final = ["a.py", {"file": "b c.py"}, "-rf; $(id)\n"]


def listing(found: object) -> dict[str, object]:
    return {"result": found if isinstance(found, str) else json.dumps(found)}


async def plan(world: World, found: object = THREE, **fixing: Any) -> list[RunId]:
    """``find``, ``fix`` for each item and ``sum`` after it."""
    settings = world.with_script("lister", listing(found))
    each = {"task": "fix ${{ item }}", "agent_id": "quick", **fixing}
    wanted = {"run": "find", **each.pop("for_each", {})}
    specs = [
        RunSpec(task="find", label="find", agent_id="lister"),
        RunSpec(label="fix", for_each=ForEach(**wanted), **each),
        RunSpec(
            task="sum up",
            label="sum",
            agent_id="quick",
            depends_on=("fix",),
            include_dependency_result=True,
        ),
    ]
    context = SpawnContext(session=ME, settings=settings, cwd=str(world.directory))
    call = world.engine.spawner.spawn_batch(
        [RunAsked(spec=spec) for spec in specs], context, plan=PlanAsked(name="p")
    )
    return [each.run.id for each in await world.clock.result(call)]


def items(world: World, run: Run) -> list[Run]:
    found = [world.store.run(each.run_id) for each in run.children]
    return [each for each in found if each is not None]


@pytest.mark.requirement("for-each:runs")
async def test_each_item_has_a_run_and_what_waits_for_them_has_all_their_results(
    world: World,
) -> None:
    _, fix, last = await plan(world)
    run = await world.until(fix)
    await world.until(last)

    assert run.outcome == OK, run.outcome
    assert [each.spec.task for each in items(world, run)] == [
        "fix a.py",
        """fix '{"file":"b c.py"}'""",
        "fix '-rf; $(id)\n'",
    ]
    assert [each.resolved.label for each in items(world, run)] == [
        "fix a.py",
        "fix b c.py",
        "fix -rf; $(id)",
    ]
    (prompt,) = (each.prompt for each in world.runtime.launches if each.run_id == last)
    assert prompt.count("just completed successfully") == 3
    assert await world.folded(fix) == await world.run(fix)


class Stopping(TroubledStore):
    """Its commits wait for ever from one of them on."""

    left = 1_000_000
    is_written = False
    """The one that waits is on the disk, and nobody hears of it."""

    def commit(self, batch: Batch) -> int:
        self.left -= 1
        self.is_late = self.is_late or (self.left < 0 and self.is_written)
        self.is_held = self.is_held or (self.left < 0 and not self.is_written)
        return super().commit(batch)


@pytest.mark.requirement("durability:crash", "for-each:once")
@pytest.mark.parametrize("is_written", [False, True], ids=["before", "behind"])
def test_a_crash_at_any_commit_leaves_one_run_for_each_item(
    tmp_path: Path, *, is_written: bool
) -> None:
    async def scenario(world: World, commits: int) -> bool:
        await world.crash()
        store = Stopping(world.path)
        await world.boot(store=store)
        _, fix, last = await plan(world, gate="go on?")
        store.left, store.is_written = commits, is_written
        await world.clock.advance(1)
        has_stopped = False
        for _ in range(2):
            run = await world.run(fix)
            if run.pending_requests:
                answer = world.engine.questions.answer(
                    run.pending_requests[0].id, "", decision=Decision.APPROVE, by="me"
                )
                task = asyncio.ensure_future(answer)
                await world.clock.advance(30)
                task.cancel()
            if store.left < 0 and not has_stopped:
                has_stopped = True
                await world.restart()
                await world.clock.advance(30)

        run = await world.until(fix)
        assert (await world.until(last)).outcome == OK
        assert [each.outcome for each in items(world, run)] == [OK] * 3
        # A start that a crash left open is repeated, for the same attempt.
        assert len({each.attempt_id for each in world.runtime.launches}) == 5
        assert await world.folded(fix) == await world.run(fix)
        return has_stopped

    for commits in itertools.count():
        path = tmp_path / str(commits)
        path.mkdir()
        if not in_world(path, partial(scenario, commits=commits)):
            break
    assert commits > 5


@pytest.mark.requirement("for-each:refused")
@pytest.mark.parametrize(
    ("found", "fixing", "words"),
    [
        ('{"items": []}', {}, "is one JSON object and no list"),
        ("[1, 2", {}, "begins like a JSON list and is none"),
        (
            [1, 2, 3],
            {"for_each": {"max_items": 2}},
            "has 3 items, more than for_each.max_items = 2",
        ),
        ([{"a": 1}], {"task": "fix ${{ item.b }}"}, "item 1 has no 'b'; it has a"),
        ([1, ""], {}, "item 2 is empty"),
        ([1, 2], {"budget": Budget(max_runs=2)}, "has 1 of 2 runs left"),
        ([1], {"for_each": {"file": "other.json"}}, 'names "other.json"'),
    ],
)
async def test_a_list_that_is_none_starts_nothing_and_says_why(
    world: World, found: object, fixing: dict[str, Any], words: str
) -> None:
    _, fix, last = await plan(world, found, **fixing)
    run = await world.until(fix)

    assert run.outcome is not None
    assert run.outcome.status is Status.ERROR
    assert run.outcome.error is not None
    assert run.outcome.error.startswith('the list of for_each, from run "find": ')
    assert words in run.outcome.error
    assert not run.children
    assert (await world.until(last)).has_failed


@pytest.mark.requirement("for-each:runs")
async def test_an_empty_list_is_done_at_once(world: World) -> None:
    _, fix, last = await plan(world, [])

    assert ((await world.until(fix)).outcome, (await world.until(last)).outcome) == (OK, OK)


@pytest.mark.requirement("for-each:retry")
async def test_a_retry_of_the_plan_repeats_the_items_that_failed_and_keeps_the_others(
    world: World,
) -> None:
    find, fix, last = await plan(world, ["a", "b", "c"], agent_id="slow")
    second = (await world.until(fix, Phase.ENDING)).children[1].run_id
    await world.clock.result(world.engine.control.cancel(second, by=ME, reason="no"))
    run = await world.until(fix)
    assert (run.outcome and run.outcome.status) is Status.PARTIAL
    assert (
        run.outcome and run.outcome.error
    ) == "1 of 3 items did not end ok: fix b; the first: no"
    assert (await world.until(last)).has_failed
    before = len(world.runtime.launches)

    context = SpawnContext(session=ME, settings=world.settings)
    again = Plans(world.engine.queries, world.engine.spawner).retry(find, context)
    receipts = await world.clock.result(again)
    assert [each.run.resolved.label for each in receipts] == ["fix", "sum"]
    run = await world.until(receipts[0].run.id)
    assert (run.outcome, [each.label for each in run.children]) == (OK, ["fix b"])
    assert (await world.until(receipts[1].run.id)).outcome == OK
    assert len(world.runtime.launches) == before + 2
    assert world.runtime.launches[-1].prompt.count("just completed successfully") == 3


@pytest.mark.requirement("for-each:bounds")
async def test_at_most_so_many_items_are_at_work_and_a_cancel_ends_them_all(world: World) -> None:
    _, fix, last = await plan(world, ["a", "b", "c"], agent_id="hang", for_each={"max_parallel": 2})
    await world.until(fix, Phase.ENDING)
    await world.clock.advance(5)
    run = await world.run(fix)
    phases = [each.phase for each in items(world, run)]
    assert phases == [Phase.RUNNING, Phase.RUNNING, Phase.QUEUED]

    await world.clock.result(world.engine.control.cancel(fix, by=ME, reason="enough"))
    run = await world.until(fix)
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.error) == (Status.CANCELLED, "enough")
    assert all(each.is_settled for each in items(world, run))
    assert (await world.until(last)).has_failed


@pytest.mark.requirement("for-each:bounds")
async def test_a_cap_of_the_step_is_one_for_all_its_items(world: World) -> None:
    settings = world.with_script("spender", {"usage": {"tokensIn": 400}}, {"hang": True})
    world.settings = settings
    _, fix, _ = await plan(
        world, ["a", "b", "c"], agent_id="spender", budget=Budget(max_tokens=1000)
    )
    run = await world.until(fix)

    assert run.outcome is not None
    assert "1.2k of 1k tokens" in (run.outcome.error or "")
    assert all(each.is_settled for each in items(world, run))


@pytest.mark.requirement("gate:asks")
@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision.APPROVE, None),
        (Decision.DENY, '"Ship it?": denied by anna'),
        (None, '"Ship it?": nobody answered in time'),
    ],
)
async def test_a_gate_asks_once_what_it_waits_for_is_done_and_only_a_yes_opens_it(
    world: World, decision: Decision | None, words: str | None
) -> None:
    first, gate, ship = await world.clock.result(
        world.batch(
            RunSpec(task="build", label="build", agent_id="slow"),
            RunSpec(
                task="Ship it?",
                gate="Ship it?",
                label="ask",
                agent_id="quick",
                depends_on=("build",),
                dependency_timeout_seconds=3600,
            ),
            RunSpec(task="ship", label="ship", agent_id="quick", depends_on=("ask",)),
        )
    )
    await world.until(first, Phase.RUNNING)
    assert not (await world.run(gate)).pending_requests
    await world.until(first)
    await world.restart()
    (asked,) = (await world.run(gate)).pending_requests
    assert (asked.question, asked.by_spawn) == ("Ship it?", True)
    if decision is not None:
        answer = world.engine.questions.answer(asked.id, "", decision=decision, by="anna")
        await world.clock.result(answer)
    run = await world.until(ship, within_s=7200)

    assert run.outcome is not None
    assert run.outcome.is_ok is (words is None)
    assert words is None or words in (run.outcome.error or "")
    assert world.runtime.starts_of(gate) == 0
    assert await world.folded(gate) == await world.run(gate)


@pytest.mark.requirement("for-each:agents")
@pytest.mark.world(max_children_per_agent=2, max_spawn_depth=2)
async def test_an_agent_has_no_more_items_at_once_than_children(world: World) -> None:
    parent = await world.working()
    await world.spawn_child(parent, label="found")
    wanted: dict[str, Any] = {"task": "${{ item }}", "for_each": ForEach(run="found")}
    with pytest.raises(Forbidden, match="at most 2 of forEach"):
        await world.spawn_child(parent, **wanted)
    wanted["for_each"] = ForEach(run="found", max_parallel=2)
    await world.spawn_child(parent, **wanted)
