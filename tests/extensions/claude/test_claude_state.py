"""What is kept of a turn with Claude Code: which messages it accepted, and whose usage counts."""

import pytest
from tests.extensions.claude.claude_folds import DIALECT, OPENING, event, fold, lines, turn_two

from subagents.domain.run.signals import (
    ResultSeen,
)
from subagents.domain.run.values import replace
from subagents.extensions.claude.claude_state import message_id


@pytest.mark.requirement("claude-worker:usage:resumed-session")
def test_a_further_turn_counts_on_and_another_attempts_session_is_not_counted_twice() -> None:
    first = fold(lines("text")).usage
    alone = fold(lines("resumed"), turn_two("resumed")).usage
    assert alone.tokens_out == first.tokens_out
    second = fold(lines("resumed"), replace(turn_two("resumed"), used=first)).usage
    assert second.tokens_out == 2 * (first.tokens_out or 0)
    assert second.tokens_in == (first.tokens_in or 0) + (alone.tokens_in or 0)
    assert second.cost_usd == pytest.approx((first.cost_usd or 0) + (alone.cost_usd or 0))
    unknown = fold(
        lines("resumed"), replace(turn_two("resumed"), used=replace(first, cost_usd=None))
    )
    assert unknown.usage.cost_usd is None
    old = [line.replace(b"model_usage_since_last_result", b"nothing") for line in lines("text")]
    assert fold(old).usage == first


@pytest.mark.requirement("claude-worker:steer:same-turn")
def test_a_message_into_the_turn_is_taken_at_once_and_answered_in_the_same_result() -> None:
    found = lines("steered")
    name = message_id(DIALECT.begin(OPENING).state, "steer-1").encode()
    queued = next(i for i, line in enumerate(found) if name in line)
    assert DIALECT.accepted(fold(found[:queued]).state, "steer-1") is None
    assert DIALECT.accepted(fold(found[: queued + 1]).state, "steer-1") is True
    folded = fold(found)
    assert [each.text for each in folded.results] == ["Blue it is."]
    assert DIALECT.steer(folded.state, "more", key="k") is None


@pytest.mark.requirement("claude-worker:steer:after-the-end")
def test_a_message_that_came_when_the_turn_was_over_is_not_taken_before_its_answer() -> None:
    name = message_id(DIALECT.begin(OPENING).state, "steer-9")
    late = [
        event(type="command_lifecycle", command_uuid=name, state=fate)
        for fate in ("queued", "started")
    ]
    state = fold([*lines("text"), *late]).state
    assert state.is_over
    assert DIALECT.accepted(state, "steer-9") is None
    done = event(type="command_lifecycle", command_uuid=name, state="completed")
    assert DIALECT.accepted(fold([*lines("text"), *late, done]).state, "steer-9") is True


@pytest.mark.requirement("claude-worker:turn:repaired")
def test_a_further_turn_after_a_death_tells_the_model_that_the_outcome_is_unknown() -> None:
    folded = fold(lines("repaired"), turn_two("repaired"))
    assert folded.result == ResultSeen(key="", text="Outcome unknown: True.")
