"""JSON-RPC 2.0, one message per line: read into values, written from them.

Pure, and shared by the programs that are driven this way (``codex app-server``, ACP agents). Those
differ in one thing: Codex leaves the member ``"jsonrpc"`` out, ACP wants it. Reading takes both.
"""

from typing import Final, TypeAlias

import msgspec

from subagents.domain.run.values import Value
from subagents.extensions.conversation.json_fields import as_text, text_at, value_at
from subagents.runtimes.output.counts import COUNT_MAX, as_count
from subagents.runtimes.output.worker_events import without_nul

Id: TypeAlias = int | str

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REASON_CHARS_MAX: Final = 200


class Failure(Value, frozen=True):
    """The ``error`` member of a response."""

    code: int
    message: str
    data: object = None


class Request(Value, frozen=True):
    """The other side asks, and waits for ``response`` or ``failure`` with this ``id``."""

    id: Id
    method: str
    params: dict[str, object] = {}


class Notification(Value, frozen=True):
    """The other side notifies, and waits for nothing."""

    method: str
    params: dict[str, object] = {}


class Response(Value, frozen=True):
    """What came of a request of ours."""

    id: Id | None
    """None = the other side could not read which request it answers."""
    result: object = None
    failure: Failure | None = None
    """None = it went well, and ``result`` is its result (which may be None, too)."""


class Unreadable(Value, frozen=True):
    """A line that is no message."""

    reason: str
    """Short, for people."""
    text: str
    """The line, decoded with replacement characters; as long as it was."""


Message: TypeAlias = Request | Notification | Response | Unreadable


class _Line(msgspec.Struct):
    """Any message; which members it has says which kind it is."""

    id: int | str | float | msgspec.UnsetType | None = msgspec.UNSET
    method: str | None = None
    params: dict[str, object] | list[object] | None = None
    result: object = msgspec.UNSET
    error: object = None


_DECODER: Final = msgspec.json.Decoder(_Line)


def decode(line: bytes) -> Message:
    """Return what one line says; never raises.

    Positional ``params`` (a list) become ``{"0": …, "1": …}``: no program here sends them.

    Args:
        line: Without its newline, of any content.
    """
    try:
        found = _DECODER.decode(without_nul(line))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        reason = str(error)[:REASON_CHARS_MAX]
        return Unreadable(reason=reason, text=line.decode("utf-8", "replace"))
    if found.method is not None:
        params = _named(found.params)
        has_id = isinstance(found.id, (int, str, float))
        if not has_id:
            return Notification(method=found.method, params=params)
        return Request(id=_id(found.id), method=found.method, params=params)
    if found.error is not None:
        return Response(id=_id_or_none(found.id), failure=_failure(found.error))
    if found.result is not msgspec.UNSET:
        return Response(id=_id_or_none(found.id), result=found.result)
    reason = 'it has neither "method" nor "result" nor "error"'
    return Unreadable(reason=reason, text=line.decode("utf-8", "replace"))


def request(
    id: Id,  # noqa: A002 - the member's name
    method: str,
    params: object = None,
    *,
    versioned: bool,
) -> bytes:
    """Return the line of a request.

    Args:
        id: Ours; the response repeats it.
        method: Its name.
        params: Anything that JSON can say; None = the member is left out.
        versioned: Whether the line says ``"jsonrpc": "2.0"``.
    """
    return _encoded({"id": id, "method": method, **_params(params)}, versioned=versioned)


def notification(method: str, params: object = None, *, versioned: bool) -> bytes:
    """Return the line of a notification; see ``request``."""
    return _encoded({"method": method, **_params(params)}, versioned=versioned)


def response(id: Id, result: object, *, versioned: bool) -> bytes:  # noqa: A002
    """Return the line that answers the request ``id`` with ``result``."""
    return _encoded({"id": id, "result": result}, versioned=versioned)


def failure(id: Id, code: int, message: str, *, versioned: bool) -> bytes:  # noqa: A002
    """Return the line that refuses the request ``id``."""
    return _encoded({"id": id, "error": {"code": code, "message": message}}, versioned=versioned)


def _encoded(members: dict[str, object], *, versioned: bool) -> bytes:
    version: dict[str, object] = {"jsonrpc": "2.0"} if versioned else {}
    return msgspec.json.encode(version | members)


def _params(params: object) -> dict[str, object]:
    return {} if params is None else {"params": params}


def _named(params: dict[str, object] | list[object] | None) -> dict[str, object]:
    match params:
        case dict():
            return params
        case list():
            return {str(place): each for place, each in enumerate(params)}
        case None:
            return {}


def _id_or_none(found: object) -> Id | None:
    return _id(found) if isinstance(found, (int, str, float)) else None


def _id(found: object) -> Id:
    """``1.0`` is 1, as for JavaScript; any other fraction is its text, and answers no request."""
    if isinstance(found, float):
        return int(found) if found.is_integer() else str(found)
    return found if isinstance(found, (int, str)) else str(found)


def _failure(error: object) -> Failure:
    """A code that is no number (Node's ``ENOENT``) is 0: the request failed all the same."""
    number = as_count(value_at(error, "code"), least=-COUNT_MAX)
    code, message = number or 0, text_at(error, "message") or as_text(error)
    return Failure(code=code, message=message or f"error {code}", data=value_at(error, "data"))
