"""``init --from``: agents of another program, into this project's subagents.toml."""

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Any, Final

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.config.files import documents
from subagents.config.files.documents import BadDocument
from subagents.config.files.text_files import read_text
from subagents.config.keys import BARE_KEY
from subagents.config.sources import FILE_BYTES_MAX, read
from subagents.config.trust import is_trusted, trust
from subagents.errors import EXIT_OK, ConfigError, NotFound, UsageError
from subagents.extensions.install import file_change, foreign_agents
from subagents.extensions.install.foreign_agents import Imported, merged_values
from subagents.installation import extra_command

FILES_MAX: Final = 1_000
FOLDERS_MAX: Final = 1_000
NODE: Final = "node_modules"
INCLUDE: Final = "$include"
INCLUDES_DEEP_MAX: Final = 10
"""How deep files may include each other, as in OpenClaw."""
INCLUDES_MAX: Final = 100
INCLUDED_CHARS_MAX: Final = 256 * 1024
"""The most that all included files may have together; JSON5 takes its time."""


def claude_agents(directory: Path, *, yes: bool, dry_run: bool, json: bool) -> int:
    """Add Claude Code's subagents to this project's subagents.toml.

    Each becomes an agent with the runtime ``claude-code``: its text as ``instructions``, its tools
    and model. What has no equal is listed. Agents that the file has already are left as they are.

    Args:
        directory: With .md files, or one of them.
        yes: Do not ask.
        dry_run: Show what would be written, and write nothing.
        json: Say it as one document.

    Raises:
        NotFound: There is no agent.
    """
    place = Path(caller_cwd()) / directory.expanduser()
    files = [place] if place.is_file() else sorted(_below(place))
    if not files:
        raise NotFound(
            f"there are no .md files in {place}",
            hint="name the directory: subagents init --from claude-agents ~/.claude/agents",
        )
    texts: dict[str, str] = {}
    unreadable: list[str] = []
    for file in files[:FILES_MAX]:
        name = file.name if file == place else str(file.relative_to(place))
        try:
            texts[name] = read_text(file, bytes_max=FILE_BYTES_MAX, name=name)
        except UsageError as error:
            unreadable.append(error.message)
    found = foreign_agents.claude_agents(texts)
    found.left_out.extend(unreadable)
    if len(files) > FILES_MAX:
        found.left_out.append(f"all files behind the first {FILES_MAX:,}")
    return _add(found, str(place), yes=yes, dry_run=dry_run, json=json)


def _below(place: Path) -> Iterator[Path]:
    """Markdown files there and in folders below, as Claude Code finds them; no hidden ones."""
    walk = itertools.islice(os.walk(place), FOLDERS_MAX)
    for folder, folders, files in walk:
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each != NODE)
        yield from (Path(folder) / each for each in files if each.lower().endswith(".md"))


def openclaw(file: Path, *, yes: bool, dry_run: bool, json: bool) -> int:
    """Add the agents of an openclaw.json to this project's subagents.toml; see ``claude_agents``.

    Its limits of sub-agents become ours, its agents those of the runtime ``acp``.
    """
    path = Path(caller_cwd()) / file.expanduser()
    left_out: list[str] = []
    document = _Includes(path.parent, left_out).put_in(_json5(path), [path])
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds no object")
    found = foreign_agents.openclaw(document)
    found.left_out.extend(left_out)
    return _add(found, str(path), yes=yes, dry_run=dry_run, json=json)


def _add(found: Imported, place: str, *, yes: bool, dry_run: bool, json: bool) -> int:
    file = Path(caller_cwd()) / "subagents.toml"
    if not found.agents and not found.defaults:
        if not json:
            _say(found, ())
        raise NotFound(
            f"no agent was found in {place}",
            hint=None if json or not found.left_out else "above is why each was left out",
            details={"leftOut": found.left_out, "notImported": found.unmapped},
        )
    before = file_change.read(file)
    after, added, kept = merged(before or "", found)
    change = file_change.Change(file=file, before=before, after=after, is_shared=True)
    read(file, after)  # whatever is refused there is refused here, before it is written
    if not json:
        if change.is_needed:
            output.data(change.diff)
        _say(found, kept)
    is_wanted = change.is_needed and not dry_run
    if is_wanted and not output.is_confirmed(f"Add this to {file}?", yes=yes):
        output.note("Nothing was written.")
        is_wanted = False
    backup = _written(change) if is_wanted else None
    if json:
        output.document(
            {
                "file": str(file),
                "written": is_wanted,
                "backup": None if backup is None else str(backup),
                "added": list(added),
                "changed": found.changed,
                "notImported": [*found.unmapped, *kept],
                "leftOut": found.left_out,
                "diff": change.diff,
            }
        )
    elif is_wanted:
        output.line(f"Wrote {file}" + (f"; the old one is {backup}" if backup else ""))
        output.line(f"Next: subagents run --agent {added[0]} 'TASK'" if added else "")
    elif not change.is_needed:
        output.line(f"{file} has all that was found; nothing to write.")
    return EXIT_OK


def _written(change: file_change.Change) -> Path | None:
    """Write it; a file that is trusted, or new, is trusted as it is now."""
    was_trusted = change.before is None or is_trusted(
        paths(), change.file, read(change.file).digest
    )
    backup = file_change.write(change)
    if was_trusted:
        trust(paths(), change.file)
    return backup


def merged(text: str, found: Imported) -> tuple[str, Sequence[str], Sequence[str]]:
    """The file with what is new to it, at its end; comments and order of the rest stay.

    Returns:
        The text, the ids of the added agents, and a line for each thing that was there already.

    Raises:
        ConfigError: The text is not TOML.
    """
    try:
        have: dict[str, Any] = documents.toml(text)
    except BadDocument as error:
        raise ConfigError(error.at("subagents.toml")) from error
    agents = have.get("agents", {})
    limits = agents.get("defaults", {}).get("subagents", {})
    parts: list[str] = []
    kept = [
        f"agents.defaults.subagents.{name} is set already"
        for name in found.defaults
        if name in limits
    ]
    new_limits = {name: value for name, value in found.defaults.items() if name not in limits}
    if new_limits and limits:
        kept += [
            f"agents.defaults.subagents.{name} = {value}: add it to that table yourself"
            for name, value in new_limits.items()
        ]
    elif new_limits:
        parts.append(_table_text(("agents", "defaults", "subagents"), new_limits))
    kept += [f"agents.{name} is there already" for name in found.agents if name in agents]
    added = []
    room = FILE_BYTES_MAX - sum(len(each.encode()) + 2 for each in (text, *parts))
    for name in (each for each in found.agents if each not in agents):
        part = _table_text(("agents", name), found.agents[name])
        room -= len(part.encode()) + 2
        if room < 0:
            room += len(part.encode()) + 2
            found.left_out.append(f"{name}: the file would be over {FILE_BYTES_MAX:,} bytes")
            continue
        parts.append(part)
        added.append(name)
    blocks = [each for each in (text.rstrip(), *parts) if each]
    return "\n\n".join(blocks) + "\n" if parts else text, added, kept


def _table_text(path: Sequence[str], values: dict[str, object]) -> str:
    """``[path]`` with these values; tables of it behind it."""
    own = [f"[{'.'.join(map(_key_text, path))}]"]
    inner: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict):
            inner.append(_table_text((*path, name), value))
        else:
            own.append(f"{_key_text(name)} = {_value_text(value)}")
    return "\n\n".join(["\n".join(own), *inner])


def _key_text(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _json_text(name)


def _value_text(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        lines = "\n".join(_json_text(each)[1:-1] for each in value.split("\n"))
        return f'"""\n{lines}"""'
    return _json_text(value)


def _json_text(value: object) -> str:
    """As JSON writes texts, numbers and lists, TOML does."""
    return dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")


def _say(found: Imported, kept: Sequence[str]) -> None:
    for title, lines in (
        ("Changed:", found.changed),
        ("Not imported:", [*found.unmapped, *kept]),
        ("Left out:", found.left_out),
    ):
        if lines:
            output.note(title)
        for each in lines:
            output.note(f"  {each}")


def _json5(file: Path) -> object:
    """
    Raises:
        UsageError: It cannot be read, or is no JSON5.
    """
    return _parsed(file, read_text(file, bytes_max=FILE_BYTES_MAX))


def _parsed(file: Path, text: str) -> object:
    try:
        return documents.json5(text)
    except BadDocument as error:
        raise UsageError(f"{error.at(str(file))}, so the file is not JSON5") from error
    except ImportError as error:
        raise UsageError(
            f"{file} is no plain JSON, and JSON5 needs a package that is not installed",
            hint=extra_command("openclaw"),
        ) from error


class _Includes:
    """Puts the content of files in the place of the ``$include`` that names them."""

    def __init__(self, top: Path, left_out: list[str]) -> None:
        """
        Args:
            top: Files outside of this folder are left out, as OpenClaw does.
            left_out: Gets a line for each that was not taken.
        """
        self._top = Path(os.path.normpath(top))
        self._left_out = left_out
        self._count = 0
        self._chars_left = INCLUDED_CHARS_MAX

    def put_in(self, value: object, within: Sequence[Path]) -> object:
        """A document, or a part of it, with what it includes.

        Args:
            value: As it was read.
            within: The files that include each other up to here; relative names start at the last.
        """
        if isinstance(value, list):
            return [self.put_in(each, within) for each in value]
        if not isinstance(value, dict):
            return value
        rest = {key: self.put_in(each, within) for key, each in value.items() if key != INCLUDE}
        if INCLUDE not in value:
            return rest
        names = value[INCLUDE]
        parts: list[object] = []
        for name in names if isinstance(names, list) else [names]:
            if self._count > INCLUDES_MAX:
                break  # that was said
            try:
                parts.append(self._read(name, within))
            except UsageError as error:
                self._left_out.append(f"{INCLUDE} in {within[-1].name}: {error.message}")
        return functools.reduce(merged_values, [*parts, rest] if rest or not parts else parts)

    def _read(self, name: object, within: Sequence[Path]) -> object:
        """
        Raises:
            UsageError: It cannot be taken.
        """
        if not isinstance(name, str):
            raise UsageError("it names no file")
        path = Path(os.path.normpath(within[-1].parent / name))
        if not path.is_relative_to(self._top):
            raise UsageError(f"{name} is outside of the folder of the configuration")
        self._count += 1
        if path in within or len(within) > INCLUDES_DEEP_MAX or self._count > INCLUDES_MAX:
            raise UsageError(f"{name} includes itself, or there are too many of them")
        text = read_text(path, bytes_max=self._chars_left)
        self._chars_left -= len(text)
        return self.put_in(_parsed(path, text), [*within, path])
