"""Every agent program in a place of its own, told by a scripted model what to do.

A setup says how a program is configured, and in which words its model asks for things: the same
five tasks are then the same for all of them (``runtime_cells``).
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.e2e.claude_place import program as claude_program
from tests.e2e.scripted_model import Use

Document = dict[str, Any]

HERE: Final = Path(__file__).parent
NOT_THERE: Final = "is not installed"


@dataclass(frozen=True, slots=True)
class ProgramSetup:
    """One row of the table."""

    name: str
    """Of the row, and of the agent in the configuration."""
    runtime: str
    edit: Callable[[str, str], Use]
    """``(absolute path, text)`` → the call that writes the file."""
    shell: Callable[[str], Use]
    """A command line → the call that runs it."""
    shell_tool: str
    """What is denied to take the shell away."""
    options: Mapping[str, object] = field(default_factory=dict)
    env: Callable[[str, Path], Mapping[str, str]] = lambda _url, _root: {}
    """``(the model's address, a directory of its own)`` → variables of the agent."""
    prepare: Callable[[str, Path], None] = lambda _url, _root: None
    """The same → files the program reads."""
    model: str = "scripted"
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot run here; None = it can."""
    is_real: bool = True
    """A program that other people wrote."""

    def config(self, url: str, root: Path) -> str:
        """Its part of ``subagents.toml``."""
        lines = [
            f"[agents.{self.name}]",
            f"runtime = {json.dumps(self.runtime)}",
            f"model = {json.dumps(self.model)}",
            "grace_seconds = 2",
            f"env = {inline(self.env(url, root))}",
            'pass_env = ["E2E_MARK"]',
            'subagents.allow_agents = ["*"]',
        ]
        if self.options:
            lines.append(f"runtime_options = {inline(self.options)}")
        return "\n".join(lines) + "\n"


def inline(table: Mapping[str, object]) -> str:
    """A TOML inline table; JSON's texts, numbers, truths and lists are TOML's."""
    pairs = (
        f"{json.dumps(key)} = {inline(value) if isinstance(value, Mapping) else json.dumps(value)}"
        for key, value in table.items()
    )
    return "{ " + ", ".join(pairs) + " }"


def _claude_missing() -> str | None:
    return None if claude_program() is not None else "claude-agent-sdk is not installed"


def _claude_files(_url: str, root: Path) -> None:
    (root / "claude").mkdir(parents=True)
    (root / "claude" / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))


CLAUDE: Final = ProgramSetup(
    name="claude",
    runtime="claude-code",
    edit=lambda path, text: Use("Write", {"file_path": path, "content": text}),
    shell=lambda line: Use("Bash", {"command": line, "description": "as the script says"}),
    shell_tool="Bash",
    env=lambda url, root: {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CONFIG_DIR": str(root / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    prepare=_claude_files,
    missing=_claude_missing,
)

LLM: Final = ProgramSetup(
    name="llm",
    runtime="llm",
    edit=lambda path, text: Use("write", {"path": path, "content": text}),
    shell=lambda line: Use("shell", {"command": line}),
    shell_tool="shell",
    model="anthropic:scripted",
    env=lambda url, _root: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"},
    is_real=False,
)


def node_path() -> str:
    """PATH with the directory of this interpreter, for programs that call ``subagents``."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
