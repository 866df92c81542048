"""What the extension adds to the core."""

from typing import Final

from subagents.extension import Command, Extension, SettingsTable

extension: Final = Extension(
    name="mcp",
    commands={
        "Called by agent programs": (
            Command(
                "mcp",
                "subagents.extensions.mcp.bridge.mcp_command:mcp",
                "Serve MCP on stdin and stdout",
                reads_itself=True,
            ),
        ),
    },
    parents={"mcp": "Serve MCP on stdin and stdout, and register with MCP clients"},
    settings=(
        SettingsTable(
            "mcp_servers", "subagents.extensions.mcp.named_servers:McpServer", is_named=True
        ),
    ),
    worker_env="subagents.extensions.mcp.named_servers:worker_env",
    endpoints="subagents.extensions.mcp.mcp_endpoint:endpoints",
)
