"""What Claude Code may use, as its command line says it; pure.

``--tools`` decides which of its own tools exist at all, also in its sub-agents and workflows;
``--disallowedTools`` takes some away in every permission mode; ``--allowedTools`` says what needs
no question, and under ``dontAsk`` everything else is denied. All three were tried with the real
program.

A rule such as ``Bash(git:*)`` is kept by Claude Code's own reading of the command line. As a grant
it is taken as it is; as a deny it would be none, for another command can do the same.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from subagents.config.programs.program_catalog import CLAUDE_SESSION_PLACES
from subagents.domain.rules.tool_kinds import WRITING, kind_of
from subagents.domain.run.access import AccessLevel
from subagents.errors import Forbidden
from subagents.extensions.claude.claude_options import ClaudeOptions
from subagents.extensions.conversation.dialect import SERVER, ProgramPlaces

MCP: Final = "mcp__"

TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": ("Bash", "BashOutput", "KillShell", "KillBash", "Monitor", "PowerShell"),
    "read": ("Read", "NotebookRead"),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit", "NotebookEdit"),
    "list": ("LS",),
    "search": ("Grep", "Glob", "LSP"),
    "web": ("WebFetch", "WebSearch"),
    "agents": ("Agent", "Task", "Workflow"),
}
"""Its tools by kind (``tool_kinds``), under the names of all its versions."""

OTHERS: Final = (
    *("Skill", "ToolSearch", "TodoWrite", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
    *("TaskOutput", "TaskStop", "AgentOutputTool", "ReportFindings", "StructuredOutput"),
    *("EnterWorktree", "ExitWorktree", "ExitPlanMode", "SlashCommand"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool"),
)
"""Its tools of no kind."""

BEYOND: Final = (
    *("SendMessage", "ListAgents"),
    *("ScheduleWakeup", "CronCreate", "CronDelete", "CronList"),
)
"""Reach other sessions of the user, or wait for a time after the turn: off unless ``allow`` names
them. A worker has its own tools to speak to others."""


ASKED_KINDS: Final = frozenset({"shell", "write", "edit", "web", "agents"})
"""What it asks permission for, where it may ask."""


class Flags(NamedTuple):
    """Values of the three arguments."""

    tools: tuple[str, ...] | None
    """None = the argument is left out: all that the program has."""
    allowed: tuple[str, ...]
    disallowed: tuple[str, ...]


KEPT_WITHOUT: Final[Mapping[AccessLevel, tuple[str, ...] | None]] = {
    AccessLevel.READ: ("shell", "write", "edit"),
    AccessLevel.WRITE: ("shell",),
    AccessLevel.FULL: (),
}
"""The kinds of tools that it must not have where no sandbox is around it."""


def places(env: Mapping[str, str]) -> ProgramPlaces:
    """See ``Restrained.places``; ``env`` names where ``config_dir`` is, too."""
    home = env.get("HOME", "/")
    root = PurePosixPath(home, env.get("CLAUDE_CONFIG_DIR") or ".claude")
    return ProgramPlaces(tuple(str(root / name) for name in CLAUDE_SESSION_PLACES), (f"{root}/",))


def flags(
    options: ClaudeOptions,
    tools: tuple[str, ...] | None,
    deny: tuple[str, ...],
    *,
    is_near: bool = False,
    asks: bool = False,
) -> Flags:
    """The arguments that keep a run to its scope.

    Args:
        options: The agent's.
        tools: The only ones of its own; None = all.
        deny: Not these, whatever else.
        is_near: Edits are for its mode to allow, which knows the working directory.
        asks: It asks before it changes something or reaches the network.
    """
    by_mode: Collection[str] = ASKED_KINDS if asks else WRITING if is_near else ()
    ours = [f"{MCP}{SERVER}"]
    given = [f"{MCP}{name}" for name in options.mcp_servers or ()]
    disallowed = _once(name for each in deny for name in denied(each))
    if tools is None:
        beyond = BEYOND if options.background else (*BEYOND, "Monitor")
        disallowed = _once([*disallowed, *(each for each in beyond if each not in options.allow)])
        every = [name for kind, names in TOOLS.items() if kind not in by_mode for name in names]
        allowed = [*every, *OTHERS, *ours, *given, *options.allow]
        return Flags(None, _without(allowed, disallowed), disallowed)
    rules = _once(rule for each in tools for rule in granted(each))
    available = _once(_bare(rule) for rule in rules if not rule.startswith(MCP))
    rules = _once(rule for rule in rules if kind_of(rule) not in by_mode)
    return Flags(_without(available, disallowed), _without([*rules, *ours], disallowed), disallowed)


def granted(name: str) -> tuple[str, ...]:
    """The rules that a name in a tool scope stands for.

    A name of Claude Code's is itself (``Task`` and ``Agent`` are one tool); a kind, or another
    program's name, is all of its kind.
    """
    bare = _bare(name)
    kind = kind_of(name)
    if name.startswith(MCP) or kind is None:
        return (name,)
    if bare in {"Task", "Agent"}:
        rest = name[len(bare) :]
        return (f"Agent{rest}", f"Task{rest}")
    return (name,) if bare in TOOLS[kind] else TOOLS[kind]


def denied(name: str) -> tuple[str, ...]:
    """The names that must all be off for a deny of ``name`` to hold."""
    kind = kind_of(name)
    if name.startswith(MCP):
        return (name,)
    if kind is None:
        # One of our own tools under its short name, or a tool that this version has or has not.
        return (name, f"{MCP}{SERVER}__{name}")
    return _once([*TOOLS[kind], name])


def check(options: ClaudeOptions, tools: tuple[str, ...] | None, deny: tuple[str, ...]) -> None:
    """Refuse what the command line cannot keep.

    Raises:
        Forbidden: Names the tools and the way out.
    """
    partial = [each for each in deny if "(" in each]
    if partial:
        raise _forbidden(
            f"cannot deny {', '.join(partial)}: another command or path does the same",
            f"deny the whole tool ({', '.join(_once(map(_bare, partial)))}), or allow only parts",
        )
    odd = [each for each in (*(tools or ()), *deny) if "," in _bare(each) or not _bare(each)]
    if odd:
        raise _forbidden(
            f"takes {odd[0]!r} for no name of a tool", "name one tool in each item of the list"
        )
    if tools is None:
        return
    is_asking = options.permission_mode == "dontAsk"
    rules = [each for each in tools if "(" in each]
    if rules and (not is_asking or options.setting_sources):
        raise _forbidden(
            f"cannot keep it to {', '.join(rules)}: "
            + ("its settings files may allow more" if is_asking else "its mode allows more"),
            'remove permission_mode and setting_sources from runtime_options, or allow "'
            f'{_bare(rules[0])}" as a whole',
        )
    if not options.strict_mcp_config and (not is_asking or options.setting_sources):
        raise _forbidden(
            "cannot keep it from the MCP servers of its own configuration",
            "remove strict_mcp_config = false from runtime_options",
        )


def _forbidden(text: str, hint: str) -> Forbidden:
    return Forbidden(f'runtime "claude-code" {text}', guardrail="tools", hint=hint)


def _bare(rule: str) -> str:
    return rule.partition("(")[0].strip()


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _without(rules: Iterable[str], denied_names: Iterable[str]) -> tuple[str, ...]:
    gone = set(denied_names)
    return _once(rule for rule in rules if rule not in gone and _bare(rule) not in gone)
