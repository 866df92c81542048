"""A tool's arguments: JSON values of a model, decoded once into the struct of that tool.

Models fill in what they leave open with null, so null is the same as absent.
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

import msgspec

from subagents.api.tools.tool import Call
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import decode
from subagents.domain.run.parameter import NAME_CHARS_MAX
from subagents.errors import UsageError

WAIT_RUNS_MAX: Final = wire.WAIT_RUNS_MAX
LIST_LIMIT_MAX: Final = 200
TREE_DEPTH_MAX: Final = 32
OFFSET_MAX: Final = 10**12
LOG_LIMIT_MAX: Final = 60_000
TAIL_LINES_MAX: Final = 10_000
MINUTES_MAX: Final = 60 * 24 * 366
ATTEMPT_MAX: Final = 10_000

T = TypeVar("T", bound=msgspec.Struct)
Selector = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
"""Names a run: its id, label, a unique prefix of the id, ``last``, or a session key."""


class WaitArguments(wire.Body, frozen=True):
    run_ids: Annotated[tuple[Selector, ...], msgspec.Meta(max_length=WAIT_RUNS_MAX)] = ()
    until: str = "any"
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0, le=wire.WAIT_SECONDS_MAX)] = 30


class ListArguments(wire.Body, frozen=True):
    kinds: Annotated[tuple[str, ...], msgspec.Meta(max_length=10)] = ()
    active_minutes: Annotated[float, msgspec.Meta(gt=0, le=MINUTES_MAX)] | None = None
    label: str | None = None
    agent_id: str | None = None
    phase: str | None = None
    tag: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=LIST_LIMIT_MAX)] = 20
    offset: Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)] = 0


class TreeArguments(wire.Body, frozen=True):
    root: Selector | None = None
    depth: Annotated[int, msgspec.Meta(ge=1, le=TREE_DEPTH_MAX)] = TREE_DEPTH_MAX


class SendArguments(wire.Body, frozen=True):
    message: Annotated[str, msgspec.Meta(min_length=1)]
    session_key: Selector | None = None
    label: Selector | None = None
    mode: str = "steer"


class ActionArguments(wire.Body, frozen=True):
    action: str
    target: Selector | None = None
    message: Annotated[str, msgspec.Meta(max_length=wire.ANSWER_CHARS_MAX)] | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPT_MAX)] | None = None
    grep: str | None = None
    since: str | None = None
    type: str | None = None
    summary: bool = False
    after_seq: Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)] | None = None
    tail: Annotated[int, msgspec.Meta(ge=0, le=TAIL_LINES_MAX)] | None = None
    offset: Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=LOG_LIMIT_MAX)] | None = None


class AgentsArguments(wire.Body, frozen=True):
    hint: Annotated[str, msgspec.Meta(max_length=wire.MESSAGE_CHARS_MAX)] | None = None
    tags: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)], ...],
        msgspec.Meta(max_length=100),
    ] = ()
    cost_tier: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


class RespondArguments(wire.Body, frozen=True):
    request_id: Selector
    response: Annotated[str, msgspec.Meta(max_length=wire.ANSWER_CHARS_MAX)]
    decision: str = "answer"


def decoded(call: Call, kind: type[T]) -> T:
    """The call's arguments as ``kind``.

    Raises:
        UsageError: An unknown parameter, with the nearest known one; a wrong value by its name.
    """
    return decode(dict(call.arguments), kind)


def without_nulls(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments without those that are null, at any depth.

    What stands in a JSON Schema is the caller's own: null means something there.

    Raises:
        UsageError: They are nested too deeply.
    """
    try:
        return _without(arguments)
    except RecursionError as error:
        raise UsageError("the arguments are nested too deeply") from error


def _without(arguments: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _without_nulls(value) if name != "schema" else value
        for name, value in arguments.items()
        if value is not None
    }


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return _without(value)
    if isinstance(value, list | tuple):
        return [_without_nulls(each) for each in value]
    return value
