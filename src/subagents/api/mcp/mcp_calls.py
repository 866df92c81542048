"""One call of a tool on behalf of an MCP request, and its answer in the protocol's form."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from subagents.api.answers.waking import Waker
from subagents.api.mcp.codex_sandbox import ceiling_of
from subagents.api.mcp.mcp_exchange import Exchange
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_registry import call_tool
from subagents.errors import NotFound, SubagentsError, Unavailable

log = logging.getLogger(__name__)

OFFERED_META: Final = "subagents/offered"
"""In an answer's ``_meta``: the messages that a client which acknowledges by itself was handed."""

Context: TypeAlias = ServerRequestContext[Any, Any]


async def answer_of(
    ctx: Context,
    name: str,
    arguments: Mapping[str, object],
    *,
    is_task: bool = False,
    meta: Mapping[str, object] | None = None,
) -> Answer:
    """Run a tool; whoever takes the answer hands over what it offers, or gives it back.

    Args:
        ctx: The request.
        name: Of the tool.
        arguments: As they came.
        is_task: The client keeps the call as a task and looks after it.
        meta: ``_meta`` of the call, in which some clients say what they may do themselves.

    Raises:
        MCPError: No tool of that name; the daemon is stopping, and the call can be repeated; or it
            failed, and its log says why.
    """
    exchange = Exchange.of(ctx.request)
    caller = exchange.caller
    if caller.ceiling is None and not caller.is_worker:
        caller = replace(caller, ceiling=ceiling_of(meta, cwd=caller.cwd))
    call = Call(
        services=exchange.services,
        caller=caller,
        arguments=arguments,
        call_id=exchange.call_id,
        waker=Waker.TASK if is_task else exchange.waker,
        tell=_teller(ctx),
    )
    try:
        return await _unless_stopping(exchange, call_tool(name, call))
    except NotFound as error:
        raise protocol_error(types.INVALID_PARAMS, error) from error
    except Unavailable as error:
        raise protocol_error(types.INTERNAL_ERROR, error) from error
    except Exception as error:
        # A mistake of ours: its text is for our log, not for a model.
        log.exception("tool %s failed", name)
        hint = f"see {exchange.services.paths.log_file}"
        shown = SubagentsError(f"the daemon failed to answer {name}; its log says why", hint=hint)
        raise protocol_error(types.INTERNAL_ERROR, shown) from error


def meta_of(params: types.CallToolRequestParams) -> Mapping[str, object] | None:
    """What the client says beside a call, in ``_meta``."""
    return None if params.meta is None else cast("Mapping[str, object]", params.meta)


def tool_result(answer: Answer, *, meta: dict[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.is_error,
        _meta=meta,
    )


def offered_meta(exchange: Exchange, answer: Answer) -> dict[str, Any] | None:
    """What a client that acknowledges by itself has to know; the others need nothing."""
    if not exchange.client_acknowledges or not answer.offered:
        return None
    return {OFFERED_META: list(answer.offered)}


def protocol_error(code: int, error: SubagentsError) -> MCPError:
    """An error of ours as one of JSON-RPC, with our own document in ``data``."""
    return MCPError(code=code, message=error.message, data=error.to_wire())


def _teller(ctx: Context) -> Callable[[str], Coroutine[Any, Any, None]]:
    count = 0

    async def tell(text: str) -> None:
        # Does nothing for a client that gave no progress token. The numbers must only grow.
        nonlocal count
        count += 1
        await ctx.session.report_progress(count, message=text)

    return tell


async def _unless_stopping(exchange: Exchange, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do ``work`` unless the daemon stops first; then it is cancelled.

    Raises:
        Unavailable: The daemon is stopping.
    """
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(exchange.services.stopping.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await _end(working, stopping)
    except BaseException:
        # It may be answered in the same moment in which nobody wants it any more. The package
        # cancels again at every await, so what must happen then happens without one.
        working.add_done_callback(lambda done: _release(exchange, done))
        working.cancel()
        stopping.cancel()
        raise
    if working.cancelled():
        raise Unavailable("the daemon is stopping", hint="call again: the next one continues")
    return working.result()


def _release(exchange: Exchange, done: "asyncio.Task[Answer]") -> None:
    if not done.cancelled() and done.exception() is None:
        exchange.services.engine.release(done.result().offered, reader=exchange.caller.reader)


async def _end(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
