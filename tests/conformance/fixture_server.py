"""The fixture tools of the conformance suite, served by our task layer.

The suite wants tools with fixed names and behaviours. Only the source of the tasks is different
from the product's: asyncio tasks in memory here, runs in the store there.

``python tests/conformance/fixture_server.py PORT``
"""

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import MISSING_REQUIRED_CLIENT_CAPABILITY
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from subagents.api.mcp.mcp_calls import Context
from subagents.api.mcp.task_extension import Task, TaskStatus, serve_tasks
from subagents.errors import NotFound

TTL_MS = 300_000
POLL_MS = 200
NAME_KEY = "user_name"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, is_error=is_error)


@dataclass
class Job:
    """One task: what runs, what it asks, and how it ended."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created_at_ms: int = field(default_factory=now_ms)
    updated_at_ms: int = field(default_factory=now_ms)
    work: "asyncio.Task[types.CallToolResult] | None" = None
    asked: dict[str, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict)

    def ask(self, question: str) -> "asyncio.Future[dict[str, Any]]":
        answer = asyncio.get_running_loop().create_future()
        self.asked[f"{question}-{uuid.uuid4().hex[:8]}"] = answer
        return answer

    def open_questions(self) -> dict[str, dict[str, Any]]:
        return {key: elicitation(key) for key, answer in self.asked.items() if not answer.done()}


def elicitation(message: str, field_name: str = "confirm") -> dict[str, Any]:
    kind = "boolean" if field_name == "confirm" else "string"
    schema = {"type": "object", "properties": {field_name: {"type": kind}}}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


Work = Callable[[Job, Mapping[str, Any]], Awaitable[types.CallToolResult]]


async def slow_compute(_job: Job, arguments: Mapping[str, Any]) -> types.CallToolResult:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(float(arguments.get("seconds", 0))):
            await asyncio.Event().wait()
    return text_result(f"computed {arguments.get('label', '')}")


async def failing_job(_job: Job, _arguments: Mapping[str, Any]) -> types.CallToolResult:
    return text_result("it failed", is_error=True)


async def protocol_error_job(_job: Job, _arguments: Mapping[str, Any]) -> types.CallToolResult:
    raise MCPError(code=types.INTERNAL_ERROR, message="the job broke the protocol")


async def confirm_delete(job: Job, arguments: Mapping[str, Any]) -> types.CallToolResult:
    answer = await job.ask("delete")
    return text_result(f"{arguments.get('filename')}: {answer.get('action')}")


async def multi_input(job: Job, _arguments: Mapping[str, Any]) -> types.CallToolResult:
    first, second = await asyncio.gather(job.ask("first"), job.ask("second"))
    return text_result(f"{first.get('action')} {second.get('action')}")


async def greet_later(_job: Job, arguments: Mapping[str, Any]) -> types.CallToolResult:
    return text_result(f"Hello, {arguments[NAME_KEY]}!")


WORKS: Mapping[str, Work] = {
    "slow_compute": slow_compute,
    "failing_job": failing_job,
    "protocol_error_job": protocol_error_job,
    "confirm_delete": confirm_delete,
    "multi_input": multi_input,
    "test_tool_with_task": greet_later,
}
ONLY_AS_TASKS = frozenset(WORKS) - {"slow_compute"}
PROBES = ("test_missing_capability", "test_streaming_elicitation", "test_logging_tool")
"""What ``server-stateless`` calls to see what a server must not do."""
TOOLS = ("greet", *WORKS, *PROBES)


class FixtureTasks:
    """Tasks in memory."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def needs_task(self, tool: str) -> bool:
        return tool in ONLY_AS_TASKS

    async def begin(
        self, _ctx: Context, params: types.CallToolRequestParams
    ) -> Task | HandlerResult:
        work = WORKS.get(params.name)
        if work is None:
            return None
        arguments = dict(params.arguments or {})
        if params.name == "test_tool_with_task":
            name = _given_name(params)
            if name is None:
                return {
                    "resultType": "input_required",
                    "inputRequests": {NAME_KEY: elicitation("Who are you?", "name")},
                    "requestState": "asked",
                }
            arguments[NAME_KEY] = name
        job = Job()
        job.work = asyncio.create_task(_run(work, job, arguments))
        self._jobs[job.id] = job
        return _task(job)

    async def look(self, _ctx: Context, task_id: str) -> Task:
        return _task(self._job(task_id))

    async def update(self, _ctx: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        job = self._job(task_id)
        for key, response in responses.items():
            answer = job.asked.get(key)
            if answer is not None and not answer.done():
                answer.set_result(response)
                job.updated_at_ms = now_ms()

    async def cancel(self, _ctx: Context, task_id: str) -> None:
        job = self._job(task_id)
        if job.work is not None:
            job.work.cancel()

    def _job(self, task_id: str) -> Job:
        if task_id not in self._jobs:
            raise NotFound(f"no task {task_id}")
        return self._jobs[task_id]


async def _run(work: Work, job: Job, arguments: Mapping[str, Any]) -> types.CallToolResult:
    try:
        return await work(job, arguments)
    finally:
        job.updated_at_ms = now_ms()


def _given_name(params: types.CallToolRequestParams) -> str | None:
    found = (params.input_responses or {}).get(NAME_KEY)
    content = getattr(found, "content", None)
    return str(content["name"]) if isinstance(content, dict) and "name" in content else None


def _task(job: Job) -> Task:
    status, result, error = TaskStatus.WORKING, None, None
    if job.work is not None and job.work.done():
        if job.work.cancelled():
            status = TaskStatus.CANCELLED
        elif isinstance(failure := job.work.exception(), MCPError):
            status, error = TaskStatus.FAILED, failure.error
        else:
            status, result = TaskStatus.COMPLETED, job.work.result()
    elif job.open_questions():
        status = TaskStatus.INPUT_REQUIRED
    return Task(
        id=job.id,
        status=status,
        created_at_ms=job.created_at_ms,
        updated_at_ms=job.updated_at_ms,
        ttl_ms=TTL_MS,
        poll_ms=POLL_MS,
        result=result,
        error=error,
        input_requests=job.open_questions(),
    )


async def list_tools(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
    )


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    if params.name == "test_missing_capability":
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool samples",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    if params.name == "test_streaming_elicitation":
        await ctx.session.report_progress(1, message="asking")
        return text_result("nobody was asked")
    if params.name == "test_logging_tool":
        return text_result("nothing was logged")
    if params.name == "greet":
        return text_result(f"Hello, {arguments.get('name', 'you')}!")
    if params.name == "slow_compute":
        return await slow_compute(Job(), arguments)
    raise MCPError(code=types.INVALID_PARAMS, message=f"unknown tool {params.name}")


def create_app(port: int) -> Starlette:
    """The fixture server as an ASGI application, for ``127.0.0.1:PORT``."""
    server: Server[Any] = Server(
        "fixture", version="1", on_list_tools=list_tools, on_call_tool=call_tool
    )
    serve_tasks(server, FixtureTasks())
    names = [f"127.0.0.1:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    manager = StreamableHTTPSessionManager(server, stateless=True, security_settings=security)

    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await manager.handle_request(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route("/mcp", Endpoint())], lifespan=lifespan)


if __name__ == "__main__":
    chosen = int(sys.argv[1])
    uvicorn.run(create_app(chosen), host="127.0.0.1", port=chosen, log_level="warning")
