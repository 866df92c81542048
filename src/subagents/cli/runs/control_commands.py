"""Commands that change a run: steer, answer, pause, resume, prioritize, cancel, retry, …"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

from subagents.api.wire.run_answers import RunDetail, RunRow, SpawnReceipt
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import AddCost, AddTokens, Json, Parameter, Run, Runs, Yes
from subagents.cli.runs import selectors
from subagents.cli.runs.selectors import path_of
from subagents.cli.show import render
from subagents.client.client import Client, Document, segment
from subagents.errors import Conflict, UsageError
from subagents.text import chosen, counted

TEXT_METAVAR: Final = "TEXT"
REQUEST: Final = re.compile(r":[qn][0-9]+$")
"""Ends the id of a question or of a notice; anything else names a run."""


def steer(
    run: Run,
    message: Annotated[str, Parameter(help="The message.", metavar=TEXT_METAVAR)],
    /,
    *,
    add_tokens: AddTokens = None,
    add_cost_usd: AddCost = None,
    json: Json = False,
) -> None:
    """Send a message to a live worker. If its runtime takes no input now, the message waits.

    For example:

        subagents steer last 'leave the vendored files out'

        subagents steer docs 'the tests, too' --add-tokens 200000
    """
    body = {"message": message, "addTokens": add_tokens, "addCostUsd": add_cost_usd}
    with connect() as client:
        answer = client.post(path_of(run, "/steer"), body)
    _done(answer, render.status_line(answer), json=json)


def answer(
    request: Annotated[
        str,
        Parameter(
            help="Id of the question, or a run with exactly one open question.", metavar="REQUEST"
        ),
    ],
    text: Annotated[str, Parameter(help="The answer.", metavar=TEXT_METAVAR)] = "",
    /,
    *,
    decision: Annotated[
        Literal["answer", "approve", "deny"],
        Parameter(help="Approve or deny instead of giving an answer. Default: answer."),
    ] = "answer",
    json: Json = False,
) -> None:
    """Answer a worker's question or the blocker it reported.

    For example:

        subagents answer r-0123456789:q1 'yes, drop the column'

        subagents answer last --decision deny
    """
    if not text and decision == "answer":
        raise UsageError(
            "the answer is missing",
            hint=f"subagents answer {request} 'yes'",
            details={"field": "text"},
        )
    with connect() as client:
        request_id = request if REQUEST.search(request) else _only_question(client, request)
        if text.isdecimal():
            run = read(client.get(path_of(REQUEST.sub("", request_id))), RunDetail)
            asked = (each.options for each in run.requests if each.request_id == request_id)
            text = chosen(text, next(asked, ()))
        body = {"response": text, "decision": decision}
        answered = client.post(f"/v1/requests/{segment(request_id)}/respond", body)
    _done(answered, f"{request_id}: {answered.get('status')}", json=json)


def _only_question(client: Client, selector: str) -> str:
    run = read(client.get(path_of(selector)), RunDetail)
    pending = [request for request in run.requests if request.status == "pending"]
    if len(pending) == 1:
        return pending[0].request_id
    if not pending:
        on = "steer" if run.outcome is None else "continue" if run.native_session else ""
        told = [f"send it a message: subagents {on} {run.run_id} TEXT"] if on else []
        again = [] if run.outcome is None else [f"start again: subagents retry {run.run_id}"]
        raise Conflict(
            f"{run.label} ({run.run_id}) has no open question", hint="; or ".join((*told, *again))
        )
    listed = "; ".join(f"{each.request_id}: {each.question[:60]}" for each in pending)
    raise UsageError(f"{run.label} has {len(pending)} open questions: {listed}")


def pause(*runs: Runs, json: Json = False) -> None:
    """Pause runs: those that wait do not start, commands stop where they are until `resume`.

    An agent at work finishes its turn and gets no further one.

    For example:

        subagents pause nightly

        subagents pause phase:queued
    """
    each_of(runs, "pause", json=json)


def resume(*runs: Runs, json: Json = False) -> None:
    """Resume paused runs.

    For example:

        subagents resume nightly

        subagents resume tree:nightly
    """
    each_of(runs, "resume", json=json)


def prioritize(
    run: Run,
    priority: Annotated[int, Parameter(help="Higher starts first. Default of runs: 0.")],
    /,
    *,
    json: Json = False,
) -> None:
    """Give a run another place among those that wait for a slot.

    It holds for the run's retries, too. What is at work already is not interrupted.

    For example:

        subagents prioritize nightly 10

        subagents prioritize last -5
    """
    with connect() as client:
        answer = client.post(path_of(run, "/priority"), {"priority": priority})
    _done(answer, f"{_row(answer)}  priority {priority}", json=json)


def each_of(runs: Sequence[str], verb: str, *, json: bool) -> None:
    """Post the verb to each run and print how it stands; at least one must be named."""
    with connect() as client:
        answers = _posted(client, runs, _named(client, runs), f"/{verb}")
    _print_all(answers, runs, _row, json=json)


def _posted(
    client: Client, runs: Sequence[str], named: Sequence[str], call: str, body: object = None
) -> list[Document]:
    """What each run answers; without those that a selector found and for which it is too late."""
    answers, late = list[Document](), list[Conflict]()
    for each in named:
        try:
            answers.append(client.post(path_of(each, call), body))
        except Conflict as error:
            late.append(error)
            if each in runs or len(late) == len(named):
                raise
    if late:
        output.note(f"{counted(len(late), 'run')} left out, such as: {late[0].message}")
    return answers


def _named(client: Client, runs: Sequence[str]) -> list[str]:
    if not runs:
        raise UsageError("name at least one run", hint="`last` is the newest")
    return selectors.expand(client, runs)


def _row(answer: Document) -> str:
    row = read(answer, RunRow)
    return f"{row.run_id}  {row.label}  {row.run_status or row.phase}"


def _print_all(
    answers: Sequence[Document],
    runs: Sequence[str],
    line: Callable[[Document], str],
    *,
    json: bool,
) -> None:
    if json:
        # A script that named one run reads one document, whatever that run was called by.
        output.document(answers[0] if len(runs) == 1 == len(answers) else {"runs": answers})
        return
    for each in answers:
        output.line(line(each))


def cancel(
    *runs: Runs,
    turn: Annotated[
        bool, Parameter(help="End it as `partial`, with its session kept for `subagents continue`.")
    ] = False,
    reason: Annotated[
        str | None, Parameter(help="The reason, for the record.", metavar=TEXT_METAVAR)
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Cancel runs and everything they spawned. Their output so far is kept.

    Asks before cancelling more than one run; without a terminal, --yes is required.

    For example:

        subagents cancel last

        subagents cancel phase:queued --reason 'wrong branch' --yes

        subagents cancel docs --turn
    """
    call = "/interrupt" if turn else "/cancel"
    with connect() as client:
        named = _named(client, runs)
        # Runs that were named one by one are meant; a selector may match more than expected.
        needs_asking = any(selectors.is_several(each) for each in runs) and len(named) > 1
        if needs_asking and not output.is_confirmed(f"Cancel {len(named)} runs?", yes=yes):
            output.note("Nothing was cancelled.")
            return
        body = {} if reason is None else {"reason": reason}
        answers = _posted(client, runs, named, call, body)
    _print_all(answers, runs, render.status_line, json=json)
    for each in answers if turn and not json else ():
        output.note(f"  to continue: subagents continue {each.get('runId')} MESSAGE")


def retry(
    run: Run,
    /,
    *,
    wait: Annotated[bool, Parameter(help="Wait for the end and print the result.")] = False,
    detach: Annotated[bool, Parameter(name=("--detach", "-d"), is_shown=False)] = False,
    json: Json = False,
) -> int | None:
    """Start a new run with the parameters of a run that ended.

    For example:

        subagents retry last --wait

        subagents wait "$(subagents retry tests)"
    """
    wait, started = wait and not detach, time.monotonic()
    with connect(starts=True) as client:
        receipt = client.post(path_of(run, "/retry"))
    if json and not wait:
        output.document(receipt)
        return None
    accepted = read(receipt, SpawnReceipt)
    if wait:
        from subagents.cli.runs import follow, submission  # noqa: PLC0415  others need none of it

        submission.say_accepted([accepted], is_brief=follow.can_draw())
        return submission.wait_and_print([accepted.run_id], started=started, json=json)
    # The id alone on stdout, so that `$(subagents retry RUN)` is one.
    output.line(accepted.run_id)
    output.note(f"{accepted.label} ({accepted.agent_id}) is {accepted.phase}")
    output.note(f"  to wait for it: subagents wait {accepted.run_id}")
    return None


def _done(answer: Document, text: str, *, json: bool) -> None:
    if json:
        output.document(answer)
    else:
        output.line(text)
