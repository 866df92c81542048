"""Where a run's files are: here, or on the node at which its newest attempt has its place."""

import asyncio
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from subagents.domain.run.outcome import Verdict, Verification
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.workspace import Changes, Worktree
from subagents.engine.records.artifact_files import ArtifactFiles
from subagents.engine.verification.verifier import Verifier
from subagents.engine.verification.work_root import real, root_of
from subagents.errors import NotFound, UsageError
from subagents.ports import Before, Diff, OffLoop, Planned, Worktrees


class LocalWorkplace:
    """See ``ports.Workplace``: this node's files, whoever decides about their runs.

    Args:
        verifier: Checks contracts.
        artifacts: Keeps what passed.
        worktrees: None = none can be made here.
        off_loop: Looks at files.
    """

    def __init__(
        self,
        verifier: Verifier,
        artifacts: ArtifactFiles,
        worktrees: Worktrees | None,
        off_loop: OffLoop,
    ) -> None:
        self._verifier = verifier
        self._artifacts = artifacts
        self._worktrees = worktrees
        self._off_loop = off_loop
        self._verifying: WeakValueDictionary[RunId, asyncio.Lock] = WeakValueDictionary()

    async def plan(self, run: Run) -> Planned:
        """See ``ports.Workplace.plan``."""
        wanted = run.resolved
        planned = await self._trees.plan(wanted.project, run_id=run.id, label=wanted.label)
        # Without links: an agent's contract is kept to it.
        return replace(planned, cwd=await self._off_loop(lambda: real(planned.cwd)))

    async def prepare(self, run: Run, *, attempt: int, afresh: bool) -> None:
        """See ``ports.Workplace.prepare``."""
        await self._trees.prepare(run.id, _tree_of(run), attempt=attempt, afresh=afresh)

    async def before(self, run: Run) -> Before:
        """See ``ports.Workplace.before``."""
        contract = run.spec.verification
        if contract is None:
            raise UsageError(f"run {run.id} has no contract", details={"field": "verification"})
        return await self._verifier.before(contract, root_of(run.resolved))

    async def verify(self, run: Run, env: Mapping[str, str]) -> Verification:
        """See ``ports.Workplace.verify``."""
        contract = run.spec.verification
        if contract is None:
            raise UsageError(f"run {run.id} has no contract", details={"field": "verification"})
        one_at_a_time = self._verifying.setdefault(run.id, asyncio.Lock())
        async with one_at_a_time:
            found = await self._verifier.verify(
                contract,
                root=root_of(run.resolved),
                attempt=run.attempt,
                marker_env={**env, "SUBAGENTS_RUN_ID": run.id},
                baseline=run.verification.baseline,
                commands_trusted=run.resolved.commands_trusted,
                compares=run.spec.retry_until_verified > 0,
            )
            if found.verdict is Verdict.PASSED:
                await self._artifacts.keep(run)
            return found

    async def existing(self, run: Run, paths: Sequence[str]) -> tuple[str, ...]:
        """See ``ports.Workplace.existing``."""
        if not paths:
            return ()
        root = root_of(run.resolved)
        return await self._off_loop(lambda: tuple(each for each in paths if root.is_file(each)))

    async def changes(self, run: Run) -> Changes | None:
        """See ``ports.Workplace.changes``."""
        tree = run.resolved.worktree
        return None if tree is None else await self._trees.changes(run.id, tree)

    async def diff(self, run: Run, path: str | None, *, bytes_max: int) -> Diff:
        """See ``ports.Workplace.diff``."""
        return await self._trees.diff(_tree_of(run), path, bytes_max=bytes_max)

    async def remove_clean(self, run: Run) -> bool:
        """See ``ports.Workplace.remove_clean``."""
        return await self._trees.remove_clean(run.id, _tree_of(run))

    @property
    def _trees(self) -> Worktrees:
        if self._worktrees is None:
            raise UsageError("worktrees are not available here", details={"field": "isolation"})
        return self._worktrees


def _tree_of(run: Run) -> Worktree:
    if run.resolved.worktree is None:
        raise NotFound(f"run {run.id} has no worktree of its own: nothing compares its files")
    return run.resolved.worktree
