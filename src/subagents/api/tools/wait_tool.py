"""``sessions_wait``: hold the line until runs end, and hand each result over once.

One look at the engine lasts as long as the whole call, so that only what the answer carries is
offered; meanwhile the caller hears a sign of life. What is offered and then not answered (the call
was cancelled, the item did not fit) is given back at once.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import json
from msgspec.structs import replace

from subagents.api.answers import run_building
from subagents.api.calls.auth import note_refusal
from subagents.api.calls.call import find_run
from subagents.api.calls.refusals import is_refusal
from subagents.api.tools import tool_wording
from subagents.api.tools.repeatable import WAIT_S_MAX
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_arguments import WaitArguments, decoded
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of
from subagents.api.wire.run_answers import RunState, WaitError
from subagents.api.wire.wire_struct import Document, document_of
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, announcement_id
from subagents.engine.messages.mailbox import WaitResult
from subagents.errors import Elsewhere, SubagentsError
from subagents.text import one_line

TELL_S: Final = 20.0
"""The pause between two signs of life."""
NEEDS_MAX: Final = 10
"""Questions that one answer brings; the next call brings the others."""
PENDING_MAX: Final = 200
PENDING_BYTES_MAX: Final = 10_000
"""Of the pending runs that one answer lists; it says how many more there are."""
TOLD_MAX: Final = 5
"""Labels in one sign of life."""


async def wait(call: Call) -> Answer:
    """Wait until any or all of the runs ended; never an error on timeout."""
    asked = decoded(call, WaitArguments)
    until = one_of("until", asked.until, wire.UNTIL)
    run_ids, errors = await _named(call, asked.run_ids)
    # An empty list would mean all of the session's runs.
    if asked.run_ids and not run_ids:
        return _answer(call, WaitResult(), errors, waited_s=0)
    began_ms = call.services.now_ms()
    found = await _wait(call, run_ids, until, min(asked.timeout_seconds, WAIT_S_MAX))
    waited_s = max(round((call.services.now_ms() - began_ms) / 1000), 0)
    errors += [WaitError(run_id=each, error=f"run {each} does not exist") for each in found.missing]
    return _answer(call, found, errors, waited_s=waited_s)


async def _named(call: Call, selectors: Iterable[str]) -> tuple[list[RunId], list[WaitError]]:
    """The runs that are the caller's, and what is wrong with the others."""
    run_ids: dict[RunId, None] = {}
    errors: list[WaitError] = []
    for selector in dict.fromkeys(selectors):
        try:
            run_ids[(await find_run(call.services, selector, call.caller)).id] = None
        except Elsewhere:
            raise
        except SubagentsError as error:
            if is_refusal(error):
                note_refusal(call.services, call.caller, "sessions_wait", error.message)
            errors.append(WaitError(run_id=selector, error=error.message))
    return list(run_ids), errors


async def _wait(call: Call, run_ids: Sequence[RunId], until: str, timeout_s: float) -> WaitResult:
    caller, engine = call.caller, call.services.engine
    waiting = asyncio.ensure_future(
        engine.mailbox.wait(
            run_ids,
            session=caller.session,
            until=until,
            timeout_s=timeout_s,
            reader=caller.reader,
            returns_on_needs=True,
        )
    )
    waited_s = 0
    try:
        while not (await asyncio.wait((waiting,), timeout=TELL_S))[0]:
            waited_s += round(TELL_S)
            await call.tell(_sign_of_life(call, run_ids, waited_s))
        return waiting.result()
    except BaseException:
        # Not awaited: the caller may be cancelled again at the next await, and then what was
        # offered in the same moment would stay leased.
        waiting.add_done_callback(lambda done: _release(call, done))
        waiting.cancel()
        raise


def _release(call: Call, done: "asyncio.Task[WaitResult]") -> None:
    if not done.cancelled() and done.exception() is None:
        call.services.engine.mailbox.release(done.result().offered, reader=call.caller.reader)


def _sign_of_life(call: Call, run_ids: Sequence[RunId], waited_s: int) -> str:
    queries = call.services.engine.queries
    if run_ids:
        found = [run for each in run_ids if (run := queries.open_run(each)) is not None]
    else:
        found = queries.unsettled(queries.inbox_of(call.caller.session))
    active = [run for run in found if not run.is_settled]
    labels = [f"{one_line(each.resolved.label)} ({each.phase})" for each in active[:TOLD_MAX]]
    more = f" and {len(active) - TOLD_MAX} more" if len(active) > TOLD_MAX else ""
    return f"waiting for {', '.join(labels) or 'runs'}{more}, {waited_s} s so far"


def _answer(call: Call, found: WaitResult, errors: list[WaitError], *, waited_s: int) -> Answer:
    # Unread results come before those that are only repeated.
    unread_first = sorted(found.completed, key=lambda run: run.announcement_consumed_ms is not None)
    shown = tool_wording.items(unread_first)
    carried = frozenset(announcement_id(each.run.id) for each in shown)
    offered = tuple(each for each in found.offered if each in carried)
    # What this answer has no room for is given back, for the next call.
    rest = [each for each in found.offered if each not in offered]
    call.services.engine.mailbox.release(rest, reader=call.caller.reader)
    now_ms = call.services.now_ms()
    some = found.pending[:PENDING_MAX]
    states = (run_building.shown(RunState, run, now_ms, status=None) for run in some)
    pending = [replace(each, why=tool_wording.for_agents(each.why or "")) for each in states]
    sizes = (len(json.encode(each)) for each in pending)
    pending = pending[: tool_wording.room_for(sizes, PENDING_BYTES_MAX)]
    needs = found.needs[:NEEDS_MAX]
    call.services.engine.mailbox.note_told((each.id for each in needs), session=call.caller.session)
    structured: Document = {
        "completed": [each.document for each in shown],
        "pending": [document_of(each) for each in pending],
        "errors": [document_of(each) for each in errors],
    }
    if needs:
        structured["needs"] = [tool_wording.need_document(each) for each in needs]
    if len(pending) < len(found.pending):
        structured["morePending"] = len(found.pending) - len(pending)
    more = len(found.completed) - len(shown)
    if more:
        structured["moreCompleted"] = more
    lines = [each.text for each in shown]
    if more:
        lines.append(f"{more} more ended; call sessions_wait again to read them.")
    lines += [f"{each.run_id}: {each.error}" for each in errors]
    lines += [tool_wording.need_text(each) for each in needs]
    if pending:
        lines.append(_pending_text(found.pending, pending, waited_s))
    if not lines:
        lines.append("Nothing to wait for: no run is active and no result is unread.")
    return Answer(
        text=tool_wording.bounded("\n\n".join(lines)), structured=structured, offered=offered
    )


def _pending_text(runs: Sequence[Run], shown: Sequence[RunState], waited_s: int) -> str:
    lines = [f"Still pending after {waited_s} s: {len(runs)}"]
    lines += [f'{each.run_id} "{each.label}" {each.phase}: {each.why}' for each in shown]
    lines.append("Call sessions_wait again; it is safe to repeat.")
    return tool_wording.joined(lines)
