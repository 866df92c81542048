"""Which failures are tried again, and when; in which session the next attempt works."""

import re
from typing import Final

from subagents.domain.rules.provider_limits import RESUME_TEXT
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.outcome import Outcome, Reason, Status, Verification
from subagents.domain.run.run import Run
from subagents.domain.run.spec import RETRY_DELAY_MS_MAX, RETRY_TIME_MS_MAX, Backoff
from subagents.domain.run.values import RunId
from subagents.domain.text.announcement import failed_checks, follow_up
from subagents.text import counted, duration

RETRYABLE = frozenset({Status.ERROR, Status.TIMEOUT, Status.LOST})
_MEASURED: Final = re.compile(
    r"0x[0-9a-f]+|\d{4}-\d\d-\d\d[\d:._TZ-]*|\d+(:\d+)+|\d+(\.\d+)?\s?([mun]?s|sec\w*|min\w*)\b"
)
"""Times, durations and addresses, which differ though nothing else does."""


def backoff_delay_ms(number: int, *, base_ms: int, strategy: Backoff) -> int:
    """Delay before retry ``number`` (0, 1, …) in ms, at most one hour.

    fixed d, linear d·(n+1), exponential d·2ⁿ.
    """
    linear = base_ms * (number + 1 if strategy is Backoff.LINEAR else 1)
    # The delay is bounded all the same; this only keeps the number on the way small.
    delay = base_ms << min(number, 62) if strategy is Backoff.EXPONENTIAL else linear
    return min(delay, RETRY_DELAY_MS_MAX)


def matches(error: str, patterns: tuple[str, ...]) -> bool:
    """Whether ``retryOn`` covers this error: case-insensitive substrings, none = all."""
    if not patterns:
        return True
    lowered = error.lower()
    return any(pattern.lower() in lowered for pattern in patterns)


def retry_delay_ms(run: Run, outcome: Outcome, at_ms: int) -> int | None:
    """Delay until the next attempt in ms, or None when there is none.

    Never for cancelled runs or an exhausted budget; the reducer does not ask after a launch that
    can never start.
    """
    spec, used = run.spec, run.retry.used
    # A cancelled run is not wanted any more; one without budget could only be stopped again.
    if outcome.status not in RETRYABLE or outcome.reason is Reason.BUDGET:
        return None
    if used >= spec.retry_count:
        return None
    if not matches(f"{outcome.status} {outcome.reason} {outcome.error}", spec.retry_on):
        return None
    delay = backoff_delay_ms(used, base_ms=spec.retry_delay, strategy=spec.retry_backoff)
    # The last retry comes early rather than not at all, as long as there is time left.
    left = _left_ms(run, at_ms)
    return None if left <= 0 else min(delay, left)


def _left_ms(run: Run, at_ms: int) -> int:
    """The time in which retries may begin."""
    started_ms = run.times.started_at_ms or run.times.created_at_ms
    most_ms = run.spec.retry_max_time
    return RETRY_TIME_MS_MAX if most_ms is None else started_ms + most_ms - at_ms


def retries_after_checks(run: Run) -> int:
    """How many retries of ``retryUntilVerified`` were used.

    One that its provider refused is begun again for the same reason, and counts once.
    """
    if not run.spec.retry_until_verified:
        return 0
    ends = [each.outcome and each.outcome.reason for each in run.attempts]
    again = zip(ends, run.attempts[1:], strict=False)
    return sum(each.retry.verifies and end is not Reason.PROVIDER_LIMIT for end, each in again)


def why_no_retry(run: Run, before: Verification | None, now: Verification, at_ms: int) -> str:
    """Why none follows a failed check, of those that ``retryUntilVerified`` allows; "" = one does.

    ``now`` is what was found, ``before`` what the check before it had found.
    """
    most = run.spec.retry_until_verified
    if before is not None and _is_as(before, now):
        return "no file changed, and the same checks failed in the same way"
    if retries_after_checks(run) >= most:
        return f"{counted(most, 'retry', 'retries')} used"
    is_late = _left_ms(run, at_ms) <= 0
    return f"more than {duration(run.spec.retry_max_time or 0)} have passed" if is_late else ""


def _is_as(before: Verification, now: Verification) -> bool:
    if now.files_found is None or now.files_found != before.files_left:
        return False
    failed, failed_before = (
        {(each.type, each.target, _MEASURED.sub("", each.reason or "")) for each in found.failures}
        for found in (now, before)
    )
    return failed == failed_before


def resumes(run: Run) -> str | None:
    """The program's own session in which the next attempt continues; None = from the beginning."""
    if not run.attempts or not run.resolved.abilities.resume:
        return None
    is_asked = run.spec.retry_until_verified > 0 and not run.spec.retry_afresh
    goes_on = run.retry.limited is not None or (is_asked and run.retry.cause.verifies)
    is_same = run.attempt.handed_over == run.retry.handed_over  # no other agent took over
    return run.attempt.session.native if goes_on and is_same else None


def resume_message(run: Run, children: tuple[Child, ...]) -> str:
    """The message that resumes the session: why, and what came in meanwhile."""
    found = run.verification.result if run.retry.limited is None else None
    text = RESUME_TEXT if found is None else failed_checks(found)
    news = follow_up(children, run.control.steers)
    return f"{text}\n\n{news}" if news else text


DELIVERY_FIRST_DELAY_MS = 15_000
DELIVERY_DELAY_MS_MAX = 300_000
DELIVERY_GIVE_UP_MS = 30 * 60_000
_JITTER_PERCENT = 20


def delivery_delay_ms(run_id: RunId, number: int) -> int:
    """Delay before delivery try ``number`` (1, 2, …): 15 s doubling to 5 min, ± 20 % jitter.

    The jitter comes from the id, not from a random source: the reducer stays pure and a replay
    gives the same times, while runs that failed together do not come back together.
    """
    base = min(DELIVERY_FIRST_DELAY_MS << min(number - 1, 10), DELIVERY_DELAY_MS_MAX)
    # Two primes, so that neither ids nor tries that differ by one get neighbouring delays.
    spread = sum(run_id.encode()) * 31 + number * 17
    percent = spread % (2 * _JITTER_PERCENT + 1) - _JITTER_PERCENT
    return base + base * percent // 100
