"""``map``: the plan that a list of items expands to."""

import sys
from pathlib import Path
from typing import Annotated, Final

from subagents.api.wire.requests import PlanLimit
from subagents.cli.flags import Json, Parameter
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.spawn_flags import NO_FLAGS, Flags, to_spec
from subagents.cli.runs.submission import DryRun, in_flags
from subagents.config.files.text_files import decoded, read_text
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import UsageError
from subagents.extensions.plans import plan_commands
from subagents.extensions.plans.item_expansion import runs_of_items
from subagents.extensions.plans.plan_commands import Jobs
from subagents.extensions.plans.plan_file import Plan, require_jobs
from subagents.extensions.plans.result_items import from_map, require_item

ITEMS_BYTES_MAX: Final = 16 * 1024 * 1024
STDIN: Final = "-"
DEFAULT_NAME: Final = "map"


def map_(
    task: Annotated[
        str,
        Parameter(
            help="The task; {} is the item, {.} without its suffix, {/} its file name, {//} its"
            " directory, {/.} its file name without the suffix.",
            metavar="TASK",
        ),
    ],
    /,
    *items: Annotated[str, Parameter(help="File names, or any other texts.", metavar="[ITEM...]")],
    each: Annotated[
        str | None,
        Parameter(
            help="One item on each line of FILE; `-` = stdin.",
            metavar="FILE",
        ),
    ] = None,
    jobs: Jobs = None,
    flags: Flags = NO_FLAGS,
    name: Annotated[
        str, Parameter(help="Call the plan NAME. Default: map.", metavar="NAME")
    ] = DEFAULT_NAME,
    env: Env = (),
    env_file: EnvFile = (),
    dry_run: DryRun = False,
    detach: Annotated[bool, Parameter(name=("--detach", "-d"), help="Do not wait.")] = False,
    json: Json = False,
) -> int:
    """Run a task once for each item, and wait for all of them: a plan of its own.

    The flags of `run` hold for each run, and {} stands for the item in them, too; --max-tokens,
    --max-total-tokens, --max-cost and --max-time are caps for all of them together: when the time
    is over, what has not ended is cancelled. In commands an item is one word, whatever it contains:
    do not put {} in quotes.

    For example:

        subagents map 'wc -l {} > {.}.count' *.py --verify '{.}.count'

        git ls-files '*.md' | subagents map 'proselint {}' --each - -j 4 --retry 1
    """
    if items == (STDIN,):
        raise UsageError(
            "map reads no items from stdin by itself",
            hint="subagents map TASK --each -",
            details={"field": "ITEM"},
        )
    spec, together = _taken_out(to_spec((task,), flags))
    all_items = [*items, *(() if each is None else _lines(each))]
    key, spec = spec.idempotency_key, replace(spec, idempotency_key=None)
    if spec.for_each is None:
        runs = runs_of_items(spec, all_items)
    elif all_items:
        raise UsageError("items and --for-each exclude each other", details={"field": "ITEM"})
    else:
        require_item(spec := from_map(spec))
        runs = (replace(spec, label=spec.label or name),)
    at_once = None if jobs is None else require_jobs(jobs, "--jobs")
    planned = Plan(runs, name, budget=together, jobs=at_once)
    brought = environment(env, env_file)
    if dry_run:
        return plan_commands.show_dry_run(planned, brought, key=key, said=in_flags(), json=json)
    with in_flags():
        started = plan_commands.begin(planned, brought, key=key)
    return plan_commands.follow_plan(*started, detach=detach, json=json)


def _taken_out(spec: RunSpec) -> tuple[RunSpec, PlanLimit]:
    """The parameters of each run, and what of their budget is for all together."""
    budget = spec.budget or Budget()
    shared = PlanLimit.__struct_fields__
    together = PlanLimit(**{name: getattr(budget, name) for name in shared})
    each = replace(budget, **dict.fromkeys(shared))
    spec = replace(spec, budget=None if each == Budget() else each)
    return spec, together


def _lines(name: str) -> list[str]:
    """The items of a file, without empty lines.

    Raises:
        UsageError: It cannot be read, is too large or not UTF-8.
    """
    if name == STDIN:
        content = sys.stdin.buffer.read(ITEMS_BYTES_MAX + 1)
        text = decoded(content, bytes_max=ITEMS_BYTES_MAX, name="--each: stdin", field="--each")
    else:
        where = f"--each {name}"
        text = read_text(
            Path(name), bytes_max=ITEMS_BYTES_MAX, name=where, field="--each", streams=True
        )
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines if line.strip()]
