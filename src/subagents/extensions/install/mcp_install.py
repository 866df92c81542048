"""``mcp install``, ``uninstall``, ``config`` and ``plugin``: how agent programs come to know us.

Agent programs register servers by commands of their own; those are shown, asked for and run. Only
what these cannot say is written here, see ``codex_registration`` and ``claude_permission``.
"""

import json as json_module
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from subagents import process_group
from subagents.cli import output
from subagents.cli.connection import caller_cwd
from subagents.cli.flags import Json, Parameter, Yes, refusal, refuse_unused
from subagents.errors import EXIT_OK, ConfigError, NotFound
from subagents.extensions.install import claude_permission, file_change
from subagents.extensions.install import codex_registration as codex
from subagents.extensions.install.agent_programs import (
    NAMES,
    AgentProgram,
    Entry,
    agent_program,
    entry_of,
)

SKILL: Final = "skills/delegate/SKILL.md"
"""The skill in the plugin of Claude Code; nothing in it is of one program alone."""
COMMAND_TIMEOUT_S: Final = 60.0

Name = Annotated[str, Parameter(help=f"One of {', '.join(NAMES)}.", metavar="PROGRAM")]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", help="Show what would be done and change nothing.")
]
Project = Annotated[
    bool,
    Parameter(help="Register for this directory instead of for your user.", name="--project"),
]


def install(
    name: Name,
    /,
    *,
    project: Project = False,
    ceiling: Annotated[
        Literal["read", "write", "full"] | None,
        Parameter(
            help="The most its workers may do. Default: what the program says of its own limits."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Register subagents as an MCP server of an agent program.

    Shows the program's own command, asks and runs it. Its agent may then call the tools
    without asking. Where the program has no command for that, its file is edited, the
    change shown first, and the old file kept as FILE.bak-<time>: Codex's config.toml and
    Claude Code's settings.json. Does nothing if subagents is already registered.

    For example:

        subagents mcp install claude --dry-run

        subagents mcp install codex --yes
    """
    program = _program(name, project=project)
    entry = entry_of(name, os.environ, ceiling=ceiling)
    step = _Step(program, entry, dry_run=dry_run, yes=yes, json=json)
    code = step.carry_out()
    if step.is_done and not json:
        output.note(f"subagents is registered with {program.title}.")
        if program.then:
            output.note(program.then)
    return code


def uninstall(
    name: Name,
    /,
    *,
    project: Project = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Remove subagents from the MCP servers of an agent program.

    Shows the program's own command, asks and runs it, as `mcp install` does.

    For example:

        subagents mcp uninstall claude --dry-run

        subagents mcp uninstall codex --yes
    """
    program = _program(name, project=project)
    step = _Step(program, None, dry_run=dry_run, yes=yes, json=json)
    code = step.carry_out()
    if step.is_done and not json:
        output.note(f"subagents is no longer registered with {program.title}.")
    return code


def config(
    name: Annotated[
        str | None, Parameter(help="For this program. Default: any MCP client.", metavar="PROGRAM")
    ] = None,
    /,
    *,
    plugin: Annotated[
        bool,
        Parameter(help="Instead the path of the Claude Code plugin: tools, hooks and a skill."),
    ] = False,
    skill: Annotated[
        bool, Parameter(help="Instead a skill that teaches any agent program to delegate.")
    ] = False,
    agents_md: Annotated[bool, Parameter(help="The same as a paragraph for AGENTS.md.")] = False,
    json: Json = False,
) -> int:
    """Print what a program needs to know us: the configuration entry for an MCP client.

    Nothing is written. Put a skill where your program looks for skills, or behind your AGENTS.md.

    For example:

        subagents mcp config codex

        claude --plugin-dir "$(subagents mcp config --plugin)"

        subagents mcp config --agents-md >> AGENTS.md
    """
    refuse_unused("is not printed together with --plugin", skill=skill and plugin)
    refuse_unused("is not printed together with --plugin", agents_md=agents_md and plugin)
    if name is not None and (plugin or skill or agents_md):
        raise refusal("PROGRAM", "is about an entry: the skill and the plugin's path are for any")
    folder = plugin_dir()
    if plugin:
        output.document({"path": str(folder)}) if json else output.line(str(folder))
        if shutil.which("subagents") is None:
            output.note("Its tools and hooks run `subagents`, which is not on PATH.")
        return EXIT_OK
    if skill or agents_md:
        file = Path(__file__).with_name("agents_md.md") if agents_md else folder / SKILL
        text = file.read_text("utf-8")
        output.document({"text": text}) if json else output.data(text)
        return EXIT_OK
    program = agent_program(name or "claude", os.environ, project=None)
    snippet = _snippet(program, entry_of(name, os.environ))
    if json:
        path = None if name is None else str(program.file)
        output.document({"program": name, "file": path, "snippet": snippet})
        return EXIT_OK
    if name is not None:
        output.note(f"In {program.file}:")
    output.data(snippet)
    return EXIT_OK


def plugin_dir() -> Path:
    """The folder as it is installed."""
    return Path(__file__).with_name("claude_plugin")


def _program(name: str, *, project: bool) -> AgentProgram:
    return agent_program(name, os.environ, project=Path(caller_cwd()) if project else None)


def _snippet(program: AgentProgram, entry: Entry) -> str:
    """The entry as it stands in an otherwise empty file."""
    if program.name == "codex":
        return codex.with_entry("", program.path, entry)
    if program.name == "goose":  # JSON within YAML is YAML
        table, name = program.path
        return f"{table}:\n  {name}: {json_module.dumps(entry)}\n"
    document = entry
    for name in reversed(program.path):
        document = {name: document}
    return json_module.dumps(document, indent=2) + "\n"


class _Step:
    """One registration, or with no entry its end: shown, asked for, and made."""

    def __init__(
        self,
        program: AgentProgram,
        entry: Entry | None,
        *,
        dry_run: bool,
        yes: bool,
        json: bool,
    ) -> None:
        self._program = program
        self._entry = entry
        self._is_dry = dry_run
        self._yes = yes
        self._json = json
        self.is_done = False

    def carry_out(self) -> int:
        """Returns the exit code.

        Raises:
            UsageError: The program has no command for it.
            NotFound: The program is not here.
            ConfigError: Its file cannot be read, or its command failed.
        """
        if self._program.name == "codex":
            return self._change_file()
        commands, permission = self._commands(), self._permission()
        shown = [shlex.join(command) for command in commands]
        diff = permission.diff if permission is not None else ""
        backup: Path | None = None
        if self._is_wanted("\n".join(filter(None, [*shown, diff]))):
            for command in commands:
                _run(command)
            if permission is not None:
                backup = self._written(permission)
            self.is_done = True
        if self._json:
            kept = None if backup is None else str(backup)
            more = {} if permission is None else {"diff": diff, "backup": kept}
            self._document(commands=shown, **more)
        return EXIT_OK

    def _permission(self) -> file_change.Change | None:
        """What has to change so that our tools may be called without asking; None = nothing."""
        if self._program.settings is None:
            return None
        change = claude_permission.change_of(
            self._program, self._program.settings, is_allowed=self._entry is not None
        )
        return change if change.is_needed else None

    def _commands(self) -> list[list[str]]:
        """What the program's own command line has to do; nothing when it is so already."""
        text = file_change.read(self._program.file)
        found = None if text is None else self._program.entry_in(text)
        if self._entry is None:
            return [] if found is None else [self._program.remove_command()]
        if found is not None and found == {**found, **self._entry}:
            return []
        add = self._program.add_command(self._entry)
        # These refuse to replace an entry; the others do so by themselves.
        is_in_the_way = found is not None and self._program.name in {"claude", "copilot"}
        return [self._program.remove_command(), add] if is_in_the_way else [add]

    def _change_file(self) -> int:
        change = codex.change_of(self._program, self._entry)
        backup: Path | None = None
        if self._is_wanted(change.diff if change.is_needed else ""):
            backup = self._written(change)
            self.is_done = True
        if self._json:
            self._document(diff=change.diff, backup=None if backup is None else str(backup))
        return EXIT_OK

    def _written(self, change: file_change.Change) -> Path | None:
        """Write, and say so; returns where the old file is kept."""
        backup = file_change.write(change)
        kept = f"; the old one is {backup}" if backup else ""
        if not self._json:
            output.note(f"Written: {change.file}{kept}")
        return backup

    def _is_wanted(self, shown: str) -> bool:
        """Show what would be done, and ask."""
        title = self._program.title
        if not shown:
            if not self._json:
                state = "not registered" if self._entry is None else "already registered"
                output.note(f"subagents is {state} with {title}; nothing to do.")
            return False
        if not self._json:
            output.data(shown)
        if self._is_dry:
            return False
        if output.is_confirmed(f"Change the configuration of {title}?", yes=self._yes):
            return True
        output.note("Nothing was changed.")
        return False

    def _document(self, **more: object) -> None:
        program = self._program
        file = str(program.file)
        output.document({"program": program.name, "file": file, "changed": self.is_done, **more})


def _run(command: Sequence[str]) -> None:
    """Run an agent program's own command.

    Raises:
        NotFound: It is not on PATH.
        ConfigError: It failed; the message has its last words.
    """
    name = command[0]
    if shutil.which(name) is None:
        raise NotFound(
            f"{name} is not on PATH; nothing was changed",
            hint=f"install it, or put what `subagents mcp config {name}` prints into its file",
        )
    try:
        done = process_group.run(command, timeout_s=COMMAND_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{name} did not finish within {COMMAND_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise ConfigError(f"cannot start {name}: {error.strerror}") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace").splitlines()
        reason = lines[-1] if lines else "it said nothing"
        raise ConfigError(
            f"{name} ended with status {done.returncode}: {reason}",
            hint=f"try it yourself: {shlex.join(command)}",
        )
