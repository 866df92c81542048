"""A run and its parts, as the reducer sees them and the store keeps them."""

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from subagents.domain.run import values
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.linked_runs import Child, Children, Dependencies
from subagents.domain.run.outcome import (
    Check,
    DeliveryOutcome,
    Outcome,
    Reason,
    Status,
    Verification,
    VerificationState,
)
from subagents.domain.run.parameter import about
from subagents.domain.run.spec import Budget, Resolved, RunSpec
from subagents.domain.run.usage import Amounts, Usage
from subagents.domain.run.values import AttemptId, MessageId, RequestId, RunId, SessionKey, Value
from subagents.domain.run.workspace import PlacedTree, Remains


class Phase(StrEnum):
    """Where the run is in its life."""

    __hash__ = str.__hash__  # Enum's own is written in Python; every table here is asked by phase

    WAITING = "waiting"
    QUEUED = "queued"
    SPAWNING = "spawning"
    RUNNING = "running"
    ENDING = "ending"
    VERIFYING = "verifying"
    RETRY_WAIT = "retry_wait"
    ANNOUNCING = "announcing"
    ANNOUNCE_DEFERRED = "announce_deferred"
    CLEANUP_PENDING = "cleanup_pending"
    COMPLETED = "completed"
    COMPLETED_GIVEUP = "completed_giveup"


OVER: Final = frozenset({Phase.COMPLETED, Phase.COMPLETED_GIVEUP})
SETTLED: Final = OVER | {Phase.ANNOUNCING, Phase.ANNOUNCE_DEFERRED, Phase.CLEANUP_PENDING}
"""The outcome is known: dependants are released, the requester's slot is free."""
HOLDS_SLOT: Final = frozenset({Phase.SPAWNING, Phase.RUNNING})
AT_WORK: Final = HOLDS_SLOT | {Phase.ENDING, Phase.VERIFYING}
"""Its agent works, what that began still does, or the work is checked."""


class Reserve(Amounts, frozen=True, kw_only=True):
    """What the holder of a budget must bear of what was used below it, once all of that is stopped.

    What calls that were under way then still add does not count against its own report.
    """

    at_ms: int


class BudgetStop(Value, frozen=True):
    """Why nothing of a run may start any more: a budget, its own or one above it, is used up."""

    by: RunId
    """The run that holds the budget."""
    label: str
    used: str
    """What was used, in words: ``92k of 100k tokens``."""
    at_ms: int
    name: str = ""
    """The name of a cap over several runs: ``the budget of today ([budgets.daily])``; "" = a
    run's."""

    @property
    def whose(self) -> str:
        """``the budget of run "lead" (r-…)``, or the name of a cap over several runs."""
        return self.name or f'the budget of run "{self.label}" ({self.by})'


class ReportStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ReportedArtifact(Value, frozen=True):
    path: str
    description: str | None = None


class Report(Value, frozen=True):
    """The worker's own claim of completion: evidence, never the outcome."""

    summary: Annotated[str, about("What was accomplished")]
    status: ReportStatus = ReportStatus.COMPLETE
    confidence: Annotated[Confidence | None, about("How sure you are of the result")] = None
    artifacts: Annotated[tuple[ReportedArtifact, ...], about("Files you leave behind")] = ()
    blockers: Annotated[tuple[str, ...], about("What stood in the way")] = ()
    warnings: Annotated[tuple[str, ...], about("What the requester should look at")] = ()


class ProgressLevel(StrEnum):
    """How far up the tree of runs an update is of interest."""

    OPERATIONAL = "L0_operational"
    PLAN_UPDATE = "L1_plan_update"
    DETAIL = "L2_detail"


Metric: TypeAlias = str | int | float


class Progress(Value, frozen=True):
    """One update; the run keeps the latest only, the others are in its progress log."""

    phase: str
    percent_complete: float | None = None
    updated_at_ms: int = 0
    level: ProgressLevel | None = None
    metrics: dict[str, Metric] = {}
    number: int = 0
    """Its place in the run's progress log, from 1; 0 = it is not in there."""


class Exit(Value, frozen=True):
    """How the process ended; both None = it is gone and its end was not recorded."""

    code: int | None = None
    signal: int | None = None
    limit: str | None = None
    """Processes of it were ended by the kernel for this limit; None = none were."""


class StopCause(StrEnum):
    """Why we asked the attempt to stop; stays the outcome even when it then exits 0."""

    CANCEL = "cancel"
    DEADLINE = "deadline"
    BUDGET = "budget"
    PARENT = "parent"
    INTERRUPT = "interrupt"
    """Its turn was ended, so that its session can be continued."""
    PROVIDER = "provider"
    """The attempt waited for its model's provider at its deadline: no work was cut off."""
    STUCK = "stuck"


class ResultFile(Value, frozen=True):
    """Where a result is kept that is too long for its run."""

    name: str
    """The file's name in the run's folder of results."""
    size: int
    """Bytes; less than the whole result where that is larger than what is kept."""
    more: str = ""
    """What belongs behind the file's text."""

    @property
    def bytes_total(self) -> int:
        return self.size + len(self.more.encode())


class Evidence(Value, frozen=True):
    """All that is known about one attempt's end, in whatever order it came."""

    exit: Exit | None = None
    exit_at_ms: int | None = None
    drained: bool = False
    """The stream was read to its end, so nothing more can come."""
    result: str | None = None
    result_bytes: int = 0
    """Bytes of the whole result; more than ``len(result)`` when it had to be cut."""
    result_file: ResultFile | None = None
    """Where the whole is; None = ``result`` is all that there is."""
    is_error: bool = False
    """The final message of the stream was an error."""
    error: str | None = None
    stderr_tail: str | None = None
    is_limit: bool = False
    """The final message of the stream was that the model's provider refused for now."""
    retry_after_ms: int | None = None
    """How long the provider asked to wait."""
    stop: StopCause | None = None
    stop_at_ms: int | None = None
    lease_lost: bool = False


class RetryCause(Value, frozen=True):
    """Why one more attempt follows; as it is, for the first one."""

    reason: str | None = None
    """What the attempt before ended with."""
    verifies: bool = False
    """The attempt before failed its contract, so this is not the retry policy's."""


NO_CAUSE: Final = RetryCause()


class AttemptTimes(Value, frozen=True):
    """When an attempt did what, in milliseconds since 1970."""

    requested_at_ms: int
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    deadline_ms: int | None = None
    """Counts from the start; None = it has none, or has not started."""
    warned: bool = False
    """Its worker was warned that the deadline comes."""


class AttemptSession(Value, frozen=True):
    """The session an attempt works in: ours, and the one of the worker's program."""

    key: SessionKey
    native: str | None = None
    """What the worker's program calls it; a later attempt can continue it."""
    resumes: str | None = None
    """The program's own session, of the attempt before, in which this one continues."""
    opening: str | None = None
    """The first message in that session; None = the whole prompt, in a new session."""


class Turn(Value, frozen=True):
    """The turn of the session that is under way, or was last."""

    number: int = 1
    pid: int | None = None
    next_asked: bool = False
    """A follow-up turn was asked for and has not started yet."""
    only_tells: bool = False
    """It was asked for only to tell how the children ended; with ``next_asked`` the next one."""


class Reported(Value, frozen=True):
    """The completion report of an attempt, and where it came from."""

    report: Report | None = None
    is_text: bool = False
    """It was read from the result text; a report by tool beats it."""
    problem: str | None = None
    """Why the report in the result text is none."""


class LastStep(Value, frozen=True):
    """What an attempt did last: a report or a result counts as final only without a tool after."""

    tool: str | None = None
    """The last tool it used."""
    is_report: bool = False
    """No tool was used after the report."""
    is_result: bool = False
    """No tool was used after the result text."""


class Hold(Value, frozen=True):
    """What the one request that an attempt has under way may still use of the budgets above it."""

    tokens: int
    cost_usd: float = 0
    """0 also where no price is known."""
    since: Usage = Usage()
    """What the attempt had used before the request: more than this means it was answered."""
    lost_tokens: int = 0
    """What requests without an answer may have used; it will never be reported."""
    lost_cost_usd: float = 0


class Attempt(Value, frozen=True):
    """One try at the run in its runtime."""

    number: int
    """Its place among the run's attempts, from 1."""
    session: AttemptSession
    times: AttemptTimes
    retry: RetryCause = NO_CAUSE
    turn: Turn = Turn()
    evidence: Evidence = Evidence()
    reported: Reported = Reported()
    last: LastStep = LastStep()
    outcome: Outcome | None = None
    usage: Usage | None = None
    hold: Hold | None = None
    """None = it never asked before a request; its runtime does not, or nothing limits it."""
    remains: Remains | None = None
    """What it left besides its result; None = nothing, or it was not looked at."""
    token_hashes: tuple[str, ...] = ()
    """SHA-256 (hex) of every token issued for it; more than one after a crash or a new turn."""
    node: str | None = None
    """Name of the node on which it runs, its place; None = it has none yet, or it is not known."""
    handed_over: int = 0
    """``Retry.handed_over`` when it began."""
    steers_before: int = 0
    """The number of the newest message that is part of what it begins with."""


class Decision(StrEnum):
    ANSWER = "answer"
    APPROVE = "approve"
    DENY = "deny"
    DEFAULT = "default"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class Answer(Value, frozen=True):
    decision: Decision
    text: str | None
    by: str
    at_ms: int


class Priority(StrEnum):
    """How urgent a notice is; the last two want an answer."""

    INFO = "info"
    QUESTION = "question"
    BLOCKER = "blocker"


class Request(Value, frozen=True):
    """What a worker wants its requester to answer; durable on both sides."""

    id: RequestId
    attempt: int
    question: str
    asked_at_ms: int
    deadline_ms: int | None
    """None = it stands until it is answered, as every notice does."""
    context: str | None = None
    options: tuple[str, ...] = ()
    default_answer: str | None = None
    answer: Answer | None = None
    priority: Priority | None = None
    """The priority of a notice (``notify_parent``), which its sender does not wait on; None = a
    question."""
    call_id: str | None = None
    """The id of the call that asked, when its client may repeat it."""
    permits: bool = False
    """The worker's program asks whether it may use a tool: the answer goes to the program, under
    ``call_id``."""
    call: str | None = None
    """See ``PermissionAsked.call``."""
    by_spawn: bool = False
    """The spawn itself asks for more than its requester may, or for its gate to be opened: only a
    person answers, and the run waits for a yes."""


class Steer(Value, frozen=True):
    """A message for the worker."""

    number: int
    message: str
    by: str
    at_ms: int
    next_turn: bool = False
    """Not for the turn that was under way when it was sent."""


class Continues(Value, frozen=True):
    """Whose session a run continues; one session has one run at work at a time."""

    run_id: RunId
    """The run before it."""
    root: RunId
    """The first run of the session; it names the session for ever."""
    native_session: str
    """What the worker's program calls the session, as the run before left it."""


class DeliveryTry(Value, frozen=True):
    """One try at telling the requester; ``subagents why`` prints these."""

    at_ms: int
    target: SessionKey
    requester_depth: int
    nested: bool
    route_mode: str
    phases: tuple[str, ...]
    outcome: DeliveryOutcome
    idempotency_key: str


class Delivery(Value, frozen=True):
    """The delivery of the announcement, over all tries."""

    target: SessionKey
    tries: tuple[DeliveryTry, ...] = ()
    tries_total: int = 0
    first_failure_ms: int | None = None
    failures: int = 0
    due_ms: int | None = None
    consumed_at_ms: int | None = None
    """When a reader took the announcement: nothing hands it over again."""


class AlertLedger(Value, frozen=True):
    """What was pushed to the requester in this hour, and what was held back (``allowance``)."""

    number: int = 0
    """How many alert messages were sent so far."""
    since_ms: int | None = None
    """When the present hour began: with the first alert after the one before ended."""
    tokens: int = 0
    """Pushed since then."""
    held: dict[str, int] = {}
    """Kind → how many wait for the digest line."""


class Limited(Value, frozen=True):
    """The model's provider takes no more for now: attempts in a row that ended so (``limits``)."""

    since_ms: int
    waits: int
    text: str
    """What the last of them ended with."""


class Cancel(Value, frozen=True):
    """A durable intent to end the run."""

    at_ms: int
    by: str
    reason: str | None = None
    cascaded: bool = False
    stuck: bool = False
    """The daemon itself asked, as the agent's ``on_stuck`` says."""

    @property
    def stop_cause(self) -> StopCause:
        """Why an attempt is stopped that the cancel meets at work."""
        if self.stuck:
            return StopCause.STUCK
        return StopCause.PARENT if self.cascaded else StopCause.CANCEL

    @property
    def outcome(self) -> Outcome:
        """What the run comes to."""
        reason = Reason.PARENT_ENDED if self.cascaded else Reason.CANCELLED_BY_CALLER
        reason = Reason.STUCK if self.stuck else reason
        return Outcome(status=Status.CANCELLED, reason=reason, error=self.reason)


class PlannedCancel(Value, frozen=True):
    """The run, or the turn under way, is ended at a time, unless that is taken back before."""

    by: str
    due_ms: int
    reason: str | None = None
    of_turn: tuple[int, int] | None = None
    """``(attempt, turn)``: only that turn ends, and its session is kept; None = the run ends."""


class Lineage(Value, frozen=True):
    """Where a run comes from: the run above it, and the one it repeats."""

    depth: int
    """1 for a run that no run asked for."""
    requester_run: RunId | None = None
    """The run that asked for it; None = a session that is no run's."""
    retry_from: RunId | None = None
    """The run, over by then, that this one was asked to do again."""
    judges: int | None = None
    """The attempt of the run above that it judges, for that run's contract; None = none."""


class RunTimes(Value, frozen=True):
    """When a run came where, in milliseconds since 1970; its end is in its conclusion."""

    created_at_ms: int
    phase_since_ms: int
    started_at_ms: int | None = None
    """When its first attempt got its slot."""
    archived_at_ms: int | None = None
    erased_at_ms: int | None = None
    """When its task was deleted; see ``erasure``."""


class Waiting(Value, frozen=True):
    """What a run waits for before its first attempt."""

    dependencies: Dependencies = Dependencies()
    deadline_ms: int | None = None
    """None once nothing is awaited any more."""
    fell_back: RunId | None = None
    """The failed one for which the fallback agent took over."""


class Retry(Value, frozen=True):
    """The attempts after the first: how many were used, and when and why the next one comes."""

    used: int = 0
    """How many of the retries that the spec allows after a failure were used."""
    due_ms: int | None = None
    """When the next attempt begins; None = none is being waited for."""
    cause: RetryCause = NO_CAUSE
    """Why there is a next attempt."""
    limited: Limited | None = None
    """It waits for its provider; such waits are not retries."""
    handed_over: int = 0
    """How many times another agent took over at a limit (``Resolved.on_limit``)."""


class VerificationRecord(Value, frozen=True):
    """How far the check of a run's contract has come."""

    state: VerificationState | None = None
    """None = it has no contract."""
    result: Verification | None = None
    """What the newest check came to; None = there was none yet."""
    vacuous: bool = False
    """The contract was met before any work was done."""
    baseline: Baseline | None = None
    """What its files must differ from; None = not looked at yet, or a run of 0.1.0."""
    looked: int = 0
    """The newest attempt before whose start they were looked at; 0 = none, or a run of 0.1.0."""
    left: Baseline | None = None
    """What its files were when it stopped working; None = it works, or it was not looked at."""
    passed: tuple[Check, ...] = ()
    """What its newest attempt passed, while a judge looks at it: no verdict yet."""
    retried_at_ms: int | None = None
    """When the one retry that a contract allows was decided."""
    dismissed_at_ms: int | None = None
    """When somebody marked how it ended as read."""

    @property
    def proves_nothing(self) -> bool:
        """It passed, and would have without the work."""
        return self.vacuous and self.state is VerificationState.PASSED


class ProgressLog(Value, frozen=True):
    """What a run keeps of its progress log, which is a file."""

    latest: Progress | None = None
    lines: int = 0
    """How many updates are in the log."""
    paced_at_ms: int | None = None
    """When the last update came that the next one has to keep its distance from."""


class RunSession(Value, frozen=True):
    """The child session of a run, and the runs before and after it in the same session."""

    first_key: SessionKey = SessionKey("")
    """Promised in the receipt; its first attempt works under it."""
    continues: Continues | None = None
    """The run whose session this one continues."""
    continued_by: RunId | None = None
    """The newest run known that continues this one's session."""


class Questions(Value, frozen=True):
    """What a run's worker sent up to its requester."""

    requests: tuple[Request, ...] = ()
    notices: int = 0
    """How many notices (``notify_parent``) there were so far; they are numbered by it."""


class Control(Value, frozen=True):
    """What was asked of a run since its spawn: to stop, to pause, and messages for its worker."""

    cancel: Cancel | None = None
    planned: PlannedCancel | None = None
    """None once it came to pass, or was taken back."""
    paused: bool = False
    frozen_since_ms: int | None = None
    """When its worker was frozen because the run is paused; None = it is not."""
    priority: int | None = None
    """Given since the spawn; None = as it was spawned."""
    steers: tuple[Steer, ...] = ()
    """The messages that no runtime took yet."""
    told: tuple[Steer, ...] = ()
    """The newest of those that one took: an attempt in a new session begins with them."""
    steers_total: int = 0
    """They are numbered by it."""
    last_steer_ms: int | None = None


class BudgetState(Value, frozen=True):
    """What already followed from the use of a run's budget, so that it follows once."""

    mark: float = 0
    """The highest alert threshold passed: percent of its budget, or US dollars without one."""
    leap: Amounts | None = None
    """The report with which more than its limit was used."""
    reserve: Reserve | None = None
    """Only what is kept for its own report is left of its budget."""
    stop: BudgetStop | None = None
    raised: Budget | None = None
    """What it is since somebody raised it; None = as it was spawned with."""


class Conclusion(Value, frozen=True):
    """The end of a run, given once."""

    outcome: Outcome
    ended_at_ms: int
    seq: int = 0
    """Number of the event that gave it; 0 = from before it was kept."""
    result: str | None = None
    result_bytes: int = 0
    """Bytes of the whole result; more than ``len(result)`` when it had to be cut."""
    result_file: ResultFile | None = None
    """Where the whole is; None = ``result`` is all that there is."""
    report: Report | None = None

    @property
    def bytes_total(self) -> int:
        """Size of the whole result in bytes, also when the stored one had to be cut."""
        return self.result_bytes or self.bytes_here

    @property
    def bytes_here(self) -> int:
        """Size of that of it which is in the run itself."""
        return len((self.result or "").encode())

    @property
    def bytes_kept(self) -> int:
        """How many bytes of it can be read."""
        return self.bytes_here if self.result_file is None else self.result_file.bytes_total

    @property
    def is_cut(self) -> bool:
        """``result`` is only the end of it."""
        return self.result_bytes > 0 and self.result_bytes > self.bytes_here


RULES: Final = 3
"""What a spawn of this version writes down: a run ends under the rules that it began under, so that
its journal folds to it and what its receipt promised holds. 0 = those of 0.1.0; up to 1, a run
waits for its dependencies half an hour at most where the spawn did not say how long; up to 2, a
new session knows nothing of what those before it were told."""


class Run(Value, frozen=True):
    """One delegated task from spawn to cleanup; exactly one phase; the id never changes.

    What belongs together changes together: each of its parts is a small value, changed by
    ``replace(run, retry=replace(run.retry, due_ms=None))``. A part that is still its default is not
    stored, so one that need not change is better left as it is.
    """

    id: RunId
    spec: RunSpec
    resolved: Resolved
    requester: SessionKey
    lineage: Lineage
    phase: Phase
    times: RunTimes
    seq: int = 1
    """The number of its newest journaled event."""
    waiting: Waiting = Waiting()
    attempts: tuple[Attempt, ...] = ()
    retry: Retry = Retry()
    session: RunSession = RunSession()
    children: Children = Children()
    questions: Questions = Questions()
    control: Control = Control()
    progress: ProgressLog = ProgressLog()
    alerts: AlertLedger = AlertLedger()
    budget: BudgetState = BudgetState()
    refusals: int = 0
    """Calls in its worker's name that were refused and journaled."""
    verification: VerificationRecord = VerificationRecord()
    conclusion: Conclusion | None = None
    """None until the run is settled."""
    delivery: Delivery | None = None
    """How far its announcement has come; None until the run is settled."""
    rules: int = 0
    """The version of the rules under which it ends; see ``RULES``."""
    placed_tree: PlacedTree | None = None
    """``resolved`` has it, too; None = its worktree was planned at the spawn, or it has none."""

    @property
    def outcome(self) -> Outcome | None:
        return None if self.conclusion is None else self.conclusion.outcome

    @property
    def ended_at_ms(self) -> int | None:
        return None if self.conclusion is None else self.conclusion.ended_at_ms

    @property
    def result(self) -> str | None:
        return None if self.conclusion is None else self.conclusion.result

    @property
    def report(self) -> Report | None:
        return None if self.conclusion is None else self.conclusion.report

    @property
    def announcement_consumed_ms(self) -> int | None:
        return None if self.delivery is None else self.delivery.consumed_at_ms

    @property
    def attempt(self) -> Attempt:
        """The newest attempt; only in phases that have one."""
        return self.attempts[-1]

    @property
    def turn(self) -> tuple[int, int]:
        """``(attempt, turn)``, counted from 1, that is under way or was last."""
        return self.attempt.number, self.attempt.turn.number

    @property
    def planned(self) -> PlannedCancel | None:
        """What is planned and can still come to pass; of a turn that is over nothing can."""
        planned = self.control.planned
        if planned is None or self.is_settled:
            return None
        if planned.of_turn is None:
            return planned
        is_live = self.phase in HOLDS_SLOT
        is_due = is_live and self.turn == planned.of_turn and self.attempt.evidence.stop is None
        return planned if is_due else None

    @property
    def attempt_id(self) -> AttemptId:
        return values.attempt_id(self.id, len(self.attempts))

    @property
    def session_key(self) -> SessionKey:
        """The child session of the newest attempt, or the one promised in the receipt."""
        return self.attempts[-1].session.key if self.attempts else self.session.first_key

    @property
    def session_keys(self) -> frozenset[SessionKey]:
        """Every session that a worker of this run speaks or spoke under."""
        return frozenset([self.session.first_key, *[each.session.key for each in self.attempts]])

    @property
    def root(self) -> RunId:
        """The first run of the session; the session's name, and that of its thread."""
        continues = self.session.continues
        return self.id if continues is None else continues.root

    @property
    def native_session(self) -> str | None:
        """What the worker's program calls the session, by the newest attempt that named it."""
        names = (each.session.native for each in reversed(self.attempts))
        continues = self.session.continues
        before = None if continues is None else continues.native_session
        return next((name for name in names if name is not None), before)

    @property
    def goes_on_in(self) -> str | None:
        """The program's session that the newest attempt continues; None = it begins one.

        A retry of a run that continues one does so from where the attempt before left it.
        """
        if self.attempt.session.resumes is not None:
            return self.attempt.session.resumes
        is_new = self.session.continues is None or self.retry.handed_over > 0
        return None if is_new else self.native_session

    @property
    def active_children(self) -> tuple[Child, ...]:
        """Those that are not settled; whether there are any is ``children.active``."""
        if not self.children.active:
            return ()
        return tuple(child for child in self.children if child.outcome is None)

    @property
    def pending_requests(self) -> tuple[Request, ...]:
        asked = self.questions.requests
        return tuple(request for request in asked if request.answer is None) if asked else ()

    @property
    def approval(self) -> Request | None:
        """The newest question to a person before which it does not begin; None = there is none."""
        asked = self.questions.requests
        return next((each for each in asked[::-1] if each.by_spawn), None) if asked else None

    @property
    def remains(self) -> Remains:
        """What its newest attempt that left anything left besides its result."""
        found = (each.remains for each in reversed(self.attempts) if each.remains is not None)
        return next(found, Remains())

    @property
    def is_settled(self) -> bool:
        return self.phase in SETTLED

    @property
    def news_at_ms(self) -> int:
        """When whoever asked for it was last to learn something; of one that has an end, then.

        What becomes of it afterwards, its announcement and its tidying, is no news of the work.
        """
        if self.conclusion is not None:
            return self.conclusion.ended_at_ms
        latest = self.progress.latest
        return max(
            self.times.phase_since_ms,
            latest.updated_at_ms if latest is not None else 0,
            *(request.asked_at_ms for request in self.pending_requests),
        )

    @property
    def is_follow_up_asked(self) -> bool:
        """Its newest attempt is to have one more turn, which has not started yet."""
        return bool(self.attempts) and self.attempts[-1].turn.next_asked

    def is_settled_by(self, seq: int) -> bool:
        """Whether the event with this number gave it its outcome."""
        return self.conclusion is not None and self.conclusion.seq == seq

    @property
    def has_failed(self) -> bool:
        """Whether it ended badly, and not because somebody cancelled it or a run above it."""
        outcome = self.outcome
        if outcome is None or outcome.status in {Status.OK, Status.PARTIAL}:
            return False
        return outcome.reason not in {Reason.CANCELLED_BY_CALLER, Reason.PARENT_ENDED}


class MessageKind(StrEnum):
    ANNOUNCEMENT = "announcement"
    QUESTION = "question"
    BLOCKER = "blocker"
    NOTICE = "notice"
    ANSWER = "answer"
    """The answer to a notice, in the worker's own inbox."""
    ALERT = "alert"


class Message(Value, frozen=True):
    """One row of a session's inbox."""

    id: MessageId
    session_key: SessionKey
    run_id: RunId
    kind: MessageKind
    created_at_ms: int
    text: str
    consumed: bool = False
    """Written as consumed already: kept for the record, never pushed."""
