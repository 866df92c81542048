"""``continue`` without a message: follow a session over all its runs, and write into it.

A thread follows the transcript and prints it; this one reads what is typed. Both look at the same
session: when a message starts a run that continues it, the follower continues there.
"""

import math
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Final

from subagents.api.wire.log_answers import LogPage
from subagents.api.wire.run_answers import RunDetail, SentMessage
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import POLL_S, connect
from subagents.cli.ending import outcome_code
from subagents.cli.runs.selectors import path_of
from subagents.cli.show import log_lines as log
from subagents.cli.show import render
from subagents.client.client import Client, Document, Query, persistently
from subagents.errors import EXIT_OK, RateLimited, SubagentsError
from subagents.text import one_line

PROMPT: Final = "› "
PAGE_LINES: Final = 1_000
NEXT_RUN_S: Final = 1.0
"""The pause between two looks whether a session that has ended was continued."""
PATIENCE_S: Final = 10.0
"""How long a message waits for its turn (one per 2 s)."""
INTERRUPT: Final = "/interrupt"
LEAVE: Final = "/detach"


def attach(run: str, *, tail: int, json: bool) -> int:
    """Follow the session of a run and send what is typed; see ``continue``.

    Args:
        run: Any run of the session.
        tail: How many of the newest lines to begin with.
        json: Print documents, a line each.

    Returns:
        The exit code: at a terminal 0, with a pipe that of ``run``.
    """
    with connect() as client:
        session = newest(client, run)
        follower = Follower(session.run_id, tail=tail, json=json)
        if not json:
            output.note(f"{session.run_id}: {one_line(session.label, 60)} is {session.phase}")
        follower.start()
        try:
            if sys.stdin.isatty():
                _talk(client, follower, json=json)
            else:
                for line in sys.stdin:
                    _say(client, follower, line, json=json)
                follower.finish()
                ended = newest(client, follower.run_id).outcome
                return outcome_code([] if ended is None else [ended])
        except KeyboardInterrupt:
            pass
        finally:
            follower.leave()
        if follower.error is not None:
            raise follower.error
        now = newest(client, follower.run_id)
    continues = "the work continues" if now.outcome is None else "the session is kept"
    output.note(f"\nDetached; {continues}. Come back: subagents continue {now.run_id}")
    return EXIT_OK


def newest(client: Client, selector: str) -> RunDetail:
    """The newest run of the session that a run belongs to."""
    found = read(client.get(path_of(selector)), RunDetail)
    while found.continued_by is not None:
        found = read(client.get(path_of(found.continued_by)), RunDetail)
    return found


def _talk(client: Client, follower: "Follower", *, json: bool) -> None:
    """Read lines until Ctrl-D, or until nothing can be followed any more."""
    import readline  # noqa: PLC0415  importing it gives ``input`` its line editor

    # The prompt is drawn once keys are read: a Ctrl-D that comes before would be lost. Not every
    # line editor says when that is, and into a pipe there is none.
    hook = getattr(readline, "set_pre_input_hook", None) if sys.stdout.isatty() else None
    begun = follower.is_typed_under.set
    begun() if hook is None else hook(begun)
    while follower.error is None:
        try:
            line = input(PROMPT)
        except EOFError:
            return
        if line.strip() == LEAVE:
            return
        if line.strip() == INTERRUPT:
            follower.aside(
                lambda: render.status_line(client.post(path_of(follower.run_id, "/interrupt"), {}))
            )
        else:
            _say(client, follower, line, json=json)


def _say(client: Client, follower: "Follower", line: str, *, json: bool) -> None:
    message = line.strip()
    if not message:
        return

    def send() -> str:
        answer = _sent(client, follower.run_id, message)
        sent = read(answer, SentMessage)
        if sent.is_new:
            follower.go_on(sent.run_id)
        if json:
            follower.write([], answer)
        return "" if json else render.sent_text(sent)

    follower.aside(send)


def _sent(client: Client, run_id: str, message: str) -> Document:
    """Send once, whatever the daemon does meanwhile, and not faster than is allowed."""
    # With a key: a call that was cut off is repeated, and must not become a second message.
    body = {"message": message, "idempotencyKey": f"attach:{uuid.uuid4().hex}"}
    due = time.monotonic() + PATIENCE_S
    while True:
        try:
            return persistently(lambda: client.post(path_of(run_id, "/send"), body, timeout_s=30))
        except RateLimited as error:
            wait_s = error.retry_after_s or 1
            if time.monotonic() + wait_s > due:
                raise
            time.sleep(wait_s)


class Follower(threading.Thread):
    """Prints what is new in a session, from one run of it to the next."""

    def __init__(self, run_id: str, *, tail: int, json: bool) -> None:
        super().__init__(name="attach", daemon=True)
        self.run_id = run_id
        """The newest run of the session that is known."""
        self._first = run_id
        self._pending: deque[str] = deque()
        """Runs that our own messages started and that were not followed yet, in order."""
        self.is_typed_under = threading.Event()
        """Whether somebody types on the last line of the same terminal."""
        self.error: SubagentsError | None = None
        self._tail = tail
        self._json = json
        self._writing = threading.Lock()
        self._woken = threading.Event()
        self._finishing = threading.Event()
        self._left = threading.Event()

    def run(self) -> None:
        try:
            with connect() as client:
                self._follow(client)
        except SubagentsError as error:
            self.error = error
            if not self._left.is_set():
                self.note(f"subagents: {error.message}")
        except OSError:
            self.leave()  # our output has no reader; the session's end is still the exit code

    def go_on(self, run_id: str) -> None:
        """A message started this run: follow it when those before it were printed."""
        self.run_id = run_id
        self._pending.append(run_id)
        self._woken.set()

    def finish(self) -> None:
        """Return once no run of the session is active and everything was printed."""
        self._finishing.set()
        self._woken.set()
        self.join()
        if self.error is not None:
            raise self.error

    def leave(self) -> None:
        """Print nothing more."""
        self._left.set()
        self._woken.set()

    def aside(self, act: Callable[[], str]) -> None:
        """Do something between the lines; what it returns is shown as a note.

        So is why it failed, where somebody types; a program learns it from our exit code.
        """
        try:
            text = act()
        except SubagentsError as error:
            if not self.is_typed_under.is_set():
                raise
            text = f"subagents: {error.message}"
            if error.hint:
                text += f"\n  hint: {error.hint}"
        if text:
            self.note(text)

    def _follow(self, client: Client) -> None:
        followed: str | None = self._first
        # With `--tail 0` one line is asked for all the same: its number is where new ones begin.
        query: Query = {"tail": max(self._tail, 1)}
        is_quiet = not self._tail
        seen: set[str] = set()
        while followed is not None and not self._left.is_set():
            seen.add(followed)
            page = self._print(client, followed, query, is_quiet=is_quiet)
            while not page.ended and not self._left.is_set():
                query = {
                    "afterSeq": page.next_seq,
                    "limit": PAGE_LINES,
                    "waitSeconds": int(POLL_S),
                }
                page = self._print(client, followed, query)
            followed = self._next(client, followed, seen)
            query, is_quiet = {"afterSeq": 0, "limit": PAGE_LINES}, False

    def _next(self, client: Client, followed: str, seen: set[str]) -> str | None:
        """Wait for a run that continues behind this one; None = none is waited for any more."""
        while not self._left.is_set():
            self._woken.clear()
            # Before the look: what is said while it looks is seen by the next one.
            is_last_look = self._finishing.is_set()
            while self._pending:
                run_id = self._pending.popleft()
                if run_id not in seen:
                    return run_id
            found = persistently(lambda: newest(client, followed)).run_id
            if found not in seen and not self._pending:
                self.run_id = found
                return found
            if is_last_look and not self._pending:
                return None
            self._woken.wait(NEXT_RUN_S)
        return None

    def _print(
        self, client: Client, run_id: str, query: Query, *, is_quiet: bool = False
    ) -> LogPage:
        path = path_of(run_id, "/log")
        answer = persistently(lambda: client.get(path, query, timeout_s=POLL_S), until=math.inf)
        page = read(answer, LogPage)
        if not self._left.is_set() and not is_quiet and (page.lines or (self._json and page.ended)):
            self.write([text for line in page.lines for text in log.shown(line)], answer)
        return page

    def write(self, lines: list[str], answer: Document) -> None:
        """Lines of the transcript, above the one that is being typed."""
        with self._writing:
            self._clear_prompt()
            if self._json:
                output.record(answer)
            else:
                sys.stdout.writelines(f"{each}\n" for each in lines)
            self._draw_prompt()
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """A line for the person."""
        with self._writing:
            self._clear_prompt()
            sys.stdout.flush()
            output.note(text)
            self._draw_prompt()
            sys.stdout.flush()

    def _clear_prompt(self) -> None:
        if self.is_typed_under.is_set() and _has_cursor():
            sys.stdout.write("\r\x1b[K")

    def _draw_prompt(self) -> None:
        if not self.is_typed_under.is_set() or self._left.is_set():
            return
        import readline  # noqa: PLC0415  on a terminal only

        # The other thread is in ``input`` soon, which draws the prompt itself.
        if _has_cursor() and threading.current_thread() is self:
            sys.stdout.write(f"{PROMPT}{readline.get_line_buffer()}")


def _has_cursor() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
