"""Each agent program: its own command that registers an MCP server, and what our entry says.

docs/mcp-conformance.md says what of it was run and what was only read.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.errors import NotFound, UsageError

SERVER: Final = "subagents"
CODEX_TIMEOUT_S: Final = 600
"""Codex gives up a call after five minutes by itself; the longest wait takes ten."""
CODEX_START_S: Final = 60
"""Our server is there at once, and Codex counts the start of Python, too, on a busy machine."""
CALL_TIMEOUT_MS: Final = 600_000
"""OpenClaw's and Copilot's limit of a call."""
PASSED_ON: Final = (
    "SUBAGENTS_HOME",
    "SUBAGENTS_RUN_ID",
    "SUBAGENTS_SESSION_KEY",
    "SUBAGENTS_SOCKET",
    "SUBAGENTS_TOKEN",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)
"""What says where the daemon is and whose worker this is; Codex passes on only what is named."""

Entry = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """One agent program, and where it keeps its MCP servers."""

    name: str
    title: str
    path: tuple[str, ...]
    """The keys that lead to our entry in its file."""
    file: Path
    project: Path | None = None
    """The directory whose servers they are; None = the user's."""
    settings: Path | None = None
    """Where it keeps what may be called without asking, when that is not in our entry."""
    then: str = ""
    """What the person does or should know next."""

    def add_command(self, entry: Entry) -> list[str]:
        """Its own command that registers ``entry``; an older entry may have to go first.

        Raises:
            UsageError: It has none for this.
        """
        match self.name:
            case "claude":
                return ["claude", "mcp", "add-json", *self._scope(), SERVER, json.dumps(entry)]
            case "gemini" | "qwen":
                words = [self.name, "mcp", "add", *_env_options(entry.get("env"))]
                trust = ["--trust"] if entry.get("trust") else []
                return [*words, *trust, *self._scope(), SERVER, *_words(entry)]
            case "openclaw":
                return ["openclaw", "mcp", "set", SERVER, json.dumps(entry)]
            case "opencode" | "kilo" if self.project is None:
                words = [self.name, "mcp", "add", SERVER, *_env_options(entry.get("environment"))]
                return [*words, "--", *_words(entry)]
            case "copilot" if self.project is None:
                words = ["copilot", "mcp", "add", "--timeout", str(CALL_TIMEOUT_MS)]
                return [*words, *_env_options(entry.get("env")), SERVER, "--", *_words(entry)]
            case "cline":
                return ["cline", "mcp", "install", "--yes", SERVER, "--", *_words(entry)]
            case "pi":
                words = ["pi", "mcp", "add", SERVER, *self._scope(), "--exposure", "direct"]
                return [*words, *_env_options(entry.get("env")), "--", *_words(entry)]
        more = "" if self.project is None else " for a project"
        raise UsageError(
            f"{self.title} has no command that registers servers{more}",
            hint=f"put what `subagents mcp config {self.name}` prints into {self.file}",
        )

    def remove_command(self) -> list[str]:
        """Its own command that takes our entry away.

        Raises:
            UsageError: It has none.
        """
        match self.name:
            case "claude" | "gemini" | "qwen":
                return [self.name, "mcp", "remove", *self._scope(), SERVER]
            case "openclaw":
                return ["openclaw", "mcp", "unset", SERVER]
            case "copilot" | "pi":
                return [self.name, "mcp", "remove", SERVER, *self._scope()]
            case "cline":
                return ["cline", "mcp", "uninstall", SERVER]
        raise UsageError(
            f"{self.title} has no command that takes servers away",
            hint=f"delete {'.'.join(self.path)} from {self.file}",
        )

    def entry_in(self, text: str) -> Entry | None:
        """What the text of its file says of us; None = nothing.

        Empty when nobody knows: only the program itself reads the comments in its JSON.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        for name in self.path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None

    def _scope(self) -> list[str]:
        if self.name in {"copilot", "pi"}:
            return [] if self.project is None else ["--local"]
        return ["--scope", "user" if self.project is None else "project"]


def _words(entry: Entry) -> list[str]:
    command, arguments = entry["command"], entry.get("args", [])
    words = command if isinstance(command, list) else [command]
    return [*map(str, words), *(arguments if isinstance(arguments, list) else [])]


def _env_options(env: object) -> list[str]:
    pairs = env.items() if isinstance(env, dict) else ()
    return [word for name, value in pairs for word in ("--env", f"{name}={value}")]


NAMES: Final = (
    *("claude", "codex", "gemini", "qwen", "opencode", "openclaw"),
    *("copilot", "kilo", "cline", "pi", "goose"),
)


def agent_program(name: str, environ: Mapping[str, str], *, project: Path | None) -> AgentProgram:
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
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    match name:
        case "claude":
            folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
            user = Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
            return AgentProgram(
                name=name,
                project=project,
                title="Claude Code",
                path=("mcpServers", SERVER),
                file=user if project is None else project / ".mcp.json",
                settings=(folder if project is None else project / ".claude") / "settings.json",
                then="With hooks and a skill instead, as a plugin:"
                ' claude --plugin-dir "$(subagents mcp config --plugin)"',
            )
        case "codex":
            folder = Path(environ.get("CODEX_HOME") or home / ".codex")
            folder = folder if project is None else project / ".codex"
            return AgentProgram(
                name=name,
                project=project,
                title="Codex",
                path=("mcp_servers", SERVER),
                file=folder / "config.toml",
                then="" if project is None else "Codex reads it once it trusts the project.",
            )
        case "gemini":
            folder = (project or Path(environ.get("GEMINI_CLI_HOME") or home)) / ".gemini"
            return AgentProgram(
                name=name,
                project=project,
                title="Gemini CLI",
                path=("mcpServers", SERVER),
                file=folder / "settings.json",
            )
        case "qwen":
            return AgentProgram(
                name=name,
                project=project,
                title="Qwen Code",
                path=("mcpServers", SERVER),
                file=(project or home) / ".qwen" / "settings.json",
            )
        case "opencode" | "kilo":
            return AgentProgram(
                name=name,
                project=project,
                title="Kilo" if name == "kilo" else name,
                path=("mcp", SERVER),
                file=_opencode_file(project or config / name, name),
            )
        case "copilot":
            folder = Path(environ.get("COPILOT_HOME") or home / ".copilot")
            return AgentProgram(
                name=name,
                project=project,
                title="GitHub Copilot CLI",
                path=("mcpServers", SERVER),
                file=folder / "mcp-config.json" if project is None else project / ".mcp.json",
                then="Copilot asks before each call; not so: copilot --allow-tool=subagents",
            )
        case "pi":
            folder = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
            return AgentProgram(
                name=name,
                project=project,
                title="pi",
                path=("mcpServers", SERVER),
                file=(folder if project is None else project / ".pi") / "mcp.json",
                then="" if project is None else "pi reads it once it trusts the project.",
            )
        case "cline":
            _refuse_project(project, "Cline")
            folder = Path(environ.get("CLINE_DATA_DIR") or home / ".cline" / "data") / "settings"
            given = environ.get("CLINE_MCP_SETTINGS_PATH")
            return AgentProgram(
                name=name,
                title="Cline",
                path=("mcpServers", SERVER, "transport"),
                file=Path(given) if given else folder / "cline_mcp_settings.json",
            )
        case "goose":
            _refuse_project(project, "goose")
            return AgentProgram(
                name=name,
                title="goose",
                path=("extensions", SERVER),
                file=config / "goose" / "config.yaml",
            )
        case "openclaw":
            _refuse_project(project, "OpenClaw")
            folder = Path(environ.get("OPENCLAW_STATE_DIR") or home / ".openclaw")
            given = environ.get("OPENCLAW_CONFIG_PATH")
            return AgentProgram(
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


def _refuse_project(project: Path | None, title: str) -> None:
    if project is not None:
        raise UsageError(
            f"{title} has one configuration, and none of projects",
            hint="leave --project out",
            details={"field": "--project"},
        )


def _opencode_file(folder: Path, name: str) -> Path:
    """The one that is there; it may have comments."""
    with_comments, plain = folder / f"{name}.jsonc", folder / f"{name}.json"
    # Kilo makes the first of them by itself.
    is_first = name == "kilo" and not plain.exists()
    return with_comments if with_comments.exists() or is_first else plain


def entry_of(name: str | None, environ: Mapping[str, str], *, ceiling: str | None = None) -> Entry:
    """What tells this agent program, or any when None, how to start our server.

    Args:
        name: The program.
        environ: Says where this installation keeps its files.
        ceiling: The most its workers may do; None = what the program says of itself.
    """
    command, *arguments = [*server_command(environ), "mcp"]
    arguments += [] if ceiling is None else ["--ceiling", ceiling]
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
                "required": True,
                "startup_timeout_sec": CODEX_START_S,
                "tool_timeout_sec": CODEX_TIMEOUT_S,
                **({"env": env} if env else {}),
            }
        case "gemini" | "qwen":
            # Without it each call is asked for, and where nobody can be asked there are no tools.
            start = {"command": command, "args": arguments, "trust": True}
        case "opencode" | "kilo":
            words = [command, *arguments]
            start = {"type": "local", "command": words}
            return {**start, **({"environment": env} if env else {})}
        case "openclaw":
            # Its gateway starts servers in no project, so the session gets a name.
            arguments = [*arguments, "--session", "openclaw"]
            start = {
                "command": command,
                "args": arguments,
                "requestTimeoutMs": CALL_TIMEOUT_MS,
            }
        case "copilot":
            start = {"type": "local", "command": command, "args": arguments, "tools": ["*"]}
            start["timeout"] = CALL_TIMEOUT_MS
        case "cline":
            # Its command knows no variables.
            words = [*(["env"] if env else []), *(f"{n}={v}" for n, v in env.items()), command]
            return {"type": "stdio", "command": words[0], "args": [*words[1:], *arguments]}
        case "pi":
            # Else its model must search for our tools.
            start = {"command": command, "args": arguments, "exposure": "direct"}
        case "goose":
            start = {"type": "stdio", "name": SERVER, "enabled": True, "cmd": command}
            return {**start, "args": arguments, "envs": env, "timeout": CALL_TIMEOUT_MS // 1000}
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
