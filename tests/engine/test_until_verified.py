"""A failed contract goes back to its worker until it is met, or nothing changes any more."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.outcome import OK, Reason
from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import RunId, replace
from subagents.runtimes.scripted import ScriptedRuntime

FOUR: Final = Contract(artifacts=(Artifact(path="out.json", json=True, min_items=4),))
SAME: Final = "no file changed, and the same checks failed in the same way"

Step = Mapping[str, object]


def items(count: int) -> Step:
    return {"write": {"path": "out.json", "text": str([1] * count)}}


def spawn(world: World, *script: Step, **spec: Any) -> Any:
    work = world.directory / "work"  # beside the database, which changes
    work.mkdir()
    settings = world.with_script("fixer", *script)
    spec = {"verification": FOUR, "cwd": str(work), **spec}
    return world.spawn("fixer", settings=settings, **spec)


ONE_MORE_EACH: Final = (
    *(items(1), {"result": "1"}, {"continued": True}),
    *({"attempt": 2}, items(2), {"result": "2"}, {"attempt": 3}, items(3), {"result": "3"}),
    *({"attempt": 4}, items(4), {"result": "4"}),
)


@pytest.mark.requirement("retry:until-verified")
async def test_a_worker_that_mends_one_fault_at_a_time_is_verified_in_its_one_session(
    world: World,
) -> None:
    run = await world.until(await spawn(world, *ONE_MORE_EACH, retry_until_verified=3))

    assert (run.outcome, run.result, len(run.attempts)) == (OK, "4", 4)
    before = [None, *(each.session.native for each in run.attempts[:-1])]
    assert [each.session.resumes for each in run.attempts] == before
    assert [each.native_session for each in world.runtime.launches] == before
    assert "out.json has 3 items, minimum 4" in world.runtime.launches[-1].prompt
    assert await world.folded(run.id) == run


def fixed(count: int) -> Step:
    # Of another size each time: Python takes a module of the same second and size for the same.
    values = "".join(f"{name} = {'1.0' if at < count else 0}\n" for at, name in enumerate("abc"))
    return {"write": {"path": "shop.py", "text": values}}


@pytest.mark.requirement("retry:until-verified")
async def test_a_failing_test_suite_is_green_at_the_fourth_attempt_of_one_session(
    world: World,
) -> None:
    tests = "".join(f"def test_{name}(): assert shop.{name} == 1\n" for name in "abc")
    suite = {"write": {"path": "test_shop.py", "text": f"import shop\n{tests}"}}
    script: list[Step] = [suite, fixed(0), {"continued": True}]
    for number in (2, 3, 4):
        script += [{"attempt": number}, fixed(number - 1), {"result": f"fixed {number - 1}"}]
    green = Contract(
        commands=(f"{sys.executable} -m pytest -q -p no:cacheprovider",),
        verification_timeout_ms=300_000,
    )
    wanted = {"verification": green, "retry_until_verified": 3}
    run = await world.until(await spawn(world, *script, **wanted))

    assert (run.outcome, run.result, len(run.attempts)) == (OK, "fixed 3", 4)
    assert {each.session.resumes is None for each in run.attempts[1:]} == {False}
    assert "1 failed, 2 passed" in world.runtime.launches[-1].prompt
    assert "assert 0 == 1" in world.runtime.launches[-1].prompt


@pytest.mark.requirement("retry:until-verified-sameness")
async def test_work_that_changes_nothing_is_stopped_at_its_second_attempt_and_says_so(
    world: World,
) -> None:
    script = ({"result": "it cannot be done"}, {"continued": True}, {"result": "really"})
    run = await world.until(await spawn(world, *script, retry_until_verified=9))

    assert run.outcome is not None
    assert run.outcome.reason is Reason.VERIFICATION_FAILED
    assert (run.outcome.error or "").startswith(f"stopped after attempt 2: {SAME}: File out.")
    assert (run.result, len(run.attempts)) == ("really", 2)
    (told,) = world.store.inbox(None, unconsumed=True)
    assert SAME in told.message.text
    assert await world.folded(run.id) == run


@pytest.mark.requirement("retry:until-verified-sameness", "verification:restart")
async def test_a_restart_between_the_attempts_forgets_nothing(world: World) -> None:
    script = (items(1), {"result": "1"}, {"continued": True}, {"sleep_ms": 60_000})
    run_id: RunId = await spawn(world, *script, retry_until_verified=9, retry_count=1)
    await world.clock.until(lambda: world.runtime.starts_of(run_id) == 2)
    await world.restart()
    run = await world.until(run_id)

    assert run.outcome is not None
    assert SAME in (run.outcome.error or "")
    assert await world.folded(run_id) == run


@pytest.mark.requirement("retry:until-verified-afresh")
@pytest.mark.parametrize("resume", [True, False])
def test_afresh_and_without_sessions_the_whole_task_is_given_again(
    tmp_path: Path, *, resume: bool
) -> None:
    async def scenario(world: World) -> None:
        script = ({"attempt": 1}, items(1), {"attempt": 2}, items(4), {"result": "2"})
        run = await world.until(
            await spawn(world, *script, task="go", retry_until_verified=1, retry_afresh=resume)
        )

        assert (run.outcome, run.attempts[1].session.resumes) == (OK, None)
        prompt = world.runtime.launches[-1].prompt
        assert prompt.startswith("[RETRY — Previous attempt failed verification]\nFailure reason: ")
        assert prompt.endswith("Original task: go")

    in_world(tmp_path, scenario, abilities=replace(ScriptedRuntime.abilities, resume=resume))
