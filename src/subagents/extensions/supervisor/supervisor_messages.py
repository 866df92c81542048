"""The lines of the supervisor socket: what comes in, and what is answered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from subagents.api.calls.auth import SESSION
from subagents.api.wire.decoding import as_object, one_of, shown
from subagents.api.wire.wire_struct import Document
from subagents.domain.run.values import SessionKey
from subagents.domain.transcript.feed_entry import RUN, FeedDocument
from subagents.errors import SubagentsError, UsageError

REQUEST_ID_CHARS_MAX: Final = 255
INCOMING: Final = ("register_supervisor", "command")


class Register(NamedTuple):
    """``{"type":"register_supervisor","agentId"}``."""

    agent_id: str
    session: SessionKey


class Command(NamedTuple):
    """``{"type":"command","requestId","action","params"}``."""

    request_id: str | int
    action: str
    params: dict[str, object]


Incoming: TypeAlias = Register | Command


class Unreadable(Exception):
    """A line that says nothing we know; ``request_id`` when it could be made out."""

    def __init__(self, error: SubagentsError, request_id: str | int | None = None) -> None:
        super().__init__(error.message)
        self.error, self.request_id = error, request_id


def parse(line: bytes | None) -> Incoming:
    """One line; None stands for one that was too long.

    Raises:
        Unreadable: Says what is wrong with it.
    """
    if line is None:
        raise Unreadable(UsageError(f"a line must have at most {LINE_BYTES_MAX} bytes"))
    try:
        raw: object = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(UsageError(f"the line is not JSON: {error}")) from error
    if not isinstance(raw, dict):
        raise Unreadable(UsageError("the line must be a JSON object"))
    request_id = _request_id(raw)
    try:
        kind = one_of("type", str(raw.get("type")), INCOMING)
        return _register(raw) if kind == INCOMING[0] else _command(raw, request_id)
    except UsageError as error:
        raise Unreadable(error, request_id) from error


def _request_id(raw: Mapping[str, object]) -> str | int | None:
    found = raw.get("requestId")
    if isinstance(found, str):
        return found if len(found) <= REQUEST_ID_CHARS_MAX else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _register(raw: Mapping[str, object]) -> Register:
    """A plain name stands for that agent's main session; a session key for itself.

    Raises:
        UsageError: It is neither.
    """
    given = raw.get("agentId")
    name = given if isinstance(given, str) else ""
    session = name if name.startswith("agent:") else f"agent:{name}:main"
    if not SESSION.fullmatch(session):
        raise UsageError(
            f'agentId must name you, such as openclaw or agent:openclaw:main, not "{shown(name)}"',
            hint="a name has lower-case letters, digits, _ and -; it begins with one of the former",
            details={"field": "agentId"},
        )
    return Register(agent_id=name, session=SessionKey(session))


def _command(raw: Mapping[str, object], request_id: str | int | None) -> Command:
    if request_id is None:
        raise UsageError(
            f"requestId must be text of at most {REQUEST_ID_CHARS_MAX} characters, or a number",
            details={"field": "requestId"},
        )
    action = raw.get("action")
    if not isinstance(action, str):
        raise UsageError("action must be text", details={"field": "action"})
    params = raw.get("params")
    try:
        given = {} if params is None else as_object(params)
    except UsageError as error:
        raise UsageError("params must be an object", details={"field": "params"}) from error
    return Command(request_id, action, given)


def result(request_id: str | int | None, document: Mapping[str, object]) -> Document:
    return {"type": "response", "requestId": request_id, "result": document}


def failure(request_id: str | int | None, error: SubagentsError) -> Document:
    """The answer to what was refused; the connection lives on."""
    problem: Document = {"code": error.code, "message": error.message}
    if error.hint:
        problem["hint"] = error.hint
    return {"type": "response", "requestId": request_id, "error": problem}


def pushed(entry: FeedDocument) -> Document:
    """An event as supervisors get it: every one has ``type`` "event" and its name."""
    if entry.name != RUN:
        return entry.document
    step = dict(entry.document)
    agent, happened = step.pop("agentId"), step.pop("type")
    head = {"type": "event", "event": RUN, "agentId": step["label"], "happened": happened}
    return {**head, **step, "agent": agent}


LINE_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024


async def lines(
    reader: asyncio.StreamReader, *, bytes_max: int = LINE_BYTES_MAX
) -> AsyncIterator[bytes | None]:
    """Every line without its end, None in place of one that was too long; the last needs no end."""
    kept = bytearray()
    is_too_long = False
    while chunk := await reader.read(CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            is_too_long = is_too_long or len(kept) + len(part) > bytes_max
            yield None if is_too_long else bytes(kept + part)
            kept.clear()
            is_too_long = False
        is_too_long = is_too_long or len(kept) + len(rest) > bytes_max
        if is_too_long:
            kept.clear()
        else:
            kept += rest
    if kept or is_too_long:
        yield None if is_too_long else bytes(kept)
