"""A worktree that is on another node is looked at and removed there."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.repository import a_repository
from tests.runtimes.remote.loopback_nodes import LoopbackClient, NodeServer

from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import Worktree
from subagents.engine.kernel.threads import DaemonThreads
from subagents.errors import NotFound, RuntimeUnavailable
from subagents.runtimes.git.git_worktrees import GitWorktrees
from subagents.runtimes.remote.attempt_calls import encode
from subagents.runtimes.remote.worktree_calls import (
    PATH,
    RemoteWorktrees,
    WorktreeCall,
    WorktreeHost,
)

T = TypeVar("T")
NODE = "b"
ME = RunId("r-0000000001")
BYTES_MAX = 100_000


class Far:
    """A node with worktrees and its door, and one of them."""

    def __init__(self, root: Path) -> None:
        self._threads = DaemonThreads("worktrees")
        self.there = GitWorktrees(root / "trees", self._threads, os.environ)
        self.client = LoopbackClient({NODE: NodeServer(None, WorktreeHost(self.there))})
        self.tree = self._made(a_repository(root / "repository"))

    def _made(self, repository: Path) -> Worktree:
        planned = asyncio.run(self.there.plan(str(repository), run_id=ME, label="fix"))
        asyncio.run(self.there.prepare(ME, planned.tree, attempt=1, afresh=True))
        return planned.tree

    def ask(self, question: Callable[[RemoteWorktrees], Awaitable[T]]) -> T:
        async def asked() -> T:
            return await question(RemoteWorktrees(NODE, self.client))

        return asyncio.run(asked())

    def diff(self, path: str | None = None) -> str:
        return self.ask(lambda far: far.diff(self.tree, path, bytes_max=BYTES_MAX)).text

    def close(self) -> None:
        self._threads.close()


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    found = Far(tmp_path)
    with found.client.nodes[NODE]:
        yield found
    found.close()


@pytest.mark.requirement("cluster:run-files")
def test_what_was_changed_in_a_worktree_on_another_node_is_had_from_there(far: Far) -> None:
    Path(far.tree.path, "sub", "a.txt").write_text("one\ntwo\nthree\n")
    Path(far.tree.path, "new.txt").write_text("new\n")
    assert "+three" in far.diff()
    assert "+three" not in far.diff("new.txt")
    changes = far.ask(lambda found: found.changes(ME, far.tree))
    assert changes == asyncio.run(far.there.changes(ME, far.tree))
    assert not far.ask(lambda found: found.remove_clean(ME, far.tree))
    assert Path(far.tree.path).exists()


@pytest.mark.requirement("cluster:run-files")
def test_a_clean_worktree_on_another_node_is_removed_there_and_then_is_not_found(far: Far) -> None:
    assert far.ask(lambda found: found.remove_clean(ME, far.tree))
    assert not Path(far.tree.path).exists()
    with pytest.raises(NotFound, match="is not there"):
        far.diff()
    assert far.ask(lambda found: found.changes(ME, far.tree)) is None


@pytest.mark.requirement("cluster:run-files")
def test_a_node_that_is_over_or_says_no_is_named(far: Far) -> None:
    shutil.rmtree(Path(far.tree.path, ".git"), ignore_errors=True)
    Path(far.tree.path, ".git").unlink(missing_ok=True)
    with pytest.raises(RuntimeUnavailable, match="on node b"):
        far.diff()
    body = encode(WorktreeCall(tree=far.tree))
    for name, content, why in (("polish", body, "knows no call"), ("diff", b"{", "not a call")):
        asked = far.client.request(NODE, "POST", PATH + name, content, timeout_s=10)
        answer = asyncio.run(asked)
        assert (answer.status, why in answer.body.decode()) == (409, True)
    far.client.over.add(NODE)
    with pytest.raises(RuntimeUnavailable, match="the worktree is on node b, which does not"):
        far.diff()
    changes = far.ask(lambda found: found.changes(ME, far.tree))
    assert changes is not None
    assert "does not answer" in (changes.error or "")
