"""The real Claude Code in a place of its own: a project, a configuration, a scripted model.

The program comes with the wheel ``claude-agent-sdk``. It needs no login and no network: its model
is the scripted one, and nothing else is asked.
"""

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.e2e.live_home import MARK, LiveHome, until
from tests.e2e.scripted_model import ScriptedModel

from subagents.config.paths import session_name
from subagents.extensions.install.mcp_install import plugin_dir

BOUND_S: Final = 90.0
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
    waits_for_servers: bool = True
    """A session of the SDK begins without the tools of a server that is still starting."""
    ceiling: str | None = None
    """What its workers may do at most, as its user set it; None = what its own mode says."""

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
            **({"CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000"} if self.waits_for_servers else {}),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
        }

    @property
    def server(self) -> Document:
        """Our bridge as an entry of Claude Code's configuration."""
        ceiling = [] if self.ceiling is None else ["--ceiling", self.ceiling]
        return {"type": "stdio", "command": "subagents", "args": ["mcp", *ceiling]}

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
        with self.start(prompt, plugin=plugin, more=more) as process:
            try:
                out, err = process.communicate(timeout=BOUND_S)
            finally:
                process.kill()
        return Ended(process.returncode, [json.loads(each) for each in out.splitlines()], err)

    @contextlib.contextmanager
    def interactive(
        self, env: Mapping[str, str] | None = None, *, plugin: bool = True
    ) -> Iterator["Terminal"]:
        """A session at a terminal, ready for the first prompt."""
        self._accept_everything()
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 140, 0, 0))
        token = {"ANTHROPIC_AUTH_TOKEN": "none", "TERM": "xterm-256color", **(env or {})}
        known = {name: value for name, value in self.env.items() if name != "ANTHROPIC_API_KEY"}
        process = subprocess.Popen(
            [str(program()), "--permission-mode", "dontAsk", *self.flags(plugin=plugin)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**known, **token},
            cwd=self.project,
            start_new_session=True,
        )
        os.close(theirs)
        terminal = Terminal(ours)
        reader = threading.Thread(target=terminal.read)
        reader.start()
        try:
            until(lambda: "❯" in terminal.screen, what="the prompt", within_s=BOUND_S)
            until(self._is_connected, what="our server is connected", within_s=BOUND_S)
            yield terminal
        finally:
            process.kill()
            process.wait(BOUND_S)
            reader.join(BOUND_S)
            os.close(ours)

    def _is_connected(self) -> bool:
        """Whether Claude Code wrote down that it speaks to our server: the prompt comes first."""
        logs = (self.home.root / ".cache").rglob("mcp-logs-*subagents*/*.jsonl")
        return any("Connection established" in each.read_text() for each in logs)

    def _accept_everything(self) -> None:
        """What the dialogs of the first start would write down."""
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        seen = {"hasCompletedOnboarding": True, "theme": "dark"}
        folder = Path(self.env["CLAUDE_CONFIG_DIR"])
        folder.mkdir()
        known = {**seen, "projects": {str(self.project): project}}
        (folder / ".claude.json").write_text(json.dumps(known))


@dataclass(slots=True)
class Terminal:
    """The other end of a session's terminal."""

    descriptor: int
    screen: str = ""
    """Everything that was drawn, escape sequences and all."""

    def read(self) -> None:
        """Take what is drawn until the session ends: nobody else empties the terminal."""
        with contextlib.suppress(OSError):
            while drawn := os.read(self.descriptor, 65_536):
                self.screen += drawn.decode(errors="replace")

    def enter(self, prompt: str) -> None:
        """Type a prompt, and send it once it is drawn: what comes at once counts as pasted."""
        os.write(self.descriptor, prompt.encode())
        until(lambda: prompt in self.screen, what="the prompt is drawn", within_s=BOUND_S)
        os.write(self.descriptor, b"\r")
