"""``plan run`` and ``list``, and what ``show wait cancel retry`` do with ``plan:NAME``."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import to_builtins

from subagents.api.wire.run_answers import (
    PlanDetail,
    PlanPage,
    PlanReceipt,
    PlanStanding,
    RunRow,
)
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect, session
from subagents.cli.flags import WHEN, Json, Parameter, moment, refusal, refuse_unused
from subagents.cli.runs import follow, selectors
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.follow import GroupLine, RunGroup
from subagents.cli.runs.receiving import received
from subagents.cli.runs.submission import (
    DryRun,
    Named,
    in_file,
    say_accepted,
    show_planned,
    submit,
    wait_and_print,
)
from subagents.cli.show import render
from subagents.client.client import Client, Document, segment
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from subagents.extensions.plans import plan_standing
from subagents.text import duration, milliseconds_of

if TYPE_CHECKING:
    from subagents.extensions.plans.plan_file import Plan as Planned

Variables = Annotated[
    tuple[str, ...],
    Parameter(
        help="Set ${{ vars.NAME }}, stronger than the file's. Repeatable.", metavar="NAME=VALUE"
    ),
]
Jobs = Annotated[
    str | None,
    Parameter(
        name=("--jobs", "-j"),
        help="At most N of its runs work at once. Default: as many as their lanes have slots.",
        metavar="N",
    ),
]


def run(
    file: Annotated[
        Path | None, Parameter(help="A .toml, .yaml or .json file with `runs`.")
    ] = None,
    *,
    schema: Annotated[
        bool, Parameter(help="Print the JSON Schema of such files, for editors.")
    ] = False,
    name: Annotated[
        str | None,
        Parameter(help="Call the plan NAME. Default: as its file does, or is called."),
    ] = None,
    key: Annotated[
        str | None,
        Parameter(help="Start it once: the same KEY within 24 hours finds it.", metavar="KEY"),
    ] = None,
    jobs: Jobs = None,
    var: Variables = (),
    env: Env = (),
    env_file: EnvFile = (),
    dry_run: DryRun = False,
    detach: Annotated[bool, Parameter(name=("--detach", "-d"), help="Do not wait.")] = False,
    json: Json = False,
) -> int:
    """Start all runs of a file, or none of them, and wait for them.

    The file lists the spawn parameters of each run under `runs`, and under `budget` what all of
    them may use together (`subagents help plans`). With --dry-run the daemon checks all that it
    checks when the plan runs, and says which agent each run gets, where it would wait, and what may
    be spent at most.

    For example:

        subagents plan run nightly.toml

        subagents plan run nightly.yaml --detach --json

        subagents plan run release.toml --var version=1.4 --dry-run
    """
    from subagents.extensions.plans import plan_file  # noqa: PLC0415  only for this command

    if schema:
        from subagents.extensions.plans.plan_schema import plan_schema  # noqa: PLC0415

        output.document(plan_schema())
        return EXIT_OK
    if file is None:
        raise refusal("FILE", "is missing")
    with in_file(file):
        planned = plan_file.read_plan(file, variables_of(var))
        if name is not None:
            planned = planned._replace(name=name)
        if jobs is not None:
            planned = planned._replace(jobs=plan_file.require_jobs(jobs, "--jobs"))
        brought = environment(env, env_file)
        if not dry_run:
            started = begin(planned, brought, key=key)
    if dry_run:
        return show_dry_run(planned, brought, key=key, said=in_file(file), json=json)
    return follow_plan(*started, detach=detach, json=json)


def begin(
    planned: "Planned", brought: CallerEnvironment, *, key: str | None
) -> tuple[Document, float]:
    """Start all runs of a plan; the answer, and when that was begun."""
    started = time.monotonic()
    with connect(starts=True) as client:
        return submit(client, "/v1/plans", _body(planned, key), to_builtins(brought)), started


def show_dry_run(
    planned: "Planned",
    brought: CallerEnvironment,
    *,
    key: str | None,
    said: AbstractContextManager[None],
    json: bool,
) -> int:
    """Show what all runs of a plan would come to, and start none; ``said`` as ``show_planned``."""
    body, variables = _body(planned, key), to_builtins(brought)
    return show_planned(
        "/v1/plans/dry-run", body, variables, said=said, json=json, name=planned.name
    )


def _body(planned: "Planned", key: str | None) -> Callable[[Named], Document]:
    """What is sent, with each spec as the function that it is given has it."""
    keyed = {} if key is None else {"idempotencyKey": key}
    return lambda to: {**planned.body(), "specs": [*map(to, planned.specs)], **keyed}


def variables_of(given: Sequence[str]) -> dict[str, str]:
    """What ``--var`` gives.

    Raises:
        UsageError: One is not NAME=VALUE.
    """
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UsageError(f"--var {each!r} is not NAME=VALUE", details={"field": "--var"})
        found[name] = value
    return found


def follow_plan(answer: Document, started: float, *, detach: bool, json: bool) -> int:
    """Say what was accepted; wait for it, unless it goes on by itself."""
    if detach and json:
        output.document(answer)
        return EXIT_OK
    receipt = read(answer, PlanReceipt)
    accepted, plan_id = receipt.receipts, receipt.plan_id
    group = None if plan_id is None else _group(plan_id)
    if detach:
        for each in accepted:
            output.line(each.run_id)
        sys.stdout.flush()
    say_accepted(accepted, is_brief=not detach and follow.can_draw(), group=group)
    if detach:
        if plan_id is not None:
            output.note(f"  to wait for it: subagents wait plan:{plan_id}")
        return EXIT_OK
    run_ids = [each.run_id for each in accepted]
    code = wait_and_print(run_ids, started=started, json=json, group=group)
    if plan_id is not None and not json and code != EXIT_INTERRUPTED:
        _say_summary(plan_id)
    return code


def _group(plan_id: str) -> RunGroup:
    def look(client: Client) -> GroupLine:
        found = _found(client, plan_id)
        ended = sum(row.outcome is not None for row in found.runs)
        return GroupLine(
            text=plan_standing.line(found, time.time() * 1000),
            tenths=follow.ALL * ended // max(found.steps, 1),
            asking=[row.run_id for row in found.runs if row.pending_request_count],
        )

    return RunGroup(look, f"plan:{plan_id}")


def _found(client: Client, plan: str) -> PlanDetail:
    return read(client.get(f"/v1/plans/{segment(plan)}"), PlanDetail)


def _say_summary(plan_id: str) -> None:
    """How the plan ended, in one line on stderr, and what can be done about what failed."""
    with connect() as client:
        found = _found(client, plan_id)
    output.note(plan_standing.line(found))
    if found.status == "failed":
        output.note(f"  to start again what failed: subagents retry plan:{plan_id}")


def list_(
    *,
    directory: Annotated[
        str | None, Parameter(name="--dir", help="Only plans of DIR or below it.", metavar="DIR")
    ] = None,
    mine: Annotated[bool, Parameter(help="Only plans started by your own session.")] = False,
    since: Annotated[
        str | None, Parameter(help=f"Only plans started since: {WHEN}.", metavar="WHEN")
    ] = None,
    limit: Annotated[int, Parameter(help="Show at most N plans. Default: 20.", metavar="N")] = 20,
    json: Json = False,
) -> int:
    """List plans, newest first.

    For example:

        subagents plan list --dir . --since 1d

        subagents plan list --mine --json
    """
    query = {
        "directory": None if directory is None else selectors.directory(directory),
        "requester": session() if mine else None,
        "since": moment(since, "--since"),
        "limit": limit,
    }
    with connect() as client:
        answer = client.get("/v1/plans", query)
    if json:
        output.document(answer)
        return EXIT_OK
    page = read(answer, PlanPage)
    if not page.plans:
        output.note("No plans. Start one: subagents plan run FILE")
        return EXIT_OK
    now_ms = time.time() * 1000
    output.table(
        ["plan", "state", "name", "steps", "time", "age"],
        [_row(each, now_ms) for each in page.plans],
        styles={1: 1},
        cut=(2, 3, 5, 4),
        why=(3,),
    )
    if page.total_is_bound:
        output.note(f"{len(page.plans)} of more than {page.total:,}: --limit")
    elif page.total > len(page.plans):
        output.note(f"{page.total - len(page.plans)} more: --limit")
    return EXIT_OK


def _row(found: PlanStanding, now_ms: float) -> list[str]:
    took_ms, born_ms = plan_standing.took_ms(found, now_ms), milliseconds_of(found.created_at)
    took = "-" if took_ms is None else duration(took_ms)
    age = "-" if born_ms is None else duration(round(now_ms - born_ms)).split()[0]
    return [found.plan_id, found.status, found.name or "", plan_standing.states(found), took, age]


def show(plan: str, *, verbose: bool = False, json: bool = False) -> int:
    """Show how a plan stands, step by step; NAME may be `last` or its id, too."""
    refuse_unused("is about one run", verbose=verbose)
    with connect() as client:
        answer = client.get(f"/v1/plans/{segment(plan)}")
    _print(answer, json=json)
    return EXIT_OK


def _print(answer: Document, *, json: bool) -> None:
    if json:
        output.document(answer)
        return
    found, now_ms = read(answer, PlanDetail), time.time() * 1000
    took = duration(plan_standing.took_ms(found, now_ms) or 0)
    retried = f" · {found.retried} retried" if found.retried else ""
    text = f" {plan_standing.title(found)}: {plan_standing.states(found)} · {took}{retried}"
    output.styled_line(text, render.icon(found.status), found.status)
    output.table(
        ["run", "state", "label", "agent", "time", "now"],
        [_cells(row, now_ms) for row in found.runs],
        styles={1: 1},
        cut=(2, 5, 4, 3),
        why=(5,),
    )


def _cells(row: RunRow, now_ms: float) -> list[str]:
    took = render.elapsed(row, now_ms)
    state = render.word(row.shown_state)
    return [row.run_id, state, row.label, row.agent_id, took, render.now_text(row)]


def wait(plan: str, *, any_: bool = False, timeout: str | None = None, json: bool = False) -> int:
    """Wait for a plan and print the results of its steps: the newest run of each."""
    with connect(starts=True) as client:
        found = _found(client, plan)
    run_ids = [row.run_id for row in found.runs]
    group = _group(found.plan_id)
    code = received(run_ids, is_any=any_, timeout=timeout, json=json, group=group)
    if not json and code != EXIT_INTERRUPTED:
        _say_summary(found.plan_id)
    return code


def cancel(
    plan: str,
    *,
    turn: bool = False,
    reason: str | None = None,
    yes: bool = False,
    json: bool = False,
) -> int:
    """Cancel the steps of a plan that have not ended, and everything they spawned."""
    refuse_unused("is of runs", turn=turn)
    with connect() as client:
        found = _found(client, plan)
        left = sum(row.outcome is None for row in found.runs)
        question = f"Cancel {left} of the {found.steps} steps of plan {plan_standing.title(found)}?"
        if left and not output.is_confirmed(question, yes=yes):
            output.note("Nothing was cancelled.")
            return EXIT_OK
        body = {} if reason is None else {"reason": reason}
        answer = client.post(f"/v1/plans/{segment(found.plan_id)}/cancel", body)
    _print(answer, json=json)
    return EXIT_OK


def retry(plan: str, *, wait: bool = False, detach: bool = False, json: bool = False) -> int:
    """Start what failed of a plan again, and the steps that waited for it."""
    started = time.monotonic()
    with connect(starts=True) as client:
        answer = client.post(f"/v1/plans/{segment(plan)}/retry")
    return follow_plan(answer, started, detach=detach or not wait, json=json)
