"""Where the files of a run are: what is made, looked at and checked there."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from subagents.domain.run.baseline import Baseline, Fingerprint
from subagents.domain.run.outcome import Verification
from subagents.domain.run.run import Run
from subagents.domain.run.values import Value
from subagents.domain.run.workspace import Changes
from subagents.ports.worktrees import Diff, Planned


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
        """What was changed in its worktree; None = it has none. Changes nothing."""

    async def diff(self, run: Run, path: str | None, *, bytes_max: int) -> Diff:
        """The same as text; see ``Worktrees.diff``. Changes nothing.

        Raises:
            NotFound: It has no worktree, or that is gone.
        """

    async def remove_clean(self, run: Run) -> bool:
        """Remove its worktree if nothing was changed in it; see ``Worktrees.remove_clean``."""
