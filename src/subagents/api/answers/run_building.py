"""Answers about runs, built from domain values.

Nothing unknown is turned into a zero: usage, percentages and times that nobody reported are null.
Values of an agent's ``env`` are configuration secrets and are never shown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from subagents.api.answers import message_building as messages
from subagents.api.answers.explain import why_now
from subagents.api.wire import run_answers as wire
from subagents.api.wire import run_waits as waits
from subagents.api.wire import usage_answers
from subagents.api.wire.listing import Truncated
from subagents.api.wire.run_waits import NamedRun
from subagents.api.wire.wire_struct import Document, document_of, iso_or_none
from subagents.api.wire.words import VerificationStatus, as_word
from subagents.domain.redaction.redact_events import redact_setting
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.rules.wait_causes import HELD, WaitCause, WaitKind, is_paused
from subagents.domain.run import outcome as domain
from subagents.domain.run import spending, workspace
from subagents.domain.run.access import Access, in_words
from subagents.domain.run.linked_runs import LinkedRun, Spent
from subagents.domain.run.outcome import Verdict
from subagents.domain.run.run import (
    Attempt,
    Delivery,
    DeliveryTry,
    Phase,
    Report,
    Run,
    Usage,
)
from subagents.domain.run.spec import Resolved, RunSpec
from subagents.domain.run.values import RunId, announcement_id, attempt_before, attempt_id
from subagents.domain.text.announcement import announcement_text
from subagents.engine.runs.queries import Descendants, RunTree
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.surroundings import Root, Surroundings
from subagents.text import iso, shortened

DETAIL_RESULT_CHARS_MAX: Final = 4000
ROW_TASK_CHARS_MAX: Final = 500
SUMMARY_CHARS_MAX: Final = 300
HIDDEN: Final = "(hidden)"

_PHASE_WORDS: Final = {
    Phase.WAITING: "waiting",
    Phase.QUEUED: "queued",
    Phase.RETRY_WAIT: "retrying",
}


# -- whole answers ------------------------------------------------------------------------------


def run_status(run: Run) -> str:
    """One word for people: ``blocked`` by a question, else the phase or the outcome's status."""
    if run.outcome is not None:
        return str(run.outcome.status)
    if run.pending_requests:
        return "blocked"
    if is_paused(run):
        return "paused"
    if run.retry.limited is not None and run.phase in HELD:
        return "waiting"
    return _PHASE_WORDS.get(run.phase, "running")


def _head(run: Run, now_ms: int, around: Surroundings | None) -> dict[str, Any]:
    """What a run in a list and one in a tree both show."""
    return {
        "run_id": run.id,
        "label": run.resolved.label,
        "agent_id": run.resolved.agent_id,
        "session_key": run.session_key,
        "phase": run.phase,
        "run_status": run_status(run),
        "outcome": outcome(run.outcome),
        "latest_progress": messages.progress(run.progress.latest),
        "pending_request_count": len(run.pending_requests),
        "usage": own_usage(run),
        "subtree_usage": subtree_usage(run),
        "why": why_now(
            run,
            now_ms,
            lane=None if around is None else around.lane_of(run),
            is_cluster=around is not None and around.is_cluster,
        ),
        "vacuous": run.verification.vacuous,
        "wait": None if around is None else wait(run, around),
        "last_sign_at": None if around is None else iso_or_none(around.last_sign_ms(run)),
        "claim": claim(run),
        "verdict": verdict(run),
        "budget": budget_state(run, now_ms),
        "charged_to": None if around is None else named(around.charged_to(run)),
        **_planned(run),
        "read_at": iso_or_none(run.announcement_consumed_ms),
    }


def _planned(run: Run) -> dict[str, str]:
    """When it, or its turn, is ended, as somebody asked."""
    planned = run.planned
    if planned is None:
        return {}
    return {"cancel_at" if planned.of_turn is None else "interrupt_at": iso(planned.due_ms)}


def row(run: Run, now_ms: int, around: Surroundings | None = None) -> wire.RunRow:
    """A run in a list; the retry after a failed verification counts in ``attempt`` only.

    Args:
        run: Which.
        now_ms: Now.
        around: What is known besides; None = only what is in the run.
    """
    pending, step = run.pending_requests, run.resolved.step
    return wire.RunRow(
        **_head(run, now_ms, around),
        runtime=run.resolved.runtime,
        requester=run.requester,
        requester_run=run.lineage.requester_run,
        depth=run.lineage.depth,
        attempt=len(run.attempts),
        attempts_max=max(run.spec.retry_count + 1, len(run.attempts)),
        blocked_reason=pending[0].question if pending else None,
        created_at=iso(run.times.created_at_ms),
        started_at=iso_or_none(run.times.started_at_ms),
        ended_at=iso_or_none(run.ended_at_ms),
        phase_since_at=iso(run.times.phase_since_ms),
        task=shortened(run.spec.task, ROW_TASK_CHARS_MAX),
        tags=list(run.spec.tags),
        model=run.resolved.model,
        directory=run.resolved.project,
        plan_id=None if step is None else step.plan,
        plan_name=None if step is None else step.name,
    )


def detail(run: Run, now_ms: int, around: Surroundings | None = None) -> wire.RunDetail:
    """Everything about one run, but at most 4,000 characters of its result."""
    shown = msgspec.structs.asdict(row(run, now_ms, around))
    return wire.RunDetail(
        **{**shown, "budget": budget(run, now_ms)},
        spec=_with_defaults(run.spec),
        original_spawn_params=document_of(run.spec),
        resolved=resolved(run.resolved),
        attempts=[attempt(run, each) for each in run.attempts],
        retry_from=run.lineage.retry_from,
        continues=None if run.session.continues is None else run.session.continues.run_id,
        continued_by=run.session.continued_by,
        thread_id=thread_id(run),
        native_session=run.native_session,
        retries_used=run.retry.used,
        retry_due_at=iso_or_none(run.retry.due_ms),
        dependencies=[link(each) for each in run.waiting.dependencies],
        children=[link(each) for each in run.children],
        requests=[messages.request(run, each) for each in run.questions.requests],
        delivery=delivery(run.delivery),
        verification=verification(run),
        verification_state=as_word(run.verification.state),
        retry_attempted_at=iso_or_none(run.verification.retried_at_ms),
        result=shortened(run.result, DETAIL_RESULT_CHARS_MAX),
        result_bytes=result_bytes(run),
        artifacts=artifacts(run),
        last_words=run.remains.words,
        files_left=list(run.remains.files),
        workspace=workspace_of(run),
        report=report(run.report),
        cancel=None
        if run.control.cancel is None
        else wire.Cancellation(
            by=run.control.cancel.by,
            reason=run.control.cancel.reason,
            requested_at=iso(run.control.cancel.at_ms),
        ),
        paused=run.control.paused,
        deadline_at=iso_or_none(run.attempts[-1].times.deadline_ms) if run.attempts else None,
        wait_deadline_at=iso_or_none(run.waiting.deadline_ms),
        announcement_consumed_at=iso_or_none(run.announcement_consumed_ms),
        archived_at=iso_or_none(run.times.archived_at_ms),
    )


def stored_result(run: Run) -> wire.StoredResult:
    """The whole stored result and what proves it."""
    return wire.StoredResult(
        run_id=run.id,
        label=run.resolved.label,
        phase=as_word(run.phase),
        outcome=outcome(run.outcome),
        result=run.result,
        result_bytes=result_bytes(run),
        truncated=run.conclusion is not None and run.conclusion.is_cut,
        kept_bytes=0 if run.conclusion is None else run.conclusion.bytes_kept,
        report=report(run.report),
        verification=verification(run),
        retry_attempted_at=iso_or_none(run.verification.retried_at_ms),
        usage=own_usage(run),
        artifacts=artifacts(run),
        last_words=run.remains.words,
        files_left=list(run.remains.files),
        workspace=workspace_of(run),
    )


def result(run: Run) -> wire.RunResult:
    """A run that ended, as ``wait`` hands it over."""
    is_over = run.outcome is not None
    return wire.RunResult(
        **msgspec.structs.asdict(stored_result(run)),
        message_id=announcement_id(run.id),
        announcement=announcement_text(run) if is_over else None,
    )


def pending(run: Run, now_ms: int) -> wire.RunState:
    """A run that a wait still waits for."""
    return wire.RunState(
        run_id=run.id, label=run.resolved.label, phase=as_word(run.phase), why=why_now(run, now_ms)
    )


def changed(run: Run, status: str) -> wire.RunState:
    """What a change of a run came to."""
    return wire.RunState(
        run_id=run.id,
        label=run.resolved.label,
        phase=as_word(run.phase),
        outcome=outcome(run.outcome),
        status=status,
    )


def tree(found: RunTree, now_ms: int, around: Surroundings | None = None) -> wire.RunNode:
    """A run in a tree, with the nodes of the runs it spawned."""
    below = [tree(child, now_ms, around) for child in found.children]
    return node(found.run, below, now_ms, around, left_out=found.left_out)


def node(
    run: Run,
    children: Sequence[wire.RunNode],
    now_ms: int,
    around: Surroundings | None = None,
    *,
    left_out: int = 0,
) -> wire.RunNode:
    """A run in a tree, with these below it."""
    since = run.times.started_at_ms or run.times.created_at_ms
    found = verification(run)
    shown = len(children)
    return wire.RunNode(
        **_head(run, now_ms, around),
        verification=as_word(found.status if found else run.verification.state),
        elapsed_ms=max((run.ended_at_ms or now_ms) - since, 0),
        children=list(children),
        truncated=Truncated(shown=shown, total=shown + left_out) if left_out else None,
    )


def below(found: Descendants, run_id: RunId) -> wire.BelowCounts | None:
    """How many runs are below one, by state; None = there are none."""
    if run_id not in found.of:
        return None
    states = Counter[str]()
    for each, number in found.of[run_id]:
        states[run_status(each) if isinstance(each, Run) else str(each)] += number
    return wire.BelowCounts(runs=states.total(), states=dict(states), is_bound=found.is_bound)


def chosen(run: Run) -> str | None:
    """Why it is this agent; None = it was named, or is the default one."""
    if run.waiting.fell_back is not None:
        return f"{run.resolved.agent_id}: the fallback, as {run.waiting.fell_back} did not end well"
    return None if run.resolved.chosen is None else run.resolved.chosen.text


def receipt(run: Run, *, warnings: Sequence[str], repeated: bool) -> wire.SpawnReceipt:
    """What a spawn really came to."""
    return wire.SpawnReceipt(
        run_id=run.id,
        child_session_key=run.session.first_key,
        mode=as_word(run.resolved.mode),
        label=run.resolved.label,
        phase=as_word(run.phase),
        agent_id=run.resolved.agent_id,
        chosen=chosen(run),
        runtime=run.resolved.runtime,
        **msgspec.structs.asdict(granted(run.resolved)),
        workspace=workspace_of(run),
        continues=None if run.session.continues is None else run.session.continues.run_id,
        thread_id=thread_id(run),
        overshoot=as_word(budgets.overshoot(run.spec.budget, run.resolved.abilities)),
        warnings=list(warnings),
        note=f"this idempotencyKey made run {run.id} before; nothing new was started"
        if repeated
        else _next_of(run),
        repeated=repeated,
    )


def granted(value: Resolved) -> wire.Granted:
    """What a run was given to work with, as its receipt and its status say it."""
    tools = value.effective_tools
    return wire.Granted(
        resolved_model=value.model,
        effective_tools=None if tools is None else list(tools),
        tools_deny=list(value.tools_deny),
        access=access(value.access),
        cwd=value.cwd,
    )


def _next_of(run: Run) -> str:
    waits = run.approval
    if waits is not None and waits.answer is None:
        return f"it begins when the user allows it: subagents answer {waits.id} --decision approve"
    return "its end comes to your inbox once; no need to poll"


def access(value: Access | None) -> wire.AccessAnswer | None:
    """What a worker may do; None = of a run from before there were levels."""
    if value is None:
        return None
    return wire.AccessAnswer(
        level=as_word(value.level),
        below=value.below,
        network=value.network,
        sees=value.sees,
        kept_by=as_word(value.kept_by),
        narrowed=value.narrowed,
        text=in_words(value),
    )


def sent(found: Sent) -> wire.SentMessage:
    """What became of a message: which run has it, and whether it started that run."""
    run = found.run
    return wire.SentMessage(
        status=found.status,
        run_id=run.id,
        session_key=run.session_key,
        label=run.resolved.label,
        phase=as_word(run.phase),
        is_new=found.is_new,
        continues=None if run.session.continues is None else run.session.continues.run_id,
        thread_id=thread_id(run),
        repeated=found.repeated,
        warnings=list(found.warnings),
    )


def thread_id(run: Run) -> str | None:
    """The thread that the run's session is bound to: named by its first run; None = to none."""
    return run.root if run.spec.thread else None


# -- parts of a run -----------------------------------------------------------------------------


def outcome(value: domain.Outcome | None) -> wire.Outcome | None:
    if value is None:
        return None
    return wire.Outcome(
        status=as_word(value.status), reason=as_word(value.reason), error=value.error
    )


def report(value: Report | None) -> wire.WorkerReport | None:
    if value is None:
        return None
    return wire.WorkerReport(
        summary=value.summary,
        status=as_word(value.status),
        confidence=as_word(value.confidence),
        artifacts=[
            wire.ReportedFile(path=each.path, description=each.description)
            for each in value.artifacts
        ],
        blockers=list(value.blockers),
        warnings=list(value.warnings),
    )


def verification(run: Run) -> wire.Verification | None:
    """``passed``, ``failed`` or ``skipped`` (never ran, or could not check); None = no contract.

    While a run with a contract is not settled it is None too: nothing is known yet.
    """
    found = run.verification.result
    if found is None:
        if run.spec.verification is None or run.outcome is None:
            return None
        return wire.Verification(status="skipped", changes=changes(run))
    return wire.Verification(
        status=_verdict(found.verdict),
        checks=[check(each) for each in found.checks],
        verified_at=iso(found.verified_at_ms),
        vacuous=run.verification.vacuous,
        changes=changes(run),
    )


def _verdict(value: Verdict) -> VerificationStatus:
    match value:
        case Verdict.PASSED:
            return "passed"
        case Verdict.FAILED:
            return "failed"
        case Verdict.COULD_NOT_CHECK:
            return "skipped"


def check(value: domain.Check) -> wire.Check:
    return wire.Check(
        type=as_word(value.type),
        target=value.target,
        passed=value.passed,
        reason=value.reason,
        evidence=value.evidence,
    )


def artifacts(run: Run) -> list[wire.ResultFile]:
    """The contract's files, then those the worker reported; ``verified`` = a check passed."""
    found = None if run.verification.vacuous else run.verification.result
    passed = {each.target for each in found.checks if each.passed} if found else set()
    claimed = {each.path: each.description for each in (run.report.artifacts if run.report else ())}
    required = run.spec.verification.artifacts if run.spec.verification else ()
    paths = dict.fromkeys([*(each.path for each in required), *claimed])
    return [
        wire.ResultFile(path=path, description=claimed.get(path), verified=path in passed)
        for path in paths
    ]


def claim(run: Run) -> wire.Claim | None:
    """What its worker says of its work; None = nothing yet."""
    newest = run.attempts[-1] if run.attempts else None
    said = run.report or (newest.reported.report if newest else None)
    text = run.result or (newest.evidence.result if newest else None)
    return _claim(said, text)


def _claim(said: Report | None, text: str | None) -> wire.Claim | None:
    if said is not None:
        return wire.Claim(
            status=as_word(said.status),
            confidence=as_word(said.confidence),
            summary=_first_line(said.summary),
        )
    return wire.Claim(summary=_first_line(text)) if text and text.strip() else None


def _first_line(text: str) -> str:
    return shortened(text.strip().partition("\n")[0], SUMMARY_CHARS_MAX)


def verdict(run: Run) -> wire.Verdict | None:
    """What its contract found, in short; None without one, and until it is known."""
    found = run.verification.result
    if found is None:
        is_unchecked = run.spec.verification is not None and run.outcome is not None
        return wire.Verdict(status="skipped") if is_unchecked else None
    bad = found.failures
    return wire.Verdict(
        status=_verdict(found.verdict),
        passed=len(found.checks) - len(bad),
        checks=len(found.checks),
        found=shortened(domain.failure_text(bad[0].target, bad[0].reason), SUMMARY_CHARS_MAX)
        if bad
        else None,
    )


def _verdict_of(run: Run, value: Attempt) -> wire.Verdict | None:
    """Of the newest attempt the run's own; of one before, why there had to be another."""
    if value is run.attempts[-1]:
        return verdict(run)
    cause = run.attempts[value.number].retry
    if not cause.verifies:
        return None
    found = None if cause.reason is None else shortened(cause.reason, SUMMARY_CHARS_MAX)
    return wire.Verdict(status="failed", found=found)


def named(value: Run | LinkedRun | None) -> NamedRun | None:
    """A run by its id and its name."""
    if value is None:
        return None
    if isinstance(value, Run):
        return NamedRun(run_id=value.id, label=value.resolved.label)
    return NamedRun(run_id=value.run_id, label=value.label)


def wait(run: Run, around: Surroundings) -> waits.Wait | None:
    """What it waits for, as data; None = it is at work, or has ended."""
    cause = around.cause(run)
    if cause is None:
        return None
    is_lane = cause.kind is WaitKind.LANE
    lane = around.lane(run) if is_lane and not around.is_cluster else None
    refusal = cause.refusal
    runs: Sequence[LinkedRun | Run] = cause.runs
    if refusal is not None and refusal.probe is not None and refusal.probe != run.id:
        probe = around.open_run(refusal.probe)
        runs = () if probe is None else (probe,)
    return waits.Wait(
        kind=as_word(cause.kind),
        name=_waited_name(run, cause),
        status=None if refusal is None else refusal.status,
        runs=[each for each in map(named, runs) if each is not None],
        runs_total=max(cause.runs_total, len(runs)),
        root=_root(around.root(cause)),
        place=around.place(run),
        used=None if lane is None else lane.used,
        slots=run.resolved.lane_slots if is_lane else None,
        request_id=cause.request_id,
        ends_at=iso_or_none(cause.ends_ms),
        gives_up_at=iso_or_none(cause.gives_up_ms),
    )


def _waited_name(run: Run, cause: WaitCause) -> str | None:
    if cause.refusal is not None:
        return cause.refusal.provider
    return run.resolved.lane if cause.kind is WaitKind.LANE else None


def _root(value: Root | None) -> waits.WaitRoot | None:
    if value is None:
        return None
    run, cause = value
    return waits.WaitRoot(
        run_id=run.id if isinstance(run, Run) else run.run_id,
        label=run.resolved.label if isinstance(run, Run) else run.label,
        kind=None if cause is None else as_word(cause.kind),
        name=_waited_name(run, cause) if isinstance(run, Run) and cause is not None else None,
    )


def _report_from(value: Attempt) -> str | None:
    if value.reported.report is None:
        return None
    return "text" if value.reported.is_text else "tool"


def attempt(run: Run, value: Attempt) -> wire.Attempt:
    """One try at a run."""
    evidence = value.evidence
    return wire.Attempt(
        attempt_id=attempt_id(run.id, value.number),
        number=value.number,
        session_key=value.session.key,
        retry_of=attempt_before(run.id, value.number),
        retry_reason=value.retry.reason,
        verification_retry=value.retry.verifies,
        requested_at=iso(value.times.requested_at_ms),
        started_at=iso_or_none(value.times.started_at_ms),
        ended_at=iso_or_none(value.times.ended_at_ms),
        deadline_at=iso_or_none(value.times.deadline_ms),
        turns=value.turn.number,
        resumes=value.session.resumes,
        node=value.node,
        pid=value.turn.pid,
        outcome=outcome(value.outcome),
        exit_code=evidence.exit.code if evidence.exit else None,
        exit_signal=evidence.exit.signal if evidence.exit else None,
        stop_cause=as_word(evidence.stop),
        stderr_tail=evidence.stderr_tail,
        usage=usage(value.usage),
        report=report(value.reported.report),
        report_from=_report_from(value),
        report_problem=value.reported.problem,
        claim=_claim(value.reported.report, evidence.result),
        verdict=_verdict_of(run, value),
    )


def link(value: LinkedRun) -> wire.RunLink:
    """A run this one waits for, or spawned."""
    return wire.RunLink(run_id=value.run_id, label=value.label, outcome=outcome(value.outcome))


def delivery(value: Delivery | None) -> wire.Delivery | None:
    if value is None:
        return None
    return wire.Delivery(
        target=value.target,
        tries=[delivery_try(each) for each in value.tries],
        tries_total=value.tries_total,
        failures=value.failures,
        due_at=iso_or_none(value.due_ms),
    )


def delivery_try(value: DeliveryTry) -> wire.DeliveryTry:
    return wire.DeliveryTry(
        tried_at=iso(value.at_ms),
        target=value.target,
        requester_depth=value.requester_depth,
        nested=value.nested,
        route_mode=value.route_mode,
        phases=list(value.phases),
        outcome=document_of(value.outcome),
        idempotency_key=value.idempotency_key,
    )


def resolved(value: Resolved) -> Document:
    """What the spawn came to; the values of the agent's ``env`` are hidden."""
    return without_secrets(_with_defaults(value))


def without_secrets(value: Mapping[str, object]) -> Document:
    """What a spawn came to, as a document, with the secrets in its agent's options hidden."""
    judge = value.get("judge")
    if isinstance(judge, dict):
        value = {**value, "judge": without_secrets(judge)}
    options = value.get("options")
    if not isinstance(options, dict):
        return dict(value)
    shown = {str(name): redact_setting(str(name), each) for name, each in options.items()}
    if isinstance(options.get("env"), dict):
        shown["env"] = dict.fromkeys(options["env"], HIDDEN)
    return {**value, "options": shown}


def result_bytes(run: Run) -> int:
    """Size of the whole result, also when the stored one had to be cut."""
    return 0 if run.conclusion is None else run.conclusion.bytes_total


def _with_defaults(value: RunSpec | Resolved) -> Document:
    """Every field, also those that stand at their default (the journal's form omits those)."""
    return {
        field.encode_name: msgspec.to_builtins(getattr(value, field.name))
        for field in msgspec.structs.fields(value)
    }


# -- what it used -------------------------------------------------------------------------------


def usage(value: Usage | None) -> usage_answers.Usage | None:
    """None when nobody reported anything."""
    if value is None or value == Usage():
        return None
    return usage_answers.Usage(
        tokens_in=value.tokens_in, tokens_out=value.tokens_out, cost_usd=value.cost_usd
    )


def own_usage(run: Run) -> usage_answers.Usage | None:
    """What the run's own attempts used; None when nobody reported anything."""
    found = usage(spending.total_usage(run))
    if found is None or not spending.is_cost_unknown(run):
        return found
    return msgspec.structs.replace(found, cost_unknown_runs=1)


def subtree_usage(run: Run) -> usage_answers.TreeUsage | None:
    """What the run and everything below it used; None for a run without children."""
    return _tree_usage(spending.spent(run)) if run.children else None


def _tree_usage(value: Spent) -> usage_answers.TreeUsage:
    return usage_answers.TreeUsage(**msgspec.structs.asdict(value))


def budget(run: Run, now_ms: int) -> usage_answers.BudgetUse | None:
    """The run's own budget; None = it has none. Limits that it does not name are null."""
    view = budgets.view(run, now_ms)
    if view is None:
        return None
    return usage_answers.BudgetUse(
        **msgspec.structs.asdict(view.budget),
        spent=_tree_usage(view.spent),
        left=usage_answers.BudgetLeft(**msgspec.structs.asdict(view.left)),
        percent=view.percent,
        text=view.text,
        exhausted=view.exhausted,
        overshoot=view.overshoot,
    )


def budget_state(run: Run, now_ms: int) -> usage_answers.BudgetState | None:
    """For a tree, where many runs are shown at once."""
    view = budgets.view(run, now_ms)
    if view is None:
        return None
    return usage_answers.BudgetState(percent=view.percent, text=view.text, exhausted=view.exhausted)


# -- its worktree -------------------------------------------------------------------------------


def workspace_of(run: Run) -> wire.Workspace | None:
    """The worktree of a run that has one; ``kept`` is None until the run is over."""
    tree = run.resolved.worktree
    if tree is None:
        return None
    found = run.remains.changes
    is_kept = bool(run.attempts) and (found is None or not found.is_clean)
    return wire.Workspace(
        path=tree.path,
        branch=tree.branch,
        repository=tree.repository,
        origin=tree.origin,
        kept=is_kept if run.is_settled else None,
        changes=changes(run),
    )


def changes(run: Run) -> wire.Changes | None:
    """What a run with a worktree changed; out of scope = not among its contract's artifacts."""
    tree, found = run.resolved.worktree, run.remains.changes
    if tree is None or found is None:
        return None
    wanted = run.spec.verification.artifacts if run.spec.verification else ()
    prefix = workspace.prefix_of(tree, run.resolved.cwd)
    outside = workspace.out_of_scope(found, [each.path for each in wanted], prefix)
    globs = [pattern_of(each.path, field="path") for each in wanted if each.is_glob]
    outside = tuple(
        path
        for path in outside
        if not any(glob.matches(path.removeprefix(prefix)) for glob in globs)
    )
    gone = [each.path for each in found.changed if each.kind is workspace.ChangeKind.DELETED]
    return wire.Changes(
        summary=workspace.summary(found),
        files=found.files,
        insertions=found.insertions,
        deletions=found.deletions,
        commits=found.commits,
        ignored=found.ignored,
        deleted_files=found.deleted,
        deleted=gone,
        changed=[wire.FileChange(**msgspec.structs.asdict(each)) for each in found.changed],
        out_of_scope=list(outside),
        kept_branches=list(found.kept_branches),
        error=found.error,
    )
