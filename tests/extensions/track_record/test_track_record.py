"""Performance records: what an ended attempt came to, the same whoever makes it, and the sums."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW_MS, RUN, Life, a_contract, taken_over

from subagents.domain.agents.agent_stats import Tokens
from subagents.domain.run.outcome import Reason, Verdict
from subagents.domain.run.run import Confidence, Report, ReportStatus
from subagents.domain.run.signals import ReportSeen, UsageSeen
from subagents.domain.run.spec import OnFailure, RunSpec
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RunId, replace
from subagents.extensions.track_record.track_record import (
    RUNTIMES_MAX,
    AttemptRecord,
    By,
    Claim,
    Day,
    Result,
    Tally,
    Wanted,
    count,
    count_tags,
    ended_attempts,
    record_of,
    repeated,
    stats_of,
    total,
)

CHECKED = RunSpec(task="do it", verification=a_contract())
REPEATED = RunSpec(task="do it", verification=a_contract(OnFailure.RETRY_ONCE))
TRIED = RunSpec(task="do it", retry_count=1)
TRIED_AND_CHECKED = RunSpec(task="do it", retry_count=1, verification=a_contract())


def begun(spec: RunSpec | None = None) -> Life:
    return Life.begin(spec).start()


def records(life: Life) -> list[AttemptRecord]:
    return [record_of(life.run, n + 1) for n in range(ended_attempts(life.run))]


@pytest.mark.requirement("performance:outcome")
def test_an_attempt_is_of_the_agent_that_made_it_whoever_took_over() -> None:
    run = begun().exit(1).run
    assert record_of(taken_over(run), 1) == record_of(run, 1)


def verdicts(life: Life) -> list[tuple[str, str | None, bool | None]]:
    return [
        (each.outcome.value, each.reason and each.reason.value, each.verification_passed)
        for each in records(life)
    ]


ENDS = {
    "exit 0": (begun().exit(), [("success", None, None)]),
    "exit 1": (begun().exit(1), [("failure", "exit_code", None)]),
    "killed": (begun().exit(None, signal=9), [("failure", "signal", None)]),
    "lost": (begun().exit(None), [("failure", "exit_unknown", None)]),
    "never started": (Life.begin().fail_start(), [("failure", "start_failed", None)]),
    "cancelled": (begun().cancel().exit(), [("failure", "cancelled_by_caller", None)]),
    "parent gone": (begun().cancel(cascaded=True).exit(), [("failure", "parent_ended", None)]),
    "contract met": (begun(CHECKED).exit().verify(Verdict.PASSED), [("success", None, True)]),
    "a lie": (
        begun(CHECKED).exit().verify(Verdict.FAILED),
        [("failure", "verification_failed", False)],
    ),
    "could not check": (
        begun(CHECKED).exit().verify(Verdict.COULD_NOT_CHECK),
        [("failure", "could_not_check", None)],
    ),
    "contract and exit 1": (begun(CHECKED).exit(1), [("failure", "exit_code", False)]),
    "cancelled while checked": (
        begun(CHECKED).exit().cancel(),
        [("failure", "cancelled_by_caller", None)],
    ),
    "repeated after a broken contract": (
        begun(REPEATED).exit().verify(Verdict.FAILED),
        [("failure", "verification_failed", False)],
    ),
    "repeated and met": (
        begun(REPEATED).exit().verify(Verdict.FAILED).timer().start().exit().verify(Verdict.PASSED),
        [("failure", "verification_failed", False), ("success", None, True)],
    ),
    "repeated, and then it crashes unchecked": (
        begun(REPEATED).exit().verify(Verdict.FAILED).timer().start().exit(1),
        [("failure", "verification_failed", False), ("failure", "exit_code", False)],
    ),
    "cancelled before it is repeated": (
        begun(REPEATED).exit().verify(Verdict.FAILED).cancel(),
        [("failure", "verification_failed", False)],
    ),
    "tried again": (begun(TRIED).exit(1), [("failure", "exit_code", None)]),
    "tried again, waits for a slot": (
        begun(TRIED).exit(1).timer(),
        [("failure", "exit_code", None)],
    ),
    "tried again, works": (begun(TRIED).exit(1).timer().start(), [("failure", "exit_code", None)]),
    "cancelled before it is tried again": (
        begun(TRIED).exit(1).cancel(),
        [("failure", "exit_code", None)],
    ),
    "tried again and checked": (
        begun(TRIED_AND_CHECKED).exit(1).timer().start().exit().verify(Verdict.PASSED),
        [("failure", "exit_code", False), ("success", None, True)],
    ),
    "told and cleaned up": (begun().exit().deliver().clean_up(), [("success", None, None)]),
}


@pytest.mark.requirement("performance:outcome")
@pytest.mark.parametrize("name", ENDS)
def test_an_attempt_comes_to_what_was_seen_of_it_and_what_its_contract_found(name: str) -> None:
    life, wanted = ENDS[name]

    assert verdicts(life) == wanted


@pytest.mark.requirement("performance:outcome")
def test_a_worker_that_claims_less_or_more_than_its_exit_is_judged_by_evidence() -> None:
    report = Report(summary="s", status=ReportStatus.COMPLETE, confidence=Confidence.HIGH)
    boastful = begun(CHECKED).signal(ReportSeen(key="r", report=report)).exit()
    boastful.verify(Verdict.FAILED)
    humble = begun(CHECKED)
    partial = replace(report, status=ReportStatus.PARTIAL, confidence=None)
    humble.signal(ReportSeen(key="r", report=partial)).exit().verify(Verdict.PASSED)
    (lie,), (half,) = records(boastful), records(humble)

    assert (lie.outcome, lie.verification_passed) == (Result.FAILURE, False)
    claim = Claim(status=ReportStatus.COMPLETE, confidence=Confidence.HIGH)
    assert lie.completion_report == claim
    assert (half.outcome, half.verification_passed) == (Result.PARTIAL, True)
    assert half.completion_report == Claim(status=ReportStatus.PARTIAL, confidence=None)


@pytest.mark.requirement("performance:timeout")
def test_an_attempt_stopped_at_its_deadline_is_a_timeout() -> None:
    life = Life.begin(CHECKED)
    life.run = replace(life.run, resolved=replace(life.run.resolved, timeout_ms=1000))
    life.start().timer().exit(None, signal=15)

    assert verdicts(life) == [("timeout", "deadline", False)]


@pytest.mark.requirement("performance:final")
def test_no_attempt_is_final_while_it_lives_or_is_checked() -> None:
    assert ended_attempts(Life.begin().run) == 0
    assert ended_attempts(begun().run) == 0
    assert ended_attempts(begun().exit(drained=False).run) == 0
    assert ended_attempts(begun(CHECKED).exit().run) == 0
    assert ended_attempts(begun(TRIED).exit(1).timer().start().run) == 1


@pytest.mark.requirement("performance:final")
def test_a_record_is_the_same_whatever_happened_to_the_run_since() -> None:
    """What a crash kept from being written is made from a later state of the run."""
    life = begun(REPEATED).pass_ms(70).exit().verify(Verdict.FAILED)
    (first,) = records(life)
    life.timer().start().pass_ms(30)
    assert records(life) == [first]
    life.exit().verify(Verdict.PASSED)
    later = records(life)
    assert later[0] == first
    life.deliver().clean_up().archive()

    assert records(life) == later


@pytest.mark.requirement("performance:record")
def test_a_record_has_numbers_ids_and_codes_and_no_text() -> None:
    secret = "the quick brown fox"
    spec = replace(REPEATED, task=secret, label=secret, tags=("review", "nightly"))
    life = begun(spec).result(secret)
    life.signal(UsageSeen(key="u", usage=Usage(tokens_in=1200, tokens_out=30, cost_usd=0.25)))
    report = Report(summary=secret, blockers=(secret,))
    life.signal(ReportSeen(key="r", report=report)).pass_ms(4000).exit()
    life.verify(Verdict.FAILED, reason=secret).timer().start().pass_ms(100).exit(1, stderr_tail="x")
    first, second = records(life)
    line = msgspec.json.encode(first)

    assert secret.encode() not in line
    assert msgspec.json.decode(line) == {
        "runId": RUN,
        "attempt": 1,
        "agentId": "worker",
        "taskType": "review",
        "tags": ["review", "nightly"],
        "model": None,
        "spawnerSessionKey": "agent:main:main",
        "startedAt": NOW_MS,
        "endedAt": NOW_MS + 4000,
        "runtimeMs": 4000,
        "outcome": "failure",
        "reason": "verification_failed",
        "verificationPassed": False,
        "completionReport": {"status": "complete", "confidence": None},
        "tokens": {"input": 1200, "output": 30},
        "costUsd": 0.25,
        "retryOf": None,
        "escalatedFrom": None,
    }
    assert second.retry_of == f"{RUN}#1"
    assert second.key == f"{RUN}#2"


@pytest.mark.requirement("performance:unknown")
def test_what_is_unknown_is_null_and_never_zero() -> None:
    (record,) = records(begun().exit())
    fields = msgspec.json.decode(msgspec.json.encode(record))

    assert fields["tokens"] == {"input": None, "output": None}
    assert fields["costUsd"] is None
    assert fields["verificationPassed"] is None
    assert fields["completionReport"] is None
    found = stats_of("a", tallied(record))
    assert (found.tokens, found.cost_usd) == (Tokens(input=None, output=None), None)


@pytest.mark.requirement("performance:repeated")
def test_a_run_that_repeats_another_names_its_last_attempt_and_what_was_escalated() -> None:
    escalating = RunSpec(task="do it", verification=a_contract(OnFailure.ESCALATE))
    escalated = begun(escalating).exit().verify(Verdict.FAILED).run
    crashed = begun(escalating).exit(1).run
    unstarted = Life.begin().cancel().run

    assert repeated(escalated) == (f"{RUN}#1", RUN)
    assert repeated(crashed) == (f"{RUN}#1", None)
    assert repeated(unstarted) == (None, None)


# -- adding up -----------------------------------------------------------------------------------

(DONE,) = records(begun(CHECKED).pass_ms(1000).exit().verify(Verdict.PASSED))
(LIE,) = records(begun(CHECKED).pass_ms(10).exit().verify(Verdict.FAILED))
(PLAIN,) = records(begun().pass_ms(3000).exit())
(STOPPED,) = records(begun().cancel().pass_ms(99_999).exit())
(UNCHECKED,) = records(begun(CHECKED).exit().verify(Verdict.COULD_NOT_CHECK))


def tallied(*given: AttemptRecord) -> Tally:
    tally = Tally()
    for each in given:
        tally.add(each)
    return tally


@pytest.mark.requirement("performance:stats")
def test_success_is_what_was_verified_and_who_was_cancelled_is_in_no_rate() -> None:
    found = stats_of("a", tallied(DONE, LIE, LIE, PLAIN, STOPPED, UNCHECKED))

    assert found.success is not None
    assert (found.success.count, found.success.n) == (2, 4)
    assert found.verified is not None
    assert (found.verified.count, found.verified.n) == (1, 3)
    assert found.outcomes == {
        "success": 2,
        "partial": 0,
        "failure": 2,
        "timeout": 0,
        "cancelled": 1,
        "couldNotCheck": 1,
    }
    assert (found.attempt_count, found.runs) == (6, 6)
    assert found.reasons["verification_failed"] == 2
    assert found.took is not None
    assert (found.took.p50_ms, found.took.p95_ms) == (10, 3000)


@pytest.mark.requirement("performance:stats")
def test_without_anything_to_judge_there_is_no_rate() -> None:
    found = stats_of("a", tallied(STOPPED))

    assert (found.success, found.verified, found.took) == (None, None, None)


@pytest.mark.requirement("performance:stats")
def test_tokens_and_cost_are_sums_of_what_is_known_and_say_of_how_many() -> None:
    known = replace(PLAIN, tokens=Tokens(input=10, output=1), cost_usd=0.1)
    cached = replace(known, tokens=Tokens(input=10, output=1, cache_read=7, cache_write=2))
    half = replace(PLAIN, tokens=Tokens(input=10, output=None))
    found = stats_of("a", tallied(known, cached, half, PLAIN))

    sums = Tokens(input=20, output=2, cache_read=7, cache_write=2)
    assert (found.tokens, found.tokens_known) == (sums, 2)
    assert stats_of("a", tallied(known)).tokens == Tokens(input=10, output=1)
    assert (found.cost_usd, found.cost_known) == (0.2, 2)


@pytest.mark.requirement("performance:stats")
def test_attempts_are_counted_by_agent_model_or_each_of_their_tags() -> None:
    a = replace(DONE, agent_id="a", model="m1", tags=("x", "y", "x"))
    b = replace(LIE, agent_id="b", model=None, tags=("y",))
    c = replace(LIE, agent_id="b", model="m1", tags=())
    day: Day = {}
    count(day, [a, b, c])

    def by_tag(**wanted: object) -> dict[str | None, int]:
        sums: dict[str | None, Tally] = {}
        count_tags(sums, [a, b, c], Wanted(**wanted))  # type: ignore[arg-type]  # as the test says
        return {name: tally.attempts for name, tally in sums.items()}

    def of(**wanted: object) -> dict[str | None, int]:
        sums = total([day], Wanted(**wanted))  # type: ignore[arg-type]  # as the test says
        return {name: tally.attempts for name, tally in sums.items()}

    assert of() == by_tag() == {"a": 1, "b": 2}
    assert of(by=By.MODEL) == by_tag(by=By.MODEL) == {"m1": 2, None: 1}
    assert of(agent="b", model="m1") == by_tag(agent="b", model="m1") == {"b": 1}
    assert by_tag(by=By.TAG) == {"x": 1, "y": 2, None: 1}
    assert by_tag(tag="y") == {"a": 1, "b": 1}
    assert by_tag(by=By.TAG, tag="x") == {"x": 1, "y": 1}
    assert [Wanted(by=By.TAG).is_of_tags, Wanted(tag="x").is_of_tags, Wanted().is_of_tags] == [
        True,
        True,
        False,
    ]


@pytest.mark.requirement("performance:stats")
def test_percentiles_are_of_the_newest_attempts_and_memory_stays_bounded() -> None:
    tally = Tally()
    for number in range(5 * RUNTIMES_MAX):
        tally.add(replace(PLAIN, runtime_ms=number))
    newest = Tally()
    newest.take(tally)
    newest.take(tallied(replace(PLAIN, runtime_ms=1)))
    found = stats_of("a", newest)

    assert len(tally.runtimes_ms) < 2 * RUNTIMES_MAX
    assert found.took is not None
    assert found.took.p50_ms == 4.5 * RUNTIMES_MAX - 1
    assert found.took.p95_ms == 4.95 * RUNTIMES_MAX - 1
    assert found.attempt_count == 5 * RUNTIMES_MAX + 1


@pytest.mark.requirement("performance:final")
@given(st.lists(st.sampled_from(["ok", "fail", "lie", "cancel"]), min_size=1, max_size=4))
def test_every_ended_attempt_has_one_record_and_none_is_taken_back(ends: list[str]) -> None:
    spec = replace(TRIED_AND_CHECKED, retry_count=2)
    spec = replace(spec, verification=a_contract(OnFailure.RETRY_ONCE))
    life = Life.begin(spec)
    seen: dict[str, AttemptRecord] = {}
    for end in ends:
        if life.run.is_settled:
            break
        if life.run.retry.due_ms is not None:
            life.timer()
        life.start()
        match end:
            case "ok":
                life.exit().verify(Verdict.PASSED)
            case "fail":
                life.exit(1)
            case "lie":
                life.exit().verify(Verdict.FAILED)
            case _:
                life.cancel().exit()
        for record in records(life):
            assert seen.setdefault(record.key, record) == record
    assert len(seen) == len(life.run.attempts)
    assert RunId(RUN) in {record.run_id for record in seen.values()}
    assert {record.reason for record in seen.values()} <= {
        None,
        Reason.EXIT_CODE,
        Reason.VERIFICATION_FAILED,
        Reason.CANCELLED_BY_CALLER,
    }
