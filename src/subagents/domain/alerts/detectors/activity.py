"""What a worker is at, in a few words: ``editing src/bridge.py``, ``running npm test``.

The tools' names are those of Claude Code, Codex, Gemini CLI and opencode; one that is not known is
named.
"""

from collections.abc import Sequence
from typing import Final

from subagents.domain.alerts.detectors.alert_wording import shown, shown_path
from subagents.domain.alerts.detectors.shell import steps_of
from subagents.domain.run.worker_output import LineType, OutputItem, ToolUse
from subagents.text import cut, cut_start

ACTIVITY_CHARS_MAX: Final = 80
_WORDS_CHARS: Final = 48
"""The most that is shown of a text or thought."""
_COMMAND_CHARS: Final = 60

_VERBS: Final = {
    "editing": (
        *("edit", "multiedit", "write", "notebookedit", "replace", "write_file", "edit_file"),
        *("apply_patch", "applypatch", "patch", "file_change", "filechange", "create_file"),
        *("str_replace", "str_replace_editor", "str_replace_based_edit_tool", "delete", "move"),
    ),
    "reading": (
        *("read", "read_file", "read_many_files", "notebookread", "view", "view_image", "open"),
        *("webfetch", "web_fetch", "fetch", "read_resource", "read_mcp_resource"),
    ),
    "searching": (
        *("grep", "glob", "ls", "list", "list_dir", "list_directory", "search", "find", "rg"),
        *("search_file_content", "grep_search", "codebase_search", "file_search", "codesearch"),
        *("websearch", "web_search", "google_web_search", "toolsearch", "tool_search"),
    ),
    "planning": (
        *("todowrite", "todo_write", "write_todos", "update_plan", "todo_list", "todoread"),
        *("exitplanmode", "exit_plan_mode", "taskcreate", "taskupdate", "tasklist", "taskget"),
    ),
    "waiting": ("bashoutput", "write_stdin", "wait", "sleep", "taskoutput", "task_output"),
}
_VERB_OF: Final = {name: verb for verb, names in _VERBS.items() for name in names}
_SETTING_UP: Final = frozenset(
    {"cd", "pushd", "popd", "export", "set", "source", ".", "unset", "mkdir", "echo", "true"}
)
"""Commands that are not what a line is for."""
_FILE_VERBS: Final = ("editing ", "reading ")


def activity_of(items: Sequence[OutputItem]) -> str | None:
    """What the worker is at, by the newest piece that shows it; None = none does."""
    for each in reversed(items):
        if each.tool is not None:
            return _at_tool(each.tool)
        if each.type is LineType.THINKING:
            return "thinking"
        if each.type is LineType.TEXT and each.text and (words := shown(each.text, _WORDS_CHARS)):
            return f"writing: {words}"
    return None


def briefly(activity: str) -> str:
    """The activity for an alert, with a file's name alone."""
    for verb in _FILE_VERBS:
        if activity.startswith(verb):
            return verb + activity.removeprefix(verb).rstrip("/").rpartition("/")[2]
    return activity


def _at_tool(tool: ToolUse) -> str:
    name = tool.name.lower()
    if tool.command is not None:
        return f"running {_command(tool.command)}"
    if tool.plan is not None:
        return "planning"
    if tool.agents:
        whom = "a sub-agent" if tool.agents == 1 else f"{tool.agents} sub-agents"
        return f"starting {whom}"
    verb = _VERB_OF.get(name)
    if verb is None:
        return cut(f"using {shown(tool.name)}", ACTIVITY_CHARS_MAX)
    what = shown_path(tool.path) if tool.path else shown(tool.input, _WORDS_CHARS)
    if verb in {"planning", "waiting"} or not what:
        return verb
    if verb == "searching":
        return cut(f"searching {what if tool.path is None else f'in {what}'}", ACTIVITY_CHARS_MAX)
    most = ACTIVITY_CHARS_MAX - len(verb) - 1
    return f"{verb} {cut_start(what, most)}"


def _command(line: str) -> str:
    """The first command that does something."""
    for step in steps_of(line):
        if step.words[0] not in _SETTING_UP:
            return shown(" ".join(step.words), _COMMAND_CHARS)
    return shown(line, _COMMAND_CHARS)
