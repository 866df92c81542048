"""Domain values as the documents of the wire: camelCase, times in ms named ``createdAt``.

Nothing unknown is turned into a zero: usage, percentages and times that nobody reported are null.
Values of an agent's ``env`` are configuration secrets and are never shown.

Source: 1-product "The words" (names); 3-tools (answers); 4-observability §3.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from subagents.api.answers.explain import (
    Folded,
    Step,
    why_now,
)
from subagents.api.wire import usage as spending
from subagents.api.wire.deliveries import delivery
from subagents.api.wire.run_workspace import changes, workspace_of
from subagents.domain.rules.admission import LaneUse
from subagents.domain.run.outcome import (
    Check,
    Outcome,
    Verdict,
    Verification,
)
from subagents.domain.run.run import (
    Attempt,
    Child,
    Dependency,
    Message,
    Phase,
    Progress,
    Report,
    Request,
    Run,
)
from subagents.domain.run.spec import Resolved, RunSpec
from subagents.domain.run.values import announcement_id, attempt_id
from subagents.domain.text.announcement import announcement_text
from subagents.engine.runs.queries import AttentionItem
from subagents.ports import InboxRow
from subagents.text import shortened

Document = dict[str, object]

DETAIL_RESULT_CHARS_MAX: Final = 4000
ROW_TASK_CHARS_MAX: Final = 500
EVENT_TEXT_CHARS_MAX: Final = 2000
"""Of each text in a timeline's event; the whole is in the run."""
HIDDEN: Final = "(hidden)"

_PHASE_WORDS: Final = {
    Phase.WAITING: "waiting",
    Phase.QUEUED: "queued",
    Phase.RETRY_WAIT: "retrying",
}
_HELD: Final = frozenset(_PHASE_WORDS)


# -- runs ---------------------------------------------------------------------------------------


def run_status(run: Run) -> str:
    """One word for people: ``blocked`` by a question, else the phase or the outcome's status."""
    if run.outcome is not None:
        return str(run.outcome.status)
    if run.pending_requests:
        return "blocked"
    if run.paused and run.phase in _HELD:
        return "paused"
    if run.limited is not None and run.phase in _HELD:
        return "waiting"
    return _PHASE_WORDS.get(run.phase, "running")


def row(run: Run, now_ms: int, *, lane: LaneUse | None = None) -> Document:
    """A run in a list. ``attempt`` is the newest attempt's number, ``attempts`` how many at most.

    The retry after a failed verification is not part of that number.
    """
    pending = run.pending_requests
    return {
        "runId": run.id,
        "label": run.resolved.label,
        "agentId": run.resolved.agent_id,
        "runtime": run.resolved.runtime,
        "sessionKey": run.session_key,
        "requester": run.requester,
        "depth": run.depth,
        "phase": run.phase,
        "runStatus": run_status(run),
        "outcome": outcome(run.outcome),
        "attempt": len(run.attempts),
        "attempts": max(run.spec.retry_count + 1, len(run.attempts)),
        "pendingRequestCount": len(pending),
        "blockedReason": pending[0].question if pending else None,
        "latestProgress": progress(run.progress),
        "usage": spending.own(run),
        "subtreeUsage": spending.subtree(run),
        "createdAt": run.created_at_ms,
        "startedAt": run.started_at_ms,
        "endedAt": run.ended_at_ms,
        "phaseSince": run.phase_since_ms,
        "why": why_now(run, now_ms, lane=lane),
        "task": shortened(run.spec.task, ROW_TASK_CHARS_MAX),
    }


def detail(run: Run, now_ms: int, *, lane: LaneUse | None = None) -> Document:
    """Everything about one run, but at most 4,000 characters of its result."""
    return {
        **row(run, now_ms, lane=lane),
        "spec": _with_defaults(run.spec),
        "originalSpawnParams": msgspec.to_builtins(run.spec),
        "resolved": resolved(run.resolved),
        "attempts": [attempt(run, each) for each in run.attempts],
        "retryFrom": run.retry_from,
        "continues": None if run.continues is None else run.continues.run_id,
        "continuedBy": run.continued_by,
        "threadId": thread_id(run),
        "nativeSession": run.native_session,
        "requesterRun": run.requester_run,
        "retriesUsed": run.retries_used,
        "retryDue": run.retry_due_ms,
        "dependencies": [relative(each) for each in run.dependencies],
        "children": [relative(each) for each in run.children],
        "requests": [request(run, each) for each in run.requests],
        "delivery": delivery(run.delivery),
        "verification": verification(run),
        "verificationState": run.verification_state,
        "result": shortened(run.result, DETAIL_RESULT_CHARS_MAX),
        "resultBytes": result_bytes(run),
        "artifacts": artifacts(run),
        "lastWords": run.remains.words,
        "filesLeft": list(run.remains.files),
        "workspace": workspace_of(run),
        "report": report(run.report),
        "budget": spending.budget(run, now_ms),
        "cancel": None
        if run.cancel is None
        else {"by": run.cancel.by, "reason": run.cancel.reason, "at": run.cancel.at_ms},
        "paused": run.paused,
        "vacuous": run.vacuous,
        "deadline": run.attempts[-1].deadline_ms if run.attempts else None,
        "waitDeadline": run.wait_deadline_ms,
        "announcementConsumed": run.announcement_consumed_ms,
        "archivedAt": run.archived_at_ms,
    }


def result(run: Run) -> Document:
    """The whole stored result and what proves it."""
    return {
        "runId": run.id,
        "label": run.resolved.label,
        "phase": run.phase,
        "outcome": outcome(run.outcome),
        "result": run.result,
        "resultBytes": result_bytes(run),
        "report": report(run.report),
        "verification": verification(run),
        "usage": spending.own(run),
        "artifacts": artifacts(run),
        "lastWords": run.remains.words,
        "filesLeft": list(run.remains.files),
        "workspace": workspace_of(run),
    }


def item(run: Run) -> Document:
    """A run that ended, as ``wait`` hands it over."""
    return {
        **result(run),
        "messageId": announcement_id(run.id),
        "announcement": announcement_text(run) if run.outcome is not None else None,
    }


def pending(run: Run, now_ms: int) -> Document:
    return {
        "runId": run.id,
        "label": run.resolved.label,
        "phase": run.phase,
        "why": why_now(run, now_ms),
    }


def node(run: Run, children: Sequence[Document], now_ms: int) -> Document:
    """A run in a tree, with the nodes of the runs it spawned."""
    since = run.started_at_ms or run.created_at_ms
    verdict = verification(run)
    claim = run.report or (run.attempts[-1].report if run.attempts else None)
    return {
        "runId": run.id,
        "label": run.resolved.label,
        "agentId": run.resolved.agent_id,
        "sessionKey": run.session_key,
        "phase": run.phase,
        "runStatus": run_status(run),
        "outcome": outcome(run.outcome),
        "verification": verdict["status"] if verdict else run.verification_state,
        "completion": claim and {"status": claim.status, "confidence": claim.confidence},
        "latestProgress": progress(run.progress),
        "pendingRequestCount": len(run.pending_requests),
        "usage": spending.own(run),
        "subtreeUsage": spending.subtree(run),
        "budget": spending.short_budget(run, now_ms),
        "elapsedMs": max((run.ended_at_ms or now_ms) - since, 0),
        "why": why_now(run, now_ms),
        "children": list(children),
    }


def receipt(run: Run, *, warnings: Sequence[str], repeated: bool) -> Document:
    """What a spawn really came to."""
    tools = run.resolved.effective_tools
    return {
        "status": "accepted",
        "runId": run.id,
        "childSessionKey": run.first_session_key,
        "mode": run.resolved.mode,
        "label": run.resolved.label,
        "phase": run.phase,
        "agentId": run.resolved.agent_id,
        "runtime": run.resolved.runtime,
        "resolvedModel": run.resolved.model,
        "effectiveTools": None if tools is None else list(tools),
        "toolsDeny": list(run.resolved.tools_deny),
        "cwd": run.resolved.cwd,
        "workspace": workspace_of(run),
        "continues": None if run.continues is None else run.continues.run_id,
        "threadId": thread_id(run),
        "warnings": list(warnings),
        "note": f"this idempotencyKey made run {run.id} before; nothing new was started"
        if repeated
        else "its end comes to your inbox once; no need to poll",
        "repeated": repeated,
    }


def thread_id(run: Run) -> str | None:
    """The thread that the run's session is bound to: named by its first run; None = to none."""
    return run.root if run.spec.thread else None


# -- parts of a run -----------------------------------------------------------------------------


def outcome(value: Outcome | None) -> Document | None:
    if value is None:
        return None
    return {"status": value.status, "reason": value.reason, "error": value.error}


def progress(value: Progress | None) -> Document | None:
    if value is None:
        return None
    return {
        "phase": value.phase,
        "percentComplete": value.percent_complete,
        "updatedAt": value.updated_at_ms,
    }


def report(value: Report | None) -> Document | None:
    if value is None:
        return None
    return {
        "summary": value.summary,
        "status": value.status,
        "confidence": value.confidence,
        "artifacts": [
            {"path": each.path, "description": each.description} for each in value.artifacts
        ],
        "blockers": list(value.blockers),
        "warnings": list(value.warnings),
    }


def verification(run: Run) -> Document | None:
    """``passed``, ``failed`` or ``skipped`` (never ran, or could not check); null = no contract.

    While a run with a contract is not settled it is null too: nothing is known yet.
    """
    found = run.verification
    if found is None:
        if run.spec.verification is None or run.outcome is None:
            return None
        return {"status": "skipped", "checks": [], "verifiedAt": None, **_changed(run)}
    return {
        "status": _verdict(found),
        "checks": [check(each) for each in found.checks],
        "verifiedAt": found.verified_at_ms,
        **_changed(run),
    }


def _changed(run: Run) -> Document:
    """For information, of a run with a worktree: what it changed besides what was asked for."""
    found = changes(run)
    return {} if found is None else {"changes": found}


def _verdict(value: Verification) -> str:
    match value.verdict:
        case Verdict.PASSED:
            return "passed"
        case Verdict.FAILED:
            return "failed"
        case Verdict.COULD_NOT_CHECK:
            return "skipped"


def check(value: Check) -> Document:
    return {
        "type": value.type,
        "target": value.target,
        "passed": value.passed,
        "reason": value.reason,
        "evidence": value.evidence,
    }


def artifacts(run: Run) -> list[Document]:
    """The contract's files, then those the worker reported; ``verified`` = a check passed."""
    passed = (
        {each.target for each in run.verification.checks if each.passed}
        if run.verification
        else set()
    )
    claimed = {each.path: each.description for each in (run.report.artifacts if run.report else ())}
    required = run.spec.verification.artifacts if run.spec.verification else ()
    paths = dict.fromkeys([*(each.path for each in required), *claimed])
    return [
        {"path": path, "description": claimed.get(path), "verified": path in passed}
        for path in paths
    ]


def attempt(run: Run, value: Attempt) -> Document:
    evidence = value.evidence
    return {
        "attemptId": attempt_id(run.id, value.number),
        "number": value.number,
        "sessionKey": value.session_key,
        "retryOf": value.retry_of,
        "retryReason": value.retry_reason,
        "verificationRetry": value.verification_retry,
        "requestedAt": value.requested_at_ms,
        "startedAt": value.started_at_ms,
        "endedAt": value.ended_at_ms,
        "deadline": value.deadline_ms,
        "turns": value.turns,
        "resumes": value.resumes,
        "pid": value.pid,
        "outcome": outcome(value.outcome),
        "exitCode": evidence.exit.code if evidence.exit else None,
        "exitSignal": evidence.exit.signal if evidence.exit else None,
        "stopCause": evidence.stop,
        "stderrTail": evidence.stderr_tail,
        "usage": spending.usage(value.usage),
        "report": report(value.report),
        "reportFrom": value.report and ("text" if value.report_is_text else "tool"),
        "reportProblem": value.report_problem,
    }


def relative(value: Dependency | Child) -> Document:
    """A run this one waits for, or spawned."""
    return {"runId": value.run_id, "label": value.label, "outcome": outcome(value.outcome)}


def request(run: Run, value: Request) -> Document:
    """A worker's question; ``answer`` is the text, null while pending or when there is none."""
    given = value.answer
    return {
        "requestId": value.id,
        "runId": run.id,
        "label": run.resolved.label,
        "priority": value.priority,
        "question": value.question,
        "context": value.context,
        "options": list(value.options),
        "defaultAnswer": value.default_answer,
        "status": request_status(value),
        "answer": given.text if given else None,
        "decision": given.decision if given else None,
        "by": given.by if given else None,
        "askedAt": value.asked_at_ms,
        "deadline": value.deadline_ms,
        "answeredAt": given.at_ms if given else None,
    }


def request_status(value: Request) -> str:
    """``pending``, ``answered`` (also by the default), ``timeout`` or ``cancelled``."""
    if value.answer is None:
        return "pending"
    decision = str(value.answer.decision)
    return decision if decision in {"timeout", "cancelled"} else "answered"


def resolved(value: Resolved) -> Document:
    """What the spawn came to; the values of the agent's ``env`` are hidden."""
    return _without_secrets(_with_defaults(value))


def result_bytes(run: Run) -> int:
    """Size of the whole result, also when the stored one had to be cut."""
    return run.result_bytes or len((run.result or "").encode())


# -- the rest -----------------------------------------------------------------------------------


def message(value: Message, *, number: int) -> Document:
    return {
        "id": value.id,
        "number": number,
        "sessionKey": value.session_key,
        "runId": value.run_id,
        "kind": value.kind,
        "createdAt": value.created_at_ms,
        "text": value.text,
    }


def inbox_row(value: InboxRow) -> Document:
    return {
        **message(value.message, number=value.number),
        "consumedAt": value.consumed_at_ms,
        "consumedBy": value.consumed_by,
    }


def attention_item(value: AttentionItem) -> Document:
    return {
        "kind": value.kind,
        "runId": value.run.id,
        "label": value.run.resolved.label,
        "text": value.text,
        "requestId": value.request_id,
        "since": value.since_ms,
    }


def event(folded: Folded) -> Document:
    """One event of a timeline, with the phase the run was in after it."""
    entry = folded.entry
    raw = msgspec.to_builtins(entry.event)
    data = {name: value for name, value in raw.items() if name not in {"type", "atMs"}}
    return {
        "seq": entry.seq,
        "atMs": entry.at_ms,
        "type": type(entry.event).__name__,
        "data": _shortened(_hidden_in_event(data)),
        "key": entry.key,
        "phase": folded.run.phase,
        "stale": folded.stale,
    }


def step(value: Step) -> Document:
    return {"atMs": value.at_ms, "text": value.text}


def _with_defaults(value: RunSpec | Resolved) -> Document:
    """Every field, also those that stand at their default (the journal's form omits those)."""
    return {
        field.encode_name: msgspec.to_builtins(getattr(value, field.name))
        for field in msgspec.structs.fields(value)
    }


def _hidden_in_event(data: Document) -> Document:
    found = data.get("resolved")
    return {**data, "resolved": _without_secrets(found)} if isinstance(found, dict) else data


def _without_secrets(value: Mapping[str, object]) -> Document:
    options = value.get("options")
    if not isinstance(options, dict) or not isinstance(options.get("env"), dict):
        return dict(value)
    return {**value, "options": {**options, "env": dict.fromkeys(options["env"], HIDDEN)}}


def _shortened(value: object) -> object:
    if isinstance(value, str):
        return shortened(value, EVENT_TEXT_CHARS_MAX)
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(each) for each in value]
    return value
