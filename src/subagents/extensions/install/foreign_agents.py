"""Agents as other programs define them, in the words of ``subagents.toml``; pure.

They are read as leniently as those programs read them: one file that is no agent, or one line that
is no YAML, concerns no other. What has no equal here, what was changed and what was left out is
listed, never dropped in silence and never guessed.

Sources: https://code.claude.com/docs/en/sub-agents (frontmatter of ``.claude/agents/*.md``) and
https://docs.openclaw.ai/gateway/configuration-reference (``agents`` of ``openclaw.json``).
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple

from subagents.config import keys
from subagents.config.files import documents
from subagents.config.files.documents import BadDocument
from subagents.config.settings import NAME_PATTERN, CostTier
from subagents.errors import UsageError
from subagents.text import cut, harmless, one_line

Table = dict[str, object]

INSTRUCTIONS_CHARS_MAX: Final = 32_768
DESCRIPTION_CHARS_MAX: Final = 4_000
FRONTMATTER_CHARS_MAX: Final = 64 * 1024
FRONTMATTER_VALUES_MAX: Final = 1_000
_FRONTMATTER: Final = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE
)
_KEY: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*))?$")
_BLOCK: Final = re.compile(r"[>|][+-]?$")
_PERMISSION_MODES: Final = ("dontAsk", "acceptEdits", "auto", "plan")
_CLAUDE_TEXTS: Final = {"description": "description", "model": "model", "effort": "thinking"}
_CLAUDE_KEYS: Final = frozenset(
    {"name", "tools", "disallowedTools", "permissionMode", "maxTurns", "skills", "mcpServers"}
    | {"hooks", "memory", "background", "isolation", "color", "initialPrompt", *_CLAUDE_TEXTS}
)
_NOT_OF_AGENTS: Final = frozenset({"allowed-tools", "argument-hint"})
"""Keys of skills and commands, which are written in the same way and may stand next to agents."""
_WAYS_OUT: Final = {
    "disallowedTools": "name the others in `tools`, or deny them at a spawn (--deny-tool)",
    "isolation": "it is of a run here (--isolation worktree)",
}
_DEFAULTS: Final = {
    "maxSpawnDepth": "max_spawn_depth",
    "maxChildrenPerAgent": "max_children_per_agent",
    "maxConcurrent": "max_concurrent",
    "archiveAfterMinutes": "archive_after_minutes",
    "runTimeoutSeconds": "run_timeout_seconds",
    "announceTimeoutMs": "announce_timeout_ms",
}
_TAKEN: Final = frozenset({"defaults"})
"""Names below ``agents`` that are no agents."""
_NARROWING: Final = frozenset({"tools", "access", "subagents"})
"""Keys without which an agent could do more than was written."""


class Imported(NamedTuple):
    """What files say in our words."""

    agents: dict[str, Table]
    """The tables ``[agents.<id>]`` by id, each with keys as the configuration takes them."""
    defaults: Table
    """The keys of ``[agents.defaults.subagents]``."""
    unmapped: list[str]
    """What has no equal here: a line each, with its place and the way out where there is one."""
    changed: list[str]
    """What is not as it was written: a line each, with the agent and why."""
    left_out: list[str]
    """Files and agents that were not taken: a line each, with the reason."""


class _NoAgentError(Exception):
    """Why it is none."""


class _Read(NamedTuple):
    """One agent, and what became of it."""

    name: str
    """The name as it was written."""
    agent_id: str
    table: Table
    unmapped: list[str]
    changed: list[str]


# -- Claude Code --------------------------------------------------------------------------------


def claude_agents(files: Mapping[str, str]) -> Imported:
    """Claude Code's subagents, as agents with the runtime ``claude-code``.

    Args:
        files: The texts of Markdown files, by their names; one that does not name its agent is
            called as its file.
    """
    found = Imported({}, {}, [], [], [])
    places: dict[str, tuple[str, str]] = {}
    for file, text in files.items():
        try:
            read = _claude_agent(text, PurePath(file).stem)
        except _NoAgentError as error:
            found.left_out.append(f"{file}: {error}")
            continue
        first_name, first_file = places.get(read.agent_id, ("", ""))
        if first_file and first_name == read.name:
            found.left_out.append(f"{file}: its agent has the same name as that of {first_file}")
            continue
        agent_id = _free(read.agent_id, found.agents)
        if agent_id != read.agent_id:
            read.changed.append(f"the id {read.agent_id} is that of {first_file} already")
        places[agent_id] = (read.name, file)
        places.setdefault(read.agent_id, (read.name, file))
        _take(found, agent_id, read)
    return found


def _take(found: Imported, agent_id: str, read: _Read) -> None:
    """Add an agent, without what the configuration would refuse."""
    found.unmapped.extend(f"{agent_id}: {each}" for each in read.unmapped)
    found.changed.extend(f"{agent_id}: {each}" for each in read.changed)
    table, at = read.table, f"agents.{agent_id}."
    while problem := next(keys.check({"agents": {agent_id: table}}), None):
        key = re.split(r"[.\[]", problem.key.removeprefix(at), maxsplit=1)[0]
        why = f"{agent_id}: {cut(problem.text.replace(at, ''), 300)}"
        if key not in table or key in _NARROWING:
            found.left_out.append(why)
            return
        table = {name: value for name, value in table.items() if name != key}
        found.unmapped.append(why)
    found.agents[agent_id] = table


def _claude_agent(text: str, stem: str) -> _Read:
    found = _FRONTMATTER.match(text)
    if found is None:
        raise _NoAgentError("no frontmatter (lines between two lines ---) names an agent")
    if len(found[1]) > FRONTMATTER_CHARS_MAX:
        raise _NoAgentError(f"its frontmatter has over {FRONTMATTER_CHARS_MAX:,} characters")
    changed: list[str] = []
    unmapped: list[str] = []
    fields, lines = _fields(found[1], changed)
    if not fields.keys() & _CLAUDE_KEYS:
        raise _NoAgentError("its frontmatter is not of an agent: it has no name")
    if stem == "SKILL" or fields.keys() & _NOT_OF_AGENTS:
        raise _NoAgentError("it is a skill or a command, not an agent")
    texts = {
        key: _text(key, fields.pop(key, None), lines.get(key), changed)
        for key in ("name", *_CLAUDE_TEXTS)
    }
    name = texts["name"] or stem
    agent_id = _id(name, stem, changed)
    table: Table = {"runtime": "claude-code", "access": "write"}
    table |= {
        ours: one_line(texts[theirs], DESCRIPTION_CHARS_MAX)
        for theirs, ours in _CLAUDE_TEXTS.items()
        if texts[theirs] not in {"", "inherit"}
    }
    tools = fields.pop("tools", None)
    allowed = _names(tools)
    if tools is not None and allowed is None:
        raise _NoAgentError("its tools are neither a list nor names with commas between them")
    if allowed is not None and "*" not in allowed:
        table["tools"] = allowed
    instructions = _clean(text[found.end() :], changed)
    if instructions:
        table["instructions"] = instructions
    if fields.get("permissionMode") == "plan":
        table["access"] = "read"
    options = _claude_options(fields, unmapped)
    if options:
        table["runtime_options"] = options
    fields.pop("color", None)  # ours are by state
    unmapped += [
        f"{one_line(each, 100)}: {_WAYS_OUT.get(each, 'has no equal here')}"
        for each in fields
        if fields[each]
    ]
    return _Read(name, agent_id, table, unmapped, changed)


def _fields(front: str, changed: list[str]) -> tuple[Table, dict[str, str | list[str]]]:
    """The frontmatter as YAML, and each of its keys as its lines say, which is always something.

    Programs write and read what is no YAML: a colon in a description, examples below it.
    """
    lines = _by_lines(front)
    try:
        loaded = documents.yaml(front, values_max=FRONTMATTER_VALUES_MAX)
    except BadDocument as error:
        line = "" if error.line is None else f"line {error.line + 1}: "
        changed.append(f"its frontmatter is no YAML ({line}{error.reason}): read line by line")
        return dict(lines), lines
    if not isinstance(loaded, dict):
        return dict(lines), lines
    return {str(key): value for key, value in loaded.items() if isinstance(key, str)}, lines


def _by_lines(front: str) -> dict[str, str | list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in front.replace("\r\n", "\n").split("\n"):
        named = _KEY.match(line)
        # Behind a description stand examples, with `user:` and `assistant:` at their beginning.
        is_text = current is not None and current is found.get("description")
        if named and (named[1] in _CLAUDE_KEYS or not is_text):
            current = found.setdefault(named[1], [])
            current.append(named[2] or "")
        elif current is not None and line.strip():
            current.append(line.strip())
    return {key: _line_value(parts) for key, parts in found.items()}


def _line_value(parts: list[str]) -> str | list[str]:
    first, *rest = (each.strip() for each in parts)
    if not first and rest and all(each.startswith("- ") for each in rest):
        return [_unquoted(each[2:].strip()) for each in rest]
    return _unquoted(" ".join(filter(None, ("" if _BLOCK.match(first) else first, *rest))))


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _text(key: str, value: object, written: str | list[str] | None, changed: list[str]) -> str:
    """A text, or what was written where YAML makes a number, a date or a table of it."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    changed.append(f"{key}: taken as it is written, not as YAML reads it")
    return written.strip() if isinstance(written, str) else ""


def _clean(text: str, changed: list[str]) -> str:
    """Instructions as they can be kept."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    found = harmless(plain)
    if found != plain:
        changed.append("control characters were taken out of its text")
    if len(found) > INSTRUCTIONS_CHARS_MAX:
        changed.append(f"its text was cut after {INSTRUCTIONS_CHARS_MAX} characters")
    return found[:INSTRUCTIONS_CHARS_MAX]


def _claude_options(fields: Table, unmapped: list[str]) -> Table:
    """Those of the runtime, taken from the fields."""
    options: Table = {}
    turns = fields.pop("maxTurns", None)
    if isinstance(turns, str) and re.fullmatch(r"[0-9]{1,9}", turns):
        turns = int(turns)
    if isinstance(turns, int) and not isinstance(turns, bool) and 0 < turns < 10**9:
        options["max_turns"] = turns
    elif turns is not None:
        unmapped.append("maxTurns: it is no number of turns")
    if fields.get("background") in (True, "true"):
        del fields["background"]
        options["background"] = True
    mode = fields.pop("permissionMode", None) or "default"
    if mode in _PERMISSION_MODES:
        options["permission_mode"] = mode
    elif mode != "default":
        shown = one_line(str(mode), 40) if isinstance(mode, str) else "that is no name"
        unmapped.append(
            f"permissionMode {shown}: a worker with it asks nobody; if that is meant, set "
            f'runtime_options.permission_mode = "{shown}" and access = "full"'
        )
    return options


# -- OpenClaw -----------------------------------------------------------------------------------


def openclaw(document: Mapping[str, object]) -> Imported:
    """The ``agents`` section of an ``openclaw.json``, as agents of the runtime ``acp``.

    Args:
        document: The file's content.

    Raises:
        UsageError: It has no such section.
    """
    section = document.get("agents")
    if not isinstance(section, Mapping):
        raise UsageError("there is no `agents` section in this file")
    unmapped: list[str] = []
    defaults = _table(section.get("defaults"))
    children = _table(defaults.pop("subagents", None))
    ours: Table = {
        name: children.pop(theirs) for theirs, name in _DEFAULTS.items() if theirs in children
    }
    shared = {
        "model": _model(defaults.pop("model", None), "agents.defaults.model", unmapped),
        "thinking": defaults.pop("thinkingDefault", None),
        "cwd": defaults.pop("workspace", None),
    }
    unmapped += _left(children, "agents.defaults.subagents") + _left(defaults, "agents.defaults")
    for name in [*ours]:
        limit = {"agents": {"defaults": {"subagents": {name: ours[name]}}}}
        if problem := next(keys.check(limit), None):
            del ours[name]
            unmapped.append(cut(problem.text, 300))
    found = Imported({}, ours, unmapped, [], [])
    names: dict[str, str] = {}
    for where, given in _openclaw_listed(section.get("list"), found.left_out):
        each = _table(given)
        ids = (each.pop("id", None), each.get("name"), "agent")
        written = next(name for name in ids if isinstance(name, str) and name.strip())
        changed: list[str] = []
        agent_id = _id(written, "agent", changed)
        if agent_id in names:
            found.left_out.append(f"{where}: its id is that of {names[agent_id]}: {agent_id}")
            continue
        names[agent_id] = where
        try:
            table = _openclaw_agent(each, agent_id, shared, found.unmapped)
        except _NoAgentError as error:
            found.left_out.append(f"{where}: {error}")
            continue
        _take(found, agent_id, _Read(written, agent_id, table, [], changed))
    found.unmapped.extend(
        _left(
            {name: value for name, value in section.items() if name not in {"defaults", "list"}},
            "agents",
        )
    )
    return found


def _openclaw_listed(listed: object, left_out: list[str]) -> Iterator[tuple[str, object]]:
    """The agents with their places: a list, or a table by their ids."""
    if isinstance(listed, Mapping):
        for name, each in listed.items():
            if isinstance(each, Mapping):
                yield f"agents.list.{one_line(str(name), 100)}", {"id": name, **each}
            else:
                left_out.append(f"agents.list.{one_line(str(name), 100)}: it is no table")
    elif isinstance(listed, list):
        for index, each in enumerate(listed):
            if isinstance(each, Mapping):
                yield f"agents.list[{index}]", each
            else:
                left_out.append(f"agents.list[{index}]: it is no table")
    elif listed is not None:
        left_out.append("agents.list: it is neither a list nor a table")


def merged_values(first: object, second: object) -> object:
    """As OpenClaw puts files together: lists behind each other, tables key by key; else the second.

    See ``$include`` in https://docs.openclaw.ai/gateway/configuration.
    """
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    if isinstance(first, dict) and isinstance(second, dict):
        both = {name: merged_values(first[name], second[name]) for name in first if name in second}
        return {**first, **second, **both}
    return second


def _openclaw_agent(
    each: Table, agent_id: str, shared: Mapping[str, object], unmapped: list[str]
) -> Table:
    table: Table = {"runtime": "acp"}
    where = f"agents.list[{agent_id}]"
    description = each.pop("description", None) or each.get("name")
    each.pop("name", None)
    each.pop("default", None)
    if isinstance(description, str) and description.strip():
        table["description"] = one_line(description, DESCRIPTION_CHARS_MAX)
    elif description is not None:
        unmapped.append(f"{where}.description is no text")
    own = {
        "model": _model(each.pop("model", None), f"{where}.model", unmapped),
        "thinking": each.pop("thinkingDefault", None),
        "cwd": each.pop("workspace", None),
    }
    table |= {
        name: value
        for name in own
        if (value := own[name] if own[name] is not None else shared[name]) is not None
    }
    tools = _table(each.pop("tools", None))
    given = tools.pop("allow", None)
    allowed = _names(given)
    if given is not None and allowed is None:
        raise _NoAgentError("its tools.allow is no list of names")
    if allowed is not None and not any(
        "*" in name or name.startswith("group:") for name in allowed
    ):
        table["tools"] = allowed
    elif allowed is not None:
        unmapped.append(f"{where}.tools.allow: patterns and groups have no equal here")
    unmapped += _left(tools, f"{where}.tools")
    card = _card(_table(each.pop("capabilities", None)), where, unmapped)
    if card:
        table["capabilities"] = card
    children = _table(each.pop("subagents", None))
    named = children.pop("allowAgents", None)
    allow = _names(named)
    if named is not None and allow is None:
        raise _NoAgentError("its subagents.allowAgents is no list of names")
    if allow is not None:
        table["subagents"] = {
            "allow_agents": [name if name == "*" else _id(name, "agent", []) for name in allow]
        }
    unmapped += _left(children, f"{where}.subagents") + _left(each, where)
    table["runtime_options"] = {"agent": "openclaw"}
    return table


def _card(card: Table, where: str, unmapped: list[str]) -> Table:
    found: Table = {}
    tags = _names(card.pop("tags", None))
    if tags:
        found["tags"] = tags
    tier = card.pop("costTier", None)
    if isinstance(tier, str) and tier in {each.value for each in CostTier}:
        found["cost_tier"] = tier
    elif tier is not None:
        unmapped.append(f"{where}.capabilities.costTier is none of ours")
    for theirs, name in (("typicalLatency", "typical_latency"), ("notes", "notes")):
        value = card.pop(theirs, None)
        if isinstance(value, str) and value:
            found[name] = value
        elif value:
            unmapped.append(f"{where}.capabilities.{theirs} is no text")
    unmapped += _left(card, f"{where}.capabilities")
    return found


def _model(value: object, where: str, unmapped: list[str]) -> str | None:
    """Of a name, or of one with fallbacks."""
    if isinstance(value, Mapping):
        if value.get("fallbacks"):
            unmapped.append(f"{where}.fallbacks has no equal here: retry with another agent")
        value = value.get("primary")
    if value is not None and not isinstance(value, str):
        unmapped.append(f"{where} is no name")
        return None
    return value


def _left(table: Mapping[str, object], where: str) -> list[str]:
    return [f"{where}.{one_line(name, 100)} has no equal here" for name in table]


def _table(value: object) -> Table:
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str] | None:
    """A list, or names with commas between them; a comma inside of parentheses parts nothing.

    None = it is neither, or not given.
    """
    if isinstance(value, str):
        return [each.strip() for each in re.split(r",(?![^()]*\))", value) if each.strip()]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [each.strip() for each in value if each.strip()]
    return None


def _free(agent_id: str, taken: Mapping[str, object]) -> str:
    """The id, with a number where it is taken."""
    found, number = agent_id, 1
    while found in taken:
        number += 1
        found = f"{agent_id[: 63 - len(str(number))]}-{number}"
    return found


def _id(name: str, stem: str, changed: list[str]) -> str:
    """A name as ours are: lower case, with dashes; that of its file where nothing is left of it."""
    for each in (name, stem):
        # Accents are taken off; of other alphabets nothing is left.
        plain = unicodedata.normalize("NFKD", each[:1_000]).encode("ascii", "ignore").decode()
        found = re.sub(r"[^a-z0-9_-]+", "-", plain.lower()).strip("-_")[:64]
        if re.match(NAME_PATTERN, found):
            is_as_written = each == name and name.isascii()
            break
    else:
        is_as_written = False
        found = f"agent-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    if found in _TAKEN:
        found, is_as_written = f"{found}-agent", False
    if not is_as_written:
        changed.append(f"it is called so because {one_line(name, 60)!r} can be no id")
    return found
