"""The `subagents.toml` that `subagents init` writes, from the programs found on this machine.

Only text is made here; asking, writing and `--yes` belong to the command line.

Source: 5-surfaces §1 (init; no shell for MCP callers by surprise).
"""

import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from subagents.config.settings import AVAILABLE_RUNTIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An agent program that can be found on PATH, and the tables that run it.

    Args:
        name: What it is called on PATH, and as an agent.
        runtime: The runtime made for it.
        command: What that runtime starts, where it must be told.
        headless: Reads one prompt from stdin, prints the answer and ends, with no more rights than
            its user gave it: how the runtime ``command`` runs it until ``runtime`` is there. Not
            as an argument: a prompt that begins with "-" would be an option.
        pass_env: Variables it needs for that: its login and where its configuration is.
    """

    name: str
    runtime: str
    description: str
    command: tuple[str, ...] = ()
    headless: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()


PROGRAMS: Final = (
    Program(
        name="claude",
        runtime="claude-code",
        description="Claude Code",
        headless=("claude", "-p"),
        pass_env=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR"),
    ),
    Program(
        name="codex",
        runtime="codex",
        description="Codex",
        headless=("codex", "exec", "--skip-git-repo-check", "-"),
        pass_env=("CODEX_API_KEY", "CODEX_HOME"),
    ),
    Program(
        name="gemini",
        runtime="acp",
        description="Gemini CLI",
        command=("gemini", "--acp"),
        headless=("gemini",),
        pass_env=("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ),
    Program(
        name="opencode",
        runtime="acp",
        description="OpenCode",
        command=("opencode", "acp"),
        # Not headless: it runs any shell line unless told otherwise, which callers must not gain.
    ),
    Program(name="goose", runtime="acp", description="goose", command=("goose", "acp")),
    Program(
        name="qwen",
        runtime="acp",
        description="Qwen Code",
        command=("qwen", "--acp"),
        headless=("qwen",),
        pass_env=("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"),
    ),
)


def detect(environ: Mapping[str, str]) -> tuple[Program, ...]:
    """The known agent programs on that PATH, in the order of `PROGRAMS`; starts none of them."""
    path = environ.get("PATH")
    return tuple(program for program in PROGRAMS if shutil.which(program.name, path=path))


def usable(
    found: Iterable[Program], *, available: Collection[str] = AVAILABLE_RUNTIMES
) -> tuple[str, ...]:
    """Names of those that can work today: by their runtime, or headless by ``command``."""
    return tuple(each.name for each in found if each.runtime in available or each.headless)


def starter_text(
    environ: Mapping[str, str], *, available: Collection[str] = AVAILABLE_RUNTIMES
) -> str:
    """The text of a `subagents.toml` that loads as it stands.

    Args:
        environ: Its PATH is searched for agent programs and for bash.
        available: Runtimes this version can start. An agent of another one is run headless by the
            runtime ``command``; one that cannot be is a comment and not allowed to anybody.

    Returns:
        TOML, ending in a line feed. The agent `command` is the default of `subagents run`, and
        `main`, through which MCP callers spawn, may not use it.
    """
    found = detect(environ)
    names = usable(found, available=available)
    shell = "bash" if shutil.which("bash", path=environ.get("PATH")) else "sh"
    head = _HEAD.format(
        shell=shell, allowed=json.dumps(names), with_command=json.dumps([*names, "command"])
    )
    parts = [
        head,
        *(_agent(program, is_available=program.runtime in available) for program in found),
        _TAIL,
    ]
    return "\n".join(parts)


def _agent(program: Program, *, is_available: bool) -> str:
    lines = [f"[agents.{program.name}]"]
    if program.headless and not is_available:
        note = [
            f'# One prompt, one answer: the runtime "{program.runtime}" is not in this version, so',
            "# it is run as a command, with the permissions that its own configuration gives it.",
        ]
        lines += _entry("command", program.description, program.headless)
        lines.append('stdin = "prompt"')
        if program.pass_env:
            lines.append(f"pass_env = {json.dumps(program.pass_env)}")
        return "\n".join([*note, *lines, ""])
    lines += _entry(program.runtime, program.description, program.command)
    if is_available:
        return "\n".join([*lines, ""])
    note = [
        f"# {program.description} was found here. It becomes available with a version that has",
        f'# the runtime "{program.runtime}"; then take away the # below and allow it above.',
    ]
    return "\n".join([*note, *(f"# {line}" for line in lines), ""])


def _entry(runtime: str, description: str, command: tuple[str, ...]) -> list[str]:
    lines = [f"runtime = {json.dumps(runtime)}", f"description = {json.dumps(description)}"]
    return [*lines, f"command = {json.dumps(command)}"] if command else lines


_HEAD: Final = """\
# Configuration of subagents. All keys: docs/configuration.md, or `subagents config schema`.
# What holds now, and why: `subagents config show --origin`.

[agents.defaults.subagents]
agent = "command"             # of `subagents run` and of spawns that name no agent
max_spawn_depth = 1           # 1: children are leaves
max_children_per_agent = 5    # active at the same time, for each requester
max_concurrent = 8            # slots of the default lane
run_timeout_seconds = 0       # of each attempt; 0 = none

# Who calls over MCP is the agent "main". It may use the agents named here. "command" is left
# out on purpose: it runs any shell line, so a caller without a shell would gain one. To allow
# it:  subagents.allow_agents = {with_command}
[agents.main]
subagents.allow_agents = {allowed}

# Runs the task as a {shell} script; for you, at the command line.
[agents.command]
runtime = "command"
command = ["{shell}", "-c", "{{task}}"]
description = "Runs the task as a {shell} script"
"""

_TAIL: Final = """\
# A lane of its own for work that must not run eight at a time:  lane = "heavy"  in an agent.
# [lanes.heavy]
# slots = 2
"""
