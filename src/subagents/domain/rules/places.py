"""What a run asks of the node on which it works, and what keeps it where its owner is."""

from collections.abc import Collection

from subagents.domain.rules import ceilings
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Isolation, Resolved
from subagents.domain.run.values import replace
from subagents.domain.run.workspace import PlacedTree
from subagents.errors import UsageError


def is_bound_to_files(run: Run) -> bool:
    """Whether it works where its owner is, and nowhere else: its files were looked at there.

    One that asks for a place has them there.
    """
    if run.resolved.place is not None:
        return False
    has_tree = run.resolved.worktree is not None or run.spec.isolation is Isolation.WORKTREE
    return has_tree or run.spec.verification is not None or run.lineage.judges is not None


def with_tree(resolved: Resolved, tree: PlacedTree) -> Resolved:
    """What the spawn came to, of a run whose worktree is at its place."""
    access = resolved.access
    return replace(
        resolved,
        cwd=tree.cwd,
        worktree=tree.worktree,
        contract_root=None if resolved.contract_root is None else tree.cwd,
        access=None if access is None else ceilings.placed(access, tree.cwd),
    )


def check_place(place: str, labels: Collection[str]) -> None:
    """Refuse a place that no node that is alive has among its labels.

    Raises:
        UsageError: Names what exists.
    """
    if place not in labels:
        known = ", ".join(sorted(labels)) or "none"
        raise UsageError(
            f'no node has the label "{place}" (place); labels of this cluster: {known}',
            hint="name one of these, or add it to [cluster] labels of a node",
            details={"field": "place", "labels": sorted(labels)},
        )
