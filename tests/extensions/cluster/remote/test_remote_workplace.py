"""Files on another node are made, looked at and checked there, as those here are."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.builders import Life, a_resolved
from tests.extensions.cluster.remote.loopback_nodes import LoopbackClient, NodeServer
from tests.repository import a_repository, git
from tests.runtimes.attempt_harness import BOUND_S, off_loop, until_async

from subagents.domain.run.events import WorktreePlanned
from subagents.domain.run.outcome import Verdict
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Artifact, Contract, Isolation, RunSpec
from subagents.domain.run.values import replace
from subagents.engine.attempts.workplaces import LocalWorkplace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.records.artifact_files import ArtifactFiles
from subagents.engine.verification.verifier import Verifier
from subagents.errors import NodeUnreachable, NotFound, RuntimeUnavailable, UsageError
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.remote.remote_workplace import RemoteWorkplace
from subagents.extensions.cluster.remote.slots import Slots
from subagents.extensions.worktrees.git_worktrees import GitWorktrees

NODE = "b"
CONTRACT = Contract(artifacts=(Artifact(path="out.txt"),), commands=("test $SAID = yes",))


class Far:
    """A node with files, and how its owner reaches them."""

    def __init__(self, root: Path) -> None:
        self.repository = a_repository(root / "repository")
        self.trees = root / "trees"
        threads = DaemonThreads("checks")
        verifier = Verifier(threads, SystemClock(), commands_allowed=True)
        worktrees = GitWorktrees(self.trees, DaemonThreads("trees"), os.environ)
        self.here = LocalWorkplace(verifier, ArtifactFiles(off_loop), worktrees, off_loop)
        health = NodeHealth(lambda: None, SystemClock().elapsed_ms)
        slots = Slots(root / "attempts", None, SystemClock().elapsed_ms, health)
        self.door = NodeServer(AttemptHost({}, slots, off_loop, {}), self.here)
        self.client = LoopbackClient({NODE: self.door})
        self.there = RemoteWorkplace(NODE, self.client, SystemClock())

    def run(self, directory: Path | None = None, contract: Contract | None = None) -> Run:
        """One that was placed there and wants a worktree."""
        spec = RunSpec(task="do it", isolation=Isolation.WORKTREE, verification=contract)
        cwd = str(directory or self.repository / "sub")
        life = Life.begin(spec, a_resolved(cwd=cwd, place=NODE, contract_root=cwd)).grant()
        life.child()  # what comes with it over the line is not only plain fields
        attempt = replace(life.run.attempt, node=NODE)
        return replace(life.run, attempts=(attempt,))

    async def with_tree(self, contract: Contract | None = None) -> Run:
        """The same when its worktree is there."""
        run = self.run(contract=contract)
        planned = await self.there.plan(run)
        tree = replace(planned.tree, node=NODE)
        life = Life(run=run, journal=[])
        life.apply(WorktreePlanned(at_ms=life.at_ms, worktree=tree, cwd=planned.cwd))
        await self.there.prepare(life.run, attempt=1, afresh=False)
        return life.run


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    far = Far(tmp_path)
    with far.door:
        yield far


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(BOUND_S):
            await scenario()

    asyncio.run(bounded())


@pytest.mark.requirement("cluster:files-at-place")
def test_a_worktree_there_is_planned_made_compared_and_removed(far: Far) -> None:
    async def go() -> None:
        run = await far.with_tree()
        assert run.resolved.cwd == run.resolved.contract_root
        work = Path(run.resolved.cwd)
        assert (work.parent.parent, work.name) == (far.trees, "sub")
        assert (work / "a.txt").read_text() == "one\ntwo\n"
        (work / "b.txt").write_text("new\n")
        assert await far.there.existing(run, ["b.txt", "c.txt"]) == ("b.txt",)
        changes = await far.there.changes(run)
        assert changes is not None
        assert [each.path for each in changes.changed] == ["sub/b.txt"]
        assert "+new" in (await far.there.diff(run, None, bytes_max=10_000)).text
        assert not await far.there.remove_clean(run)
        git(work, "reset", "--quiet", "--hard", "HEAD~1")
        assert await far.there.remove_clean(run)
        assert not await off_loop(work.exists)
        with pytest.raises(UsageError, match="on node b"):
            await far.there.diff(run, None, bytes_max=10_000)

    play(go)


@pytest.mark.requirement("cluster:files-at-place")
def test_a_contract_is_checked_there_with_what_its_commands_are_given(far: Far) -> None:
    async def go() -> None:
        run = await far.with_tree(CONTRACT)
        assert not (await far.there.before(run)).files
        missing = await far.there.verify(run, {"SAID": "yes"})
        assert [each.passed for each in missing.checks] == [False, True]
        (Path(run.resolved.cwd) / "out.txt").write_text("x")
        assert (await far.there.verify(run, {"SAID": "no"})).verdict is Verdict.FAILED
        assert (await far.there.verify(run, {"SAID": "yes"})).verdict is Verdict.PASSED

    play(go)


@pytest.mark.requirement("cluster:files-at-place")
def test_what_cannot_be_done_there_is_refused_in_its_words_and_with_its_name(
    far: Far, tmp_path: Path
) -> None:
    async def go() -> None:
        (tmp_path / "plain").mkdir()
        with pytest.raises(UsageError, match=r"on node b: .*is in no git repository"):
            await far.there.plan(far.run(tmp_path / "plain"))
        with pytest.raises(NotFound, match="no worktree of its own"):
            await far.here.diff(far.run(), None, bytes_max=1)

    play(go)


@pytest.mark.requirement("cluster:files-at-place")
def test_files_of_a_node_that_is_over_are_gone_and_those_of_a_silent_one_are_waited_for(
    far: Far,
) -> None:
    async def go() -> None:
        run = far.run()
        far.door.shut()
        asked = len(far.client.calls)
        existing = asyncio.ensure_future(far.there.existing(run, ["a.txt"]))
        await until_async("it asks", lambda: len(far.client.calls) > asked)
        # One that is about to be deleted is not worth it: all others that are due would wait, too.
        archived = replace(run, times=replace(run.times, archived_at_ms=1))
        with pytest.raises(NodeUnreachable):
            await far.there.existing(archived, ["a.txt"])
        far.door.open()
        assert await existing == ("a.txt",)
        far.client.over.add(NODE)
        with pytest.raises(RuntimeUnavailable, match="node b is over, and the files of r-"):
            await far.there.existing(run, ["a.txt"])

    play(go)
