"""What a POST carries, judged as the protocol's own package judges it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import jsonrpc, version

from subagents.extensions.mcp import mcp_message
from subagents.extensions.mcp.mcp_calls import ToolParams
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import (
    CAPABILITIES_META,
    INVALID_PARAMS,
    SERVER_META,
    VERSION_META,
    Document,
    Message,
    Refused,
    RpcError,
    read,
)
from subagents.extensions.mcp.mcp_server import Era, McpRequest, McpServer, Method, error_message

OLD: Final = "2025-11-25"
NEW: Final = "2026-07-28"
META: Final = {VERSION_META: NEW, CAPABILITIES_META: {}}
NOT_KEPT: Final = {"ttlMs": 0, "cacheScope": "private"}


class Post(NamedTuple):
    """One POST."""

    body: Any
    """JSON, or bytes as they are."""
    headers: Mapping[str, str]
    twice: tuple[tuple[str, str], ...] = ()
    """Headers that come beside those of the same name."""

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        usual = {"content-type": "application/json", "accept": "application/json,text/event-stream"}
        pairs = [*{**usual, **self.headers}.items(), *self.twice]
        return [(name.encode(), value.encode()) for name, value in pairs if value != "-"]


def request(method: str, params: Any = None, id_: Any = 1, **more: Any) -> Document:
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id_, "method": method, **given, **more}


def old(body: Any, **headers: str) -> Post:
    return Post(body, {"mcp-protocol-version": OLD, **_spelled(headers)})


def new(method: str, params: Any = None, id_: Any = 1, **headers: str) -> Post:
    """A request of the current era, whose headers say what they must unless they are given."""
    params = {"_meta": META} if params is None else params
    named = {"mcp-name": params["name"]} if isinstance(params.get("name"), str) else {}
    said = {"mcp-protocol-version": NEW, "mcp-method": method, **named}
    return Post(request(method, params, id_), {**said, **_spelled(headers)})


def _spelled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


CALL: Final = {"name": "echo", "arguments": {"a": [1, None, "ü", 2**70]}}
NEW_CALL: Final = {**CALL, "_meta": META}

SAME: Final[Mapping[str, Post]] = {
    "ping": old(request("ping")),
    "ping without a version": Post(request("ping"), {}),
    "ping of the first revision": old(request("ping"), mcp_protocol_version="2024-11-05"),
    "text as id": old(request("ping", id_="x")),
    "null as params": old({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None}),
    "more in the envelope": old(request("ping", more=1)),
    "wildcards": old(request("ping"), accept="*/*"),
    "kinds with parameters": old(request("ping"), accept="text/*;q=0.1, application/json; a=b"),
    "a charset": old(request("ping"), content_type="application/json; charset=utf-8"),
    "call": old(request("tools/call", CALL)),
    "call without arguments": old(request("tools/call", {"name": "echo"})),
    "call with null": old(request("tools/call", {"name": "echo", "arguments": None})),
    "call with a list": old(request("tools/call", {"name": "echo", "arguments": [1]})),
    "call of no name": old(request("tools/call", {"arguments": {}})),
    "call of a number": old(request("tools/call", {"name": 5})),
    "call of what is not there": old(request("tools/call", {"name": "nothing"})),
    "call with more": old(request("tools/call", {**CALL, "task": {"ttl": 5}})),
    "token": old(request("tools/call", {**CALL, "_meta": {"progressToken": 1}})),
    "wrong token": old(request("tools/call", {**CALL, "_meta": {"progressToken": [1]}})),
    "wrong meta": old(request("tools/call", {**CALL, "_meta": 5})),
    "foreign method": old(request("foo/bar", {"a": 1})),
    "method of the protocol that is not served": old(request("prompts/list", {})),
    "method of the other era": old(request("server/discover", {})),
    "notification": old({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    "cancelled": old(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    ),
    "answer": old({"jsonrpc": "2.0", "id": 1, "result": {}}),
    "no JSON": old(b"{"),
    "no UTF-8": old(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'),
    "nested deeply": old(b"[" * 100_000),
    "empty": old(b""),
    "new ping": new("ping"),
    "new handshake": new("initialize"),
    "new stream of changes": new("subscriptions/listen", {"_meta": META, "notifications": {}}),
    "old request with the meta of a new one": old(request("tools/call", NEW_CALL)),
    "old client that names a new version in the body only": Post(request("ping", NEW_CALL), {}),
    "new call": new("tools/call", NEW_CALL),
    "new call of what is not there": new("tools/call", {**NEW_CALL, "name": "nothing"}),
    "new call with a list": new("tools/call", {**NEW_CALL, "arguments": [1]}),
    "new list": new("tools/list"),
    "new foreign method": new("foo/bar"),
    "new method that is not served": new("prompts/list"),
    "no params": Post(request("tools/list"), new("tools/list").headers),
    "no meta": new("tools/list", {}),
    "meta without capabilities": new("tools/list", {"_meta": {VERSION_META: NEW}}),
    "meta without a version": new("tools/list", {"_meta": {CAPABILITIES_META: {}}}),
    "capabilities of a wrong kind": new("tools/list", {"_meta": {**META, CAPABILITIES_META: 5}}),
    "client without a name": new(
        "tools/list", {"_meta": {**META, "io.modelcontextprotocol/clientInfo": {"version": "1"}}}
    ),
    "other method in the header": new("tools/list", mcp_method="tools/call"),
    "no method in the header": new("tools/list", mcp_method="-"),
    "other name in the header": new("tools/call", NEW_CALL, mcp_name="other"),
    "no name in the header": new("tools/call", NEW_CALL, mcp_name="-"),
    "wrapped name": new("tools/call", NEW_CALL, mcp_name="=?base64?ZWNobw==?="),
    "badly wrapped name": new("tools/call", NEW_CALL, mcp_name="=?base64?ZWNobw?="),
    "name wrapped in another spelling": new("tools/call", NEW_CALL, mcp_name="=?base64?ZWNobx==?="),
    "other version in the body": new("tools/list", {"_meta": {**META, VERSION_META: "2027-01-01"}}),
    "version of the future": new(
        "tools/list",
        {"_meta": {**META, VERSION_META: "2027-01-01"}},
        mcp_protocol_version="2027-01-01",
    ),
    "number as version": new("tools/list", {"_meta": {**META, VERSION_META: 5}}),
    "method twice": new("tools/list")._replace(twice=(("mcp-method", "tools/list"),)),
    "name twice": new("tools/call", NEW_CALL)._replace(twice=(("mcp-name", "other"),)),
    "null as id": new("tools/list", id_=None),
    "fraction as id": new("tools/list", id_=1.5),
    "list as id": new("tools/list", id_=[1]),
    "new batch": Post([request("ping")], {"mcp-protocol-version": NEW}),
    "new answer": Post({"jsonrpc": "2.0", "id": 1, "result": {}}, {"mcp-protocol-version": NEW}),
    "other jsonrpc": Post(request("ping", jsonrpc="1.0"), {"mcp-protocol-version": NEW}),
    "new notification": Post(
        {"jsonrpc": "2.0", "method": "notifications/cancelled"}, {"mcp-protocol-version": NEW}
    ),
    "notification of the future": Post(
        {"jsonrpc": "2.0", "method": "notifications/cancelled"}, {"mcp-protocol-version": "2027"}
    ),
    "new without JSON": Post(b"{", {"mcp-protocol-version": NEW}),
    "accepts no stream": new("tools/list", accept="application/json"),
    "accepts no document": new("tools/list", accept="text/event-stream"),
    "accepts nothing": old(request("ping"), accept="-"),
    "a form": old(request("ping"), content_type="application/x-www-form-urlencoded"),
    "of no kind": old(request("ping"), content_type="-"),
}
"""Posts that both answer alike."""
STRICTER: Final[Mapping[str, Post]] = {
    # JSON-RPC gives the number to what is no request; the package says "wrong parameters".
    "batch": old([request("ping")]),
    "number": old(b"5"),
    "method of a wrong kind": old({"jsonrpc": "2.0", "id": 1, "method": 5}),
    # The package takes these for notifications and never answers.
    "id of a wrong kind": old(request("ping", id_=[1])),
    "null": old(request("ping", id_=None)),
    "fraction": old(request("ping", id_=1.5)),
}

Judged = tuple[int, Any]
"""The HTTP status, and the result or the number of the error."""


async def by_package(post: Post) -> Judged:
    """What the package answers."""

    async def call(
        _: ServerRequestContext[Any, Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        if params.name != "echo":
            raise MCPError(code=INVALID_PARAMS, message="no such tool")
        text = mcp_types.TextContent(type="text", text="said")
        return mcp_types.CallToolResult(content=[text], structured_content=params.arguments or {})

    async def list_tools(
        _: ServerRequestContext[Any, Any], __: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[])

    server: Server[Any] = Server("echo", version="1", on_call_tool=call, on_list_tools=list_tools)
    manager = StreamableHTTPSessionManager(server, stateless=True)
    left = [{"type": "http.request", "body": post.content(), "more_body": False}]
    sent: list[Any] = []
    is_over = asyncio.Event()

    async def receive() -> Any:
        if left:
            return left.pop()
        await is_over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = post.raw_headers()
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    async with manager.run():
        await manager.handle_request(cast("Any", scope), receive, send)
        is_over.set()
    content = b"".join(each.get("body", b"") for each in sent[1:])
    events = [line[6:] for line in content.splitlines() if line.startswith(b"data: ")]
    return judged(sent[0]["status"], events[-1] if events else content)


async def by_us(post: Post) -> Judged:
    """What our server answers."""

    async def call(request: McpRequest) -> Document:
        asked = request.message.decoded(ToolParams)
        if asked.name != "echo":
            raise RpcError(INVALID_PARAMS, "no such tool")
        content = [{"type": "text", "text": "said"}]
        found = asked.arguments or {}
        return {"content": content, "structuredContent": found, "isError": False}

    async def ping(_: McpRequest) -> Document:
        return {}

    async def list_tools(request: McpRequest) -> Document:
        return {"tools": [], **(NOT_KEPT if request.message.is_modern else {})}

    methods = {
        "ping": Method(handler=ping, eras=Era.LEGACY),
        "tools/list": Method(handler=list_tools, eras=Era.BOTH),
        "tools/call": Method(handler=call, eras=Era.BOTH),
    }
    server = McpServer({"name": "echo", "version": "1"}, methods)

    async def tell(_: str) -> None:
        return

    try:
        message = read(post.raw_headers(), post.content())
    except Refused as refused:
        return judged(refused.status, error_message(refused.id, refused.error))
    if message is None:
        return judged(202, b"")
    nobody = cast("Exchange", None)
    return judged(*await server.answer(McpRequest(message=message, exchange=nobody, tell=tell)))


def judged(status: int, content: bytes) -> Judged:
    try:
        found = json.loads(content)
    except ValueError:
        return status, None
    if "result" in found:
        return status, (found["id"], found["result"])
    return status, (found["id"], found["error"]["code"])


@pytest.mark.requirement("mcp:judged-as-by-the-package")
@pytest.mark.parametrize("name", SAME)
def test_a_post_is_answered_as_the_protocols_package_answers_it(name: str) -> None:
    theirs, ours = asyncio.run(by_package(SAME[name])), asyncio.run(by_us(SAME[name]))
    if theirs[1] is None:  # it refuses some without a word
        ours = ours[0], None
    assert ours == theirs


@pytest.mark.requirement("mcp:judged-as-by-the-package")
@pytest.mark.parametrize("name", STRICTER)
def test_what_is_no_request_is_told_so_also_on_the_older_era(name: str) -> None:
    assert asyncio.run(by_us(STRICTER[name])) == (400, (None, mcp_message.INVALID_REQUEST))


@pytest.mark.requirement("mcp:judged-as-by-the-package")
def test_the_versions_and_numbers_are_those_of_the_protocol() -> None:
    assert mcp_message.LEGACY == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert mcp_message.MODERN == version.MODERN_PROTOCOL_VERSIONS
    assert mcp_message.UNSAID == mcp_types.DEFAULT_NEGOTIATED_VERSION
    assert (VERSION_META, CAPABILITIES_META, SERVER_META) == (
        mcp_types.PROTOCOL_VERSION_META_KEY,
        mcp_types.CLIENT_CAPABILITIES_META_KEY,
        mcp_types.SERVER_INFO_META_KEY,
    )
    for ours, theirs in {
        "PARSE_ERROR": "PARSE_ERROR",
        "INVALID_REQUEST": "INVALID_REQUEST",
        "METHOD_NOT_FOUND": "METHOD_NOT_FOUND",
        "INVALID_PARAMS": "INVALID_PARAMS",
        "INTERNAL_ERROR": "INTERNAL_ERROR",
        "HEADER_MISMATCH": "HEADER_MISMATCH",
        "MISSING_CAPABILITY": "MISSING_REQUIRED_CLIENT_CAPABILITY",
        "UNSUPPORTED_VERSION": "UNSUPPORTED_PROTOCOL_VERSION",
    }.items():
        assert getattr(mcp_message, ours) == getattr(jsonrpc, theirs)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "_meta", VERSION_META])


@pytest.mark.requirement("mcp:judged-as-by-the-package")
@given(
    st.binary(max_size=60)
    | st.dictionaries(KEYS, JSON_VALUES | KEYS).map(json.dumps).map(str.encode),
    st.dictionaries(
        st.sampled_from(["content-type", "accept", "mcp-protocol-version", "mcp-method"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    ),
)
def test_whatever_is_posted_is_a_message_or_refused(
    body: bytes, headers: Mapping[str, str]
) -> None:
    found: Message | Refused | None
    try:
        found = read(Post(body, headers).raw_headers(), body)
    except Refused as refused:
        found = refused
    if isinstance(found, Refused):
        assert found.status in {200, 400, 406}
        assert json.loads(error_message(found.id, found.error))["error"]["code"] < 0
    else:
        assert found is None or isinstance(found, Message)
