"""The daemon's tools as an MCP server, on the protocol package's low-level server.

One server answers for everybody: who calls is in the ``Exchange`` of the HTTP request. Importing
this module loads the package; ``mcp_endpoint`` does so at the first request.
"""

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from subagents.api.calls.services import Services
from subagents.api.mcp import mcp_instructions
from subagents.api.mcp.codex_sandbox import CAPABILITY as SANDBOX_STATE
from subagents.api.mcp.mcp_calls import (
    Context,
    answer_of,
    meta_of,
    offered_meta,
    tool_result,
)
from subagents.api.mcp.mcp_exchange import Exchange
from subagents.api.mcp.run_tasks import RunTasks
from subagents.api.mcp.task_extension import EXTENSION, serve_tasks
from subagents.api.tools.tool import Tool
from subagents.api.tools.tool_registry import TOOLS, visible
from subagents.api.tools.tool_schemas import OUTPUTS
from subagents.version import __version__

PAGE_TOOLS: Final = 50
"""Tools in one answer of ``tools/list``; more than there are."""
_INTRODUCES: Final = frozenset({"initialize", "server/discover"})
_TITLES: Final[Mapping[str, str]] = {
    "sessions_spawn": "Start a sub-agent",
    "sessions_wait": "Wait for sub-agents",
    "sessions_list": "List sub-agents",
    "sessions_tree": "Tree of sub-agents",
    "sessions_history": "What a sub-agent said",
    "sessions_send": "Message a sub-agent",
    "subagents": "Look after sub-agents",
    "agents_list": "Agents to delegate to",
    "respond_orchestrator_request": "Answer a sub-agent",
    "report_completion": "Report completion",
    "report_progress": "Report progress",
    "notify_parent": "Notify the requester",
    "request_orchestrator": "Ask the requester",
}


def session_manager(services: Services, *, body_bytes_max: int) -> StreamableHTTPSessionManager:
    """What serves MCP requests over HTTP, one by one; its ``run`` must be entered first."""
    return StreamableHTTPSessionManager(
        create_server(services), stateless=True, max_request_body_size=body_bytes_max
    )


def create_server(services: Services) -> Server[Any]:
    """The server with all tools and with runs as tasks; nothing runs yet."""
    server: Server[Any] = Server(
        "subagents",
        version=__version__,
        title="subagents",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        get_tool_input_schema=lambda name: dict(TOOLS[name].schema) if name in TOOLS else None,
    )
    server.middleware.append(_introduce)
    serve_tasks(server, RunTasks(services))
    return server


async def _introduce(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Tell each caller what it can do here: the agents it may use are not everybody's."""
    result = await call_next(ctx)
    if ctx.method not in _INTRODUCES or not isinstance(result, dict):
        return result
    exchange = Exchange.of(ctx.request)
    capabilities = result.get("capabilities")
    if isinstance(capabilities, dict):
        # Codex tells those that declare it what its own sandbox allows.
        known = capabilities.get("experimental") or {}
        capabilities = {**capabilities, "experimental": {**known, SANDBOX_STATE: {}}}
        result = {**result, "capabilities": capabilities}
    answer = {
        **result,
        "instructions": await mcp_instructions.text(exchange.services, exchange.caller),
    }
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or ctx.method == "initialize":
        # Tasks exist on the current era only; an older client must not look for them.
        answer["capabilities"] = _without_tasks(answer.get("capabilities"))
    return answer


def _without_tasks(capabilities: object) -> dict[str, object]:
    found = dict(capabilities) if isinstance(capabilities, dict) else {}
    extensions = found.pop("extensions", None) or {}
    left = {name: value for name, value in extensions.items() if name != EXTENSION}
    return {**found, "extensions": left} if left else found


# -- tools --------------------------------------------------------------------------------------


async def _list_tools(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    exchange = Exchange.of(ctx.request)
    tools = visible(exchange.services, exchange.caller)
    first = _offset(params.cursor if params is not None else None)
    after = first + PAGE_TOOLS
    return types.ListToolsResult(
        tools=[described(tool) for tool in tools[first:after]],
        next_cursor=str(after) if after < len(tools) else None,
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 6:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown cursor; list without one")
    return int(cursor)


def described(tool: Tool) -> types.Tool:
    """A tool as clients are shown it."""
    return types.Tool(
        name=tool.name,
        title=_TITLES.get(tool.name),
        description=tool.description,
        input_schema=dict(tool.schema),
        output_schema=dict(OUTPUTS[tool.name]),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent or tool.read_only,
            open_world_hint=False,
        ),
        # Clients that hide tools behind a search show these: there are few, and they are small.
        _meta={"anthropic/alwaysLoad": True},
    )


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    exchange = Exchange.of(ctx.request)
    arguments = params.arguments or {}
    answer = await answer_of(ctx, params.name, arguments, meta=meta_of(params))
    exchange.hand_over(answer.offered)
    return tool_result(answer, meta=offered_meta(exchange, answer))
