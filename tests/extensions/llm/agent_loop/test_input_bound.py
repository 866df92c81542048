"""What a request can have as input is never counted too low."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from subagents.extensions.llm.agent_loop.input_bound import input_bound

NO_TOOLS = ModelRequestParameters()
TEXTS = st.text(max_size=200)


def bound(*messages: ModelMessage, counted_from: int = 0) -> int:
    return input_bound(messages, NO_TOOLS, counted_from=counted_from)


@pytest.mark.requirement("budget:hold:bound")
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_text_of_others_counts_a_token_for_each_byte_in_whatever_part_it_is(
    texts: list[str],
) -> None:
    messages: list[ModelMessage] = []
    for number, text in enumerate(texts):
        messages.append(ModelRequest(parts=[UserPromptPart(text)]))
        call = ToolCallPart("read", {"path": text}, tool_call_id=f"c{number}")
        messages.append(ModelResponse(parts=[ThinkingPart(text), TextPart(text), call]))
        returned = ToolReturnPart("read", text, tool_call_id=f"c{number}")
        messages.append(ModelRequest(parts=[returned]))

    sent = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    assert bound(*messages) >= 5 * sent


@pytest.mark.requirement("budget:hold:bound")
def test_our_own_text_counts_half_and_other_alphabets_in_it_count_whole() -> None:
    tool = ToolDefinition(name="read", description="x" * 1_000, parameters_json_schema={})
    asked = ModelRequest(parts=[], instructions="y" * 1_000 + "é" * 100)
    with_tools = ModelRequestParameters(function_tools=[tool])

    found = input_bound([asked], with_tools, counted_from=0) - input_bound(
        [ModelRequest(parts=[])], NO_TOOLS, counted_from=0
    )
    assert 500 + 500 + 200 <= found <= 500 + 500 + 200 + 64


@pytest.mark.requirement("budget:hold:bound")
def test_what_the_provider_counted_replaces_the_bound_of_all_up_to_its_answer() -> None:
    long, news = "z" * 100_000, "w" * 1_000
    answer = ModelResponse(
        parts=[TextPart("ok")], usage=RequestUsage(input_tokens=25_000, output_tokens=10)
    )
    messages = (
        ModelRequest(parts=[UserPromptPart(long)]),
        answer,
        ModelRequest(parts=[UserPromptPart(news)]),
    )

    assert 26_010 <= bound(*messages) <= 26_100
    # Counted for other tools and instructions.
    assert bound(*messages, counted_from=2) > 100_000
