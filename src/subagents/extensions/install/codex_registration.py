"""Our table in Codex's config.toml: Codex's own ``mcp add`` cannot say all of it.

It knows no option for the limit of a call, for approvals and for the variables it passes on, and
without them long waits fail and tools are refused. So this one file is edited here: the change is
shown, nothing but our table is touched, and the old file is kept next to it.
"""

import json
import tomllib
from collections.abc import Sequence

from subagents.errors import ConfigError
from subagents.extensions.install.agent_programs import AgentProgram, Entry
from subagents.extensions.install.file_change import Change, read


def change_of(program: AgentProgram, entry: Entry | None) -> Change:
    """The change that puts ``entry`` into the file, or with None takes ours out.

    Raises:
        ConfigError: The file cannot be read, or is no TOML.
    """
    before = read(program.file)
    try:
        after = with_entry(before or "", program.path, entry)
    except ConfigError as error:
        message = f"{program.file}: {error.message}; nothing was written"
        raise ConfigError(message, hint=error.hint) from error
    is_shared = program.project is not None
    return Change(file=program.file, before=before, after=after, is_shared=is_shared)


def with_entry(text: str, path: Sequence[str], entry: Entry | None) -> str:
    """The text with our table at its end, or with None without it; the rest stays as it is.

    Cut and joined as text: tomlkit takes a comment above the table behind ours for a part of ours.

    Raises:
        ConfigError: It is no TOML, or written in a form in which this is not possible.
    """
    before = _parsed(text)
    found = _at(before, path)
    if found == entry:
        return text
    changed = text if found is None else _cut(text, path)
    if entry is not None:
        head = f"{changed.rstrip()}\n\n" if changed.strip() else ""
        changed = head + _table(path, entry)
    try:
        after = _parsed(changed)
    except ConfigError:
        after = {}
    if _at(after, path) != entry or _others(after, path) != _others(before, path):
        raise ConfigError(
            f"[{'.'.join(path)}] is written in a form not known here",
            hint="edit the file by hand; `subagents mcp config codex` prints the entry",
        )
    return changed


def _table(path: Sequence[str], entry: Entry) -> str:
    """The text of a table: texts, numbers and lists in it, tables below it."""
    plain = {name: value for name, value in entry.items() if not isinstance(value, dict)}
    # What JSON says of a text, a number and a list of them is TOML, too.
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in plain.items()]
    below = [
        _table([*path, name], value) for name, value in entry.items() if isinstance(value, dict)
    ]
    return "\n".join(["\n".join([f"[{'.'.join(path)}]", *lines]) + "\n", *below])


def _cut(text: str, path: Sequence[str]) -> str:
    """The text without the lines of a table and of those below it."""
    kept: list[str] = []
    is_ours = False
    held: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was_ours, is_ours = is_ours, _names(line)[: len(path)] == list(path)
            if is_ours and not was_ours:
                # The empty lines before it came with it.
                kept = "".join(kept).rstrip().splitlines(keepends=True)
                kept += ["\n"] if kept else []
            kept += [] if is_ours and was_ours else held
            held = []
        if not is_ours:
            kept.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            held = []
        else:
            # A comment above the next table is about that one.
            held.append(line)
    return "".join([*kept, *held]).rstrip() + "\n" if kept or held else ""


def _names(header: str) -> list[str]:
    """``[a."b".c]`` → a, b, c."""
    inside = header.strip().lstrip("[").partition("]")[0]
    return [each.strip().strip("\"'") for each in inside.split(".")]


def _parsed(text: str) -> Entry:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from error


def _at(document: object, path: Sequence[str]) -> object:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _others(document: Entry, path: Sequence[str]) -> Entry:
    """The document without what is at ``path``, nor the table that held nothing else."""
    table, name = path
    servers = document.get(table)
    if not isinstance(servers, dict):
        return document
    left = {each: value for each, value in servers.items() if each != name}
    rest = {each: value for each, value in document.items() if each != table}
    return {**rest, table: left} if left else rest
