"""The commands of workers, ``report progress notify ask``, and ``worker``, which is one."""

from typing import Annotated, Literal

from cyclopts import Parameter

from subagents.cli.flags import Json
from subagents.cli.workers import worker_words

RunId = Annotated[
    str | None,
    Parameter(
        name="--run", help="The run to report for. Default: $SUBAGENTS_RUN_ID.", metavar="RUN"
    ),
]
Texts = tuple[str, ...]


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
) -> int:
    """Report that the task is complete. The last report counts; make it the last thing you do.

    For example:

        subagents report 'counted 12 files' --artifact out.json='the counts'

        subagents report 'half done' --status partial --blocker 'no network'
    """
    return worker_words.report(
        summary,
        status=status,
        confidence=confidence,
        artifact=artifact,
        blocker=blocker,
        warning=warning,
        run=run,
        json=json,
    )


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
) -> int:
    """Report progress. At most one update in 30 seconds is stored; others are dropped silently.

    For example:

        subagents progress 'reading files' 40

        subagents progress 'testing' --metric passed=12 --metric failed=1
    """
    return worker_words.progress(phase, percent, level=level, metric=metric, run=run, json=json)


def notify(
    message: Annotated[str, Parameter(help="The message.", metavar="TEXT")],
    /,
    *,
    priority: Annotated[
        Literal["info", "question", "blocker"], Parameter(help="Default: info.")
    ] = "info",
    run: RunId = None,
    json: Json = False,
) -> int:
    """Send a message to the requester without waiting for an answer.

    For example:

        subagents notify 'found 3 more repositories'

        subagents notify 'the disk is full' --priority blocker
    """
    return worker_words.notify(message, priority=priority, run=run, json=json)


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
    return worker_words.ask(
        question,
        option=option,
        context=context,
        timeout=timeout,
        default=default,
        decision=decision,
        run=run,
        json=json,
    )


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
