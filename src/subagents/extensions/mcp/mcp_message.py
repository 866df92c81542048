"""What came with one POST to ``/mcp``: a message of the protocol, or what is wrong with it; pure.

Two eras are spoken over streamable HTTP without sessions. Older clients shake hands and then name
the version in a header; on the current era every request says in ``_meta`` which version it speaks
and what its client can do, and repeats in headers what routers on the way decide by.
"""

import base64
import binascii
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

import msgspec

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions with a handshake, oldest first."""
MODERN: Final = ("2026-07-28",)
"""Revisions without one."""
UNSAID: Final = "2025-03-26"
"""Spoken by clients of the older era that name no version."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

VERSION_META: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_META: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_META: Final = "io.modelcontextprotocol/serverInfo"
_INFO_META: Final = "io.modelcontextprotocol/clientInfo"
_LEVEL_META: Final = "io.modelcontextprotocol/logLevel"
_VERSION_HEADER: Final = b"mcp-protocol-version"
_METHOD_HEADER: Final = b"mcp-method"
_NAME_HEADER: Final = b"mcp-name"
_ROUTING: Final = frozenset({_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER})
_NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""Method → the parameter that the header ``Mcp-Name`` repeats."""
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=")
_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""HTTP status of an error on the current era; the others are answered with 200."""

Document = dict[str, Any]
Id = str | int
T = TypeVar("T", bound=msgspec.Struct)


class RpcError(Exception):
    """A request that is answered with an error of JSON-RPC.

    Args:
        code: Says which, to programs.
        message: Says it to people.
        data: What there is to say beyond it; JSON.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_wire(self) -> Document:
        """The ``error`` of the answer."""
        found: Document = {"code": self.code, "message": self.message}
        if self.data is not None:
            found["data"] = self.data
        return found


class Refused(Exception):
    """A POST that carries no message which could be served.

    Args:
        error: Why not.
        id_: Of the request; None where it has none or it cannot be read.
        status: Of HTTP.
    """

    def __init__(self, error: RpcError, id_: Id | None = None, *, status: int = 400) -> None:
        super().__init__(error.message)
        self.error = error
        self.id = id_
        self.status = status


class Capabilities(msgspec.Struct, frozen=True):
    """What a client can do, as far as it matters here."""

    extensions: dict[str, dict[str, Any]] | None = None
    elicitation: dict[str, Any] | None = None


class _Implementation(msgspec.Struct):
    name: str
    version: str


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    """``_meta`` of a request."""

    progress_token: Id | None = msgspec.field(name="progressToken", default=None)


class _ModernMeta(_Meta, frozen=True, kw_only=True):
    capabilities: Capabilities = msgspec.field(name=CAPABILITIES_META)
    client: _Implementation | None = msgspec.field(name=_INFO_META, default=None)
    level: str | None = msgspec.field(name=_LEVEL_META, default=None)


class _Envelope(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    method: str
    id: Id | msgspec.UnsetType | None = msgspec.UNSET
    params: dict[str, Any] | None = None


class _Cancelled(msgspec.Struct, tag_field="method", tag="notifications/cancelled"):
    params: dict[str, Any]


_decoder: Final = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request."""

    id: Id
    method: str
    params: Mapping[str, Any]
    """Not checked beyond ``_meta``."""
    version: str
    """The protocol's version."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    """What the client said with this very request that it can do; nothing on the older era."""
    progress_token: Id | None = None
    """Given: the client wants to hear how it is doing."""
    named: str | None = None
    """What the header ``Mcp-Name`` says."""

    @property
    def is_modern(self) -> bool:
        """Whether it is of the current era."""
        return self.version in MODERN

    @property
    def meta(self) -> Mapping[str, Any]:
        """The ``_meta`` of the parameters."""
        return self.params.get("_meta") or {}

    def decoded(self, kind: type[T]) -> T:
        """The parameters.

        Raises:
            RpcError: They have another form.
        """
        try:
            return msgspec.convert(self.params, kind)
        except msgspec.ValidationError as error:
            raise _wrong_params() from error

    def status_of(self, error: RpcError) -> int:
        """The HTTP status that answers it with that error."""
        return _STATUS.get(error.code, 200) if self.is_modern else 200


def read(headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Message | None:
    """The request that a POST carries; None = a notification or an answer, which want none.

    Of what a client can tell us in a notification only ``cancelled`` concerns us.

    Raises:
        Refused: It carries neither, or contradicts itself.
    """
    found = {name: value.strip(b" \t").decode("latin-1") for name, value in headers}
    if not _is_json(found.get(b"content-type", "")):
        raise _invalid("Content-Type must be application/json")
    if not _takes_both(found.get(b"accept", "")):
        # The specification wants both of every client; we answer with the one or the other.
        text = "Accept must have both application/json and text/event-stream"
        raise Refused(RpcError(INVALID_REQUEST, text), status=406)
    # An unknown version is taken for a newer one: it is refused in the current era's form.
    said = found.get(_VERSION_HEADER)
    is_modern = said is not None and said not in LEGACY
    envelope = _envelope(body, is_modern=is_modern)
    if envelope is None or envelope.id is msgspec.UNSET:
        if is_modern and said not in MODERN:
            raise _refused(_unsupported(said), None)
        return None
    id_ = envelope.id
    if id_ is None:
        raise _invalid("id must be a text or a whole number")
    params = envelope.params or {}
    if is_modern:
        return _modern(id_, envelope.method, params, headers, found)
    meta = _checked(params.get("_meta") or {}, _Meta, id_, status=200)
    return Message(
        id=id_,
        method=envelope.method,
        params=params,
        version=said or UNSAID,
        progress_token=meta.progress_token,
    )


def cancelled(body: bytes) -> object:
    """The id of the request that a notification takes back; None = it says something else."""
    try:
        return msgspec.json.decode(body, type=_Cancelled).params.get("requestId")
    except msgspec.ValidationError:
        return None


def _envelope(body: bytes, *, is_modern: bool) -> _Envelope | None:
    """None = the answer to a request; we made none.

    Raises:
        Refused: It is not JSON, or no single message.
    """
    try:
        try:
            return _decoder.decode(body)
        except msgspec.ValidationError as error:
            # Clients of the older era may send answers.
            found = msgspec.json.decode(body)
            if not is_modern and isinstance(found, dict) and {"result", "error"} & found.keys():
                return None
            text = f"the body must be one JSON-RPC request or notification: {error}"
            raise _invalid(text) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(RpcError(PARSE_ERROR, "Parse error: the body is not valid JSON")) from error


def _modern(
    id_: Id,
    method: str,
    params: Document,
    headers: Sequence[tuple[bytes, bytes]],
    found: Mapping[bytes, str],
) -> Message:
    """A request of the current era, whose body and headers agree.

    Raises:
        Refused: They do not, or it is incomplete, or of a version that is not spoken.
    """
    for name in _ROUTING:
        if sum(each == name for each, _ in headers) > 1:
            # Whoever reads the first and whoever reads the last would disagree.
            text = f"{name.decode()} header appears more than once"
            raise _refused(RpcError(HEADER_MISMATCH, text), id_)
    given = params.get("_meta")
    if not isinstance(given, dict):
        raise _refused(RpcError(INVALID_PARAMS, "params._meta must be an object"), id_)
    if missing := [each for each in (VERSION_META, CAPABILITIES_META) if each not in given]:
        text = f"params._meta is missing {', '.join(missing)}"
        raise _refused(RpcError(INVALID_PARAMS, text), id_)
    version = given[VERSION_META]
    named = _unwrapped(found.get(_NAME_HEADER))
    wanted = params.get(_NAMED.get(method, ""))
    for header, says, is_same in (
        (_VERSION_HEADER, "protocol version", found.get(_VERSION_HEADER) == version),
        (_METHOD_HEADER, "method", found.get(_METHOD_HEADER) == method),
        (_NAME_HEADER, "name", wanted is None or named == wanted),
    ):
        if not is_same:
            text = f"{header.decode()} header does not match the {says} in the body"
            raise _refused(RpcError(HEADER_MISMATCH, text), id_)
    if version not in MODERN:
        raise _refused(_unsupported(version), id_)
    meta = _checked(given, _ModernMeta, id_, status=400)
    return Message(
        id=id_,
        method=method,
        params=params,
        version=version,
        capabilities=meta.capabilities,
        progress_token=meta.progress_token,
        named=named,
    )


def _checked(meta: object, kind: type[T], id_: Id, *, status: int) -> T:
    try:
        return msgspec.convert(meta, kind)
    except msgspec.ValidationError as error:
        raise Refused(_wrong_params(), id_, status=status) from error


def _wrong_params() -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid request parameters", "")


def _unsupported(version: object) -> RpcError:
    data = {"supported": list(MODERN), "requested": version}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _invalid(text: str) -> Refused:
    return Refused(RpcError(INVALID_REQUEST, text))


def _refused(error: RpcError, id_: Id | None) -> Refused:
    return Refused(error, id_, status=_STATUS[error.code])


# -- headers ------------------------------------------------------------------------------------


@lru_cache(64)
def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


@lru_cache(64)
def _takes_both(accept: str) -> bool:
    """Whether the client takes an answer as one document and as a stream."""
    kinds = {each.partition(";")[0].strip().lower() for each in accept.split(",")}
    return "*/*" in kinds or bool(
        kinds & {"application/json", "application/*"} and kinds & {"text/event-stream", "text/*"}
    )


def _unwrapped(value: str | None) -> str | None:
    """The text in a header, which may be wrapped in base64; None where that is broken."""
    wrapped = None if value is None else _WRAPPED.fullmatch(value)
    if wrapped is None:
        return value
    with contextlib.suppress(binascii.Error, UnicodeError):
        found = base64.b64decode(wrapped[1], validate=True)
        # There are several spellings of one text; only one of them is written.
        if base64.b64encode(found).decode() == wrapped[1]:
            return found.decode()
    return None
