"""``plan dry-run``, ``plan schema`` and ``map``: what a plan or a list of items expands to."""

import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from subagents.cli import output
from subagents.cli.flags import Json
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.plan_commands import Variables, start, variables_of
from subagents.cli.runs.plan_file import Plan, read_plan
from subagents.cli.runs.run_commands import NO_FLAGS, Flags
from subagents.cli.runs.spawn_flags import to_spec
from subagents.client.item_expansion import runs_of_items
from subagents.client.plan_schema import plan_schema
from subagents.domain.rules.admission import circular
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import replace
from subagents.errors import EXIT_OK, UsageError
from subagents.text import one_line

ITEMS_BYTES_MAX: Final = 16 * 1024 * 1024
STDIN: Final = "-"
DEFAULT_NAME: Final = "map"


def dry_run(
    file: Annotated[Path, Parameter(help="A .toml, .yaml or .json file with `runs`.")],
    *,
    var: Variables = (),
    json: Json = False,
) -> int:
    """Show the runs that a plan would start, with its matrix and variables put in.

    Nothing is started, and no daemon is asked: agents, limits and runs outside the plan are checked
    when it runs.

    For example:

        subagents plan dry-run release.toml --var version=1.4

        subagents plan dry-run nightly.yaml --json
    """
    _show(read_plan(file, variables_of(var)), json=json)
    return EXIT_OK


def schema(*, json: Json = False) -> int:
    """Print the JSON Schema of plan files, for editors.

    For example:

        subagents plan schema > plan.schema.json

        subagents plan schema --json
    """
    del json  # It is JSON either way.
    output.document(plan_schema())
    return EXIT_OK


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
            allow_leading_hyphen=True,
        ),
    ] = None,
    flags: Flags = NO_FLAGS,
    name: Annotated[
        str, Parameter(help="Call the plan NAME. Default: map.", metavar="NAME")
    ] = DEFAULT_NAME,
    env: Env = (),
    env_file: EnvFile = (),
    dry: Annotated[
        bool, Parameter(name="--dry-run", help="Show what would start, and start nothing.")
    ] = False,
    detach: Annotated[bool, Parameter(name=["--detach", "-d"], help="Do not wait.")] = False,
    json: Json = False,
) -> int:
    """Run a task once for each item, and wait for all of them: a plan of its own.

    The flags of `run` hold for each run, and {} stands for the item in them, too. In commands an
    item is one word, whatever it contains: do not put {} in quotes.

    For example:

        subagents map 'wc -l {} > {.}.count' *.py --verify '{.}.count'

        git ls-files '*.md' | subagents map 'proselint {}' --each - --retry 1
    """
    spec = to_spec((task,), flags)
    all_items = [*items, *(() if each is None else _lines(each))]
    key, spec = spec.idempotency_key, replace(spec, idempotency_key=None)
    planned = Plan(runs_of_items(spec, all_items), name)
    if dry:
        _show(planned, json=json)
        return EXIT_OK
    return start(planned, environment(env, env_file), key=key, detach=detach, json=json)


def _lines(name: str) -> list[str]:
    """The items of a file, without empty lines.

    Raises:
        UsageError: It cannot be read, is too large or not UTF-8.
    """
    shown = "stdin" if name == STDIN else name
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(ITEMS_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(ITEMS_BYTES_MAX + 1)
        if len(content) > ITEMS_BYTES_MAX:
            raise UsageError(f"--each: {shown} is larger than {ITEMS_BYTES_MAX} bytes")
        lines = content.decode("utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"--each: cannot read {shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--each: {shown} is not valid UTF-8 (byte {error.start})") from error
    return [line.removesuffix("\r") for line in lines if line.strip()]


def _show(planned: Plan, *, json: bool) -> None:
    _check_order(planned.specs)
    if json:
        output.document(_document(planned))
        return
    output.table(
        ["#", "label", "agent", "after", "task"],
        [_row(index, spec) for index, spec in enumerate(planned.specs, start=1)],
        cut=(1, 4, 3),
    )
    count = len(planned.specs)
    runs = "1 run" if count == 1 else f"{count} runs"
    output.note(f"plan {planned.name}: {runs}{_limits(planned)}; nothing was started")
    for missing in _outside(planned.specs):
        output.note(f"  {missing} is no label of this plan: it must be a run that exists by then")


def _document(planned: Plan) -> dict[str, object]:
    """What is sent, but of the variables for workers their names alone."""
    environments = planned.environments or ({},) * len(planned.specs)
    runs = [
        {**msgspec.to_builtins(spec), **({"env": sorted(own)} if own else {})}
        for spec, own in zip(planned.specs, environments, strict=True)
    ]
    limit = {key: value for key, value in (planned.budget or {}).items() if value is not None}
    return {"name": planned.name, **({"budget": limit} if limit else {}), "runs": runs}


def _row(index: int, spec: RunSpec) -> list[str]:
    waits = [*spec.depends_on, *(() if spec.chain_after is None else (spec.chain_after,))]
    after = waits[0] if len(waits) == 1 else f"{len(waits)} runs" if waits else "-"
    label = "-" if spec.label is None else spec.label
    return [str(index), label, spec.agent_id or "default", after, one_line(spec.task)]


def _limits(planned: Plan) -> str:
    limit = planned.budget or {}
    tokens, cost = limit.get("maxTokens"), limit.get("maxCostUsd")
    words = [
        *([f"{tokens:,} tokens"] if isinstance(tokens, int) else []),
        *([f"{cost:g} USD"] if isinstance(cost, float) else []),
    ]
    return f", at most {' and '.join(words)} together" if words else ""


def _waits(specs: tuple[RunSpec, ...]) -> dict[str, set[str]]:
    """Label → those that its run waits for."""
    found: dict[str, set[str]] = {}
    for index, spec in enumerate(specs):
        waits = {*spec.depends_on, *filter(None, (spec.chain_after,))}
        found.setdefault(spec.label or f"runs[{index}]", set()).update(waits)
    return found


def _check_order(specs: tuple[RunSpec, ...]) -> None:
    """What the daemon would refuse of labels and dependencies among the runs."""
    taken = set()
    for spec in specs:
        if spec.label in taken:
            raise UsageError(f'label "{spec.label}" is used twice in this plan')
        taken |= {spec.label} - {None}
    try:
        TopologicalSorter(_waits(specs)).prepare()
    except CycleError as error:
        raise circular(reversed(error.args[1])) from error


def _outside(specs: tuple[RunSpec, ...]) -> list[str]:
    waits = _waits(specs)
    return sorted(set().union(*waits.values()) - {spec.label for spec in specs if spec.label})
