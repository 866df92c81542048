"""How things end: attempts, runs, checks, deliveries. Closed types; a ``bool`` is no outcome."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

from subagents.domain.run.values import Value


class Status(StrEnum):
    OK = "ok"
    PARTIAL = "partial"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    LOST = "lost"


class Reason(StrEnum):
    """Why an outcome is not plain ``ok``; stable codes."""

    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    RESOURCE_LIMIT = "resource_limit"
    START_FAILED = "start_failed"
    DEADLINE = "deadline"
    CANCELLED_BY_CALLER = "cancelled_by_caller"
    PARENT_ENDED = "parent_ended"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    DEPENDENCY_FAILED = "dependency_failed"
    DEPENDENCY_TIMEOUT = "dependency_timeout"
    VERIFICATION_FAILED = "verification_failed"
    COULD_NOT_CHECK = "could_not_check"
    REPORTED_PARTIAL = "reported_partial"
    REPORTED_FAILED = "reported_failed"
    RUNTIME_ERROR = "runtime_error"
    LEASE_LOST = "lease_lost"
    STUCK = "stuck"
    """Silent for too long, under ``on_stuck = "cancel"``."""
    EXIT_UNKNOWN = "exit_unknown"
    PROVIDER_LIMIT = "provider_limit"
    NOT_ALLOWED = "not_allowed"
    RECORD_LOST = "record_lost"
    """The database was damaged, and nothing else tells how the run ended."""


class Outcome(Value, frozen=True):
    """The typed end of an attempt or run."""

    status: Status
    reason: Reason | None = None
    error: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.status is Status.OK

    @property
    def plain_error(self) -> str:
        """The error for people; stored runs say it with the API's name of the deadline."""
        return (self.error or "").replace(" (runTimeoutSeconds)", "")


OK = Outcome(status=Status.OK)


class CheckType(StrEnum):
    ARTIFACT = "artifact"
    COMPLETION_REPORT = "completion_report"
    COMMAND = "command"
    CHANGE = "change"
    JUDGE = "judge"


class Check(Value, frozen=True):
    """One test of a contract against the evidence."""

    type: CheckType
    target: str
    passed: bool
    reason: str | None = None
    evidence: str | None = None
    could_not_check: bool = False
    """The checker itself failed: says nothing about the work and never causes a retry."""


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    COULD_NOT_CHECK = "could_not_check"


class Verification(Value, frozen=True):
    """What the contract found."""

    verdict: Verdict
    checks: tuple[Check, ...] = ()
    verified_at_ms: int = 0
    files_found: str | None = None
    """Digest of the files in the work directory before the checks; None = not known."""
    files_left: str | None = None
    """The same after the checks, which may write files, too."""

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """A failed check is a fact about the work, also when another one could not be made."""
    if any(not check.passed and not check.could_not_check for check in checks):
        return Verdict.FAILED
    if any(not check.passed for check in checks):
        return Verdict.COULD_NOT_CHECK
    return Verdict.PASSED


def failure_text(target: str, reason: str | None) -> str:
    """Why a check did not pass, with what it is about named once."""
    reason = reason or "failed"
    return reason if target in reason else f"{target}: {reason}"


def failures_text(verification: Verification) -> str:
    """All that did not pass, in one line."""
    return "; ".join(failure_text(each.target, each.reason) for each in verification.failures)


class VerificationState(StrEnum):
    """Persisted before the checks start, so that a restart in the middle runs them again."""

    PENDING = "pending"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class DeliveryPath(StrEnum):
    DIRECT = "direct"
    QUEUED = "queued"
    STEERED = "steered"
    PULLED = "pulled"


class DeferReason(StrEnum):
    DESCENDANTS_ACTIVE = "descendants-active"
    REQUESTER_BUSY = "requester-busy"
    QUIET = "quiet"


class SkipReason(StrEnum):
    ANNOUNCE_SKIP = "announce-skip"
    SILENT = "silent"
    NOT_EXPECTED = "not-expected"


class Delivered(Value, frozen=True, tag="delivered", tag_field="kind"):
    path: DeliveryPath


class Deferred(Value, frozen=True, tag="deferred", tag_field="kind"):
    reason: DeferReason


class Skipped(Value, frozen=True, tag="skipped", tag_field="kind"):
    reason: SkipReason


class DeliveryFailed(Value, frozen=True, tag="failed", tag_field="kind"):
    retryable: bool
    error: str
    retry_after_ms: int | None = None
    """How long the receiver asked to wait."""


DeliveryOutcome: TypeAlias = Delivered | Deferred | Skipped | DeliveryFailed
"""What one delivery try came to."""
