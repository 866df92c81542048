"""What a Codex worker may use of Codex's own tools, and the configuration that keeps it to that.

All of it was tried against Codex 0.169. The shell, the web search, its sub-agents, pictures and
every MCP server can be taken away: the model then never sees them. ``apply_patch`` comes with the
model and cannot; without it the sandbox is ``read-only``, in which it, and a shell, write nothing.

Source: 2-lifecycle §8.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from subagents.errors import Forbidden
from subagents.runtimes.codex.codex_options import SERVER, Options, merged
from subagents.runtimes.output.tool_kinds import kind_of, kinds_of

MCP: Final = "mcp__"
GUARDRAIL: Final = "tools"

_LOOKS: Final = frozenset({"read", "list", "search"})
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
_GONE: Final = frozenset({"request_user_input", "create_goal", "get_goal", "update_goal"})
"""No worker ever has these (``codex_config``)."""
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
    "features": {"multi_agent": False},
    "agents": {"enabled": False},
}
_SHELL: Final[Mapping[str, object]] = {"features": {"shell_tool": False, "unified_exec": False}}


class Scope(NamedTuple):
    """What a worker is kept to."""

    tools: tuple[str, ...] | None
    deny: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        return self.tools is None and not self.deny

    def has(self, kind: str) -> bool:
        """Whether it may use tools of this kind."""
        if kind in kinds_of(self.deny):
            return False
        return self.tools is None or kind in kinds_of(self.tools)

    @property
    def may_write(self) -> bool:
        """Whether it may change files with tools of its own."""
        denied = kinds_of(self.deny)
        if denied & {"edit", "write"}:
            return False
        return self.tools is None or bool(kinds_of(self.tools) & {"edit", "write"})


def check_scope(options: Options, tools: tuple[str, ...] | None, deny: tuple[str, ...]) -> None:
    """Refuse what nothing can keep Codex from.

    Raises:
        Forbidden: Names the tools, and what can be done.
    """
    scope = Scope(tools, deny)
    looks = [tool for tool in deny if kind_of(tool) in _LOOKS]
    if looks and scope.has("shell"):
        raise _refused(
            looks,
            "Codex reads, lists and searches files with its shell",
            "deny exec_command as well",
        )
    always = [tool for tool in deny if tool.lower() in _ALWAYS]
    if always:
        raise _refused(always, "nothing switches them off in Codex", "leave them out of the scope")
    if not scope.may_write and options.sandbox == "danger-full-access":
        raise _refused(
            [tool for tool in deny if kind_of(tool) in {"edit", "write"}] or ["apply_patch"],
            "Codex keeps from writing by its sandbox alone, and this agent has none "
            '(sandbox = "danger-full-access")',
            'set sandbox = "workspace-write" in runtime_options; it becomes read-only then',
        )


def scoped(scope: Scope, servers: Iterable[str]) -> dict[str, object]:
    """The keys of Codex's configuration that keep a worker to its scope.

    Args:
        scope: What it may use.
        servers: Names of the MCP servers there are: those of the user, and ours.
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
    limits = {name: _limits(scope, name) for name in servers}
    return merged(table, {"mcp_servers": {name: limit for name, limit in limits.items() if limit}})


def _may_use(scope: Scope, name: str) -> bool:
    if name in scope.deny:
        return False
    if scope.tools is None:
        return True
    # A picture is read: whoever may read, or run commands, may look at one.
    return name in scope.tools or (name == "view_image" and bool(kinds_of(scope.tools) & _LOOKS))


def _limits(scope: Scope, server: str) -> dict[str, object]:
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
