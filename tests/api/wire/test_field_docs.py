"""A field is described once: by the literal below it."""

import pytest

from subagents.api.wire.field_docs import field_docs
from subagents.api.wire.run_answers import RunRow, RunStatus


@pytest.mark.requirement("openapi:answers")
def test_a_field_is_described_by_the_text_below_it_under_its_name_on_the_wire() -> None:
    assert field_docs(RunRow)["agentId"] == "The configured agent."


@pytest.mark.requirement("openapi:answers")
def test_a_subclass_has_the_descriptions_of_its_base_and_may_say_it_anew() -> None:
    row, status = field_docs(RunRow), field_docs(RunStatus)

    assert status["label"] == row["label"]
    assert status["budget"] != row["budget"]
