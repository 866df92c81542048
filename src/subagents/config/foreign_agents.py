"""Agents as other programs define them, in the words of ``subagents.toml``; pure.

What has no equal here is listed, never dropped in silence and never guessed.

Sources: https://code.claude.com/docs/en/sub-agents (frontmatter of ``.claude/agents/*.md``) and
https://docs.openclaw.ai/gateway/configuration-reference (``agents`` of ``openclaw.json``).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from subagents.config.settings import NAME_PATTERN, CostTier
from subagents.errors import UsageError

Table = dict[str, object]

INSTRUCTIONS_CHARS_MAX: Final = 32_768
DESCRIPTION_CHARS_MAX: Final = 4_000
_FRONTMATTER: Final = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE
)
_PERMISSION_MODES: Final = ("dontAsk", "acceptEdits", "auto", "plan")
_CLAUDE_TEXTS: Final = {"description": "description", "model": "model", "effort": "thinking"}
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


class Imported(NamedTuple):
    """What a file says in our words."""

    agents: dict[str, Table]
    """By id; the keys of ``[agents.<id>]``."""
    defaults: Table
    """The keys of ``[agents.defaults.subagents]``."""
    unmapped: list[str]
    """What has no equal here: a line each, with its place and the way out where there is one."""


def claude_agent(text: str, name: str) -> Imported:
    """One Claude Code subagent, as an agent with the runtime ``claude-code``.

    Args:
        text: Of the Markdown file.
        name: Of the file, without ``.md``; for one that does not name itself.

    Raises:
        UsageError: There is no frontmatter, or it is not YAML.
    """
    found = _FRONTMATTER.match(text)
    if found is None:
        raise UsageError(
            f"{name}.md has no frontmatter (lines between two lines ---) that names an agent"
        )
    fields = _yaml(found[1], name)
    agent_id = _id(str(fields.pop("name", None) or name))
    unmapped: list[str] = []
    table: Table = {"runtime": "claude-code", "access": "write"}
    for theirs, ours in _CLAUDE_TEXTS.items():
        value = fields.pop(theirs, None)
        if value not in {None, "inherit"}:
            table[ours] = " ".join(str(value).split())[:DESCRIPTION_CHARS_MAX]
    tools = _names(fields.pop("tools", None))
    if tools is not None and "*" not in tools:
        table["tools"] = tools
    instructions = text[found.end() :].strip()
    if len(instructions) > INSTRUCTIONS_CHARS_MAX:
        unmapped.append(f"its text was cut after {INSTRUCTIONS_CHARS_MAX} characters")
    if instructions:
        table["instructions"] = instructions[:INSTRUCTIONS_CHARS_MAX]
    if fields.get("permissionMode") == "plan":
        table["access"] = "read"
    options = _claude_options(fields, unmapped)
    if options:
        table["runtime_options"] = options
    fields.pop("color", None)  # ours are by state
    unmapped += [
        f"{each}: {_WAYS_OUT.get(each, 'has no equal here')}" for each in fields if fields[each]
    ]
    return Imported({agent_id: table}, {}, [f"{agent_id}: {each}" for each in unmapped])


def _claude_options(fields: Table, unmapped: list[str]) -> Table:
    """Those of the runtime, taken from the fields."""
    options: Table = {}
    if fields.get("maxTurns") is not None:
        options["max_turns"] = fields.pop("maxTurns")
    if fields.get("background") is True:
        options["background"] = fields.pop("background")
    mode = fields.pop("permissionMode", "default")
    if mode in _PERMISSION_MODES:
        options["permission_mode"] = mode
    elif mode != "default":
        unmapped.append(
            f"permissionMode {mode}: a worker with it asks nobody; if that is meant, set "
            f'runtime_options.permission_mode = "{mode}" and access = "full"'
        )
    return options


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
    agents: dict[str, Table] = {}
    listed = section.get("list")
    for given in listed if isinstance(listed, list) else []:
        each = _table(given)
        agent_id = _id(str(each.pop("id", None) or each.get("name") or "agent"))
        agents[agent_id] = _openclaw_agent(each, agent_id, shared, unmapped)
    unmapped += _left(
        {name: value for name, value in section.items() if name not in {"defaults", "list"}},
        "agents",
    )
    return Imported(agents, ours, unmapped)


def _openclaw_agent(
    each: Table, agent_id: str, shared: Mapping[str, object], unmapped: list[str]
) -> Table:
    table: Table = {"runtime": "acp"}
    where = f"agents.list[{agent_id}]"
    description = each.pop("description", None) or each.get("name")
    each.pop("name", None)
    each.pop("default", None)
    if description:
        table["description"] = " ".join(str(description).split())[:DESCRIPTION_CHARS_MAX]
    own = {
        "model": _model(each.pop("model", None), f"{where}.model", unmapped),
        "thinking": each.pop("thinkingDefault", None),
        "cwd": each.pop("workspace", None),
    }
    table |= {
        name: str(value)
        for name in own
        if (value := own[name] if own[name] is not None else shared[name]) is not None
    }
    tools = _table(each.pop("tools", None))
    allowed = _names(tools.pop("allow", None))
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
    allow = _names(children.pop("allowAgents", None))
    if allow is not None:
        table["subagents"] = {
            "allow_agents": [name if name == "*" else _id(name) for name in allow]
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
    if tier in {each.value for each in CostTier}:
        found["cost_tier"] = tier
    elif tier is not None:
        unmapped.append(f"{where}.capabilities.costTier: {tier} is none of ours")
    for theirs, name in (("typicalLatency", "typical_latency"), ("notes", "notes")):
        if card.get(theirs):
            found[name] = str(card[theirs])
        card.pop(theirs, None)
    unmapped += _left(card, f"{where}.capabilities")
    return found


def _model(value: object, where: str, unmapped: list[str]) -> str | None:
    """Of a name, or of one with fallbacks."""
    if isinstance(value, Mapping):
        if value.get("fallbacks"):
            unmapped.append(f"{where}.fallbacks has no equal here: retry with another agent")
        value = value.get("primary")
    return None if value is None else str(value)


def _left(table: Mapping[str, object], where: str) -> list[str]:
    return [f"{where}.{name} has no equal here" for name in table]


def _table(value: object) -> Table:
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str] | None:
    """A list, or names with commas between them; a comma inside of parentheses parts nothing."""
    if value is None:
        return None
    if isinstance(value, str):
        return [each.strip() for each in re.split(r",(?![^(]*\))", value) if each.strip()]
    return [str(each) for each in value] if isinstance(value, Iterable) else [str(value)]


def _id(name: str) -> str:
    """A name as ours are: lower case, with dashes.

    Raises:
        UsageError: Nothing of it is left.
    """
    found = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:64]
    if not re.match(NAME_PATTERN, found):
        raise UsageError(f"{name!r} cannot name an agent: letters, digits, _ and - can")
    return found


def _yaml(text: str, name: str) -> Table:
    from ruamel.yaml import YAML  # noqa: PLC0415  only for this command
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        fields = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 2}" if where is not None else ""
        raise UsageError(f"{name}.md{line}: its frontmatter is not YAML") from error
    return _table(fields)
