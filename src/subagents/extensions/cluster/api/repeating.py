"""Which requests may be sent to a second node, when the first was lost while it had them."""

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from subagents.api.calls.auth import MCP_PATH
from subagents.api.tools.repeatable import may_repeat, may_repeat_tool
from subagents.domain.run.values import RunId

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
SPAWNS: Final = frozenset({"/v1/runs", "/v1/plans"})
"""A key makes them safe: the second time gives the first runs."""
TOOLS_PATH: Final = "/v1/tools/"
_HARMLESS: Final = re.compile(
    r"/v1/(?:runs/dry-run|plans/dry-run|wait|inbox|inbox/ack|sweep"
    r"|(?:runs|plans)/[^/]+/(?:cancel|pause|resume|priority|report|dismiss))"
)
"""Posts that say what is to be so, and posts that wait; and not those that add something."""
KEY: Final = b"idempotency-key"
CALL_ID: Final = b"x-subagents-call-id"

Headers = Sequence[tuple[bytes, bytes]]


def keyed(method: str, path: str, headers: Headers) -> Headers:
    """The headers with a key for what starts runs, where the client gave none."""
    if method != "POST":
        return headers
    name = None
    if path in SPAWNS:
        name = KEY
    elif path == MCP_PATH or path.startswith(TOOLS_PATH):
        name = CALL_ID
    if name is None or any(given == name for given, _ in headers):
        return headers
    return [*headers, (name, uuid.uuid4().hex.encode())]


def is_repeatable(method: str, path: str, body: bytes) -> bool:
    """Whether the request, with its headers as ``keyed`` has them, is harmless twice.

    Args:
        method: Of HTTP.
        path: As it was sent.
        body: All of it.
    """
    if method in SAFE_METHODS:
        return True
    if method != "POST":
        return False
    if path == MCP_PATH:
        message = _object(body)
        return may_repeat(str(message.get("method")), _member(message, "params"))
    if path.startswith(TOOLS_PATH):
        return may_repeat_tool(path.removeprefix(TOOLS_PATH), _object(body))
    return path in SPAWNS or _HARMLESS.fullmatch(path) is not None


def awaited(body: bytes) -> Sequence[RunId]:
    """The runs that a wait names by their ids, as far as it can be read."""
    found = _object(body).get("runIds")
    named = found if isinstance(found, list) else ()
    return [RunId(each) for each in named if isinstance(each, str) and each.startswith("r-")]


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _member(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
