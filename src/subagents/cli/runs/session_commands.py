"""``continue`` and ``interrupt``: continue a session, and end the turn that is under way."""

import time
from typing import Annotated, Final

from subagents.api.wire.run_answers import SentMessage
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import AddCost, AddTokens, Json, Parameter, Run, refuse_unused
from subagents.cli.runs.selectors import path_of
from subagents.cli.runs.spawn_flags import task_text
from subagents.cli.runs.submission import wait_and_print
from subagents.cli.show import render
from subagents.errors import EXIT_OK

LINES: Final = 20
"""Lines of the transcript with which following begins."""


def continue_(
    run: Run,
    /,
    *message: Annotated[
        str,
        Parameter(
            help="The message; `-` reads it from stdin. None: follow the session and type.",
            metavar="[MESSAGE...]",
        ),
    ],
    detach: Annotated[
        bool, Parameter(name=("--detach", "-d"), help="Do not wait; print the id of the run.")
    ] = False,
    tail: Annotated[
        int | None,
        Parameter(
            name=("--tail", "-n"),
            help=f"Without a message: start with the newest N lines. Default: {LINES}.",
            metavar="N",
        ),
    ] = None,
    add_tokens: AddTokens = None,
    add_cost_usd: AddCost = None,
    json: Json = False,
) -> int:
    """Continue the session of a run: start a new run in it, or message the one that is running.

    However the run ended (completed, interrupted, timed out, over budget, cancelled or lost), its
    agent continues where it stopped, with everything it knows. Like `run`, this waits for the
    result and prints it.

    Without a message it follows the session live, and each line that you type is a message.
    `/interrupt` ends the turn; Ctrl-C or Ctrl-D detaches without stopping the work. When stdin is a
    pipe, each line is a message, and at the end of the input the session is followed until no run
    is active; the exit code is then that of `run`.

    For example:

        subagents continue last 'now the tests, too'

        subagents continue docs 'you were cut off: finish chapter 3' --detach

        subagents continue docs
    """
    if not message:
        from subagents.cli.runs.attach import attach  # noqa: PLC0415  with threads, as needed

        refuse_unused("needs a message", detach=detach, add_tokens=bool(add_tokens))
        refuse_unused("needs a message", add_cost=bool(add_cost_usd))
        return attach(run, tail=LINES if tail is None else tail, json=json)
    refuse_unused("does not go with a message", tail=tail is not None)
    body = {"message": task_text(message), "addTokens": add_tokens, "addCostUsd": add_cost_usd}
    started = time.monotonic()
    with connect(starts=True) as client:
        answer = client.post(path_of(run, "/send"), body, timeout_s=30)
    sent = read(answer, SentMessage)
    for warning in sent.warnings:
        output.note(f"warning: {sent.run_id}: {warning}")
    if json and detach:
        output.document(answer)
        return EXIT_OK
    if detach:
        output.line(sent.run_id)
    output.note(render.sent_text(sent))
    return EXIT_OK if detach else wait_and_print([sent.run_id], started=started, json=json)
