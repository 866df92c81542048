"""``continue`` and ``interrupt``: go on with a session, and end the turn that is under way.

Source: 5-surfaces §2; 2-lifecycle §2, §10; docs/decisions/0024.
"""

import time
from typing import Annotated

from cyclopts import Parameter

from subagents.api.wire.run_answers import SentMessage, SpawnReceipt
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Run
from subagents.cli.runs.run_commands import wait_and_print
from subagents.cli.runs.selectors import path_of
from subagents.cli.runs.spawn_flags import task_text
from subagents.errors import EXIT_OK
from subagents.text import one_line


def continue_(
    run: Run,
    /,
    *message: Annotated[
        str, Parameter(help="What to say; `-` reads it from stdin.", metavar="MESSAGE")
    ],
    detach: Annotated[
        bool, Parameter(name=["--detach", "-d"], help="Do not wait; print the run's id.")
    ] = False,
    json: Json = False,
) -> int:
    """Go on with a run's session: a new run in it, or a message to the one at work there.

    However the run ended (done, interrupted, out of time or budget, cancelled, lost), its agent
    goes on where it was, with all it knows. Then as `run`: waits and prints the result.

    For example:

        subagents continue last 'now the tests, too'

        subagents continue docs 'you were cut off: finish chapter 3' --detach
    """
    text = task_text(message)
    started = time.monotonic()
    with connect(starts=True) as client:
        answer = client.post(path_of(run, "/send"), {"message": text}, timeout_s=30)
    sent = read(answer, SentMessage)
    for warning in sent.warnings:
        output.note(f"warning: {warning}")
    if json and detach:
        output.document(answer)
        return EXIT_OK
    if detach:
        output.line(sent.run_id)
    output.note(said(sent))
    if detach:
        return EXIT_OK
    accepted = SpawnReceipt(run_id=sent.run_id, label=sent.label)
    return wait_and_print([accepted], started=started, json=json)


def said(sent: SentMessage) -> str:
    """What became of a message, in one line."""
    name = one_line(sent.label, output.CELL_CHARS_MAX)
    if sent.is_new:
        return f"{sent.run_id}: {name} goes on with the session of {sent.continues}"
    kept = "" if sent.status == "steered" else ", for its next turn"
    return f"{sent.run_id}: {name} is at work and has the message ({sent.status}{kept})"


def interrupt(
    run: Run,
    /,
    *,
    reason: Annotated[str | None, Parameter(help="Kept on record.", metavar="TEXT")] = None,
    json: Json = False,
) -> int:
    """End the turn a worker is in; its session is kept, and what it spawned is cancelled.

    The run ends `partial` with what it has said so far. `subagents continue` goes on with it.

    For example:

        subagents interrupt last

        subagents interrupt docs --reason 'wrong branch'
    """
    with connect() as client:
        body = {} if reason is None else {"reason": reason}
        answer = client.post(path_of(run, "/interrupt"), body)
    if json:
        output.document(answer)
        return EXIT_OK
    output.line(f"{answer.get('runId')}: {answer.get('status')}")
    output.note(f"  go on with it: subagents continue {answer.get('runId')} MESSAGE")
    return EXIT_OK
