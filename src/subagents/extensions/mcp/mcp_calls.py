"""One call of a tool on behalf of an MCP request, and its answer in the protocol's form."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from subagents.api.answers.waking import Waker
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_registry import call_tool
from subagents.errors import Elsewhere, NotFound, SubagentsError, Unavailable
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import INTERNAL_ERROR, INVALID_PARAMS, Document
from subagents.extensions.mcp.mcp_server import McpRequest, rpc_error

log = logging.getLogger(__name__)

OFFERED_META: Final = "subagents/offered"
"""The key in ``_meta`` for the messages that a client which acknowledges was handed."""


class ToolParams(msgspec.Struct):
    """Of ``tools/call``."""

    name: str
    arguments: dict[str, Any] | None = None


async def answer_of(
    request: McpRequest, name: str, arguments: Mapping[str, object], *, is_task: bool = False
) -> Answer:
    """Run a tool; whoever takes the answer hands over what it offers, or gives it back.

    ``is_task`` = the client keeps the call as a task and looks after it.

    Raises:
        RpcError: No tool of that name; the store cannot answer now, and the call can be repeated;
            or it failed, and our log says why.
        Elsewhere: The whole request is for another node.
    """
    exchange = request.exchange
    call = Call(
        services=exchange.services,
        caller=exchange.caller,
        arguments=arguments,
        call_id=exchange.call_id,
        waker=Waker.TASK if is_task else exchange.waker,
        tell=request.tell,
        hears_progress=request.message.progress_token is not None,
    )
    try:
        return await call_tool(name, call)
    except NotFound as error:
        raise rpc_error(INVALID_PARAMS, error) from error
    except Elsewhere:
        raise
    except Unavailable as error:
        raise rpc_error(INTERNAL_ERROR, error) from error
    except Exception as error:
        # A mistake of ours: its text is for our log, not for a model.
        log.exception("tool %s failed", name)
        hint = f"see {exchange.services.paths.log_file}"
        shown = SubagentsError(f"the daemon failed to answer {name}; its log says why", hint=hint)
        raise rpc_error(INTERNAL_ERROR, shown) from error


def handed_over(exchange: Exchange, answer: Answer) -> Document:
    """The result of a call, which hands over what the answer offers."""
    exchange.hand_over(answer.offered)
    found = tool_result(answer)
    if meta := offered_meta(exchange, answer):
        found["_meta"] = meta
    return found


def tool_result(answer: Answer) -> Document:
    """A tool's answer as the result of ``tools/call``."""
    return {
        "content": [{"text": answer.text, "type": "text"}],
        "isError": answer.is_error,
        "structuredContent": answer.structured,
    }


def offered_meta(exchange: Exchange, answer: Answer) -> Document | None:
    """The messages that the answer carries, for a client that acknowledges them; None = no need."""
    if not exchange.client_acknowledges or not answer.offered:
        return None
    return {OFFERED_META: answer.offered}
