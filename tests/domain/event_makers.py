"""Random but plausible lives: any event at any time, with a leaning to those the phase expects."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import RUN, Life, a_contract, a_dependency, a_resolved, a_try, a_verification

from subagents.domain.lifecycle.transitions import TRANSITIONS
from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.run.alert import Alert, AlertKind, AlertRules, OnStuck
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.events import (
    EVENT_TYPES,
    Alerted,
    AnnouncementConsumed,
    Archived,
    AttemptPlaced,
    AttemptStarted,
    AttemptStartFailed,
    AttemptTakenOver,
    BaselineTaken,
    BudgetExhausted,
    CallRefused,
    CancelPlanned,
    CancelRequested,
    CancelWithdrawn,
    ChecksPassed,
    ChildAlerted,
    ChildReturned,
    ChildSettled,
    ChildSpawned,
    ChildSpent,
    ChildTold,
    CleanedUp,
    ClockStepped,
    Continued,
    DeliverySettled,
    DependencySettled,
    Dismissed,
    Event,
    FannedOut,
    FilesLeft,
    InterruptRequested,
    LeaseExpired,
    ParentNotified,
    Paused,
    Prioritized,
    ProviderClosed,
    Redelivered,
    Repaired,
    RequestAnswered,
    RequestAsked,
    RequestHeld,
    Resumed,
    SignalReceived,
    SlotGranted,
    SteerRequested,
    SteerSettled,
    TimerFired,
    TokenIssued,
    VerificationFinished,
    WorktreePlanned,
)
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.outcome import (
    OK,
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Outcome,
    Reason,
    Skipped,
    SkipReason,
    Status,
    Verdict,
)
from subagents.domain.run.run import (
    Answer,
    BudgetStop,
    Decision,
    Exit,
    Phase,
    Priority,
    Progress,
    Report,
    ReportStatus,
    Request,
    Run,
)
from subagents.domain.run.signals import (
    Exited,
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.spec import (
    Abilities,
    Backoff,
    Budget,
    ForEach,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.domain.run.usage import Amounts, Committed, Spent, Usage
from subagents.domain.run.values import RequestId, RunId, SessionKey
from subagents.domain.run.workspace import Worktree
from subagents.errors import IllegalTransition

STEPS_MAX: Final = 40

CHILDREN: Final = tuple(RunId(f"r-c{n:09}") for n in (1, 2))
ERROR: Final = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="exit code 1")
OUTCOMES: Final = (OK, ERROR, Outcome(status=Status.PARTIAL), Outcome(status=Status.CANCELLED))
DELIVERIES: Final[tuple[DeliveryOutcome, ...]] = (
    Delivered(path=DeliveryPath.DIRECT),
    Deferred(reason=DeferReason.REQUESTER_BUSY),
    Skipped(reason=SkipReason.SILENT),
    DeliveryFailed(retryable=True, error="refused"),
    DeliveryFailed(retryable=False, error="gone"),
)
SIGNALS: Final[tuple[Signal, ...]] = (
    *(Exited(key="exit", exit=Exit(code=0), drained=True),) * 8,
    *(Exited(key="exit", exit=Exit(code=0), drained=False),) * 2,
    Exited(key="exit", exit=Exit(code=1), drained=True),
    Exited(key="exit", exit=Exit(signal=9), drained=True),
    Exited(key="exit", exit=Exit(), drained=True),
    ResultSeen(key="result", text="done"),
    ResultSeen(key="result", text="", is_error=True, error="broke"),
    ReportSeen(key="report", report=Report(summary="half", status=ReportStatus.PARTIAL)),
    ReportSeen(key="report", report=Report(summary="no", status=ReportStatus.FAILED)),
    UsageSeen(key="usage", usage=Usage(tokens_in=5)),
    UsageSeen(key="usage", usage=Usage(tokens_in=300, tokens_out=200, cost_usd=0.5)),
    UsageSeen(key="usage", usage=Usage(tokens_out=1_200, cost_usd=6.0)),
    ProgressSeen(key="progress", progress=Progress(phase="half")),
    ToolSeen(key="tool", name="bash"),
    Vanished(key="vanished", error="gone"),
)

DIGESTS: Final = (None, "x", "y")
VERDICTS: Final = (*(Verdict.FAILED,) * 4, Verdict.PASSED, Verdict.COULD_NOT_CHECK)

Maker = Callable[[DataObject, Run, int], Event]


def _attempt(data: DataObject, run: Run) -> int:
    """Mostly the newest attempt, now and then one before or after it."""
    newest = len(run.attempts)
    return max(1, newest + data.draw(st.sampled_from((*(0,) * 7, -1, 1)), label="attempt"))


def _request(run: Run, at_ms: int) -> Request:
    return Request(
        id=RequestId(f"{RUN}:q{len(run.questions.requests) + 1}"),
        attempt=len(run.attempts),
        question="which?",
        asked_at_ms=at_ms,
        deadline_ms=at_ms + 30_000,
    )


def _started(data: DataObject, run: Run, at_ms: int) -> Event:
    expected = 1 if run.phase is Phase.SPAWNING or not run.attempts else run.attempt.turn.number + 1
    turn = expected + data.draw(st.sampled_from((0, 0, 0, 0, 1)), label="turn")
    return AttemptStarted(at_ms=at_ms, attempt=_attempt(data, run), turn=turn)


def _child(run: Run) -> Child:
    number = len(run.children) + 1
    return Child(run_id=RunId(f"r-c{number:09}"), label=f"child{number}")


def _child_spent(data: DataObject, at_ms: int) -> Event:
    tokens, runs = data.draw(st.sampled_from((0, 100, 400, 950))), data.draw(st.integers(1, 3))
    return ChildSpent(
        at_ms=at_ms,
        child=data.draw(st.sampled_from(CHILDREN)),
        spent=Spent(tokens_in=tokens, cost_usd=tokens / 1000, runs=runs),
        committed=Committed(tokens=tokens + 50, cost_usd=tokens / 500, runs=runs + 1),
    )


LOST = Outcome(status=Status.LOST, reason=Reason.RECORD_LOST, error="its record was lost")

MAKERS: Final[dict[type, Maker]] = {
    DependencySettled: lambda d, r, t: DependencySettled(
        at_ms=t,
        run_id=a_dependency(d.draw(st.integers(1, 2))).run_id,
        outcome=d.draw(st.sampled_from(OUTCOMES)),
    ),
    FannedOut: lambda d, r, t: FannedOut(
        at_ms=t,
        items=d.draw(st.sampled_from((0, 1))),
        error=d.draw(st.sampled_from((None, None, "no list"))),
    ),
    SlotGranted: lambda d, r, t: SlotGranted(
        at_ms=t,
        session_key=SessionKey(f"agent:worker:subagent:u{len(r.attempts) + 1}"),
        token_hash=f"{len(r.attempts) + 1:064}",
        node=d.draw(st.sampled_from((None, "box-1"))),
    ),
    ProviderClosed: lambda _d, _r, t: ProviderClosed(at_ms=t, why="x: 429 for 3d"),
    AttemptPlaced: lambda d, r, t: AttemptPlaced(
        at_ms=t, attempt=_attempt(d, r), node=d.draw(st.sampled_from(("box-1", "box-2")))
    ),
    WorktreePlanned: lambda d, r, t: WorktreePlanned(
        at_ms=t,
        worktree=Worktree(
            repository="/r",
            path=f"/trees/{r.seq}",
            branch="subagents/x",
            origin="/r",
            node=d.draw(st.sampled_from(("box-1", "box-2"))),
        ),
        cwd=f"/trees/{r.seq}",
    ),
    TokenIssued: lambda d, r, t: TokenIssued(
        at_ms=t, attempt=_attempt(d, r), token_hash=f"{r.seq:064}"
    ),
    FilesLeft: lambda d, r, t: FilesLeft(
        at_ms=t,
        attempt=_attempt(d, r),
        files=Baseline(unknown=d.draw(st.sampled_from(((), ("out.txt",))))),
    ),
    BaselineTaken: lambda d, r, t: BaselineTaken(
        at_ms=t,
        attempt=d.draw(st.sampled_from((0, _attempt(d, r)))),
        baseline=Baseline(unknown=d.draw(st.sampled_from(((), ("out.txt",))))),
        vacuous=d.draw(st.booleans()),
    ),
    AttemptStarted: _started,
    AttemptTakenOver: lambda d, r, t: AttemptTakenOver(at_ms=t, attempt=_attempt(d, r), epoch=2),
    AttemptStartFailed: lambda d, r, t: AttemptStartFailed(
        at_ms=t, attempt=_attempt(d, r), error="cannot", permanent=d.draw(st.booleans())
    ),
    SignalReceived: lambda d, r, t: SignalReceived(
        at_ms=t, attempt=_attempt(d, r), signal=d.draw(st.sampled_from(SIGNALS))
    ),
    LeaseExpired: lambda d, r, t: LeaseExpired(at_ms=t, attempt=_attempt(d, r)),
    TimerFired: lambda d, r, t: TimerFired(at_ms=max(t, next_due_ms(r) or 0)),
    ChecksPassed: lambda d, r, t: ChecksPassed(
        at_ms=t, attempt=_attempt(d, r), checks=a_verification(Verdict.PASSED).checks
    ),
    VerificationFinished: lambda d, r, t: VerificationFinished(
        at_ms=t,
        attempt=_attempt(d, r),
        verification=a_verification(
            d.draw(st.sampled_from(VERDICTS)),
            files_found=d.draw(st.sampled_from(DIGESTS)),
            files_left=d.draw(st.sampled_from(DIGESTS)),
        ),
    ),
    CancelRequested: lambda d, r, t: CancelRequested(
        at_ms=t, by="me", cascaded=d.draw(st.booleans())
    ),
    CancelPlanned: lambda d, r, t: CancelPlanned(
        at_ms=t, by="me", due_ms=t + d.draw(st.integers(0, 5_000))
    ),
    CancelWithdrawn: lambda d, r, t: CancelWithdrawn(at_ms=t, by="me"),
    Paused: lambda d, r, t: Paused(at_ms=t, by="me"),
    Resumed: lambda d, r, t: Resumed(at_ms=t, by="me"),
    Prioritized: lambda d, r, t: Prioritized(at_ms=t, by="me", priority=d.draw(st.integers(-5, 5))),
    SteerRequested: lambda d, r, t: SteerRequested(
        at_ms=t,
        by="me",
        message="hurry",
        added=d.draw(st.none() | st.builds(Amounts, tokens=st.integers(0, 1_000))),
    ),
    SteerSettled: lambda d, r, t: SteerSettled(
        at_ms=t, number=max(1, r.control.steers_total), taken=d.draw(st.booleans())
    ),
    InterruptRequested: lambda d, r, t: InterruptRequested(at_ms=t, by="me"),
    Continued: lambda d, r, t: Continued(at_ms=t, run_id=RunId("r-later")),
    ChildSpawned: lambda d, r, t: ChildSpawned(at_ms=t, child=_child(r)),
    ChildSettled: lambda d, r, t: ChildSettled(
        at_ms=t,
        child=d.draw(st.sampled_from(CHILDREN)),
        outcome=d.draw(st.sampled_from(OUTCOMES)),
        result="c",
    ),
    ChildTold: lambda d, r, t: ChildTold(at_ms=t, child=d.draw(st.sampled_from(CHILDREN))),
    ChildReturned: lambda d, r, t: ChildReturned(
        at_ms=t,
        child=d.draw(st.sampled_from(CHILDREN)),
        attempt=max(1, len(r.attempts)),
        turn=d.draw(st.sampled_from((1, 2))),
    ),
    ChildSpent: lambda d, r, t: _child_spent(d, t),
    RequestHeld: lambda d, r, t: RequestHeld(
        at_ms=t,
        attempt=_attempt(d, r),
        usage=Usage(tokens_in=d.draw(st.sampled_from((0, 300, 900))), tokens_out=1),
        tokens=d.draw(st.sampled_from((0, 50, 400))),
        lost_tokens=d.draw(st.sampled_from((0, 0, 20))),
    ),
    BudgetExhausted: lambda d, r, t: BudgetExhausted(
        at_ms=t,
        stop=BudgetStop(by=RunId("r-parent"), label="above", used="9 of 10 tokens", at_ms=t),
    ),
    RequestAsked: lambda d, r, t: RequestAsked(at_ms=t, request=_request(r, t)),
    RequestAnswered: lambda d, r, t: RequestAnswered(
        at_ms=t,
        request_id=f"{RUN}:{d.draw(st.sampled_from(('q1', 'q2', 'n1', 'n2')))}",
        answer=Answer(decision=Decision.ANSWER, text="this", by="me", at_ms=t),
    ),
    ParentNotified: lambda d, r, t: ParentNotified(
        at_ms=t, message="look", priority=d.draw(st.sampled_from(Priority))
    ),
    DeliverySettled: lambda d, r, t: DeliverySettled(
        at_ms=t,
        record=a_try(
            d.draw(st.sampled_from(DELIVERIES)),
            t,
            (r.delivery.tries_total if r.delivery else 0) + d.draw(st.sampled_from((1, 1, 1, 0))),
        ),
    ),
    AnnouncementConsumed: lambda d, r, t: AnnouncementConsumed(
        at_ms=t, reader="me", path=DeliveryPath.PULLED
    ),
    Dismissed: lambda d, r, t: Dismissed(at_ms=t, by="me"),
    Redelivered: lambda d, r, t: Redelivered(at_ms=t, by="me"),
    CallRefused: lambda d, r, t: CallRefused(
        at_ms=t, call="GET /v1/runs/r-2/status", reason="another session's", by="me"
    ),
    Alerted: lambda d, r, t: Alerted(
        at_ms=t,
        alert=Alert(
            kind=d.draw(st.sampled_from(AlertKind)), text="news " * 20, key=f"k{r.alerts.number}"
        ),
    ),
    ChildAlerted: lambda d, r, t: ChildAlerted(
        at_ms=t, child=d.draw(st.sampled_from(CHILDREN)), text="[subagent:child1] news"
    ),
    Repaired: lambda d, r, t: Repaired(
        at_ms=t, found="its row was damaged", outcome=d.draw(st.sampled_from((None, LOST)))
    ),
    CleanedUp: lambda d, r, t: CleanedUp(at_ms=t, erased=d.draw(st.booleans())),
    ClockStepped: lambda d, r, t: ClockStepped(
        at_ms=t, by_ms=d.draw(st.sampled_from((-3_600_000, 2_000, 8 * 3_600_000)))
    ),
    Archived: lambda d, r, t: Archived(at_ms=t),
}
"""One maker for every event but ``Spawned``."""

assert {*MAKERS} == {kind for kind in EVENT_TYPES if kind.__name__ != "Spawned"}


BUDGETS: Final = (
    *(None,) * 3,
    Budget(max_tokens=1_000),
    Budget(max_tokens=10_000, max_cost_usd=1.0, max_runs=3),
    Budget(max_seconds=20),
    Budget(max_runs=2),
)


def a_life(data: DataObject) -> Life:
    """A run with random parameters, just spawned."""
    resume = data.draw(st.booleans(), label="resume")
    contract = data.draw(
        st.sampled_from((OnFailure.RETRY_ONCE, None, *OnFailure)), label="onFailure"
    )
    spec = RunSpec(
        task="do it",
        retry_count=data.draw(st.integers(0, 2), label="retryCount"),
        retry_backoff=data.draw(st.sampled_from(list(Backoff))),
        retry_until_verified=data.draw(st.sampled_from((0, 0, 3)), label="retryUntilVerified"),
        retry_afresh=data.draw(st.booleans(), label="retryAfresh"),
        verification=None if contract is None else a_contract(contract),
        on_dependency_failure=data.draw(st.sampled_from(list(OnDependencyFailure))),
        budget=data.draw(st.sampled_from(BUDGETS), label="budget"),
        for_each=data.draw(st.sampled_from((None, None, None, ForEach(run="r-list")))),
        gate=data.draw(st.sampled_from((None, None, None, "go on?"))),
    )
    resolved = a_resolved(
        abilities=Abilities(
            steer=data.draw(st.booleans(), label="steer"),
            resume=resume,
            freeze=not resume and data.draw(st.booleans(), label="freeze"),
        ),
        timeout_ms=data.draw(st.sampled_from((0, 60_000)), label="timeout"),
        alerts=AlertRules(on_stuck=data.draw(st.sampled_from(OnStuck), label="onStuck")),
    )
    waits_for = data.draw(st.integers(0, 2), label="dependencies")
    dependencies = tuple(a_dependency(number + 1) for number in range(waits_for))
    parent = data.draw(st.sampled_from((None, RunId("r-parent"))))
    return Life.begin(spec, resolved, dependencies=dependencies, requester_run=parent)


FORWARD: Final = {
    *(SlotGranted, AttemptStarted, SignalReceived, TimerFired, VerificationFinished),
    *(DependencySettled, ChildSettled, DeliverySettled, CleanedUp),
}
"""What carries a life on; drawn more often than what ends or disturbs it."""


def _weighted(phase: Phase) -> list[type]:
    expected = sorted(
        (kind for at, kind in TRANSITIONS if at is phase), key=lambda kind: kind.__name__
    )
    return [kind for kind in expected for _ in range(8 if kind in FORWARD else 1)]


EXPECTED: Final = {phase: _weighted(phase) for phase in Phase}
ANY: Final = sorted(MAKERS, key=lambda kind: kind.__name__)


def next_event(data: DataObject, life: Life) -> Event:
    """Seven of eight times one the phase expects, else any at all."""
    kinds = EXPECTED[life.phase] if data.draw(st.integers(0, 7)) else ANY
    kind = data.draw(st.sampled_from(kinds), label="event")
    at_ms = life.at_ms + data.draw(st.sampled_from((0, 1, 500, 5_000)), label="later")
    return MAKERS[kind](data, life.run, at_ms)


def lived(data: DataObject) -> Life:
    """A whole random life; illegal events are tried and leave no trace."""
    life = a_life(data)
    for _ in range(data.draw(st.sampled_from((STEPS_MAX, 10, 20)), label="steps")):
        event = next_event(data, life)
        with suppress(IllegalTransition):
            life.apply(event)
    return life
