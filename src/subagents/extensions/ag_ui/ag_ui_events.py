"""What happens in a run, in the events of the AG-UI protocol (https://docs.ag-ui.com).

Ids are made of the run's and the line's number, so that whoever comes again can tell what it has
seen.
"""

from collections.abc import Iterator
from typing import Final

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder

from subagents.api.wire.log_answers import LogLine
from subagents.domain.run.outcome import Outcome, Status
from subagents.domain.run.run import Request, Run
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.digest import tool_line

QUESTION: Final = "subagents.question"
LINE: Final = "subagents.line"
_GOOD: Final = frozenset({Status.OK, Status.PARTIAL})


def encoded(event: BaseEvent) -> bytes:
    return EventEncoder().encode(event).encode()


def started(run: Run) -> RunStartedEvent:
    return RunStartedEvent(
        timestamp=run.times.created_at_ms,
        thread_id=run.requester,
        run_id=run.id,
        parent_run_id=run.lineage.requester_run,
    )


def of_line(run: Run, line: LogLine) -> Iterator[BaseEvent]:
    """One line of its transcript: a message, a thought, a tool's call, or a custom event."""
    name, at_ms = f"{run.id}:{line.seq}", line.ts
    match line.type:
        case LineType.TEXT:
            yield TextMessageStartEvent(timestamp=at_ms, message_id=name, role="assistant")
            yield TextMessageContentEvent(message_id=name, delta=line.text or " ")
            yield TextMessageEndEvent(message_id=name)
        case LineType.THINKING:
            yield ReasoningMessageStartEvent(timestamp=at_ms, message_id=name, role="reasoning")
            yield ReasoningMessageContentEvent(message_id=name, delta=line.text or " ")
            yield ReasoningMessageEndEvent(message_id=name)
        case LineType.TOOL:
            found = tool_line(line.text)
            tool = "tool" if found is None else found.name
            yield ToolCallStartEvent(timestamp=at_ms, tool_call_id=name, tool_call_name=tool)
            if found is not None and found.asked:
                yield ToolCallArgsEvent(tool_call_id=name, delta=found.asked)
            yield ToolCallEndEvent(tool_call_id=name)
            yield ToolCallResultEvent(message_id=name, tool_call_id=name, content=line.text)
        case _:
            value = {"type": line.type, "text": line.text, "attempt": line.attempt}
            yield CustomEvent(timestamp=at_ms, name=LINE, value=value)


def asked(request: Request) -> CustomEvent:
    """A worker's question: it goes on waiting, so the run is not over for it."""
    value = {
        "requestId": request.id,
        "question": request.question,
        "context": request.context,
        "options": list(request.options),
    }
    return CustomEvent(timestamp=request.asked_at_ms, name=QUESTION, value=value)


def ended(run: Run, outcome: Outcome, result: str | None) -> BaseEvent:
    """The end of a run: finished, cancelled, or an error with its reason."""
    if outcome.status in _GOOD or outcome.status is Status.CANCELLED:
        is_cancelled = outcome.status is Status.CANCELLED
        return RunFinishedEvent(
            timestamp=run.ended_at_ms,
            thread_id=run.requester,
            run_id=run.id,
            result=result,
            outcome=(
                RunFinishedCancelledOutcome() if is_cancelled else RunFinishedSuccessOutcome()
            ),
        )
    code = str(outcome.status if outcome.reason is None else outcome.reason)
    return RunErrorEvent(
        timestamp=run.ended_at_ms, message=outcome.error or str(outcome.status), code=code
    )
