"""`doctor --probe` tries the MCP servers of an agent: started, greeted, asked for their tools."""

import os
import sys
from typing import Any

import pytest
from tests.e2e import small_mcp_server

from subagents.config.settings import SecretSource, Settings
from subagents.extensions.mcp import server_probe
from subagents.extensions.mcp.named_servers import McpServer
from subagents.extensions.mcp.server_probe import ServerFailed, tools_of

SECRET = "weighing-key-7f3a9c51e0"


def tried(**table: Any) -> str:
    settings = Settings(
        tables={"mcp_servers": {"scales": McpServer(**table)}},
        secrets={"w": SecretSource(command=("printf", "%s", SECRET))},
    )
    return tools_of("scales", settings, os.environ)


@pytest.mark.requirement("mcp-servers:probe")
def test_a_server_that_works_shows_its_tools() -> None:
    args = (small_mcp_server.__file__,)
    assert tried(command=sys.executable, args=args) == "1 tool: weigh"


@pytest.mark.requirement("mcp-servers:probe")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"command": "no-such-server"}, "no-such-server cannot be started: No such file"),
        (
            {"command": "sh", "args": ("-c", "echo bad $K >&2"), "env": {"K": "secret:w"}},
            r"ended before it answered initialize: bad \[secret\]",
        ),
        ({"command": "sleep", "args": ("60",)}, "did not answer within 1 s"),
        ({"url": "http://127.0.0.1:9/mcp"}, "initialize with an error: .*refused"),
    ],
)
def test_one_that_does_not_says_why_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(server_probe, "LIMIT_S", 1.0 if table.get("command") == "sleep" else 30.0)
    with pytest.raises(ServerFailed, match=words) as failed:
        tried(**table)
    assert SECRET not in str(failed.value)
