"""The words of the answers: to type checkers those there are, at run time any text.

So `outcome.status == "okay"` does not type-check, and the word of a newer daemon is read all the
same: end a `match` over one of them with `case _`.
"""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

UNSAID: Any = ""
"""The word that an older daemon does not say."""


def state_word(status: str | None, reason: str | None, phase: str, pending_requests: int) -> str:
    """What a run is in one word: its outcome once there is one, else its phase.

    Args:
        status: Of its outcome; None = it has none.
        reason: Of its outcome.
        phase: Its phase.
        pending_requests: Open questions of its worker.
    """
    if status is not None:
        return "failed" if reason == "verification_failed" else status
    return "blocked" if pending_requests else phase


def shown_state(run: Any) -> str:
    """The same of an answer about a run, read or as it came; of a paused one, ``paused``."""
    if run.run_status == "paused":
        return "paused"
    status, reason = (run.outcome.status, run.outcome.reason) if run.outcome else (None, None)
    return state_word(status, reason, run.phase, run.pending_request_count)


if TYPE_CHECKING:
    OutcomeStatus: TypeAlias = Literal["ok", "partial", "error", "timeout", "cancelled", "lost"]
    OutcomeReason: TypeAlias = Literal[
        "exit_code",
        "signal",
        "resource_limit",
        "start_failed",
        "deadline",
        "cancelled_by_caller",
        "parent_ended",
        "budget",
        "interrupted",
        "dependency_failed",
        "dependency_timeout",
        "verification_failed",
        "could_not_check",
        "reported_partial",
        "reported_failed",
        "runtime_error",
        "lease_lost",
        "stuck",
        "exit_unknown",
        "provider_limit",
        "not_allowed",
        "record_lost",
    ]
    Phase: TypeAlias = Literal[
        "waiting",
        "queued",
        "spawning",
        "running",
        "ending",
        "verifying",
        "retry_wait",
        "announcing",
        "announce_deferred",
        "cleanup_pending",
        "completed",
        "completed_giveup",
    ]
    RunStatusWord: TypeAlias = (
        OutcomeStatus | Literal["blocked", "paused", "waiting", "queued", "retrying", "running"]
    )
    CheckType: TypeAlias = Literal["artifact", "completion_report", "command", "change", "judge"]
    VerificationStatus: TypeAlias = Literal["passed", "failed", "skipped"]
    VerificationState: TypeAlias = Literal["pending", "running", "passed", "failed"]
    ChangeKind: TypeAlias = Literal["added", "modified", "deleted"]
    ReportStatus: TypeAlias = Literal["complete", "partial", "failed"]
    FailurePolicy: TypeAlias = Literal["retry_once", "escalate", "fail"]
    OverlapPolicy: TypeAlias = Literal["skip", "queue", "cancel", "allow"]
    MissedPolicy: TypeAlias = Literal["once", "skip"]
    TimeDecision: TypeAlias = Literal["started", "skipped", "missed", "refused"]
    Confidence: TypeAlias = Literal["high", "medium", "low"]
    StopCause: TypeAlias = Literal[
        "cancel", "deadline", "budget", "parent", "interrupt", "provider", "stuck"
    ]
    AccessLevel: TypeAlias = Literal["read", "write", "full"]
    Keeper: TypeAlias = Literal["program", "bubblewrap", "tools"]
    Mode: TypeAlias = Literal["run", "session"]
    Overshoot: TypeAlias = Literal["none", "one_request", "one_turn", "unbounded"]
    MessageKind: TypeAlias = Literal[
        "announcement", "question", "blocker", "notice", "answer", "alert"
    ]
    Priority: TypeAlias = Literal["info", "question", "blocker"]
    Decision: TypeAlias = Literal["answer", "approve", "deny", "default", "timeout", "cancelled"]
    ProgressLevel: TypeAlias = Literal["L0_operational", "L1_plan_update", "L2_detail"]
    WaitKind: TypeAlias = Literal["provider", "lane", "plan", "runs", "retry", "answer", "paused"]
    EdgeKind: TypeAlias = Literal["waits", "spawned"]
    AtDeadline: TypeAlias = Literal["default", "timeout", "deny"]
    AlertFate: TypeAlias = Literal["sent", "held", "off", "escalated", "late"]
    AlertName: TypeAlias = Literal[
        "api_error",
        "stuck",
        "budget_alert",
        "task_milestone",
        "build_result",
        "git_commit",
        "context_pressure",
        "subagent_spawn",
        "failure_loop",
        "same_path",
    ]
else:
    OutcomeStatus = OutcomeReason = Phase = RunStatusWord = CheckType = str
    VerificationStatus = VerificationState = ChangeKind = ReportStatus = Confidence = str
    FailurePolicy = OverlapPolicy = MissedPolicy = TimeDecision = str
    StopCause = AccessLevel = Keeper = Mode = Overshoot = str
    MessageKind = Priority = Decision = ProgressLevel = str
    WaitKind = AtDeadline = EdgeKind = AlertFate = AlertName = str
