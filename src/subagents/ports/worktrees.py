"""Worktrees of their own for runs that ask for one (``isolation: "worktree"``)."""

from typing import Protocol

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
                a branch of its own (``Changes.kept_branches``). Once per attempt.

        Raises:
            RuntimeUnavailable: It could not be made now.
            UsageError: It can never be made: something else is in its place.
        """

    async def changes(self, run_id: RunId, tree: Worktree) -> Changes | None:
        """What was changed since it was made; None = it was never made. Changes nothing."""

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
