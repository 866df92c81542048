"""``import``: agents that were defined for another program, into this project's subagents.toml."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tomlkit
from cyclopts import Parameter
from tomlkit.items import Table as TomlTable

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.cli.flags import Json
from subagents.cli.install import file_change
from subagents.config import foreign_agents
from subagents.config.foreign_agents import Imported
from subagents.config.sources import read
from subagents.config.trust import is_trusted, trust
from subagents.errors import EXIT_OK, ConfigError, NotFound, UsageError

Yes = Annotated[bool, Parameter(name=["--yes", "-y"], help="Do not ask.")]
DryRun = Annotated[bool, Parameter(help="Show what would be written, and write nothing.")]


def claude_agents(
    directory: Annotated[
        Path, Parameter(help="A directory of .md files, or one file. Default: .claude/agents.")
    ] = Path(".claude/agents"),
    /,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Add Claude Code's subagents to this project's subagents.toml.

    Each becomes an agent with the runtime `claude-code`: its text as `instructions`, its tools and
    model. What has no equal is listed. Agents that the file has already are left as they are.

    For example:

        subagents import claude-agents

        subagents import claude-agents ~/.claude/agents --dry-run
    """
    place = Path(caller_cwd()) / directory.expanduser()
    files = [place] if place.is_file() else sorted(place.glob("*.md"))
    if not files:
        raise NotFound(
            f"there are no .md files in {place}",
            hint="name the directory: subagents import claude-agents ~/.claude/agents",
        )
    found = Imported({}, {}, [])
    for file in files:
        one = foreign_agents.claude_agent(_text(file), file.stem)
        found.agents.update(one.agents)
        found.unmapped.extend(one.unmapped)
    return _add(found, yes=yes, dry_run=dry_run, json=json)


def openclaw(
    file: Annotated[Path, Parameter(help="An openclaw.json.")],
    /,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Add the agents of an OpenClaw configuration to this project's subagents.toml.

    Its limits of sub-agents become ours, its agents those of the runtime `acp`. What has no equal
    is listed.

    For example:

        subagents import openclaw ~/.openclaw/openclaw.json --dry-run

        subagents import openclaw openclaw.json --yes
    """
    path = Path(caller_cwd()) / file.expanduser()
    found = foreign_agents.openclaw(_document(path))
    return _add(found, yes=yes, dry_run=dry_run, json=json)


def _add(found: Imported, *, yes: bool, dry_run: bool, json: bool) -> int:
    file = Path(caller_cwd()) / "subagents.toml"
    before = file_change.read(file)
    after, added, kept = merged(before or "", found)
    change = file_change.Change(file=file, before=before, after=after, is_shared=True)
    read(file, after)  # whatever is refused there is refused here, before it is written
    unmapped = [*found.unmapped, *kept]
    if not json:
        if change.is_needed:
            output.data(change.diff)
        _say(unmapped)
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
                "notImported": unmapped,
                "diff": change.diff,
            }
        )
    elif is_wanted:
        output.line(f"Wrote {file}" + (f"; the old one is {backup}" if backup else ""))
        output.line(f"Next: subagents run --agent {added[0]} 'TASK'" if added else "")
    elif not change.is_needed:
        output.line(f"{file} has all of them already; nothing to write.")
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
        document = tomlkit.parse(text)
    except tomlkit.exceptions.ParseError as error:
        raise ConfigError(f"subagents.toml is not TOML: {error}") from error
    have = document.unwrap()
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
    added = [name for name in found.agents if name not in agents]
    kept += [f"agents.{name} is there already" for name in found.agents if name in agents]
    parts += [_table_text(("agents", name), found.agents[name]) for name in added]
    blocks = [each for each in (text.rstrip(), *parts) if each]
    return "\n\n".join(blocks) + "\n" if parts else text, added, kept


def _table_text(path: Sequence[str], values: dict[str, object]) -> str:
    """``[path]`` with these values; tables of it behind it."""
    own: TomlTable = tomlkit.table()
    inner: list[str] = []
    for name, value in values.items():
        if isinstance(value, dict):
            inner.append(_table_text((*path, name), value))
        elif isinstance(value, str) and "\n" in value:
            own.add(name, tomlkit.string(value, multiline=True))
        else:
            own.add(name, value)
    head = f"[{'.'.join(tomlkit.key(each).as_string() for each in path)}]"
    return "\n\n".join([f"{head}\n{own.as_string().rstrip()}", *inner])


def _say(unmapped: Sequence[str]) -> None:
    if unmapped:
        output.note("Not imported:")
    for each in unmapped:
        output.note(f"  {each}")


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error


def _document(file: Path) -> dict[str, object]:
    """A JSON5 file; plain JSON is one."""
    try:
        import json5  # noqa: PLC0415  an extra, only for this command
    except ImportError as error:
        raise UsageError(
            "reading an openclaw.json needs json5, which is not installed",
            hint="pip install 'subagents[openclaw]'",
        ) from error
    try:
        found = json5.loads(_text(file))
    except ValueError as error:
        raise UsageError(f"{file} is not JSON5: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file} holds no object")
    return found
