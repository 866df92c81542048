"""When two runs at work change the same file, their requesters hear of it once."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.engine.world import OTHER, World, in_world
from tests.extensions.worktrees.test_runs_in_worktrees import spawn, with_worktrees
from tests.repository import a_repository

from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.events import Alerted
from subagents.domain.run.spec import Isolation
from subagents.domain.run.values import RunId
from subagents.extensions.worktrees import same_paths

STAYS: tuple[Mapping[str, object], ...] = ({"sleep_ms": 600_000}, {"result": "x"})


def wrote(path: str) -> Mapping[str, object]:
    return {"write": {"path": path, "text": "x"}}


def edited(path: str, **more: object) -> Mapping[str, object]:
    return {"said": {"subagents": "tool", "name": "Edit", "input": {"file_path": path}, **more}}


def told(world: World, run_id: RunId) -> list[Alert]:
    events = (entry.event for entry in world.store.journal(run_id, limit=1_000))
    alerts = [event.alert for event in events if isinstance(event, Alerted)]
    return [alert for alert in alerts if alert.kind is AlertKind.SAME_PATH]


async def apart(
    world: World, repository: Path, *script: Mapping[str, object], **spec: object
) -> RunId:
    place = {"isolation": Isolation.WORKTREE, "cwd": str(repository)}
    return await spawn(world, *script, **place, **spec)


@pytest.mark.requirement("worktree:same-path")
async def test_two_worktrees_of_one_checkout_in_which_a_file_was_changed_are_named_once(
    world: World, tmp_path: Path
) -> None:
    here, there = (a_repository(tmp_path / name) for name in ("here", "there"))
    with_worktrees(world, tmp_path / "trees")
    first = await apart(world, here, wrote("own.txt"), wrote("sub/a.txt"), *STAYS, label="one")
    second = await apart(world, here, wrote("new.txt"), wrote("sub/a.txt"), *STAYS)
    behind = await apart(world, here, wrote("sub/a.txt"), *STAYS, depends_on=(first,))
    elsewhere = await apart(world, there, wrote("sub/a.txt"), *STAYS)
    await world.clock.advance(300)
    await world.restart()
    with_worktrees(world, tmp_path / "trees")
    await world.clock.advance(200)

    (alert,) = told(world, second)
    assert alert.text == f"🔀 sub/a.txt also changed by one ({first})"
    assert alert.fields == {
        "message": alert.text[2:],
        "path": "sub/a.txt",
        "otherRun": first,
    }
    await world.until(behind)
    assert [told(world, each) for each in (first, behind, elsewhere)] == [[], [], []]


@pytest.mark.requirement("worktree:same-path")
async def test_tools_say_what_runs_that_share_a_directory_write_and_both_requesters_hear(
    world: World, tmp_path: Path
) -> None:
    place = {"cwd": str(tmp_path)}
    first = await spawn(world, edited("a.py"), edited("b.py"), *STAYS, **place)
    failed = await spawn(world, edited("a.py", isError=True), *STAYS, **place)
    second = await spawn(
        world,
        edited(f"{tmp_path}/b.py"),
        edited("./a.py"),
        *STAYS,
        requester=OTHER,
        **place,
    )
    await world.clock.advance(100)

    assert [each.fields["otherRun"] for each in told(world, second)] == [first]
    (alert,) = told(world, first)
    assert alert.text.startswith("🔀 a.py and 1 file more also changed by")
    assert told(world, failed) == []


@pytest.mark.requirement("worktree:same-path")
def test_of_a_file_that_all_change_each_hears_of_a_few_and_none_of_its_own_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_paths, "OTHERS_MAX", 2)
    monkeypatch.setattr(same_paths, "LOOKED_AT_MAX", 1)

    async def scenario(world: World) -> None:
        place = {"cwd": str(tmp_path)}
        script = (edited("a" * 150), *STAYS)
        runs = [await spawn(world, *script, label=f"{n}" * 80, **place) for n in range(4)]
        world.settings = world.with_script("talker", *script)
        await world.clock.advance(5)
        child = await world.spawn_child(runs[0], "talker", **place)
        await world.clock.advance(400)

        assert [len(told(world, each)) for each in runs] == [0, 2, 2, 2]
        assert max(len(each.text) for run_id in runs for each in told(world, run_id)) <= 160
        assert runs[0] not in {each.fields["otherRun"] for each in told(world, child)}

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("worktree:same-path")
async def test_nothing_is_looked_at_while_one_run_is_at_work_alone(
    world: World, tmp_path: Path
) -> None:
    await spawn(world, edited("a.py"), *STAYS, cwd=str(tmp_path))
    await world.clock.advance(60)
    assert "same paths" not in {task.get_name() for task in asyncio.all_tasks()}
