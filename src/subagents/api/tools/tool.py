"""What a tool is, one call of it, and its answer; nothing of the protocol that carries it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from subagents.api.answers.waking import Waker
from subagents.api.calls.auth import Caller
from subagents.api.calls.services import Services
from subagents.api.wire.wire_struct import Document, document_of
from subagents.domain.run.values import MessageId

Schema: TypeAlias = Mapping[str, object]
"""JSON Schema in its flat form: no ``anyOf``, ``oneOf``, ``allOf``, ``$ref`` or lists of types."""


class Audience(StrEnum):
    REQUESTER = "requester"
    """Whoever may spawn: top-level sessions, and workers whose depth allows it."""
    WORKER = "worker"


async def _silent(_text: str) -> None:
    """No client listens for progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool."""

    services: Services
    caller: Caller
    arguments: Mapping[str, object]
    """The arguments as they came; each tool decodes its own and refuses unknown ones."""
    call_id: str | None = None
    """Names the call when it is repeated: the same id never spawns twice."""
    waker: Waker | None = None
    """What the caller's client does to wake it."""
    tell: Callable[[str], Awaitable[None]] = _silent
    """Say how a long call is doing; protocols without progress say nothing."""
    hears_progress: bool = False
    """Whether the client listens to that, and so knows that a long call is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool says: short text for reading, the same as data."""

    text: str
    structured: Document
    is_error: bool = False
    offered: tuple[MessageId, ...] = ()
    """Messages leased to the caller's reader by this call; the endpoint acknowledges them once the
    answer has left it, and never before."""


Handler: TypeAlias = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: what it is called, what it takes, and who may see it."""

    name: str
    description: str
    schema: Schema
    handler: Handler
    audience: Audience = Audience.REQUESTER
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    @property
    def hints(self) -> dict[str, bool]:
        """The annotations of the protocol that say what a call can do."""
        return {
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent or self.read_only,
            "openWorldHint": False,
            "readOnlyHint": self.read_only,
        }


def picked(found: msgspec.Struct, names: Iterable[str]) -> Document:
    """These fields of an answer of the wire: what is worth a place in a context."""
    whole = document_of(found)
    return {name: whole[name] for name in names if name in whole}


ANSWER_CHARS_MAX: Final = 80_000
"""The longest text of an answer: what a context can bear."""
