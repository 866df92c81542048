"""The tool ``grep``, within the working directory. Blocking, bounded in time and size."""

import fnmatch
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # it ships no types

from subagents.extensions.llm.agent_loop.tools.file_tools import is_text, walked
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds, ToolRefused

MATCHES_MAX: Final = 200
LINE_CHARS_MAX: Final = 300
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A larger file is not searched."""
SEARCH_S: Final = 20.0


def grep(
    bounds: PathBounds, pattern: str, *, path: str, glob: str | None, ignore_case: bool
) -> str:
    """Lines that match, as ``file:line:text``.

    Args:
        bounds: Where to look.
        pattern: A regular expression of RE2's, whose time grows with the text only.
        path: A file, or a directory with all below it.
        glob: Only files whose name, or path, fits; ``*.py``.
        ignore_case: Whether upper and lower case are the same.

    Raises:
        Refused: Outside, not there, or no expression.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        expression: Any = re2.compile(pattern, options)
    except re2.error as error:
        raise ToolRefused(f"pattern: {bytes(error.args[0]).decode('utf-8', 'replace')}") from error
    except UnicodeEncodeError as error:
        raise ToolRefused(f"pattern: {error}") from error
    found: list[str] = []
    due = time.monotonic() + SEARCH_S
    for file in _files(bounds, bounds.existing(path), glob):
        if time.monotonic() > due:
            found.append(f"[stopped after {SEARCH_S:g} s; search below one directory, or use glob]")
            break
        found += _in_file(bounds, expression, file, MATCHES_MAX + 1 - len(found), due)
        if len(found) > MATCHES_MAX:
            found[MATCHES_MAX:] = [f"[more than {MATCHES_MAX} matches; narrow the search]"]
            break
    return "\n".join(found) or "(no match)"


def _files(bounds: PathBounds, start: Path, glob: str | None) -> Iterator[Path]:
    each = iter([start]) if start.is_file() else walked(bounds, start, is_deep=True)
    for file in each:
        names = (file.name, bounds.shown(file))
        if glob is not None and not any(fnmatch.fnmatch(name, glob) for name in names):
            continue
        # A link may lead out of the working directory.
        if bounds.holds(file) and file.is_file():
            yield file


def _in_file(bounds: PathBounds, expression: Any, file: Path, most: int, due: float) -> list[str]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX or not is_text(file):
            return []
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        if expression.search(line.encode()):
            found.append(f"{bounds.shown(file)}:{number}:{line[:LINE_CHARS_MAX]}")
        if len(found) >= most or time.monotonic() > due:
            break
    return found
