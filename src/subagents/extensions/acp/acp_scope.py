"""What an ACP agent may use of its own tools, and how each program is kept to it; pure.

Where a program can be started without a tool, it is (``switches``): the model never sees it. An
agent that asks before every tool is refused (``may_use``). For any other agent no scope is taken:
a deny that only asks nicely is none.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from subagents.domain.rules.tool_kinds import WRITING, ToolScope, kind_of, kinds_of
from subagents.extensions.acp.acp_agents import (
    SERVERS_ARGUMENT,
    AgentFacts,
    ScopeMeans,
    ServerMeans,
    server_means,
)
from subagents.extensions.conversation.dialect import SERVER, Opening

POLICY: Final = "gemini-policy.toml"

TOOLS: Final[dict[ScopeMeans, Mapping[str, tuple[str, ...]]]] = {
    ScopeMeans.CLAUDE: {
        "shell": ("Bash", "BashOutput", "KillShell", "KillBash", "Monitor"),
        "read": ("Read", "NotebookRead"),
        "write": ("Write",),
        "edit": ("Edit", "MultiEdit", "NotebookEdit"),
        "list": ("LS",),
        "search": ("Grep", "Glob"),
        "web": ("WebFetch", "WebSearch"),
        "agents": ("Task", "Agent", "Workflow"),
    },
    ScopeMeans.OPENCODE: {
        "shell": ("bash",),
        "read": ("read",),
        # One permission, "edit", is both.
        "write": ("edit", "write", "patch", "apply_patch", "multiedit"),
        "edit": ("edit", "write", "patch", "apply_patch", "multiedit"),
        "list": ("list",),
        "search": ("grep", "glob", "codesearch", "lsp"),
        "web": ("webfetch", "websearch"),
        "agents": ("task",),
    },
    ScopeMeans.GEMINI: {
        "shell": ("run_shell_command",),
        "read": ("read_file", "read_many_files"),
        "write": ("write_file",),
        "edit": ("replace",),
        "list": ("list_directory",),
        "search": ("grep_search", "search_file_content", "glob"),
        "web": ("web_fetch", "google_web_search"),
        "agents": ("invoke_agent",),
    },
    ScopeMeans.QWEN: {
        "shell": ("run_shell_command", "monitor"),
        "read": ("read_file", "read_many_files"),
        "write": ("write_file",),
        "edit": ("edit", "notebook_edit"),
        # Of no kind: not for a run that names the tools it may use.
        "other": (
            *("skill", "enter_worktree", "exit_worktree", "cron_create", "cron_delete"),
            *("loop_wakeup", "send_message"),
        ),
        "list": ("list_directory",),
        "search": ("grep_search", "glob"),
        "web": ("web_fetch", "web_search"),
        "agents": ("agent", "task"),
    },
    ScopeMeans.COPILOT: {
        "shell": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
        "read": ("view",),
        "write": ("create",),
        "edit": ("edit", "apply_patch", "str_replace_editor"),
        "search": ("grep", "glob", "rg", "semantic_code_search"),
        "web": ("web_fetch", "web_search"),
        "agents": ("task", "read_agent", "list_agents", "write_agent"),
    },
}
"""The names of each program's tools, by kind (``tool_kinds``)."""
TOOLS[ScopeMeans.KILO] = TOOLS[ScopeMeans.OPENCODE]
_CONFIG: Final = {
    ScopeMeans.OPENCODE: "OPENCODE_CONFIG_CONTENT",
    ScopeMeans.KILO: "KILO_CONFIG_CONTENT",
}

_ASKED_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "execute": ("shell",),
    "read": ("read", "list"),
    "edit": ("edit", "write"),
    "delete": ("edit", "write"),
    "move": ("edit", "write"),
    "search": ("search",),
    "fetch": ("web",),
}
"""The protocol's own kinds of tool calls."""


class Switches(NamedTuple):
    """What keeps one program to its scope from its start."""

    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    files: dict[str, bytes] = {}
    session_meta: dict[str, object] = {}
    """Becomes part of ``_meta`` in ``session/new``."""


def unenforceable(facts: AgentFacts, scope: ToolScope) -> tuple[str, ...]:
    """The tools that nothing keeps this agent from using; empty = the scope holds.

    opencode and Kilo know one permission for editing and writing: who may do one may do the other.
    A tool that is named like none of the program's is refused in an allow list (it would allow
    nothing) and taken in a deny list (there is nothing to deny, or it is one of an MCP server,
    which is denied by its name).
    """
    if facts.scope is ScopeMeans.NONE:
        return tuple(dict.fromkeys((*(scope.tools or ()), *scope.deny)))
    # A rule within a tool, Bash(git:*), is nothing that these programs know.
    found = [tool for tool in (*(scope.tools or ()), *scope.deny) if "(" in tool]
    if facts.scope in _CONFIG and scope.tools is not None:
        half = kinds_of(scope.tools) & WRITING
        found += sorted(WRITING - half) if len(half) == 1 else []
    return tuple(dict.fromkeys(found))


def names_of(scope: ScopeMeans, tools: Iterable[str]) -> tuple[str, ...]:
    """The program's own names for tools named by any program's name, or by a kind."""
    table = TOOLS.get(scope, {})
    found: list[str] = []
    for tool in tools:
        kind = kind_of(tool)
        found += table.get(kind, ()) if kind is not None else ()
        if kind is None:
            found.append(tool)
    return tuple(dict.fromkeys(found))


def server_switches(opening: Opening) -> Switches:
    """What to start the program with for its MCP servers, and to have no others, if it must not."""
    if argument := SERVERS_ARGUMENT.get(opening.options.get("agent")):
        servers = {
            name: {"type": "local", "command": program, "args": args, "tools": ["*"]}
            for name, (program, *args) in opening.servers.items()
        }
        return Switches(argv=(argument, msgspec.json.encode({"mcpServers": servers}).decode()))
    match server_means(opening.options) if opening.are_servers_named else None:
        case ServerMeans.CLAUDE:
            alone = {"settingSources": [], "strictMcpConfig": True}
            return Switches(session_meta={"claudeCode": {"options": alone}})
        case ServerMeans.NAMES:
            return Switches(argv=("--allowed-mcp-server-names", ",".join(opening.servers)))
        case _:
            return Switches()


def switches(
    facts: AgentFacts, scope: ToolScope, *, directory: str, is_near: bool = False
) -> Switches:
    """What to start the program with so that it has no other tools.

    Args:
        facts: The agent.
        scope: The run's scope.
        directory: The attempt's: where ``Switches.files`` will be.
        is_near: It must not leave its working directory.
    """
    if scope.is_open:
        return Switches()
    denied = names_of(facts.scope, scope.deny)
    allowed = None if scope.tools is None else names_of(facts.scope, scope.tools)
    if allowed is not None:
        allowed = tuple(tool for tool in allowed if tool not in denied)
    match facts.scope:
        case ScopeMeans.CLAUDE:
            return _claude(allowed, (*denied, *_served(scope.deny, "mcp__{server}__{tool}")))
        case ScopeMeans.OPENCODE | ScopeMeans.KILO:
            away = ("external_directory",) if is_near else ()
            denied = (*denied, *away, *_served(scope.deny, "{server}_{tool}"))
            return _opencode(_CONFIG[facts.scope], allowed, denied)
        case ScopeMeans.GEMINI:
            denied = (*denied, *_served(scope.deny, "mcp_{server}_{tool}"))
            return _gemini(allowed, denied, directory=directory)
        case ScopeMeans.QWEN:
            return _qwen(allowed, (*denied, *_served(scope.deny, "mcp__{server}__{tool}")))
        case ScopeMeans.COPILOT:
            return _copilot(allowed, (*denied, *_served(scope.deny, "{server}-{tool}")))
        case _:
            return Switches()


def may_use(facts: AgentFacts, scope: ToolScope, *, name: str, kind: str, is_ours: bool) -> bool:
    """The answer to a question for permission.

    Args:
        facts: The agent; what its switches took away it cannot ask for.
        scope: The run's scope.
        name: The tool's, as far as the question names it.
        kind: The protocol's kind of it.
        is_ours: It is a tool of our MCP server: those are allowed unless denied by name.
    """
    if scope.is_open:
        return True
    tool = name.rpartition("__")[2] if is_ours else name
    denied = {each.lower() for each in scope.deny}
    if tool.lower() in denied or name.lower() in denied:
        return False
    if is_ours:
        return True
    kinds = {found} if (found := kind_of(name)) else set(_ASKED_KINDS.get(kind, ()))
    if kinds & kinds_of(scope.deny):
        return False
    if scope.tools is None:
        # Something of no known kind may do what is denied: a script, another agent.
        return bool(kinds) or not scope.deny or facts.scope is not ScopeMeans.ASKS
    is_named = name.lower() in {each.lower() for each in scope.tools}
    return is_named or (bool(kinds) and kinds <= kinds_of(scope.tools))


def _claude(allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> Switches:
    options: dict[str, object] = {}
    if allowed is not None:
        options["tools"] = list(allowed)
    if denied:
        options["disallowedTools"] = list(denied)
    return Switches(session_meta={"claudeCode": {"options": options}})


def _copilot(allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> Switches:
    """The name of a server stands for all of its tools."""
    argv = [] if allowed is None else [f"--available-tools={','.join((*allowed, SERVER))}"]
    return Switches(argv=(*argv, *([f"--excluded-tools={','.join(denied)}"] if denied else ())))


def _opencode(variable: str, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> Switches:
    rules: dict[str, str] = {}
    if allowed is not None:
        # What the user's own configuration allows by name would win over the star.
        rules = {"*": "deny"} | dict.fromkeys(_every(ScopeMeans.OPENCODE), "deny")
        rules |= dict.fromkeys(allowed, "allow") | {f"{SERVER}_*": "allow"}
    rules |= dict.fromkeys(denied, "deny")
    content = msgspec.json.encode({"permission": rules}).decode()
    return Switches(env={variable: content})


def _gemini(
    allowed: tuple[str, ...] | None, denied: tuple[str, ...], *, directory: str
) -> Switches:
    """Its policy engine takes a denied tool away; an MCP tool is named with its server."""
    rules = [_rule("deny", tool, 950) for tool in denied]
    argv = ["--admin-policy", f"{directory}/{POLICY}"]
    if allowed is not None:
        rules += [_rule("allow", tool, 900) for tool in allowed]
        rules += [_rule("allow", "*", 900) + 'mcpName = "*"\n', _rule("deny", "*", 800)]
        argv += ["--allowed-mcp-server-names", SERVER]
    return Switches(argv=tuple(argv), files={POLICY: "\n".join(rules).encode()})


def _rule(decision: str, tool: str, priority: int) -> str:
    name = msgspec.json.encode(tool).decode()
    return f'[[rule]]\ntoolName = {name}\ndecision = "{decision}"\npriority = {priority}\n'


def _qwen(allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> Switches:
    argv: list[str] = []
    if allowed is not None:
        # The list of core tools does not cover those that start agents.
        rest = (tool for tool in _every(ScopeMeans.QWEN) if tool not in allowed)
        denied = tuple(dict.fromkeys((*denied, *rest)))
        argv += ["--core-tools", ",".join(allowed) or "none"]
    if denied:
        argv += ["--exclude-tools", ",".join(denied)]
    return Switches(argv=tuple(argv))


def _every(scope: ScopeMeans) -> tuple[str, ...]:
    return tuple(name for names in TOOLS[scope].values() for name in names)


def _served(deny: Iterable[str], form: str) -> tuple[str, ...]:
    """Denied names that are no program's own may be tools of ours."""
    return tuple(form.format(server=SERVER, tool=tool) for tool in deny if kind_of(tool) is None)
