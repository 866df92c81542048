"""The tasks extension: a tool's answer may be a task that the client looks at later.

This module speaks the extension's wire and knows nothing of runs: what a task is and where it
lives is a ``TaskSource``. No task is kept here, so nothing is lost with the process.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from subagents.errors import NotFound
from subagents.extensions.mcp.mcp_calls import ToolParams
from subagents.extensions.mcp.mcp_message import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    Document,
    Message,
    RpcError,
)
from subagents.extensions.mcp.mcp_server import Era, Handler, McpRequest, Method, rpc_error
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
    result: Document | None = None
    """What a completed task came to; also one whose tool reported an error."""
    error: RpcError | None = None
    """Why a task failed: the call itself went wrong."""
    input_requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the client is asked, by a name of ours; only while it is asked."""
    meta: Mapping[str, Any] | None = None
    """Metadata of the answer that carries it."""


class TaskSource(Protocol):
    """Where tasks come from; every method sees only what its caller may see."""

    def needs_task(self, tool: str) -> bool:
        """Whether that tool answers with a task or not at all."""
        ...

    async def begin(self, request: McpRequest, asked: ToolParams) -> Task | Document | None:
        """Start the call; the task can be looked at when this returns, also after a crash.

        Returns:
            The task; a result when there is nothing to wait for; None = this call is no task and
            nothing was done.
        """
        ...

    async def look(self, request: McpRequest, task_id: str) -> Task:
        """The task, with its result once it has one.

        Raises:
            NotFound: None of that id that the caller may see.
        """
        ...

    async def update(self, request: McpRequest, task_id: str, responses: Mapping[str, Any]) -> None:
        """Take answers to what the task asked; unknown names and late answers change nothing.

        Raises:
            NotFound: See ``look``.
        """
        ...

    async def cancel(self, request: McpRequest, task_id: str) -> None:
        """Ask the task to end; harmless for one that has ended.

        Raises:
            NotFound: See ``look``.
        """
        ...


class TaskParams(msgspec.Struct, rename="camel"):
    """Of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str


class TaskUpdateParams(TaskParams, rename="camel"):
    """Of ``tasks/update``."""

    input_responses: dict[str, Any]


TaskHandler = Callable[[TaskSource, McpRequest, Any], Awaitable[Document]]


def task_methods(source: TaskSource, call_as_ever: Handler) -> dict[str, Method]:
    """``tools/call`` that may answer with tasks of ``source``, and ``tasks/…``.

    Args:
        source: Where tasks come from.
        call_as_ever: Calls a tool of which no task is made.
    """

    async def call_tool(request: McpRequest) -> Document:
        message = request.message
        if not _declares_tasks(message):
            if message.is_modern and source.needs_task(message.decoded(ToolParams).name):
                raise _missing_capability()
            return await call_as_ever(request)
        begun = await source.begin(request, message.decoded(ToolParams))
        if begun is None:
            return await call_as_ever(request)
        return created(begun) if isinstance(begun, Task) else begun

    return {
        "tools/call": Method(handler=call_tool, eras=Era.BOTH, lasts=True),
        **{
            name: Method(handler=_checked(source, params, handler), eras=Era.MODERN)
            for name, (params, handler) in _METHODS.items()
        },
    }


def _checked(source: TaskSource, kind: type[TaskParams], handler: TaskHandler) -> Handler:
    async def handle(request: McpRequest) -> Document:
        message = request.message
        if not _declares_tasks(message):
            raise _missing_capability()
        params = message.decoded(kind)
        if message.named is None or message.named.strip() != params.task_id:
            # Routers on the way decide by the header, so it must say what the body says.
            raise RpcError(
                HEADER_MISMATCH,
                "the Mcp-Name header must be params.taskId",
                {"header": message.named, "taskId": params.task_id},
            )
        if len(params.task_id) > TASK_ID_CHARS_MAX:
            raise RpcError(INVALID_PARAMS, "unknown task")
        try:
            return await handler(source, request, params)
        except NotFound as error:
            raise rpc_error(INVALID_PARAMS, error) from error

    return handle


async def _get(source: TaskSource, request: McpRequest, params: TaskParams) -> Document:
    return detailed(await source.look(request, params.task_id))


async def _cancel(source: TaskSource, request: McpRequest, params: TaskParams) -> Document:
    await source.cancel(request, params.task_id)
    return {"resultType": "complete"}


async def _update(source: TaskSource, request: McpRequest, params: TaskUpdateParams) -> Document:
    await source.update(request, params.task_id, params.input_responses)
    return {"resultType": "complete"}


_METHODS: Final[Mapping[str, tuple[type[TaskParams], TaskHandler]]] = {
    "tasks/get": (TaskParams, _get),
    "tasks/cancel": (TaskParams, _cancel),
    "tasks/update": (TaskUpdateParams, _update),
}


# -- what the client declared -------------------------------------------------------------------


def _declares_tasks(message: Message) -> bool:
    """Whether this very request says that its client understands tasks."""
    return EXTENSION in (message.capabilities.extensions or {})


def asks_people(message: Message) -> bool:
    """Whether the client can put a question with a form to its user."""
    return message.capabilities.elicitation is not None


def _missing_capability() -> RpcError:
    return RpcError(
        MISSING_CAPABILITY,
        f"the request must declare the extension {EXTENSION}",
        {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
    )


# -- the wire -----------------------------------------------------------------------------------


def created(task: Task) -> Document:
    """The answer of a tool call that became a task: where to look, and nothing of its outcome."""
    return {"resultType": "task", **_envelope(task)}


def detailed(task: Task) -> Document:
    """The answer of ``tasks/get``."""
    found = {"resultType": "complete", **_envelope(task)}
    if task.status is TaskStatus.COMPLETED and task.result is not None:
        found["result"] = {"resultType": "complete", **task.result}
    if task.status is TaskStatus.FAILED and task.error is not None:
        found["error"] = task.error.to_wire()
    if task.status is TaskStatus.INPUT_REQUIRED:
        found["inputRequests"] = {name: dict(each) for name, each in task.input_requests.items()}
    if task.meta:
        found["_meta"] = dict(task.meta)
    return found


def _envelope(task: Task) -> Document:
    found: Document = {
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
