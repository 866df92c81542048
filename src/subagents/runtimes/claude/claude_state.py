"""What is known of a turn with Claude Code, and what is sent to it; pure."""

import uuid
from collections.abc import Mapping
from typing import Final

import msgspec

from subagents.domain.redaction.redact import ending
from subagents.domain.rules.evidence import added
from subagents.domain.run.run import Usage
from subagents.domain.run.signals import ResultSeen, UsageSeen
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputItem, ToolUse
from subagents.runtimes.claude import claude_stream as stream
from subagents.runtimes.conversation.dialect import InputLine, Opening, TurnStep
from subagents.runtimes.output.output_reader import RESULT_BYTES_MAX
from subagents.runtimes.output.terminal_text import plain, shortened

PROMPT: Final = "prompt"
"""Key of the first message."""
CALLS_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 80
ALIVE: Final = OutputItem(type=LineType.SYSTEM)
"""Nothing to read, but the worker lives."""

OPEN: Final = frozenset({"queued", "started"})
REFUSED: Final = frozenset({"cancelled", "discarded", "refused"})

_NAMESPACE: Final = uuid.UUID("6d3a1a6e-98a4-5b0c-9c57-1d5e2f0f7f11")
"""Of the ids of messages; any constant would do."""


class Call(Value, frozen=True):
    """A tool call that has not ended."""

    use: ToolUse
    begun_ms: int | None = None
    is_own: bool = True


class State(Value, frozen=True):
    """All that the turn's lines told."""

    seed: str
    """Attempt and turn: ids of messages are made of it."""
    is_new: bool = True
    """The session begins with it: all that was used in the session is its own."""
    used: Usage | None = None
    """Before it, by the same attempt."""
    session_id: str | None = None
    model: str | None = None
    calls: dict[str, Call] = {}
    commands: dict[str, str] = {}
    """Id of a message → what became of it."""
    last_text: str = ""
    """What the worker itself said last."""
    reason: str = ""
    """``error`` of the program's last own message."""
    is_working: bool = True
    has_result: bool = False
    is_idle: bool | None = None
    """What the session said last; None = this version says nothing."""
    is_awaiting: bool = False
    """Agents of its own work in the background, and it will go on with what they say."""
    is_over: bool = False
    spending: stream.Spending = stream.Spending()
    results: Usage | None = None
    """What the results of this process come to, without what was before in the session."""
    resets_ms: int | None = None
    """When the provider's limit is over, in milliseconds since 1970."""
    unknown: tuple[str, ...] = ()


def begun(opening: Opening) -> TurnStep[State]:
    """The turn before its first line, and the prompt."""
    state = State(
        seed=f"{opening.attempt_id}:{opening.turn}",
        is_new=opening.session_id is None,
        used=opening.used,
    )
    return TurnStep(state, input_lines=(input_line(state, opening.message, key=PROMPT),))


def session_uuid(opening: Opening) -> str:
    """The id of the attempt's own session; the program takes nothing but a UUID."""
    try:
        return str(uuid.UUID(opening.session_uuid))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, f"{opening.attempt_id} {opening.session_uuid}"))


def message_id(state: State, key: str) -> str:
    """The id of the message that is sent under ``key``."""
    return str(uuid.uuid5(_NAMESPACE, f"{state.seed}:{key}"))


def input_line(state: State, text: str, *, key: str) -> InputLine:
    """A user's message. ``client_composed``: taken word for word, so that ``@path`` pulls no file
    in, and ``/command`` runs none."""
    form = {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": message_id(state, key),
        "client_composed": True,
    }
    return InputLine(key, as_json(form))


def interruption(key: str) -> InputLine:
    """Ends the turn; what waits behind it is not begun."""
    request = {"subtype": "interrupt", "cancel_queued": True}
    form = {"type": "control_request", "request_id": f"interrupt-{key}", "request": request}
    return InputLine(key, as_json(form))


def taken(state: State, key: str) -> bool | None:
    """Whether the program took a message: as soon as it stands in its queue.

    Not only once the model was shown it: a tool may run for an hour before. One that came when
    the turn was over is taken only when it was answered, for the program is about to be ended.
    """
    fate = state.commands.get(message_id(state, key))
    if fate is None or (state.is_over and fate in OPEN):
        return None
    return fate not in REFUSED


def counted(state: State, usage: Usage) -> UsageSeen:
    """``usage`` of this process, with what the attempt used before."""
    return UsageSeen(key="", usage=added(state.used, usage) or usage)


# -- what is told of it ---------------------------------------------------------------------------


def result_of(
    state: State, *, error: str | None, is_limit: bool = False, retry_after_ms: int | None = None
) -> ResultSeen:
    data = plain(state.last_text).encode("utf-8", "replace")
    return ResultSeen(
        key="",
        text=ending(data, RESULT_BYTES_MAX),
        bytes_total=len(data) if len(data) > RESULT_BYTES_MAX else 0,
        is_error=error is not None,
        error=error,
        is_limit=is_limit,
        retry_after_ms=retry_after_ms,
    )


def note(state: State, text: str) -> TurnStep[State]:
    return TurnStep(state, output=(system_line(text),))


def system_line(text: str) -> OutputItem:
    return OutputItem(type=LineType.SYSTEM, text=shown(text))


def shown(text: str) -> str:
    return shortened(plain(text).strip("\n"))


def named(state: State, name: str) -> tuple[State, OutputItem]:
    """Tells of an unknown kind of event once."""
    name = plain(name)[:NAME_CHARS_MAX]
    if name in state.unknown or len(state.unknown) >= CALLS_MAX:
        return state, ALIVE
    told = system_line(f"unknown event: {name}")
    return replace(state, unknown=(*state.unknown, name)), told


def as_json(form: Mapping[str, object]) -> bytes:
    return msgspec.json.encode(form)
