"""What every tool shares: calls that nobody watches, and the fields of an answer that are shown."""

import pytest

from subagents.api.tools.tool import Answer, picked
from subagents.api.wire.run_answers import Outcome, RunRow


@pytest.mark.requirement("tools:answers")
def test_of_an_answer_only_the_named_fields_are_shown_in_the_order_they_are_named() -> None:
    row = RunRow(run_id="r-1", label="L", phase="running", outcome=Outcome(status="ok"))

    found = picked(row, ("label", "runId", "outcome", "noSuchField"))

    assert list(found) == ["label", "runId", "outcome"]
    assert found["outcome"] == {"status": "ok", "reason": None, "error": None}
    assert (found["label"], found["runId"]) == ("L", "r-1")


@pytest.mark.requirement("tools:answers")
def test_an_answer_is_no_error_and_hands_nothing_over_unless_it_says_so() -> None:
    answer = Answer(text="x", structured={})

    assert (answer.is_error, answer.offered) == (False, ())
