"""How many tokens the next request can have as input: a bound that is never below the truth.

- A token of every tokenizer in use covers at least one byte, so text of others (tasks, files, what
  tools return) counts one token for each byte, escaped as JSON, since it may be sent like that.
- Our own text (instructions and descriptions of tools: English and JSON schemas) counts one token
  for two bytes. It has one for three to five.
- What the provider counted for the last answer replaces all of that for everything up to it: only
  what came since is bounded by its bytes.
- Each part and each request has a constant on top, for what a provider puts around them.

So the first request of a conversation is bounded by two to four times what it has, and every later
one by what is known of it and the bytes of the newest results.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

PART_TOKENS: Final = 24
"""The tokens around each part: its role, marks of its beginning and end, the id of a call."""
REQUEST_TOKENS: Final = 768
"""The tokens around all: what a provider itself tells a model that has tools (300 to 700 tokens
today)."""


def input_bound(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters, *, counted_from: int
) -> int:
    """The most tokens that the provider can count as input of a request.

    Args:
        messages: The conversation, its newest part what is asked now.
        parameters: The tools it may call.
        counted_from: Answers before this index were given to other instructions and tools: what was
            counted for them does not hold.
    """
    for at in range(len(messages) - 1, max(counted_from, 0) - 1, -1):
        message = messages[at]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            known = message.usage.input_tokens + message.usage.output_tokens
            return known + PART_TOKENS + _of_all(messages[at + 1 :])
    instructions = next(
        (each.instructions or "" for each in reversed(messages) if isinstance(each, ModelRequest)),
        "",
    )
    tools = sum(
        _own(tool.name + (tool.description or ""))
        + _own(msgspec.json.encode(tool.parameters_json_schema).decode())
        + PART_TOKENS
        for tool in parameters.function_tools
    )
    return REQUEST_TOKENS + _own(instructions) + tools + _of_all(messages)


def _of_all(messages: Sequence[ModelMessage]) -> int:
    return sum(_of_part(part) + PART_TOKENS for message in messages for part in message.parts)


def _of_part(part: object) -> int:
    match part:
        case ToolReturnPart():
            return _foreign(part.model_response_str()) + _foreign(part.tool_name)
        case ToolCallPart():
            return _foreign(part.args_as_json_str()) + _foreign(part.tool_name)
        case UserPromptPart(content=str(text)) | SystemPromptPart(content=text):
            return _foreign(text)
        case TextPart(content=text):
            return _foreign(text)
        case ThinkingPart(content=text, signature=signature):
            return _foreign(text) + _foreign(signature or "")
        case _:
            return _foreign(repr(part))


def _foreign(text: str) -> int:
    """One token for each byte, in the longest form in which it is sent."""
    escaped = sum(1 if " " <= char <= "~" else 6 if char <= "\uffff" else 12 for char in text)
    return escaped + text.count('"') + text.count("\\")


def _own(text: str) -> int:
    data = text.encode()
    wide = len(data) - sum(byte < 0x80 for byte in data)
    return (len(data) - wide + 1) // 2 + wide
