"""``subagents``: one tool for all that is needed now and then, by ``action``."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from subagents.api.answers import (
    causes,
    explain,
    log_pages,
    log_summary,
    message_building,
    run_building,
    status,
)
from subagents.api.calls.call import find_run
from subagents.api.tools import act_tools, list_tools, tool_wording
from subagents.api.tools.tool import Answer, Call, picked
from subagents.api.tools.tool_arguments import ACTIONS, LIST_LIMIT_MAX, ActionArguments, decoded
from subagents.api.wire.decoding import one_of
from subagents.api.wire.wire_struct import Document, document_of
from subagents.domain.run.run import Run
from subagents.domain.run.values import announcement_id
from subagents.domain.transcript.transcript_query import LOG_LINES_MAX
from subagents.engine.runs.control import Control
from subagents.errors import Conflict, UsageError
from subagents.ports import InboxRow, RunFilter
from subagents.text import fence, one_line, shortened

LIST_LIMIT: Final = 20
LOG_BYTES: Final = 24_000
"""The most that the lines of one answer have: a log is read in pages, not into a context."""
RESULT_BYTES: Final = 20_000
RESULT_BYTES_MAX: Final = 60_000
INBOX_LIMIT: Final = 20
INBOX_LIMIT_MAX: Final = 100
ATTENTION_MAX: Final = 50
STEPS_MAX: Final = 100
STATUS: Final = (
    *("agentId", "label", "runId", "sessionKey", "phase", "state", "runStatus", "why", "runtime"),
    *("took", "tookMs", "sessionId", "attempt", "costUsd", "tokensIn", "tokensOut", "usage"),
    *("granted", "toolsUsed", "lastActivity", "lastActivityAge", "lastActivityAgeMs"),
    *("contextPercent", "pendingRequests", "pendingRequestCount", "blockedReason"),
    *("latestProgress", "childrenActive", "deadline", "budget", "paused", "outcome", "startedAt"),
    "endedAt",
)
"""What a model is shown of a status: every field of a status, and what the list has."""
ATTENTION: Final = ("runId", "label", "kind", "text", "requestId", "options", "sinceAt")
"""What a model is shown of an item: not the commands, which are for people."""
MESSAGE: Final = ("id", "number", "sessionKey", "runId", "kind", "sentAt", "text")
CHANGED: Final = ("status", "runId", "label")
REASON_CHARS_MAX: Final = 4_000

Act: TypeAlias = Callable[[Call, ActionArguments], Awaitable[Answer]]


async def act(call: Call) -> Answer:
    """Do what ``action`` says."""
    asked = decoded(call, ActionArguments)
    one_of("action", asked.action, ACTIONS)
    return await _ACTS[asked.action](call, asked)


def _target(asked: ActionArguments) -> str:
    if asked.target is None:
        raise UsageError(
            f"target is required for action={asked.action}",
            hint="a run id, label, unique prefix, last, or session key",
            details={"field": "target"},
        )
    return asked.target


def _message(asked: ActionArguments) -> str:
    if asked.message is None:
        raise UsageError(
            f"message is required for action={asked.action}", details={"field": "message"}
        )
    return asked.message


async def _run(call: Call, asked: ActionArguments) -> Run:
    return await find_run(call.services, _target(asked), call.caller)


# -- look ---------------------------------------------------------------------------------------


async def _list(call: Call, asked: ActionArguments) -> Answer:
    where = RunFilter(
        requester=call.services.engine.queries.inbox_of(call.caller.session),
        limit=min(asked.limit or LIST_LIMIT, LIST_LIMIT_MAX),
        offset=asked.offset or 0,
    )
    return await list_tools.listed(call.services, where)


async def _status(call: Call, asked: ActionArguments) -> Answer:
    return await _state(call, await _run(call, asked))


async def _state(call: Call, run: Run) -> Answer:
    found = await status.status(call.services, run)
    found = replace(found, why=tool_wording.for_agents(found.why or ""))
    structured = list_tools.for_overview(picked(found, STATUS))
    return Answer(text=tool_wording.status_text(run, found), structured=structured)


async def _why(call: Call, asked: ActionArguments) -> Answer:
    run = await _run(call, asked)
    found = await causes.why(call.services, run, steps_max=STEPS_MAX)
    found = replace(found, why=tool_wording.for_agents(found.why or ""))
    lines = [each.text for each in found.steps]
    text = tool_wording.joined([f"{run.id} {run.phase}: {found.why}", *lines])
    return Answer(text=text, structured=document_of(found))


async def _log(call: Call, asked: ActionArguments) -> Answer:
    run = await _run(call, asked)
    wanted = msgspec.convert(asked, log_pages.Asked, from_attributes=True)
    if asked.limit is not None and asked.limit > LOG_LINES_MAX:
        raise UsageError(
            f"limit must be 1 to {LOG_LINES_MAX} for action=log", details={"field": "limit"}
        )
    if wanted.summary:
        brief = await log_summary.summary(call.services, call.caller, run, wanted)
        by = f"written by {brief.written_by}" if brief.written_by != log_summary.DIGEST else "facts"
        note = f"\n({brief.note})" if brief.note else ""
        text = f"{by}:\n{fence(brief.summary)}{note}"
        return Answer(text=tool_wording.bounded(text), structured=document_of(brief))
    found = await log_pages.log_page(call.services, run, wanted, bytes_max=LOG_BYTES)
    return Answer(
        text=tool_wording.bounded(tool_wording.log_text(found)), structured=document_of(found)
    )


async def _attention(call: Call, _asked: ActionArguments) -> Answer:
    inbox = call.services.engine.queries.inbox_of(call.caller.session)
    everything = await call.services.engine.queries.attention(inbox)
    found = everything[:ATTENTION_MAX]
    items = [
        {
            **picked(message_building.attention_item(each), ATTENTION),
            "text": shortened(tool_wording.for_agents(each.text), tool_wording.ENTRY_CHARS_MAX),
        }
        for each in found
    ]
    lines = [
        f"{each.kind} {each.request.id if each.request else each.run.id} "
        f'"{one_line(each.run.resolved.label)}": '
        f"{one_line(tool_wording.for_agents(each.text))}"
        for each in found
    ]
    structured: Document = {"items": items}
    if len(everything) > len(found):
        structured["hidden"] = len(everything) - len(found)
        lines.append(f"{len(everything) - len(found)} more, once these are settled")
    return Answer(text=tool_wording.joined(lines or ["Nothing."]), structured=structured)


# -- read and consume ---------------------------------------------------------------------------


async def _result(call: Call, asked: ActionArguments) -> Answer:
    run = await _run(call, asked)
    if run.outcome is None:
        why = tool_wording.for_agents(explain.why_now(run, call.services.now_ms()))
        raise Conflict(
            f"run {run.id} has no result yet: {why}",
            hint=f"sessions_wait runIds=[{run.id}]",
        )
    # In bytes: a long result is a file, in which characters cannot be counted.
    offset, limit = asked.offset or 0, min(asked.limit or RESULT_BYTES, RESULT_BYTES_MAX)
    size = call.services.engine.results.size(run)
    page = await call.services.engine.results.read(run, offset, limit)
    after = offset + len(page)
    if after < size:
        page = _whole_characters(page)
        after = offset + len(page)
    shown = page.decode("utf-8", "replace")
    structured: Document = {
        **tool_wording.item(run, 0),
        "result": None if run.result is None else shown,
        "offset": offset,
        "nextOffset": after if after < size else None,
    }
    lines = [f"{tool_wording.line(run)}", fence(shown) if shown else "(no output)"]
    if after < size:
        lines.append(f"{size - after} more bytes: offset={after}")
    if size < run_building.result_bytes(run):
        lines.append(f"Only the last {size} of {run_building.result_bytes(run)} bytes were kept.")
    # Whoever reads the result has read its announcement, when that is in its own inbox.
    found = await call.services.engine.mailbox.wait(
        [run.id], session=call.caller.session, timeout_s=0, reader=call.caller.reader
    )
    text = tool_wording.bounded("\n".join(lines))
    return Answer(text=text, structured=structured, offered=found.offered)


def _whole_characters(page: bytes) -> bytes:
    """Without the beginning of a character whose rest is on the next page."""
    for back in range(1, min(4, len(page)) + 1):
        lead = page[-back]
        # UTF-8: bytes that continue a character are 10xxxxxx, and its first says how many it has.
        if lead & 0xC0 != 0x80:
            needs = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return page if needs <= back else page[:-back] or page
    return page


async def _inbox(call: Call, asked: ActionArguments) -> Answer:
    caller, engine = call.caller, call.services.engine
    limit = min(asked.limit or INBOX_LIMIT, INBOX_LIMIT_MAX)
    rows = await engine.mailbox.offer_inbox(caller.session, reader=caller.reader, limit=limit)
    taken = [row.message.id for row in rows]
    try:
        runs = await engine.queries.these([row.message.run_id for row in rows])
    except BaseException:
        # No answer carries them: the next call may have them at once, not when the lease ends.
        engine.mailbox.release(taken, reader=caller.reader)
        raise
    shown = [_shown(row, runs.get(row.message.run_id)) for row in rows]
    kept = tool_wording.room_for(len(str(each["text"]).encode()) for each in shown)
    engine.mailbox.release(taken[kept:], reader=caller.reader)
    texts = [str(each["text"]) for each in shown[:kept]]
    return Answer(
        text=tool_wording.bounded("\n\n".join(texts) or "No new messages."),
        structured={"messages": shown[:kept]},
        offered=tuple(taken[:kept]),
    )


def _shown(row: InboxRow, run: Run | None) -> Document:
    """A message, cut for a context; an announcement is written again, so that its fences close."""
    document = picked(message_building.message(row), MESSAGE)
    if run is not None and run.outcome is not None and row.message.id == announcement_id(run.id):
        return {**document, "text": tool_wording.announced(run, tool_wording.RESULT_CHARS[0])}
    text = tool_wording.for_agents(row.message.text)
    return {**document, "text": tool_wording.cut_fenced(text, row.message.run_id)}


# -- change -------------------------------------------------------------------------------------


async def _steer(call: Call, asked: ActionArguments) -> Answer:
    return await act_tools.steer(call, _target(asked), _message(asked))


async def _interrupt(call: Call, asked: ActionArguments) -> Answer:
    """End the turn that is under way; what there is becomes a partial result."""
    run, reason = await _run(call, asked), _reason(asked)
    control = call.services.engine.control
    run = await control.interrupt(run.id, by=call.caller.session, reason=reason)
    structured = picked(run_building.changed(run, "interrupting"), CHANGED)
    text = f"interrupting: {run.id}. It ends partial; sessions_send mode=followup continues it."
    return Answer(text=text, structured=structured)


def _reason(asked: ActionArguments) -> str | None:
    reason = asked.message
    if reason is not None and not 1 <= len(reason) <= REASON_CHARS_MAX:
        raise UsageError(
            f"message must have 1 to {REASON_CHARS_MAX} characters for action={asked.action}",
            details={"field": "message"},
        )
    return reason


async def _kill(call: Call, asked: ActionArguments) -> Answer:
    run = await _run(call, asked)
    reason = _reason(asked)
    was_over = run.is_settled
    if not was_over:
        run = await call.services.engine.control.cancel(
            run.id, by=call.caller.session, reason=reason
        )
    status = "already ended" if was_over else "cancelling"
    structured = document_of(run_building.changed(run, status))
    return Answer(text=f"{status}: {tool_wording.line(run)}", structured=structured)


async def _changed(
    change: Callable[..., Awaitable[Run]], call: Call, asked: ActionArguments
) -> Answer:
    run, control = await _run(call, asked), call.services.engine.control
    return await _state(call, await change(control, run.id, by=call.caller.session))


async def _answer(call: Call, asked: ActionArguments) -> Answer:
    response = _message(asked)
    target = _target(asked)
    # The id of a question has a colon, and so has a session key, which is a run.
    if ":" not in target or target.startswith("agent:"):
        target = _only_question(await _run(call, asked))
    return await act_tools.answer_request(call, target, response, "answer")


def _only_question(run: Run) -> str:
    """The one open question of a run.

    Raises:
        Conflict: It has none.
        UsageError: It has several; the message names them.
    """
    pending = [request.id for request in run.pending_requests]
    if not pending:
        raise Conflict(f"run {run.id} has no open question")
    if len(pending) > 1:
        raise UsageError(
            f"run {run.id} has {len(pending)} open questions: {', '.join(pending)}",
            hint="give one of these ids as target",
        )
    return pending[0]


_ACTS: Final[Mapping[str, Act]] = {
    "list": _list,
    "status": _status,
    "log": _log,
    "steer": _steer,
    "interrupt": _interrupt,
    "kill": _kill,
    "pause": partial(_changed, Control.pause),
    "resume": partial(_changed, Control.resume),
    "why": _why,
    "inbox": _inbox,
    "answer": _answer,
    "result": _result,
    "redeliver": partial(_changed, Control.redeliver),
    "attention": _attention,
}
