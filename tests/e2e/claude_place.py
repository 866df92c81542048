"""The real Claude Code in a place of its own: a project, a configuration, a scripted model.

The program comes with the wheel ``claude-agent-sdk``. It needs no login and no network: its model
is the scripted one, and nothing else is asked.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from live_home import MARK, LiveHome
from scripted_model import ScriptedModel

from subagents.cli.mcp_install import plugin_dir
from subagents.config.paths import session_name

BOUND_S: Final = 30.0
TOOLS: Final = "mcp__subagents"
PLUGIN_TOOLS: Final = "mcp__plugin_subagents_subagents"

Document = dict[str, Any]


def program() -> Path | None:
    """Claude Code as it came with the SDK; None where that is not installed."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "_bundled" / "claude"
    return found if found.exists() else None


@dataclass(frozen=True, slots=True)
class Ended:
    """How one print session ended."""

    code: int
    events: list[Document]
    err: str

    @property
    def result(self) -> str:
        return str(self.last("result")["result"])

    @property
    def session_id(self) -> str:
        return str(self.last("system")["session_id"])

    @property
    def servers(self) -> dict[str, str]:
        """The MCP servers and how each is."""
        started = next(each for each in self.events if each.get("subtype") == "init")
        return {each["name"]: each["status"] for each in started["mcp_servers"]}

    def last(self, kind: str) -> Document:
        return next(each for each in reversed(self.events) if each["type"] == kind)


@dataclass(frozen=True, slots=True)
class ClaudePlace:
    """One project directory and what Claude Code keeps beside it."""

    home: LiveHome
    model: ScriptedModel

    @property
    def project(self) -> Path:
        return self.home.work

    @property
    def session_key(self) -> str:
        return f"agent:main:{session_name(self.project)}"

    @property
    def env(self) -> dict[str, str]:
        binaries = Path(sys.executable).parent
        return {
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home.root),
            "SUBAGENTS_HOME": str(self.home.root / "home"),
            MARK: self.home.mark,
            "CLAUDE_CONFIG_DIR": str(self.home.root / "claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # A session of the SDK begins without the tools of a server that is still starting.
            "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
        }

    @property
    def server(self) -> Document:
        """Our bridge as an entry of Claude Code's configuration."""
        return {"type": "stdio", "command": "subagents", "args": ["mcp"]}

    def flags(self, *, plugin: bool) -> list[str]:
        """How Claude Code is told of us: as a plugin, or as a server alone."""
        if plugin:
            return ["--plugin-dir", str(plugin_dir()), "--allowedTools", PLUGIN_TOOLS]
        servers = json.dumps({"mcpServers": {"subagents": self.server}})
        return ["--mcp-config", servers, "--strict-mcp-config", "--allowedTools", TOOLS]

    def start(
        self, prompt: str, *, plugin: bool = False, more: Sequence[str] = ()
    ) -> "subprocess.Popen[str]":
        """A print session (``-p``), under way."""
        claude = program()
        assert claude is not None
        return subprocess.Popen(
            [
                *(str(claude), "-p", prompt, "--output-format", "stream-json", "--verbose"),
                *("--permission-mode", "dontAsk", *self.flags(plugin=plugin), *more),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.project,
        )

    def run(self, prompt: str, *, plugin: bool = False, more: Sequence[str] = ()) -> Ended:
        """A print session to its end."""
        process = self.start(prompt, plugin=plugin, more=more)
        try:
            out, err = process.communicate(timeout=BOUND_S)
        finally:
            process.kill()
            process.wait()
        return Ended(process.returncode, [json.loads(each) for each in out.splitlines()], err)
