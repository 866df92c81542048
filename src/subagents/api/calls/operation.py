"""One call over HTTP: who answers it, and what the OpenAPI document says of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from subagents.api.wire.parameters import Parameter

JSON: Final = "application/json"


class Anything(msgspec.Struct, frozen=True):
    """A body whose shape something else describes: a tool's arguments."""


class Operation(NamedTuple):
    """What one method of a path does, takes and answers."""

    handler: Callable[[Request], Awaitable[Response]] | None = None
    """The function that answers; its docstring is the description. None = a ``Route`` names it."""
    query: Sequence[Parameter] = ()
    body: type[msgspec.Struct] | None = None
    status: int = 200
    headers: Sequence[str] = ()
    media: Sequence[str] = (JSON,)
    also: tuple[tuple[int, str], ...] = ()
    """Other statuses with the same content, and what they mean."""
    answers: tuple[type[msgspec.Struct], ...] = ()
    """The structs of its JSON, one of which it is; none = a document that describes itself."""


def routes(operations: Mapping[tuple[str, str], Operation]) -> tuple[Route, ...]:
    """The routes of a table by method and path, in its order: that is how they are tried."""
    return tuple(
        Route(path, each.handler, methods=[method])
        for (method, path), each in operations.items()
        if each.handler is not None
    )
