"""Shared builders: runs that live as far as a test needs them, through the reducer alone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from subagents.domain.agents.agent_stats import Runtime, Stats, Tokens
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.run.effects import Effect, FollowUp, Transition
from subagents.domain.run.events import (
    AnnouncementConsumed,
    Archived,
    AttemptStarted,
    AttemptStartFailed,
    CancelRequested,
    ChildSettled,
    ChildSpawned,
    CleanedUp,
    DeliverySettled,
    Event,
    Paused,
    RequestAsked,
    Resumed,
    SignalReceived,
    SlotGranted,
    Spawned,
    SteerRequested,
    VerificationFinished,
)
from subagents.domain.run.linked_runs import Child, Dependency
from subagents.domain.run.outcome import (
    Check,
    CheckType,
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Outcome,
    Verdict,
    Verification,
)
from subagents.domain.run.run import (
    RULES,
    Attempt,
    AttemptSession,
    AttemptTimes,
    DeliveryTry,
    Exit,
    Message,
    Phase,
    Request,
    Run,
)
from subagents.domain.run.signals import Exited, ResultSeen, Signal
from subagents.domain.run.spec import (
    Abilities,
    Artifact,
    Contract,
    LimitStep,
    Mode,
    OnFailure,
    Resolved,
    ResolvedAgent,
    RunSpec,
)
from subagents.domain.run.values import (
    RequestId,
    RunId,
    SessionKey,
    announcement_id,
    replace,
)

T = TypeVar("T")

NOW_MS = 1_700_000_000_000
RUN = RunId("r-0000000001")
ME = SessionKey("agent:main:main")
CHILD_SESSION = SessionKey("agent:worker:subagent:u1")
ALL_ABILITIES = Abilities(steer=True, resume=True, scope_tools=True, usage=True)


def a_resolved(**changes: Any) -> Resolved:
    base = Resolved(
        agent_id="worker",
        runtime="scripted",
        mode=Mode.RUN,
        label="job",
        cwd="/tmp",
        lane="default",
        lane_slots=8,
    )
    return replace(base, **changes)


def a_record(
    name: str, *, p50_ms: int = 1000, attempts: int = 10, cost_usd: float | None = None
) -> Stats:
    """What became of an agent's attempts, as far as time and cost go."""
    return Stats(
        name=name,
        runs=attempts,
        attempt_count=attempts,
        outcomes={},
        reasons={},
        success=None,
        verified=None,
        took=Runtime(p50_ms=p50_ms, p95_ms=p50_ms),
        tokens=Tokens(input=None, output=None),
        tokens_known=0,
        cost_usd=cost_usd,
        cost_known=attempts if cost_usd is not None else 0,
    )


def a_contract(on_failure: OnFailure = OnFailure.FAIL) -> Contract:
    return Contract(artifacts=(Artifact(path="out.txt"),), on_failure=on_failure)


def a_dependency(number: int = 1, outcome: Outcome | None = None, **changes: Any) -> Dependency:
    run_id, label = RunId(f"r-d{number:09}"), f"step{number}"
    return replace(Dependency(run_id=run_id, label=label, outcome=outcome), **changes)


def spawned(
    spec: RunSpec | None = None, resolved: Resolved | None = None, **changes: Any
) -> Spawned:
    event = Spawned(
        at_ms=NOW_MS,
        run_id=RUN,
        spec=spec or RunSpec(task="do it"),
        resolved=resolved or a_resolved(),
        requester=ME,
        depth=1,
        session_key=CHILD_SESSION,
        rules=RULES,
    )
    return replace(event, **changes)


def a_verification(
    verdict: Verdict, *, reason: str = "is missing", **files: str | None
) -> Verification:
    passed = verdict is Verdict.PASSED
    check = Check(
        type=CheckType.ARTIFACT,
        target="out.txt",
        passed=passed,
        reason=None if passed else reason,
        could_not_check=verdict is Verdict.COULD_NOT_CHECK,
    )
    return Verification(verdict=verdict, checks=(check,), verified_at_ms=NOW_MS, **files)


def a_try(outcome: DeliveryOutcome, at_ms: int = NOW_MS, number: int = 1) -> DeliveryTry:
    return DeliveryTry(
        at_ms=at_ms,
        target=ME,
        requester_depth=0,
        nested=False,
        route_mode="fallback",
        phases=("queue-fallback",),
        outcome=outcome,
        idempotency_key=f"{announcement_id(RUN)}/{number}",
    )


def an_attempt(number: int = 1, session_key: str = CHILD_SESSION, **changes: Any) -> Attempt:
    """One that was requested now, and is what ``changes`` say."""
    session = AttemptSession(key=SessionKey(session_key))
    attempt = Attempt(number=number, session=session, times=AttemptTimes(requested_at_ms=NOW_MS))
    return replace(attempt, **changes)


def taken_over(run: Run) -> Run:
    """The run after a limit at which agent ``other`` took over."""
    other = ResolvedAgent(agent_id="other", runtime="llm", lane="default", lane_slots=1)
    resolved = replace(run.resolved, on_limit=(LimitStep(wait_ms=0, agent=other),)).handed_over(1)
    return replace(run, resolved=resolved, retry=replace(run.retry, handed_over=1))


@dataclass
class Life:
    """One run, driven event by event; remembers everything that came out."""

    run: Run
    journal: list[Event]
    at_ms: int = NOW_MS
    effects: list[Effect] = field(default_factory=list)
    followups: list[FollowUp] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    last: Transition | None = None

    @classmethod
    def begin(
        cls, spec: RunSpec | None = None, resolved: Resolved | None = None, **changes: Any
    ) -> "Life":
        event = spawned(spec, resolved, **changes)
        step = reduce(None, event)
        life = cls(run=step.run, journal=[])
        life._take(step, event)
        return life

    def apply(self, event: Event) -> Transition:
        """One event; time only goes forward."""
        step = reduce(self.run, event)
        self.at_ms = max(self.at_ms, event.at_ms)
        self._take(step, event)
        return step

    def _take(self, step: Transition, event: Event) -> None:
        self.run, self.last = step.run, step
        self.journal.append(event)
        self.effects += step.effects
        self.followups += step.followups
        self.messages += step.messages

    @property
    def phase(self) -> Phase:
        return self.run.phase

    def pass_ms(self, milliseconds: int) -> "Life":
        self.at_ms += milliseconds
        return self

    def of(self, kind: type[T], among: Iterable[object] | None = None) -> list[T]:
        """Every effect (or whatever ``among`` holds) of one type so far."""
        found = self.effects if among is None else among
        return [each for each in found if isinstance(each, kind)]

    # -- the usual steps -------------------------------------------------------------------

    def grant(self) -> "Life":
        number = len(self.run.attempts) + 1
        session = SessionKey(f"agent:worker:subagent:u{number}")
        self.apply(SlotGranted(at_ms=self.at_ms, session_key=session))
        return self

    def start(self) -> "Life":
        if self.phase is Phase.QUEUED:
            self.grant()
        turn = 1 if self.phase is Phase.SPAWNING else self.run.attempt.turn.number + 1
        self.apply(AttemptStarted(at_ms=self.at_ms, attempt=len(self.run.attempts), turn=turn))
        return self

    def fail_start(self, error: str = "no such program", *, permanent: bool = False) -> "Life":
        if self.phase is Phase.QUEUED:
            self.grant()
        number = len(self.run.attempts)
        event = AttemptStartFailed(
            at_ms=self.at_ms, attempt=number, error=error, permanent=permanent
        )
        self.apply(event)
        return self

    def signal(self, signal: Signal) -> "Life":
        self.apply(SignalReceived(at_ms=self.at_ms, attempt=len(self.run.attempts), signal=signal))
        return self

    def result(self, text: str) -> "Life":
        return self.signal(ResultSeen(key="result", text=text))

    def exit(self, code: int | None = 0, *, signal: int | None = None, **more: Any) -> "Life":
        ended = Exited(key="exit", exit=Exit(code=code, signal=signal), drained=True)
        return self.signal(replace(ended, **more))

    def child(self, number: int = 1) -> "Life":
        child = Child(run_id=RunId(f"r-c{number:09}"), label=f"child{number}")
        self.apply(ChildSpawned(at_ms=self.at_ms, child=child))
        return self

    def child_ends(self, outcome: Outcome, result: str | None, number: int = 1) -> "Life":
        run_id = RunId(f"r-c{number:09}")
        event = ChildSettled(at_ms=self.at_ms, child=run_id, outcome=outcome, result=result)
        self.apply(event)
        return self

    def verify(
        self, verdict: Verdict, *, reason: str = "is missing", **files: str | None
    ) -> "Life":
        """``files`` are the digests of the work directory."""
        found = a_verification(verdict, reason=reason, **files)
        number = len(self.run.attempts)
        self.apply(VerificationFinished(at_ms=self.at_ms, attempt=number, verification=found))
        return self

    def timer(self) -> "Life":
        """Time moves on to the run's next due time."""
        due = next_due_ms(self.run)
        assert due is not None, f"nothing is due in phase {self.phase}"
        self.at_ms = max(self.at_ms, due)
        event = timer_event(self.run, self.at_ms)
        assert event is not None
        self.apply(event)
        return self

    def cancel(self, *, cascaded: bool = False, reason: str | None = None) -> "Life":
        self.apply(CancelRequested(at_ms=self.at_ms, by="me", cascaded=cascaded, reason=reason))
        return self

    def pause(self) -> "Life":
        self.apply(Paused(at_ms=self.at_ms, by="me"))
        return self

    def resume(self) -> "Life":
        self.apply(Resumed(at_ms=self.at_ms, by="me"))
        return self

    def steer(self, message: str = "hurry") -> "Life":
        self.apply(SteerRequested(at_ms=self.at_ms, by="me", message=message))
        return self

    def ask(
        self,
        number: int = 1,
        *,
        default: str | None = None,
        wait_ms: int = 60_000,
        options: tuple[str, ...] = (),
    ) -> "Life":
        request = Request(
            id=RequestId(f"{RUN}:q{number}"),
            attempt=len(self.run.attempts),
            question="which one?",
            asked_at_ms=self.at_ms,
            deadline_ms=self.at_ms + wait_ms,
            default_answer=default,
            options=options,
        )
        self.apply(RequestAsked(at_ms=self.at_ms, request=request))
        return self

    def deliver(self, outcome: DeliveryOutcome | None = None) -> "Life":
        wanted = outcome or Delivered(path=DeliveryPath.QUEUED)
        tries = self.run.delivery.tries_total if self.run.delivery else 0
        record = a_try(wanted, self.at_ms, tries + 1)
        self.apply(DeliverySettled(at_ms=self.at_ms, record=record))
        return self

    def consume(self) -> "Life":
        self.apply(AnnouncementConsumed(at_ms=self.at_ms, reader="me", path=DeliveryPath.PULLED))
        return self

    def clean_up(self, *, erased: bool = False) -> "Life":
        self.apply(CleanedUp(at_ms=self.at_ms, erased=erased))
        return self

    def archive(self) -> "Life":
        self.apply(Archived(at_ms=self.at_ms))
        return self


def in_phase(phase: Phase, spec: RunSpec | None = None, **resolved: Any) -> Life:
    """A life that has come to this phase by the shortest way."""
    limits = a_resolved(**resolved)
    wanted = spec or RunSpec(task="do it", retry_count=1, verification=a_contract())
    if phase is Phase.WAITING:
        return Life.begin(wanted, limits, dependencies=(a_dependency(),))
    life = Life.begin(wanted, limits)
    match phase:
        case Phase.QUEUED:
            return life
        case Phase.SPAWNING:
            return life.grant()
        case Phase.RUNNING:
            return life.start()
        case Phase.ENDING:
            return life.start().exit(drained=False)
        case Phase.VERIFYING:
            return life.start().exit()
        case Phase.RETRY_WAIT:
            return life.start().exit(1)
        case _:
            pass
    if life.run.spec.verification is None:
        life.start().exit()
    else:
        life.start().exit().verify(Verdict.PASSED)
    if phase is Phase.ANNOUNCING:
        return life
    return _after_announcing(life, phase)


def _after_announcing(life: Life, phase: Phase) -> Life:
    match phase:
        case Phase.ANNOUNCE_DEFERRED:
            return life.deliver(Deferred(reason=DeferReason.REQUESTER_BUSY))
        case Phase.CLEANUP_PENDING:
            return life.deliver()
        case Phase.COMPLETED:
            return life.deliver().clean_up()
        case Phase.COMPLETED_GIVEUP:
            return life.deliver(DeliveryFailed(retryable=False, error="gone"))
        case _:
            raise AssertionError(f"no way to {phase}")
