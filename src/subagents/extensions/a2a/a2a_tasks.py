"""A run as an A2A task: the task's id is the run's, and its state is read from the run.

See docs/decisions/0048 and https://a2a-protocol.org/latest/specification/.
"""

from typing import Final

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToJson

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Request, Run
from subagents.errors import UsageError
from subagents.text import one_line

CONTEXT_TAG: Final = "a2a-context:"
"""What precedes a context's id among the run's tags."""
RESULT: Final = "result"
_STATES: Final = {
    Status.OK: TaskState.TASK_STATE_COMPLETED,
    Status.PARTIAL: TaskState.TASK_STATE_COMPLETED,
    Status.CANCELLED: TaskState.TASK_STATE_CANCELED,
}
_EARLY: Final = frozenset({Phase.WAITING, Phase.QUEUED})


def state_of(run: Run) -> TaskState:
    """What a client is told of the run now."""
    if run.outcome is not None and run.is_settled:
        return _STATES.get(run.outcome.status, TaskState.TASK_STATE_FAILED)
    if run.pending_requests:
        return TaskState.TASK_STATE_INPUT_REQUIRED
    if run.phase in _EARLY:
        return TaskState.TASK_STATE_SUBMITTED
    return TaskState.TASK_STATE_WORKING


def task_of(run: Run, result: str | None, *, history: int | None = None) -> Task:
    """The task as it stands.

    Args:
        run: It is this one.
        result: Becomes its one artifact.
        history: How many of its newest messages; None = all.
    """
    task = Task(id=run.id, context_id=context_of(run), status=status_of(run))
    messages = history_of(run)
    task.history.extend(messages if history is None else messages[len(messages) - history :])
    if result:
        task.artifacts.append(_artifact(result))
    task.metadata.update(_metadata(run))
    return task


def status_update(run: Run) -> TaskStatusUpdateEvent:
    event = TaskStatusUpdateEvent(task_id=run.id, context_id=context_of(run), status=status_of(run))
    event.metadata.update(_metadata(run))
    return event


def artifact_update(run: Run, result: str) -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id=run.id, context_id=context_of(run), artifact=_artifact(result), last_chunk=True
    )


def status_of(run: Run) -> TaskStatus:
    """State, time, and what there is to say: a question, how far it is, or why it failed.

    Of a task that has ended it stays the same, whatever its run still does (say, hand over).
    """
    status = TaskStatus(state=state_of(run))
    status.timestamp.FromMilliseconds(run.news_at_ms)
    text = _words(run)
    if text:
        seq = run.seq if run.conclusion is None else run.conclusion.seq
        status.message.CopyFrom(
            Message(
                message_id=f"{run.id}:{seq}",
                task_id=run.id,
                context_id=context_of(run),
                role=Role.ROLE_AGENT,
                parts=[Part(text=text)],
            )
        )
    return status


def pushed(run: Run) -> tuple[str, bytes]:
    """The state's name, which tells two states of a task apart, and the notification of it."""
    status = status_of(run)
    # A second question is news, further words about the work are not.
    asked = question_of(run)
    name = TaskState.Name(status.state) if asked is None else asked.id
    return name, MessageToJson(StreamResponse(status_update=status_update(run))).encode()


def history_of(run: Run) -> list[Message]:
    """What the client asked for, then each question and its answer, the oldest first."""
    said = [(Role.ROLE_USER, f"{run.id}:task", run.spec.task)]
    for asked in run.questions.requests:
        said.append((Role.ROLE_AGENT, asked.id, asked.question))
        if asked.answer is not None:
            words = asked.answer.text or asked.answer.decision.value
            said.append((Role.ROLE_USER, f"{asked.id}:answer", words))
    return [
        Message(
            message_id=name,
            task_id=run.id,
            context_id=context_of(run),
            role=role,
            parts=[Part(text=text)],
        )
        for role, name, text in said
    ]


def context_of(run: Run) -> str:
    """The conversation that the client named; the run's own id where it named none."""
    for tag in run.spec.tags:
        if tag.startswith(CONTEXT_TAG):
            return tag.removeprefix(CONTEXT_TAG)
    return run.id


def text_of(message: Message) -> str:
    """The text and data of a message's parts.

    Raises:
        UsageError: It has a file or a NUL, or says nothing.
    """
    found = []
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text":
                found.append(part.text)
            case "data":
                found.append(MessageToJson(part.data))
            case kind:
                raise UsageError(
                    f"a part of kind {kind} is not taken: the worker gets text and data",
                    hint="say in the text where the file is",
                    details={"field": "message.parts"},
                )
    text = "\n\n".join(found)
    if not text.strip() or "\0" in text:
        why = "has a NUL byte" if text.strip() else "says nothing"
        raise UsageError(f"the message {why}", details={"field": "message.parts"})
    return text


def question_of(run: Run) -> Request | None:
    """The question that the next message answers: the oldest that is open."""
    return run.pending_requests[0] if run.pending_requests else None


def _words(run: Run) -> str:
    if run.outcome is not None and run.is_settled:
        if run.outcome.status is Status.OK:
            return ""
        reason = "" if run.outcome.reason is None else f" ({run.outcome.reason})"
        error = "" if run.outcome.error is None else f": {run.outcome.error}"
        return f"{run.outcome.status}{reason}{error}"
    asked = question_of(run)
    if asked is not None:
        parts = [asked.question]
        if asked.context:
            parts.append(asked.context)
        if asked.options:
            parts.append(f"Options: {', '.join(asked.options)}")
        return "\n\n".join(parts)
    if run.progress.latest is not None:
        return one_line(run.progress.latest.phase)
    return ""


def _artifact(result: str) -> Artifact:
    return Artifact(artifact_id=RESULT, name=RESULT, parts=[Part(text=result)])


def _metadata(run: Run) -> dict[str, dict[str, str]]:
    """What A2A has no field for, under our name."""
    found = {"agentId": run.resolved.agent_id, "label": run.resolved.label}
    if run.outcome is None:
        found["phase"] = run.phase.value
    else:
        found["status"] = run.outcome.status.value
        if run.outcome.reason is not None:
            found["reason"] = run.outcome.reason.value
    if run.verification.state is not None:
        found["verification"] = run.verification.state.value
    return {"subagents": found}
