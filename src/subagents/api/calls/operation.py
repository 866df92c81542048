"""What the OpenAPI document says of a route besides its path and its handler's words."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from subagents.api.wire.parameters import Parameter

JSON: Final = "application/json"


class Operation(NamedTuple):
    """What one route takes besides its path."""

    query: Sequence[Parameter] = ()
    body: type[msgspec.Struct] | None = None
    is_body_optional: bool = False
    status: int = 200
    headers: Sequence[str] = ()
    media: Sequence[str] = (JSON,)
    also: tuple[tuple[int, str], ...] = ()
    """Other statuses with the same content, and what they mean."""
    answers: tuple[type[msgspec.Struct], ...] = ()
    """What it answers as JSON: one of these; none = a document that describes itself."""
