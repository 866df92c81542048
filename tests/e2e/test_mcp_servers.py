"""The real Claude Code with the MCP servers that its agent names, and no others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.claude_place import program
from tests.e2e.program_setups import CLAUDE
from tests.e2e.scripted_model import Use
from tests.e2e.served_worker import FOREIGN, SECRET, Served
from tests.e2e.small_mcp_server import digest

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(120),
]


def plant(own: Path, _home: Path) -> None:
    """A server of the user's own."""
    file = own / "claude" / ".claude.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps({**known, "mcpServers": {"foreign": FOREIGN}}))


@pytest.mark.requirement("mcp-servers:claude")
def test_claude_code_has_the_servers_of_its_agent_and_none_of_its_users(tmp_path: Path) -> None:
    setup = replace(CLAUDE, options={"setting_sources": ["user"]})
    # It hides the tools of most servers behind a search, and takes calls by name all the same.
    calls = [Use(f"mcp__{each}__weigh", is_declared=False) for each in ("scales", "far")]

    served = Served(setup, tmp_path, plant, calls=calls)

    assert f"weighed {digest(SECRET)}." in served.told
    assert f"weighed {digest('Bearer ' + SECRET)}." in served.told
    assert "mcp__scales__weigh" in served.shown
    assert "mcp__foreign__weigh" not in served.shown
    assert "__weigh" not in served.alone
    assert "mcp__subagents__report_completion" in served.alone
    assert served.status["granted"]["mcpServers"] == ["scales", "far"]
    assert not served.files
