"""What runs left in worktrees is in the environment of those that wait for them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Life, a_dependency
from tests.cli.cli_home import Home
from tests.engine.world import World
from tests.extensions.worktrees.test_runs_in_worktrees import isolated, spawn, with_worktrees
from tests.page_blocks import ROOT, blocks
from tests.repository import a_repository, git

from subagents.config.settings import Settings
from subagents.domain.run.linked_runs import Dependency
from subagents.domain.run.outcome import OK
from subagents.domain.run.spec import Isolation
from subagents.domain.run.values import replace
from subagents.domain.run.workspace import BranchLeft
from subagents.extensions.worktrees.previous_worktrees import VALUES_BYTES_MAX, worker_env

PAGE = ROOT / "docs" / "howto" / "parallel-changes.md"
GH = """#!/bin/sh
[ "$1 $2 $3 $5" = "pr create --head --title" ] || exit 2
git ls-remote --exit-code origin "$4" >/dev/null || exit 3
echo "https://forge.example/pull/1 $4 ${8}"
"""


def env_of(*dependencies: Dependency) -> dict[str, str]:
    run = Life.begin(dependencies=dependencies).run
    return dict(worker_env(run, lambda _: None, Settings()))


def left(label: str, number: int = 1, branch: str | None = None) -> Dependency:
    found = BranchLeft(branch=branch or label, path="/w", base="c0ffee", diffstat="1 file")
    return replace(a_dependency(number, OK), label=label, left=found)


@pytest.mark.requirement("worktree:previous")
def test_the_only_worktree_is_told_with_and_without_its_label_and_several_with_it() -> None:
    values = {"BRANCH": "fix it", "WORKTREE": "/w", "BASE": "c0ffee", "DIFFSTAT": "1 file"}
    one = env_of(left("fix it"), a_dependency(2, OK))
    prefixes = ("SUBAGENTS_PREVIOUS_", "SUBAGENTS_PREVIOUS_FIX_IT_")
    assert one == {f"{prefix}{key}": v for prefix in prefixes for key, v in values.items()}

    several = env_of(left("test (a, 1)"), left("test-a-1", 2), left("\u4fee", 3))
    named = {key: value for key, value in several.items() if key.endswith("_BRANCH")}
    assert named == {
        "SUBAGENTS_PREVIOUS_TEST_A_1_BRANCH": "test (a, 1)",
        "SUBAGENTS_PREVIOUS_R_D000000003_BRANCH": "\u4fee",
    }


@pytest.mark.requirement("worktree:previous")
@given(st.lists(st.integers(1, VALUES_BYTES_MAX), max_size=4))
def test_a_worker_is_told_of_as_many_as_leave_room_for_its_task(sizes: list[int]) -> None:
    env = env_of(*(left(f"l{n}", n, "b" * size) for n, size in enumerate(sizes)))
    assert sum(len(f"{key}={value}") for key, value in env.items()) <= VALUES_BYTES_MAX


@pytest.mark.requirement("worktree:previous")
@pytest.mark.parametrize("is_over", [True, False])
async def test_a_run_knows_what_another_left_whether_that_ended_before_or_after_its_spawn(
    world: World, tmp_path: Path, *, is_over: bool
) -> None:
    repository = a_repository(tmp_path / "repository")
    with_worktrees(world, tmp_path / "trees")
    write = {"write": {"path": "new.txt", "text": "x"}}
    script = (write, {"result": "x"})
    place = {"isolation": Isolation.WORKTREE, "cwd": str(repository)}
    if is_over:
        first = (await isolated(world, repository, *script)).id
    else:
        first = await spawn(world, *script, **place)
    second = await spawn(world, {"result": "y"}, depends_on=(first,))
    run = await world.until(second)
    (known,) = run.waiting.dependencies
    tree = (await world.engine.queries.run(first)).resolved.worktree
    assert tree is not None
    assert known.left == BranchLeft(
        branch=tree.branch,
        path=tree.path,
        base=git(repository, "rev-parse", "HEAD"),
        diffstat="1 file changed, +1 -0, 1 commit",
    )
    assert await world.folded(second) == run


@pytest.mark.requirement("worktree:pull-request")
def test_the_last_step_of_a_plan_pushes_the_branch_and_opens_a_pull_request(home: Home) -> None:
    a_repository(home.work)
    remote, bin_ = home.root / "remote.git", home.root / "bin"
    git(home.work, "init", "--quiet", "--bare", str(remote))
    git(home.work, "remote", "add", "origin", str(remote))
    bin_.mkdir()
    (bin_ / "gh").write_text(GH)
    (bin_ / "gh").chmod(0o755)
    home.environ["PATH"] = f"{bin_}:{home.env()['PATH']}"
    (plan,) = (each.body for each in blocks(PAGE) if each.language == "toml")
    (home.work / "pull-request.toml").write_text(plan)

    said = home.ok("plan", "run", "pull-request.toml").out
    branch = git(home.work, "for-each-ref", "--format=%(refname:short)", "refs/heads/subagents")
    assert f"https://forge.example/pull/1 {branch} 1 file changed, +1 -0, 1 commit" in said
    assert git(remote, "show", f"{branch}:login.txt") == "fixed"

    (home.work / "idle.toml").write_text(plan.replace("echo fixed > login.txt", "true"))
    assert "0 of 2 ok" in home.cli("plan", "run", "idle.toml").err
    assert git(remote, "for-each-ref", "--format=%(refname:short)") == branch
