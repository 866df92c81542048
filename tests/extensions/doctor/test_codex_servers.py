"""Entries that start a command which Codex no longer has are found where programs keep them."""

import json
from pathlib import Path

import pytest

from subagents.extensions.doctor.codex_servers import CodexServer, codex_servers

OLD = {"command": "codex", "args": ["mcp-server"]}


def write(file: Path, document: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))
    return file


@pytest.mark.requirement("doctor:codex-as-a-tool")
def test_entries_of_the_project_and_of_its_user_are_found(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    by_npx = {"command": "npx", "args": ["-y", "@openai/codex@latest", "mcp-server"]}
    shared = write(project / ".mcp.json", {"mcpServers": {"codex": OLD, "other": {"url": "x"}}})
    claude = write(
        home / ".claude.json",
        {
            "mcpServers": {"second-opinion": by_npx},
            "projects": {str(project): {"mcpServers": {"here": OLD}}, "/other": {"x": 1}},
        },
    )

    found = codex_servers(project, {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)})

    assert found == [
        CodexServer(shared, "codex"),
        CodexServer(claude, "second-opinion"),
        CodexServer(claude, "here"),
    ]


@pytest.mark.requirement("doctor:codex-as-a-tool")
@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"codex": {"command": "codex-mcp", "args": ["mcp-server"]}}},
        {"mcpServers": {"codex": {"command": "codex", "args": ["app-server"]}}},
        {"mcpServers": {"codex": {"command": ["codex"], "args": "mcp-server"}}},
        {"mcpServers": ["codex", "mcp-server"]},
        "codex mcp-server",
    ],
)
def test_other_entries_and_other_documents_are_none_of_them(
    tmp_path: Path, document: object
) -> None:
    write(tmp_path / ".mcp.json", document)

    assert codex_servers(tmp_path, {}) == []
