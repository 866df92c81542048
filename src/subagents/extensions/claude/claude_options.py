"""The options of a ``claude-code`` agent (``[agents.<id>.runtime_options]``), and its program.

``program``            Claude Code's executable; unset = ``claude`` on PATH, else the one that came
                       with the package ``claude-agent-sdk``.
``config_dir``         Where it keeps its login, settings and sessions (``CLAUDE_CONFIG_DIR``).
``permission_mode``    ``dontAsk`` (default): what is not allowed is denied. See docs for others.
``ask``                ``true``: what it asks permission for becomes a question; else it is denied.
``allow``              More permission rules of its own, such as ``mcp__github``; for runs without
                       a tool scope.
``setting_sources``    Of ``user``, ``project``, ``local``; default none, also no CLAUDE.md.
``strict_mcp_config``  Whether our MCP server is the only one (default).
``background``         Whether it may continue commands and agents in the background.
``max_turns``          Model requests in one turn of the run.
``max_budget_usd``     By Claude Code's own account, per session.
``fallback_model``     Models for when the first one takes no more.
``args``               More arguments of the program.
``handshake_seconds``  How long it may take until its first event; default 120.
"""

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from subagents.errors import ConfigError, UsageError
from subagents.extensions.conversation.program_version import check_version
from subagents.runtimes.process.environment import program
from subagents.runtimes.runtime_options import ConversationOptions, parsed

NAME: Final = "claude-code"
PROGRAM: Final = "claude"
_VERSION_LINE: Final = r"(\d+\.\d+\.\d+)[^\n]*\(Claude Code\)"

PermissionMode = Literal["dontAsk", "acceptEdits", "auto", "bypassPermissions", "plan"]
SettingSource = Literal["user", "project", "local"]
_Text = Annotated[str, msgspec.Meta(min_length=1)]

ELSEWHERE: Final[Mapping[str, str]] = {
    "-p": "it is always given",
    "--print": "it is always given",
    "--input-format": "the runtime speaks stream-json",
    "--output-format": "the runtime speaks stream-json",
    "--verbose": "it is always given",
    "--include-partial-messages": "the runtime reads whole messages",
    "--replay-user-messages": "the runtime knows what it sent",
    "--permission-prompt-tool": "nobody is there to answer",
    "--permission-prompts": "nobody is there to answer",
    "--session-id": "the runtime names the session",
    "--resume": "the runtime resumes the session",
    "-r": "the runtime resumes the session",
    "--continue": "the runtime resumes the session",
    "-c": "the runtime resumes the session",
    "--fork-session": "the runtime resumes the session",
    "--no-session-persistence": "later turns resume the session",
    "--bg": "the daemon watches the process",
    "--background": "the daemon watches the process",
    "--cloud": "the daemon watches the process",
    "--model": "use `model` of the agent",
    "--effort": "use `thinking` of the agent",
    "--tools": "use `tools` of the agent",
    "--allowedTools": "use `tools` of the agent, or the option `allow`",
    "--allowed-tools": "use `tools` of the agent, or the option `allow`",
    "--disallowedTools": "use `tools_deny` of the agent",
    "--disallowed-tools": "use `tools_deny` of the agent",
    "--permission-mode": "use the option `permission_mode`",
    "--dangerously-skip-permissions": 'use the option permission_mode = "bypassPermissions"',
    "--allow-dangerously-skip-permissions": 'use permission_mode = "bypassPermissions"',
    "--setting-sources": "use the option `setting_sources`",
    "--strict-mcp-config": "use the option `strict_mcp_config`",
    "--max-turns": "use the option `max_turns`",
    "--max-budget-usd": "use the option `max_budget_usd`",
    "--fallback-model": "use the option `fallback_model`",
    "--append-system-prompt": "the run's instructions stand there",
    "--append-system-prompt-file": "the run's instructions stand there",
    "--system-prompt-snapshot": "each run has its own instructions",
}
"""Arguments that are set in another way, and how."""


class ClaudeOptions(ConversationOptions, frozen=True, kw_only=True):
    """As written, with defaults."""

    program: _Text | None = None
    config_dir: _Text | None = None
    permission_mode: PermissionMode = "dontAsk"
    allow: tuple[_Text, ...] = ()
    setting_sources: tuple[SettingSource, ...] = ()
    strict_mcp_config: bool = True
    background: bool = False
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    max_budget_usd: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None
    fallback_model: tuple[_Text, ...] = ()
    args: tuple[str, ...] = ()
    stdin: Literal["none"] = "none"


def parse_options(options: Mapping[str, object]) -> ClaudeOptions:
    """Return the options of a ``claude-code`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, ClaudeOptions, runtime=NAME)
    for argument in found.args:
        reason = ELSEWHERE.get(argument.partition("=")[0])
        if reason is not None:
            raise ConfigError(f"`args` cannot hold {argument}: {reason}")
    for rule in found.allow:
        if "," in rule.partition("(")[0]:
            raise ConfigError(f"`allow` is a list of rules; {rule!r} holds several")
    return found


# -- the program -----------------------------------------------------------------------------------


def bundled_program() -> Path | None:
    """Claude Code as it came with ``claude-agent-sdk``, which is not imported; None = not here."""
    try:
        spec = find_spec("claude_agent_sdk")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "_bundled" / PROGRAM
    return found if os.access(found, os.X_OK) else None


def find_program(options: ClaudeOptions, *, cwd: str, path: str) -> str:
    """The program's path. Blocking.

    Raises:
        UsageError: It is nowhere, or too old; says how to get it.
    """
    found = _path_of(options, cwd=cwd, path=path)
    check_version(found, PROGRAM, pattern=_VERSION_LINE, option="runtime_options.program")
    return found


def _path_of(options: ClaudeOptions, *, cwd: str, path: str) -> str:
    if options.program is not None:
        name = os.path.expanduser(options.program)  # noqa: PTH111  of an unknown user it stays
        return program(name, cwd=cwd, path=path, key="runtime_options.program")
    if shutil.which(PROGRAM, path=path) is not None:
        return program(PROGRAM, cwd=cwd, path=path, key="runtime_options.program")
    found = bundled_program()
    if found is None:
        raise UsageError(
            f"Claude Code is not installed: no `{PROGRAM}` on the worker's PATH ({path}), and no "
            "package claude-agent-sdk beside subagents; install one of them, or name the program "
            "in runtime_options.program"
        )
    return str(found)
