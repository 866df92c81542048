"""JSON-RPC as far as the bridge knows it: requests of the client, the daemon's messages, and what
may be asked twice.
"""

import base64
import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from subagents.api.tools.repeatable import wait_s_of
from subagents.client.transport import BODY_BYTES_MAX, Answer, Connection, Gone
from subagents.extensions.mcp.bridge.handshake import VERSION_META

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
SERVER_ERROR: Final = -32000
OFFERED_META: Final = "subagents/offered"
_NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/cancel": "taskId",
    "tasks/update": "taskId",
}
"""Method → the parameter that the header ``Mcp-Name`` repeats."""
METHOD: Final = re.compile(r"[!-~]{1,200}")
VERSION: Final = re.compile(r"[!-~]{1,64}")
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_WRAPPED: Final = re.compile(r"=\?base64\?.*\?=")

ASK: Final = "request_orchestrator"
ASK_S: Final = 50.0
"""The time after which it returns by itself, with a question that is still open."""

Document = dict[str, Any]


@dataclass(slots=True, eq=False)
class Call:
    """One request of the client."""

    number: int
    id: str | int | float
    method: str
    params: Document
    body: bytes
    connection: Connection | None = None
    is_cancelled: bool = False
    has_told: bool = False
    """Whether its client was told that it waits for the daemon."""

    @property
    def wait_s(self) -> float | None:
        """How long it may wait for something to happen, in seconds; None = not at all."""
        if self.method != "tools/call":
            return None
        name = _text(self.params, "name")
        return ASK_S if name == ASK else wait_s_of(name, self.params.get("arguments"))

    def has_waited(self, seconds: float) -> None:
        """Ask the next daemon only for what is left of a wait that began so long ago.

        A question goes on by itself, under the id of its call.
        """
        arguments, wait_s = self.params.get("arguments"), self.wait_s
        is_question = _text(self.params, "name") == ASK
        if wait_s is None or is_question or not isinstance(arguments, dict | None):
            return
        left = {**(arguments or {}), "timeoutSeconds": max(wait_s - seconds, 0.0)}
        params = {**self.params, "arguments": left}
        message = {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params}
        self.body = msgspec.json.encode(message)

    def headers(self, agreed_version: str | None) -> dict[str, str]:
        """What the protocol repeats of the body in headers.

        The version is that which the handshake agreed on; newer clients say theirs in each request.
        """
        found = {"accept": "application/json, text/event-stream", "mcp-method": self.method}
        meta = self.params.get("_meta")
        version = meta.get(VERSION_META) if isinstance(meta, dict) else None
        if version is None and self.method != "initialize":
            version = agreed_version
        if isinstance(version, str) and VERSION.fullmatch(version):
            found["mcp-protocol-version"] = version
        name = self.params.get(_NAMED.get(self.method, ""))
        if isinstance(name, str):
            found["mcp-name"] = header_value(name)
        return found

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.connection is not None:
            self.connection.close()


def _text(form: Mapping[str, Any], name: str) -> str:
    """A client may put anything there, also what is no key of a set."""
    found = form.get(name)
    return found if isinstance(found, str) else ""


def header_value(text: str) -> str:
    """A text as the protocol puts it into a header: as it is, or in base64."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


# -- messages -----------------------------------------------------------------------------------


def messages(connection: Connection, answer: Answer) -> Iterator[bytes]:
    """The messages of an answer as they come: one JSON document, or one in each event of a stream.

    Raises:
        Gone: The answer ended in the middle, or is too large.
    """
    is_stream = "text/event-stream" in answer.headers.get("content-type", "")
    kept = bytearray()
    for part in connection.parts():
        kept += part.replace(b"\r", b"") if is_stream else part
        while is_stream and (end := kept.find(b"\n\n")) >= 0:
            event = bytes(kept[:end])
            del kept[: end + 2]
            if data := event_data(event):
                yield data
        if len(kept) > BODY_BYTES_MAX:
            raise Gone("the answer is too large", was_sent=True)
    if not is_stream:
        yield bytes(kept)


def event_data(event: bytes) -> bytes:
    """The data of one event; "" of a comment."""
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(line.removeprefix(b" ") for line in lines)


def decoded(data: bytes) -> Document:
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        found = msgspec.json.decode(data)
        if isinstance(found, dict):
            return found
    return {}


def version_in(message: Document) -> str | None:
    """Of the protocol, as the answer to ``initialize`` agrees on it."""
    result = message.get("result")
    found = result.get("protocolVersion") if isinstance(result, dict) else None
    return found if isinstance(found, str) and VERSION.fullmatch(found) else None


def offered_in(message: Document) -> list[str]:
    result = message.get("result")
    meta = result.get("_meta") if isinstance(result, dict) else None
    found = meta.get(OFFERED_META) if isinstance(meta, dict) else None
    return [str(each) for each in found] if isinstance(found, list) else []


def refuse_stopping(message: Document) -> None:
    """Look whether an answer says that the daemon is stopping; the one after it can answer.

    Raises:
        Gone: It does.
    """
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if isinstance(data, dict) and data.get("code") == "unavailable":
        raise Gone("it is stopping", was_sent=True)


def rewritten(call: Call, status: int, message: Document) -> bytes:
    """An answer of HTTP's own, or one that names no request, as the answer of this call."""
    error = message.get("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return msgspec.json.encode({"jsonrpc": "2.0", "id": call.id, "error": error})
    text = message.get("message") or f"the daemon answered with HTTP {status}"
    return error_message(call.id, SERVER_ERROR, str(text), data=message or None)


def error_message(
    id_: str | float | None, code: int, text: str, *, data: Document | None = None
) -> bytes:
    error: Document = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": error})


def outcome_unknown(call: Call) -> bytes:
    """For a tool that must not be called twice by us: whoever called it can look."""
    hint = "check before repeating it: sessions_list, or subagents action=status"
    text = "the daemon went away during this call and may have carried it out"
    return _failed_tool(call, "outcome_unknown", text, hint)


def unreachable(call: Call, reason: str) -> bytes:
    """No daemon could be reached in time."""
    text = f"no daemon answers: {reason}"
    hint = "call again; if that does not help: subagents doctor"
    if call.method == "tools/call":
        return _failed_tool(call, "daemon_unreachable", text, hint)
    data = {"code": "daemon_unreachable", "message": text, "retryable": True, "hint": hint}
    return error_message(call.id, SERVER_ERROR, text, data=data)


def _failed_tool(call: Call, code: str, text: str, hint: str) -> bytes:
    result = {
        "content": [{"type": "text", "text": f"error: {text}\nhint: {hint}"}],
        "structuredContent": {"status": "error", "code": code, "error": text, "hint": hint},
        "isError": True,
        "resultType": "complete",
    }
    return msgspec.json.encode({"jsonrpc": "2.0", "id": call.id, "result": result})
