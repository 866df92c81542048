"""Where each agent keeps its sessions, for a sandbox around it, and what it obeys; pure.

Not among the facts of ``acp_agents``: those are kept with every turn.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from subagents.config.programs.program_catalog import CLAUDE_SESSION_PLACES
from subagents.extensions.conversation.dialect import ProgramPlaces


class AgentPlaces(NamedTuple):
    """Of one agent; ``~`` is its home, and the directories of XDG are where they are set."""

    writable: tuple[str, ...] = ()
    """Directories of its sessions, caches and logins."""
    guarded: tuple[str, ...] = ()
    """What the user's next session would obey, inside those directories."""
    stays_near: bool = False
    """Whether its own tools for files write below the working directory only."""


_NONE: Final = AgentPlaces()
PLACES: Final[Mapping[str, AgentPlaces]] = {
    "claude-agent-acp": AgentPlaces(
        writable=tuple(f"~/.claude/{name}" for name in CLAUDE_SESSION_PLACES),
        guarded=("~/.claude/",),
    ),
    "codex-acp": AgentPlaces(
        writable=("~/.codex",),
        guarded=(
            *("~/.codex/config.toml", "~/.codex/hooks.json", "~/.codex/AGENTS.md"),
            *("~/.codex/rules/", "~/.codex/skills/", "~/.codex/prompts/"),
        ),
    ),
    "gemini": AgentPlaces(
        writable=("~/.gemini",),
        guarded=(
            *("~/.gemini/settings.json", "~/.gemini/GEMINI.md", "~/.gemini/.env"),
            *("~/.gemini/extensions/", "~/.gemini/commands/", "~/.gemini/policies/"),
        ),
        stays_near=True,
    ),
    "goose": AgentPlaces(
        writable=("~/.local/share/goose", "~/.local/state/goose"), guarded=("~/.config/goose/",)
    ),
    "opencode": AgentPlaces(
        # It does not begin without writing into its configuration.
        writable=(
            *("~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"),
            "~/.config/opencode",
        ),
        guarded=(
            *(f"~/.config/opencode/{name}" for name in ("opencode.json", "opencode.jsonc")),
            *(f"~/.config/opencode/{name}" for name in ("config.json", "AGENTS.md")),
            *(f"~/.config/opencode/{name}/" for name in ("plugin", "plugins", "agent", "agents")),
            *(f"~/.config/opencode/{name}/" for name in ("command", "commands", "tool", "skill")),
        ),
        stays_near=True,
    ),
    "copilot": AgentPlaces(
        writable=("~/.copilot", "~/.cache/copilot"),
        guarded=(
            *("~/.copilot/settings.json", "~/.copilot/mcp-config.json"),
            *("~/.copilot/lsp-config.json", "~/.copilot/permissions-config.json"),
            *("~/.copilot/copilot-instructions.md", "~/.copilot/instructions/"),
            *(f"~/.copilot/{name}/" for name in ("agents", "hooks", "skills")),
            "~/.copilot/installed-plugins/",
        ),
    ),
    "kilo": AgentPlaces(
        writable=(
            *("~/.local/share/kilo", "~/.local/state/kilo", "~/.local/state/kilo-sandbox-policy"),
            *("~/.cache/kilo", "~/.config/kilo"),
        ),
        guarded=(
            *(f"~/.config/kilo/{name}" for name in ("kilo.json", "kilo.jsonc", "config.json")),
            *(f"~/.config/kilo/{name}" for name in ("opencode.json", "AGENTS.md")),
            *(f"~/.config/kilo/{name}/" for name in ("plugin", "plugins", "agent", "agents")),
            *(f"~/.config/kilo/{name}/" for name in ("command", "commands", "tool", "skill")),
        ),
    ),
    "cline": AgentPlaces(
        writable=("~/.cline",),
        guarded=(
            "~/.cline/data/settings/cline_mcp_settings.json",
            *(f"~/.cline/{name}/" for name in ("hooks", "rules", "plugins", "skills")),
        ),
    ),
    "pi-acp": AgentPlaces(
        writable=("~/.pi",),
        guarded=(
            *(f"~/.pi/agent/{name}" for name in ("settings.json", "models.json", "mcp.json")),
            *("~/.pi/agent/AGENTS.md", "~/.pi/agent/SYSTEM.md"),
            *(f"~/.pi/agent/{name}/" for name in ("extensions", "skills", "prompts")),
        ),
    ),
    "openclaw": AgentPlaces(writable=("~/.openclaw",), guarded=("~/.openclaw/openclaw.json",)),
    "qwen": AgentPlaces(
        writable=("~/.qwen",),
        guarded=(
            *("~/.qwen/settings.json", "~/.qwen/QWEN.md", "~/.qwen/.env"),
            *("~/.qwen/extensions/", "~/.qwen/commands/", "~/.qwen/agents/"),
        ),
    ),
}
_XDG: Final[Mapping[str, str]] = {
    "~/.config/": "XDG_CONFIG_HOME",
    "~/.local/share/": "XDG_DATA_HOME",
    "~/.local/state/": "XDG_STATE_HOME",
    "~/.cache/": "XDG_CACHE_HOME",
}


def known(agent: str | None) -> AgentPlaces:
    """What is known of that agent."""
    return PLACES.get(agent or "", _NONE)


def places(agent: str | None, env: Mapping[str, str]) -> ProgramPlaces:
    """The same as absolute paths, by the environment of its worker."""
    found = known(agent)
    return ProgramPlaces(
        tuple(_place(each, env) for each in found.writable),
        tuple(_place(each, env) for each in found.guarded),
    )


def _place(pattern: str, env: Mapping[str, str]) -> str:
    for prefix, name in _XDG.items():
        if pattern.startswith(prefix) and env.get(name):
            return f"{env[name]}/{pattern.removeprefix(prefix)}"
    return pattern.replace("~", env.get("HOME", "/"), 1)
