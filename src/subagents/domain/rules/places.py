"""What a run asks of the node on which it works, and what keeps it where its owner is."""

from collections.abc import Collection

from subagents.domain.run.run import Run
from subagents.domain.run.spec import Isolation, RunSpec
from subagents.errors import UsageError


def label_of(run: Run) -> str | None:
    """The label that its place must have; None = it asks for none."""
    return run.resolved.place


def is_bound_to_files(run: Run) -> bool:
    """Whether something of it is looked at where its owner is: it works there, and nowhere else."""
    return (
        _reason(run.spec) is not None
        or run.resolved.worktree is not None
        or run.lineage.judges is not None
    )


def check_place(place: str, spec: RunSpec, labels: Collection[str]) -> None:
    """Refuse a place that no node has, and what cannot be done at one.

    Args:
        place: The label.
        spec: Of the run.
        labels: Of all nodes that are alive.

    Raises:
        UsageError: Names what exists, or what stands in the way.
    """
    if place not in labels:
        known = ", ".join(sorted(labels)) or "none"
        raise UsageError(
            f'no node has the label "{place}" (place); labels of this cluster: {known}',
            hint="name one of these, or add it to [cluster] labels of a node",
            details={"field": "place", "labels": sorted(labels)},
        )
    reason = _reason(spec)
    if reason is not None:
        raise UsageError(
            f'a run with a place ("{place}") cannot have {reason}: that is looked at where the'
            " run's owner is, and its files are elsewhere",
            hint="leave place out, or leave out what looks at files",
            details={"field": "place"},
        )


def _reason(spec: RunSpec) -> str | None:
    if spec.isolation is Isolation.WORKTREE:
        return "a worktree (isolation)"
    if spec.verification is not None:
        return "a contract (verification)"
    return None
