"""When to try again: the tables of delays, and the times of delivery tries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Life, a_contract, a_resolved, a_verification

from subagents.domain.rules.retry import (
    DELIVERY_DELAY_MS_MAX,
    backoff_delay_ms,
    delivery_delay_ms,
    matches,
    retries_after_checks,
    retry_delay_ms,
    why_no_retry,
)
from subagents.domain.run.outcome import OK, Outcome, Reason, Status, Verdict, Verification
from subagents.domain.run.run import Retry
from subagents.domain.run.signals import ResultSeen, SessionSeen
from subagents.domain.run.spec import RETRY_DELAY_MS_MAX, Abilities, Backoff, OnFailure, RunSpec
from subagents.domain.run.values import RunId, replace

ERROR = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="auth error")


def delay(
    spec: RunSpec, outcome: Outcome = ERROR, *, used: int = 0, passed_ms: int = 0
) -> int | None:
    life = Life.begin(spec).start()
    run = replace(life.run, retry=Retry(used=used))
    return retry_delay_ms(run, outcome, life.at_ms + passed_ms)


@pytest.mark.parametrize(
    ("strategy", "delays"),
    [
        pytest.param(
            Backoff.FIXED,
            [1000, 1000, 1000, 1000],
            marks=pytest.mark.requirement("retry:backoff-fixed"),
        ),
        pytest.param(
            Backoff.LINEAR,
            [1000, 2000, 3000, 4000],
            marks=pytest.mark.requirement("retry:backoff-linear"),
        ),
        pytest.param(
            Backoff.EXPONENTIAL,
            [1000, 2000, 4000, 8000],
            marks=pytest.mark.requirement("retry:backoff-exponential"),
        ),
    ],
)
def test_the_delays_of_each_backoff(strategy: Backoff, delays: list[int]) -> None:
    found = [backoff_delay_ms(n, base_ms=1000, strategy=strategy) for n in range(4)]

    assert found == delays


@pytest.mark.requirement("retry:backoff-bounded")
@given(st.integers(0, 100), st.integers(0, RETRY_DELAY_MS_MAX), st.sampled_from(list(Backoff)))
def test_no_delay_is_longer_than_an_hour(number: int, base_ms: int, strategy: Backoff) -> None:
    assert 0 <= backoff_delay_ms(number, base_ms=base_ms, strategy=strategy) <= 3_600_000


@pytest.mark.requirement("retry:retry-on", "retry:on-timeout-only")
@pytest.mark.parametrize(
    ("error", "patterns", "wanted"),
    [
        ("some error", (), True),
        ("connect: econnreset by peer", ("ETIMEDOUT", "ECONNRESET"), True),
        ("Rate limited", ("ETIMEDOUT",), False),
        ("TIMEOUT ERROR", ("timeout",), True),
    ],
)
def test_retry_on_is_case_insensitive_substrings(
    error: str, patterns: tuple[str, ...], *, wanted: bool
) -> None:
    assert matches(error, patterns) is wanted


@pytest.mark.requirement("retry:on-timeout-only")
def test_an_error_that_retry_on_does_not_name_is_not_retried() -> None:
    assert delay(RunSpec(task="t", retry_count=3, retry_on=("timeout",))) is None
    assert delay(RunSpec(task="t", retry_count=3, retry_on=("AUTH",))) == 1000


@pytest.mark.requirement("retry:retry-on")
def test_retry_on_sees_the_kind_of_end_as_well_as_its_text() -> None:
    spec = RunSpec(task="t", retry_count=1, retry_on=("timeout",))

    assert delay(spec, Outcome(status=Status.TIMEOUT, reason=Reason.DEADLINE)) == 1000


@pytest.mark.requirement("retry:max-time", "retry:retry-max-time")
def test_retry_max_time_cuts_the_last_delay_and_then_ends_the_retries() -> None:
    spec = RunSpec(task="t", retry_count=10, retry_delay=100, retry_max_time=150)

    assert delay(spec) == 100
    assert delay(spec, used=1, passed_ms=100) == 50
    assert delay(spec, used=2, passed_ms=150) is None


@pytest.mark.requirement("retry:retry-count-0", "retry:retry-count-3")
def test_there_are_as_many_retries_as_were_asked_for() -> None:
    assert delay(RunSpec(task="t", retry_count=0)) is None
    found = [delay(RunSpec(task="t", retry_count=3), used=n) for n in range(5)]
    assert found == [1000, 2000, 4000, None, None]


@pytest.mark.requirement("retry:what-is-retried")
@pytest.mark.parametrize(
    ("outcome", "retried"),
    [
        (OK, False),
        (ERROR, True),
        (Outcome(status=Status.TIMEOUT, reason=Reason.DEADLINE), True),
        (Outcome(status=Status.LOST, reason=Reason.LEASE_LOST), True),
        (Outcome(status=Status.ERROR, reason=Reason.START_FAILED), True),
        (Outcome(status=Status.CANCELLED), False),
        (Outcome(status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL), False),
        (Outcome(status=Status.PARTIAL, reason=Reason.BUDGET), False),
        (Outcome(status=Status.ERROR, reason=Reason.BUDGET), False),
    ],
)
def test_only_errors_timeouts_and_lost_attempts_are_retried(
    outcome: Outcome, *, retried: bool
) -> None:
    assert (delay(RunSpec(task="t", retry_count=1), outcome) is not None) is retried


SAME = "no file changed, and the same checks failed in the same way"
RESUMING = a_resolved(abilities=Abilities(resume=True))


def failed(reason: str, before: str | None = "x", after: str | None = "x") -> Verification:
    return a_verification(Verdict.FAILED, reason=reason, files_found=before, files_left=after)


def checked(retries: int = 2, **spec: object) -> Life:
    """A run whose first attempt has ended and is being verified."""
    wanted = RunSpec(task="do it", retry_until_verified=retries, verification=a_contract())
    life = Life.begin(replace(wanted, **spec), RESUMING).start()
    return life.signal(SessionSeen(key="s", session_id="native-1")).result("done").exit()


@pytest.mark.requirement("retry:until-verified-sameness")
@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (failed("1 failed in 0.03s"), failed("1 failed in 12.41s"), SAME),
        (failed("at 0x7f3a, 12:03:59"), failed("at 0x81bc, 12:04:07"), SAME),
        (failed("log 2026-11-29T09_02_27Z"), failed("log 2026-11-29T09_03_11Z"), SAME),
        (failed("3 of 10 rows"), failed("4 of 10 rows"), ""),
        (failed("1 failed"), failed("1 failed", before="y"), ""),
        (failed("1 failed", after=None), failed("1 failed", before=None), ""),
        (a_verification(Verdict.FAILED), a_verification(Verdict.FAILED), ""),
        (None, failed("1 failed"), ""),
    ],
)
def test_the_same_failure_is_one_that_differs_in_times_alone_and_changed_no_file(
    then: Verification | None, now: Verification, said: str
) -> None:
    assert why_no_retry(checked().run, then, now, 0) == said


@pytest.mark.requirement("retry:until-verified")
def test_a_failed_check_goes_back_into_the_session_with_what_failed() -> None:
    life = checked().verify(Verdict.FAILED).timer().start()

    session = life.run.attempt.session
    assert session.resumes == "native-1"
    assert "out.txt: is missing" in (session.opening or "")
    assert life.run.attempt.retry.verifies
    assert (life.run.retry.used, retries_after_checks(life.run)) == (0, 1)


@pytest.mark.requirement("retry:until-verified-afresh")
@pytest.mark.parametrize(
    "asked",
    [
        RunSpec(task="do it", retry_until_verified=2, retry_afresh=True),
        RunSpec(task="do it", verification=a_contract(OnFailure.RETRY_ONCE)),
    ],
)
def test_afresh_and_retry_once_begin_a_new_session(asked: RunSpec) -> None:
    asked = replace(asked, verification=asked.verification or a_contract())
    life = Life.begin(asked, RESUMING).start()
    life.signal(SessionSeen(key="s", session_id="native-1")).exit().verify(Verdict.FAILED)

    assert life.timer().start().run.attempt.session.resumes is None


@pytest.mark.requirement("retry:until-verified")
def test_what_came_meanwhile_follows_what_failed() -> None:
    life = checked().verify(Verdict.FAILED).steer("keep the API").timer().start()

    opening = life.run.attempt.session.opening or ""
    assert opening.index("is missing") < opening.index("keep the API")


@pytest.mark.requirement("retry:until-verified", "retry:retry-max-time")
def test_no_check_is_tried_again_after_the_longest_time_for_retries() -> None:
    life = checked(retries=5, retry_max_time=60_000).verify(Verdict.FAILED).timer().start().exit()
    life.pass_ms(60_000).verify(Verdict.FAILED)

    assert life.run.outcome is not None
    assert life.run.outcome.error == (
        "stopped after attempt 2: more than 1m have passed: out.txt: is missing"
    )


@pytest.mark.requirement("retry:until-verified")
def test_an_attempt_that_a_provider_refused_counts_once() -> None:
    life = checked(retries=1).verify(Verdict.FAILED).timer().start()
    refused = ResultSeen(key="r", text="", is_error=True, error="429", is_limit=True)
    life.signal(refused).exit(1).timer().start()

    assert (len(life.run.attempts), retries_after_checks(life.run)) == (3, 1)


@pytest.mark.requirement("retry:until-verified", "contract:escalate")
def test_escalation_comes_when_the_retries_are_used() -> None:
    contract = a_contract(OnFailure.ESCALATE)
    life = checked(retries=1, verification=contract).verify(Verdict.FAILED)
    assert not life.run.is_settled
    life.timer().start().exit().verify(Verdict.FAILED)

    kinds = [each.kind for each in life.messages]
    assert kinds == ["announcement", "blocker"]


@pytest.mark.requirement("delivery:backoff")
@given(st.text(min_size=1, max_size=12), st.integers(1, 1_000))
def test_delivery_tries_back_off_from_15_seconds_to_5_minutes_within_20_percent(
    name: str, number: int
) -> None:
    base = min(15_000 * 2 ** min(number - 1, 20), DELIVERY_DELAY_MS_MAX)

    found = delivery_delay_ms(RunId(name), number)

    assert 0.8 * base - 1 <= found <= 1.2 * base
    assert found == delivery_delay_ms(RunId(name), number)


@pytest.mark.requirement("delivery:backoff")
def test_runs_that_failed_together_do_not_come_back_together() -> None:
    delays = {delivery_delay_ms(RunId(f"r-{n:010}"), 1) for n in range(100)}

    assert len(delays) > 10
