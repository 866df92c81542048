"""How git is run: without hooks, without our environment, and not for ever."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.runtimes.git.worktree_harness import ME, Harness

from subagents.engine.kernel.threads import DaemonThreads
from subagents.errors import UsageError
from subagents.runtimes.git.git import Git, GitFailed
from subagents.runtimes.git.git_worktrees import GitWorktrees


@pytest.mark.requirement("git:no-hooks", "git:own-environment")
def test_a_repositorys_hooks_and_our_environment_do_not_reach_git(
    harness: Harness, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    harness.prepare(harness.plan(repository).tree)
    assert not (tmp_path / "hooked").exists()


@pytest.mark.requirement("git:bounded")
def test_git_that_hangs_is_ended_and_named(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 1000\n")
    program.chmod(0o755)
    slow = Git(tmp_path, {"PATH": f"{program.parent}:{os.environ['PATH']}"})
    with pytest.raises(GitFailed, match=r"git status did not end within 0 s"):
        slow("status", timeout_s=0.2)


@pytest.mark.requirement("git:missing")
def test_a_machine_without_git_refuses_the_worktree_and_says_so(tmp_path: Path) -> None:
    async def play() -> None:
        threads = DaemonThreads("git")
        trees = GitWorktrees(tmp_path / "trees", threads, {"PATH": str(tmp_path)})
        try:
            await trees.plan(str(tmp_path), run_id=ME, label="x")
        finally:
            threads.close()

    with pytest.raises(UsageError, match="there is no git") as refused:
        asyncio.run(play())
    assert (refused.value.hint or "").startswith("install git")
