"""Python functions as workers: ``@worker``, and what such a function is given.

What it reports goes to standard output as structured events; only a question and a notice, which
have to reach somebody at once, are calls to the daemon.
"""

import asyncio
import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from subagents.api.wire.message_answers import WorkerRequest
from subagents.api.wire.wire_struct import read
from subagents.client.client import DEFAULT_SESSION, Client
from subagents.client.worker_calls import WorkerCalls
from subagents.domain.run.run import Confidence, ReportedArtifact, ReportStatus
from subagents.errors import SubagentsError, UsageError
from subagents.runtimes.output.worker_events import (
    LINE_BYTES_MAX,
    Event,
    ProgressEvent,
    ReportEvent,
    UsageEvent,
)
from subagents.text import parse_duration

MARK: Final = "__subagents_worker__"

Function = TypeVar("Function", bound=Callable[..., object])


def worker(function: Function) -> Function:
    """Mark a function as one that ``subagents worker MODULE:FUNCTION`` may run.

    It may be ``async``. It takes the task: as it is in a parameter of type ``str``, else as JSON
    that is validated as the parameter's type; and, in a parameter of type
    ``WorkerContext``, what it knows of its run. What it returns is the result: a ``str`` as it is,
    anything else as JSON; None = what it printed. An exception fails the attempt.

    The function itself stays as it is and may be called as before.
    """
    setattr(function, MARK, True)
    return function


class Unanswered(SubagentsError):
    """Nobody answered a worker's question in time, or it was withdrawn because the run ends."""

    def __init__(self, question: str, request: WorkerRequest) -> None:
        said = "withdrawn" if request.status == "cancelled" else "not answered in time"
        super().__init__(f"{said}: {question}", details={"requestId": request.request_id})
        self.request = request


@dataclass(frozen=True)
class WorkerContext:
    """The run that a worker function works for, and what it may say to its requester.

    Every method may be called from any thread.
    """

    task: str
    """The task, word for word."""
    run_id: str | None = None
    """None = it is tried by hand."""
    attempt: int = 1
    """1 = the first try."""
    agent_id: str | None = None
    retry_reason: str | None = None
    """Why there was another attempt before this one; None in the first."""
    prompt: str = ""
    """The task with the results that it builds on and the reason of a retry, as a model reads it;
    empty when it is tried by hand."""
    _environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_run(cls, environ: Mapping[str, str] = os.environ) -> "WorkerContext":
        """The context of the run whose worker this process is.

        Raises:
            UsageError: It is no worker.
        """
        if "SUBAGENTS_TASK_FILE" not in environ:
            raise UsageError(
                "this is for workers: SUBAGENTS_TASK_FILE is not set",
                hint="give a task to try it by hand: subagents worker MODULE:FUNCTION TASK",
                details={"field": "SUBAGENTS_TASK_FILE"},
            )
        return cls(
            task=_text_of(environ["SUBAGENTS_TASK_FILE"]),
            run_id=environ.get("SUBAGENTS_RUN_ID"),
            attempt=int(environ.get("SUBAGENTS_ATTEMPT_NUMBER", "1")),
            agent_id=environ.get("SUBAGENTS_AGENT_ID"),
            retry_reason=environ.get("SUBAGENTS_RETRY_REASON"),
            prompt=_text_of(environ.get("SUBAGENTS_PROMPT_FILE", os.devnull)),
            _environ=environ,
        )

    def progress(self, phase: str, percent: float | None = None) -> None:
        """Show how far it is.

        Args:
            phase: What it does, in a few words.
            percent: 0 to 100.

        Raises:
            UsageError: ``percent`` is out of its bounds.
        """
        if percent is not None and not 0 <= percent <= 100:
            raise UsageError(
                f"percent must be 0 to 100, not {percent:g}", details={"field": "percent"}
            )
        emit(ProgressEvent(phase=phase, percent_complete=percent))

    def usage(
        self,
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cost_usd: float | None = None,
        tokens_cache_read: int | None = None,
        tokens_cache_write: int | None = None,
    ) -> None:
        """Say what the attempt has used so far, in total: budgets count it.

        What came from the provider's cache, and went into it, are parts of ``tokens_in``.
        """
        emit(UsageEvent(tokens_in, tokens_out, tokens_cache_read, tokens_cache_write, cost_usd))

    def report(
        self,
        summary: str,
        *,
        status: Literal["complete", "partial", "failed"] = "complete",
        confidence: Literal["high", "medium", "low"] | None = None,
        artifacts: Iterable[str] | Mapping[str, str] = (),
        blockers: Iterable[str] = (),
        warnings: Iterable[str] = (),
    ) -> None:
        """Report completion; the last report counts.

        Args:
            summary: What was done.
            status: ``partial`` and ``failed`` lower the outcome; nothing raises it.
            confidence: How certain the result is.
            artifacts: Paths of files it leaves behind, or paths with a description of each.
            blockers: What stood in the way.
            warnings: What the requester should look at.
        """
        described: Mapping[str, str | None] = (
            dict(artifacts) if isinstance(artifacts, Mapping) else dict.fromkeys(artifacts)
        )
        emit(
            ReportEvent(
                summary=summary,
                status=ReportStatus(status),
                confidence=None if confidence is None else Confidence(confidence),
                artifacts=tuple(ReportedArtifact(path, text) for path, text in described.items()),
                blockers=tuple(blockers),
                warnings=tuple(warnings),
            )
        )

    def notify(
        self, message: str, *, priority: Literal["info", "question", "blocker"] = "info"
    ) -> None:
        """Send the requester a message and wait for nothing.

        Raises:
            UsageError: It is tried by hand, without a run.
            SubagentsError: What the daemon refused, as the class it names.
        """
        with self._client() as client:
            WorkerCalls(client, self._run()).tell(
                "notify", {"message": message, "priority": priority}
            )

    def ask(
        self,
        question: str,
        *,
        options: Sequence[str] = (),
        context: str | None = None,
        default: str | None = None,
        timeout: float | str | None = None,
    ) -> WorkerRequest:
        """Ask the requester and wait for the answer.

        Args:
            question: What it needs to know.
            options: Possible answers.
            context: Background for the question.
            default: The answer when nobody answers in time.
            timeout: Seconds, or a text such as ``"5m"``. None = until somebody answers; where there
                is a default, ten minutes.

        Returns:
            The text in ``answer``; ``decision`` is ``answer``, ``approve``, ``deny`` or
            ``default``. An answer in words is an answer, also "no": where only a yes may count,
            compare ``decision`` with ``approve``.

        Raises:
            Unanswered: Nobody answered in time and there is no default, or the run is ending.
            UsageError: It is tried by hand, without a run; or ``timeout`` is no duration.
            SubagentsError: What the daemon refused, as the class it names.
        """
        with self._client() as client:
            found = WorkerCalls(client, self._run()).ask(
                question,
                options=options,
                context=context,
                default=default,
                timeout_s=(
                    None
                    if timeout is None
                    else parse_duration(str(timeout), field="timeout") / 1000
                ),
            )
        asked = read(found, WorkerRequest)
        if asked.decision not in {"answer", "approve", "deny", "default"}:
            raise Unanswered(question, asked)
        return asked

    async def ask_async(
        self,
        question: str,
        *,
        options: Sequence[str] = (),
        context: str | None = None,
        default: str | None = None,
        timeout: float | str | None = None,  # noqa: ASYNC109  the daemon's, not this call's
    ) -> WorkerRequest:
        """The same as ``ask`` without blocking the event loop."""
        return await asyncio.to_thread(
            self.ask, question, options=options, context=context, default=default, timeout=timeout
        )

    def _run(self) -> str:
        if self.run_id is None:
            raise UsageError(
                "nobody can be asked or told: this worker has no run",
                hint="spawn a run of its agent, or call the function with a context of your own",
            )
        return self.run_id

    def _client(self) -> Client:
        session = self._environ.get("SUBAGENTS_SESSION_KEY") or DEFAULT_SESSION
        self._run()  # without a run there may be no socket either, and this says what to do
        return Client(self._environ["SUBAGENTS_SOCKET"], session=session)


class LineOutput(io.TextIOWrapper):
    """Standard output that knows whether its last line is complete."""

    is_line_open = False

    def write(self, text: str, /) -> int:
        if text:
            self.is_line_open = not text.endswith("\n")
        return super().write(text)


def emit(event: Event) -> None:
    """Write one structured event to standard output.

    Raises:
        UsageError: It is longer than one may be.
    """
    line = msgspec.json.encode(event)
    if len(line) > LINE_BYTES_MAX:
        raise UsageError(
            f"{len(line):,} bytes are too long for a result or report (at most {LINE_BYTES_MAX:,})",
            hint="write it into a file and return the file's path",
        )
    out = sys.stdout
    # An event has a line to itself, also after a print without a line break.
    if getattr(out, "is_line_open", False):
        out.write("\n")
    out.flush()
    out.buffer.write(line + b"\n")  # UTF-8 in every locale
    out.buffer.flush()


def _text_of(path: str) -> str:
    return Path(path).read_text("utf-8", "replace")
