"""The commands of workers, ``report progress notify ask``, and ``worker``, which is one.

The first four speak for the run in ``SUBAGENTS_RUN_ID`` and never start a daemon: the one that
started the worker comes back by itself, and they wait for it.
"""

import math
import os
import re
from typing import TYPE_CHECKING, Final, Literal

from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.ending import settled
from subagents.cli.flags import Annotated, Json, Parameter, refusal
from subagents.cli.reading import read
from subagents.cli.runs.selectors import path_of
from subagents.client.client import Document
from subagents.client.worker_calls import WorkerCalls
from subagents.errors import (
    EXIT_ANSWER_IS_NO,
    EXIT_OK,
    EXIT_PENDING,
    EXIT_RUN_UNSUCCESSFUL,
    UsageError,
)
from subagents.text import parse_duration

if TYPE_CHECKING:
    from subagents.api.wire.message_answers import WorkerRequest

RunId = Annotated[
    str | None,
    Parameter(
        name="--run", help="The run to report for. Default: $SUBAGENTS_RUN_ID.", metavar="RUN"
    ),
]
Texts = tuple[str, ...]
WHOLE: Final = r"-?[0-9]{1,15}"


def report(
    summary: Annotated[str, Parameter(help="What was done.")],
    /,
    *,
    status: Annotated[
        Literal["complete", "partial", "failed"], Parameter(help="Default: complete.")
    ] = "complete",
    confidence: Annotated[
        Literal["high", "medium", "low"] | None, Parameter(help="How certain you are.")
    ] = None,
    artifact: Annotated[
        Texts, Parameter(help="A file you produced. Repeatable.", metavar="PATH[=TEXT]")
    ] = (),
    blocker: Annotated[Texts, Parameter(help="Something that blocked you. Repeatable.")] = (),
    warning: Annotated[Texts, Parameter(help="Something to look at. Repeatable.")] = (),
    run: RunId = None,
    json: Json = False,
) -> None:
    """Report that the task is complete. The last report counts; make it the last thing you do.

    For example:

        subagents report 'counted 12 files' --artifact out.json='the counts'

        subagents report 'half done' --status partial --blocker 'no network'
    """
    artifacts = [
        dict(zip(("path", "description"), each.split("=", 1), strict=False)) for each in artifact
    ]
    body: Document = {
        "summary": summary,
        "status": status,
        "artifacts": artifacts,
        "blockers": list(blocker),
        "warnings": list(warning),
        **({} if confidence is None else {"confidence": confidence}),
    }
    _tell(run, "report", body, json=json)


def progress(
    phase: Annotated[str, Parameter(help="What you are doing, in a few words.", metavar="TEXT")],
    percent: Annotated[float | None, Parameter(help="0 to 100.", metavar="PERCENT")] = None,
    /,
    *,
    level: Annotated[
        Literal["L0_operational", "L1_plan_update", "L2_detail"] | None,
        Parameter(help="The level of the update.", metavar="LEVEL"),
    ] = None,
    metric: Annotated[
        Texts, Parameter(help="A metric to store with it. Repeatable.", metavar="NAME=VALUE")
    ] = (),
    run: RunId = None,
    json: Json = False,
) -> None:
    """Report progress. At most one update in 30 seconds is stored; it says so of the others.

    For example:

        subagents progress 'reading files' 40

        subagents progress 'testing' --metric passed=12 --metric failed=1
    """
    body: Document = {"phase": phase}
    if percent is not None:
        if not 0 <= percent <= 100:
            raise UsageError(
                f"percent must be 0 to 100, not {percent:g}", details={"field": "percentComplete"}
            )
        body["percentComplete"] = percent
    if level is not None:
        body["level"] = level
    if metric:
        body["metrics"] = dict(map(_metric, metric))
    _tell(run, "progress", body, json=json)


def notify(
    message: Annotated[str, Parameter(help="The message.", metavar="TEXT")],
    /,
    *,
    priority: Annotated[
        Literal["info", "question", "blocker"], Parameter(help="Default: info.")
    ] = "info",
    run: RunId = None,
    json: Json = False,
) -> None:
    """Send a message to the requester without waiting for an answer.

    For example:

        subagents notify 'found 3 more repositories'

        subagents notify 'the disk is full' --priority blocker
    """
    _tell(run, "notify", {"message": message, "priority": priority}, json=json)


def ask(
    question: Annotated[str, Parameter(help="The question.", metavar="TEXT")],
    /,
    *,
    option: Annotated[Texts, Parameter(help="A possible answer. Repeatable.")] = (),
    context: Annotated[str | None, Parameter(help="Background for the question.")] = None,
    timeout: Annotated[
        str | None,
        Parameter(
            help="How long to wait for an answer. Default: until there is one; with --default 10m.",
            metavar="DURATION",
        ),
    ] = None,
    default: Annotated[
        str | None, Parameter(help="The answer to use if nobody answers in time.", metavar="TEXT")
    ] = None,
    decision: Annotated[
        bool,
        Parameter(
            help="Print the decision (answer, approve, deny, default, timeout or cancelled) on"
            " stdout, and the text of the answer on stderr."
        ),
    ] = False,
    run: RunId = None,
    json: Json = False,
) -> int:
    """Ask the requester a question, wait for the answer and print it.

    The exit code is 0 if the question was answered or approved (or the default was used), 9 if it
    was denied, 5 if it was cancelled and 8 if nobody answered in time. An answer in words is an
    answer, also "no": for a yes alone, compare what --decision prints.

    For example:

        branch=$(subagents ask 'which branch?' --default main --timeout 2m)

        [ "$(subagents ask 'deploy?' --decision)" = approve ] && make deploy
    """
    timeout_s = None if timeout is None else parse_duration(timeout, field="--timeout") / 1000
    if timeout_s is not None and timeout_s < 1:
        hint = "leave it out to wait until somebody answers"
        raise refusal("--timeout", f"must be at least 1s, not {timeout!r}", hint=hint)
    with connect() as client:
        found = WorkerCalls(client, _run_id(run)).ask(
            question, options=option, context=context, default=default, timeout_s=timeout_s
        )
    asked: WorkerRequest = read(client, found, "message_answers:WorkerRequest")
    code = _answer_code(asked)
    # The question was asked and answered: a broken pipe now must not make a script ask again.
    settled(code)
    if json:
        output.document(client.received)
    else:
        _print_answer(asked, decision_only=decision)
    return code


def _answer_code(asked: "WorkerRequest") -> int:
    if asked.status == "answered":
        # In a shell the exit code is the answer: no must not read as yes.
        return EXIT_ANSWER_IS_NO if asked.decision == "deny" else EXIT_OK
    return EXIT_RUN_UNSUCCESSFUL if asked.status == "cancelled" else EXIT_PENDING


def _print_answer(asked: "WorkerRequest", *, decision_only: bool) -> None:
    if decision_only:
        output.data(asked.decision or asked.status)
        if asked.answer:
            output.note(asked.answer)
    elif asked.status == "answered":
        output.data(asked.answer or asked.decision or "")
    else:
        output.note(f"{asked.request_id}: {asked.status}")


def _metric(text: str) -> tuple[str, str | float]:
    """``NAME=VALUE``; a value that reads as a number is one.

    Raises:
        UsageError: No name, or no value.
    """
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise UsageError(f'--metric must be NAME=VALUE, not "{text}"', details={"field": "metrics"})
    if re.fullmatch(WHOLE, value):
        return name, int(value)
    try:
        number = float(value)
    except ValueError:
        return name, value
    # JSON has no infinity and no NaN: these words stay words.
    return name, number if math.isfinite(number) else value


def _tell(
    run: str | None,
    what: Literal["report", "progress", "notify"],
    body: Document,
    *,
    json: bool,
) -> None:
    with connect() as client:
        answer = WorkerCalls(client, _run_id(run)).tell(what, body)
    if json:
        output.document(client.received)
    elif answer.get("status") == "rate_limited":
        output.note(f"not stored: too soon; try again in {answer.get('retryAfterSeconds')} s")
    elif "note" in answer:
        output.note(str(answer["note"]))


def _run_id(given: str | None) -> str:
    if given:
        path_of(given)  # refuses what may name several
    run_id = given or os.environ.get("SUBAGENTS_RUN_ID")
    if not run_id:
        raise UsageError(
            "this is for workers: SUBAGENTS_RUN_ID is not set",
            hint="name the run with --run",
            details={"field": "SUBAGENTS_RUN_ID"},
        )
    return run_id


def worker(
    function: Annotated[str, Parameter(help="Its module and its name.", metavar="MODULE:FUNCTION")],
    task: Annotated[
        str | None, Parameter(help="To try it by hand. Default: the task of the run.")
    ] = None,
    /,
) -> int:
    """Run a Python function, decorated with @worker, as an agent's worker.

    It is the command of an agent of the runtime `command`. The module is looked for in the working
    directory, in PYTHONPATH and among the packages of the Python that runs this command; `python
    -m subagents worker` chooses that Python.

    For example:

        subagents worker jobs:count_words 'two words'

        python -m subagents worker jobs:count_words
    """
    from subagents.client.worker_process import work  # noqa: PLC0415  the others start sooner

    return work(function, task)
