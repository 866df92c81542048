"""``/v1/worktrees`` and ``…/merge`` for operators; ``…/diff`` for whoever may see the run."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, on_run, query_of, require_operator, while_connected
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.parameters import flag, word
from subagents.api.wire.wire_struct import iso_or_none, made
from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import summary
from subagents.errors import Conflict, NotFound, SubagentsError
from subagents.extensions.worktrees.git_worktrees import GitWorktrees, Look, Record
from subagents.extensions.worktrees.worktree_answers import (
    WorktreeDiff,
    WorktreeMerge,
    WorktreePage,
    WorktreePruning,
    WorktreeRow,
)

PRUNE: Final = (flag("dryRun", "Say what would be removed, and remove nothing."),)
DIFF: Final = (word("path", "Only of this file, from the root of the worktree."),)
OPEN: Final = "its run is not over"
ACT: Final = "work with worktrees"


async def list_worktrees(request: Request) -> Response:
    """GET /v1/worktrees: those of this machine's runs, and how each stands."""
    query_of(request, ())
    services, trees = _operator(request)
    as_of = services.as_of()
    records = await trees.records()
    bases = _bases(records)
    rows = await asyncio.gather(*(_row(services, trees, each, bases) for each in records))
    ordered = sorted(rows, key=lambda row: row.created_at or "")
    return answer(WorktreePage(**as_of, worktrees=ordered))


async def prune(request: Request) -> Response:
    """POST /v1/worktrees/prune: remove those whose work another branch has, or that have none.

    One stays while its run is open, it is locked, or anything is in it that no other branch has.
    """
    is_dry = query_of(request, PRUNE).flag("dryRun")
    services, trees = _operator(request)
    removed, kept = list[WorktreeRow](), list[WorktreeRow]()
    records = await trees.records()
    bases = _bases(records)
    for record in records:
        row = await _row(services, trees, record, bases)
        if row.kept_because is None and not is_dry:
            # It is looked at once more: whoever works there may have come meanwhile.
            row = replace(row, kept_because=await trees.remove_merged(record, bases))
        (removed if row.kept_because is None else kept).append(row)
    return answer(WorktreePruning(removed=removed, kept=kept, dry_run=is_dry))


async def merge(request: Request) -> Response:
    """POST /v1/runs/{sel}/merge: merge its branch into what its repository has checked out.

    With conflicts nothing is changed, and the answer has the files. What is in no commit yet is
    committed on the branch first.
    """
    query_of(request, ())
    services, trees = _operator(request)
    _, _, run = await on_run(request)
    tree = run.resolved.worktree
    record = None if tree is None else await trees.record(tree)
    if record is None:
        raise NotFound(f"run {run.id} has no worktree on this machine, or it is gone")
    if await _is_open(services, record):
        raise Conflict(f"{OPEN}: run {run.id}", hint=f"subagents wait {run.id}")
    found, uncommitted = await trees.merge(record)
    return answer(
        made(
            WorktreeMerge,
            found,
            run_id=run.id,
            branch=record.tree.branch,
            repository=record.tree.repository,
            conflicts=list(found.conflicts),
            uncommitted=uncommitted,
        )
    )


async def diff(request: Request) -> Response:
    """GET /v1/runs/{sel}/diff: what it changed in its worktree, as git shows it."""
    query = query_of(request, DIFF)
    services, _, run = await on_run(request)
    as_of = services.as_of()
    # Its files may be on a node that is cut off from us: that is waited for as long as it is alive.
    found = await while_connected(request, services.engine.workspaces.diff(run, query.get("path")))
    return answer(
        WorktreeDiff(
            **as_of,
            run_id=run.id,
            path=query.get("path"),
            text=found.text,
            text_bytes=found.bytes_total,
            is_cut=found.is_cut,
        )
    )


def _bases(records: Sequence[Record]) -> Collection[str]:
    return {each.tree.repository for each in records}


async def _row(
    services: Services, trees: GitWorktrees, record: Record, bases: Collection[str]
) -> WorktreeRow:
    look, is_open = await trees.look(record, bases), await _is_open(services, record)
    return WorktreeRow(
        run_id=record.run_id,
        state="open" if is_open else _state(look),
        path=record.tree.path,
        branch=record.tree.branch,
        repository=record.tree.repository,
        base=record.base,
        merged_into=None if look.standing is None else look.standing.merged_into,
        created_at=iso_or_none(look.made_at_ms),
        bytes=look.bytes,
        changed_files=0 if look.changes is None else look.changes.files,
        changes="" if look.changes is None else summary(look.changes),
        kept_because=OPEN if is_open else look.kept_because,
    )


def _state(look: Look) -> str:
    if look.standing is None:
        return "unknown"
    if look.standing.merged_into is not None:
        return "merged"
    is_changed = look.changes is not None and bool(look.changes.files)
    return "unmerged" if look.standing.has_commits or is_changed else "unchanged"


async def _is_open(services: Services, record: Record) -> bool:
    """Whether a run works there, will do so, or cannot be asked."""
    if services.engine.workspaces.is_used(record.tree):
        return True
    for run_id in {record.run_id, *map(RunId, record.attempts)}:
        try:
            if not (await services.engine.queries.run(run_id)).is_settled:
                return True
        except NotFound:
            continue
        except SubagentsError:
            return True  # another node has it, or its row cannot be read
    return False


def _operator(request: Request) -> tuple[Services, GitWorktrees]:
    require_operator(Caller.of(request), ACT)
    services = services_of(request)
    trees = services.engine.workspaces.worktrees
    if not isinstance(trees, GitWorktrees):
        raise NotFound("there are no worktrees here")
    return services, trees


OPERATIONS: Final = {
    ("GET", "/v1/worktrees"): Operation(list_worktrees, answers=(WorktreePage,)),
    ("POST", "/v1/worktrees/prune"): Operation(prune, query=PRUNE, answers=(WorktreePruning,)),
    ("GET", "/v1/runs/{sel}/diff"): Operation(diff, query=DIFF, answers=(WorktreeDiff,)),
    ("POST", "/v1/runs/{sel}/merge"): Operation(merge, answers=(WorktreeMerge,)),
}
ROUTES: Final = routes(OPERATIONS)
