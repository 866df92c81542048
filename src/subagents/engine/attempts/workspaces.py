"""Where runs work, and what they leave there: worktrees, last output, files of a contract.

Nothing here decides anything about a run. What cannot be read is left out, and what cannot be
removed stays where it is.
"""

import asyncio
import logging
from typing import Final

from subagents.domain.run.events import WorktreePlanned
from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import Attempt, Run
from subagents.domain.run.signals import Exited, Signal, Vanished
from subagents.domain.run.spec import Isolation, RunSpec
from subagents.domain.run.values import RunId, Value, replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.run.workspace import LEFT_MAX, WORDS_CHARS_MAX, Changes, Remains, Worktree
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.attempts.placement import WorkplaceOf
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.records.recorder import Recorder
from subagents.errors import CorruptState, NotFound, SubagentsError, Unavailable, UsageError
from subagents.ports import Diff, Worktrees
from subagents.text import cut_start

log = logging.getLogger(__name__)

DIFF_BYTES_MAX: Final = 1024 * 1024
LOOK_S_MAX: Final = 20.0
"""How long the end of an attempt waits until what it left is known."""
LAST_LINES: Final = 60
LOOK_AGAIN_MS: Final = 3_600_000
"""The time after which a worktree of a pruned run that has changes is checked again."""


class PlannedWorkspace(Value, frozen=True):
    """Where a run will work."""

    cwd: str
    tree: Worktree | None = None
    warnings: tuple[str, ...] = ()


class Workspaces:
    """Worktrees of runs, and what attempts left in them.

    Args:
        kernel: Has the runs.
        recorder: Has what workers said.
        worktrees: Of this node; None = none can be made here.
        at: Where a run's files are.
    """

    def __init__(
        self, kernel: Kernel, recorder: Recorder, worktrees: Worktrees | None, at: WorkplaceOf
    ) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._recorder = recorder
        self.worktrees = worktrees
        self._at = at
        self._looked_at_ms: dict[str, int] = {}

    # -- before an attempt -----------------------------------------------------------------

    async def plan(
        self, spec: RunSpec, cwd: str, *, run_id: RunId, label: str, is_here: bool
    ) -> PlannedWorkspace:
        """Where a run that wants to work in ``cwd`` will do so.

        Args:
            spec: What was asked for.
            cwd: Absolute and there.
            run_id: Of the new run.
            label: Of the new run.
            is_here: It asks for no place; where it has one, a worktree is planned by ``prepare``.

        Raises:
            UsageError: No worktree can be made of that directory; says the way out.
        """
        if spec.isolation is not Isolation.WORKTREE or not is_here:
            return PlannedWorkspace(cwd=cwd)
        if self.worktrees is None:
            raise UsageError(
                f'isolation "{spec.isolation}" is not available here',
                details={"field": "isolation"},
            )
        planned = await self.worktrees.plan(cwd, run_id=run_id, label=label)
        return PlannedWorkspace(cwd=planned.cwd, tree=planned.tree, warnings=planned.warnings)

    async def prepare(self, run: Run) -> Run:
        """Make the place of the run's newest attempt ready; safe to repeat.

        Returns:
            The run; its worktree is on record, which on another node is planned only now.

        Raises:
            RuntimeUnavailable: Not now.
            UsageError: Never.
        """
        if is_without_its_tree(run):
            planned = await self._at(run).plan(run)
            tree = replace(planned.tree, node=run.attempt.node)
            now = self._clock.now_ms()
            await self._ledger.apply(
                run.id, WorktreePlanned(at_ms=now, worktree=tree, cwd=planned.cwd)
            )
            run = self._ledger.published.get(run.id, run)
        if run.resolved.worktree is not None:
            afresh = begins_afresh(run.attempts)
            await self._at(run).prepare(run, attempt=run.attempt.number, afresh=afresh)
        return run

    # -- after an attempt ------------------------------------------------------------------

    async def remains(self, run: Run, seen: Signal) -> Remains | None:
        """What the newest attempt left in addition to its result; None = nothing worth a word.

        Args:
            run: As it is now, before its end.
            seen: The signal of its end.
        """
        if not run.attempts:
            return None
        attempt = run.attempt
        is_bad = _ended_badly(attempt, seen)
        has_said = bool((attempt.evidence.result or "").strip())
        if has_said and not is_bad and run.resolved.worktree is None:
            return None
        try:
            async with asyncio.timeout(LOOK_S_MAX):
                found = Remains(
                    words=None if has_said else await self._words(run, attempt),
                    files=await self._files(run) if is_bad else (),
                    changes=await self._at(run).changes(run) if run.resolved.worktree else None,
                )
        except TimeoutError:
            late = Changes(error=f"not looked at within {LOOK_S_MAX:.0f} s")
            found = Remains(changes=late if run.resolved.worktree is not None else None)
        except (Unavailable, OSError) as error:
            log.warning("what %s left was not looked at: %s", run.attempt_id, error)
            return None
        return None if found == Remains() else found

    async def _words(self, run: Run, attempt: Attempt) -> str | None:
        """The end of what it said; asked when it gave no result."""
        if self._recorder.is_silent(run):
            return None
        query = LogQuery(limit=LAST_LINES, types=(LineType.TEXT,), attempt=attempt.number)
        page = await self._recorder.read(run, query)
        text = "\n".join(line.text for line in page.lines).strip()
        return cut_start(text, WORDS_CHARS_MAX) or None

    async def _files(self, run: Run) -> tuple[str, ...]:
        """Artifacts of its contract that exist."""
        contract = run.spec.verification
        named = contract.artifacts if contract is not None else ()
        names = [each.path for each in named if not each.is_glob]
        return await self._existing(run, names[:LEFT_MAX])

    async def _existing(self, run: Run, names: list[str]) -> tuple[str, ...]:
        return await self._at(run).existing(run, names) if names else ()

    async def diff(self, run: Run, path: str | None) -> Diff:
        """What the run changed in its worktree so far, as text; at most ``DIFF_BYTES_MAX`` of it.

        Args:
            run: Which.
            path: Only of this file, from the root of the worktree; None = of all.

        Raises:
            UsageError: The path leads out of the worktree.
            NotFound: The run has no worktree, or it is not there any more.
            RuntimeUnavailable: git could not say.
        """
        if run.resolved.worktree is None:
            raise NotFound(f"run {run.id} has no worktree of its own: nothing compares its files")
        if path is not None and (path.startswith("/") or ".." in path.split("/") or not path):
            raise UsageError(
                "path must be one from the root of the worktree", details={"field": "path"}
            )
        return await self._at(run).diff(run, path, bytes_max=DIFF_BYTES_MAX)

    # -- when it is over -------------------------------------------------------------------

    async def tidy(self, run: Run) -> None:
        """Remove the run's worktree if nothing is in it that somebody may want."""
        tree = run.resolved.worktree
        if tree is None or self.is_used(tree, besides=run.id):
            return
        try:
            contract = run.spec.verification
            named = [each.path for each in contract.artifacts] if contract is not None else []
            named += [each.path for each in (run.report.artifacts if run.report else ())]
            if not await self._existing(run, named):
                await self._at(run).remove_clean(run)
        except SubagentsError as error:
            log.warning("worktree %s stays: %s", tree.path, error)

    def is_used(self, tree: Worktree, *, besides: RunId | None = None) -> bool:
        """A run that is not over works there: one that continues the session of another."""
        return any(
            run.id != besides
            and not run.is_settled
            and run.resolved.worktree is not None
            and run.resolved.worktree.path == tree.path
            for run in self._ledger.live.values()
        )

    async def sweep(self) -> None:
        """Remove the clean worktrees of runs that are deleted; the others stay, with their work."""
        if self.worktrees is None:
            return
        now, known = self._clock.steady_ms(), self._looked_at_ms.items()
        self._looked_at_ms = {path: at for path, at in known if now - at < LOOK_AGAIN_MS}
        for kept in await self.worktrees.kept():
            path = kept.tree.path
            if path in self._looked_at_ms:
                continue
            self._looked_at_ms[path] = now
            if kept.run_id in self._ledger.live or self.is_used(kept.tree):
                continue
            if await self._is_stored(kept.run_id):
                continue
            try:
                is_gone = await self.worktrees.remove_clean(kept.run_id, kept.tree)
            except SubagentsError as error:
                log.warning("worktree %s stays: %s", path, error)
                continue
            if not is_gone:
                log.warning("worktree %s of a deleted run has changes and stays", path)

    async def _is_stored(self, run_id: RunId) -> bool:
        try:
            return await self._off_loop(lambda: self._store.run(run_id)) is not None
        except CorruptState:
            return True  # what cannot be read may be repaired, and want its worktree


def is_without_its_tree(run: Run) -> bool:
    """Whether it is to have a worktree where its newest attempt has its place, and has none there.

    A retry on another node begins there where the first attempt did.
    """
    if run.spec.isolation is not Isolation.WORKTREE:
        return False
    tree = run.resolved.worktree
    return tree is None or (tree.node is not None and tree.node != run.attempt.node)


def begins_afresh(attempts: tuple[Attempt, ...]) -> bool:
    """Whether the newest attempt starts where the first one did.

    A retry of something that failed does. One that mends what its contract found, and one that
    continues after a provider's limit, find their work as it was.
    """
    if len(attempts) < 2:
        return False
    newest, before = attempts[-1], attempts[-2].outcome
    is_limited = before is not None and before.reason is Reason.PROVIDER_LIMIT
    return not (newest.retry.verifies or newest.session.resumes or is_limited)


def _ended_badly(attempt: Attempt, seen: Signal) -> bool:
    if attempt.evidence.stop is not None or attempt.evidence.is_error:
        return True
    match seen:
        case Exited(exit=exit_):
            return exit_.code != 0
        case Vanished():
            return True
        case _:
            return False
