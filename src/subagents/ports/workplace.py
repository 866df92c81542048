"""Where the files of a run are: what is made, looked at and checked there."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from subagents.domain.run.baseline import Baseline, Fingerprint
from subagents.domain.run.outcome import Verification
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, Value
from subagents.domain.run.workspace import Changes, Worktree


class Planned(Value, frozen=True):
    """A worktree that can be made; nothing of it exists yet."""

    tree: Worktree
    cwd: str
    """Where the run will work: in the worktree, as deep below its root as it was asked for."""
    warnings: tuple[str, ...] = ()


class Kept(Value, frozen=True):
    """A worktree that exists, or did, by the adapter's own records."""

    run_id: RunId
    tree: Worktree


class Diff(Value, frozen=True):
    """A difference as text."""

    text: str
    bytes_total: int
    """The size of the whole difference."""

    @property
    def is_cut(self) -> bool:
        """``text`` is only the beginning of it."""
        return len(self.text.encode()) < self.bytes_total


class Worktrees(Protocol):
    """Makes, inspects and removes worktrees; each method says what repeating it does."""

    async def plan(self, cwd: str, *, run_id: RunId, label: str) -> Planned:
        """Say where the worktree of a run that wants to work in ``cwd`` will be; changes nothing.

        Raises:
            UsageError: No worktree can be made of that directory; says why and the way out.
        """

    async def prepare(self, run_id: RunId, tree: Worktree, *, attempt: int, afresh: bool) -> None:
        """Make the worktree, or find it, ready for that attempt. Idempotent, after any crash.

        Args:
            run_id: Whose it is.
            tree: As planned.
            attempt: From 1.
            afresh: The attempt begins where the first one did: what was changed since is kept on
                another branch (``Changes.kept_branches``). Once per attempt.

        Raises:
            RuntimeUnavailable: It could not be made now.
            UsageError: It can never be made: something else is in its place.
        """

    async def changes(self, run_id: RunId, tree: Worktree) -> Changes | None:
        """What was changed since it was made; None = it was never made.

        What its worker left in no commit is in one then, on its branch; where that cannot be, the
        files stay as they are, and ``Changes.uncommitted`` says why. Idempotent.
        """

    async def diff(self, tree: Worktree, path: str | None, *, bytes_max: int) -> Diff:
        """What was changed since it was made, as text. Changes nothing.

        Args:
            tree: As planned.
            path: Only of this file, from the root of the worktree; None = of all.
            bytes_max: Of the text; the rest is counted.

        Raises:
            NotFound: It was never made, or is gone.
            RuntimeUnavailable: git could not say.
        """

    async def remove_clean(self, run_id: RunId, tree: Worktree) -> bool:
        """Remove worktree and branch if nothing was changed or committed; else leave both alone.

        Returns:
            Whether nothing is left of it.
        """

    async def kept(self) -> tuple[Kept, ...]:
        """All that exist."""


class Before(Value, frozen=True):
    """What a contract's files were before the work."""

    baseline: Baseline
    is_vacuous: bool = False
    """It passes already, and nothing in it needs a change: it proves nothing."""

    @property
    def files(self) -> dict[str, Fingerprint]:
        """Those that were there, by their path."""
        return {each.path: each for each in self.baseline.files}


class Workplace(Protocol):
    """One node's files. Each method says what repeating it does.

    All of it may raise ``RuntimeUnavailable``: the node does not answer, or is over, and so is what
    was there.
    """

    async def plan(self, run: Run) -> Planned:
        """Say where the worktree of a run that asks for one will be; changes nothing.

        Raises:
            UsageError: No worktree can be made of its directory; says why and the way out.
        """

    async def prepare(self, run: Run, *, attempt: int, afresh: bool) -> None:
        """Make its worktree, as planned, ready for that attempt; see ``Worktrees.prepare``.

        Raises:
            UsageError: It can never be made.
        """

    async def before(self, run: Run) -> Before:
        """Look at the files of its contract before the work. Changes nothing."""

    async def verify(self, run: Run, env: Mapping[str, str]) -> Verification:
        """Check its contract, and keep a copy of what passed where there are copies.

        Its commands run here. A second call for the same run waits for the first.

        Args:
            run: Its newest attempt has ended.
            env: Of its commands, besides what a program needs to run.
        """

    async def existing(self, run: Run, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of these paths at which it has a regular file. Changes nothing."""

    async def changes(self, run: Run) -> Changes | None:
        """What was changed in its worktree; None = it has none. See ``Worktrees.changes``."""

    async def diff(self, run: Run, path: str | None, *, bytes_max: int) -> Diff:
        """The same as text; see ``Worktrees.diff``. Changes nothing.

        Raises:
            NotFound: It has no worktree, or that is gone.
        """

    async def remove_clean(self, run: Run) -> bool:
        """Remove its worktree if nothing was changed in it; see ``Worktrees.remove_clean``."""
