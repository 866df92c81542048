"""The stdio bridge: one line of a client in, one request to the daemon out, its answer back.

It knows JSON-RPC ids, a few methods and which tools may be called twice, and nothing of what the
tools do (decision 0013). A client does not start its servers again, so the bridge outlives the
daemon: it starts it, finds it again, and repeats what may be repeated.

An answer that hands messages over is acknowledged once the client took it and lives on: with its
next line, or a moment later; by Claude Code, once its transcript has it. Until then the connection
of its request stays open, and the daemon takes its end, also by SIGKILL, as "nobody read this".
"""

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from subagents.api.tools.repeatable import may_repeat
from subagents.client.transport import Absence, Connection, Gone, request
from subagents.extensions.mcp.bridge.bridge_rpc import (
    INVALID_REQUEST,
    METHOD,
    PARSE_ERROR,
    SERVER_ERROR,
    Call,
    Document,
    decoded,
    error_message,
    messages,
    offered_in,
    outcome_unknown,
    refuse_stopping,
    rewritten,
    unreachable,
    version_in,
)
from subagents.extensions.mcp.bridge.claude_transcript import kept_by_claude
from subagents.extensions.mcp.bridge.daemon_link import SILENCE_S, Daemon, say
from subagents.extensions.mcp.bridge.handshake import Handshake
from subagents.extensions.mcp.bridge.handshake_check import check_handshake
from subagents.unread import unread_bytes

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
CALLS_MAX: Final = 256
"""The most calls under way at once; each has a thread and a connection."""
LIVES_ON_S: Final = 0.3
"""How long after it took an answer a client has to live to have kept it."""
KEPT_S: Final = 45.0
"""How long its transcript counts, should it never show the answer; an offer holds for a minute."""
UNAVAILABLE: Final = 503
CANCELLED: Final = "notifications/cancelled"
END_GRACE_S: Final = 5.0
"""How long calls that only ask may take when the input has ended: that of a pipe ends at once."""


class Input(Protocol):
    """Where the client's lines come from; any binary file."""

    def readline(self, most: int, /) -> bytes:
        """The next line with its end, at most so many bytes of it; empty = the input ended."""
        ...


@dataclass(slots=True)
class _Answer:
    """What is written for a call, and what it hands over."""

    message: bytes
    reader: str = ""
    offered: list[str] = field(default_factory=list)
    call: Call | None = None
    """Its connection is kept open until what is offered was acknowledged; None = nothing is."""
    is_kept: Callable[[], bool] | None = None
    """Whether the client has it on its disk; None = it does not say."""
    read_at: float | None = None
    """When all that was written had been taken by the client; monotonic seconds."""

    def is_read(self, for_s: float) -> bool:
        """Whether the client has taken it, at least ``for_s`` seconds ago, and kept it."""
        now = time.monotonic()
        self.read_at = self.read_at or now
        if self.is_kept is None or now - self.read_at >= KEPT_S:
            return now - self.read_at >= for_s
        return self.is_kept()

    def leave(self) -> None:
        if self.call is not None and self.call.connection is not None:
            self.call.connection.close()


class Bridge:
    """Serves one client until its input ends."""

    def __init__(
        self, daemon: Daemon, *, stdin: Input, stdout: int, handshake: Handshake | None = None
    ) -> None:
        """
        Args:
            daemon: Answers the calls.
            stdin: Lines of the client.
            stdout: The descriptor its answers are written to; nothing else may use it.
            handshake: Answers what clients ask while they connect; None = the daemon does.
        """
        self._daemon = daemon
        self._handshake = handshake
        self._stdin = stdin
        self._stdout = stdout
        self._name = f"mcp-{os.urandom(8).hex()}"
        self._version = None if handshake is None else handshake.version
        self._numbers = 0
        self._calls: dict[bytes, Call] = {}
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        """The lock of the output, and of what was written but is not acknowledged yet."""
        self._unread: list[_Answer] = []
        self._has_unread = threading.Event()
        self._has_ended = threading.Event()

    def check_handshake(self, files: Sequence[str], place: str) -> None:
        """In the background: have the daemon there, and compare what was said in its name."""
        if self._handshake is not None:
            words = (self._daemon, self._handshake, self._write, files, place)
            threading.Thread(target=check_handshake, args=words, daemon=True, name="check").start()

    def run(self) -> int:
        """Serve until the input ends; returns the exit code."""
        keeper = threading.Thread(target=self._acknowledge_late, daemon=True, name="acknowledge")
        keeper.start()
        grace_s = END_GRACE_S
        try:
            while line := self._stdin.readline(LINE_BYTES_MAX + 1):
                if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
                    self._skip_line()
                    self._write(error_message(None, PARSE_ERROR, "the line is too long"))
                    continue
                if line.strip():
                    self._take(line)
        except BrokenPipeError:
            grace_s = 0.0
        except BaseException:
            grace_s = 0.0
            raise
        finally:
            self._end(grace_s)
        return 0

    def _skip_line(self) -> None:
        while (rest := self._stdin.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
            pass

    def _end(self, grace_s: float) -> None:
        """Leave: what cannot have been read goes back, what is under way is cancelled."""
        # Before the grace: a wait serves no one any more, and may last for minutes.
        for call in list(self._calls.values()):
            if call.wait_s is not None:
                call.cancel()
        due = time.monotonic() + grace_s
        for thread in list(self._threads):
            if thread.is_alive():  # a signal can come before one that is known has begun
                thread.join(max(due - time.monotonic(), 0))
        self._has_ended.set()
        self._acknowledge(self._take_read(for_s=math.inf))  # what is kept, and nothing else
        with self._lock:
            unread, self._unread = self._unread, []
        self._has_unread.set()  # lets the thread that acknowledges see the end
        for answer in unread:
            answer.leave()
        for call in list(self._calls.values()):
            call.cancel()

    # -- lines of the client -----------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else "not valid JSON"
            self._write(error_message(None, PARSE_ERROR, f"the line is {why}"))
            return
        # One that cancels a call may have crossed the answer to it, which nobody reads then.
        if not isinstance(message, dict) or message.get("method") != CANCELLED:
            self._acknowledge(self._take_read())
        if isinstance(message, list):
            self._take_batch(message)
            return
        own = None
        if self._handshake is not None:
            own = self._handshake.answer(message)
            self._version = self._handshake.version
        made = self._made(message, line.strip()) if own is None else own
        if isinstance(made, bytes):
            self._write(made)
        elif made is None:
            return
        elif made.method == "initialize":
            # Requests behind it need the version that it agrees on.
            self._serve(made, self._deliver)
        else:
            self._start(made, self._deliver)

    def _take_batch(self, messages: Sequence[object]) -> None:
        """Several messages in one line: the answers go back in one line, too."""
        if not messages:
            self._write(error_message(None, INVALID_REQUEST, "the batch is empty"))
            return
        # Encoded again: each of them goes to the daemon as a request by itself.
        made = [self._made(each, msgspec.json.encode(each)) for each in messages]
        answers = [_Answer(each) for each in made if isinstance(each, bytes)]
        calls = [each for each in made if isinstance(each, Call)]
        if not calls:
            self._deliver_all(answers)
            return
        left = len(calls)

        def collect(answer: _Answer | None) -> None:
            nonlocal left
            with self._lock:
                left -= 1
                if answer is not None:
                    answers.append(answer)
                is_last = left == 0
            if is_last:
                self._deliver_all(answers)

        for call in calls:
            self._start(call, collect)

    def _made(self, message: object, body: bytes) -> "Call | bytes | None":
        """A call; the error that answers a malformed one; None = there is nothing to do."""
        if not isinstance(message, dict):
            return error_message(None, INVALID_REQUEST, "a message must be an object")
        method, params = message.get("method"), message.get("params") or {}
        if "method" not in message and ("result" in message or "error" in message):
            return None  # an answer, and we ask nothing
        if "id" not in message:
            if method == CANCELLED and isinstance(params, dict):
                self._cancel(params.get("requestId"))
            return None
        id_ = message["id"]
        if isinstance(id_, bool) or not isinstance(id_, str | int | float):
            return error_message(None, INVALID_REQUEST, "id must be a text or a number")
        if not isinstance(method, str) or not METHOD.fullmatch(method):
            return error_message(id_, INVALID_REQUEST, "method must be a printable text")
        if not isinstance(params, dict):
            return error_message(id_, INVALID_REQUEST, "params must be an object")
        self._numbers += 1
        return Call(self._numbers, id_, method, params, body)

    def _cancel(self, id_: object) -> None:
        if call := self._calls.get(msgspec.json.encode(id_)):
            call.cancel()
        with self._lock:
            unwanted = [each for each in self._unread if each.call and each.call.id == id_]
            self._unread = [each for each in self._unread if each not in unwanted]
        for answer in unwanted:
            answer.leave()

    # -- calls -------------------------------------------------------------------------------

    def _start(self, call: Call, deliver: Callable[[_Answer | None], None]) -> None:
        if len(self._threads) >= CALLS_MAX:
            text = f"more than {CALLS_MAX} calls at once"
            deliver(_Answer(error_message(call.id, SERVER_ERROR, text)))
            return
        thread = threading.Thread(target=self._serve, args=(call, deliver), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _serve(self, call: Call, deliver: Callable[[_Answer | None], None]) -> None:
        key = msgspec.json.encode(call.id)
        self._calls[key] = call
        try:
            deliver(self._answer(call))
        except BrokenPipeError:
            self._has_ended.set()
        finally:
            # A client may use an id again before its first call is answered.
            if self._calls.get(key) is call:
                del self._calls[key]
            self._threads.discard(threading.current_thread())

    def _answer(self, call: Call) -> _Answer | None:
        """Ask the daemon until it answers; None = the client has cancelled the call or left."""
        began, wait_s = time.monotonic(), call.wait_s
        until = None if wait_s is None else began + wait_s
        absence = Absence(until=until, now=time.monotonic)
        may_have_acted = False
        while True:
            absence.asking()
            try:
                return self._asked(call)
            except Gone as gone:
                if call.is_cancelled or self._has_ended.is_set():
                    return None
                if gone.was_sent and not may_repeat(call.method, call.params):
                    return _Answer(outcome_unknown(call))
                if gone.was_sent:
                    say(f"the daemon went away during {call.method}; asking again")
                may_have_acted = may_have_acted or gone.was_sent
                self._tell_waiting(call)
                if not self._daemon.come_back(gone, absence, may_have_acted=may_have_acted):
                    return _Answer(unreachable(call, self._daemon.problem or str(gone)))
                call.has_waited(time.monotonic() - began)

    def _tell_waiting(self, call: Call) -> None:
        """Say that a call waits for the daemon, where its client asked for its progress."""
        meta = call.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None or call.has_told:
            return
        call.has_told = True
        # The daemon counts from one on, and these numbers must only grow.
        progress = {"progressToken": token, "progress": 0, "message": "waiting for the daemon"}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        self._write(msgspec.json.encode(note))

    def _asked(self, call: Call) -> _Answer | None:
        """One try.

        Raises:
            Gone: The daemon did not answer.
        """
        reader = f"{self._name}-{call.number}"
        call.connection = connection = Connection(self._daemon.socket_path)
        # Looked at behind that: a cancel before it found no connection to close.
        if call.is_cancelled:
            connection.close()
            return None
        try:
            sent = request("POST", "/mcp", self._headers(call, reader), call.body)
            answer = connection.send(sent, timeout_s=SILENCE_S)
            for data in messages(connection, answer):
                message = decoded(data)
                if "method" in message:
                    self._write(data)
                    continue
                refuse_stopping(message)
                received = self._received(call, answer.status, data, message, reader)
                if received is None or received.call is None:
                    connection.close()
                return received
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise Gone("it sent no answer", was_sent=True)

    def _received(
        self, call: Call, status: int, data: bytes, message: Document, reader: str
    ) -> _Answer | None:
        if call.is_cancelled:
            return None
        if call.method == "initialize":
            self._version = version_in(message) or self._version
        if message.get("jsonrpc") != "2.0" or message.get("id") != call.id:
            return _Answer(rewritten(call, status, message))
        if not (offered := offered_in(message)):
            return _Answer(data)
        is_kept = kept_by_claude(call.params, os.environ)
        return _Answer(data, reader, offered, call, is_kept)

    def _headers(self, call: Call, reader: str) -> dict[str, str]:
        return {
            **self._daemon.headers,
            **(self._daemon.limits() if call.method == "tools/call" else {}),
            "connection": "close",
            "x-subagents-reader": reader,
            "x-subagents-call-id": reader,
            "x-subagents-ack": "explicit",
            **call.headers(self._version),
        }

    # -- answers -----------------------------------------------------------------------------

    def _write(self, message: bytes) -> None:
        with self._lock:
            self._put(message)

    def _put(self, message: bytes) -> None:
        """Write one line; the lock is held.

        Raises:
            BrokenPipeError: The client is gone.
        """
        # A newline ends a message; within JSON it can only stand where a blank may.
        left = memoryview(message.replace(b"\n", b" ") + b"\n")
        while left:
            left = left[os.write(self._stdout, left) :]

    def _deliver(self, answer: _Answer | None) -> None:
        if answer is not None:
            self._hand_over(answer.message, [answer])

    def _deliver_all(self, answers: Sequence[_Answer]) -> None:
        if answers:
            messages = b",".join(answer.message for answer in answers)
            self._hand_over(b"[" + messages + b"]", answers)

    def _hand_over(self, message: bytes, answers: Sequence[_Answer]) -> None:
        try:
            # Under one lock: nothing written later is taken for what the client has to read first.
            with self._lock:
                self._put(message)
                self._unread += [
                    each for each in answers if each.call and not each.call.is_cancelled
                ]
            self._has_unread.set()
        except BaseException:
            for answer in answers:
                answer.leave()
            raise

    # -- acknowledging -----------------------------------------------------------------------

    def _take_read(self, *, for_s: float = 0.0) -> list[_Answer]:
        """The answers that the client has taken, at least ``for_s`` seconds ago, and kept."""
        with self._lock:
            if not self._unread or unread_bytes(self._stdout):
                return []
            taken = [each for each in self._unread if each.is_read(for_s)]
            self._unread = [each for each in self._unread if each not in taken]
            if not self._unread:
                self._has_unread.clear()
        return taken

    def _acknowledge_late(self) -> None:
        """For clients that say nothing for a while after an answer."""
        while self._has_unread.wait() and not self._has_ended.wait(LIVES_ON_S / 4):
            self._acknowledge(self._take_read(for_s=LIVES_ON_S))

    def _acknowledge(self, answers: Sequence[_Answer]) -> None:
        """Consume what these handed over; tried again later while the daemon is away."""
        for answer in answers:
            try:
                self._post_acknowledgement(answer)
            except Gone:
                with self._lock:
                    self._unread.append(answer)
                self._has_unread.set()
            else:
                answer.leave()

    def _post_acknowledgement(self, answer: _Answer) -> None:
        connection = Connection(self._daemon.socket_path)
        headers = {
            **self._daemon.headers,
            "connection": "close",
            "accept": "application/json",
            "x-subagents-reader": answer.reader,
        }
        body = msgspec.json.encode({"messageIds": answer.offered})
        try:
            sent = request("POST", "/v1/inbox/ack", headers, body)
            # What it says changes nothing, but the next call must come after its commit.
            acknowledged, _ = connection.exchange(sent, timeout_s=SILENCE_S)
        finally:
            connection.close()
        if acknowledged.status == UNAVAILABLE:
            raise Gone("it cannot write now", was_sent=True)
        if acknowledged.status >= 400:
            say(f"messages could not be acknowledged: HTTP {acknowledged.status}")
