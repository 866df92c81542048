"""The tools ``read``, ``write``, ``edit`` and ``list``, within the working directory. Blocking."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds, ToolRefused
from subagents.text import shortened

READ_LINES_MAX: Final = 2_000
READ_CHARS_MAX: Final = 60_000
FILE_BYTES_MAX: Final = 32 * 1024 * 1024
LIST_MAX: Final = 500
HIDDEN: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Directories whose insides are not listed or searched unless they are named."""
PROBE_BYTES: Final = 8_192


def read(bounds: PathBounds, path: str, *, offset: int, limit: int) -> str:
    """Numbered lines of a text file.

    Args:
        bounds: Where it must be.
        path: Of the file.
        offset: The first line wanted, from 1.
        limit: How many lines at most.

    Raises:
        Refused: No such file, a directory, not text, too large.
    """
    found = _text_file(bounds, path)
    lines = found.read_text("utf-8", "replace").splitlines()
    first = max(offset, 1) - 1
    taken: list[str] = []
    chars = 0
    for number, line in enumerate(lines[first : first + min(limit, READ_LINES_MAX)], first + 1):
        numbered = f"{number}\t{line}"
        chars += len(numbered) + 1
        if chars > READ_CHARS_MAX and taken:
            break
        taken.append(shortened(numbered, READ_CHARS_MAX))
    last = first + len(taken)
    if last < len(lines):
        taken.append(f"[{len(lines) - last} more lines; continue with offset={last + 1}]")
    return "\n".join(taken) or "(no lines)"


def write(bounds: PathBounds, path: str, content: str) -> str:
    """Make a file of this content, with the directories it needs; replaces one that is there.

    Raises:
        Refused: Outside, or a directory.
    """
    found = bounds.inside(path)
    _check_not_of_git(bounds, found, path)
    if found.is_dir():
        raise ToolRefused(f"path: {path} is a directory")
    found.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8", "replace")
    _replace(bounds, found, data)
    return f"{bounds.shown(found)}: {len(data)} bytes written"


def edit(bounds: PathBounds, path: str, old: str, new: str, *, is_all: bool) -> str:
    """Put ``new`` where ``old`` is, which must be there exactly once without ``is_all``.

    Raises:
        Refused: No such file, not text, ``old`` is not there or not unique.
    """
    found = _text_file(bounds, path)
    _check_not_of_git(bounds, found, path)
    if not old:
        raise ToolRefused("old: give the text to replace; use write to make a new file")
    try:
        text = found.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolRefused(f"path: {path} is not UTF-8 text") from error
    count = text.count(old)
    if count == 0:
        raise ToolRefused(f"old: {path} does not hold that text; read it and copy the text exactly")
    if count > 1 and not is_all:
        raise ToolRefused(
            f"old: it is {count} times in {path}; give more of its surroundings, or all"
        )
    _replace(bounds, found, text.replace(old, new).encode("utf-8", "replace"))
    return f"{bounds.shown(found)}: {count} replaced"


def _check_not_of_git(bounds: PathBounds, found: Path, path: str) -> None:
    """Refuse what a later git of the user's would run, or read what to run from."""
    # A file system may not tell capitals from others.
    if any(part.lower() == ".git" for part in found.relative_to(bounds.root).parts):
        raise ToolRefused(
            f"path: {path} belongs to git, which would run what is written there; call git instead"
        )


def listed(bounds: PathBounds, path: str, *, is_deep: bool) -> str:
    """Names below a directory, directories with a slash, files with their size.

    Raises:
        Refused: Outside, or no directory.
    """
    found = bounds.existing(path)
    if not found.is_dir():
        raise ToolRefused(f"path: {path} is no directory; read it")
    names: list[str] = []
    for entry in walked(bounds, found, is_deep=is_deep):
        if len(names) == LIST_MAX:
            names.append(f"[more than {LIST_MAX}; list a directory below, or grep]")
            break
        names.append(_row(bounds, entry))
    return "\n".join(names) or "(empty)"


def walked(bounds: PathBounds, directory: Path, *, is_deep: bool) -> Iterator[Path]:
    """Entries below a directory, by name; links to directories are not followed."""
    with contextlib.suppress(PermissionError):
        for entry in sorted(directory.iterdir()):
            yield entry
            is_below = is_deep and entry.is_dir() and not entry.is_symlink()
            if is_below and entry.name not in HIDDEN:
                yield from walked(bounds, entry, is_deep=True)


def is_text(path: Path) -> bool:
    """A regular file whose beginning holds no NUL."""
    with path.open("rb") as file:
        return b"\0" not in file.read(PROBE_BYTES)


def _row(bounds: PathBounds, entry: Path) -> str:
    name = bounds.shown(entry)
    if entry.is_symlink():
        return f"{name} -> {os.readlink(entry)}"  # noqa: PTH115  Path.readlink cannot take odd bytes
    if entry.is_dir():
        return f"{name}/"
    with contextlib.suppress(OSError):
        return f"{name} ({entry.stat().st_size} bytes)"
    return name


def _text_file(bounds: PathBounds, path: str) -> Path:
    found = bounds.existing(path)
    if found.is_dir():
        raise ToolRefused(f"path: {path} is a directory; list it")
    status = found.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ToolRefused(f"path: {path} is no regular file")
    if status.st_size > FILE_BYTES_MAX:
        raise ToolRefused(f"path: {path} has more than {FILE_BYTES_MAX // 2**20} MiB; use grep")
    if not is_text(found):
        raise ToolRefused(f"path: {path} is not text")
    return found


def _replace(bounds: PathBounds, path: Path, data: bytes) -> None:
    """Whole or not at all, with the permissions of the file before."""
    if path.exists() and not path.is_file():
        raise ToolRefused(f"path: {bounds.shown(path)} is no regular file")
    if not bounds.holds(path.parent):
        raise ToolRefused(f"path: {path} is outside of the working directory {bounds.root}")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    number, draft = tempfile.mkstemp(prefix=".write-", dir=path.parent)
    try:
        with open(number, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(data)
        Path(draft).chmod(mode)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now
