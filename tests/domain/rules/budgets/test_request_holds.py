"""A request is granted what fits into every cap, and refused when its input alone does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.budget_lives import a_life

from subagents.domain.rules.budgets.budgets import COST, USED
from subagents.domain.rules.budgets.request_holds import (
    Cap,
    Counted,
    Granted,
    Need,
    Short,
    caps_above,
    decide,
)
from subagents.domain.run import spending
from subagents.domain.run.events import RequestHeld
from subagents.domain.run.spec import Budget
from subagents.domain.run.usage import Usage

AMOUNTS = st.integers(0, 10**7)
NEEDS = st.builds(
    Need,
    input_tokens=AMOUNTS,
    output_tokens=st.integers(1, 10**6),
    least_output_tokens=st.integers(1, 10**4),
    input_usd=st.none() | st.floats(0, 100),
    output_token_usd=st.none() | st.floats(0, 0.01),
)


@st.composite
def caps(draw: st.DrawFn) -> Cap:
    dimension = draw(st.sampled_from(USED))
    is_tokens = dimension is not COST
    limit = draw(AMOUNTS) if is_tokens else draw(st.floats(0, 1_000))
    gone = draw(st.floats(0, 1)) * limit
    spent = draw(st.floats(0, 1)) * gone
    if is_tokens:
        gone, spent = int(gone), int(spent)
    return Cap("r-1", "its budget", dimension, limit, gone, spent)


@pytest.mark.requirement("budget:hold")
@given(st.lists(caps(), max_size=4), NEEDS)
def test_what_is_granted_fits_into_every_cap_and_only_an_answer_is_made_shorter(
    limits: list[Cap], need: Need
) -> None:
    found = decide(limits, need)

    if isinstance(found, Granted):
        assert min(need.least_output_tokens, need.output_tokens) <= found.output_tokens
        assert found.output_tokens <= need.output_tokens
        assert found.tokens == need.input_tokens + found.output_tokens
        for cap in limits:
            is_tokens = cap.dimension is not COST
            used = found.tokens if is_tokens else found.cost_usd
            is_priced = need.input_usd is not None and need.output_token_usd is not None
            assert cap.gone + used <= cap.limit + 1e-6 or not (is_tokens or is_priced)


@pytest.mark.requirement("budget:hold")
@given(caps(), NEEDS)
def test_only_what_others_hold_is_worth_waiting_for(cap: Cap, need: Need) -> None:
    found = decide([cap], need)

    if isinstance(found, Short):
        after = decide([cap._replace(gone=cap.spent)], need)
        assert found.may_fit_later == isinstance(after, Granted)


@pytest.mark.requirement("budget:hold", "budget:uncached-tokens")
def test_a_request_must_fit_as_if_nothing_of_it_came_from_a_cache() -> None:
    life = a_life(Budget(max_tokens=1_000, max_total_tokens=10_000)).start()
    used = Usage(tokens_in=5_000, tokens_out=100, tokens_cache_read=4_500)
    fresh, total = caps_above(life.run, [], Counted(usage=used, lost_tokens=50))

    assert (fresh.gone, total.gone) == (650, 5_150)
    need = Need(input_tokens=300, output_tokens=500)
    assert decide([fresh, total], need) == Granted(50, 350, 0.0)


@pytest.mark.requirement("budget:hold")
def test_a_hold_is_over_with_its_answer_and_a_request_that_was_lost_stays_held() -> None:
    life = a_life().start()
    life.apply(RequestHeld(at_ms=life.at_ms, attempt=1, usage=Usage(), tokens=500))
    assert spending.promised(life.run).tokens == 500

    counted = Counted(usage=Usage(tokens_in=100, tokens_out=20), lost_tokens=30)
    cap = caps_above(life.run, [], counted)[0]
    assert (cap.gone, cap.spent) == (150, 150), "what was lost is not worth waiting for"

    life.apply(
        RequestHeld(
            at_ms=life.at_ms,
            attempt=1,
            usage=counted.usage,
            tokens=200,
            lost_tokens=counted.lost_tokens,
        )
    )
    assert spending.promised(life.run).tokens == 120 + 200 + 30
