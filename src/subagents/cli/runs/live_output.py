"""What the worker of one run says while it is waited for, and answers to what it asks."""

import os
import select
import sys
from collections.abc import Callable
from typing import Final

from subagents.api.wire.log_answers import LogLine, LogPage
from subagents.api.wire.message_answers import WorkerRequest
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.runs.selectors import path_of
from subagents.client.client import Client, Query, segment
from subagents.errors import SubagentsError
from subagents.text import chosen

PAGE_LINES: Final = 500
"""Of one look; what a worker wrote beyond them in a quarter of a second nobody can read."""
SPOKEN: Final = frozenset({"text", "thinking", "tool", "error"})
"""The rest is of us: the task, and attempts that begin and end, which the tree tells."""
KEPT_CHARS: Final = 1024 * 1024
OTHERS_MAX: Final = 10
"""With more lines than these beside it, a result has left the screen, or is not seen in them."""
LOOK_S: Final = 0.5


class LiveOutput:
    """The lines of a run's transcript from now on, each once.

    Args:
        run_id: The run.
    """

    def __init__(self, run_id: str) -> None:
        self._path = path_of(run_id, "/log")
        self._where = f"subagents log {run_id}"
        self._next_seq = 0
        self._kept = ""

    def new(self, client: Client) -> list[LogLine]:
        """The newest lines since the last look; one says how many before them were passed over.

        Raises:
            SubagentsError: As the daemon refuses, or is not there.
        """
        query: Query = {"afterSeq": self._next_seq, "tail": PAGE_LINES}
        page = read(client.get(self._path, query), LogPage)
        self._next_seq = page.next_seq
        passed_over = page.total_lines - page.returned_lines
        lines = [line for line in page.lines if line.type in SPOKEN]
        if passed_over:
            self._kept = ""
            text = f"… {passed_over:,} lines more: {self._where}"
            lines = [LogLine(type="system", text=text), *lines]
        texts = [f"{line.text}\n" for line in page.lines if line.type == "text"]
        self._kept = (self._kept + "".join(texts))[-KEPT_CHARS:]
        return lines

    def ended_with(self, result: str) -> bool:
        """Whether this result stands on the screen already, as the worker's last words.

        A few other lines may stand among and behind it: what a command says on stderr.
        """
        wanted, others = result.strip().splitlines(), 0
        for line in reversed(self._kept.strip().splitlines()):
            if not wanted or others > OTHERS_MAX:
                break
            if line.rstrip() == wanted[-1].rstrip():
                wanted.pop()
            else:
                others += 1
        return bool(result.strip()) and not wanted and others <= OTHERS_MAX


def can_ask() -> bool:
    """Whether somebody is there who can type an answer; nobody can to a job in the background."""
    if not sys.stdin.isatty():
        return False
    try:
        return os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno())
    except OSError:  # no shell that controls jobs
        return True


def answer_in_place(client: Client, request: WorkerRequest, is_open: Callable[[], bool]) -> None:
    """Ask the person for the answer and send it; an empty line leaves it open.

    Returns as well when the question was answered elsewhere, withdrawn, or its run has ended.

    Args:
        client: Of the daemon.
        request: The question, which was shown.
        is_open: Whether it still waits for an answer; asked twice a second.
    """
    sys.stderr.write("  answer (Enter = later): ")
    sys.stderr.flush()
    while not select.select([sys.stdin], [], [], LOOK_S)[0]:
        if not is_open():
            output.note("\n  it is not open any more")
            return
    text = sys.stdin.readline().strip()
    if not text:
        output.note(f"  left open; to answer it: subagents answer {request.request_id} TEXT")
        return
    body = {"response": chosen(text, request.options), "decision": "answer"}
    try:
        client.post(f"/v1/requests/{segment(request.request_id)}/respond", body)
    except SubagentsError as error:
        output.note(f"  not answered: {error.message}")
