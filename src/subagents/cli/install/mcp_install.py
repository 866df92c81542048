"""``mcp install``, ``uninstall``, ``config`` and ``plugin``: how agent programs come to know us.

Somebody else's file is changed here, so the change is shown first, only our own entry is touched,
the file is replaced in one step, and what was there is kept beside it.

Source: 5-surfaces §1, §2 (confirm on a tty, ``--yes`` otherwise).
"""

import contextlib
import difflib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from subagents.cli import output
from subagents.cli.connection import caller_cwd
from subagents.cli.flags import Json, Yes
from subagents.cli.install import agent_programs as harnesses
from subagents.cli.install.agent_programs import Harness
from subagents.errors import EXIT_OK, ConfigError, Conflict

PRIVATE_FILE: Final = 0o600
SHARED_FILE: Final = 0o644

Name = Annotated[
    str, Parameter(help="claude, codex, gemini, opencode or openclaw.", metavar="HARNESS")
]
DryRun = Annotated[bool, Parameter(name="--dry-run", help="Only show the change.")]
Project = Annotated[
    bool, Parameter(help="In this directory's configuration, not in the user's.", name="--project")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of one file."""

    harness: Harness
    before: str | None
    """None: there is no file yet."""
    after: str
    is_shared: bool
    """Whether the file is the project's, for everybody who works on it."""

    @property
    def is_needed(self) -> bool:
        return (self.before or "") != self.after

    @property
    def diff(self) -> str:
        """As ``diff -u`` shows it."""
        name = str(self.harness.file)
        old, new = (text.splitlines() for text in (self.before or "", self.after))
        start = os.devnull if self.before is None else name
        return "\n".join(difflib.unified_diff(old, new, start, name, lineterm=""))


def install(
    name: Name,
    /,
    *,
    project: Project = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Register subagents as an MCP server of an agent program.

    Shows the change first. The rest of the file stays as it is, comments too; the
    old file is kept beside it as FILE.bak-<time>. Repeating it changes nothing.

    For example:

        subagents mcp install claude --dry-run

        subagents mcp install codex --yes
    """
    where = Path(caller_cwd()) if project else None
    found = harnesses.harness(name, os.environ, project=where)
    entry = harnesses.entry_of(name, os.environ)
    before = _read(found.file)
    with _naming(found.file):
        after = found.with_entry(before or "", entry)
    change = Change(harness=found, before=before, after=after, is_shared=project)
    return _carry_out(change, "registered", dry_run=dry_run, yes=yes, json=json)


def uninstall(
    name: Name,
    /,
    *,
    project: Project = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Take our entry out of an agent program's configuration.

    Shows the change first; the old file is kept beside it as FILE.bak-<time>.

    For example:

        subagents mcp uninstall claude --dry-run

        subagents mcp uninstall codex --yes
    """
    where = Path(caller_cwd()) if project else None
    found = harnesses.harness(name, os.environ, project=where)
    before = _read(found.file)
    with _naming(found.file):
        after = found.without_entry(before) if before is not None else ""
    change = Change(harness=found, before=before, after=after, is_shared=project)
    return _carry_out(change, "removed", dry_run=dry_run, yes=yes, json=json)


def config(
    name: Annotated[
        str | None, Parameter(help="For this program. Default: any MCP client.", metavar="HARNESS")
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Print what makes subagents an MCP server of a client.

    For example:

        subagents mcp config

        subagents mcp config codex
    """
    wanted = name or "claude"
    found = harnesses.harness(wanted, os.environ, project=None)
    snippet = found.snippet(harnesses.entry_of(name, os.environ))
    if json:
        file = None if name is None else str(found.file)
        output.document({"harness": name, "file": file, "snippet": snippet})
        return EXIT_OK
    if name is not None:
        output.note(f"In {found.file}:")
    output.data(snippet)
    return EXIT_OK


def plugin(*, json: Json = False) -> int:
    """Print where the plugin for Claude Code is: tools, hooks and a skill in one folder.

    For example:

        subagents mcp plugin --json

        claude --plugin-dir "$(subagents mcp plugin)"
    """
    folder = plugin_dir()
    if json:
        output.document({"path": str(folder)})
    else:
        output.line(str(folder))
    if shutil.which("subagents") is None:
        output.note("Its tools and hooks start `subagents`, which is not on PATH here.")
    return EXIT_OK


def plugin_dir() -> Path:
    """The folder as it is installed."""
    return Path(str(files("subagents.cli"))) / "claude_plugin"


# -- changing a file ------------------------------------------------------------------------------


def _carry_out(change: Change, done: str, *, dry_run: bool, yes: bool, json: bool) -> int:
    """Show the change, ask, and make it."""
    file = change.harness.file
    backup: Path | None = None
    is_written = False
    if not json:
        output.data(change.diff) if change.is_needed else output.note(f"{file} stays as it is.")
    if change.is_needed and not dry_run:
        question = f"Change the configuration of {change.harness.title}?"
        if output.is_confirmed(question, yes=yes):
            backup, is_written = _write(change), True
        else:
            output.note("Nothing was written.")
    if json:
        output.document(
            {
                "harness": change.harness.name,
                "file": str(file),
                "diff": change.diff,
                "changed": is_written,
                "backup": None if backup is None else str(backup),
            }
        )
    elif is_written:
        kept = f"; the old one is {backup}" if backup else ""
        output.note(f"subagents is {done}: {file}{kept}")
        if done == "registered" and change.harness.then:
            output.note(change.harness.then)
    return EXIT_OK


def _write(change: Change) -> Path | None:
    """Replace the file in one step; returns where the old one is kept.

    Raises:
        Conflict: It changed since it was shown; nothing was written.
        ConfigError: It cannot be written.
    """
    # A link to a file among somebody's dotfiles stays a link.
    file = change.harness.file.resolve()
    if _read(file) != change.before:
        raise Conflict(
            f"{file} was changed meanwhile; nothing was written", hint="call it again to see"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        backup: Path | None = None
        mode = SHARED_FILE if change.is_shared else PRIVATE_FILE
        if change.before is not None:
            mode = file.stat().st_mode & 0o777
            backup = _free_name(file)
            shutil.copy2(file, backup)
        new = file.with_name(f".{file.name}.{os.getpid()}")
        new.touch(mode)
        new.write_bytes(change.after.encode())
        new.chmod(mode)
        new.replace(file)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
    return backup


def _free_name(file: Path) -> Path:
    """Beside the file, with the time in it; nothing that is there is replaced."""
    stem = f"{file.name}.bak-{time.strftime('%Y%m%d-%H%M%S')}"
    found, number = file.with_name(stem), 1
    while found.exists():
        number += 1
        found = file.with_name(f"{stem}-{number}")
    return found


def _read(file: Path) -> str | None:
    """The text with its line ends as they are; None when there is no file.

    Raises:
        ConfigError: It cannot be read, or is no text.
    """
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from error


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except ConfigError as error:
        message = f"{file}: {error.message}; nothing was written"
        raise ConfigError(message, hint=error.hint) from error
