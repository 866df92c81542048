"""A model server that follows a script, on every wire that agent programs use.

A real agent program is pointed at it: ``ANTHROPIC_BASE_URL=url``, ``OPENAI_BASE_URL=url/v1`` (Chat
Completions and Responses), ``GOOGLE_GEMINI_BASE_URL=url``. What it answers is a function of the
request alone: the newest user message with a mark ``script:NAME`` picks the script, and the number
of assistant turns behind it is the step. So retries, resumed sessions, restarts of the agent and
several sessions at once need no state here. (``Fail`` and ``Wait`` have some: they count.)

The wires differ in ``scripted_wires``; here every request is read as Anthropic Messages.
"""

import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final, Self, TypeAlias

from tests.e2e.scripted_wires import WIRES, Answer, Tokens, Wire, fitting

__all__ = [
    "Asked",
    "Conversation",
    "Fail",
    "Say",
    "Script",
    "ScriptedModel",
    "Tokens",
    "Turn",
    "Use",
    "Wait",
]

MARK: Final = re.compile(r"script:([a-z0-9-]+)")
NOT_A_TURN: Final = "No response requested."
"""What Claude Code itself puts into the assistant's mouth when it resumes a session."""
BOUND_S: Final = 90.0
GATE_S: Final = 90.0
"""A closed gate is given up after this; the test that forgot it fails."""

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """Text, and the end of the turn."""

    text: str
    thinking: str = ""
    tokens: Tokens | None = None
    """What the answer is said to have used; None = by the sizes."""


@dataclass(frozen=True, slots=True)
class Use:
    """One tool call; several in a tuple are made at once."""

    tool: str
    """Its whole name, or the end of it: ``sessions_wait`` finds ``mcp__x__sessions_wait``."""
    arguments: Document = field(default_factory=dict)
    """Of a free-form ("custom") tool its text, under ``input``."""
    text: str = ""
    """Said before the call."""
    thinking: str = ""
    tokens: Tokens | None = None
    is_declared: bool = True
    """False = ``tool`` is called by this very name, although the request does not list it."""


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP error instead of the next turn; no step of its own.

    It counts the requests that come to this place of the script, of all conversations together.
    """

    status: int
    """0 = the connection is closed without an answer."""
    retry_after: float | str | None = None
    """The header's value; a number is seconds."""
    times: int | None = 1
    """How many requests fail; None = as long as ``for_s`` says."""
    for_s: float | None = None
    """Requests fail for so long after the first of them."""
    message: str = "the script says no"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further ones, as of a subscription that is used up."""
    half: str = ""
    """With status 200: what comes instead of a whole streamed answer. ``torn``: its beginning, then
    the connection breaks; ``short``: its beginning, and the body ends well; ``garbage``: a page."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The next turn is answered when the test opens the gate; no step of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the model was sent, in the form of Anthropic Messages whatever the wire was."""

    body: Document
    wire: str = "anthropic"
    raw: Document = field(default_factory=dict)
    """The request as it came."""

    @property
    def messages(self) -> list[Document]:
        found: list[Document] = self.body.get("messages", [])
        return found

    @property
    def tools(self) -> list[str]:
        return [str(each.get("name")) for each in self.body.get("tools", [])]

    @property
    def results(self) -> list[str]:
        """The text of every tool result, oldest first."""
        blocks = (block for message in self.messages for block in _blocks(message))
        return [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]

    @property
    def seen(self) -> str:
        """Everything that the model was told, in one text: by users, tools and the system."""
        told = (message for message in self.messages if message["role"] != "assistant")
        texts = (_text(message["content"]) for message in told)
        return "\n".join([_text(self.body.get("system")), *texts])

    def found(self, pattern: str) -> list[str]:
        """Every match in the tool results, each once, in order."""
        return list(dict.fromkeys(re.findall(pattern, "\n".join(self.results))))

    def place(self) -> tuple[str, int] | None:
        """The script asked for and its step; None when no message asks for one.

        A mark that the model itself wrote into a call (the task of a child, say) picks nothing when
        a later message quotes it.
        """
        name, step = None, 0
        is_open = False
        written: set[str] = set()
        for message in self.messages:
            text = _text(message["content"])
            if message["role"] == "user":
                is_open = False
                found = MARK.findall("\n".join(_own_words(message)))
                marks = [mark for mark in found if mark not in written]
                if marks:
                    name, step = marks[-1], 0
            elif message["role"] == "assistant" and text.strip() != NOT_A_TURN and not is_open:
                # Blocks of one answer may come back as several messages.
                step += 1
                is_open = True
            if message["role"] == "assistant":
                calls = [each for each in _blocks(message) if each["type"] == "tool_use"]
                written |= set(MARK.findall(json.dumps([each.get("input") for each in calls])))
        return None if name is None else (name, step)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request in the log: also the failed ones, and those that no script answered."""

    at_s: float
    """Of ``time.monotonic``, when it came."""
    wire: str
    path: str
    script: str | None
    step: int | None
    status: int
    """What was answered; 0 = the connection was closed."""
    is_stream: bool


Turn: TypeAlias = Say | Use | tuple[Use, ...]
Maker: TypeAlias = Callable[[Conversation], Turn]
Script: TypeAlias = Sequence[Turn | Fail | Wait | Maker]


class ScriptedModel:
    """The server, for the length of a ``with`` block.

    Args:
        scripts: Name → its turns. A turn may be a function of the conversation so far. After the
            last one the model says ``done``.
    """

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self.scripts = dict(scripts)
        self.conversations: list[Conversation] = []
        """Every request that a script answered, in the order they came."""
        self.requests: list[Asked] = []
        """Every request for an answer, in the order they were answered."""
        self.errors: list[str] = []
        self._failed: dict[tuple[str, int], tuple[int, float]] = {}
        """Of a ``Fail``, by script and index: how often, and since when."""
        self._open: set[str] = set()
        self._waiting: dict[str, int] = {}
        self._came = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._came:
            self._open |= set(self._waiting)
            self._came.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(BOUND_S)
        assert not self.errors, self.errors

    def open(self, gate: str) -> None:
        """Let everyone through who waits at ``gate``, now and later."""
        with self._came:
            self._open.add(gate)
            self._came.notify_all()

    def until_waiting(self, gate: str) -> None:
        """Return when a request waits at ``gate``; fails after 40 s."""
        with self._came:
            assert self._came.wait_for(lambda: self._waiting.get(gate), BOUND_S), f"none at {gate}"

    def until(self, what: Callable[[Conversation], bool]) -> Conversation:
        """The first conversation of which ``what`` holds; fails after 40 s."""

        def found() -> Conversation | None:
            return next((each for each in self.conversations if what(each)), None)

        with self._came:
            assert self._came.wait_for(found, BOUND_S), "the model was never asked that"
            conversation = found()
        assert conversation is not None
        return conversation

    def answer(self, conversation: Conversation, *, is_there: Callable[[], bool]) -> Answer | Fail:
        """What the script says now; waits at a gate for as long as the asker ``is_there``."""
        place = conversation.place()
        if place is None or not conversation.tools:
            # Titles, summaries, probes: nobody waits for what they say.
            schema = conversation.body.get("schema")
            text = "ok" if schema is None else json.dumps(fitting(schema, schema))
            return Answer([{"type": "text", "text": text}])
        name, step = place
        script = self.scripts[name]
        before, turn = _at(script, step)
        for index in before:
            match script[index]:
                case Fail() as fail if self._fails(name, index, fail):
                    return fail
                case Wait(gate):
                    self._hold(gate, is_there)
        with self._came:
            self.conversations.append(conversation)
            self._came.notify_all()
        return _answer(turn(conversation) if callable(turn) else turn, place, conversation)

    def log(self, asked: Asked) -> None:
        with self._came:
            self.requests.append(asked)
            self._came.notify_all()

    def _fails(self, name: str, index: int, fail: Fail) -> bool:
        now = time.monotonic()
        with self._came:
            count, since = self._failed.get((name, index), (0, now))
            is_over = fail.times is not None and count >= fail.times
            is_over = is_over or (fail.for_s is not None and now - since >= fail.for_s)
            if not is_over:
                self._failed[name, index] = (count + 1, since)
            return not is_over

    def _hold(self, gate: str, is_there: Callable[[], bool]) -> None:
        due = time.monotonic() + GATE_S
        with self._came:
            self._waiting[gate] = self._waiting.get(gate, 0) + 1
            self._came.notify_all()
            while gate not in self._open and is_there():
                if time.monotonic() > due:
                    self.errors.append(f"nobody opened the gate {gate}")
                    break
                self._came.wait(0.1)
            self._waiting[gate] -= 1


def _at(script: Script, step: int) -> tuple[list[int], Turn | Maker]:
    """What stands before the turn of this step (indices), and the turn."""
    before: list[int] = []
    for index, each in enumerate(script):
        if isinstance(each, Fail | Wait):
            before.append(index)
        elif step == 0:
            return before, each
        else:
            step -= 1
            before = []
    return (before if step == 0 else []), Say("done")


def _answer(turn: Turn, place: tuple[str, int], conversation: Conversation) -> Answer:
    first = turn[0] if isinstance(turn, tuple) else turn
    blocks: list[Document] = []
    if first.thinking:
        blocks.append({"type": "thinking", "thinking": first.thinking, "signature": "c2lnbmVk"})
    if first.text or isinstance(first, Say):
        blocks.append({"type": "text", "text": first.text})
    if isinstance(turn, Say):
        return Answer(blocks, tokens=turn.tokens)
    uses = turn if isinstance(turn, tuple) else (turn,)
    name, _ = place
    blocks += [
        {
            "type": "tool_use",
            "id": f"toolu_{name}_{len(conversation.messages)}_{index}",
            "name": _whole_name(use.tool, conversation) if use.is_declared else use.tool,
            "input": use.arguments,
        }
        for index, use in enumerate(uses)
    ]
    return Answer(blocks, stop="tool_use", tokens=first.tokens)


def _whole_name(wanted: str, conversation: Conversation) -> str:
    if wanted in conversation.tools:
        return wanted
    # Servers are joined to their tools by "__" here, by "_", "." or "-" there.
    for joint in ("__", "_", ".", "-"):
        fitting_names = [name for name in conversation.tools if name.endswith(joint + wanted)]
        if fitting_names:
            break
    assert len(fitting_names) == 1, f"{wanted} is one of {fitting_names}; all: {conversation.tools}"
    return fitting_names[0]


def _blocks(message: Document) -> list[Document]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _own_words(message: Document) -> list[str]:
    """What a user message says itself: tool results may quote a mark, and pick nothing."""
    return [block["text"] for block in _blocks(message) if block["type"] == "text"]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        str(block.get("text", "")) or _text(block.get("content"))
        for block in blocks
        if isinstance(block, dict)
    )


# -- the server ---------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout: ClassVar[float] = 60.0

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            models = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
            self._send(json.dumps(models).encode())
        else:
            self._send(b"{}")

    def do_POST(self) -> None:
        came_s = time.monotonic()
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        wire = next((each for each in WIRES if each.path.search(path)), None)
        if path.endswith("/count_tokens"):
            self._send(json.dumps({"input_tokens": len(raw) // 4}).encode())
        elif path.endswith(":countTokens"):
            self._send(json.dumps({"totalTokens": len(raw) // 4}).encode())
        elif wire is None:
            self._send(b"{}")
        else:
            self._answer(wire, path, raw, came_s)

    def _answer(self, wire: Wire, path: str, raw: bytes, came_s: float) -> None:
        model = self.server.model
        request = json.loads(raw)
        conversation = Conversation(wire.read(request), wire.name, request)
        is_stream = wire.is_stream(request, path)
        try:
            answer = model.answer(conversation, is_there=self._is_there)
        except (AssertionError, LookupError) as error:
            # The test that wrote the script hears of it; the agent would only try again.
            model.errors.append(f"{type(error).__name__}: {error}")
            answer = Answer([{"type": "text", "text": f"the script failed: {error}"}])
        status = answer.status if isinstance(answer, Fail) else 200
        name, step = conversation.place() or (None, None)
        model.log(Asked(came_s, wire.name, path, name, step, status, is_stream))
        if isinstance(answer, Fail):
            self._fail(wire, answer, conversation)
        elif is_stream:
            self._send(wire.stream(answer, conversation.body), kind="text/event-stream")
        else:
            self._send(json.dumps(wire.whole(answer, conversation.body)).encode())

    def _fail(self, wire: Wire, fail: Fail, conversation: Conversation) -> None:
        if fail.status == 0:
            self.close_connection = True
            return
        if fail.half:
            self._send_half(wire, fail.half, conversation)
            return
        headers = {} if fail.retry_after is None else {"retry-after": f"{fail.retry_after}"}
        content = json.dumps(wire.error(fail.status, fail.message)).encode()
        self._send(content, status=fail.status, headers={**headers, **fail.headers})

    def _send_half(self, wire: Wire, how: str, conversation: Conversation) -> None:
        # Words are streamed one by one: the first one ends with the first event that has it.
        whole = wire.stream(Answer([{"type": "text", "text": "half an answer"}]), conversation.body)
        half = whole[: whole.index(b"\n\n", whole.index(b"half an")) + 2]
        if how == "garbage":
            self._send(b"<html>a proxy says hello</html>", kind="text/html")
        elif how == "short":
            self._send(half, kind="text/event-stream")
        else:
            self._send(half, kind="text/event-stream", missing=1000)
            self.close_connection = True

    def _is_there(self) -> bool:
        """Whether the asker still holds its end of the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return not readable or bool(self.connection.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def _send(
        self,
        content: bytes,
        *,
        kind: str = "application/json",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        missing: int = 0,
    ) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content) + missing))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            # A killed agent hears nothing any more, which is what its test is about.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """The conversations are the log."""
