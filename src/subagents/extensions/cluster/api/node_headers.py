"""What one node tells another about a call that it forwards.

These headers mean something on the node door alone, whose clients are nodes: everywhere else they
are headers like any other, that nobody reads.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from starlette.types import Scope

FORWARDED: Final = b"x-subagents-forwarded"
"""The name of the node that the client called; the same as in its certificate."""
BEHALF: Final = b"x-subagents-behalf"
"""See ``Behalf``."""
PEER: Final = b"x-subagents-peer"
"""The other end of the client's connection, in words."""
CALL: Final = b"x-subagents-relayed-call"
"""The id by which that node knows the call."""
URL: Final = b"x-subagents-relay"
"""Where that node is asked about it."""
OF_CLUSTER: Final = frozenset({FORWARDED, BEHALF, PEER, CALL, URL})
LENGTH: Final = b"x-subagents-length"
"""The length of the answer's body in bytes. Between nodes each answer is chunked, so that its end
is seen when the owner completes it and not when the last byte came: until then the client is
watched."""
MISDIRECTED: Final = 421
NODE: Final = "node"
"""The name in a request's state of the name in the certificate of the node that calls."""
STATE: Final = "forwarded"
"""The name in a request's state of its ``ForwardedBy``."""


class Behalf(StrEnum):
    """For whom a node calls, as it has made out."""

    PERSON = "person"
    """Whoever has the rights of the node's own socket: the session in its header, as there."""
    VIEWER = "viewer"
    """A login that may only look."""
    WORKER = "worker"
    """Whoever the token in ``Authorization`` stands for, if it stands for anybody."""


@dataclass(frozen=True, slots=True)
class ForwardedBy:
    """How a call came to us from another node."""

    node: str
    behalf: Behalf


def is_forwarded(scope: Scope) -> bool:
    """Whether another node sent it, on behalf of a client of its own."""
    return isinstance(scope.get("state", {}).get(STATE), ForwardedBy)
