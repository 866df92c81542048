"""What became of attempts, as records without any text, and what they add up to; pure.

A record is made once an attempt is *final*: a newer one exists, the run waits for one, or the run
has its outcome. It is made from the run alone, so that whoever makes it later makes the same one.

Success counts only what was verified where there was a contract; a worker's own word never does.
Cancelled attempts say something of their caller, and checks that could not be made say something
of the checker: both are kept, and are in no rate.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final, TypeAlias

from subagents.domain.agents.agent_stats import Runtime, Stats, Tokens, rate_of
from subagents.domain.rules.provider_limits import agent_of
from subagents.domain.run.outcome import (
    Outcome,
    Reason,
    Status,
    Verdict,
    VerificationState,
)
from subagents.domain.run.run import Attempt, Confidence, Phase, ReportStatus, Run
from subagents.domain.run.spec import OnFailure
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import (
    AttemptId,
    RunId,
    SessionKey,
    Value,
    attempt_before,
    attempt_id,
)

DAY_MS: Final = 24 * 3_600_000
RETENTION_DAYS: Final = 30
RUNTIMES_MAX: Final = 10_000
"""How many of the newest runtimes make a percentile."""
_SHARES: Final = (0.5, 0.95)
_APART: Final = frozenset(
    {
        *(Reason.CANCELLED_BY_CALLER, Reason.PARENT_ENDED, Reason.COULD_NOT_CHECK),
        Reason.PROVIDER_LIMIT,
    }
)
_WAITS: Final = frozenset({Phase.RETRY_WAIT, Phase.QUEUED})


# -- records -------------------------------------------------------------------------------------


class Result(StrEnum):
    """What an attempt came to."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    TIMEOUT = "timeout"


_RESULTS: Final[Mapping[Status, Result]] = {
    Status.OK: Result.SUCCESS,
    Status.PARTIAL: Result.PARTIAL,
    Status.TIMEOUT: Result.TIMEOUT,
}


class Claim(Value, frozen=True):
    """What the worker's own report claimed, without its text."""

    status: ReportStatus
    confidence: Confidence | None


class AttemptRecord(Value, frozen=True):
    """One ended attempt; every field is always written, ``null`` where nothing is known."""

    run_id: RunId
    attempt: int
    agent_id: str
    task_type: str | None
    """The first tag."""
    tags: tuple[str, ...]
    model: str | None
    spawner_session_key: SessionKey
    started_at: int
    """When it was asked for, where it never started."""
    ended_at: int
    runtime_ms: int
    outcome: Result
    """``failure`` also for what was cancelled or lost; ``reason`` tells them apart."""
    reason: Reason | None
    verification_passed: bool | None
    """None without a contract, and where it could not be checked or proves nothing."""
    completion_report: Claim | None
    tokens: Tokens
    cost_usd: float | None
    retry_of: AttemptId | None
    """The attempt before it, also one of another run that a person had repeated."""
    escalated_from: RunId | None
    """The run whose broken contract was escalated to its requester, who had it repeated."""

    @property
    def is_judged(self) -> bool:
        """Whether it says something of the agent."""
        return self.reason not in _APART

    @property
    def key(self) -> str:
        return attempt_id(self.run_id, self.attempt)

    @property
    def day(self) -> int:
        """The UTC day of its end, in days since 1970."""
        return self.ended_at // DAY_MS


def ended_attempts(run: Run) -> int:
    """How many of the run's attempts, from the first on, are final: of those that had a worker."""
    number = 0 if run.spec.for_each is not None else len(run.attempts)
    is_final = number > 0 and (run.is_settled or run.phase in _WAITS)
    if is_final and run.attempts[-1].outcome is not None:
        return number
    return max(number - 1, 0)


def record_of(run: Run, number: int) -> AttemptRecord:
    """The record of a final attempt; the same for every later state of the run.

    ``retry_of`` and ``escalated_from`` of a run that repeats another one: see ``repeated``.
    """
    attempt = run.attempts[number - 1]
    outcome, passed = _judged(run, attempt)
    started = attempt.times.started_at_ms or attempt.times.requested_at_ms
    ended = attempt.times.ended_at_ms or started
    usage = attempt.usage or Usage()
    said, agent = attempt.reported.report, agent_of(run, number)
    return AttemptRecord(
        run_id=run.id,
        attempt=number,
        agent_id=agent.agent_id,
        task_type=run.spec.tags[0] if run.spec.tags else None,
        tags=run.spec.tags,
        model=agent.model,
        spawner_session_key=run.requester,
        started_at=started,
        ended_at=ended,
        runtime_ms=max(ended - started, 0),
        outcome=_RESULTS.get(outcome.status, Result.FAILURE),
        reason=outcome.reason,
        verification_passed=passed,
        completion_report=Claim(status=said.status, confidence=said.confidence) if said else None,
        tokens=Tokens(
            input=usage.tokens_in,
            output=usage.tokens_out,
            cache_read=usage.tokens_cache_read,
            cache_write=usage.tokens_cache_write,
        ),
        cost_usd=usage.cost_usd,
        retry_of=attempt_before(run.id, attempt.number),
        escalated_from=None,
    )


def repeated(run: Run) -> tuple[AttemptId | None, RunId | None]:
    """``retry_of`` and ``escalated_from`` for the first attempt of a run that repeats this one."""
    last = attempt_id(run.id, len(run.attempts)) if run.attempts else None
    contract, outcome = run.spec.verification, run.outcome
    was_escalated = (
        contract is not None
        and contract.on_failure is OnFailure.ESCALATE
        and outcome is not None
        and outcome.reason is Reason.VERIFICATION_FAILED
    )
    return last, run.id if was_escalated else None


def _judged(run: Run, attempt: Attempt) -> tuple[Outcome, bool | None]:
    """What a final attempt came to, its contract counted, and whether that was met."""
    own = attempt.outcome or Outcome(status=Status.LOST, reason=Reason.LEASE_LOST)
    if own.status not in {Status.OK, Status.PARTIAL}:
        is_failure = run.spec.verification is not None and own.reason not in _APART
        return own, False if is_failure else None
    if run.spec.verification is None:
        return _of_last(run, attempt, own), None
    is_last = attempt.number == len(run.attempts)
    was_refused = (
        run.retry.cause.verifies if is_last else run.attempts[attempt.number].retry.verifies
    )
    if was_refused:
        return Outcome(status=Status.ERROR, reason=Reason.VERIFICATION_FAILED), False
    return _of_last(run, attempt, own), _verdict(run) if is_last else None


def _of_last(run: Run, attempt: Attempt, own: Outcome) -> Outcome:
    """The run's outcome is its last attempt's: only then its contract and a late cancel count."""
    is_last = attempt.number == len(run.attempts)
    return run.outcome if is_last and run.outcome is not None else own


def _verdict(run: Run) -> bool | None:
    if run.verification.vacuous:
        return None  # nobody's merit
    checked = run.verification.state in {VerificationState.PASSED, VerificationState.FAILED}
    if not checked or run.verification.result is None or run.outcome is None:
        return None
    match run.verification.result.verdict:
        case Verdict.PASSED:
            return True
        case Verdict.FAILED:
            return False
        case Verdict.COULD_NOT_CHECK:
            return None


# -- adding up -----------------------------------------------------------------------------------


class By(StrEnum):
    """What statistics are grouped by."""

    AGENT = "agent"
    TAG = "tag"
    MODEL = "model"


class Wanted(Value, frozen=True):
    """Which attempts are counted, and what together; None = any."""

    by: By = By.AGENT
    """An attempt with several tags counts for each of them."""
    agent: str | None = None
    tag: str | None = None
    model: str | None = None

    @property
    def is_of_tags(self) -> bool:
        return self.by is By.TAG or self.tag is not None


@dataclass(slots=True)
class Sum:
    """Over attempts that ended."""

    attempts: int = 0
    runs: int = 0
    """First attempts: fewer than ``attempts`` when some were tried again."""
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    """The part of ``tokens_in`` that came from a cache."""
    cache_write: int = 0
    tokens_known: int = 0
    """How many attempts' tokens are known."""
    cost_usd: float = 0.0
    cost_known: int = 0
    """How many attempts' cost is known."""

    def add(self, record: AttemptRecord) -> None:
        self.attempts += 1
        self.runs += record.attempt == 1
        tokens = record.tokens
        if tokens.input is not None and tokens.output is not None:
            self.tokens_in += tokens.input
            self.tokens_out += tokens.output
            self.cache_read += tokens.cache_read or 0
            self.cache_write += tokens.cache_write or 0
            self.tokens_known += 1
        if record.cost_usd is not None:
            self.cost_usd += record.cost_usd
            self.cost_known += 1

    def merge(self, other: "Sum") -> None:
        """Add another one to this."""
        for each in fields(Sum):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class Tally(Sum):
    """Sums over attempts of one kind."""

    results: Counter[Result] = field(default_factory=Counter)
    """The results of judged attempts."""
    reasons: Counter[Reason] = field(default_factory=Counter)
    checked: int = 0
    """Judged attempts with a contract that could be checked."""
    verified: int = 0
    runtimes_ms: "array[int]" = field(default_factory=lambda: array("q"))
    """The runtimes of judged attempts, oldest first."""

    @property
    def judged(self) -> int:
        return self.results.total()

    def add(self, record: AttemptRecord) -> None:
        Sum.add(self, record)
        if record.reason is not None:
            self.reasons[record.reason] += 1
        if not record.is_judged:
            return
        self.results[record.outcome] += 1
        self.runtimes_ms.append(record.runtime_ms)
        if len(self.runtimes_ms) >= 2 * RUNTIMES_MAX:
            del self.runtimes_ms[:RUNTIMES_MAX]
        if record.verification_passed is not None:
            self.checked += 1
            self.verified += record.verification_passed

    def take(self, older: "Tally") -> None:
        """Add another one to this; its runtimes only while there is room for them."""
        self.merge(older)
        self.checked += older.checked
        self.verified += older.verified
        self.results.update(older.results)
        self.reasons.update(older.reasons)
        room = RUNTIMES_MAX - len(self.runtimes_ms)
        if room > 0:
            self.runtimes_ms.extend(older.runtimes_ms[-room:])


Kind: TypeAlias = tuple[str, str | None]
"""Agent and model. Not tags: every run may have its own, and sums of each would fill memory."""
Day: TypeAlias = dict[Kind, Tally]
"""The sums of one day."""
Sums: TypeAlias = dict[str | None, Tally]
"""Sums by agent, tag or model."""


def count(day: Day, records: Iterable[AttemptRecord]) -> None:
    """Add records to a day's sums."""
    for record in records:
        day.setdefault((record.agent_id, record.model), Tally()).add(record)


def count_tags(sums: Sums, records: Iterable[AttemptRecord], wanted: Wanted) -> None:
    """Add those records that are wanted, oldest first, where tags matter."""
    for record in records:
        if (
            wanted.agent not in {None, record.agent_id}
            or wanted.model not in {None, record.model}
            or (wanted.tag is not None and wanted.tag not in record.tags)
        ):
            continue
        names: dict[By, Iterable[str | None]] = {
            By.AGENT: (record.agent_id,),
            By.MODEL: (record.model,),
            By.TAG: dict.fromkeys(record.tags) or (None,),
        }
        for name in names[wanted.by]:
            sums.setdefault(name, Tally()).add(record)


def total(days: Iterable[Mapping[Kind, Tally]], wanted: Wanted) -> Sums:
    """The sums of several days, newest first, where tags do not matter."""
    sums: Sums = {}
    for day in days:
        for (agent, model), tally in day.items():
            if wanted.agent in {None, agent} and wanted.model in {None, model}:
                name = agent if wanted.by is By.AGENT else model
                sums.setdefault(name, Tally()).take(tally)
    return sums


def stats_of(name: str | None, tally: Tally) -> Stats:
    """What a tally says."""
    judged = tally.judged
    cancelled = tally.reasons[Reason.CANCELLED_BY_CALLER] + tally.reasons[Reason.PARENT_ENDED]
    outcomes = {result.value: tally.results[result] for result in Result}
    outcomes |= {"cancelled": cancelled, "couldNotCheck": tally.reasons[Reason.COULD_NOT_CHECK]}
    return Stats(
        name=name,
        runs=tally.runs,
        attempt_count=tally.attempts,
        outcomes=outcomes,
        reasons={reason.value: number for reason, number in tally.reasons.most_common()},
        success=rate_of(tally.results[Result.SUCCESS], judged),
        verified=rate_of(tally.verified, tally.checked),
        took=_runtime_of(tally.runtimes_ms),
        tokens=Tokens(
            input=tally.tokens_in if tally.tokens_known else None,
            output=tally.tokens_out if tally.tokens_known else None,
            cache_read=tally.cache_read or None,
            cache_write=tally.cache_write or None,
        ),
        tokens_known=tally.tokens_known,
        cost_usd=round(tally.cost_usd, 6) if tally.cost_known else None,
        cost_known=tally.cost_known,
    )


def _runtime_of(runtimes_ms: Sequence[int]) -> Runtime | None:
    if not runtimes_ms:
        return None
    ordered = sorted(runtimes_ms[-RUNTIMES_MAX:])
    p50, p95 = (ordered[math.ceil(share * len(ordered)) - 1] for share in _SHARES)
    return Runtime(p50_ms=p50, p95_ms=p95)
