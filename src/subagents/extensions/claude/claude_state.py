"""What is known of a turn with Claude Code, and what is sent to it; pure."""

import uuid
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from subagents.domain.rules.evidence import added
from subagents.domain.run.signals import ResultSeen, UsageSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import OutputItem, ToolUse
from subagents.extensions.claude.claude_stream import Spending
from subagents.extensions.claude.claude_tasks import ClaudeTask
from subagents.extensions.conversation.dialect import Answers, InputLine, Opening, TurnStep
from subagents.runtimes.output.output_items import ALIVE, result_signal, system_item
from subagents.runtimes.output.terminal_text import plain

PROMPT: Final = "prompt"
"""Key of the first message."""
CALLS_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 80

OPEN: Final = frozenset({"queued", "started"})
REFUSED: Final = frozenset({"cancelled", "discarded", "refused"})

_NAMESPACE: Final = uuid.UUID("6d3a1a6e-98a4-5b0c-9c57-1d5e2f0f7f11")
"""The namespace of the ids of messages; any constant would do."""


class ClaudeCall(Value, frozen=True):
    """A tool call that has not ended."""

    use: ToolUse
    begun_ms: int | None = None
    is_own: bool = True
    task: dict[str, str] = {}
    """What a tool was given that changes the plan by one item."""


class ClaudeState(Value, frozen=True):
    """What the lines of the turn came to so far; kept in the attempt's checkpoint."""

    seed: str
    """Attempt and turn: ids of messages are made of it."""
    login_note: str = ""
    """See ``Opening``."""
    is_new: bool = True
    """The session begins with it: all that was used in the session is its own."""
    used: Usage | None = None
    """What the same attempt used before this turn; None = it is not known."""
    session_id: str | None = None
    model: str | None = None
    calls: dict[str, ClaudeCall] = {}
    tasks: tuple[ClaudeTask, ...] = ()
    """The worker's plan, as this process wrote it."""
    commands: dict[str, str] = {}
    """Id of a message → what became of it."""
    last_text: str = ""
    """The last text of the worker itself."""
    reason: str = ""
    """``error`` of the program's last own message."""
    is_working: bool = True
    has_result: bool = False
    is_idle: bool | None = None
    """The session's last state; None = this version does not report it."""
    is_awaiting: bool = False
    """Agents of its own work in the background, and it will continue with their results."""
    is_over: bool = False
    spending: Spending = Spending()
    results: Usage | None = None
    """What the results of this process come to, without what was before in the session."""
    resets_ms: int | None = None
    """When the provider's limit is over, in milliseconds since 1970."""
    unknown: tuple[str, ...] = ()
    asks: bool = False
    """What it asks permission for becomes a question."""
    permissions: Answers = {}


ClaudeStep: TypeAlias = TurnStep[ClaudeState]


def first_step(opening: Opening, *, asks: bool) -> ClaudeStep:
    """The turn before its first line, and the prompt."""
    state = ClaudeState(
        asks=asks,
        login_note=opening.login_note,
        seed=f"{opening.attempt_id}:{opening.turn}",
        is_new=opening.session_id is None,
        used=opening.used,
    )
    return TurnStep(state, input_lines=(user_message(state, opening.message, key=PROMPT),))


def session_uuid(opening: Opening) -> str:
    """The id of the attempt's own session; the program takes nothing but a UUID."""
    try:
        return str(uuid.UUID(opening.session_uuid))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, f"{opening.attempt_id} {opening.session_uuid}"))


def message_id(state: ClaudeState, key: str) -> str:
    """The id of the message that is sent under ``key``."""
    return str(uuid.uuid5(_NAMESPACE, f"{state.seed}:{key}"))


def user_message(state: ClaudeState, text: str, *, key: str) -> InputLine:
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


def accepted(state: ClaudeState, key: str) -> bool | None:
    """Whether the program accepted a message: as soon as it stands in its queue.

    Not only once the model was shown it: a tool may run for an hour before. One that came when
    the turn was over counts only when it was answered, for the program is about to be ended.
    """
    fate = state.commands.get(message_id(state, key))
    if fate is None or (state.is_over and fate in OPEN):
        return None
    return fate not in REFUSED


def usage_signal(state: ClaudeState, usage: Usage) -> UsageSeen:
    """``usage`` of this process, with what the attempt used before."""
    return UsageSeen(key="", usage=added(state.used, usage) or usage)


# -- what a reader gets ---------------------------------------------------------------------------


def result_of(
    state: ClaudeState,
    *,
    error: str | None,
    is_limit: bool = False,
    retry_after_ms: int | None = None,
) -> ResultSeen:
    """The turn's result: what the worker itself wrote last."""
    return result_signal(
        plain(state.last_text), error=error, is_limit=is_limit, retry_after_ms=retry_after_ms
    )


def note(state: ClaudeState, text: str) -> ClaudeStep:
    """A line of the program's own."""
    return TurnStep(state, output=(system_item(text),))


def unknown_event(state: ClaudeState, name: str) -> tuple[ClaudeState, OutputItem]:
    """Names an unknown kind of event once."""
    name = plain(name)[:NAME_CHARS_MAX]
    if name in state.unknown or len(state.unknown) >= CALLS_MAX:
        return state, ALIVE
    item = system_item(f"unknown event: {name}")
    return replace(state, unknown=(*state.unknown, name)), item


def as_json(form: Mapping[str, object]) -> bytes:
    """A line of the program's input."""
    return msgspec.json.encode(form)
