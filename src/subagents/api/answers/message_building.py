"""Answers about messages, questions and progress, built from domain values."""

import shlex

from msgspec.structs import replace

from subagents.api.answers.explain import named
from subagents.api.wire import message_answers as wire
from subagents.api.wire.wire_struct import NamedRun, iso_or_none, made
from subagents.api.wire.words import AtDeadline
from subagents.domain.rules.admission import PROGRESS_LINES_MAX
from subagents.domain.run.run import Message, MessageKind, Progress, Request, Run
from subagents.domain.text import announcement
from subagents.engine.messages.mailbox import Need
from subagents.engine.messages.reports import ProgressAnswer
from subagents.engine.runs.queries import AttentionItem
from subagents.engine.runs.surroundings import Surroundings
from subagents.ports import InboxRow
from subagents.text import iso, one_line


def message(row: InboxRow, run: Run | None = None, *, awaited: bool = False) -> wire.Message:
    """A message and what became of it.

    Args:
        row: The message.
        run: The run it is about; None = it cannot be read any more.
        awaited: Whether it is about to be handed to a reader.
    """
    value: Message = row.message
    ended = run if value.kind is MessageKind.ANNOUNCEMENT else None
    outcome = None if ended is None else ended.outcome
    return made(
        wire.Message,
        value,
        number=row.number,
        sent_at=iso(value.created_at_ms),
        label=run.resolved.label if run is not None else "",
        status=outcome.status if outcome else None,
        headline=one_line(value.text) if run is None else announcement.headline(run, value),
        consumed_at=iso_or_none(row.consumed_at_ms),
        consumed_by=row.consumed_by,
        dismissed_at=None if ended is None else iso_or_none(ended.verification.dismissed_at_ms),
        awaited=awaited,
    )


def attention_item(value: AttentionItem) -> wire.AttentionItem:
    text = named(value.run, value.text)
    found = _item(value.run, value.request, value.kind, text, value.since_ms)
    return replace(found, message_id=value.message_id, commands=_commands(value))


def need(value: Need) -> wire.AttentionItem:
    """What an awaited run needs, as the answer of a wait has it."""
    asked, limited = value.request, value.run.retry.limited
    if asked is not None:
        kind = asked.priority or "question"
        return _item(value.run, asked, kind, asked.question, asked.asked_at_ms)
    text, since_ms = ("", None) if limited is None else (limited.text, limited.since_ms)
    return _item(value.run, None, "limit", text, since_ms)


def _item(
    run: Run, asked: Request | None, kind: str, text: str, since_ms: int | None
) -> wire.AttentionItem:
    return wire.AttentionItem(
        kind=kind,
        run_id=run.id,
        label=run.resolved.label,
        text=text,
        request_id=None if asked is None else asked.id,
        options=[] if asked is None else list(asked.options),
        since_at=iso_or_none(since_ms),
    )


def _commands(value: AttentionItem) -> list[str]:
    """Only such as work in the state that the run is in."""
    run_id = value.run.id
    why, again = f"subagents why {run_id}", f"subagents retry {run_id}"
    match value.kind:
        case _ if value.request is not None:
            return _answer_commands(value.request)
        case "undelivered":
            return [f"subagents result {run_id}", f"subagents inbox --redeliver {run_id}"]
        case "unread":
            return [f"subagents result {run_id}"]
        case "quarantined":
            return [why, "subagents doctor"]
        case "blocker" if not value.run.is_settled:
            return [f"subagents steer {run_id} TEXT", why]
        case "blocker" | "failed":
            return [
                why,
                *([again] if value.run.times.erased_at_ms is None else []),
                *([f"subagents inbox --dismiss {run_id}"] if value.is_escalation else []),
            ]
        case _:
            return [f"subagents log {run_id}", why]


def _answer_commands(asked: Request) -> list[str]:
    """How a person answers this question."""
    answer = f"subagents answer {asked.id}"
    if asked.by_spawn:
        return [f"{answer} --decision approve", f"{answer} --decision deny"]
    if asked.priority is not None:
        return [f"{answer} TEXT"]
    # Deny is offered besides the options: a shell that asked goes on with any answer in words.
    options = [shlex.quote(each) for each in asked.options] or ["TEXT"]
    return [*(f"{answer} {each}" for each in options), f"{answer} --decision deny"]


def request(
    run: Run,
    value: Request,
    around: Surroundings | None = None,
    *,
    status: str | None = None,
) -> wire.WorkerRequest:
    """A worker's question; ``status`` = what answering it came to, if that is not its own."""
    given = value.answer
    waiting, total = ((), 0) if around is None else around.waiting_for(run)
    return made(
        wire.WorkerRequest,
        value,
        request_id=value.id,
        run_id=run.id,
        label=run.resolved.label,
        evidence=None if around is None else _evidence(run, value, around),
        at_deadline=_at_deadline(value),
        waiting=[NamedRun(run_id=each.id, label=each.resolved.label) for each in waiting],
        waiting_total=total,
        status=status or request_status(value),
        answer=given.text if given else None,
        decision=given.decision if given else None,
        by=given.by if given else None,
        answered_at=iso(given.at_ms) if given else None,
    )


def _evidence(run: Run, value: Request, around: Surroundings) -> wire.FailedToolCall | None:
    """What it ran into; with options to choose from, they say what is to be decided."""
    is_open = value.answer is None and value.attempt == len(run.attempts)
    call = around.failed_call(run) if is_open and not value.options else None
    if call is None or call.at_ms > value.asked_at_ms:
        return None
    return made(wire.FailedToolCall, call, failed_at=iso(call.at_ms))


def _at_deadline(value: Request) -> AtDeadline | None:
    if value.deadline_ms is None:
        return None
    if value.by_spawn:
        return "deny"
    return "timeout" if value.default_answer is None else "default"


def request_status(value: Request) -> str:
    """``pending``, ``answered`` (also by the default), ``timeout`` or ``cancelled``."""
    if value.answer is None:
        return "pending"
    decision = str(value.answer.decision)
    return decision if decision in {"timeout", "cancelled"} else "answered"


def progress(value: Progress | None) -> wire.Progress | None:
    return None if value is None else made(wire.Progress, value)


def progress_update(value: Progress) -> wire.ProgressUpdate:
    """One update of the log; the run itself shows only the newest, and less of it."""
    # As the worker gave them: ``made`` would turn whole numbers into floats.
    return replace(made(wire.ProgressUpdate, value), metrics=value.metrics)


def progress_taken(run: Run, value: ProgressAnswer) -> wire.Taken:
    """What became of one update: ``stored``, ``rate_limited`` or ``latest_only``."""
    if value.retry_after_s is not None:
        return wire.Taken(
            run_id=run.id, status="rate_limited", retry_after_seconds=value.retry_after_s
        )
    if value.is_latest_only:
        note = f"the run has {PROGRESS_LINES_MAX} updates already; only the latest is shown"
        return wire.Taken(run_id=run.id, status="latest_only", note=note)
    return wire.Taken(run_id=run.id, status="stored")
