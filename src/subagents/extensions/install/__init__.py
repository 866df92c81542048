"""How agent programs come to know us, and we the agents that they have."""

from subagents.extension import Command, Extension

extension = Extension(
    name="install",
    commands={
        "Set up": (
            Command(
                "init",
                "subagents.extensions.install.init_command:init",
                "Create a subagents.toml for this machine",
            ),
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
                "Print an entry, a skill or the plugin's path",
            ),
        ),
        "Called by agent programs": (
            Command(
                "hook",
                "subagents.extensions.install.claude_hook:hook",
                "Claude Code's hook at a session's start, or a turn's end",
            ),
        ),
    },
    renamed={
        "import claude-agents": "init --from claude-agents",
        "import openclaw": "init --from openclaw",
        "mcp plugin": "mcp config --plugin",
        "mcp skill": "mcp config --skill",
    },
)
