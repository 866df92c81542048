"""Answers about runs, built from domain values.

Nothing unknown is turned into a zero: usage, percentages and times that were not reported are null.
Values of an agent's ``env`` are configuration secrets and are never shown.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from subagents.api.answers import message_building as messages
from subagents.api.answers.explain import why_now
from subagents.api.wire import run_answers as wire
from subagents.api.wire.listing import Truncated
from subagents.api.wire.wire_struct import (
    Document,
    NamedRun,
    WireStruct,
    document_of,
    iso_or_none,
    made,
)
from subagents.api.wire.words import VerificationStatus
from subagents.domain.redaction.redact_events import redact_setting
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.rules.retry import retries_after_checks
from subagents.domain.rules.wait_causes import HELD, WaitCause, WaitKind, is_paused, state_of
from subagents.domain.run import outcome as domain
from subagents.domain.run import spending, workspace
from subagents.domain.run.linked_runs import LinkedRun
from subagents.domain.run.outcome import Verdict
from subagents.domain.run.run import Attempt, Delivery, DeliveryTry, Phase, Report, Run
from subagents.domain.run.spec import Resolved, RunSpec
from subagents.domain.run.usage import Spent, Usage
from subagents.domain.run.values import RunId, announcement_id, attempt_before, attempt_id
from subagents.domain.text.announcement import announcement_text
from subagents.engine.runs.queries import Descendants, RunTree
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.surroundings import Root, Surroundings
from subagents.text import iso, shortened

S = TypeVar("S", bound=WireStruct)
DETAIL_RESULT_CHARS_MAX: Final = 8_000
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


def shown(
    kind: type[S],
    run: Run,
    now_ms: int = 0,
    around: Surroundings | None = None,
    /,
    **others: object,
) -> S:
    """An answer about a run: its fields are those of ``OF_RUN`` and ``AROUND``.

    Args:
        kind: The answer.
        run: The run.
        now_ms: The time; only fields that change with it need it.
        around: What is known besides; None = only what is in the run.
        others: Fields that this answer makes otherwise.

    Raises:
        TypeError: The answer has no such other field.
    """
    if unknown := others.keys() - {*kind.__struct_fields__}:
        raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    found: dict[str, object] = {}
    for name, shown_as in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if name in others:
            found[shown_as] = others[name]
        elif name in OF_RUN:
            found[shown_as] = OF_RUN[name](run)
        else:
            found[shown_as] = AROUND[name](run, now_ms, around)
    return msgspec.convert(found, kind, from_attributes=True)


def detail(run: Run, now_ms: int, around: Surroundings | None = None) -> wire.RunDetail:
    """Everything about one run, but at most 8,000 characters of its result."""
    result = shortened(run.result, DETAIL_RESULT_CHARS_MAX)
    return shown(wire.RunDetail, run, now_ms, around, result=result)


def changed(run: Run, status: str) -> wire.RunState:
    """What a change of a run came to."""
    return shown(wire.RunState, run, status=status, why=None)


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
    since, found, total = run.times.started_at_ms, verification(run), len(children) + left_out
    return shown(
        wire.RunNode,
        run,
        now_ms,
        around,
        verification=found.status if found else run.verification.state,
        elapsed_ms=max((run.ended_at_ms or now_ms) - (since or run.times.created_at_ms), 0),
        children=children,
        truncated=Truncated(shown=len(children), total=total) if left_out else None,
    )


def receipt(found: Receipt, ignored: Sequence[str] = ()) -> wire.SpawnReceipt:
    """What a spawn came to; ``ignored`` of the configuration is among its warnings."""
    run = found.run
    again = f"this idempotencyKey made run {run.id} before; nothing new was started"
    return shown(
        wire.SpawnReceipt,
        run,
        status="accepted",
        warnings=(*found.warnings, *ignored),
        note=again if found.repeated else _next_of(run),
        repeated=found.repeated,
    )


def sent(found: Sent) -> wire.SentMessage:
    """What became of a message: which run has it, and whether it started that run."""
    return shown(
        wire.SentMessage,
        found.run,
        status=found.status,
        is_new=found.is_new,
        warnings=found.warnings,
        repeated=found.repeated,
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
    if run.retry.handed_over:
        return f"in place of {run.resolved.instead_of}, at a limit of its model's provider"
    return None if run.resolved.chosen is None else run.resolved.chosen.text


def _next_of(run: Run) -> str:
    waits = run.approval
    if waits is not None and waits.answer is None:
        return f"it begins when the user allows it: subagents answer {waits.id} --decision approve"
    return "its end comes to your inbox once; no need to poll"


def thread_id(run: Run) -> str | None:
    """The thread that the run's session is bound to: named by its first run; None = to none."""
    return run.root if run.spec.thread else None


# -- parts of a run -----------------------------------------------------------------------------


def verification(run: Run) -> wire.Verification | None:
    """``passed``, ``failed`` or ``skipped`` (never ran, or could not check); None = no contract.

    While a run with a contract is not settled it is None too: nothing is known yet.
    """
    found = run.verification.result
    if found is None:
        if run.spec.verification is None or run.outcome is None:
            return None
        return wire.Verification(status="skipped", changes=changes(run))
    return made(
        wire.Verification,
        status=_verdict(found.verdict),
        checks=found.checks,
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


def artifacts(run: Run) -> list[wire.ResultFile]:
    """The contract's files, then those the worker reported; ``verified`` = a check passed."""
    # A check that passed before the work began proves nothing about it.
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
    """What its worker claims about its work; None = nothing yet."""
    newest = run.attempts[-1] if run.attempts else None
    said = run.report or (newest.reported.report if newest else None)
    text = run.result or (newest.evidence.result if newest else None)
    return _claim(said, text)


def _claim(said: Report | None, text: str | None) -> wire.Claim | None:
    if said is not None:
        return made(wire.Claim, said, summary=_first_line(said.summary))
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
    # Numbers count from 1, so this is the attempt after it.
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


def wait(run: Run, around: Surroundings) -> wire.Wait | None:
    """What it waits for, as data; None = it is at work, or has ended."""
    cause = around.cause(run)
    if cause is None:
        return None
    is_lane = cause.kind is WaitKind.LANE
    # In a cluster all nodes use the lane's slots, and this one counts only its own.
    lane = around.lane(run) if is_lane and not around.is_cluster else None
    refusal = cause.refusal
    runs: Sequence[LinkedRun | Run] = cause.runs
    # While a provider refuses, one run tries whether it still does; the others wait for that one.
    if refusal is not None and refusal.probe is not None and refusal.probe != run.id:
        probe = around.open_run(refusal.probe)
        runs = () if probe is None else (probe,)
    return made(
        wire.Wait,
        cause,
        name=_waited_name(run, cause),
        status=None if refusal is None else refusal.status,
        runs=[each for each in map(named, runs) if each is not None],
        runs_total=max(cause.runs_total, len(runs)),
        root=_root(around.root(cause)),
        place=around.place(run),
        used=None if lane is None else lane.used,
        slots=run.resolved.lane_slots if is_lane else None,
    )


def _waited_name(run: Run, cause: WaitCause) -> str | None:
    if cause.refusal is not None:
        return cause.refusal.provider
    step = run.resolved.step
    if cause.kind is WaitKind.PLAN and step is not None:
        return step.name or step.plan
    return run.resolved.lane if cause.kind is WaitKind.LANE else None


def _root(value: Root | None) -> wire.WaitRoot | None:
    if value is None:
        return None
    run, cause = value
    name = _waited_name(run, cause) if isinstance(run, Run) and cause is not None else None
    return made(wire.WaitRoot, named(run), kind=None if cause is None else cause.kind, name=name)


def attempt(run: Run, value: Attempt) -> wire.Attempt:
    """One try at a run."""
    evidence, reported_by = value.evidence, "text" if value.reported.is_text else "tool"
    return made(
        wire.Attempt,
        value.times,
        attempt_id=attempt_id(run.id, value.number),
        number=value.number,
        session_key=value.session.key,
        retry_of=attempt_before(run.id, value.number),
        retry_reason=value.retry.reason,
        verification_retry=value.retry.verifies,
        turns=value.turn.number,
        resumes=value.session.resumes,
        node=value.node,
        pid=value.turn.pid,
        outcome=value.outcome,
        exit_code=evidence.exit.code if evidence.exit else None,
        exit_signal=evidence.exit.signal if evidence.exit else None,
        stop_cause=evidence.stop,
        stderr_tail=evidence.stderr_tail,
        usage=reported(value.usage),
        report=value.reported.report,
        report_from=None if value.reported.report is None else reported_by,
        report_problem=value.reported.problem,
        claim=_claim(value.reported.report, evidence.result),
        verdict=_verdict_of(run, value),
    )


def delivery(value: Delivery | None) -> wire.Delivery | None:
    if value is None:
        return None
    return made(wire.Delivery, value, tries=[delivery_try(each) for each in value.tries])


def delivery_try(value: DeliveryTry) -> wire.DeliveryTry:
    came_to = document_of(value.outcome)
    return made(wire.DeliveryTry, value, tried_at=iso(value.at_ms), outcome=came_to)


def without_secrets(value: Mapping[str, object]) -> Document:
    """What a spawn came to, as a document, with the secrets in its agent's options hidden."""
    # A judge is resolved as an agent of its own, with its own options.
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


def reported(value: Usage | None) -> Usage | None:
    """The usage; None when nothing was reported."""
    return None if value == Usage() else value


def own_usage(run: Run) -> Usage | Spent | None:
    """What the run's own attempts used; None when nothing was reported."""
    found = reported(spending.total_usage(run))
    if found is None or not spending.is_cost_unknown(run):
        return found
    return Spent(**msgspec.structs.asdict(found), cost_unknown_runs=1)


# -- its worktree -------------------------------------------------------------------------------


def workspace_of(run: Run) -> wire.Workspace | None:
    """The worktree of a run that has one; ``kept`` is None until the run is over."""
    tree = run.resolved.worktree
    if tree is None:
        return None
    found = run.remains.changes
    is_kept = bool(run.attempts) and (found is None or not found.is_clean)
    return made(
        wire.Workspace,
        tree,
        isolation="worktree",
        kept=is_kept if run.is_settled else None,
        changes=changes(run),
    )


def changes(run: Run) -> wire.Changes | None:
    """What a run with a worktree changed; out of scope = not named by its contract."""
    tree, found = run.resolved.worktree, run.remains.changes
    if tree is None or found is None:
        return None
    wanted = run.spec.verification.artifacts if run.spec.verification else ()
    prefix = workspace.prefix_of(tree, run.resolved.cwd)
    outside = workspace.out_of_scope(found, [each.path for each in wanted], prefix)
    # A glob of the contract names files that ``out_of_scope`` cannot know by their path.
    globs = [pattern_of(each.path, field="path") for each in wanted if each.is_glob]
    globs += [
        pattern_of(text, field="path", whole_directories=True)
        for text in (run.spec.verification.must_change if run.spec.verification else ())
    ]
    outside = tuple(
        path
        for path in outside
        if not any(glob.matches(path.removeprefix(prefix)) for glob in globs)
    )
    gone = [each.path for each in found.changed if each.kind is workspace.ChangeKind.DELETED]
    return made(
        wire.Changes,
        found,
        summary=workspace.summary(found),
        deleted_files=found.deleted,
        deleted=gone,
        out_of_scope=outside,
    )


# -- every field of every answer about a run ----------------------------------------------------


def _cancellation(run: Run) -> wire.Cancellation | None:
    found = run.control.cancel
    return None if found is None else made(wire.Cancellation, found, requested_at=iso(found.at_ms))


def _planned(run: Run, *, of_turn: bool) -> str | None:
    """When it, or its turn, is ended, as somebody asked."""
    found = run.planned
    is_so = found is not None and (found.of_turn is not None) is of_turn
    return iso(found.due_ms) if found is not None and is_so else None


def _why(run: Run, now_ms: int, around: Surroundings | None) -> str:
    if around is None:
        return why_now(run, now_ms)
    return why_now(run, now_ms, lane=around.lane_of(run), is_cluster=around.is_cluster)


OF_RUN: Final[Mapping[str, Callable[[Run], object]]] = {
    # Who it is, and where.
    "run_id": lambda run: run.id,
    "label": lambda run: run.resolved.label,
    "agent_id": lambda run: run.resolved.agent_id,
    "chosen": chosen,
    "runtime": lambda run: run.resolved.runtime,
    "mode": lambda run: run.resolved.mode,
    "model": lambda run: run.resolved.model,
    "directory": lambda run: run.resolved.project,
    "task": lambda run: shortened(run.spec.task, ROW_TASK_CHARS_MAX),
    "tags": lambda run: run.spec.tags,
    "requester": lambda run: run.requester,
    "requester_run": lambda run: run.lineage.requester_run,
    "depth": lambda run: run.lineage.depth,
    "plan_id": lambda run: None if (step := run.resolved.step) is None else step.plan,
    "plan_name": lambda run: None if (step := run.resolved.step) is None else step.name,
    "session_key": lambda run: run.session_key,
    "child_session_key": lambda run: run.session.first_key,
    "native_session": lambda run: run.native_session,
    "thread_id": thread_id,
    "retry_from": lambda run: run.lineage.retry_from,
    "continues": lambda run: None if (it := run.session.continues) is None else it.run_id,
    "continued_by": lambda run: run.session.continued_by,
    "dependencies": lambda run: tuple(run.waiting.dependencies),
    "children": lambda run: tuple(run.children),
    "children_active": lambda run: run.children.active,
    "children_total": lambda run: len(run.children),
    "below": lambda _: None,
    # What it was given.
    "spec": lambda run: _with_defaults(run.spec),
    "original_spawn_params": lambda run: document_of(run.spec),
    "resolved": lambda run: without_secrets(_with_defaults(run.resolved)),
    "granted": lambda run: shown(wire.Granted, run),
    "resolved_model": lambda run: run.resolved.model,
    "effective_tools": lambda run: run.resolved.effective_tools,
    "tools_deny": lambda run: run.resolved.tools_deny,
    "mcp_servers": lambda run: run.resolved.mcp_servers,
    "access": lambda run: run.resolved.access,
    "cwd": lambda run: run.resolved.cwd,
    "attempts_max": lambda run: max(run.spec.attempts_max, len(run.attempts)),
    "overshoot": lambda run: budgets.overshoot(run.spec.budget, run.resolved.abilities),
    # Where it stands.
    "phase": lambda run: run.phase,
    "run_status": run_status,
    "state": state_of,
    "paused": lambda run: run.control.paused,
    "cancel": _cancellation,
    "cancel_at": lambda run: _planned(run, of_turn=False),
    "interrupt_at": lambda run: _planned(run, of_turn=True),
    "latest_progress": lambda run: messages.progress(run.progress.latest),
    "pending_request_count": lambda run: len(run.pending_requests),
    "blocked_reason": lambda run: next((each.question for each in run.pending_requests), None),
    "requests": lambda run: [messages.request(run, each) for each in run.questions.requests],
    "attempt": lambda run: len(run.attempts),
    "attempts": lambda run: [attempt(run, each) for each in run.attempts],
    "retries_used": lambda run: run.retry.used + retries_after_checks(run),
    # When.
    "created_at": lambda run: iso(run.times.created_at_ms),
    "started_at": lambda run: iso_or_none(run.times.started_at_ms),
    "ended_at": lambda run: iso_or_none(run.ended_at_ms),
    "phase_since_at": lambda run: iso(run.times.phase_since_ms),
    "retry_due_at": lambda run: iso_or_none(run.retry.due_ms),
    "deadline_at": lambda run: iso_or_none(run.attempt.times.deadline_ms) if run.attempts else None,
    "wait_deadline_at": lambda run: iso_or_none(run.waiting.deadline_ms),
    "retry_attempted_at": lambda run: iso_or_none(run.verification.retried_at_ms),
    "read_at": lambda run: iso_or_none(
        run.verification.dismissed_at_ms or run.announcement_consumed_ms
    ),
    "dismissed_at": lambda run: iso_or_none(run.verification.dismissed_at_ms),
    "announcement_consumed_at": lambda run: iso_or_none(run.announcement_consumed_ms),
    "archived_at": lambda run: iso_or_none(run.times.archived_at_ms),
    # What it used.
    "usage": own_usage,
    "subtree_usage": lambda run: spending.spent(run) if run.children else None,
    # How it ended, and what proves it.
    "outcome": lambda run: run.outcome,
    "claim": claim,
    "verdict": verdict,
    "vacuous": lambda run: run.verification.vacuous,
    "verification": verification,
    "verification_state": lambda run: run.verification.state,
    "result": lambda run: run.result,
    "result_bytes": result_bytes,
    "truncated": lambda run: run.conclusion is not None and run.conclusion.is_cut,
    "kept_bytes": lambda run: 0 if run.conclusion is None else run.conclusion.bytes_kept,
    "report": lambda run: run.report,
    "artifacts": artifacts,
    "last_words": lambda run: run.remains.words,
    "files_left": lambda run: run.remains.files,
    "workspace": workspace_of,
    "delivery": lambda run: delivery(run.delivery),
    "message_id": lambda run: announcement_id(run.id),
    "announcement": announcement_text,
}
"""What is in the run: the answers about runs differ in which of it they have."""


def took_ms(run: Run, now_ms: int, _: Surroundings | None = None) -> int | None:
    """How long it has been at work."""
    # Never negative: the machine's clock may have been set back meanwhile.
    began_ms = run.times.started_at_ms
    return None if began_ms is None else max((run.ended_at_ms or now_ms) - began_ms, 0)


RANKS: Final[Mapping[str, Callable[[Run, int], float | None]]] = {
    "cost": lambda run, _: spending.spent(run).cost_usd,
    "took": took_ms,
    "tokens": lambda run, _: spending.spent(run).tokens,
}
"""What lists can be in the order of, the greatest first: as rows show it, with what is below."""
AROUND: Final[Mapping[str, Callable[[Run, int, Surroundings | None], object]]] = {
    "why": _why,
    "budget": lambda run, now_ms, _: budgets.view(run, now_ms),
    "took_ms": took_ms,
    "wait": lambda run, _, around: around and wait(run, around),
    "last_sign_at": lambda run, _, around: around and iso_or_none(around.last_sign_ms(run)),
    "charged_to": lambda run, _, around: around and named(around.charged_to(run)),
}
"""What is known with the clock, or from other runs."""
