"""A tool that some program used, in the shape all runtimes share, and the line a person reads.

Programs name the same things differently: ``command`` or ``cmd``, ``file_path`` or ``path``,
``todos`` or ``plan``. What is known of them is in the tables here; a tool that is in none still has
its name, its input and how it ended.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final

import msgspec

from subagents.domain.run.worker_output import OUTPUT_CHARS_MAX, PlanItem, PlanStatus, ToolUse
from subagents.runtimes.output.counts import COUNT_MAX, as_count
from subagents.runtimes.output.terminal_text import plain
from subagents.text import cut_middle, one_line

SHORT_CHARS_MAX: Final = 200
"""The longest input, and the longest summary of a result, in a line."""
COMMAND_CHARS_MAX: Final = 4_000
"""The longest command line, and the longest of the other texts that detectors see."""
PLAN_ITEMS_MAX: Final = 100
INPUT_CHARS_MAX: Final = 8 * SHORT_CHARS_MAX
"""Looked at to make the short input."""
MINUTE_MS: Final = 60_000

_SHELL: Final = re.compile(
    r"bash|shell|terminal|exec|command|(?:^|_)(?:sh|zsh|run)(?:_|$)", re.IGNORECASE
)
_OF_LINE: Final = re.compile("((/usr(/local)?|/opt/homebrew)?/bin/)?(ba|da|fi|k|z)?sh -[a-z]*c")
_PLAN: Final = re.compile(r"todo|plan", re.IGNORECASE)
_AGENT: Final = frozenset({"task", "agent", "dispatch_agent", "spawn_agent"})

_COMMAND_KEYS: Final = ("command", "cmd")
_PATH_KEYS: Final = ("file_path", "filePath", "notebook_path", "path", "filename")
_PLAN_KEYS: Final = ("todos", "plan", "items")
_STEP_KEYS: Final = ("content", "text", "step", "title")
_TEAM_KEYS: Final = ("team", "team_name", "teamName")
_INPUT_KEYS: Final = (
    *("description", "query", "pattern", "url", "prompt", "question", "message", "text"),
)
"""The first of these says best what a tool was asked."""
_STATUS: Final[Mapping[str, PlanStatus]] = {
    "pending": PlanStatus.PENDING,
    "in_progress": PlanStatus.IN_PROGRESS,
    "active": PlanStatus.IN_PROGRESS,
    "completed": PlanStatus.COMPLETED,
    "done": PlanStatus.COMPLETED,
}


def tool_use(
    name: str,
    *,
    given: object = None,
    returned: object = None,
    call_id: object = None,
    is_end: bool = True,
    exit_code: object = None,
    is_error: object = None,
    duration_ms: object = None,
) -> ToolUse:
    """What is known of one use of a tool.

    Fields whose values are of no use (a text where a number belongs) are taken for absent: a
    program that describes its tools badly still used them.

    Args:
        name: As the program calls it.
        given: Its input: JSON as text or decoded, or plain text.
        returned: Its output: text, a list of MCP content blocks, or other JSON.
        call_id: Joins begin and end.
        is_end: False = it began.
        exit_code: Of a shell tool.
        is_error: Whether it failed; a non-zero exit code says so as well.
        duration_ms: How long it took.
    """
    found = _decoded(given)
    fields = found if isinstance(found, dict) else {}
    code = as_count(exit_code, least=-COUNT_MAX)
    is_agent = name.lower() in _AGENT
    plan = _plan(fields) if _PLAN.search(name) else None
    command = _command(found) if plan is None and _SHELL.search(name) else None
    path = None if command is not None else _first_text(fields, _PATH_KEYS)
    return ToolUse(
        name=_one_line(name, SHORT_CHARS_MAX) or "tool",
        call_id=_id(call_id),
        is_end=is_end,
        input=_short_input(found, command=command, path=path, plan=plan),
        command=command,
        path=path,
        plan=plan,
        agents=_agents(fields) if is_agent else 0,
        team=_first_text(fields, _TEAM_KEYS) if is_agent else None,
        exit_code=code,
        is_error=is_error is True or code not in {None, 0},
        output=cut_middle(plain(_text_of(returned)), OUTPUT_CHARS_MAX),
        duration_ms=as_count(duration_ms),
    )


def tool_line(tool: ToolUse) -> str:
    """``✅ Bash (2.1s)``, then what it was asked, then the end of what came out.

    A tool that began says ``▶ Bash``: so one that never ends can be seen.
    """
    if not tool.is_end:
        return "\n".join(filter(None, (f"▶ {tool.name}", tool.input)))
    facts = [] if tool.duration_ms is None else [_seconds(tool.duration_ms)]
    if tool.exit_code:
        facts.append(f"exit {tool.exit_code}")
    shown = f" ({', '.join(facts)})" if facts else ""
    mark = "❌" if tool.is_error else "✅"
    summary = _last_line(tool.output)
    return "\n".join(
        filter(None, (f"{mark} {tool.name}{shown}", tool.input, summary and f"→ {summary}"))
    )


def _seconds(milliseconds: int) -> str:
    if milliseconds < MINUTE_MS:
        return f"{milliseconds / 1000:.1f}s"
    minutes, rest_ms = divmod(milliseconds, MINUTE_MS)
    return f"{minutes}m {rest_ms // 1000}s"


def _decoded(given: object) -> object:
    """Some programs hand the arguments over as JSON in a text."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            found = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return given
        return found if isinstance(found, dict) else given
    return given


def _command(given: object) -> str | None:
    found = given
    if isinstance(given, dict):
        found = next((given[key] for key in _COMMAND_KEYS if given.get(key)), None)
    if isinstance(found, list) and found and all(isinstance(word, str) for word in found):
        # ["bash", "-lc", "the line"]: the line is what was run. It may be allowed from now on, so
        # no other program stands for a shell.
        is_line = len(found) == 3 and _OF_LINE.fullmatch(f"{found[0]} {found[1]}")
        found = found[2] if is_line else shlex.join(found)
    if not isinstance(found, str) or not found.strip():
        return None
    return cut_middle(found, COMMAND_CHARS_MAX)


def _plan(fields: Mapping[str, object]) -> tuple[PlanItem, ...] | None:
    listed = next((fields[key] for key in _PLAN_KEYS if isinstance(fields.get(key), list)), None)
    if not isinstance(listed, list):
        return None
    items = []
    for each in listed[:PLAN_ITEMS_MAX]:
        text = _first_text(each, _STEP_KEYS) if isinstance(each, dict) else each
        if isinstance(text, str) and text.strip():
            status = str(each.get("status")) if isinstance(each, dict) else ""
            known = _STATUS.get(status.lower().replace("-", "_"), PlanStatus.PENDING)
            items.append(PlanItem(text=_one_line(text, SHORT_CHARS_MAX), status=known))
    return tuple(items)


def _agents(fields: Mapping[str, object]) -> int:
    """A call starts one, unless it says how many or names them."""
    named = fields.get("agents")
    if isinstance(named, list) and named:
        return len(named)
    return as_count(named, least=1) or 1


def _short_input(
    given: object, *, command: str | None, path: str | None, plan: tuple[PlanItem, ...] | None
) -> str:
    if plan is not None:
        return _one_line(_plan_state(plan), SHORT_CHARS_MAX)
    chosen = command or path
    if chosen is None and isinstance(given, dict):
        chosen = _first_text(given, _INPUT_KEYS)
    return _one_line(_text_of(given) if chosen is None else chosen, SHORT_CHARS_MAX)


def _plan_state(plan: tuple[PlanItem, ...]) -> str:
    done = sum(item.status is PlanStatus.COMPLETED for item in plan)
    now = next((item.text for item in plan if item.status is PlanStatus.IN_PROGRESS), "")
    return f"{done}/{len(plan)} done" + (f", now: {now}" if now else "")


def _first_text(fields: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        found = fields.get(key)
        if isinstance(found, str) and found.strip():
            return cut_middle(found, COMMAND_CHARS_MAX)
    return None


def _text_of(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list() if value and all(isinstance(each, dict) and "text" in each for each in value):
            return "\n".join(str(each["text"]) for each in value)
        case dict() if not value:
            return ""
        case _:
            return msgspec.json.encode(value).decode("utf-8", "replace")


def _last_line(text: str) -> str:
    end = text[-INPUT_CHARS_MAX:].rstrip()
    return _one_line(end.rpartition("\n")[2], SHORT_CHARS_MAX)


def _one_line(text: str, chars_max: int) -> str:
    return one_line(plain(text[:INPUT_CHARS_MAX]), chars_max)


def _id(value: object) -> str | None:
    if isinstance(value, str) and value:
        return value[:SHORT_CHARS_MAX]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
