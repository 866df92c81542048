"""Which model is asked, and what its answers cost."""

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from subagents.domain.run.values import replace
from subagents.extensions.llm.agent_loop.models import addressed, cost_usd, settings_of
from subagents.extensions.llm.llm_assignment import Assignment

ASSIGNMENT = Assignment(
    attempt_id="r-1#1",
    message="Do it.",
    system_prompt="",
    cwd="/",
    provider="anthropic",
    model="claude-sonnet-4-5",
    session_file="",
    session_id="r-1/1",
    limits_dir="",
)


def answer(model: str) -> ModelResponse:
    return ModelResponse(
        parts=[TextPart(content="done")],
        usage=RequestUsage(input_tokens=1_000_000, output_tokens=100_000),
        model_name=model,
        provider_name="anthropic",
    )


@pytest.mark.requirement("llm:cost")
def test_the_cost_of_a_known_model_is_counted_and_any_other_is_unknown() -> None:
    cost = cost_usd(answer("claude-sonnet-4-5"), ASSIGNMENT)
    assert cost is not None
    assert 1 < cost < 20
    assert cost_usd(answer("nobody-knows"), ASSIGNMENT) is None
    given = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "OPENAI_BASE_URL": ""}
    assert cost_usd(answer("claude-sonnet-4-5"), addressed(ASSIGNMENT, given)) is None
    other = addressed(replace(ASSIGNMENT, provider="openai"), given)
    assert cost_usd(answer("claude-sonnet-4-5"), other) == cost


@pytest.mark.requirement("llm:settings")
def test_the_library_never_tries_again_by_itself() -> None:
    plain = settings_of(ASSIGNMENT)
    assert plain["max_retries"] == 0
    assert "temperature" not in plain
    thinking = settings_of(replace(ASSIGNMENT, thinking="off", temperature=0.5, max_tokens=10))
    assert (thinking["thinking"], thinking["temperature"]) == (False, 0.5)
    assert settings_of(replace(ASSIGNMENT, thinking="high"))["thinking"] == "high"
