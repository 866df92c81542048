"""What tools of different programs do, so that a deny of one name holds under every other name.

Programs name the same ability differently, and rename it: a deny list that says ``Task`` must hold
where the tool is called ``Agent``, and a ``Bash`` that was denied to a run must not come back as
``exec_command`` in a child that another program works for. A name stands for its kind; a kind can
be named itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from subagents.domain.run.spec import Resolved

REPORT_TOOL: Final = "report_completion"
"""The tool that every worker may use: by it the worker says what became of its task."""

KINDS: Final[Mapping[str, frozenset[str]]] = {
    "shell": frozenset(
        {
            *("bash", "bashoutput", "killshell", "killbash", "monitor", "shell", "exec"),
            *("exec_command", "write_stdin", "unified_exec", "run_shell_command", "terminal"),
            *("local_shell", "developer__shell", "execute", "powershell"),
        }
    ),
    "read": frozenset({"read", "read_file", "read_many_files", "view", "notebookread"}),
    "write": frozenset({"write", "write_file", "create_file"}),
    "edit": frozenset(
        {
            *("edit", "multiedit", "notebookedit", "replace", "apply_patch", "str_replace"),
            *("patch", "edit_file", "developer__text_editor", "text_editor"),
        }
    ),
    "list": frozenset({"list", "ls", "list_directory"}),
    "search": frozenset({"grep", "glob", "search_file_content", "codesearch", "ripgrep"}),
    "web": frozenset(
        {
            *("webfetch", "websearch", "web_fetch", "web_search", "google_web_search", "fetch"),
            *("browser",),
        }
    ),
    "agents": frozenset({"task", "agent", "spawn_agent", "dispatch_agent", "multi_agent"}),
}
"""Lower-case names by kind; a name is of one kind at most."""

WRITING: Final = frozenset({"edit", "write"})
HARMLESS: Final = frozenset({"read", "list", "search", "web"})
"""The kinds of tools that change no file."""

_KIND_OF: Final = {name: kind for kind, names in KINDS.items() for name in (kind, *names)}


def kind_of(tool: str) -> str | None:
    """The kind of a tool or the kind itself; None for a name that is in no table.

    ``Bash(git:*)`` is of the kind of ``Bash``.
    """
    # The names of an MCP server's tools are in no table: what they do is not known from outside.
    return _KIND_OF.get(tool.partition("(")[0].strip().lower())


def kinds_of(tools: Iterable[str]) -> frozenset[str]:
    """The kinds of all tools that have one."""
    return frozenset(kind for kind in map(kind_of, tools) if kind is not None)


def intersection(
    mine: tuple[str, ...] | None, above: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """The tools that both lists allow, under the names that say less; None = all.

    The name of a kind stands for all of its tools: ``read`` and ``("Read", "Bash")`` have ``Read``.
    """
    if mine is None or above is None:
        return above if mine is None else mine
    found: list[str] = []
    for tool in mine:
        narrower = [each for each in above if kind_of(each) == tool]
        found += [tool] if covers(above, tool) else narrower
    return tuple(dict.fromkeys(found))


def covers(scope: Iterable[str], tool: str) -> bool:
    """Whether the scope names the tool, or its whole kind."""
    return any(each in {tool, kind_of(tool)} for each in scope)


# A child's tools are the intersection of what its agent has and what its requester may use. Across
# programs names do not match, so what is handed down are kinds.
def abroad(tools: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The same scope for another program, whose tools have other names: kinds in place of tools.

    A rule within a tool, ``Bash(git:*)``, means nothing to another program and allows nothing. A
    name of no kind stays: the tool of an MCP server is called the same everywhere.
    """
    if tools is None:
        return None
    whole = (tool for tool in tools if "(" not in tool)
    return tuple(dict.fromkeys(kind_of(tool) or tool for tool in whole))


def offers(resolved: Resolved, tool: str) -> bool:
    """Whether a run's worker may use that tool of ours.

    They are not its program's, so a list of tools does not name them; an empty one means none.
    """
    if tool == REPORT_TOOL:
        return True
    return resolved.effective_tools != () and tool not in resolved.tools_deny


class ToolScope(NamedTuple):
    """What a run's worker is kept to, of its program's own tools."""

    tools: tuple[str, ...] | None = None
    """The only ones; None = all."""
    deny: tuple[str, ...] = ()
    """Not these, whatever else."""

    @property
    def is_open(self) -> bool:
        """Nothing is kept from it."""
        return self.tools is None and not self.deny

    def has(self, kind: str) -> bool:
        """Whether it may use tools of this kind."""
        if kind in kinds_of(self.deny):
            return False
        return self.tools is None or kind in kinds_of(self.tools)

    @property
    def may_write(self) -> bool:
        """Whether it may change files with its program's tools."""
        # Edit and write can both replace a file, so a deny of one is meant for both.
        if kinds_of(self.deny) & WRITING:
            return False
        return self.tools is None or bool(kinds_of(self.tools) & WRITING)
