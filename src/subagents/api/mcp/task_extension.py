"""The tasks extension: a tool's answer may be a task that the client looks at later.

This module speaks the extension's wire and knows nothing of runs: what a task is and where it
lives is a ``TaskSource``. No task is kept here, so nothing is lost with the process.

The protocol's package hands a result whose ``resultType`` is not of the core vocabulary through
as it is (2.3.0, ``ServerRunner._serialize``); a test on the wire holds it to that.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from subagents.api.mcp.mcp_calls import Context, protocol_error
from subagents.errors import NotFound
from subagents.text import iso

EXTENSION: Final = "io.modelcontextprotocol/tasks"
TASK_ID_CHARS_MAX: Final = 4_096
"""It also travels in a header."""


class TaskStatus(StrEnum):
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it stands now."""

    id: str
    status: TaskStatus
    created_at_ms: int
    updated_at_ms: int
    ttl_ms: int | None
    """How long it can be looked at, from its creation on; None = no limit."""
    poll_ms: int
    """When to look again."""
    message: str = ""
    result: types.CallToolResult | None = None
    """Of a completed task; also of one whose tool reported an error."""
    error: types.ErrorData | None = None
    """Of a failed one: the call itself went wrong."""
    input_requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the client is asked, by a name of ours; only while it is asked."""
    meta: Mapping[str, Any] | None = None
    """Of the answer that carries it."""


class TaskSource(Protocol):
    """Where tasks come from; every method sees only what its caller may see."""

    def needs_task(self, tool: str) -> bool:
        """Whether that tool answers with a task or not at all."""
        ...

    async def begin(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> Task | HandlerResult:
        """Start the call; the task can be looked at when this returns, also after a crash.

        Returns:
            The task; a result when there is nothing to wait for; None = this call is no task and
            nothing was done.
        """
        ...

    async def look(self, ctx: Context, task_id: str) -> Task:
        """The task, with its result once it has one.

        Raises:
            NotFound: None of that id that the caller may see.
        """
        ...

    async def update(self, ctx: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        """Take answers to what the task asked; unknown names and late answers change nothing.

        Raises:
            NotFound: See ``look``.
        """
        ...

    async def cancel(self, ctx: Context, task_id: str) -> None:
        """Ask the task to end; harmless for one that has ended.

        Raises:
            NotFound: See ``look``.
        """
        ...


class TaskParams(types.RequestParams):
    """Of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Of ``tasks/update``."""

    input_responses: dict[str, Any]


CallHandler = Callable[[Context, types.CallToolRequestParams], Awaitable[HandlerResult]]
TaskHandler = Callable[[TaskSource, Context, Any], Awaitable[HandlerResult]]


def serve_tasks(server: Server[Any], source: TaskSource) -> None:
    """Let ``server`` answer tool calls with tasks of ``source`` and serve ``tasks/…``."""
    entry = server.get_request_handler("tools/call")
    if entry is None:
        raise LookupError("there are no tools whose calls could become tasks")
    call_as_ever: CallHandler = entry.handler

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        if not _declares_tasks(ctx):
            if source.needs_task(params.name) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                raise _missing_capability()
            return await call_as_ever(ctx, params)
        begun = await source.begin(ctx, params)
        if begun is None:
            return await call_as_ever(ctx, params)
        return created(begun) if isinstance(begun, Task) else begun

    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    for method, (params_type, handler) in _METHODS.items():
        server.add_request_handler(method, params_type, _checked(source, handler))
    server.extensions[EXTENSION] = {}


def _checked(source: TaskSource, handler: TaskHandler) -> Callable[[Context, Any], Any]:
    async def handle(ctx: Context, params: TaskParams) -> HandlerResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data=ctx.method)
        if not _declares_tasks(ctx):
            raise _missing_capability()
        _check_name_header(ctx, params.task_id)
        if len(params.task_id) > TASK_ID_CHARS_MAX:
            raise MCPError(code=types.INVALID_PARAMS, message="unknown task")
        try:
            return await handler(source, ctx, params)
        except NotFound as error:
            raise protocol_error(types.INVALID_PARAMS, error) from error

    return handle


async def _get(source: TaskSource, ctx: Context, params: TaskParams) -> HandlerResult:
    return detailed(await source.look(ctx, params.task_id))


async def _cancel(source: TaskSource, ctx: Context, params: TaskParams) -> HandlerResult:
    await source.cancel(ctx, params.task_id)
    return {"resultType": "complete"}


async def _update(source: TaskSource, ctx: Context, params: TaskUpdateParams) -> HandlerResult:
    await source.update(ctx, params.task_id, params.input_responses)
    return {"resultType": "complete"}


_METHODS: Final[Mapping[str, tuple[type[BaseModel], TaskHandler]]] = {
    "tasks/get": (TaskParams, _get),
    "tasks/cancel": (TaskParams, _cancel),
    "tasks/update": (TaskUpdateParams, _update),
}


# -- what the client declared -------------------------------------------------------------------


def _declares_tasks(ctx: Context) -> bool:
    """Whether this very request says that its client understands tasks."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    declared = ctx.session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


def asks_people(ctx: Context) -> bool:
    """Whether the client can put a question with a form to its user."""
    declared = ctx.session.client_capabilities
    return declared is not None and declared.elicitation is not None


def _missing_capability() -> MCPError:
    return MCPError(
        code=MISSING_REQUIRED_CLIENT_CAPABILITY,
        message=f"the request must declare the extension {EXTENSION}",
        data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
    )


def _check_name_header(ctx: Context, task_id: str) -> None:
    """Routers on the way decide by the header, so it must say what the body says.

    Raises:
        MCPError: It does not, or is missing.
    """
    if ctx.request is None:
        return
    named = decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER))
    if named is None or named.strip() != task_id:
        raise MCPError(
            code=HEADER_MISMATCH,
            message="the Mcp-Name header must be params.taskId",
            data={"header": named, "taskId": task_id},
        )


# -- the wire -----------------------------------------------------------------------------------


def created(task: Task) -> dict[str, Any]:
    """The answer of a tool call that became a task: where to look, and nothing of its outcome."""
    return {"resultType": "task", **_envelope(task)}


def detailed(task: Task) -> dict[str, Any]:
    """The answer of ``tasks/get``."""
    found = {"resultType": "complete", **_envelope(task)}
    if task.status is TaskStatus.COMPLETED and task.result is not None:
        found["result"] = _dumped(task.result)
    if task.status is TaskStatus.FAILED and task.error is not None:
        found["error"] = _dumped(task.error)
    if task.status is TaskStatus.INPUT_REQUIRED:
        found["inputRequests"] = {name: dict(each) for name, each in task.input_requests.items()}
    if task.meta:
        found["_meta"] = dict(task.meta)
    return found


def _envelope(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {
        "taskId": task.id,
        "status": str(task.status),
        "createdAt": iso(task.created_at_ms),
        "lastUpdatedAt": iso(task.updated_at_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_ms,
    }
    if task.message:
        found["statusMessage"] = task.message
    return found


def _dumped(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)
