"""How agent programs come to know us, and we the agents that they have."""

from subagents.extension import Command, Extension

extension = Extension(
    name="install",
    commands={
        "Set up": (
            Command(
                "import claude-agents",
                "subagents.extensions.install.import_commands:claude_agents",
                "Add Claude Code's subagents to subagents.toml",
            ),
            Command(
                "import openclaw",
                "subagents.extensions.install.import_commands:openclaw",
                "Add the agents of an openclaw.json to subagents.toml",
            ),
        ),
        "For agent programs": (
            Command(
                "mcp install",
                "subagents.extensions.install.mcp_install:install",
                "Register with an agent program",
            ),
            Command(
                "mcp uninstall",
                "subagents.extensions.install.mcp_install:uninstall",
                "Remove the registration",
            ),
            Command(
                "mcp config",
                "subagents.extensions.install.mcp_install:config",
                "Print the entry for any MCP client",
            ),
            Command(
                "mcp plugin",
                "subagents.extensions.install.mcp_install:plugin",
                "Print the Claude Code plugin's path",
            ),
            Command(
                "mcp skill",
                "subagents.extensions.install.mcp_install:skill",
                "Print a skill that teaches delegating",
            ),
            Command(
                "hook stop",
                "subagents.extensions.install.claude_hook:stop",
                "Claude Code's hook at a turn's end",
            ),
            Command(
                "hook session-start",
                "subagents.extensions.install.claude_hook:session_start",
                "Claude Code's hook at a start",
            ),
        ),
    },
    parents={
        "import": "Take over agents that were defined for another program",
        "hook": "Commands that Claude Code's hooks run",
    },
)
