"""Where each agent keeps its sessions, for a sandbox around it, and what it obeys; pure.

Not among the facts of ``acp_agents``: those are kept with every turn.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from subagents.runtimes.conversation.dialect import ProgramPlaces


class AgentPlaces(NamedTuple):
    """Of one agent; ``~`` is its home, and the directories of XDG are where they are set."""

    writable: tuple[str, ...] = ()
    """Directories of its sessions, caches and logins."""
    guarded: tuple[str, ...] = ()
    """Within those, what the user's next session would obey."""
    stays_near: bool = False
    """Whether its own tools for files write below the working directory only."""


_NONE: Final = AgentPlaces()
PLACES: Final[Mapping[str, AgentPlaces]] = {
    "claude-agent-acp": AgentPlaces(
        writable=("~/.claude",),
        guarded=(
            *("~/.claude/settings.json", "~/.claude/settings.local.json", "~/.claude/CLAUDE.md"),
            *("~/.claude/plugins", "~/.claude/hooks", "~/.claude/agents", "~/.claude/skills"),
        ),
    ),
    "codex-acp": AgentPlaces(
        writable=("~/.codex",),
        guarded=("~/.codex/config.toml", "~/.codex/hooks.json", "~/.codex/AGENTS.md"),
    ),
    "gemini": AgentPlaces(
        writable=("~/.gemini",),
        guarded=("~/.gemini/settings.json", "~/.gemini/extensions", "~/.gemini/GEMINI.md"),
        stays_near=True,
    ),
    "goose": AgentPlaces(
        writable=("~/.local/share/goose", "~/.local/state/goose", "~/.config/goose"),
        guarded=("~/.config/goose/config.yaml",),
    ),
    "opencode": AgentPlaces(
        writable=("~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"),
        stays_near=True,
    ),
    "openclaw": AgentPlaces(writable=("~/.openclaw",)),
    "qwen": AgentPlaces(
        writable=("~/.qwen",),
        guarded=("~/.qwen/settings.json", "~/.qwen/extensions", "~/.qwen/QWEN.md"),
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
            return str(Path(env[name], pattern.removeprefix(prefix)))
    return pattern.replace("~", env.get("HOME", "/"), 1)
