"""Runs of an engine that has worktrees: what they find, leave and continue there."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.engine.world import ME, World, in_world
from tests.repository import a_repository, branches, git

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Artifact, Contract, Isolation
from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import Remains
from subagents.engine.attempts import workspaces
from subagents.extensions.worktrees.git_worktrees import GitWorktrees

TALK: Mapping[str, object] = {"print": "first I look\nthen I write"}


async def spawn(world: World, *script: Mapping[str, object], **spec: object) -> RunId:
    return await world.spawn("talker", settings=world.with_script("talker", *script), **spec)


def with_worktrees(world: World, home: Path) -> None:
    trees = GitWorktrees(home, world.off_loop, os.environ)
    world.engine.workspaces.worktrees = world.engine.workplace._worktrees = trees


async def isolated(world: World, repository: Path, *script: Mapping[str, object]) -> Run:
    run_id = await spawn(world, *script, isolation=Isolation.WORKTREE, cwd=str(repository))
    return await world.until(run_id, Phase.COMPLETED)


@pytest.mark.requirement("worktree:sweep:pruned")
async def test_the_worktree_of_a_deleted_run_goes_when_it_is_clean_and_stays_with_its_work(
    world: World, tmp_path: Path
) -> None:
    repository, home = a_repository(tmp_path / "repository"), tmp_path / "trees"
    with_worktrees(world, home)
    write: Mapping[str, object] = {"write": {"path": "new.txt", "text": "work"}}
    kept = await isolated(world, repository, write, {"result": "x"})
    undone = await isolated(world, repository, write, {"result": "y"})
    for run in (kept, undone):
        assert run.resolved.worktree is not None
        assert run.remains.changes is not None
        assert run.remains.changes.files == 1
    assert undone.resolved.worktree is not None
    git(Path(undone.resolved.cwd), "reset", "--quiet", "--hard", "HEAD~1")
    await world.clock.result(world.engine.mailbox.acknowledge(await unread(world), reader="me"))
    world.clock.jump(30 * 24 * 3600)
    await world.clock.result(world.engine.sweep.once())
    await world.clock.result(world.engine.sweep.once())

    assert world.store.run(kept.id) is None
    assert kept.resolved.worktree is not None
    assert is_there(kept.resolved.cwd, "new.txt")
    assert branches(repository) == ["main", kept.resolved.worktree.branch]
    assert not is_there(undone.resolved.cwd)


def is_there(*parts: str) -> bool:
    return Path(*parts).exists()


async def unread(world: World) -> list[str]:
    rows = await world.engine.mailbox.offer_inbox(ME, reader="me")
    return [row.message.id for row in rows]


@pytest.mark.requirement("isolation:vacuous")
async def test_a_contract_that_the_last_commit_meets_already_is_marked_when_the_worktree_is_made(
    world: World, tmp_path: Path
) -> None:
    repository = a_repository(tmp_path / "repository")
    with_worktrees(world, tmp_path / "trees")
    contract = Contract(artifacts=(Artifact(path="sub/a.txt", fresh=False),))
    run_id = await spawn(
        world,
        {"result": "x"},
        isolation=Isolation.WORKTREE,
        cwd=str(repository),
        verification=contract,
    )
    run = await world.until(run_id)
    assert run.verification.vacuous
    assert run.outcome is not None
    assert run.outcome.status is Status.OK


@pytest.mark.requirement("contract:fresh")
@pytest.mark.parametrize("text", ["by the worker", None])
async def test_a_file_of_the_last_commit_counts_when_the_worker_changed_it(
    world: World, tmp_path: Path, text: str | None
) -> None:
    repository = a_repository(tmp_path / "repository")
    with_worktrees(world, tmp_path / "trees")
    write: Mapping[str, object] = {"write": {"path": "sub/a.txt", "text": text}}
    run_id = await spawn(
        world,
        *([write] if text else []),
        {"result": "done"},
        isolation=Isolation.WORKTREE,
        cwd=str(repository),
        verification=Contract(artifacts=(Artifact(path="sub/a.txt"),)),
    )
    run = await world.until(run_id)
    assert run.outcome is not None
    assert run.outcome.is_ok is (text is not None)
    assert await world.folded(run_id) == run


@pytest.mark.requirement("isolation:continued")
async def test_a_run_that_goes_on_with_a_session_works_in_the_same_worktree(
    world: World, tmp_path: Path
) -> None:
    repository = a_repository(tmp_path / "repository")
    with_worktrees(world, tmp_path / "trees")
    first = await isolated(world, repository, {"result": "nothing to do"})
    assert not is_there(first.resolved.cwd), "it was clean"
    settings = world.with_script(
        "talker",
        {"continued": True},
        {"write": {"path": "b.txt", "text": "b"}},
        {"result": "ok"},
    )
    run_id = await world.spawn("talker", settings=settings, task="go on", continues=first.id)
    run = await world.until(run_id)
    assert run.resolved.worktree == first.resolved.worktree
    assert (Path(first.resolved.cwd) / "b.txt").read_text() == "b"
    assert run.remains.changes is not None
    assert [each.path for each in run.remains.changes.changed] == ["b.txt"]


@pytest.mark.requirement("salvage:bounded-look")
def test_a_worktree_that_could_not_be_looked_at_in_time_is_said_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "LOOK_S_MAX", 0)

    async def scenario(world: World) -> None:
        repository = a_repository(tmp_path / "repository")
        with_worktrees(world, tmp_path / "trees")
        apart = await isolated(world, repository, TALK, {"exit": 1})
        plain = await world.until(await spawn(world, TALK, {"exit": 1}))

        assert apart.remains.changes is not None
        assert apart.remains.changes.error == "not looked at within 0 s"
        assert plain.remains == Remains()

    in_world(tmp_path, scenario)
