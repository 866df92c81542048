"""A run's worktree, and what was changed in it, as documents of the wire.

Source: 7-runtimes (``isolation``: "listed in the result with its diff stat"); 8-field-failures
(out-of-scope edits and deletions are in the verdict).
"""

from subagents.domain.run import workspace
from subagents.domain.run.run import Run

Document = dict[str, object]


def workspace_of(run: Run) -> Document | None:
    """The worktree of a run that has one; ``kept`` is null until the run is over."""
    tree = run.resolved.worktree
    if tree is None:
        return None
    found = run.remains.changes
    is_kept = bool(run.attempts) and (found is None or not found.is_clean)
    return {
        "isolation": "worktree",
        "path": tree.path,
        "branch": tree.branch,
        "repository": tree.repository,
        "origin": tree.origin,
        "kept": is_kept if run.is_settled else None,
        "changes": changes(run),
    }


def changes(run: Run) -> Document | None:
    """What a run with a worktree changed; ``outOfScope`` = not among its contract's artifacts."""
    tree, found = run.resolved.worktree, run.remains.changes
    if tree is None or found is None:
        return None
    wanted = run.spec.verification.artifacts if run.spec.verification else ()
    prefix = workspace.prefix_of(tree, run.resolved.cwd)
    outside = workspace.out_of_scope(found, [each.path for each in wanted], prefix)
    gone = [each.path for each in found.changed if each.kind is workspace.ChangeKind.DELETED]
    return {
        "summary": workspace.summary(found),
        "files": found.files,
        "insertions": found.insertions,
        "deletions": found.deletions,
        "commits": found.commits,
        "ignored": found.ignored,
        "deletedFiles": found.deleted,
        "deleted": gone,
        "changed": [
            {
                "path": each.path,
                "kind": each.kind,
                "insertions": each.insertions,
                "deletions": each.deletions,
            }
            for each in found.changed
        ],
        "outOfScope": list(outside),
        "keptBranches": list(found.kept_branches),
        "error": found.error,
    }


def brief(run: Run, *, names_max: int) -> Document | None:
    """As ``workspace_of``, in few words: where it is, and what nobody may overlook."""
    whole = workspace_of(run)
    found = changes(run)
    if whole is None:
        return None
    shown: Document = {name: whole[name] for name in ("path", "branch", "kept")}
    if found is not None:
        shown["changes"] = found["summary"]
        for name in ("deleted", "outOfScope", "keptBranches"):
            names = found[name]
            if isinstance(names, list) and names:
                shown[name] = names[:names_max]
    return shown
