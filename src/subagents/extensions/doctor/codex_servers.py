"""Entries in the configuration of agent programs that start ``codex mcp-server``.

With it other programs had Codex as a tool. Codex 0.169 has no such command any more, so these
entries fail to start; what they were for is what we do. Blocking; only files are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

COMMAND: Final = "codex mcp-server"
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Claude Code keeps much else besides its servers."""
PLACES: Final = (
    *(".mcp.json", "~/.claude.json", "$CLAUDE_CONFIG_DIR/.claude.json"),
    *(".gemini/settings.json", "~/.gemini/settings.json"),
    *(".qwen/settings.json", "~/.qwen/settings.json"),
    *(".cursor/mcp.json", "~/.cursor/mcp.json"),
)


class CodexServer(msgspec.Struct, frozen=True):
    """One entry."""

    file: Path
    name: str


class _Entry(msgspec.Struct):
    command: object = None
    args: object = None


class _Project(msgspec.Struct):
    servers: dict[str, _Entry] = msgspec.field(name="mcpServers", default_factory=dict)


class _File(_Project):
    projects: dict[str, _Project] = {}


def codex_servers(cwd: Path, environ: Mapping[str, str]) -> list[CodexServer]:
    """Those of the project and of its user, each once; a file that is no such JSON has none.

    Args:
        cwd: The project's directory, absolute.
        environ: ``HOME`` and ``CLAUDE_CONFIG_DIR`` say where the user's files are.
    """
    files = dict.fromkeys(_files(cwd, environ))
    return [CodexServer(file, name) for file in files for name in _names(file, str(cwd))]


def _files(cwd: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    for place in PLACES:
        head, _, rest = place.partition("/")
        match head:
            case "~":
                base = environ.get("HOME")
            case "$CLAUDE_CONFIG_DIR":
                base = environ.get("CLAUDE_CONFIG_DIR")
            case _:
                base, rest = str(cwd), place
        if base:
            yield Path(base, rest)


def _names(file: Path, cwd: str) -> Iterable[str]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            return []
        found = msgspec.json.decode(file.read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError):
        return []
    project = found.projects.get(cwd, _Project())
    entries = {**found.servers, **project.servers}
    return [name for name, entry in entries.items() if _is_codex(entry)]


def _is_codex(entry: _Entry) -> bool:
    """``codex mcp-server``, also by a path, and as a package that ``npx`` runs."""
    args = entry.args if isinstance(entry.args, list) else []
    words = [str(entry.command), *map(str, args)]
    return "mcp-server" in words and any(
        word.rpartition("/")[2].partition("@")[0] == "codex" for word in words
    )
