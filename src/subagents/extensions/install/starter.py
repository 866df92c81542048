"""The `subagents.toml` that `subagents init` writes, from the programs found on this machine.

Only text is made here; asking, writing and `--yes` belong to the command line.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import metadata
from typing import Final

from subagents.extensions.conversation.found_programs import Found, detect
from subagents.version import __version__


def usable(found: Sequence[Found]) -> tuple[str, ...]:
    """The agents that callers may use; where no login was found, one can follow later."""
    return tuple(each.program.name for each in found)


def starter_text(environ: Mapping[str, str], found: Sequence[Found] | None = None) -> str:
    """The text of a `subagents.toml` that loads as it stands.

    Args:
        environ: Its PATH is searched for agent programs and for bash.
        found: What was found already; None = it is looked for.

    Returns:
        TOML, ending in a line feed. The agent `command` is the default of `subagents run`, and
        `main`, through which MCP callers spawn, may not use it.
    """
    found = detect(environ) if found is None else found
    names = usable(found)
    shell = "bash" if shutil.which("bash", path=environ.get("PATH")) else "sh"
    head = _HEAD.format(
        schema=_schema(),
        shell=shell,
        allowed=json.dumps(names),
        with_command=json.dumps([*names, "command"]),
        note=_CODING if names else "",
    )
    return "\n".join([head, *map(_agent, found), _TAIL])


def _schema() -> str:
    """The line by which editors find the schema of this version; how to get one while the project
    has no address.
    """
    urls = dict(each.split(", ", 1) for each in metadata("subagents").get_all("Project-URL") or ())
    if "Repository" not in urls:
        return _SCHEMA_HERE
    return f"#:schema {urls['Repository']}/releases/download/v{__version__}/subagents.schema.json"


def _agent(found: Found) -> str:
    program = found.program
    lines = [f"# {found.place}"]
    if found.login is None:
        lines.append(f"# Nobody seems to be logged in. To log in: {program.login}")
    lines += [
        f"[agents.{program.name}]",
        f"runtime = {json.dumps(program.runtime)}",
        f"description = {json.dumps(program.title)}",
        'access = "write"',
    ]
    if program.model is not None:
        lines.append(f"model = {json.dumps(program.model)}    # or any other one")
    lines += [
        f"runtime_options.{name} = {json.dumps(value)}" for name, value in program.options.items()
    ]
    return "\n".join([*lines, ""])


_CODING: Final = """\
# The agents below are coding agents. With access = "write" they read files, edit them and run
# commands where they work, and can write nowhere else. Less:  "read".
# All that you may do yourself, outside of any sandbox:  "full".
"""

_SCHEMA_HERE: Final = """\
# For editors: `subagents config --schema > subagents.schema.json`, and as the first line here
# `#:schema ./subagents.schema.json`.\
"""

_HEAD: Final = """\
{schema}
# Configuration of subagents. All keys: `subagents config --schema`.
# In effect: `subagents config --origin`. Whether it works: `subagents doctor`.

[agents.defaults.subagents]
agent = "command"             # of `subagents run` and of spawns that name no agent
max_spawn_depth = 1           # 1: children are leaves
max_children_per_agent = 5    # active at the same time, for each agent; yours are queued
max_concurrent = 8            # slots of the default lane
run_timeout_seconds = 0       # of each attempt; 0 = none

# Who calls over MCP is the agent "main". It may use the agents named here. "command" is left
# out on purpose: it runs any shell line, so a caller without a shell would gain one. To allow
# it:  subagents.allow_agents = {with_command}
{note}[agents.main]
subagents.allow_agents = {allowed}

# Runs the task as a {shell} script; for you, at the command line.
[agents.command]
runtime = "command"
command = ["{shell}", "-c", "{{task}}"]
access = "full"
description = "Runs the task as a {shell} script"
"""

_TAIL: Final = """\
# A lane of its own for work that must not run eight at a time:  lane = "heavy"  in an agent.
# [lanes.heavy]
# slots = 2
"""
