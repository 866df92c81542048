"""Many signals of one attempt, in any order, are one outcome."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders
from tests.builders import NOW_MS

from subagents.domain.rules.evidence import (
    ERROR_CHARS_MAX,
    SETTLE_MS,
    decide,
    merge,
    settle_due_ms,
    with_report_from_text,
)
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.run import (
    Attempt,
    Evidence,
    Exit,
    Report,
    Reported,
    ReportStatus,
    StopCause,
)
from subagents.domain.run.signals import (
    Exited,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.text import signal_name

LATER_MS = NOW_MS + SETTLE_MS


def an_attempt(evidence: Evidence | None = None, report: Report | None = None) -> Attempt:
    reported = Reported(report=report)
    return builders.an_attempt(evidence=evidence or Evidence(), reported=reported)


def exited(code: int | None = 0, *, signal: int | None = None, drained: bool = True) -> Exited:
    return Exited(key="exit", exit=Exit(code=code, signal=signal), drained=drained)


def merged(*signals: Signal, stop: StopCause | None = None) -> Attempt:
    attempt = an_attempt(Evidence(stop=stop))
    for signal in signals:
        attempt = merge(attempt, signal, at_ms=NOW_MS)
    return attempt


def outcome_of(*signals: Signal, stop: StopCause | None = None) -> Outcome | None:
    return decide(merged(*signals, stop=stop), at_ms=LATER_MS)


RESULT = ResultSeen(key="result", text="all good")
ERROR_RESULT = ResultSeen(key="result", text="", is_error=True, error="rate limit")
FAILED = ReportSeen(
    key="report", report=Report(summary="no", status=ReportStatus.FAILED, blockers=("no key", "x"))
)
PARTIAL = ReportSeen(key="report", report=Report(summary="half", status=ReportStatus.PARTIAL))
COMPLETE = ReportSeen(key="report", report=Report(summary="yes"))
VANISHED = Vanished(key="vanished", error="nobody there")


AT_LIMIT = "the kernel ended processes of it at its memory limit"


def limited(code: int | None = None, signal: int | None = None) -> Exited:
    return Exited(key="x", exit=Exit(code=code, signal=signal, limit="memory limit"), drained=True)


def error(reason: Reason, text: str) -> Outcome:
    return Outcome(status=Status.ERROR, reason=reason, error=text)


@pytest.mark.requirement("reconcile:rules")
@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ((exited(),), OK),
        ((RESULT, exited()), OK),
        ((RESULT,), None),
        ((COMPLETE,), None),
        ((exited(3),), error(Reason.EXIT_CODE, "exit code 3")),
        ((RESULT, COMPLETE, exited(3)), error(Reason.EXIT_CODE, "exit code 3")),
        ((exited(None, signal=9),), error(Reason.SIGNAL, "signal:9 (SIGKILL)")),
        ((exited(None, signal=64), RESULT), error(Reason.SIGNAL, f"signal:64 ({signal_name(64)})")),
        ((limited(signal=9),), error(Reason.RESOURCE_LIMIT, f"{AT_LIMIT}")),
        (
            (limited(code=1), RESULT),
            error(Reason.RESOURCE_LIMIT, f"{AT_LIMIT}, and it ended with exit code 1"),
        ),
        ((limited(code=0), RESULT), OK),
        ((ERROR_RESULT, exited()), error(Reason.RUNTIME_ERROR, "rate limit")),
        ((FAILED, exited()), error(Reason.REPORTED_FAILED, "no key; x")),
        (
            (PARTIAL, exited()),
            Outcome(status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL, error="half"),
        ),
        (
            (VANISHED,),
            Outcome(status=Status.LOST, reason=Reason.LEASE_LOST, error="nobody there"),
        ),
        (
            (exited(None),),
            Outcome(
                status=Status.LOST,
                reason=Reason.EXIT_UNKNOWN,
                error="its exit status was not recorded",
            ),
        ),
    ],
)
def test_evidence_in_every_order_is_one_outcome(
    signals: tuple[Signal, ...], expected: Outcome | None
) -> None:
    for order in permutations(signals):
        assert outcome_of(*order) == expected


@pytest.mark.requirement("reconcile:order")
@given(st.permutations([exited(1), RESULT, FAILED, VANISHED, UsageSeen(key="u", usage=Usage())]))
def test_the_order_of_different_signals_does_not_matter(order: list[Signal]) -> None:
    assert outcome_of(*order) == error(Reason.EXIT_CODE, "exit code 1")


@pytest.mark.requirement("reconcile:order", "signals:doubled")
@given(st.lists(st.sampled_from([exited(0), RESULT, PARTIAL, VANISHED, exited(None)]), min_size=1))
def test_merging_a_signal_twice_changes_nothing(signals: list[Signal]) -> None:
    once = merged(*signals)

    assert merged(*signals, signals[-1]) == once


@pytest.mark.requirement("reconcile:our-stop-stays")
@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        (StopCause.CANCEL, Status.CANCELLED, Reason.CANCELLED_BY_CALLER),
        (StopCause.PARENT, Status.CANCELLED, Reason.PARENT_ENDED),
        (StopCause.STUCK, Status.CANCELLED, Reason.STUCK),
        (StopCause.DEADLINE, Status.TIMEOUT, Reason.DEADLINE),
        (StopCause.BUDGET, Status.PARTIAL, Reason.BUDGET),
    ],
)
@pytest.mark.parametrize("end", [exited(0), exited(1), exited(None, signal=9), VANISHED])
def test_a_stop_we_asked_for_stays_the_outcome(
    stop: StopCause, status: Status, reason: Reason, end: Signal
) -> None:
    outcome = outcome_of(RESULT, COMPLETE, end, stop=stop)

    assert outcome is not None
    assert (outcome.status, outcome.reason) == (status, reason)


@pytest.mark.requirement("field:budget-stop-looks-like-success")
def test_a_child_stopped_by_its_budget_is_partial_whatever_it_wrote() -> None:
    outcome = outcome_of(RESULT, COMPLETE, exited(0), stop=StopCause.BUDGET)

    assert outcome is not None
    assert (outcome.status, outcome.reason) == (Status.PARTIAL, Reason.BUDGET)


@pytest.mark.requirement("reconcile:report-only-lowers")
@pytest.mark.parametrize("end", [exited(1), exited(None, signal=15), exited(None)])
def test_a_report_never_raises_an_outcome(end: Signal) -> None:
    assert outcome_of(COMPLETE, end) == outcome_of(end)


@pytest.mark.requirement("reconcile:settle-window")
def test_an_undrained_stream_is_awaited_for_two_seconds_and_a_drained_one_is_not() -> None:
    open_stream = merged(exited(drained=False))
    assert settle_due_ms(open_stream.evidence) == NOW_MS + 2_000
    assert decide(open_stream, at_ms=NOW_MS + 1_999) is None
    assert decide(open_stream, at_ms=NOW_MS + 2_000) == OK

    drained = merge(open_stream, exited(drained=True), at_ms=NOW_MS + 5)
    assert decide(drained, at_ms=NOW_MS + 5) == OK


@pytest.mark.requirement("reconcile:first-exit")
def test_a_known_exit_replaces_an_unknown_one_and_is_never_replaced() -> None:
    assert outcome_of(exited(None), exited(4)) == error(Reason.EXIT_CODE, "exit code 4")
    assert outcome_of(exited(4), exited(None)) == error(Reason.EXIT_CODE, "exit code 4")
    assert outcome_of(exited(4), exited(0)) == error(Reason.EXIT_CODE, "exit code 4")


@pytest.mark.requirement("reconcile:errors-are-bounded")
def test_the_error_carries_the_end_of_stderr_and_is_bounded() -> None:
    ended = replace(exited(2), stderr_tail="x" * 5_000 + "\n")

    outcome = outcome_of(ended)

    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.startswith("exit code 2: xxx")
    assert len(outcome.error) == ERROR_CHARS_MAX


@pytest.mark.requirement("reconcile:last-tool-call")
def test_a_tool_used_after_the_report_makes_it_no_longer_the_last_call() -> None:
    tool = ToolSeen(key="t", name="bash")

    assert merged(tool, COMPLETE).last.is_report
    assert not merged(COMPLETE, tool).last.is_report
    assert merged(COMPLETE, tool, PARTIAL).last.is_report
    assert merged(COMPLETE, PARTIAL).reported.report == PARTIAL.report


@pytest.mark.requirement("reconcile:last-tool-call", "report:last-tool")
def test_the_name_of_the_last_tool_is_kept_and_the_reports_own_call_comes_late() -> None:
    tool = ToolSeen(key="t", name="bash")
    itself = ToolSeen(key="t2", name="mcp__subagents__report_completion")

    assert merged(COMPLETE, tool).last.tool == "bash"
    late = merged(COMPLETE, tool, itself)
    assert (late.last.tool, late.last.is_report) == ("report_completion", True)
    assert not merged(itself).last.is_report


BLOCK = "done\n[COMPLETION REPORT]\nstatus: {}\nsummary: half\n[/COMPLETION REPORT]"
IN_TEXT = ResultSeen(key="result", text=BLOCK.format("partial"))


@pytest.mark.requirement("report-text:reconciled", "report:stored")
def test_a_report_in_the_result_text_counts_when_none_came_by_tool() -> None:
    read = with_report_from_text(merged(IN_TEXT, exited()))

    assert read.reported.report == Report(summary="half", status=ReportStatus.PARTIAL)
    assert (read.reported.is_text, read.last.is_report) == (True, True)
    assert decide(read, at_ms=LATER_MS) == Outcome(
        status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL, error="half"
    )
    assert with_report_from_text(read) == read


@pytest.mark.requirement("report-text:tool-beats-text", "report:every-form")
def test_a_report_by_tool_beats_the_one_in_the_text() -> None:
    for signals in ((COMPLETE, IN_TEXT), (IN_TEXT, COMPLETE)):
        read = with_report_from_text(merged(*signals, exited()))
        assert (read.reported.report, read.reported.is_text) == (COMPLETE.report, False)


@pytest.mark.requirement("report-text:last")
def test_a_tool_used_after_the_text_makes_its_report_no_longer_the_last_word() -> None:
    tool = ToolSeen(key="t", name="bash")

    assert with_report_from_text(merged(tool, IN_TEXT)).last.is_report
    assert not with_report_from_text(merged(IN_TEXT, tool)).last.is_report


@pytest.mark.requirement("report-text:wrong-value", "report:every-form")
def test_a_block_that_cannot_be_read_leaves_its_reason() -> None:
    wrong = ResultSeen(key="result", text=BLOCK.format("done"))

    read = with_report_from_text(merged(wrong, exited()))

    assert read.reported.report is None
    assert read.reported.problem == (
        'the completion report in the text has status "done" (allowed: complete, partial, failed)'
    )
    assert decide(read, at_ms=LATER_MS) == OK
    by_tool = merge(read, COMPLETE, at_ms=NOW_MS)
    assert (by_tool.reported.report, by_tool.reported.problem) == (COMPLETE.report, None)


@pytest.mark.requirement("reconcile:usage-is-a-total")
def test_usage_replaces_what_was_known_so_that_a_doubled_one_counts_once() -> None:
    first = UsageSeen(key="u1", usage=Usage(tokens_in=5))
    second = UsageSeen(key="u2", usage=Usage(tokens_in=9))

    assert merged(first, second, second).usage == Usage(tokens_in=9)


@pytest.mark.requirement("usage:cached-apart")
def test_a_part_of_the_input_is_never_more_than_the_input() -> None:
    first = UsageSeen(key="u1", usage=Usage(tokens_in=5, tokens_cache_read=900))
    second = UsageSeen(key="u2", usage=Usage(tokens_in=9, tokens_out=1))

    assert merged(first).usage == Usage(tokens_in=5, tokens_cache_read=5)
    assert merged(first, second).usage == Usage(tokens_in=9, tokens_out=1, tokens_cache_read=5)
