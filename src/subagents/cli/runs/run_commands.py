"""``run`` and ``spawn``: hand work over, and wait for it where that is asked for."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Final

from cyclopts import Parameter

from subagents.api.wire.run_answers import SpawnReceipt, WaitResult
from subagents.api.wire.wire_struct import read
from subagents.cli import long_results, output
from subagents.cli.connection import connect, place, warn_of_version
from subagents.cli.flags import Json
from subagents.cli.runs import follow
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.live_output import LiveOutput
from subagents.cli.runs.spawn_flags import SpawnFlags, to_spec
from subagents.client.client import Client, Document
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import replace
from subagents.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from subagents.text import one_line

DEFAULT_AGENT: Final = "command"
NEW_FIELDS: Final = ("defaultAgent", "environment")
Named = Callable[[RunSpec], RunSpec]

Task = Annotated[
    str,
    Parameter(
        help="The task as one argument; `-` reads it from stdin; after `--`, a command line.",
        metavar="TASK",
    ),
]
Flags = Annotated[SpawnFlags, Parameter(name="*")]
NO_FLAGS: Final = SpawnFlags()


def run(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    detach: Annotated[
        bool, Parameter(name=["--detach", "-d"], help="Do not wait for the run, as `spawn`.")
    ] = False,
    json: Json = False,
) -> int:
    """Run a task, wait for it to end and print its result.

    The exit code is 0 if the run succeeded, 5 if it did not and 6 if its verification failed.

    For example:

        subagents run 'wc -l *.py > lines.txt' --verify lines.txt --timeout 1m

        subagents run --agent command -- python3 -c 'print(6 * 7)'
    """
    if detach:
        return spawn(*task, flags=flags, env=env, env_file=env_file, json=json)
    spec, brought = to_spec(task, flags), environment(env, env_file)
    started = time.monotonic()
    with connect(starts=True) as client:
        receipt = _spawn(client, spec, brought)
    accepted = read(receipt, SpawnReceipt)
    # The live tree shows the run; a log of plain lines needs its id before the end.
    say_accepted([accepted], is_brief=follow.can_draw())
    return wait_and_print([accepted.run_id], started=started, json=json)


def spawn(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    json: Json = False,
) -> int:
    """Start a run and print its id. Its result is delivered to your inbox.

    For example:

        subagents spawn 'make test' --label tests --retry 2

        subagents spawn 'cat tests.log' --after tests --include-result
    """
    spec, brought = to_spec(task, flags), environment(env, env_file)
    with connect(starts=True) as client:
        receipt = _spawn(client, spec, brought)
    if json:
        output.document(receipt)
        return EXIT_OK
    accepted = read(receipt, SpawnReceipt)
    output.line(accepted.run_id)
    sys.stdout.flush()
    say_accepted([accepted], is_brief=False)
    output.note(f"  to wait for it: subagents wait {accepted.run_id}")
    return EXIT_OK


def _spawn(client: Client, spec: RunSpec, brought: CallerEnvironment) -> Document:
    return submit(client, "/v1/runs", lambda named: {"spec": named(spec)}, brought)


def submit(
    client: Client, path: str, body: Callable[[Named], Document], brought: CallerEnvironment
) -> Document:
    """Hand specs over; one without an agent goes to the configured default, else ``command``."""
    asked = {**body(_as_it_is), **place()}
    variables = {"environment": brought} if brought.names else {}
    try:
        answer = client.post(
            path, {**asked, **variables, "defaultAgent": DEFAULT_AGENT}, timeout_s=30
        )
    except UsageError as error:
        if error.details.get("field") not in NEW_FIELDS or brought.given:
            raise
        # A daemon of 0.1.0, which does not know these fields, runs until somebody restarts it.
        try:
            answer = client.post(path, asked, timeout_s=30)
        except UsageError as refusal:
            if "agentId is missing" not in refusal.message:
                raise
            answer = client.post(path, {**asked, **body(_with_agent)}, timeout_s=30)
    warn_of_version(client)
    return answer


def _as_it_is(spec: RunSpec) -> RunSpec:
    return spec


def _with_agent(spec: RunSpec) -> RunSpec:
    return replace(spec, agent_id=spec.agent_id or DEFAULT_AGENT)


def _named(receipt: SpawnReceipt) -> str:
    return f"{receipt.run_id}: {one_line(receipt.label, output.CELL_CHARS_MAX)}"


def say_accepted(accepted: Sequence[SpawnReceipt], *, is_brief: bool) -> None:
    for receipt in accepted:
        for warning in receipt.warnings:
            output.note(f"warning: {_named(receipt)}: {warning}")
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


def wait_and_print(
    run_ids: Sequence[str], *, started: float, json: bool, plan_id: str | None = None
) -> int:
    """Wait for all of them and print their ends; the exit code says how they went.

    Args:
        run_ids: Of the runs.
        started: When, by the monotonic clock in seconds.
        json: Print one document.
        plan_id: They are the steps of this plan.
    """
    is_live = follow.can_draw()
    spoken = LiveOutput(run_ids[0]) if is_live and len(run_ids) == 1 and not json else None
    try:
        waiting = follow.wait_for(
            run_ids, until="all", timeout_s=None, is_live=is_live, spoken=spoken
        )
    except KeyboardInterrupt:
        return _interrupted(run_ids, plan_id)
    waited = read(waiting.document, WaitResult)
    if json:
        is_whole = long_results.print_document(waiting.document)
    else:
        is_whole = follow.print_ends(waited, started=started, spoken=spoken)
    follow.acknowledge(waiting.offered)
    return long_results.exit_code(follow.exit_code(waited), is_whole=is_whole)


def _interrupted(run_ids: Sequence[str], plan_id: str | None) -> int:
    shown = " ".join(run_ids[:3]) + (" …" if len(run_ids) > 3 else "")
    continues = "the run continues" if len(run_ids) == 1 else "the runs continue"
    wait, cancel = (
        (f"wait {shown}", f"cancel {shown}")
        if plan_id is None
        else (f"plan wait {plan_id}", f"plan cancel {plan_id}")
    )
    output.note(f"\nStopped waiting; {continues}.")
    output.note(f"  wait again: subagents {wait}")
    output.note(f"  stop:       subagents {cancel}")
    return EXIT_INTERRUPTED
