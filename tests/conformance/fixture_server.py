"""The fixture tools of the conformance suite, served by our protocol and task layers.

The suite wants tools with fixed names and behaviours. Only the source of the tasks is different
from the product's: asyncio tasks in memory here, runs in the store there.

``python tests/conformance/fixture_server.py PORT``
"""

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from subagents.errors import NotFound
from subagents.extensions.mcp import mcp_message
from subagents.extensions.mcp.mcp_calls import ToolParams
from subagents.extensions.mcp.mcp_endpoint import Reply, answer
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    MODERN,
    Document,
    Refused,
    RpcError,
)
from subagents.extensions.mcp.mcp_server import Era, McpRequest, McpServer, Method, error_message
from subagents.extensions.mcp_tasks.task_extension import EXTENSION, Task, TaskStatus, task_methods

TTL_MS = 300_000
POLL_MS = 200
NAME_KEY = "user_name"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def text_result(text: str, *, is_error: bool = False) -> Document:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


@dataclass
class Job:
    """One task: what runs, what it asks, and how it ended."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created_at_ms: int = field(default_factory=now_ms)
    updated_at_ms: int = field(default_factory=now_ms)
    work: "asyncio.Task[Document] | None" = None
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


Work = Callable[[Job, Mapping[str, Any]], Awaitable[Document]]


async def slow_compute(_job: Job, arguments: Mapping[str, Any]) -> Document:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(float(arguments.get("seconds", 0))):
            await asyncio.Event().wait()
    return text_result(f"computed {arguments.get('label', '')}")


async def failing_job(_job: Job, _arguments: Mapping[str, Any]) -> Document:
    return text_result("it failed", is_error=True)


async def protocol_error_job(_job: Job, _arguments: Mapping[str, Any]) -> Document:
    raise RpcError(INTERNAL_ERROR, "the job broke the protocol")


async def confirm_delete(job: Job, arguments: Mapping[str, Any]) -> Document:
    answer = await job.ask("delete")
    return text_result(f"{arguments.get('filename')}: {answer.get('action')}")


async def multi_input(job: Job, _arguments: Mapping[str, Any]) -> Document:
    first, second = await asyncio.gather(job.ask("first"), job.ask("second"))
    return text_result(f"{first.get('action')} {second.get('action')}")


async def greet_later(_job: Job, arguments: Mapping[str, Any]) -> Document:
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

    async def begin(self, request: McpRequest, asked: ToolParams) -> Task | Document | None:
        work = WORKS.get(asked.name)
        if work is None:
            return None
        arguments = dict(asked.arguments or {})
        if asked.name == "test_tool_with_task":
            name = _given_name(request)
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

    async def look(self, _request: McpRequest, task_id: str) -> Task:
        return _task(self._job(task_id))

    async def update(
        self, _request: McpRequest, task_id: str, responses: Mapping[str, Any]
    ) -> None:
        job = self._job(task_id)
        for key, response in responses.items():
            answer = job.asked.get(key)
            if answer is not None and not answer.done():
                answer.set_result(response)
                job.updated_at_ms = now_ms()

    async def cancel(self, _request: McpRequest, task_id: str) -> None:
        job = self._job(task_id)
        if job.work is not None:
            job.work.cancel()

    def _job(self, task_id: str) -> Job:
        if task_id not in self._jobs:
            raise NotFound(f"no task {task_id}")
        return self._jobs[task_id]


async def _run(work: Work, job: Job, arguments: Mapping[str, Any]) -> Document:
    try:
        return await work(job, arguments)
    finally:
        job.updated_at_ms = now_ms()


def _given_name(request: McpRequest) -> str | None:
    found = (request.message.params.get("inputResponses") or {}).get(NAME_KEY) or {}
    content = found.get("content")
    return str(content["name"]) if isinstance(content, dict) and "name" in content else None


def _task(job: Job) -> Task:
    status, result, error = TaskStatus.WORKING, None, None
    if job.work is not None and job.work.done():
        if job.work.cancelled():
            status = TaskStatus.CANCELLED
        elif isinstance(failure := job.work.exception(), RpcError):
            status, error = TaskStatus.FAILED, failure
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


NOT_KEPT = {"ttlMs": 0, "cacheScope": "private"}


async def discover(_request: McpRequest) -> Document:
    capabilities = {"tools": {"listChanged": False}, "extensions": {EXTENSION: {}}}
    return {**NOT_KEPT, "supportedVersions": MODERN, "capabilities": capabilities}


async def list_tools(_request: McpRequest) -> Document:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    return {**NOT_KEPT, "tools": tools}


async def call_tool(request: McpRequest) -> Document:
    asked = request.message.decoded(ToolParams)
    arguments = asked.arguments or {}
    if asked.name == "test_missing_capability":
        needed: Document = {"requiredCapabilities": {"sampling": {}}}
        raise RpcError(MISSING_CAPABILITY, "this tool samples", needed)
    if asked.name == "test_streaming_elicitation":
        await request.tell("asking")
        return text_result("nobody was asked")
    if asked.name == "test_logging_tool":
        return text_result("nothing was logged")
    if asked.name == "greet":
        return text_result(f"Hello, {arguments.get('name', 'you')}!")
    if asked.name == "slow_compute":
        return await slow_compute(Job(), arguments)
    raise RpcError(INVALID_PARAMS, f"unknown tool {asked.name}")


class Endpoint:
    """``/mcp`` as the product's, without callers and what they are handed."""

    def __init__(self) -> None:
        self._server = McpServer(
            {"name": "fixture", "version": "1"},
            {
                "server/discover": Method(handler=discover, eras=Era.MODERN),
                "tools/list": Method(handler=list_tools, eras=Era.MODERN),
                **task_methods(FixtureTasks(), call_tool),
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = Request(scope, receive)
        if posted.method != "POST":
            await answer(send, 405)
            return
        body = await posted.body()
        try:
            message = mcp_message.read(scope["headers"], body)
        except Refused as refused:
            await answer(send, refused.status, error_message(refused.id, refused.error))
            return
        if message is None:
            await answer(send, 202)
            return
        reply = Reply(message, send)
        nobody = cast("Exchange", None)
        request = McpRequest(message=message, exchange=nobody, tell=reply.tell)
        await reply.finish(*await self._server.answer(request))


def create_app() -> Starlette:
    """The fixture server as an ASGI application."""
    return Starlette(routes=[Route("/mcp", Endpoint())])


if __name__ == "__main__":
    chosen = int(sys.argv[1])
    uvicorn.run(create_app(), host="127.0.0.1", port=chosen, log_level="warning")
