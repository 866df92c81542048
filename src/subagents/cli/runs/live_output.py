"""What the worker of one run says while it is waited for, and answers to what it asks."""

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, cast

from subagents.cli import output
from subagents.cli.connection import POLL_S, connect
from subagents.cli.reading import Answer, read
from subagents.cli.runs.selectors import path_of
from subagents.client.client import Client, Query, segment
from subagents.errors import SubagentsError
from subagents.text import chosen

if TYPE_CHECKING:
    from subagents.api.wire.log_answers import LogLine, LogPage
    from subagents.api.wire.message_answers import WorkerRequest

PAGE_LINES: Final = 500
"""The lines of one look; more than these in a quarter of a second cannot be read."""
SPOKEN: Final = frozenset({"text", "thinking", "tool", "error"})
"""The worker's own lines; the rest is ours: the task, and attempts that begin and end."""
KEPT_CHARS: Final = 1024 * 1024
OTHERS_MAX: Final = 10
"""The other lines among which a result is still seen on the screen."""
PAUSE_S: Final = 0.25
"""The pause between two pages: more than four in a second cannot be read."""
JOIN_S: Final = 0.05
LOOK_S: Final = 0.5


class LiveOutput:
    """The lines of a run's transcript from now on, each once.

    A thread long-polls for them: a worker that says nothing costs nothing.
    """

    def __init__(self, run_id: str) -> None:
        self._path = path_of(run_id, "/log")
        self._where = f"subagents log {run_id}"
        self._next_seq = 0
        self._kept = ""
        self._heard: SimpleQueue[LogLine] = SimpleQueue()
        self._is_over = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen within this; afterwards ``new`` has what was said until its end."""
        with connect() as client:
            thread = threading.Thread(target=self._listen, args=(client,), name="log", daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._is_over.set()
                while thread.is_alive():
                    client.close()  # it may just be about to connect
                    thread.join(JOIN_S)
        # What came between the last page and the end of the run.
        with connect() as client, suppress(SubagentsError):
            self._take_page(client, wait_s=0)

    def new(self) -> "list[LogLine]":
        """The newest lines since the last call; one says how many before them were passed over."""
        found = []
        with suppress(Empty):
            while True:
                found.append(self._heard.get_nowait())
        return found

    def _listen(self, client: Client) -> None:
        while not self._is_over.is_set():
            # A daemon that is away comes back, and the wait itself reports one that does not.
            with suppress(SubagentsError):
                self._take_page(client, wait_s=int(POLL_S))
            self._is_over.wait(PAUSE_S)

    def _take_page(self, client: Client, *, wait_s: int) -> None:
        query: Query = {"afterSeq": self._next_seq, "tail": PAGE_LINES, "waitSeconds": wait_s}
        answer = client.get(self._path, query, timeout_s=wait_s)
        page: LogPage = read(client, answer, "log_answers:LogPage")
        self._next_seq = page.next_seq
        passed_over = page.total_lines - page.returned_lines
        lines: list[LogLine] = [line for line in page.lines if line.type in SPOKEN]
        if passed_over:
            self._kept = ""
            text = f"… {passed_over:,} lines more: {self._where}"
            lines = [cast("LogLine", Answer({"type": "system", "text": text})), *lines]
        texts = [f"{line.text}\n" for line in page.lines if line.type == "text"]
        self._kept = (self._kept + "".join(texts))[-KEPT_CHARS:]
        for line in lines:
            self._heard.put(line)

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
    """Whether a person can type an answer here; to a job in the background none can."""
    if not sys.stdin.isatty():
        return False
    try:
        return os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno())
    except OSError:  # no shell that controls jobs
        return True


def answer_in_place(client: Client, request: "WorkerRequest", is_open: Callable[[], bool]) -> None:
    """Ask the person for the answer and send it; an empty line leaves it open.

    The question was shown. Returns as well when it ``is_open`` no more: it was answered elsewhere,
    withdrawn, or its run has ended.
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
