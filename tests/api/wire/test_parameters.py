"""A query parameter is its own name, and carries what may stand there."""

import pytest

from subagents.api.wire import parameters


@pytest.mark.requirement("openapi:parameters")
def test_a_parameter_is_found_by_its_name_wherever_a_text_is_looked_for() -> None:
    limit = parameters.number("limit", "At most so many.", low=1, high=200, default=50)

    assert {"limit": "7"}[limit] == "7"
    assert (limit, limit.text) == ("limit", "At most so many.")
    assert limit.schema == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}


@pytest.mark.requirement("openapi:parameters")
def test_what_may_stand_there_is_in_the_schema() -> None:
    one = parameters.choice("until", "When.", ("any", "all"), default="any")
    some = parameters.choices("type", "Which.", ("text", "tool"))
    free = parameters.choice("phase", "Which.", ("queued",))

    assert one.schema == {"type": "string", "enum": ["any", "all"], "default": "any"}
    assert some.schema["items"] == {"type": "string", "enum": ["text", "tool"]}
    assert "default" not in free.schema
    assert parameters.flag("deep", "Whether.").schema["enum"] == ["0", "1", "true", "false"]
