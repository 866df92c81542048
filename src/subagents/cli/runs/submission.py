"""``run`` and ``spawn``: hand work over, and wait for it where that is asked for."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from subagents.cli import output
from subagents.cli.connection import connect, place
from subagents.cli.flags import Annotated, Json, Parameter, flag_names
from subagents.cli.reading import read
from subagents.cli.runs.environment_flags import Env, EnvFile, brought
from subagents.cli.runs.spawn_flags import NO_FLAGS, Flags, spec_of
from subagents.client.client import Client, Document
from subagents.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    Forbidden,
    NotFound,
    SubagentsError,
    UsageError,
)
from subagents.text import counted, duration, money, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from subagents.api.wire import run_answers
    from subagents.api.wire.run_answers import PlannedRun, SpawnReceipt
    from subagents.cli.runs.follow import RunGroup

DEFAULT_AGENT: Final = "command"
LISTED_MAX: Final = 20
"""The most runs of a group of which each is said to have been accepted."""
NEW_FIELDS: Final = ("defaultAgent", "environment")
"""Fields of a spawn that a daemon of 0.1.0 does not know."""
Spec = Any
"""A ``RunSpec``, or a document of one."""
Named = Callable[[Spec], Spec]
"""What is done to each spec before it is sent."""
Body = Callable[[Named], Document]
"""Makes what is sent, with each spec as the function that it is given has it."""
Environment = Mapping[str, object]
"""A ``CallerEnvironment`` as a document; empty = nothing."""

Task = Annotated[
    str,
    Parameter(
        help="The task as one argument; `-` reads it from stdin; after `--`, a command line.",
        metavar="TASK",
    ),
]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", help="Show what would start, and start nothing.")
]


@contextmanager
def in_flags() -> Iterator[None]:
    """Have refusals of parameters that flags set name these flags."""
    try:
        yield
    except SubagentsError as error:
        from subagents.client.spawn_request import reword  # noqa: PLC0415

        reword(error, flag_names().get)
        raise


@contextmanager
def in_file(file: "Path") -> Iterator[None]:
    """Have refusals of parameters that a file sets name that file, and its keys."""
    try:
        yield
    except (UsageError, NotFound, Forbidden) as error:
        from subagents.client.spawn_request import reword, snake  # noqa: PLC0415

        reword(error, snake, where=str(file))
        if file.exists():
            raise
        # Whatever reading it found wrong: scripts tell a missing file by the exit code.
        raise NotFound(error.message, hint=error.hint, details=error.details) from error


def run(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    detach: Annotated[
        bool, Parameter(name=("--detach", "-d"), help="Do not wait for the run, as `spawn`.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Run a task, wait for it to end and print its result.

    The exit code is 0 if the run succeeded, 5 if it did not and 6 if its verification failed.

    For example:

        subagents run 'wc -l *.py > lines.txt' --verify lines.txt --timeout 1m

        subagents run --agent command -- python3 -c 'print(6 * 7)'
    """
    spec = spec_of(task, flags)
    start = _spawn if detach else _run
    return (_dry_run if dry_run else start)(spec, brought(env, env_file), json=json)


def spawn(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Start a run and print its id. Its result is delivered to your inbox.

    For example:

        subagents spawn 'make test' --label tests --retry 2

        subagents spawn 'cat tests.log' --after tests --include-result
    """
    spec = spec_of(task, flags)
    start = _dry_run if dry_run else _spawn
    return start(spec, brought(env, env_file), json=json)


def _run(spec: Spec, brought: Environment, *, json: bool) -> int:
    """Start a run, wait for it to end and print its result."""
    from subagents.cli.runs import follow  # noqa: PLC0415  who does not wait needs none of it

    started = time.monotonic()
    with connect(starts=True) as client:
        receipt = _submitted(client, spec, brought)
    accepted: SpawnReceipt = read(client, receipt, "run_answers:SpawnReceipt")
    # The live tree shows the run; a log of plain lines needs its id before the end.
    say_accepted([accepted], is_brief=follow.can_draw())
    return wait_and_print([accepted.run_id], started=started, json=json)


def _spawn(spec: Spec, brought: Environment, *, json: bool) -> int:
    """Start a run and print its id."""
    with connect(starts=True) as client:
        receipt = _submitted(client, spec, brought)
        if json:
            output.document(client.received)
            return EXIT_OK
        accepted: SpawnReceipt = read(client, receipt, "run_answers:SpawnReceipt")
    output.line(accepted.run_id)
    # Whoever reads the id in a pipe has it before anything else can go wrong here.
    sys.stdout.flush()
    say_accepted([accepted], is_brief=False)
    output.note(f"  to wait for it: subagents wait {accepted.run_id}")
    return EXIT_OK


def _dry_run(spec: Spec, brought: Environment, *, json: bool) -> int:
    """Show what a spawn would come to, and start nothing."""
    return show_planned("/v1/runs/dry-run", _body(spec), brought, said=in_flags(), json=json)


def show_planned(
    path: str,
    body: Body,
    brought: Environment,
    *,
    said: AbstractContextManager[None],
    json: bool,
    name: str = "",
) -> int:
    """Ask the daemon what would start, and show it: warnings and sums on stderr.

    Args:
        path: The path of the dry run; it, ``body`` and ``brought`` are what ``submit`` takes.
        said: ``in_flags`` or ``in_file``, which words a refusal.
        name: The name of the plan; empty = it is a run alone.
    """
    with connect(starts=True) as client:
        with said:
            answer = submit(client, path, body, brought)
        if json:
            output.document(client.received)
            return EXIT_OK
        found: run_answers.DryRun = read(client, answer, "run_answers:DryRun")
    rows = [
        [str(place), each.label, each.agent_id, _starts(each), one_line(each.task)]
        for place, each in enumerate(found.runs, 1)
    ]
    output.table(["#", "label", "agent", "starts", "task"], rows, cut=(4, 1, 3))
    output.warnings((each.label, warning) for each in found.runs for warning in each.warnings)
    for each in found.runs:
        if each.chosen is not None:
            output.note(f"  {each.label}: agent {each.agent_id}: {each.chosen}")
        if each.question is not None:
            output.note(f"  {each.label} begins when somebody allows it: {each.question}")
    what = f"plan {name}: {counted(len(found.runs), 'run')}" if name else "1 run"
    output.note(f"{what}{_most(found)}; nothing was started")
    return EXIT_OK


def _starts(run: "PlannedRun") -> str:
    """When it would begin, in a few words."""
    if run.run_id is not None:
        return f"is {run.run_id} already"
    if run.waits_for:
        waits = run.waits_for
        after = f"after {waits[0].label if len(waits) == 1 else counted(len(waits), 'run')}"
        return after if run.items_max is None else f"{after}: 0 to {run.items_max} runs"
    if run.question is not None:
        return "when allowed"
    if run.starts_at_once:
        return "at once"
    if run.phase != "queued":
        return run.phase
    lane = run.lane
    if lane.limit is not None:
        return lane.limit
    return f"waits for a free slot: {lane.ahead} ahead, {lane.used} of {lane.slots} taken"


def _most(found: "run_answers.DryRun") -> str:
    amounts = (
        f"{found.max_tokens:,} tokens" if found.max_tokens else "",
        f"{found.max_total_tokens:,} total tokens" if found.max_total_tokens else "",
        money(found.max_cost_usd) if found.max_cost_usd else "",
        duration(round(found.max_seconds * 1000)) if found.max_seconds else "",
    )
    words = [each for each in amounts if each]
    return f", at most {' and '.join(words)} together" if words else ""


def _body(spec: Spec) -> Body:
    return lambda named: {"spec": named(spec)}


def _submitted(client: Client, spec: Spec, brought: Environment) -> Document:
    with in_flags():
        return submit(client, "/v1/runs", _body(spec), brought)


def submit(client: Client, path: str, body: Body, brought: Environment) -> Document:
    """Hand specs over; one without an agent goes to the configured default, else ``command``."""
    asked = {**body(lambda spec: spec), **place()}
    variables = {"environment": brought} if brought else {}
    try:
        answer = client.post(
            path, {**asked, **variables, "defaultAgent": DEFAULT_AGENT}, timeout_s=30
        )
    except UsageError as error:
        # What `--env` sets must not be dropped silently; the shell's own variables may be.
        if error.details.get("field") not in NEW_FIELDS or brought.get("given"):
            raise
        # A daemon of 0.1.0, which does not know these fields, runs until somebody restarts it.
        try:
            answer = client.post(path, asked, timeout_s=30)
        except UsageError as refusal:
            if "agentId is missing" not in refusal.message:
                raise
            answer = client.post(path, {**asked, **body(_with_agent)}, timeout_s=30)
    return answer


def _with_agent(spec: Spec) -> Spec:
    from msgspec import to_builtins  # noqa: PLC0415

    plain: Document = to_builtins(spec)
    return {**plain, "agentId": plain.get("agentId") or DEFAULT_AGENT}


def _named(receipt: "SpawnReceipt") -> str:
    return f"{receipt.run_id}: {one_line(receipt.label, output.CELL_CHARS_MAX)}"


def say_accepted(
    accepted: "Sequence[SpawnReceipt]", *, is_brief: bool, group: "RunGroup | None" = None
) -> None:
    """Say what became of spawned runs, a line for each; of a large group, a line for all.

    ``is_brief`` leaves out all but what is out of the ordinary.
    """
    output.warnings((_named(each), warning) for each in accepted for warning in each.warnings)
    if len(accepted) > LISTED_MAX and group is not None:
        _say_group(accepted, group)
        return
    for receipt in accepted:
        if receipt.repeated:
            output.note(
                f"{receipt.run_id} already exists for this idempotency key; nothing was started"
            )
        elif not is_brief:
            output.note(f"{_named(receipt)} ({receipt.agent_id}) is {receipt.phase}")
        if receipt.chosen is not None and not receipt.repeated:
            output.note(f"  agent {receipt.agent_id}: {receipt.chosen}")
        if receipt.workspace is not None:
            place = receipt.workspace
            output.note(f"  worktree: {place.path}  branch {place.branch}")


def _say_group(accepted: "Sequence[SpawnReceipt]", group: "RunGroup") -> None:
    repeated = sum(each.repeated for each in accepted)
    new = len(accepted) - repeated
    if repeated:
        output.note(
            f"{counted(repeated, 'run')} already exist for this idempotency key; {new} were started"
        )
    else:
        show = f"subagents show {group.selector}"
        output.note(f"{counted(new, 'run')} accepted; to see each: {show}")


def wait_and_print(
    run_ids: Sequence[str], *, started: float, json: bool, group: "RunGroup | None" = None
) -> int:
    """Wait for all of them and print their ends; the exit code says how they went.

    ``started`` is when they were, by the monotonic clock in seconds.
    """
    from subagents.cli.runs import follow  # noqa: PLC0415

    is_live = follow.can_draw()
    spoken = None
    if is_live and len(run_ids) == 1 and not json:
        from subagents.cli.runs.live_output import LiveOutput  # noqa: PLC0415  for terminals

        spoken = LiveOutput(run_ids[0])
    try:
        waiting = follow.wait_for(
            run_ids, until="all", timeout_s=None, is_live=is_live, spoken=spoken, group=group
        )
    except KeyboardInterrupt:
        return _interrupted(run_ids, group)
    return follow.told(waiting, json=json, started=started, spoken=spoken)


def _interrupted(run_ids: Sequence[str], group: "RunGroup | None") -> int:
    shown = " ".join(run_ids[:3]) + (" …" if len(run_ids) > 3 else "")
    continues = "the run continues" if len(run_ids) == 1 else "the runs continue"
    named = shown if group is None else group.selector
    output.note(f"\nStopped waiting; {continues}.")
    output.note(f"  wait again: subagents wait {named}")
    output.note(f"  stop:       subagents cancel {named}")
    return EXIT_INTERRUPTED
