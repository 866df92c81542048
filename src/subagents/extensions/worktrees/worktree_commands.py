"""``worktree list diff merge prune``: look at what runs made apart, and bring it home."""

import time
from collections.abc import Collection
from typing import Annotated, Final

from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter, Run, SomeRuns
from subagents.cli.runs.selectors import expand
from subagents.cli.show import render
from subagents.client.client import Client, Query, segment
from subagents.errors import EXIT_FAILED, EXIT_OK, NotFound
from subagents.extensions.worktrees.worktree_answers import (
    WorktreeDiff,
    WorktreeMerge,
    WorktreePage,
    WorktreePruning,
    WorktreeRow,
)
from subagents.text import counted, size

PLACE: Final = "/v1/worktrees"
LONG_S: Final = 300


def list_(*, json: Json = False) -> int:
    """List the worktrees of runs: what is in them, and whether it is merged.

    For example:

        subagents worktree list

        subagents worktree list --json
    """
    with connect() as client:
        answer = client.get(PLACE, timeout_s=LONG_S)
    if json:
        output.document(answer)
        return EXIT_OK
    rows = read(answer, WorktreePage).worktrees
    if not rows:
        output.note("No worktrees. A run has one with --isolation worktree.")
        return EXIT_OK
    now_ms = time.time() * 1000
    output.table(
        ["run", "state", "branch", "base", "age", "size", "files", "why it stays"],
        [
            [
                each.run_id,
                each.state,
                each.branch,
                each.base[:8],
                render.age(each.created_at, now_ms),
                size(each.bytes),
                str(each.changed_files),
                each.kept_because or "-",
            ]
            for each in rows
        ],
        cut=(2, 7),
        why=(7,),
    )
    return EXIT_OK


def diff(
    run: Run,
    /,
    *,
    path: Annotated[str | None, Parameter(help="Only of this file.", metavar="FILE")] = None,
    json: Json = False,
) -> int:
    """Print what a run changed in its worktree, committed or not.

    For example:

        subagents worktree diff fix-login

        subagents worktree diff fix-login --path src/login.py
    """
    query: Query = {} if path is None else {"path": path}
    with connect() as client:
        answer = client.get(f"/v1/runs/{segment(run)}/diff", query, timeout_s=LONG_S)
    if json:
        output.document(answer)
        return EXIT_OK
    found = read(answer, WorktreeDiff)
    output.data(found.text)
    if found.is_cut:
        output.note(f"cut: the whole has {size(found.text_bytes)}; name a file with --path")
    return EXIT_OK


def merge(run: Run, /, *more: SomeRuns, json: Json = False) -> int:
    """Merge a run's branch into what its repository has checked out.

    With conflicts nothing is changed, their files are printed, and the exit code is 1; of several
    runs that one is the last. A checkout with uncommitted changes is left alone.

    For example:

        subagents worktree merge fix-login

        subagents worktree merge plan:last
    """
    named = (run, *more)
    with connect() as client:
        merged = (_merged(client, each, named, json=json) for each in expand(client, named))
        return next((code for code in merged if code != EXIT_OK), EXIT_OK)


def _merged(client: Client, run: str, named: Collection[str], *, json: bool) -> int:
    try:
        answer = client.post(f"/v1/runs/{segment(run)}/merge", timeout_s=LONG_S)
    except NotFound as error:
        if run in named:
            raise
        # Of a plan, say: some have none, and that of one that changed nothing is gone.
        output.note(error.message)
        return EXIT_OK
    found = read(answer, WorktreeMerge)
    if json:
        output.document(answer)
    elif found.commit is None:
        for each in found.conflicts:
            output.line(each)
        where = f"{found.branch} and {found.into} conflict: nothing was changed"
        output.note(f"{where}. Resolve it there: git -C {found.repository} merge {found.branch}")
    else:
        was = "merged" if found.is_new else "was merged before"
        output.line(f"{found.branch} {was} into {found.into} ({found.commit[:8]})")
        if found.uncommitted:
            output.note(f"warning: not all of it: {found.uncommitted}")
    return EXIT_OK if found.commit else EXIT_FAILED


def prune(
    *,
    dry_run: Annotated[bool, Parameter(help="Say what would be removed; remove nothing.")] = False,
    json: Json = False,
) -> int:
    """Remove worktrees whose work is merged, or that have none, with their branches.

    One stays while its run is open, it is locked, or anything is in it that no other branch has.

    For example:

        subagents worktree prune --dry-run

        subagents worktree prune
    """
    with connect() as client:
        place = f"{PLACE}/prune" + ("?dryRun=1" if dry_run else "")
        answer = client.post(place, timeout_s=LONG_S)
    if json:
        output.document(answer)
        return EXIT_OK
    found = read(answer, WorktreePruning)
    for each in found.removed:
        output.line(f"{'would remove' if dry_run else 'removed'}  {_named(each)}")
    for each in found.kept:
        output.line(f"kept  {_named(each)}: {each.kept_because}")
    if not found.removed:
        output.note(f"Nothing to remove; {counted(len(found.kept), 'worktree')} kept.")
    return EXIT_OK


def _named(row: WorktreeRow) -> str:
    where = "" if row.merged_into is None else f", merged into {row.merged_into}"
    return f"{row.run_id}  {row.branch}{where}"
