"""The `subagents.toml` that `subagents init` writes, from the programs found on this machine.

Only text is made here; asking, writing and `--yes` belong to the command line.

Source: 5-surfaces §1 (init; no shell for MCP callers by surprise).
"""

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from subagents.config.settings import AVAILABLE_RUNTIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An agent program that can be found on PATH, and the table that would run it."""

    name: str
    runtime: str
    description: str
    command: tuple[str, ...] = ()


PROGRAMS: Final = (
    Program(name="claude", runtime="claude-code", description="Claude Code"),
    Program(name="codex", runtime="codex", description="Codex"),
    Program(
        name="gemini",
        runtime="acp",
        description="Gemini CLI",
        command=("gemini", "--acp"),
    ),
    Program(name="opencode", runtime="acp", description="OpenCode", command=("opencode", "acp")),
    Program(name="goose", runtime="acp", description="goose", command=("goose", "acp")),
    Program(name="qwen", runtime="acp", description="Qwen Code", command=("qwen", "--acp")),
)


def detect(environ: Mapping[str, str]) -> tuple[Program, ...]:
    """The known agent programs on that PATH, in the order of `PROGRAMS`; starts none of them."""
    path = environ.get("PATH")
    return tuple(program for program in PROGRAMS if shutil.which(program.name, path=path))


def starter_text(
    environ: Mapping[str, str], *, available: Collection[str] = AVAILABLE_RUNTIMES
) -> str:
    """The text of a `subagents.toml` that loads as it stands.

    Args:
        environ: Its PATH is searched for agent programs and for bash.
        available: Runtimes this version can start; agents of others are written as comments.

    Returns:
        TOML, ending in a line feed. The agent `command` is the default of `subagents run`, and
        `main`, through which MCP callers spawn, may not use it.
    """
    found = detect(environ)
    shell = "bash" if shutil.which("bash", path=environ.get("PATH")) else "sh"
    allowed = json.dumps([program.name for program in found])
    with_command = json.dumps([*(program.name for program in found), "command"])
    parts = [
        _HEAD.format(shell=shell, allowed=allowed, with_command=with_command),
        *(_agent(program, is_available=program.runtime in available) for program in found),
        _TAIL,
    ]
    return "\n".join(parts)


def _agent(program: Program, *, is_available: bool) -> str:
    lines = [
        f"[agents.{program.name}]",
        f"runtime = {json.dumps(program.runtime)}",
        f"description = {json.dumps(program.description)}",
    ]
    if program.command:
        lines.append(f"command = {json.dumps(list(program.command))}")
    if is_available:
        return "\n".join([*lines, ""])
    note = (
        f"# {program.description} was found here. It becomes available with a version that has\n"
        f'# the runtime "{program.runtime}"; then take away the # below.'
    )
    return "\n".join([note, *(f"# {line}" for line in lines), ""])


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
