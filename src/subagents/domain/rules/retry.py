"""Which failures are tried again, and when."""

from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.spec import RETRY_DELAY_MS_MAX, Backoff, RunSpec
from subagents.domain.run.values import RunId

RETRYABLE = frozenset({Status.ERROR, Status.TIMEOUT, Status.LOST})


def backoff_delay_ms(number: int, *, base_ms: int, strategy: Backoff) -> int:
    """Delay before retry ``number`` (0, 1, …) in ms, at most one hour.

    fixed d, linear d·(n+1), exponential d·2ⁿ.
    """
    match strategy:
        case Backoff.FIXED:
            delay = base_ms
        case Backoff.LINEAR:
            delay = base_ms * (number + 1)
        case Backoff.EXPONENTIAL:
            # The delay is bounded below; this only keeps the number on the way small.
            delay = base_ms << min(number, 62)
    return min(delay, RETRY_DELAY_MS_MAX)


def matches(error: str, patterns: tuple[str, ...]) -> bool:
    """Whether ``retryOn`` covers this error: case-insensitive substrings, none = all."""
    if not patterns:
        return True
    lowered = error.lower()
    return any(pattern.lower() in lowered for pattern in patterns)


def retry_delay_ms(
    spec: RunSpec, outcome: Outcome, *, retries_used: int, first_start_ms: int, now_ms: int
) -> int | None:
    """Delay until the next attempt in ms, or None when there is none.

    Never for cancelled runs or an exhausted budget; the reducer does not ask after a launch that
    can never start.
    """
    # A cancelled run is not wanted any more; one without budget could only be stopped again.
    if outcome.status not in RETRYABLE or outcome.reason is Reason.BUDGET:
        return None
    if retries_used >= spec.retry_count:
        return None
    if not matches(f"{outcome.status} {outcome.reason} {outcome.error}", spec.retry_on):
        return None
    delay = backoff_delay_ms(retries_used, base_ms=spec.retry_delay, strategy=spec.retry_backoff)
    if spec.retry_max_time is None:
        return delay
    # The last retry comes early rather than not at all, as long as there is time left.
    remaining = spec.retry_max_time - (now_ms - first_start_ms)
    return None if remaining <= 0 else min(delay, remaining)


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
