"""What a Codex worker is started with: where it works, its sandbox, tools, instructions; pure.

Nothing is written into the user's own configuration: all of it holds for one thread. Codex would
write there by itself that the working directory is trusted, were it not set for the thread.

What keeps a worker to its tool scope was tried against Codex 0.169. The shell, the web search, its
sub-agents, pictures and every MCP server can be taken away: the model then never sees them.
``apply_patch`` comes with the model and cannot; without it the sandbox is ``read-only``, in which
it, and a shell, write nothing.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import msgspec

from subagents.domain.rules.tool_kinds import WRITING, ToolScope, kind_of, kinds_of
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.values import Value, replace
from subagents.errors import Forbidden
from subagents.extensions.codex.codex_options import (
    CodexOptions,
    Sandbox,
    nested,
)
from subagents.extensions.conversation.dialect import SERVER, Opening
from subagents.extensions.conversation.json_fields import merged, table_at, text_at

TOOL_TIMEOUT_S: Final = 7 * 86_400
"""A wait for children may take days; Codex gives a call up after 300 s by itself."""
START_TIMEOUT_S: Final = 60
_DEFAULTS: Final[Mapping[str, object]] = {
    "features": {
        # With a goal Codex begins further turns by itself: the end of a turn would be none.
        "goals": False,
        # It would wait for a network that is away for ever, and report no failure.
        "unbounded_connection_retries": False,
        # Else models with a search tool, or that write code for their calls, do not see our tools.
        "code_mode": {"direct_only_tool_namespaces": [f"mcp__{SERVER}"]},
    },
    # Nobody is there; whoever wants to know something asks its requester.
    "tools": {"experimental_request_user_input": {"enabled": False}},
}
_ENFORCED: Final[Mapping[str, object]] = {
    # A snapshot is a file of Codex's with every variable of the shell, the worker's token as well.
    "features": {"shell_snapshot": False},
}

MCP: Final = "mcp__"
GUARDRAIL: Final = "tools"

_READING: Final = frozenset({"read", "list", "search"})
"""What Codex does with its shell: it has no tools of its own for it."""
_OFF: Final[Mapping[str, Mapping[str, object]]] = {
    "view_image": {"features": {"view_image": False}},
    "image_generation": {"features": {"image_generation": False}},
    "update_plan": {"tools": {"update_plan": {"enabled": False}}},
    "sleep": {"features": {"sleep_tool": False}},
    "computer_use": {"features": {"computer_use": False}},
    "tool_suggest": {"features": {"tool_suggest": False}},
}
"""Tools of no kind that can be switched off by name."""
_ALWAYS: Final = frozenset(
    {
        *("tool_search", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
        *("curr_time", "clock__curr_time", "wait"),
    }
)
"""They come with Codex, and nothing switches them off."""
_PLUGINS: Final[Mapping[str, object]] = {
    "features": {"apps": False, "plugins": False, "remote_plugin": False, "tool_suggest": False}
}
"""What brings tools whose names nobody here knows."""
_BROWSER: Final[Mapping[str, object]] = {
    "web_search": "disabled",
    "features": {"browser_use": False, "browser_use_external": False, "in_app_browser": False},
}
_AGENTS: Final[Mapping[str, object]] = {
    "features": {"multi_agent": False, "multi_agent_v2": False},
    "agents": {"enabled": False},
}
_SHELL: Final[Mapping[str, object]] = {"features": {"shell_tool": False, "unified_exec": False}}


class UserConfig(Value, frozen=True):
    """What the user configured for Codex, as far as a worker's start depends on it."""

    servers: tuple[str, ...] = ()
    """Names of MCP servers."""
    trust: dict[str, str] = {}
    """Directory → ``trusted`` or ``untrusted``."""
    instructions: str = ""
    """``developer_instructions``."""


def user_config(result: object) -> UserConfig:
    """What ``config/read`` answered."""
    config = table_at(result, "config")
    projects = table_at(config, "projects")
    levels = {path: text_at(each, "trust_level") for path, each in projects.items()}
    return UserConfig(
        servers=tuple(table_at(config, "mcp_servers")),
        trust={path: level for path, level in levels.items() if level},
        instructions=text_at(config, "developer_instructions"),
    )


_SANDBOXES: Final[Mapping[AccessLevel, Sandbox]] = {
    AccessLevel.READ: "read-only",
    AccessLevel.WRITE: "workspace-write",
    AccessLevel.FULL: "danger-full-access",
}
_LEVELS: Final[Mapping[str, AccessLevel]] = {word: level for level, word in _SANDBOXES.items()}


def access_of(options: CodexOptions, configured: AccessLevel | None) -> AccessLevel:
    """What a worker may do at most: the narrower one of ``access`` and ``sandbox``."""
    if options.sandbox is None:
        return configured or AccessLevel.WRITE
    own = _LEVELS[options.sandbox]
    return own if configured is None else min(own, configured, key=lambda level: level.rank)


def kept(options: CodexOptions, access: Access) -> Access | None:
    """What Codex's sandbox keeps of that access; None = there is none to keep the network away."""
    if access.level is AccessLevel.FULL:
        return None
    is_on = access.level is AccessLevel.WRITE and options.network is not False
    return replace(access, network=access.network and is_on)


def asks(opening: Opening, options: CodexOptions) -> bool:
    """Whether it works in its sandbox and asks for more: only where it may have all."""
    access, scope = opening.access, ToolScope(opening.tools, opening.tools_deny)
    # Its sandbox alone keeps it from writing: who says yes to a question takes it off.
    may_have = scope.may_write and (access is None or access.level is AccessLevel.FULL)
    return options.ask and may_have


def sandbox_of(opening: Opening, options: CodexOptions) -> Sandbox:
    """The sandbox of a worker; without an access it is of a run from before there was one."""
    if not ToolScope(opening.tools, opening.tools_deny).may_write:
        return "read-only"
    if asks(opening, options):
        return "workspace-write"
    if opening.access is None:
        return options.sandbox or "workspace-write"
    return _SANDBOXES[opening.access.level]


def thread_params(opening: Opening, options: CodexOptions, known: UserConfig) -> dict[str, object]:
    """The parameters of ``thread/start``, or of ``thread/resume`` when there is a session."""
    scope = ToolScope(opening.tools, opening.tools_deny)
    instructions = "\n\n".join(filter(None, (known.instructions, opening.system_prompt)))
    params: dict[str, object] = {
        "cwd": opening.cwd,
        "approvalPolicy": "on-request" if asks(opening, options) else "never",
        "sandbox": sandbox_of(opening, options),
        "config": _config(opening, options, known, scope),
    }
    if instructions:
        params["developerInstructions"] = instructions
    if opening.model is not None:
        params["model"] = opening.model
    if opening.session_id is not None:
        params |= {"threadId": opening.session_id, "excludeTurns": True}
    return params


def turn_params(opening: Opening, thread_id: str) -> dict[str, object]:
    """The parameters of ``turn/start``."""
    params: dict[str, object] = {"threadId": thread_id, "input": text_input(opening.message)}
    if opening.thinking is not None:
        params["effort"] = opening.thinking
    return params


def text_input(message: str) -> list[dict[str, str]]:
    """A message as Codex takes it."""
    return [{"type": "text", "text": message}]


def override(key: str, value: str) -> tuple[str, str]:
    """The arguments that set a key for a whole process; ``value`` is no secret."""
    return "-c", f"{key}={msgspec.json.encode(value).decode()}"


def _config(
    opening: Opening, options: CodexOptions, known: UserConfig, scope: ToolScope
) -> dict[str, object]:
    table = merged(merged(_DEFAULTS, nested(options.config)), _ENFORCED)
    table = merged(table, {"projects": _trust(opening.cwd, options, known)})
    access = opening.access
    if sandbox_of(opening, options) == "workspace-write":
        table = merged(table, {"sandbox_workspace_write": _workspace(opening.cwd, options)})
    if access is not None and not access.network:
        offline = {"web_search": "disabled", "sandbox_workspace_write": {"network_access": False}}
        table = merged(table, offline)
    # What Codex has under that name is merged with ours: a command with a URL is neither.
    names = {n: f"{n}_2" if n != SERVER and n in known.servers else n for n in opening.servers}
    servers = {names[name]: _server(*argv) for name, argv in opening.servers.items()}
    table = merged(table, {"mcp_servers": servers})
    if opening.are_servers_named:
        others = {name: {"enabled": False} for name in known.servers if name not in servers}
        table = merged(merged(table, _PLUGINS), {"mcp_servers": others})
    return merged(
        table,
        scoped(scope, {name: name for name in known.servers} | {a: n for n, a in names.items()}),
    )


def _server(program: str, *arguments: str) -> dict[str, object]:
    return {
        "command": program,
        "args": list(arguments),
        "default_tools_approval_mode": "approve",
        "required": True,
        "startup_timeout_sec": START_TIMEOUT_S,
        "tool_timeout_sec": TOOL_TIMEOUT_S,
    }


def _workspace(cwd: str, options: CodexOptions) -> dict[str, object]:
    found: dict[str, object] = {}
    if options.network is not None:
        found["network_access"] = options.network
    if options.writable:
        found["writable_roots"] = [str(PurePosixPath(cwd, each)) for each in options.writable]
    return found


def _trust(cwd: str, options: CodexOptions, known: UserConfig) -> dict[str, object]:
    """The user's trust of the directory, or of the nearest one above it; else untrusted."""
    here = PurePosixPath(cwd)
    level = next(
        (known.trust[str(place)] for place in (here, *here.parents) if str(place) in known.trust),
        "untrusted",
    )
    if options.trust_project is not None:
        level = "trusted" if options.trust_project else "untrusted"
    return {cwd: {"trust_level": level}}


# -- tool scope ------------------------------------------------------------------------------------


def check_scope(
    options: CodexOptions, tools: tuple[str, ...] | None, deny: tuple[str, ...]
) -> None:
    """Refuse what nothing can keep Codex from.

    Raises:
        Forbidden: Names the tools, and what can be done.
    """
    scope = ToolScope(tools, deny)
    reading = [tool for tool in deny if kind_of(tool) in _READING]
    if reading and scope.has("shell"):
        raise _refused(
            reading,
            "Codex reads, lists and searches files with its shell",
            "deny exec_command as well",
        )
    always = [tool for tool in deny if tool.lower() in _ALWAYS]
    if always:
        raise _refused(always, "nothing switches them off in Codex", "leave them out of the scope")
    if not scope.may_write and options.sandbox == "danger-full-access":
        raise _refused(
            [tool for tool in deny if kind_of(tool) in WRITING] or ["apply_patch"],
            "Codex keeps from writing by its sandbox alone, and this agent has none "
            '(sandbox = "danger-full-access")',
            'set sandbox = "workspace-write" in runtime_options; it becomes read-only then',
        )


def scoped(scope: ToolScope, servers: Mapping[str, str]) -> dict[str, object]:
    """The keys of Codex's configuration that keep a worker to its scope.

    Args:
        scope: What it may use.
        servers: The MCP servers there are, those of the user and ours: the name that each has with
            Codex, and the one that a scope has for it.
    """
    if scope.is_open:
        return {}
    table: dict[str, object] = {}
    for kind, off in (("shell", _SHELL), ("web", _BROWSER), ("agents", _AGENTS)):
        if not scope.has(kind):
            table = merged(table, off)
    for name, off in _OFF.items():
        if not _may_use(scope, name):
            table = merged(table, off)
    if not scope.has("read") and not scope.has("shell"):
        table = merged(table, _OFF["view_image"])
    if scope.tools is not None or any(tool.startswith(MCP) for tool in scope.deny):
        table = merged(table, _PLUGINS)
    limits = {key: _limits(scope, name) for key, name in servers.items()}
    return merged(table, {"mcp_servers": {name: limit for name, limit in limits.items() if limit}})


def _may_use(scope: ToolScope, name: str) -> bool:
    if name in scope.deny:
        return False
    if scope.tools is None:
        return True
    # A picture is read: whoever may read, or run commands, may look at one.
    return name in scope.tools or (name == "view_image" and bool(kinds_of(scope.tools) & _READING))


def _limits(scope: ToolScope, server: str) -> dict[str, object]:
    """Of one MCP server: ``mcp__SERVER`` names all its tools, ``mcp__SERVER__TOOL`` one."""
    whole, prefix = f"{MCP}{server}", f"{MCP}{server}__"
    if whole in scope.deny or f"{prefix}*" in scope.deny:
        return {"enabled": False}
    limits: dict[str, object] = {}
    denied = [tool.removeprefix(prefix) for tool in scope.deny if tool.startswith(prefix)]
    if denied:
        limits["disabled_tools"] = denied
    if scope.tools is None or server == SERVER:
        return limits  # our own tools are the worker's right; its token says which
    if whole not in scope.tools and f"{prefix}*" not in scope.tools:
        named = [tool.removeprefix(prefix) for tool in scope.tools if tool.startswith(prefix)]
        if not named:
            return {"enabled": False}
        limits["enabled_tools"] = named
    return limits


def _refused(tools: list[str], why: str, hint: str) -> Forbidden:
    return Forbidden(
        f'runtime "codex" cannot keep a worker from {", ".join(tools)}: {why}',
        guardrail=GUARDRAIL,
        hint=hint,
    )
