"""The table of the requesters' tools."""

import json

import pytest

from subagents.api.tools.tool import Audience
from subagents.api.tools.tool_registry import TOOLS

REQUESTER = [name for name, tool in TOOLS.items() if tool.audience is Audience.REQUESTER]


TOKENS_MAX = 3_000


CHARS_PER_TOKEN = 3.2
"""Two real tokenizers need one token for 4.4 characters of these schemas (docs/tools.md)."""


@pytest.mark.requirement("tools:cheap")
def test_the_requesters_tools_cost_less_than_three_thousand_tokens() -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for name, tool in TOOLS.items()
        if name in REQUESTER
    ]
    text = json.dumps({"tools": listed}, separators=(",", ":"))

    assert len(text) / CHARS_PER_TOKEN < TOKENS_MAX
