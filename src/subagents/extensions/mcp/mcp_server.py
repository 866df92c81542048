"""An MCP server apart from its methods: which there are in which era, and the form of an answer."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Final, TypeAlias

import msgspec

from subagents.errors import Conflict, Elsewhere, Forbidden, SubagentsError, Unavailable, UsageError
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    SERVER_META,
    Document,
    Message,
    RpcError,
)

log = logging.getLogger(__name__)

JSON: Final = msgspec.json.Encoder()


class Era(Flag):
    """See ``mcp_message``."""

    LEGACY = auto()
    MODERN = auto()
    BOTH = LEGACY | MODERN


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """One request, and what is around it."""

    message: Message
    exchange: Exchange
    tell: Callable[[str], Awaitable[None]]
    """Report how it is doing, to a client that asked for it."""


Handler: TypeAlias = Callable[[McpRequest], Awaitable[Document]]
"""Gives the result; raises ``RpcError``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of the protocol."""

    handler: Handler
    eras: Era
    lasts: bool = False
    """It may take a while: its client is watched meanwhile, and it ends when that leaves."""


def declaring(method: Method, kind: str, name: str) -> Method:
    """``initialize`` or ``server/discover``, whose answer declares one more capability.

    ``kind`` is ``extensions`` or ``experimental``.
    """

    async def handler(request: McpRequest) -> Document:
        found = await method.handler(request)
        known = found["capabilities"]
        declared = {**known, kind: {**known.get(kind, {}), name: {}}}
        return {**found, "capabilities": declared}

    return replace(method, handler=handler)


class McpServer:
    """Answers requests; knows nothing of what carries them."""

    def __init__(self, identity: Mapping[str, str], methods: Mapping[str, Method]) -> None:
        # Encoded once: it stands in every answer of the current era.
        self._stamp = {SERVER_META: msgspec.Raw(JSON.encode(identity))}
        self._methods = methods

    def lasts(self, message: Message) -> bool:
        """Whether the answer may take a while."""
        method = self._methods.get(message.method)
        return method is not None and method.lasts

    async def answer(self, request: McpRequest) -> tuple[int, bytes]:
        """The HTTP status and the message that answers a request.

        Raises:
            Elsewhere: It is for another node; its listener forwards it.
        """
        message = request.message
        try:
            result = await self._result(request)
        except RpcError as error:
            return message.status_of(error), error_message(message.id, error)
        except Elsewhere:
            raise
        except (Conflict, Forbidden, Unavailable, UsageError) as error:
            return 200, error_message(message.id, rpc_error(INTERNAL_ERROR, error))
        except Exception:
            # A mistake of ours: its text is for our log, not for a model.
            log.exception("%s failed", message.method)
            broken = RpcError(INTERNAL_ERROR, "Internal server error")
            return 200, error_message(message.id, broken)
        if message.is_modern:
            meta = {**(result.get("_meta") or {}), **self._stamp}
            result = {"resultType": "complete", **result, "_meta": meta}
        return 200, JSON.encode({"jsonrpc": "2.0", "id": message.id, "result": result})

    async def _result(self, request: McpRequest) -> Document:
        message = request.message
        method = self._methods.get(message.method)
        era = Era.MODERN if message.is_modern else Era.LEGACY
        if method is None or era not in method.eras:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", message.method)
        return await method.handler(request)


def error_message(id_: str | int | None, error: RpcError) -> bytes:
    """An answer that says what went wrong."""
    return JSON.encode({"jsonrpc": "2.0", "id": id_, "error": error.to_wire()})


def rpc_error(code: int, error: SubagentsError) -> RpcError:
    """An error of ours as one of JSON-RPC, with our own document in ``data``."""
    return RpcError(code, error.message, error.to_wire())
