"""Every error a user, caller or worker can meet.

    SubagentsError
    ├── UsageError             2  a parameter is wrong; nothing was stored
    │   ├── ConfigError           a key or value in subagents.toml or the environment
    │   └── ContractError         a verification contract that cannot run
    ├── NotFound               3  no such run, message, request or agent
    ├── Forbidden              4  a guardrail refused; nothing was stored
    │   └── RateLimited           too often, or too many at once
    ├── Unauthorized           4  no valid token says who calls; nothing was done
    ├── Conflict               1  not possible in this phase
    │   ├── AlreadyAnswered       the question has an answer
    │   └── IdempotencyConflict   the key stands for another request
    ├── IllegalTransition      1  a broken promise inside: an event no phase expects
    ├── Unavailable            7  daemon, store or runtime cannot serve now
    │   ├── DaemonUnreachable
    │   ├── Elsewhere             another node of the cluster decides about it
    │   ├── Fenced                another process took the state over; this one stops
    │   ├── StoreUnavailable
    │   └── RuntimeUnavailable
    ├── OutcomeUnknown         7  a node was lost while it did this; it may be done
    ├── AlreadyRunning         1  a second process on the same state
    └── CorruptState           1  the database cannot be trusted

The number is the exit code of the command line (``subagents help exit-codes``). ``code`` is stable:
it is on the wire and in logs and is never renamed. ``retryable`` says whether the same call can
succeed later without a change by the caller.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import Final, Self

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_FOUND: Final = 3
EXIT_DENIED: Final = 4
EXIT_RUN_UNSUCCESSFUL: Final = 5
EXIT_VERIFICATION_FAILED: Final = 6
EXIT_UNREACHABLE: Final = 7
EXIT_PENDING: Final = 8
EXIT_ANSWER_IS_NO: Final = 9
EXIT_RESULT_CUT: Final = 10
EXIT_INTERRUPTED: Final = 130


def plain_error(error: Exception) -> str:
    """What an error of others says, without the name of its class; the log has that."""
    return str(error) or "an unexpected error, which the daemon's log describes"


LACKS: Final[Mapping[int, str]] = {
    errno.ENOSPC: "no space left on its disk",
    errno.EDQUOT: "its disk quota is used up",
    errno.EMFILE: "the daemon has too many files open",
    errno.ENFILE: "it has too many files open",
    errno.ENOMEM: "it has no memory left",
    errno.EAGAIN: "it can start no more processes",
    errno.ECHILD: "the process that starts workers ended",
    errno.EHOSTDOWN: "it is gone",
}
"""Errors by which a machine says that it lacks something, whatever was asked of it."""


class SubagentsError(Exception):
    """Something this package refuses or could not do; the message says the way out."""

    code = "error"
    retryable = False
    exit_code = EXIT_FAILED

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: Mapping[str, object] = dict(details or {})

    @classmethod
    def restored(
        cls, message: str, *, hint: str | None, details: Mapping[str, object]
    ) -> "SubagentsError":
        """The error that an error document stands for, whatever else it was made of there."""
        # Some classes make their message themselves; here it is given.
        error = cls.__new__(cls)
        SubagentsError.__init__(error, message, hint=hint, details=details)
        return error

    def to_wire(self) -> dict[str, object]:
        """``{code, message, details, retryable, hint}``: the error document of every interface."""
        return {
            "code": self.code,
            "message": self.message,
            "details": dict(self.details),
            "retryable": self.retryable,
            "hint": self.hint,
        }


def lack_of(error: BaseException | None) -> int | None:
    """Which of ``LACKS`` an error comes from; None = from none."""
    if isinstance(error, OSError) and error.errno in LACKS:
        return error.errno
    return None if error is None else lack_of(error.__cause__)


PROBLEMS_MAX: Final = 50
"""The most errors of one call that are named."""


def together(refused: Mapping[int, SubagentsError], *, of: int) -> SubagentsError:
    """The first of several errors of one call; its details have all of them under ``problems``.

    Args:
        refused: The errors by place in the list of runs that were asked for; at least one.
        of: How many runs were asked for. A field of one among several is named with its place.
    """
    if of == 1:
        return next(iter(refused.values()))
    for at, error in refused.items():
        field = error.details.get("field")
        # Some checks look at all runs together, and name the place themselves.
        if isinstance(field, str) and not field.startswith("specs["):
            error.details = {**error.details, "field": f"specs[{at}].{field}"}
    named = [
        {"step": at, "field": each.details.get("field"), "code": each.code, "message": each.message}
        for at, each in list(refused.items())[:PROBLEMS_MAX]
    ]
    first = next(iter(refused.values()))
    first.details = {**first.details, "problems": named, "problemsTotal": len(refused)}
    return first


class UsageError(SubagentsError):
    """A parameter is wrong; nothing was stored. Correct the named field and call again."""

    code = "invalid"
    exit_code = EXIT_USAGE


class ConfigError(UsageError):
    """A configuration key or value is wrong; the message names the file and the key."""

    code = "config_invalid"


class ContractError(UsageError):
    """A verification contract that could never be checked; refused before any work is paid for."""

    code = "contract_invalid"


class NotFound(SubagentsError):
    """Nothing by that name or id; ``subagents list`` shows what there is."""

    code = "not_found"
    exit_code = EXIT_NOT_FOUND


class Forbidden(SubagentsError):
    """A guardrail refused; nothing was stored. The message names the configuration key."""

    code = "forbidden"
    exit_code = EXIT_DENIED

    def __init__(self, message: str, *, guardrail: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, details={"guardrail": guardrail})

    @property
    def guardrail(self) -> str:
        """What refused: ``depth``, ``children``, …"""
        return str(self.details.get("guardrail", ""))


class RateLimited(Forbidden):
    """Too often, or too many at once; nothing was stored. The message names the limit.

    Args:
        limit: In words: ``at most 5 questions per minute and run``.
        retry_after_s: When the same call can succeed; None = when somebody answers or ends.
    """

    code = "rate_limited"
    retryable = True

    def __init__(self, limit: str, *, retry_after_s: int | None = None) -> None:
        again = "" if retry_after_s is None else f", again in {retry_after_s} s"
        super().__init__(f"rate_limited: {limit}{again}", guardrail="rate_limited")
        known = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}
        self.details = {**self.details, "limit": limit, **known}

    @property
    def limit(self) -> str:
        """The limit that was reached, in words."""
        return str(self.details.get("limit") or self.message)

    @property
    def retry_after_s(self) -> int | None:
        """When the same call can succeed; None = when somebody answers or ends."""
        seconds = self.details.get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else None


class Unauthorized(SubagentsError):
    """No token, or one that is unknown or no longer valid; nothing was read or done."""

    code = "unauthorized"
    exit_code = EXIT_DENIED


class Conflict(SubagentsError):
    """The run is in a phase in which this is not possible; nothing was changed."""

    code = "conflict"


class AlreadyAnswered(Conflict):
    """Somebody, or the deadline, answered the question before; the details have that answer."""

    code = "already_answered"


class IdempotencyConflict(Conflict):
    """The key stands for a run that was asked for otherwise; nothing was started or sent."""

    code = "idempotency_conflict"

    @classmethod
    def of(cls, key: str, *, run_id: str, differs: Sequence[str]) -> Self:
        """The error that names the run of a key, and the parameters that were others then."""
        return cls(
            f'idempotency key "{key}" already stands for run {run_id}, and this request differs'
            f" from the one that made it in {', '.join(differs)}",
            hint=f"give other work a key of its own; what this one stands for: subagents show"
            f" {run_id}",
            details={"runId": run_id, "differs": list(differs)},
        )


class IllegalTransition(SubagentsError):
    """An event that the run's phase neither expects nor knows as stale; nothing was changed."""

    code = "illegal_transition"

    def __init__(self, run_id: str, phase: str, event: str) -> None:
        super().__init__(
            f"run {run_id} in phase {phase} cannot take {event}",
            details={"runId": run_id, "phase": phase, "event": event},
        )
        self.run_id, self.phase, self.event = run_id, phase, event


class Unavailable(SubagentsError):
    """Something needed cannot serve now; nothing was stored, the same call can be repeated."""

    code = "unavailable"
    retryable = True
    exit_code = EXIT_UNREACHABLE


class DaemonUnreachable(Unavailable):
    """No daemon answers; ``subagents up`` starts it, ``subagents doctor`` says why."""

    code = "daemon_unreachable"
    is_lasting = False
    """Waiting is of no use: it was told to stop, or is at work on another machine."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
        is_lasting: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, details=details)
        self.is_lasting = is_lasting


class Fenced(Unavailable):
    """Another process took the state over; nothing was stored, and this process stops by itself.

    It does not pass: a call can only succeed at whoever answers next.
    """

    code = "fenced"


class Elsewhere(Unavailable):
    """Another node of the cluster decides about this run or session; nothing was done here.

    A node that is asked by a client forwards the call, so a client sees this only when the owner
    changed twice meanwhile.
    """

    code = "elsewhere"

    def __init__(self, partition: int, *, url: str | None = None, node: str | None = None) -> None:
        super().__init__(
            f"partition {partition} belongs to "
            + (f"node {node}" if node is not None else "no node at this moment"),
            hint="call again: a partition whose node is gone has another one in some seconds",
            details={"partition": partition, "node": node, "url": url},
        )

    @property
    def partition(self) -> int:
        """Which partition of runs and sessions the other node has."""
        found = self.details.get("partition")
        return found if isinstance(found, int) else 0


class NodeUnreachable(Unavailable):
    """Another node of the cluster does not answer now; what was asked may have been done.

    Its workers go on meanwhile, as long as its right holds.
    """

    code = "node_unreachable"


class NodeOver(Unavailable):
    """A node of the cluster is over, with all its workers; they are started again elsewhere."""

    code = "node_over"


class StoreUnavailable(Unavailable):
    """The database cannot be written now (disk full, read-only); reads continue."""

    code = "store_unavailable"
    # The daemon itself answers, so it is not unreachable.
    exit_code = EXIT_FAILED


class RuntimeUnavailable(Unavailable):
    """The runtime could not start the attempt; nothing was started."""

    code = "runtime_unavailable"
    exit_code = EXIT_FAILED


class OutcomeUnknown(SubagentsError):
    """The node that was doing this was lost; it may be done. Look before you repeat it."""

    code = "outcome_unknown"
    exit_code = EXIT_UNREACHABLE


class AlreadyRunning(SubagentsError):
    """Another process owns this state directory; use it, or stop it first."""

    code = "already_running"


class CorruptState(SubagentsError):
    """The database failed its checks; nothing was changed. The message says how to restore."""

    code = "corrupt_state"
