"""Waits for runs while a person watches: one thread long-polls, this one draws and passes on.

Questions of the runs' workers are shown, too. A daemon that dies in the middle is brought back: its
runs continue without it, and so does the wait.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from subagents.cli import long_results, output
from subagents.cli.connection import POLL_S, connect
from subagents.cli.ending import exit_code, settled
from subagents.cli.reading import read
from subagents.cli.show import render
from subagents.cli.standard_streams import STDOUT, is_closed
from subagents.client.client import Client, Document, persistently, segment
from subagents.errors import SubagentsError
from subagents.text import counted, one_line
from subagents.unread import is_heard, is_read_within

if TYPE_CHECKING:
    from subagents.api.wire.message_answers import WorkerRequest
    from subagents.api.wire.run_answers import RunDetail, RunNode, RunResult, WaitResult
    from subagents.cli.runs.live_output import LiveOutput
    from subagents.cli.show.live_screen import LiveTrees

FRAME_S: Final = 0.25
"""Four frames a second: more cannot be read."""
FIRST_FRAME_S: Final = 0.1
READ_S: Final = 2.0
"""The time that the reader of our output has to take it; a slower one has it all the same."""
QUIET_POLL_S: Final = 2.0
"""How often questions are looked for when nothing is drawn."""
WATCHED_MAX: Final = 20
"""The most trees that are drawn; a screen holds no more."""
ALL: Final = 10
"""Tenths of runs that are waited for together; a log gets a line for each."""


class GroupLine(NamedTuple):
    """How a group stands."""

    text: str
    tenths: int
    """How many of its runs have ended."""
    asking: Sequence[str]
    """The ids of those with questions."""


class RunGroup(NamedTuple):
    """Runs that are waited for together, and have one name."""

    look: Callable[[Client], GroupLine]
    """Raises ``SubagentsError``."""
    selector: str
    """What ``wait``, ``show`` and ``cancel`` call all of them: ``plan:r-…``."""


class Waiting(threading.Thread):
    """Long-polls until the runs ended or the time is up; ``document`` is then the whole answer."""

    def __init__(
        self, run_ids: Sequence[str], *, until: str, timeout_s: float | None, starts: bool
    ) -> None:
        super().__init__(name="wait", daemon=True)
        self._run_ids = list(run_ids)
        self.watched = list(run_ids)
        """Those that are waited for, once that is known."""
        self._until = until
        self._starts = starts
        self._due = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._completed: dict[str, object] = {}
        self._offered: dict[str, None] = {}
        self.document: Document = {}
        """The answers of all polls together."""
        self.result: WaitResult
        """The same to read; set once the wait is over without an error."""
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with connect(starts=self._starts) as client:
                while self._poll(client):
                    pass
        except BaseException as error:  # noqa: BLE001  whoever joins this thread raises it
            self.error = error

    def _poll(self, client: Client) -> bool:
        """One long poll; returns whether another is needed."""

        def wait() -> Document:
            # Computed anew for each try: what the daemon's absence took is not waited for again.
            left_s = max(0.0, self._due - time.monotonic())
            wait_s = min(POLL_S, left_s) if self.watched else 0.0
            body = {"runIds": self._run_ids, "until": self._until, "timeoutSeconds": wait_s}
            return client.post("/v1/wait", body, timeout_s=wait_s)

        answer = persistently(wait, until=self._due)
        waited: WaitResult = read(client, answer, "run_answers:WaitResult")
        listed = answer.get("completed")
        # By id: a run that ended in an earlier poll is in this answer as well.
        for each in listed if isinstance(listed, list) else []:
            self._completed[str(each["runId"])] = each
        self._offered.update(dict.fromkeys(waited.messages))
        if self._run_ids and not self.document:
            # By id from now on: `last`, or a label, may be another run's at the next poll.
            found = [each.run_id for each in waited.completed]
            found += [each.run_id for each in waited.pending]
            self._run_ids = self.watched = [*found, *(each.run_id for each in waited.errors)]
        self.watched = self.watched or [each.run_id for each in waited.pending]
        self.document = {
            "completed": list(self._completed.values()),
            "pending": answer.get("pending", []),
            "errors": answer.get("errors", []),
        }
        self.result = read(client, self.document, "run_answers:WaitResult")
        is_done = not waited.pending or (self._until == "any" and bool(self._completed))
        return not is_done and time.monotonic() < self._due

    @property
    def offered(self) -> list[str]:
        """Messages that count as read once they are printed."""
        return list(self._offered)


class _Follower:
    """Draws the runs' trees and passes their workers' questions on; see ``wait_for``."""

    def __init__(
        self,
        run_ids: Sequence[str],
        *,
        is_live: bool,
        spoken: "LiveOutput | None",
        group: RunGroup | None,
    ) -> None:
        self._group = group if len(run_ids) > WATCHED_MAX else None
        self._run_ids = list(run_ids)[:WATCHED_MAX]
        self._is_live = is_live
        self._spoken = spoken
        self._asked: set[str] = set()
        self._tenths = 0
        """Those that have ended, as far as a log says."""

    def follow(self, waiting: Waiting) -> None:
        """Until ``waiting`` is through; Ctrl-C leaves with the screen as it was."""
        waiting.start()
        pause_s = FRAME_S if self._is_live else QUIET_POLL_S
        listening = nullcontext() if self._spoken is None else self._spoken.listening()
        with connect() as client, self._screen() as screen:
            with listening:
                # Short at first on a terminal, which shall show something soon.
                waiting.join(FIRST_FRAME_S if self._is_live else pause_s)
                while waiting.is_alive():
                    self._run_ids = waiting.watched[:WATCHED_MAX]
                    self._look(client, screen)
                    waiting.join(pause_s)
            if screen is not None:
                trees = self._look(client, screen)
                if self._group is not None:
                    screen.clear()  # its summary says it, too
                elif len(self._run_ids) == 1 and not any(tree.children for tree in trees):
                    screen.clear()  # its one line is printed in full after this
        if waiting.error is not None:
            raise waiting.error

    def _screen(self) -> "AbstractContextManager[LiveTrees | None]":
        if not self._is_live:
            return nullcontext()
        from subagents.cli.show.live_screen import LiveTrees  # noqa: PLC0415  for terminals only

        return LiveTrees()

    def _look(self, client: Client, screen: "LiveTrees | None") -> "list[RunNode]":
        trees: list[RunNode] = []
        if self._group is not None:
            self._look_at_all(client, screen, self._group)
            return trees
        for run_id in self._run_ids:
            try:
                path = f"/v1/runs/{segment(run_id)}/tree"
                trees.append(read(client, client.get(path), "run_answers:RunNode"))
            except SubagentsError:
                # The wait itself reports an unknown run or a daemon that stays away.
                continue
        if screen is not None:
            if self._spoken is not None:
                screen.say(self._spoken.new())
            screen.show(trees)
        for node in (each for tree in trees for each in _all(tree)):
            if node.pending_request_count:
                self._pass_on_questions(client, screen, node.run_id)
        return trees

    def _look_at_all(self, client: Client, screen: "LiveTrees | None", group: RunGroup) -> None:
        try:
            found = group.look(client)
        except SubagentsError:
            return  # The wait itself reports a daemon that stays away.
        if screen is not None:
            screen.show_line(found.text)
        elif self._tenths < found.tenths < ALL:  # the end of all of them is printed after this
            self._tenths = found.tenths
            output.note(found.text)
        for run_id in found.asking:
            self._pass_on_questions(client, screen, run_id)

    def _pass_on_questions(self, client: Client, screen: "LiveTrees | None", run_id: str) -> None:
        for label, request in _open_questions(client, run_id):
            if request.request_id in self._asked:
                continue
            self._asked.add(request.request_id)
            from subagents.cli.runs.live_output import answer_in_place, can_ask  # noqa: PLC0415

            # One with a priority is a notice, which waits for no answer.
            if request.priority is None and screen is not None and can_ask():

                def is_open(request_id: str = request.request_id) -> bool:
                    found = _open_questions(client, run_id)
                    return any(each.request_id == request_id for _, each in found)

                with screen.aside():
                    _say_question(label, request)
                    answer_in_place(client, request, is_open)
            else:
                _say_question(label, request)
                output.note(f"  answer with: subagents answer {request.request_id} TEXT")


def _open_questions(client: Client, run_id: str) -> "list[tuple[str, WorkerRequest]]":
    """Each with the label of its run; none while the daemon is away."""
    try:
        answer = client.get(f"/v1/runs/{segment(run_id)}")
        run: RunDetail = read(client, answer, "run_answers:RunDetail")
    except SubagentsError:
        return []
    return [(run.label, each) for each in run.requests if each.status == "pending"]


def _say_question(label: str, request: "WorkerRequest") -> None:
    output.note(f"? {label} asks: {one_line(request.question, chars_max=400)}")
    if request.context:
        output.note(f"  context: {one_line(request.context, chars_max=400)}")
    for number, option in enumerate(request.options, start=1):
        output.note(f"  {number}  {one_line(option, chars_max=200)}")
    if request.default_answer:
        output.note(f"  if nobody answers: {one_line(request.default_answer, chars_max=200)}")


def _all(node: "RunNode") -> "list[RunNode]":
    return [node, *(each for child in node.children for each in _all(child))]


def can_draw() -> bool:
    """Whether a live tree can be drawn on stderr."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def wait_for(
    run_ids: Sequence[str],
    *,
    until: str,
    timeout_s: float | None,
    is_live: bool,
    starts: bool = False,
    spoken: "LiveOutput | None" = None,
    group: RunGroup | None = None,
) -> Waiting:
    """Wait and follow; returns with the answer, whatever the runs came to.

    Args:
        run_ids: Or other selectors of one run each; none = every run of this session.
        until: ``any`` or ``all``.
        timeout_s: In seconds; None = as long as it takes.
        is_live: Draw their trees, and let the person at the terminal answer questions.
        starts: Start the daemon when there is none.
        spoken: Show what this one's worker says.
        group: All of them are of this one; more than a screen holds are shown as one line.

    Raises:
        DaemonUnreachable: The daemon stayed away for half a minute.
        KeyboardInterrupt: Ctrl-C; the runs continue.
    """
    waiting = Waiting(run_ids, until=until, timeout_s=timeout_s, starts=starts)
    _Follower(run_ids, is_live=is_live, spoken=spoken, group=group).follow(waiting)
    return waiting


def told(
    waiting: Waiting,
    *,
    json: bool,
    is_any: bool = False,
    started: float | None = None,
    spoken: "LiveOutput | None" = None,
) -> int:
    """Print how a wait ended; the exit code says it, too, whatever becomes of that.

    What could not be printed stays unread, and is offered again at once. See ``print_ends``.
    """
    code = exit_code(waiting.result, is_any=is_any)
    settled(code)
    with HandOver(waiting.offered):
        if json:
            is_whole = long_results.print_document(waiting.document)
        else:
            is_whole = print_ends(waiting.result, started=started, spoken=spoken)
            if not any(waiting.document.values()):
                output.note("Nothing to wait for.")
    return long_results.exit_code(code, is_whole=is_whole)


class HandOver:
    """Prints messages one by one and marks as read those that stdout's reader took.

    A pipe has room for many that ``head`` will never read, so each waits for its reader. A slow
    one, such as a pager, gets the rest at once, and is taken to read it while it stays.

    Use it as a context. What ends it early goes on as such, and what was not taken stays unread.
    """

    def __init__(self, message_ids: Sequence[str]) -> None:
        self._ids = list(message_ids)
        self._taken = 0
        self._is_slow = is_closed(STDOUT)

    def printed(self) -> None:
        """The next one is written.

        Raises:
            BrokenPipeError: The reader is gone without it.
        """
        sys.stdout.flush()
        if not self._is_slow and not is_read_within(STDOUT, READ_S):
            if not is_heard(STDOUT):
                raise BrokenPipeError
            self._is_slow = True
        if not self._is_slow:
            self._taken += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # As one document, or to a slow reader: one that is still there is taken to read it. One
        # that is gone with a part of it still in the pipe was killed.
        is_left = kind is None and self._taken < len(self._ids) and not is_closed(STDOUT)
        if is_left and (is_read_within(STDOUT, READ_S) or is_heard(STDOUT)):
            self._taken = len(self._ids)
        settle(self._ids[: self._taken], self._ids[self._taken :])


def settle(read_ids: Sequence[str], returned_ids: Sequence[str]) -> None:
    """Consume what was read, and give back what was not: the next reader is offered it at once."""
    if read_ids or returned_ids:
        body = {"messageIds": list(read_ids)}
        if returned_ids:  # a daemon from before 0.2.0 knows no such field
            body["release"] = list(returned_ids)
        with connect() as client:
            persistently(lambda: client.post("/v1/inbox/ack", body), for_s=5.0)


def print_ends(
    waited: "WaitResult", *, started: float | None = None, spoken: "LiveOutput | None" = None
) -> bool:
    """The results on stdout, a line about each end on stderr: before it where there are several.

    Of many results in a pipe those that ended well are only counted there.

    Args:
        waited: How they ended.
        started: When, by the monotonic clock in seconds, for how long it took.
        spoken: What was shown of the only one; a result that stands there is not shown twice.

    Returns:
        Whether every result could be printed whole.
    """
    is_whole = True
    is_one = len(waited.completed) == 1 and not waited.pending
    is_counted = len(waited.completed) > WATCHED_MAX and not sys.stdout.isatty()
    for item in waited.completed:
        elapsed_ms = None
        if started is not None and is_one:
            elapsed_ms = round((time.monotonic() - started) * 1000)
        state = render.item_state(item)
        text = f"{render.icon(state)} {render.summary(item, elapsed_ms=elapsed_ms)}"
        reasons = [] if state == "ok" else render.error_lines(item.outcome, item.verification)
        # Of many that were cancelled each has the same to say.
        if is_short := state == "cancelled" and not is_one:
            text = ": ".join((text, *reasons[:1]))
        # Flushed first, so that both streams come in order where they are the same terminal.
        if not is_one and not (is_counted and state == "ok"):
            sys.stdout.flush()
            output.note(text)
        is_whole = _print_result(item, spoken) and is_whole
        if is_one:
            sys.stdout.flush()
            output.note(text)
        if is_short:
            continue
        if state != "ok":
            for reason in reasons:
                output.note(f"  {reason}")
            output.note(f"  see: subagents why {item.run_id}")
        render.say_leftovers(item, has_result=bool(_result_of(item)))
    if is_counted and (good := sum(render.item_state(each) == "ok" for each in waited.completed)):
        output.note(f"{render.icon('ok')} {counted(good, 'run')} ended ok")
    for pending in waited.pending:
        why = f" ({one_line(pending.why, output.CELL_CHARS_MAX)})" if pending.why else ""
        output.note(f"… {pending.label or pending.run_id}: {render.word(pending.phase)}{why}")
    for error in waited.errors:
        output.note(f"subagents: {error.run_id}: {error.error}")
    sys.stdout.flush()
    return is_whole


def _result_of(item: "RunResult") -> str | None:
    return item.result or (item.report.summary if item.report else None)


def _print_result(item: "RunResult", spoken: "LiveOutput | None") -> bool:
    """Print it unless it was shown already; returns whether all of it was there to print."""
    if item.result and spoken and sys.stdout.isatty() and spoken.ended_with(item.result):
        return True
    if item.result:
        return long_results.print_result(item)
    if text := _result_of(item):
        output.data(text)
    return True
