"""A tool's arguments: JSON values of a model, decoded once into the struct of that tool.

The struct's annotations are also what the model is shown (``tool_schemas``). Models fill in what
they leave open with null, so null is the same as absent.
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeVar, get_args

import msgspec
from msgspec import Meta

from subagents.api.tools.tool import Call
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import decode
from subagents.domain.agents.suggest import COST_TIERS
from subagents.domain.run.parameter import NAME_CHARS_MAX, words
from subagents.domain.run.spec import Mode
from subagents.engine.runs.sessions import MODES
from subagents.errors import UsageError

LIST_LIMIT_MAX: Final = 200
TREE_DEPTH_MAX: Final = 32
OFFSET_MAX: Final = 10**12
# The highest limit of any action, which is in bytes of a result; ``log`` checks its own.
LOG_LIMIT_MAX: Final = 60_000
TAIL_LINES_MAX: Final = 10_000
MINUTES_MAX: Final = 60 * 24 * 366
ATTEMPT_MAX: Final = 10_000
ACTIONS: Final[tuple[str, ...]] = get_args(wire.Action)

T = TypeVar("T", bound=msgspec.Struct)
Selector = Annotated[str, Meta(min_length=1, max_length=300)]
"""Names a run: its id, label, a unique prefix of the id, ``last``, or a session key."""


class WaitArguments(wire.Body, frozen=True):
    run_ids: Annotated[
        tuple[Selector, ...],
        Meta(max_length=wire.WAIT_RUNS_MAX, description="Ids or labels; empty = all yours"),
    ] = ()
    until: Annotated[str, words(wire.UNTIL)] = "any"
    timeout_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=wire.WAIT_SECONDS_MAX,
            description=f"0 to {wire.WAIT_SECONDS_MAX}; returns after 270 with what is pending",
        ),
    ] = 30


class ListArguments(wire.Body, frozen=True):
    kinds: Annotated[tuple[Annotated[str, words(Mode)], ...], Meta(max_length=10)] = ()
    active_minutes: Annotated[
        Annotated[float, Meta(gt=0, le=MINUTES_MAX)] | None,
        Meta(description="Active, or ended within so many minutes"),
    ] = None
    label: str | None = None
    agent_id: str | None = None
    phase: Annotated[str | None, Meta(description="One or several, with commas")] = None
    tag: str | None = None
    limit: Annotated[
        int, Meta(ge=1, le=LIST_LIMIT_MAX, description=f"At most {LIST_LIMIT_MAX}")
    ] = 20
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX)] = 0


class TreeArguments(wire.Body, frozen=True):
    root: Annotated[Selector | None, Meta(description="Run to begin at; default all yours")] = None
    depth: Annotated[int, Meta(ge=1, le=TREE_DEPTH_MAX, description="Levels")] = TREE_DEPTH_MAX


class SendArguments(wire.SteerBody, frozen=True):
    message: Annotated[str, Meta(min_length=1)]
    session_key: Annotated[Selector | None, Meta(description="Or a run id")] = None
    label: Annotated[Selector | None, Meta(description="Instead of sessionKey")] = None
    mode: Annotated[
        str,
        words(MODES, "steer: into the live turn; followup: the next, or a new run when it ended"),
    ] = "steer"


class ActionArguments(wire.Body, frozen=True):
    """What the tool ``subagents`` takes; each action reads its own part."""

    action: Annotated[str, words(ACTIONS)]
    target: Annotated[
        Selector | None,
        Meta(description="Run: id, label, unique prefix, last; answer: the request id"),
    ] = None
    message: Annotated[
        Annotated[str, Meta(max_length=wire.ANSWER_CHARS_MAX)] | None,
        Meta(description="For steer and answer; the reason of kill and interrupt"),
    ] = None
    grep: Annotated[str | None, Meta(description="log: regex")] = None
    since: Annotated[str | None, Meta(description="log: 5m, 2d, ISO time")] = None
    type: Annotated[
        str | None,
        Meta(description="log: text, thinking, tool, error, system, user; several with commas"),
    ] = None
    summary: Annotated[bool, Meta(description="log: a digest instead of lines")] = False
    attempt: Annotated[
        Annotated[int, Meta(ge=1, le=ATTEMPT_MAX)] | None, Meta(description="log")
    ] = None
    after_seq: Annotated[
        Annotated[int, Meta(ge=0, le=OFFSET_MAX)] | None,
        Meta(description="log: nextSeq of the page before"),
    ] = None
    tail: Annotated[
        Annotated[int, Meta(ge=0, le=TAIL_LINES_MAX)] | None, Meta(description="log: newest lines")
    ] = None
    offset: Annotated[
        Annotated[int, Meta(ge=0, le=OFFSET_MAX)] | None,
        Meta(description="log: line, default the newest; result: character"),
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=LOG_LIMIT_MAX)] | None,
        Meta(description="log: lines, default 50"),
    ] = None


class AgentsArguments(wire.Body, frozen=True):
    hint: Annotated[
        Annotated[str, Meta(max_length=wire.MESSAGE_CHARS_MAX)] | None,
        Meta(description="The work in words: ranks the agents"),
    ] = None
    tags: Annotated[
        tuple[Annotated[str, Meta(max_length=NAME_CHARS_MAX)], ...],
        Meta(max_length=100, description="Wanted"),
    ] = ()
    cost_tier: Annotated[str | None, words(COST_TIERS, "Preferred")] = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class RespondArguments(wire.Body, frozen=True):
    request_id: Selector
    response: Annotated[str, Meta(max_length=wire.ANSWER_CHARS_MAX)]
    decision: Annotated[str, words(("answer", "approve", "deny"))] = "answer"


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
