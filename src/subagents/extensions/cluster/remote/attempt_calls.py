"""What an owner and a place say to each other about attempts: JSON, each answer one struct.

``POST /node/v1/attempts/<call>`` with an ``AttemptCall``; a watch is answered line by line.
"""

import errno
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from subagents.domain.run.signals import ResultSeen, Signal
from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import RuntimeUnavailable, SubagentsError, UsageError
from subagents.extensions.cluster.node_ports import LACK
from subagents.ports import AttemptRef, Launch, StartedInfo

PATH: Final = "/node/v1/attempts/"
WATCH: Final = "watch"

CallName = Literal[
    "start", "resume", "discard", "stop", "steer", "permit", "interrupt", "tidy", "forget",
    "freeze", "thaw",
]  # fmt: skip


class AttemptCall(Value, frozen=True, kw_only=True):
    """Arguments of a call; which of them it has, ``ports.Runtime`` says."""

    runtime: str
    """Its name, the same on both nodes."""
    launch: Launch | None = None
    ref: AttemptRef | None = None
    message: str = ""
    key: str = ""
    """The id of the message, or of the tool call that is permitted."""
    allow: bool = False
    lasting: bool = False
    env: dict[str, str] = {}
    grace_s: float = 0
    cursor: int = 0
    positions: dict[str, int] = {}
    ended: bool = False
    result_bytes_max: int = 0
    """How much of a long result is sent."""


class WatchLine(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a watch; one that says nothing says that the place is there."""

    cursor: int = 0
    signal: Signal | None = None
    batch: OutputBatch | None = None
    long: ResultSeen | None = None
    """A long result, whose text came in ``piece`` lines before."""
    piece: str | None = None
    error: str | None = None
    """Watching failed at the place; it can be watched again."""


class Refused(Value, frozen=True):
    """The error document of a call, as far as it is read."""

    code: str = ""
    message: str = ""
    retryable: bool = True
    details: dict[str, object] = {}
    hint: str | None = None


encode = msgspec.json.Encoder().encode
decode_call = msgspec.json.Decoder(AttemptCall).decode
decode_line = msgspec.json.Decoder(WatchLine).decode
decode_started = msgspec.json.Decoder(StartedInfo).decode


def refusal(body: bytes, *, status: int, node: str) -> SubagentsError:
    """What a place raised, as the owner raises it: for good, or for now."""
    try:
        found = msgspec.json.decode(body, type=Refused)
    except msgspec.DecodeError:
        found = Refused(message=f"it answered with status {status}")
    kind = RuntimeUnavailable if found.retryable else UsageError
    details: Mapping[str, object] = {**found.details, "node": node}
    error = kind(f"on node {node}: {found.message}", hint=found.hint, details=details)
    if LACK in details:
        error.__cause__ = OSError(getattr(errno, str(details[LACK]), 0), found.message)
    return error
