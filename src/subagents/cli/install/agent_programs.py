"""Where each agent program keeps its MCP servers, and what our entry there says.

Source: 5-surfaces §1; docs/howto/callers.md says what of it was run and what was read.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.cli.install import json_text, toml_text
from subagents.errors import NotFound, UsageError

SERVER: Final = "subagents"
CODEX_TIMEOUT_S: Final = 600
"""Codex gives up a call after five minutes by itself; the longest wait takes ten."""
OPENCLAW_TIMEOUT_MS: Final = 600_000
PASSED_ON: Final = (
    "SUBAGENTS_HOME",
    "SUBAGENTS_RUN_ID",
    "SUBAGENTS_SESSION_KEY",
    "SUBAGENTS_SOCKET",
    "SUBAGENTS_TOKEN",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
)
"""What says where the daemon is and whose worker this is; Codex passes on only what is named."""

Entry = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """One agent program."""

    name: str
    title: str
    path: tuple[str, ...]
    """Of our entry in its file."""
    file: Path
    is_toml: bool = False
    then: str = ""
    """What the person does or should know next."""

    def with_entry(self, text: str, entry: Entry) -> str:
        """The text of its file with our entry in it; raises as the format's module."""
        if self.is_toml:
            return toml_text.with_table(text, self.path, entry)
        return json_text.with_entry(text if text.strip() else "{}\n", self.path, entry)

    def without_entry(self, text: str) -> str:
        """The text of its file without our entry; raises as the format's module."""
        if self.is_toml:
            return toml_text.without_table(text, self.path)
        return json_text.without_entry(text, self.path) if text.strip() else text

    def snippet(self, entry: Entry) -> str:
        """Our entry as it stands in an otherwise empty file."""
        return self.with_entry("", entry)


NAMES: Final = ("claude", "codex", "gemini", "opencode", "openclaw")


def harness(name: str, environ: Mapping[str, str], *, project: Path | None) -> Harness:
    """The agent program of that name and the file that registers servers there.

    Args:
        name: One of ``NAMES``.
        environ: Says where programs were told to keep their files.
        project: Its directory, for the project's file; None = the user's.

    Raises:
        NotFound: There is no such program here.
        UsageError: It has no files of projects.
    """
    home = Path(environ.get("HOME") or Path.home())
    match name:
        case "claude":
            user = Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
            return Harness(
                name=name,
                title="Claude Code",
                path=("mcpServers", SERVER),
                file=user if project is None else project / ".mcp.json",
                then="With hooks and a skill instead, as a plugin:"
                ' claude --plugin-dir "$(subagents mcp plugin)"',
            )
        case "codex":
            folder = Path(environ.get("CODEX_HOME") or home / ".codex")
            folder = folder if project is None else project / ".codex"
            return Harness(
                name=name,
                title="Codex",
                path=("mcp_servers", SERVER),
                file=folder / "config.toml",
                is_toml=True,
                then="" if project is None else "Codex reads it once it trusts the project.",
            )
        case "gemini":
            folder = (project or Path(environ.get("GEMINI_CLI_HOME") or home)) / ".gemini"
            return Harness(
                name=name,
                title="Gemini CLI",
                path=("mcpServers", SERVER),
                file=folder / "settings.json",
            )
        case "opencode":
            base = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
            return Harness(
                name=name,
                title="opencode",
                path=("mcp", SERVER),
                file=_opencode_file(base if project is None else project),
            )
        case "openclaw":
            if project is not None:
                raise UsageError(
                    "OpenClaw has one configuration, and none of projects",
                    hint="leave --project out",
                    details={"field": "--project"},
                )
            folder = Path(environ.get("OPENCLAW_STATE_DIR") or home / ".openclaw")
            given = environ.get("OPENCLAW_CONFIG_PATH")
            return Harness(
                name=name,
                title="OpenClaw",
                path=("mcp", "servers", SERVER),
                file=Path(given) if given else folder / "openclaw.json",
                then="The gateway takes it with its next session; its runs belong to the session"
                " `openclaw`.",
            )
        case _:
            raise NotFound(
                f"no recipe for {name!r}",
                hint=f"known: {', '.join(NAMES)}; any other: subagents mcp config",
            )


def _opencode_file(folder: Path) -> Path:
    """The one that is there; it may have comments."""
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def entry_of(name: str | None, environ: Mapping[str, str]) -> Entry:
    """What tells this agent program, or any when None, how to start our server."""
    command, *arguments = [*server_command(environ), "mcp"]
    home = environ.get("SUBAGENTS_HOME")
    env = {"SUBAGENTS_HOME": str(Path(home).expanduser().absolute())} if home else {}
    match name:
        case "claude":
            start: Entry = {"type": "stdio", "command": command, "args": arguments}
        case "codex":
            return {
                "command": command,
                "args": arguments,
                "env_vars": [each for each in PASSED_ON if each not in env],
                "default_tools_approval_mode": "approve",
                "tool_timeout_sec": CODEX_TIMEOUT_S,
                **({"env": env} if env else {}),
            }
        case "opencode":
            words = [command, *arguments]
            start = {"type": "local", "command": words, "enabled": True}
            return {**start, **({"environment": env} if env else {})}
        case "openclaw":
            # Its gateway starts servers in no project, so the session gets a name.
            arguments = [*arguments, "--session", "openclaw"]
            start = {
                "command": command,
                "args": arguments,
                "requestTimeoutMs": OPENCLAW_TIMEOUT_MS,
            }
        case _:
            start = {"command": command, "args": arguments}
    return {**start, **({"env": env} if env else {})}


def server_command(environ: Mapping[str, str]) -> list[str]:
    """``subagents`` when that is this program for everybody, else where it is."""
    own = Path(sys.executable).parent / "subagents"
    found = shutil.which("subagents", path=environ.get("PATH", os.defpath))
    if found is not None and own.exists() and Path(found).samefile(own):
        return ["subagents"]
    return [str(own)] if own.exists() else [sys.executable, "-m", "subagents"]
