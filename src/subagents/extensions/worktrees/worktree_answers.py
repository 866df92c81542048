"""Worktrees of runs, as answers."""

from subagents.api.wire.listing import Listing
from subagents.api.wire.wire_struct import Time, WireStruct


class WorktreeRow(WireStruct, frozen=True, kw_only=True):
    """A worktree and how it stands."""

    run_id: str = ""
    """The run that it was made for."""
    state: str = ""
    """`open` (its run is not over), `unmerged`, `merged`, `unchanged`, or `unknown`."""
    path: str = ""
    """Its directory, which may be gone."""
    branch: str = ""
    """Its branch."""
    repository: str = ""
    """The checkout that it was made from, and into which it is merged."""
    base: str = ""
    """The commit that it began from."""
    merged_into: str | None = None
    """A branch that has its commits; null = none has, or there are none."""
    created_at: Time | None = None
    """When it was made; null = its directory is gone."""
    bytes: int = 0
    """The size of its files; of more than 100,000 only of the first ones."""
    changed_files: int = 0
    """Files that were changed since it was made."""
    changes: str = ""
    """The same in words."""
    kept_because: str | None = None
    """Why `prune` leaves it alone; null = it removes it."""


class WorktreePage(Listing, frozen=True, kw_only=True):
    """All worktrees of this machine's runs."""

    worktrees: list[WorktreeRow] = []
    """The worktrees, oldest first."""


class WorktreePruning(WireStruct, frozen=True, kw_only=True):
    """What pruning did, or would do."""

    removed: list[WorktreeRow] = []
    """Removed, with their branches."""
    kept: list[WorktreeRow] = []
    """Left alone; `keptBecause` says why."""
    dry_run: bool = False
    """Nothing was removed."""


class WorktreeMerge(WireStruct, frozen=True, kw_only=True):
    """What merging did."""

    run_id: str = ""
    """The run whose branch it is."""
    branch: str = ""
    """That branch."""
    repository: str = ""
    """The checkout into which it was merged."""
    into: str = ""
    """The branch that is checked out there."""
    commit: str | None = None
    """Its commit now; null = there are conflicts, and nothing was changed."""
    conflicts: list[str] = []
    """The files in which both changed the same."""
    is_new: bool = True
    """False: it was merged before."""
    uncommitted: str | None = None
    """Why files of the worktree could not be committed, and are not merged; null = all are."""


class WorktreeDiff(Listing, frozen=True, kw_only=True):
    """What a run changed in its worktree since the commit that it began from."""

    run_id: str = ""
    """The run whose worktree it is."""
    path: str | None = None
    """Only of this file; null = of all."""
    text: str = ""
    """The output of `git diff`, with files that git does not know yet; at most 1 MiB."""
    text_bytes: int = 0
    """The size of the whole diff."""
    is_cut: bool = False
    """`text` is only the beginning of it."""
