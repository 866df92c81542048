"""What is written into the chat thread of a run, event by event; pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from subagents.domain.lifecycle.transitions import TRANSITIONS
from subagents.domain.run.events import (
    AttemptStarted,
    Event,
    ParentNotified,
    RequestAnswered,
    RequestAsked,
    SignalReceived,
    Spawned,
)
from subagents.domain.run.run import SETTLED, Request, Run
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.values import RequestId
from subagents.domain.text.announcement import ending
from subagents.ports import JournalEntry

BODY_CHARS_MAX: Final = 8_000
"""The longest text; a Matrix event holds 65,536 bytes, and JSON may take six for a character."""
TASK_CHARS_MAX: Final = 2_000
ENDS: Final = frozenset(
    kind
    for (before, kind), after in TRANSITIONS.items()
    if before not in SETTLED and SETTLED & after
)
"""Events with which an outcome can become known."""
POSTED: Final = ENDS | {Spawned, AttemptStarted, RequestAsked, RequestAnswered, ParentNotified}
FROM_CHAT: Final = "thread:"
"""How the key of a run begins that a message of the thread has started."""


class Post(NamedTuple):
    """One message in a thread."""

    text: str
    is_loud: bool = False
    """It wants to be seen: a question, or a result."""
    request: RequestId | None = None
    """The question that it is."""
    is_first: bool = False
    """It begins the thread."""
    is_last: bool = False
    """It tells the run's outcome, once, however many events it became known with."""


def posts(run: Run, entry: JournalEntry) -> Iterator[Post]:
    """What an event of a run adds to its thread; the run may be further than the event."""
    event = entry.event
    asked = [*asked_with(run, event)]
    match event:
        case Spawned():
            if run.session.continues is None:
                text = f"{run.resolved.label} ({run.resolved.agent_id}, {run.id})"
                yield Post(f"{text}\n\n{_cut(run.spec.task, TASK_CHARS_MAX)}", is_first=True)
            elif not (run.spec.idempotency_key or "").startswith(FROM_CHAT):
                yield Post(f"Said elsewhere: {_cut(run.spec.task, TASK_CHARS_MAX)}")
        case AttemptStarted(adopted=False, turn=1, attempt=number):
            again = f" (attempt {number})" if number > 1 else ""
            yield Post(f"Started{again}.")
        case ParentNotified(message=message) if not asked:
            yield Post(_cut(message))
        case RequestAnswered(answer=answer):
            yield Post(f"Answered ({answer.decision}): {_cut(answer.text or '-', TASK_CHARS_MAX)}")
        case _:
            pass
    yield from map(_question, asked)
    if type(event) in ENDS and run.ended_at_ms == entry.at_ms and run.outcome is not None:
        yield Post(_ended(run), is_loud=True, is_last=True)


def asked_with(run: Run, event: Event) -> Iterator[Request]:
    """The questions of a run that came with this event, whether they are answered by now or not."""
    for each in run.questions.requests:
        is_then = each.asked_at_ms == event.at_ms
        match event:
            case RequestAsked(request=asked) | Spawned(approval=asked) if asked is not None:
                is_it = each.id == asked.id
            case ParentNotified(message=message):
                is_it = is_then and each.priority is not None and each.question == message
            case SignalReceived(signal=PermissionAsked(call_id=call_id)):
                is_it = is_then and each.permits and each.call_id == call_id
            case _:  # of a gate, with whatever it had waited for
                is_it = is_then and each.by_spawn
        if is_it:
            yield each


def _question(request: Request) -> Post:
    options = [f"{number}. {each}" for number, each in enumerate(request.options, 1)]
    if request.by_spawn:
        how = "Reply yes or no."
    elif request.permits:
        how = "Reply with a number."
    elif options:
        how = "Reply with a number, or in your own words."
    else:
        how = "Reply in this thread."
    parts = [request.question, request.context or "", "\n".join(options)]
    text = "\n\n".join(part for part in parts if part)
    return Post(f"{_cut(text)}\n\n{how}", is_loud=True, request=request.id)


def _ended(run: Run) -> str:
    assert run.outcome is not None  # noqa: S101 - the caller looked
    said = run.result or (run.report.summary if run.report is not None else "")
    shown = _cut(said, BODY_CHARS_MAX)
    rest = f"\n\nThe whole: subagents result {run.id}" if shown != said else ""
    text = f"{run.resolved.label} {ending(run.outcome)}."
    return f"{text}\n\n{shown}{rest}".rstrip()


def _cut(text: str, chars_max: int = BODY_CHARS_MAX) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"
