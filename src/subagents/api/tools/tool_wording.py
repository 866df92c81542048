"""Answers as a model reads them: short, bounded, and what workers said fenced as data.

A result is cut for the context, never in the store; the cut says where the rest is. What does
not fit into one answer is not offered by it either, so that the next call brings it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from subagents.api.answers import message_building, run_building
from subagents.api.tools.tool import ANSWER_CHARS_MAX, picked
from subagents.api.wire.log_answers import LogPage
from subagents.api.wire.run_answers import (
    Outcome,
    RunStatus,
    StoredResult,
    Verification,
    WorkerReport,
    Workspace,
)
from subagents.api.wire.wire_struct import Document, document_of
from subagents.domain.run.run import Run
from subagents.domain.text import announcement
from subagents.domain.text.announcement import announcement_text
from subagents.engine.messages.mailbox import Need
from subagents.text import clock, cost_bound, fence, one_line, shortened, tools_in_words

RESULT_CHARS: Final = (8_000, 4_000, 2_000, 1_000, 500)
"""How much of each result one answer shows: the most with which all of them fit."""
MESSAGE_CHARS_MAX: Final = 6_000
"""The longest question or notice; both sides keep to less, but for a long context."""
ENTRY_CHARS_MAX: Final = 500
"""The longest evidence of a check, blocker or description of an artifact."""
ENTRIES_MAX: Final = 20
"""Entries of a list inside one item; the whole is in the run."""
ITEMS_MAX: Final = 200
"""Items of one answer; at the shortest they fill it."""
ANSWER_BYTES_MAX: Final = 60_000
"""All items of one answer, in each of its two forms; the rest is for what stands around."""


ENDED: Final = (
    *("runId", "label", "outcome", "result", "resultBytes", "report", "verification"),
    *("usage", "artifacts"),
)


NEED: Final = ("kind", "runId", "label", "requestId", "text", "options")


class Item(NamedTuple):
    """One ended run in both forms of an answer."""

    run: Run
    document: Document
    text: str


def items(runs: Sequence[Run]) -> list[Item]:
    """As many of these ended runs as one answer bears, in their order."""
    # Shorter results for all of them before fewer of them: the next call brings the rest.
    runs = runs[:ITEMS_MAX]
    for chars in RESULT_CHARS:
        made = [Item(run, item(run, chars), announced(run, chars)) for run in runs]
        sizes = [_size(each) for each in made]
        if sum(sizes) <= ANSWER_BYTES_MAX:
            return made
    return made[: room_for(sizes)]


def room_for(sizes: Iterable[int], bytes_max: int | None = None) -> int:
    """How many items of these sizes, in bytes, one answer (or that part) bears; one at least."""
    kept, used = 0, 0
    for size in sizes:
        used += size
        if used > (bytes_max or ANSWER_BYTES_MAX) and kept:
            break
        kept += 1
    return kept


def announced(run: Run, chars: int) -> str:
    """The announcement of an ended run, with at most ``chars`` of its result."""
    return f"{run.id}: {announcement_text(run, chars_max=chars, by_tool=True)}"


_COMMANDS: Final = tuple(
    (re.compile(rf"\bsubagents {command}"), tool)
    for command, tool in (
        (r"answer (\S+:[qn]\d+) TEXT", r"respond_orchestrator_request requestId=\1"),
        (r"(resume|steer|result|why|log) (r-\w+)", r"subagents action=\1 target=\2"),
        (r"cancel (r-\w+)", r"subagents action=kill target=\1"),
        (r"continue (r-\w+) (?:MESSAGE|TEXT)", r"sessions_send sessionKey=\1 mode=followup"),
        (r"retry (r-\w+)", r"sessions_spawn with the task of \1"),
        (r"(list|attention)\b", r"subagents action=\1"),
    )
)
"""Our commands, as people read them, and the tools that do the same for agents."""


def for_agents(text: str) -> str:
    """A sentence of ours with tools where people read commands.

    What the user alone may decide stays a command: the agent passes it on.
    """
    # A text may name several commands; those without a row are for the user alone.
    for command, tool in _COMMANDS:
        text = command.sub(tool, text)
    return text


def need_document(value: Need) -> Document:
    """What an awaited run needs, as data."""
    found = picked(message_building.need(value), NEED)
    return {**found, "text": shortened(str(found["text"]), ENTRY_CHARS_MAX)}


def need_text(value: Need) -> str:
    """The same for reading: a question as the inbox has it, with the tool that answers it."""
    if value.request is None:
        limited = value.run.retry.limited
        why = "" if limited is None else one_line(limited.text)
        return f"{value.run.id}: waits for its model's provider and goes on by itself: {why}"
    text = announcement.request_text(value.run, value.request)
    return f"{value.run.id}: {cut_fenced(for_agents(text), value.run.id)}"


_FENCE: Final = re.compile(r"`{3,}")


def cut_fenced(text: str, run_id: str) -> str:
    """Another message, cut; a fence that the cut went through is closed."""
    if len(text) <= MESSAGE_CHARS_MAX:
        return text
    kept = text[:MESSAGE_CHARS_MAX]
    opened = ""
    for each in kept.splitlines():
        # Only a line of the same length closes a fence: a longer one may hold shorter ones.
        if opened and each == opened:
            opened = ""
        elif not opened and _FENCE.fullmatch(each):
            opened = each
    closing = f"\n{opened}" if opened else ""
    more = len(text) - len(kept)
    return f"{kept}…{closing}\n({more} more characters: sessions_history sessionKey={run_id})"


def _size(each: Item) -> int:
    return max(len(each.text.encode()), len(msgspec.json.encode(each.document)))


def item(run: Run, chars: int) -> Document:
    """An ended run as ``sessions_wait`` hands it over, with at most ``chars`` of its result."""
    found = run_building.shown(StoredResult, run)
    short = msgspec.structs.replace(
        found,
        outcome=_outcome(found.outcome),
        result=cut_result(run, chars),
        artifacts=found.artifacts[:ENTRIES_MAX],
    )
    return {
        **picked(short, ENDED),
        "report": _report(found.report, chars),
        "verification": _verification(found.verification),
        **_leftovers(found, chars),
    }


def _leftovers(found: StoredResult, chars: int) -> Document:
    """What it left in addition to its result; only what there is: every word costs its reader."""
    left: Document = {} if found.workspace is None else {"workspace": _workspace(found.workspace)}
    if found.truncated:
        left["truncated"] = True
    if found.files_left:
        left["filesLeft"] = found.files_left[:ENTRIES_MAX]
    if found.last_words and not found.result:
        left["lastWords"] = shortened(found.last_words, chars)
    return left


def _workspace(found: Workspace) -> Document:
    """Its worktree in few words: where it is, and what must not be overlooked."""
    shown = picked(found, ("path", "branch", "kept"))
    if found.changes is not None:
        shown["changes"] = found.changes.summary
        for name, names in (
            ("deleted", found.changes.deleted),
            ("outOfScope", found.changes.out_of_scope),
            ("keptBranches", found.changes.kept_branches),
        ):
            if names:
                shown[name] = names[:ENTRIES_MAX]
    return shown


def cut_result(run: Run, chars: int) -> str | None:
    """The result, or its beginning and where the rest is."""
    where = f"subagents action=result target={run.id}"
    ended = run.conclusion
    if run.result is None or ended is None or not ended.is_cut:
        return shortened(run.result, chars, where)
    # Of a result that was cut in the store the end was kept, so the end is shown.
    end = run.result[-chars:] if chars else ""
    return f"(the end of {ended.bytes_total} bytes; all of it: {where})\n…{end}"


def _outcome(found: Outcome | None) -> Outcome | None:
    if found is None:
        return None
    return msgspec.structs.replace(found, error=shortened(found.error, RESULT_CHARS[-1]))


def _report(found: WorkerReport | None, chars: int) -> Document | None:
    if found is None:
        return None
    return {
        "summary": shortened(found.summary, chars),
        "status": found.status,
        "confidence": found.confidence,
        "blockers": [shortened(each, ENTRY_CHARS_MAX) for each in found.blockers[:ENTRIES_MAX]],
        "warnings": [shortened(each, ENTRY_CHARS_MAX) for each in found.warnings[:ENTRIES_MAX]],
    }


def _verification(found: Verification | None) -> Document | None:
    """The verdict and its checks, failed ones first."""
    if found is None:
        return None
    checks = sorted(found.checks, key=lambda check: check.passed)[:ENTRIES_MAX]
    return {
        "status": found.status,
        "checks": [
            {
                **document_of(each),
                "reason": shortened(each.reason, ENTRY_CHARS_MAX),
                "evidence": shortened(each.evidence, ENTRY_CHARS_MAX),
            }
            for each in checks
        ],
        "verifiedAt": found.verified_at,
        # Only where it is so: every word costs its reader.
        **({"vacuous": True} if found.vacuous else {}),
    }


def line(run: Run) -> str:
    """One run on one line of a list: ``r-… "label" quick running 40 % (writing tests)``."""
    parts = [run.id, f'"{one_line(run.resolved.label)}"', run.resolved.agent_id]
    parts.append(run_building.run_status(run))
    latest = run.progress.latest
    if latest is not None and run.outcome is None:
        percent = latest.percent_complete
        done = "" if percent is None else f"{percent:g} % "
        parts.append(f"{done}({one_line(latest.phase)})")
    if run.outcome is not None and run.outcome.error:
        parts.append(f"({one_line(run.outcome.error)})")
    return " ".join(parts)


def log_text(found: LogPage) -> str:
    """A page of a log: where it stands in the whole, and its lines as data of a worker."""
    shown = [f"{each.seq} {clock(each.ts)} {each.type}: {each.text}" for each in found.lines]
    total, first = found.total_lines, found.offset
    if not shown:
        why = f": {found.note}" if found.note else f" of {total} (nextSeq {found.next_seq})"
        return f"{found.run_id}: no lines{why}"
    head = f"{found.run_id}: lines {first} to {first + len(shown) - 1} of {total}"
    dropped = f", {found.dropped_lines} of them dropped" if found.dropped_lines else ""
    ended = ", ended" if found.ended else ""
    body = fence("\n".join(shown))
    return f"{head}{dropped} (seq time UTC type; nextSeq {found.next_seq}{ended})\n{body}"


def status_text(run: Run, found: RunStatus) -> str:
    """One run on two lines: what it is, and what its worker was last seen at."""
    parts = [str(found.why)]
    granted = found.granted
    if granted is not None and granted.access is not None:
        parts.append(granted.access.text)
    if granted is not None:
        parts += tools_in_words(granted.effective_tools, (), granted.mcp_servers)
    if found.took is not None:
        parts.append(f"{found.took} at work")
    parts += usage_parts(found)
    if found.tools_used:
        parts.append(f"{found.tools_used} tool calls")
    if found.context_percent is not None:
        parts.append(f"context {found.context_percent} %")
    if found.budget is not None and found.budget.text:
        parts.append(f"budget {found.budget.text}")
    if found.children_active:
        parts.append(f"{found.children_active}/{found.children_total} sub-agents active")
    if run.outcome is None and found.last_activity_age is not None:
        doing = one_line(found.last_activity or "a sign of life")
        parts.append(f"last: {doing} {found.last_activity_age}")
    return f"{line(run)}\n{'; '.join(parts)}"


def usage_parts(found: RunStatus) -> list[str]:
    """Tokens, and dollars when they are known."""
    parts: list[str] = []
    if found.tokens_in is not None or found.tokens_out is not None:
        read = found.usage and found.usage.tokens_cache_read
        cached = f" ({read} cached)" if read else ""
        parts.append(f"tokens {found.tokens_in or 0} in{cached}, {found.tokens_out or 0} out")
    if found.cost_usd is not None:
        unknown = 0 if found.usage is None else found.usage.cost_unknown_runs
        parts.append(cost_bound(found.cost_usd, unknown_runs=unknown))
    return parts


def joined(lines: Sequence[str]) -> str:
    """The lines that one answer bears; then how many are missing."""
    kept = room_for(len(each.encode()) + 1 for each in lines)
    more = [f"… {len(lines) - kept} more lines"] if kept < len(lines) else []
    return "\n".join([*lines[:kept], *more])


def bounded(text: str) -> str:
    """A whole answer's text, cut at the limit of every answer."""
    return shortened(text, len(text.encode()[:ANSWER_CHARS_MAX].decode(errors="ignore")))
