"""Budgets by the reducer alone: what is used, what follows at the edges, what may be spawned."""

from typing import Any

import msgspec
import pytest
from tests.builders import NOW_MS, Life, a_contract, a_resolved, in_phase
from tests.domain.budget_lives import ABOVE, TOKENS, a_life, child_spends, use

from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.effects import (
    CancelChildren,
    Raise,
    ResumeAttempt,
    StopAttempt,
    StopChildren,
    TellSpent,
)
from subagents.domain.run.events import BudgetExhausted, ChildSpent, SteerRequested, TimerFired
from subagents.domain.run.outcome import OK, Outcome, Reason, Status, Verdict, VerificationState
from subagents.domain.run.run import Phase, StopCause
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.spec import TOKENS_MAX, Budget, OnFailure, RunSpec
from subagents.domain.run.usage import Amounts, Committed, Spent, Usage
from subagents.domain.run.values import RunId


def alerts_of(life: Life) -> list[Alert]:
    return [alert for raised in life.of(Raise, life.followups) for alert in raised.alerts]


def texts_of(life: Life) -> list[str]:
    return [alert.text for alert in alerts_of(life)]


def error_of(outcome: Outcome | None) -> str:
    assert outcome is not None
    return outcome.error or ""


def raise_by(life: Life, **added: Any) -> Life:
    more = Amounts(**added)
    life.apply(SteerRequested(at_ms=life.at_ms, by="me", message="the tests, too", added=more))
    return life


# -- raised -------------------------------------------------------------------------------------


@pytest.mark.requirement("budget:raised")
def test_a_raised_budget_is_kept_alerted_and_stopped_at_its_new_edges() -> None:
    life = use(a_life(parent=True).start().child(), 850)
    raise_by(life, tokens=1_000, total_tokens=1_000)

    assert life.run.spec.budget == Budget(max_tokens=2_000)
    assert life.of(TellSpent, life.followups)[-1].committed.tokens == 2_000
    assert texts_of(use(life, 1_000))[-1] == "💰 50% of the budget: 1k of 2k tokens"
    use(life, 1_700)
    assert texts_of(life)[-1] == "💰 85% of the budget: 1.7k of 2k tokens"
    assert life.of(StopAttempt) == []
    assert life.of(StopChildren, life.followups) == []
    use(life, 2_000)
    assert life.of(StopAttempt)


@pytest.mark.requirement("budget:raised", "budget:report-reserve")
def test_who_was_down_to_the_reserve_may_spawn_again_when_the_budget_is_raised() -> None:
    life = use(a_life().start().child(), 950)
    assert life.of(StopChildren, life.followups)
    raise_by(life, tokens=20, total_tokens=20)
    assert life.run.budget.reserve is not None
    raise_by(life, tokens=1_000, total_tokens=1_000)

    assert life.run.budget.reserve is None
    assert life.run.spec.budget == Budget(max_tokens=2_020)


@pytest.mark.requirement("budget:raised")
def test_only_what_a_budget_limits_is_raised_and_never_above_the_highest_limit() -> None:
    budget = Budget(max_total_tokens=TOKENS_MAX - 5, max_cost_usd=1, max_runs=2)
    added = Amounts(tokens=10, total_tokens=10, cost_usd=0.5)
    used = Spent(tokens_in=TOKENS_MAX, cost_usd=0.25)

    assert budgets.raised(budget, added) == Budget(
        max_total_tokens=TOKENS_MAX, max_cost_usd=1.5, max_runs=2
    )
    assert budgets.raised(budget, added, used) == Budget(
        max_total_tokens=10, max_cost_usd=1.25, max_runs=2
    )
    assert budgets.raised(budget, Amounts(cost_usd=1), used) == Budget(
        max_total_tokens=TOKENS_MAX - 5, max_cost_usd=1.75, max_runs=2
    )


# -- at the edges -------------------------------------------------------------------------------


@pytest.mark.requirement("budget:stop-at-100", "field:budget-stop-looks-like-success")
def test_at_its_limit_the_attempt_is_stopped_and_never_a_success() -> None:
    life = use(a_life(retry_count=3).start().result("half of it"), 1_050)
    assert life.of(StopAttempt) == [StopAttempt(attempt=1, grace_ms=5_000)]
    life.exit(0)

    assert life.run.outcome == Outcome(
        status=Status.PARTIAL,
        reason=Reason.BUDGET,
        error="stopped: its budget is used up: 1.1k of 1k tokens "
        "(what was under way reported 1.1k at once)",
    )
    assert life.run.result == "half of it"
    assert "completed partially: stopped: its budget is used up" in life.messages[-1].text


CACHED = Usage(tokens_in=50_000, tokens_out=100, tokens_cache_read=49_500, tokens_cache_write=400)
"""Of one turn of a long conversation."""


@pytest.mark.requirement("budget:uncached-tokens", "budget:stop-at-100")
@pytest.mark.parametrize(
    ("budget", "stop"),
    [
        (Budget(max_tokens=601), None),
        (Budget(max_tokens=600), "600 of 600 tokens"),
        (Budget(max_tokens=10_000, max_total_tokens=50_101), None),
        (Budget(max_tokens=10_000, max_total_tokens=50_000), "50.1k of 50k total tokens (what"),
    ],
)
def test_what_came_from_a_cache_counts_only_against_total_tokens(
    budget: Budget, stop: str | None
) -> None:
    life = a_life(budget).start().signal(UsageSeen(key="u", usage=CACHED))

    assert bool(life.of(StopAttempt)) == (stop is not None)
    assert stop is None or life.run.budget.stop is not None
    if life.run.budget.stop is not None:
        assert life.run.budget.stop.used.startswith(stop or "-")


@pytest.mark.requirement("budget:uncached-tokens", "budget:report-reserve")
def test_of_total_tokens_too_a_tenth_is_kept_and_a_leap_below_is_not_charged_to_it() -> None:
    life = a_life(Budget(max_total_tokens=100_000)).start().child()
    life.signal(UsageSeen(key="u", usage=CACHED))
    spent = Spent(tokens_in=80_000, tokens_cache_read=79_000)
    life.apply(
        ChildSpent(
            at_ms=NOW_MS, child=RunId("r-c000000001"), spent=spent, committed=Committed(tokens=1)
        )
    )

    reserve = life.run.budget.reserve
    assert reserve is not None
    assert (reserve.tokens, reserve.total_tokens) == (0, 90_000 - 50_100)
    assert life.run.budget.stop is None
    assert "at once" in budgets.shares(life.run, NOW_MS)[0].text


@pytest.mark.requirement("budget:uncached-tokens", "upgrade:journals")
def test_usage_that_was_stored_without_a_cached_part_counts_as_it_did() -> None:
    old = msgspec.json.decode(b'{"tokensIn":900,"tokensOut":100}', type=Usage)
    life = a_life().start().signal(UsageSeen(key="u", usage=old))

    assert life.of(StopAttempt)
    assert life.run.budget.stop is not None
    assert life.run.budget.stop.used == "1k of 1k tokens"


@pytest.mark.requirement("budget:stop-at-100")
@pytest.mark.parametrize(
    ("budget", "tokens", "cost", "stops"),
    [
        (Budget(max_tokens=1_000), 999, None, False),
        (Budget(max_tokens=1_000), 1_000, None, True),
        (Budget(max_cost_usd=0.3), None, 0.1 + 0.2, True),
        (Budget(max_cost_usd=0.3), 10_000, 0.29, False),
        (Budget(max_tokens=1_000, max_cost_usd=1), 10, 1.0, True),
        (Budget(max_total_tokens=1_000), 1_000, None, True),
        (Budget(max_runs=1), 10**9, 1_000.0, False),
        (Budget(), 10**9, 1_000.0, False),
        (None, 10**9, 1_000.0, False),
    ],
)
def test_any_dimension_that_is_used_up_stops_the_run_and_no_other(
    budget: Budget | None,
    tokens: int | None,
    cost: float | None,
    stops: bool,  # noqa: FBT001 - a column of the table
) -> None:
    life = use(a_life(budget).start(), tokens, cost)

    assert (life.run.attempt.evidence.stop is StopCause.BUDGET) == stops


@pytest.mark.requirement("budget:report-reserve", "field:ate-the-report-turn")
def test_what_is_kept_for_the_report_is_not_for_its_children() -> None:
    """Codewhale #6277: descendants used the turn in which their parent would have reported."""
    life = use(child_spends(a_life().start().child(), 800), 99)
    assert life.of(StopChildren, life.followups) == []
    child_spends(life, 801)

    stop = life.of(StopChildren, life.followups)
    assert [each.stop.used for each in stop] == [
        "900 of 1k tokens, the rest is kept for its own report"
    ]
    assert life.run.attempt.evidence.stop is None
    child_spends(life, 850)
    assert len(life.of(StopChildren, life.followups)) == 1

    life.result("mine").exit().child_ends(budgets.stopped(life.run, ABOVE), "so far")
    assert life.of(ResumeAttempt), "its agent is told of them in a turn of its own"


@pytest.mark.requirement("budget:report-reserve", "field:ate-the-report-turn")
@pytest.mark.parametrize(("own", "ends"), [(299, False), (300, True)])
def test_what_calls_under_way_still_add_below_is_not_charged_to_the_report(
    own: int,
    ends: bool,  # noqa: FBT001 - a column of the table
) -> None:
    life = child_spends(use(a_life().start(), 200).child(), 500)
    child_spends(life, 1_500)
    assert life.run.budget.reserve is not None
    assert life.run.budget.reserve.tokens == 700, "up to the edge: 900 - 200"
    child_spends(life, 2_500)
    assert life.of(StopAttempt) == []
    assert texts_of(life) == [
        "💰 70% of the budget: 700 of 1k tokens",
        "💰 170% of the budget: 1.7k of 1k tokens (what was under way reported 1k at once)",
    ]
    use(life, own)

    assert bool(life.of(StopAttempt)) == ends


@pytest.mark.requirement("budget:report-reserve")
def test_what_was_rightly_used_below_stays_charged_when_the_holder_itself_passes_the_edge() -> None:
    life = use(child_spends(a_life().start().child(), 500), 450)

    assert life.run.budget.reserve is not None
    assert life.run.budget.reserve.tokens == 500
    use(life, 499, 5.0)
    assert life.of(StopAttempt) == []
    use(life, 500)
    assert len(life.of(StopAttempt)) == 1


@pytest.mark.requirement("budget:report-reserve")
def test_a_run_alone_may_use_all_of_its_budget() -> None:
    life = use(a_life().start(), 999)

    assert life.of(StopAttempt) == []
    assert life.of(StopChildren, life.followups) == []


@pytest.mark.requirement("budget:stop-at-100")
def test_at_the_limit_everything_below_ends_with_it_and_its_children_are_not_cancelled() -> None:
    life = use(child_spends(a_life().start().child().result("mine"), 400), 600)
    life.exit(143)

    assert len(life.of(StopChildren, life.followups)) == 1
    assert life.of(CancelChildren, life.followups) == []
    assert life.phase is Phase.ENDING
    life.child_ends(budgets.stopped(life.run, ABOVE), "what the child has")

    assert life.of(ResumeAttempt) == []
    assert (life.run.outcome or OK).reason is Reason.BUDGET
    assert (life.run.result or "").startswith("mine\n\n[Sub-agent results]")
    assert "what the child has" in (life.run.result or "")


@pytest.mark.requirement("budget:stop-below")
@pytest.mark.parametrize("phase", [Phase.SPAWNING, Phase.RUNNING])
def test_a_live_attempt_below_is_stopped_once(phase: Phase) -> None:
    life = in_phase(phase)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    again = life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))

    assert again.stale
    assert len(life.of(StopAttempt)) == 1
    assert life.run.attempt.evidence.stop is StopCause.BUDGET


@pytest.mark.requirement("budget:stop-below")
def test_a_worker_below_that_was_stopped_says_whose_budget_it_was() -> None:
    life = in_phase(Phase.RUNNING).result("so far")
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.exit(signal=15)

    assert life.run.outcome == Outcome(
        status=Status.PARTIAL,
        reason=Reason.BUDGET,
        error='stopped: the budget of run "root" (r-root) is used up: 92k of 100k tokens',
    )
    assert life.run.result == "so far"


@pytest.mark.requirement("budget:never-started")
@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.QUEUED])
def test_a_run_that_never_started_is_an_error_because_nothing_exists(phase: Phase) -> None:
    life = in_phase(phase)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))

    assert (life.run.outcome or OK).status is Status.ERROR
    assert (life.run.outcome or OK).reason is Reason.BUDGET
    assert error_of(life.run.outcome).startswith("not started: the budget of run")


@pytest.mark.requirement("budget:never-started")
def test_a_start_that_the_stop_overtook_never_began() -> None:
    life = in_phase(Phase.SPAWNING)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.fail_start("out of budget before it was started")

    assert (life.run.outcome or OK).reason is Reason.BUDGET
    assert error_of(life.run.outcome).startswith("not started: ")
    assert len(life.run.attempts) == 1


@pytest.mark.requirement("budget:never-started")
def test_a_cancellation_behind_the_stop_changes_nothing_of_a_start_that_never_was() -> None:
    life = in_phase(Phase.SPAWNING)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.cancel(cascaded=True)
    life.fail_start("cancelled before it was started")

    assert (life.run.outcome or OK).reason is Reason.BUDGET


@pytest.mark.requirement("budget:retry-needs-budget", "field:retries-cost-six-times")
def test_a_retry_that_waits_does_not_begin_without_budget() -> None:
    """gsd-2 #5668: retries cost six times the work, because only their number was bounded."""
    life = in_phase(Phase.RETRY_WAIT)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))

    assert life.run.outcome == Outcome(
        status=Status.ERROR,
        reason=Reason.BUDGET,
        error='not tried again: the budget of run "root" (r-root) is used up: 92k of 100k tokens; '
        "the attempt before: exit code 1",
    )


@pytest.mark.requirement("budget:retry-needs-budget", "field:retries-cost-six-times")
def test_an_attempt_that_fails_of_itself_is_not_tried_again_without_budget() -> None:
    life = a_life(None, retry_count=3).start()
    life.exit(1, drained=False)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.timer()

    assert (life.run.outcome or OK).reason is Reason.BUDGET
    assert life.run.retry.used == 0
    assert len(life.run.attempts) == 1


@pytest.mark.requirement("budget:retry-needs-budget", "field:retries-cost-six-times")
def test_a_failed_contract_is_not_tried_again_without_budget_and_stays_the_reason() -> None:
    contract = a_contract(OnFailure.RETRY_ONCE)
    life = a_life(None, verification=contract).start().result("x").exit()
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    assert life.phase is Phase.VERIFYING
    life.verify(Verdict.FAILED)

    assert (life.run.outcome or OK).reason is Reason.VERIFICATION_FAILED
    assert "(not tried again: the budget of run" in error_of(life.run.outcome)
    assert life.run.verification.state is VerificationState.FAILED

    waits = a_life(None, verification=contract).start().result("x").exit().verify(Verdict.FAILED)
    assert waits.phase is Phase.RETRY_WAIT
    waits.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    assert (waits.run.outcome or OK).reason is Reason.VERIFICATION_FAILED
    assert waits.run.verification.state is VerificationState.FAILED


@pytest.mark.requirement("budget:stop-below")
def test_what_was_done_when_the_budget_ended_is_still_checked_and_announced() -> None:
    life = in_phase(Phase.VERIFYING)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.verify(Verdict.PASSED)

    assert life.run.outcome == OK
    assert life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE)).stale


@pytest.mark.requirement("budget:stop-below")
def test_a_next_turn_that_starts_without_budget_is_stopped_at_once() -> None:
    life = a_life(None).start().child().result("mine").exit()
    life.child_ends(OK, "theirs")
    assert life.of(ResumeAttempt)
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.start().exit(143)

    assert (life.run.outcome or OK).reason is Reason.BUDGET

    refused = a_life(None).start().child().result("mine").exit()
    refused.child_ends(OK, "theirs")
    refused.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    refused.fail_start("out of budget before its next turn")
    assert (refused.run.outcome or OK).reason is Reason.BUDGET
    assert "theirs" in (refused.run.result or "")


@pytest.mark.requirement("budget:stop-below")
def test_a_cancel_or_a_deadline_that_came_first_stays_the_outcome() -> None:
    life = in_phase(Phase.RUNNING).cancel()
    life.apply(BudgetExhausted(at_ms=NOW_MS, stop=ABOVE))
    life.exit(143)

    assert (life.run.outcome or OK).reason is Reason.CANCELLED_BY_CALLER
    assert len(life.of(StopAttempt)) == 1


# -- time ---------------------------------------------------------------------------------------


@pytest.mark.requirement("budget:wall-clock")
def test_the_clock_runs_from_the_first_attempt_on_through_waits_and_retries() -> None:
    life = a_life(Budget(max_seconds=100), retry_count=1, retry_delay=3_600_000)
    assert next_due_ms(life.run) is None
    life.pass_ms(70_000).start().exit(1)
    began_ms = NOW_MS + 70_000
    assert life.phase is Phase.RETRY_WAIT

    edges = []
    while not life.run.is_settled:
        life.timer()
        edges.append(life.at_ms - began_ms)

    assert edges == [50_000, 80_000, 90_000, 100_000]
    assert error_of(life.run.outcome).startswith("not tried again: its budget is used up: 1m 40s")


@pytest.mark.requirement("budget:wall-clock")
def test_a_run_that_is_queued_again_ends_with_its_time() -> None:
    life = a_life(Budget(max_seconds=10), retry_count=1, retry_delay=0).start().exit(1).timer()
    assert life.phase is Phase.QUEUED
    life.pass_ms(10_000).timer()

    assert (life.run.outcome or OK).reason is Reason.BUDGET


@pytest.mark.requirement("budget:wall-clock", "budget:report-reserve")
def test_time_too_is_kept_for_the_report() -> None:
    life = a_life(Budget(max_seconds=100)).start().child().result("mine").exit()
    life.timer().timer()
    assert life.of(StopChildren, life.followups) == []
    life.timer()
    assert life.at_ms == NOW_MS + 90_000
    assert len(life.of(StopChildren, life.followups)) == 1
    life.child_ends(budgets.stopped(life.run, ABOVE), "so far").start()
    life.timer()

    assert life.at_ms == NOW_MS + 100_000
    assert life.run.attempt.evidence.stop is StopCause.BUDGET


@pytest.mark.requirement("budget:wall-clock")
def test_a_node_that_slept_over_all_edges_passes_them_in_one_step() -> None:
    life = a_life(Budget(max_seconds=100)).start().child()
    life.apply(TimerFired(at_ms=NOW_MS + 500_000))

    assert life.run.attempt.evidence.stop is StopCause.BUDGET
    assert len(life.of(StopChildren, life.followups)) == 1
    assert texts_of(life) == ["💰 500% of the budget: 8m 20s of 1m 40s; it is stopped"]
    assert next_due_ms(life.run) is None


# -- alerts -------------------------------------------------------------------------------------


@pytest.mark.requirement("budget:alerts")
def test_each_threshold_is_told_once_and_of_a_leap_only_the_highest() -> None:
    life = a_life(Budget(max_tokens=100_000)).start()
    for tokens in (10_000, 50_000, 60_000, 60_000, 93_000, 95_000, 104_000):
        use(life, tokens)

    assert texts_of(life) == [
        "💰 50% of the budget: 50k of 100k tokens",
        "💰 93% of the budget: 93k of 100k tokens",
        (
            "💰 104% of the budget: 104k of 100k tokens "
            "(what was under way reported 9k at once); it is stopped"
        ),
    ]
    assert [alert.key for alert in alerts_of(life)] == ["budget:50", "budget:80", "budget:100"]
    assert {alert.kind for alert in alerts_of(life)} == {AlertKind.BUDGET_ALERT}


@pytest.mark.requirement("budget:alerts")
def test_money_is_told_as_in_the_seed_with_its_fields() -> None:
    life = use(a_life(Budget(max_cost_usd=1.0, max_tokens=10**6)).start(), 5_000, 0.5)

    assert texts_of(life) == ["💰 $0.50 spent (budget: $1.00)"]
    assert alerts_of(life)[0].fields == {
        "costUsd": 0.5,
        "budgetUsd": 1.0,
        "tokens": 5_000,
        "budgetTokens": 10**6,
        "percent": 50,
    }


@pytest.mark.requirement("budget:alerts")
def test_without_a_budget_each_threshold_of_the_whole_subtrees_cost_is_told_once() -> None:
    life = a_life(None).start().child()
    for cost in (0.4, 0.99, 1.0, 1.2, 6.5):
        life.apply(
            ChildSpent(
                at_ms=NOW_MS,
                child=RunId("r-c000000001"),
                spent=Spent(cost_usd=cost),
                committed=Committed(),
            )
        )
    use(life, 10, 20.0)

    assert texts_of(life) == [
        "💰 $1.00 spent (no budget)",
        "💰 $6.50 spent (no budget)",
        "💰 $26.50 spent (no budget)",
    ]
    assert [alert.key for alert in alerts_of(life)] == ["budget:$1", "budget:$5", "budget:$25"]
    assert alerts_of(life)[0].fields["budgetUsd"] is None


@pytest.mark.requirement("budget:alerts")
def test_thresholds_are_those_of_its_agent() -> None:
    rules = AlertRules(budget_percent=(30,), cost_usd=())
    resolved = a_resolved(alerts=rules)
    life = use(Life.begin(RunSpec(task="x", budget=TOKENS), resolved).start(), 990)
    free = use(Life.begin(RunSpec(task="x"), resolved).start(), 990, 100.0)

    assert [alert.key for alert in alerts_of(life)] == ["budget:30"]
    assert alerts_of(free) == []


# -- as it is shown -----------------------------------------------------------------------------


@pytest.mark.requirement("budget:shown")
def test_a_budget_is_shown_with_what_is_used_and_left_and_the_unknown_as_such() -> None:
    budget = Budget(max_tokens=1_000, max_cost_usd=2.0, max_runs=5, max_seconds=100)
    life = a_life(budget)
    fresh = budgets.view(life.run, NOW_MS)
    assert fresh is not None
    assert fresh.left == budgets.Left(tokens=1_000, cost_usd=2.0, runs=4, seconds=100)
    child_spends(use(life.start(), 300).child(), 200, runs=2)

    found = budgets.view(life.run, NOW_MS + 10_000)

    assert found is not None
    assert found.left == budgets.Left(tokens=500, cost_usd=None, runs=2, seconds=90)
    assert found.text == "500 of 1k tokens, 10s of 1m 40s, ? of $2.00, 2 of 5 runs"
    assert (found.percent, found.exhausted) == (50, False)
    use(life, 900)
    over = budgets.view(life.run, NOW_MS)
    assert over is not None
    assert (over.percent, over.exhausted, over.left.tokens) == (110, True, 0)
    assert budgets.view(a_life(None).run, NOW_MS) is None
