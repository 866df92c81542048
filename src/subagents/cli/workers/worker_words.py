"""What a worker says while it works: ``report progress notify ask``.

They speak for the run in ``SUBAGENTS_RUN_ID`` and never start a daemon: the one that started the
worker comes back by itself, and they wait for it.
"""

import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.ending import settled
from subagents.cli.reading import read
from subagents.cli.runs.selectors import path_of
from subagents.client.client import Document
from subagents.client.worker_calls import WorkerCalls
from subagents.errors import (
    EXIT_ANSWER_IS_NO,
    EXIT_OK,
    EXIT_PENDING,
    EXIT_RUN_UNSUCCESSFUL,
    UsageError,
)
from subagents.text import parse_duration

if TYPE_CHECKING:
    from subagents.api.wire.message_answers import WorkerRequest

WHOLE: Final = r"-?[0-9]{1,15}"


def report(
    summary: str,
    *,
    status: str,
    confidence: str | None,
    artifact: Sequence[str],
    blocker: Sequence[str],
    warning: Sequence[str],
    run: str | None,
    json: bool,
) -> int:
    """Report that the task is complete; an artifact is ``PATH`` or ``PATH=TEXT``."""
    artifacts = [
        dict(zip(("path", "description"), each.split("=", 1), strict=False)) for each in artifact
    ]
    body: Document = {
        "summary": summary,
        "status": status,
        "artifacts": artifacts,
        "blockers": list(blocker),
        "warnings": list(warning),
        **({} if confidence is None else {"confidence": confidence}),
    }
    return _tell(run, "report", body, json=json)


def progress(
    phase: str,
    percent: float | None,
    *,
    level: str | None,
    metric: Sequence[str],
    run: str | None,
    json: bool,
) -> int:
    """Report progress; a metric is ``NAME=VALUE``."""
    body: Document = {"phase": phase}
    if percent is not None:
        if not 0 <= percent <= 100:
            raise UsageError(
                f"percent must be 0 to 100, not {percent:g}", details={"field": "percentComplete"}
            )
        body["percentComplete"] = percent
    if level is not None:
        body["level"] = level
    if metric:
        body["metrics"] = dict(map(_metric, metric))
    return _tell(run, "progress", body, json=json)


def notify(message: str, *, priority: str, run: str | None, json: bool) -> int:
    """Send a message to the requester."""
    return _tell(run, "notify", {"message": message, "priority": priority}, json=json)


def ask(
    question: str,
    *,
    option: Sequence[str],
    context: str | None,
    timeout: str | None,
    default: str | None,
    decision: bool,
    run: str | None,
    json: bool,
) -> int:
    """Ask the requester, wait for the answer and print it; the exit code says how it went."""
    timeout_s = None if timeout is None else parse_duration(timeout, field="--timeout") / 1000
    if timeout_s is not None and timeout_s < 1:
        raise UsageError(
            f"--timeout must be at least 1s, not {timeout!r}",
            hint="leave it out to wait until somebody answers",
            details={"field": "--timeout"},
        )
    with connect() as client:
        found = WorkerCalls(client, _run_id(run)).ask(
            question, options=option, context=context, default=default, timeout_s=timeout_s
        )
    asked: WorkerRequest = read(client, found, "message_answers:WorkerRequest")
    code = _answer_code(asked)
    settled(code)
    if json:
        output.document(client.received)
    else:
        _print_answer(asked, decision_only=decision)
    return code


def _answer_code(asked: "WorkerRequest") -> int:
    if asked.status == "answered":
        # In a shell the exit code is the answer: no must not read as yes.
        return EXIT_ANSWER_IS_NO if asked.decision == "deny" else EXIT_OK
    return EXIT_RUN_UNSUCCESSFUL if asked.status == "cancelled" else EXIT_PENDING


def _print_answer(asked: "WorkerRequest", *, decision_only: bool) -> None:
    if decision_only:
        output.data(asked.decision or asked.status)
        if asked.answer:
            output.note(asked.answer)
    elif asked.status == "answered":
        output.data(asked.answer or asked.decision or "")
    else:
        output.note(f"{asked.request_id}: {asked.status}")


def _metric(text: str) -> tuple[str, str | float]:
    """``NAME=VALUE``; a value that reads as a number is one.

    Raises:
        UsageError: No name, or no value.
    """
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise UsageError(f'--metric must be NAME=VALUE, not "{text}"', details={"field": "metrics"})
    if re.fullmatch(WHOLE, value):
        return name, int(value)
    try:
        number = float(value)
    except ValueError:
        return name, value
    return name, number if math.isfinite(number) else value


def _tell(
    run: str | None,
    what: Literal["report", "progress", "notify"],
    body: Document,
    *,
    json: bool,
) -> int:
    with connect() as client:
        answer = WorkerCalls(client, _run_id(run)).tell(what, body)
    if json:
        output.document(client.received)
    elif answer.get("status") == "rate_limited":
        output.note(f"not stored: too soon; try again in {answer.get('retryAfterSeconds')} s")
    elif "note" in answer:
        output.note(str(answer["note"]))
    return EXIT_OK


def _run_id(given: str | None) -> str:
    if given:
        path_of(given)  # refuses what may name several
    run_id = given or os.environ.get("SUBAGENTS_RUN_ID")
    if not run_id:
        raise UsageError(
            "this is for workers: SUBAGENTS_RUN_ID is not set",
            hint="name the run with --run",
            details={"field": "SUBAGENTS_RUN_ID"},
        )
    return run_id
