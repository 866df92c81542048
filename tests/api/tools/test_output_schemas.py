"""Every tool says what it answers as data; ``tool_seats`` holds each answer of a test to it."""

import pytest

from subagents.api.tools.output_schemas import OUTPUTS
from subagents.api.tools.tool_registry import TOOLS


@pytest.mark.requirement("tools:output-schemas")
def test_every_tool_has_a_flat_output_schema_that_a_refusal_fits_too() -> None:
    assert set(OUTPUTS) == set(TOOLS)
    for name, schema in OUTPUTS.items():
        text = str(schema)
        assert schema["type"] == "object", name
        assert "required" not in text, name
        assert "anyOf" not in text, name
        assert "$ref" not in text, name
