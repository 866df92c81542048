"""Why a run is where it is, in words: one sentence for now, one line per event for the past.

Pure: a run, its journal and the time go in, text comes out. No word here decides anything.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, assert_never

from subagents.config.settings import DEFAULT_LANE
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.admission import LaneUse
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.deadlines import timer_event
from subagents.domain.rules.retry import resumes, retries_after_checks
from subagents.domain.rules.wait_causes import is_paused
from subagents.domain.run import events
from subagents.domain.run.outcome import DeferReason, Reason
from subagents.domain.run.run import Phase, Priority, Request, Run, StopCause
from subagents.domain.text.event_words import (
    brief,
    delivery_text,
    is_detail,
    label_list,
    outcome_text,
    person,
    sentence,
)
from subagents.ports import JournalEntry
from subagents.text import counted, duration


class Step(NamedTuple):
    """One line of a run's history."""

    at_ms: int
    text: str
    is_detail: bool = False
    """Whether the story is told without it."""


class Folded(NamedTuple):
    """A journal entry, and the run before and after it."""

    entry: JournalEntry
    before: Run | None
    run: Run
    stale: bool


def fold(entries: Iterable[JournalEntry], run: Run | None = None) -> Iterator[Folded]:
    """Play entries back in order, from the first one or on from ``run``.

    Raises:
        IllegalTransition: The journal is not one this version wrote.
    """
    for entry in entries:
        step = reduce(run, entry.event)
        yield Folded(entry=entry, before=run, run=step.run, stale=step.stale)
        run = step.run


# -- now ----------------------------------------------------------------------------------------


def why_now(
    run: Run,
    now_ms: int,
    *,
    lane: LaneUse | None = None,
    paused_by: str | None = None,
    is_cluster: bool = False,
) -> str:
    """One sentence: why the run is in its phase, and until when.

    Args:
        run: The run.
        now_ms: The time.
        lane: The load of the run's lane, when it is known.
        paused_by: The session that paused it, when that is known.
        is_cluster: Whether the node it works on is worth a word.
    """
    text = named(run, _in_its_phase(run, now_ms, lane, paused_by, is_cluster=is_cluster))
    if run.planned is None:
        return text
    does = "cancels it" if run.planned.of_turn is None else "ends its turn"
    return f"{text}; {person(run.planned.by)} {does} in {_left(run.planned.due_ms, now_ms)}"


_NAMES_RUNS: Final = frozenset({Reason.DEPENDENCY_FAILED, Reason.DEPENDENCY_TIMEOUT})


def named(run: Run, text: str) -> str:
    """The text with the labels of the runs that it waited for, in the place of their ids."""
    if run.outcome is None or run.outcome.reason not in _NAMES_RUNS:
        return text
    for each in run.waiting.dependencies:
        if each.run_id in text:
            text = text.replace(each.run_id, f'"{each.label}"')
    return text


def _in_its_phase(  # noqa: C901, PLR0912 - one sentence per phase
    run: Run, now_ms: int, lane: LaneUse | None, paused_by: str | None, *, is_cluster: bool
) -> str:
    # Before the phases: whatever phase it is in, a paused run waits for nothing else.
    if is_paused(run):
        who = f" by {person(paused_by)}" if paused_by else ""
        return f"paused{who}; it continues after: subagents resume {run.id}"
    match run.phase:
        case Phase.WAITING:
            return _waiting(run, now_ms)
        case Phase.QUEUED:
            return _queued(run, lane)
        case Phase.SPAWNING:
            return _spawning(run, is_cluster=is_cluster)
        case Phase.RUNNING:
            return _running(run, now_ms, is_cluster=is_cluster)
        case Phase.ENDING:
            return _ending(run)
        case Phase.VERIFYING:
            return _verifying(run)
        case Phase.RETRY_WAIT:
            return _retry_wait(run, now_ms)
        case Phase.ANNOUNCING:
            tries = (run.delivery.tries_total if run.delivery else 0) + 1
            told = f"telling {person(run.requester)} (delivery try {tries})"
            return f"{outcome_text(run.outcome)}; {told}"
        case Phase.ANNOUNCE_DEFERRED:
            return _deferred(run, now_ms)
        case Phase.CLEANUP_PENDING:
            return f"{outcome_text(run.outcome)}; delivered, cleaning up"
        case Phase.COMPLETED:
            return _completed(run)
        case Phase.COMPLETED_GIVEUP:
            return _given_up(run)
        case _:
            assert_never(run.phase)


def _waiting(run: Run, now_ms: int) -> str:
    if run.approval is not None and run.approval.answer is None:
        return _asks(run.approval, now_ms)
    labels = [each.label for each in run.waiting.dependencies if each.outcome is None]
    noun = "run" if len(labels) == 1 else f"{len(labels)} runs"
    text = f"waits for {noun} {label_list(labels)}"
    if run.waiting.deadline_ms is None:
        return text
    return f"{text}, for at most {_left(run.waiting.deadline_ms, now_ms)} more"


def _queued(run: Run, lane: LaneUse | None) -> str:
    name = run.resolved.lane
    where = "" if name == DEFAULT_LANE else f' in lane "{name}"'
    if lane is None:
        return f"waits for a free slot{where} ({run.resolved.lane_slots} slots)"
    if lane.limit is not None:
        return lane.limit
    # In a cluster each node is given a part of the lane's slots.
    if lane.given is not None and lane.given <= lane.used:
        slots = counted(lane.slots, "slot")
        return f"no free slot{where}: the cluster has {slots}, of which {lane.given} here"
    if lane.used < lane.slots:
        return f"about to get a slot{where} ({lane.used}/{lane.slots} used)"
    return f"no free slot{where} ({lane.used}/{lane.slots} used)"


def _spawning(run: Run, *, is_cluster: bool) -> str:
    # No node has taken the attempt yet.
    if is_cluster and run.attempt.node is None:
        label = run.resolved.place
        with_label = "" if label is None else f' with the label "{label}" and'
        return f"waits for a node{with_label} with a free slot, for attempt {run.attempt.number}"
    runtime = run.resolved.runtime
    where = f" on {run.attempt.node}" if is_cluster else ""
    text = f'runtime "{runtime}"{where} was told to start attempt {run.attempt.number}'
    return f"{text}; not yet confirmed"


def _running(run: Run, now_ms: int, *, is_cluster: bool) -> str:
    stop = run.attempt.evidence.stop
    if stop is not None:
        return f"{_stopping(run, stop)}; attempt {run.attempt.number} is being stopped"
    if run.pending_requests:
        return _asks(run.pending_requests[0], now_ms)
    text = f"{_attempt(run, is_cluster=is_cluster)} is working"
    if run.attempt.times.deadline_ms is not None:
        text += f", for at most {_left(run.attempt.times.deadline_ms, now_ms)} more"
    if run.children.active:
        text += f"; {_children(run)}"
    return text


def _stopping(run: Run, stop: StopCause) -> str:
    match stop:
        case StopCause.CANCEL | StopCause.PARENT | StopCause.STUCK:
            return _cancelled(run)
        case StopCause.DEADLINE:
            return "its deadline passed"
        case StopCause.BUDGET:
            found = run.budget.stop
            return brief(budgets.why(run, found)) if found else "its budget is used up"
        case StopCause.INTERRUPT:
            return "interrupted"
        case StopCause.PROVIDER:
            return "its provider refused it until its deadline; it will try again"
        case _:
            assert_never(stop)


def _cancelled(run: Run) -> str:
    cancel = run.control.cancel
    if cancel is None:
        return "cancelled"
    reason = f" ({brief(cancel.reason)})" if cancel.reason else ""
    return f"cancelled by {person(cancel.by)}{reason}"


def _asks(request: Request, now_ms: int) -> str:
    if request.by_spawn:
        text = f'waits for a yes: "{brief(request.question)}" (subagents answer {request.id} '
        text += "--decision approve"
        if request.deadline_ms is None:
            return f"{text})"
        return f"{text}; no answer in {_left(request.deadline_ms, now_ms)} is a no)"
    verb = "is blocked" if request.priority is Priority.BLOCKER else "asks"
    text = f'{verb}: "{brief(request.question)}" (subagents answer {request.id} TEXT'
    if request.deadline_ms is None:
        return f"{text})"
    then = "its default answer is taken" if request.default_answer is not None else "it times out"
    return f"{text}; {then} in {_left(request.deadline_ms, now_ms)})"


def _ending(run: Run) -> str:
    if run.children.active:
        reason = DeferReason.DESCENDANTS_ACTIVE
        return f"its own work is done; it waits for {_children(run)} [{reason}]"
    if run.control.cancel is not None:
        return f"{_cancelled(run)}; what it left is being read"
    if run.attempt.outcome is None:
        return f"attempt {run.attempt.number} ended; its output is read to the end"
    return f"attempt {run.attempt.number} ended; a follow-up turn is being started"


def _children(run: Run) -> str:
    labels = [child.label for child in run.active_children]
    noun = "sub-agent" if len(labels) == 1 else "sub-agents"
    return f"{len(labels)} active {noun} ({label_list(labels)})"


def _verifying(run: Run) -> str:
    # A judge is a run, too: the last check, once all the others have passed.
    judge = next((each for each in run.active_children if each.judges is not None), None)
    if judge is None:
        return f"its contract is being checked ({_contract(run)})"
    passed = counted(len(run.verification.passed), "check")
    asked = "" if run.resolved.judge is None else f"agent {run.resolved.judge.agent_id} "
    if run.control.cancel is not None:
        return f"cancelled; its judge, run {judge.run_id}, is ending"
    return f"{passed} passed; {asked}judges it as run {judge.run_id}"


def _contract(run: Run) -> str:
    contract = run.spec.verification
    changes = 0 if contract is None else len((*contract.must_change, *contract.must_not_change))
    if contract is None:
        return "no checks"
    parts = [
        counted(len(contract.artifacts), "artifact") if contract.artifacts else "",
        counted(changes, "path") if changes else "",
        counted(len(contract.commands), "command") if contract.commands else "",
        "a completion report" if contract.require_completion_report else "",
        f"the judgement of agent {contract.judge.agent_id}" if contract.judge else "",
    ]
    return ", ".join(part for part in parts if part)


def _retry_wait(run: Run, now_ms: int) -> str:
    due = "due" if run.retry.due_ms is None else f"due in {_left(run.retry.due_ms, now_ms)}"
    limited = run.retry.limited
    if limited is not None:
        times = f" (wait {limited.waits})" if limited.waits > 1 else ""
        going = "continues" if resumes(run) is not None else "one more attempt"
        return f"waiting for its model's provider: {brief(limited.text)}; {going}, {due}{times}"
    reason = brief(run.retry.cause.reason or "the attempt before failed")
    if run.retry.cause.verifies:
        most, number = run.spec.retry_until_verified, retries_after_checks(run) + 1
        where = "" if resumes(run) is None else " in its session"
        what = f"retry {number} of {most}{where}" if most else "one more attempt"
        return f"{what} {due} because verification failed: {reason}"
    if run.attempts and run.attempt.handed_over < run.retry.handed_over:
        return f"one more attempt {due}: {reason}"
    return f"retry {run.retry.used} of {run.spec.retry_count} {due} because: {reason}"


def _deferred(run: Run, now_ms: int) -> str:
    delivery = run.delivery
    if delivery is None or not delivery.tries:
        return f"{outcome_text(run.outcome)}; its delivery is deferred"
    newest = delivery.tries[-1]
    until = "" if delivery.due_ms is None else f" for {_left(delivery.due_ms, now_ms)}"
    return (
        f"{outcome_text(run.outcome)}; delivery to {person(newest.target)} deferred{until} because "
        f"{delivery_text(newest.outcome)} (try {delivery.tries_total})"
    )


def _completed(run: Run) -> str:
    text = outcome_text(run.outcome)
    if run.verification.proves_nothing:
        text += ", but its contract was met before the work (vacuous)"
    if run.lineage.judges is not None:
        return f"{text}; that was for the contract of run {run.lineage.requester_run}"
    consumed = run.announcement_consumed_ms is not None
    text += "; the result was taken" if consumed else "; the result waits in the inbox"
    if run.session.continued_by is not None:
        text += f"; run {run.session.continued_by} continues its session"
    return f"{text}; archived" if run.times.archived_at_ms is not None else text


def _given_up(run: Run) -> str:
    tries = run.delivery.tries if run.delivery else ()
    because = f" because {delivery_text(tries[-1].outcome)}" if tries else ""
    number = run.delivery.tries_total if run.delivery else 0
    return (
        f"{outcome_text(run.outcome)}; its delivery was given up after "
        f"{counted(number, 'try', 'tries')}{because}; the result is kept"
    )


def _attempt(run: Run, *, is_cluster: bool) -> str:
    of = f" of {run.spec.attempts_max}" if run.spec.attempts_max > 1 else ""
    where = f" on {run.attempt.node}" if is_cluster and run.attempt.node else ""
    return f"attempt {run.attempt.number}{of}{where}"


# -- the past -----------------------------------------------------------------------------------


def steps_of(folded: Folded) -> list[Step]:
    """The line of one event, followed by what it led to."""
    at_ms, event = folded.entry.at_ms, _with_cause(folded)
    text = sentence(event, folded.run)
    if folded.stale:
        return [Step(at_ms, f"{text} (late or doubled: changed nothing)", is_detail=True)]
    return [Step(at_ms, text, is_detail(event)), *(Step(at_ms, *line) for line in _led_to(folded))]


def _with_cause(folded: Folded) -> events.Event:
    """Timers in journals of 0.1.0 name no cause: the same deadlines are in the run as it was."""
    event, before = folded.entry.event, folded.before
    if isinstance(event, events.TimerFired) and event.cause is None and before is not None:
        return timer_event(before, event.at_ms) or event
    return event


def _led_to(folded: Folded) -> list[tuple[str, bool]]:
    """What changed besides the event itself, and whether it is a detail."""
    before, run = folded.before, folded.run
    if before is None:
        return []
    entered = _entered(before, run, folded.entry.at_ms) if before.phase is not run.phase else []
    return [*((text, False) for text in _read_in_text(before, run)), *entered]


def _read_in_text(before: Run, run: Run) -> list[str]:
    """What the end of the attempt found in its text."""
    # A report through the tool is an event of its own; this one only shows in the attempt.
    if not run.attempts or not before.attempts or run.attempt == before.attempt:
        return []
    now, then = run.attempt.reported, before.attempt.reported
    if now.problem is not None and now.problem != then.problem:
        return [f"no report: {brief(now.problem)}"]
    if now.report is not None and now.is_text and now.report != then.report:
        return [f'its text reports {now.report.status}: "{brief(now.report.summary)}"']
    return []


def _entered(before: Run, run: Run, at_ms: int) -> list[tuple[str, bool]]:
    match run.phase:
        case Phase.QUEUED:
            return [(f'queued in lane "{run.resolved.lane}"', True)]
        case Phase.ENDING if run.children.active:
            return [(f"its own work is done; waits for {_children(run)}", False)]
        case Phase.VERIFYING:
            return [(f"verifying ({_contract(run)})", True)]
        case Phase.RETRY_WAIT:
            return [(_retry_wait(run, at_ms), False)]
        case Phase.ANNOUNCING if before.outcome is None:
            return [(outcome_text(run.outcome), False)]
        case Phase.ANNOUNCE_DEFERRED if run.delivery and run.delivery.due_ms is not None:
            return [(f"next delivery try in {_left(run.delivery.due_ms, at_ms)}", True)]
        case Phase.COMPLETED_GIVEUP:
            return [("delivery given up; the result is kept", False)]
        case _:
            return []


# -- words --------------------------------------------------------------------------------------


def _left(due_ms: int, now_ms: int) -> str:
    return duration(max(due_ms - now_ms, 0))
