"""A model server that follows a script: the Anthropic Messages API, as much as an agent needs.

A real agent program is pointed at it with ``ANTHROPIC_BASE_URL``. What it answers is a function of
the request alone: the newest user message with a mark ``script:NAME`` picks the script, and the
number of assistant turns behind it is the step. So retries, resumed sessions, restarts of the
agent and several sessions at once need no state here.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final, Self, TypeAlias

MARK: Final = re.compile(r"script:([a-z0-9-]+)")
NOT_A_TURN: Final = "No response requested."
"""What Claude Code itself puts into the assistant's mouth when it resumes a session."""
BOUND_S: Final = 40.0

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """Text, and the end of the turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """One tool call; several in a tuple are made at once."""

    tool: str
    """Its whole name, or the end of it: ``sessions_wait`` finds ``mcp__x__sessions_wait``."""
    arguments: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the model was sent."""

    body: Document

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
        """The script asked for and its step; None when no message asks for one."""
        name, step = None, 0
        is_open = False
        for message in self.messages:
            text = _text(message["content"])
            if message["role"] == "user":
                is_open = False
                marks = MARK.findall("\n".join(_own_words(message)))
                if marks:
                    name, step = marks[-1], 0
            elif message["role"] == "assistant" and text.strip() != NOT_A_TURN and not is_open:
                # Blocks of one answer may come back as several messages.
                step += 1
                is_open = True
        return None if name is None else (name, step)


Turn: TypeAlias = Say | Use | tuple[Use, ...]
Script: TypeAlias = Sequence[Turn | Callable[[Conversation], Turn]]


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
        self.errors: list[str] = []
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
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(BOUND_S)
        assert not self.errors, self.errors

    def answer(self, body: Document) -> tuple[list[Document], str]:
        """The content blocks of the answer and its stop reason."""
        conversation = Conversation(body)
        place = conversation.place()
        if place is None or not conversation.tools:
            # Titles, summaries, probes: nobody waits for what they say.
            return [{"type": "text", "text": "ok"}], "end_turn"
        name, step = place
        with self._came:
            self.conversations.append(conversation)
            self._came.notify_all()
        script = self.scripts[name]
        turn = script[step] if step < len(script) else Say("done")
        turn = turn(conversation) if callable(turn) else turn
        if isinstance(turn, Say):
            return [{"type": "text", "text": turn.text}], "end_turn"
        uses = turn if isinstance(turn, tuple) else (turn,)
        blocks = [
            {
                "type": "tool_use",
                "id": f"toolu_{name}_{len(conversation.messages)}_{index}",
                "name": _whole_name(use.tool, conversation),
                "input": use.arguments,
            }
            for index, use in enumerate(uses)
        ]
        return blocks, "tool_use"

    def until(self, what: Callable[[Conversation], bool]) -> Conversation:
        """The first conversation of which ``what`` holds; fails after 20 s."""

        def found() -> Conversation | None:
            return next((each for each in self.conversations if what(each)), None)

        with self._came:
            assert self._came.wait_for(found, BOUND_S), "the model was never asked that"
            conversation = found()
        assert conversation is not None
        return conversation


def _whole_name(wanted: str, conversation: Conversation) -> str:
    if wanted in conversation.tools:
        return wanted
    fitting = [name for name in conversation.tools if name.endswith(f"__{wanted}")]
    assert len(fitting) == 1, f"{wanted} is one of {fitting}; all: {conversation.tools}"
    return fitting[0]


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


# -- the wire -----------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout: ClassVar[float] = 60.0

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self._send(b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._send(json.dumps({"input_tokens": len(raw) // 4}).encode())
        elif path.endswith("/messages"):
            self._message(json.loads(raw), tokens_in=len(raw) // 4)
        else:
            self._send(b"{}")

    def _message(self, body: Document, *, tokens_in: int) -> None:
        try:
            blocks, stop = self.server.model.answer(body)
        except (AssertionError, LookupError) as error:
            # The test that wrote the script hears of it; the agent would only try again.
            self.server.model.errors.append(str(error))
            blocks, stop = [{"type": "text", "text": f"the script failed: {error}"}], "end_turn"
        message: Document = {
            "id": f"msg_{len(body.get('messages', []))}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": tokens_in, "output_tokens": 8},
        }
        if not body.get("stream"):
            self._send(json.dumps({**message, "content": blocks}).encode())
            return
        events = "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            for event in _events(message, blocks)
        )
        self._send(events.encode(), kind="text/event-stream")

    def _send(self, content: bytes, *, kind: str = "application/json") -> None:
        try:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            # A killed agent hears nothing any more, which is what its test is about.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """The conversations are the log."""


def _events(message: Document, blocks: list[Document]) -> Iterator[Document]:
    """One answer as the events of a stream."""
    start = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": 8},
    }
    yield {"type": "message_stop"}
