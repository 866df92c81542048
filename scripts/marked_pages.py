"""The generated part of a page stands between two lines that name it."""

import html
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def drawn_anew(page: str, begin: str, end: str, *parts: str) -> str:
    """``page`` with these parts, an empty line between them, in place of what stood there.

    Raises:
        ValueError: One of the two lines is missing.
    """
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the page needs the lines {begin} and {end}")
    return before + "\n\n".join((begin, *parts, end)) + after


def without_generated(page: str) -> str:
    """The page without the parts that are drawn, which is what somebody wrote."""
    return re.sub(
        r"^<!-- (?!not run)[^\n]+: .+?^<!-- end[^\n]* -->$",
        "",
        page,
        flags=re.DOTALL | re.MULTILINE,
    )


def update(arguments: Sequence[str], page: str, draw: Callable[[str], str]) -> int:
    """What a script that draws a page does with ``[--check] [FILE]``; returns the exit code.

    Args:
        arguments: Of its command line; with ``--check`` nothing is written, and 1 = out of date.
        page: The file when none is named.
        draw: The new text of the page, from the text that is there.
    """
    is_check = "--check" in arguments
    file = Path(next((each for each in arguments if each != "--check"), page))
    text = file.read_text(encoding="utf-8")
    new = draw(text)
    if new == text:
        return 0
    if is_check:
        sys.stderr.write(f"{file} is out of date: run `make docs`\n")
        return 1
    file.write_text(new, encoding="utf-8")
    return 0


def cell(text: str) -> str:
    """A text on one line, as a cell of a table takes it.

    Forges end a cell at a ``|`` also in code, and the site shows a backslash there: so it is
    escaped as HTML.
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        f"<code>{html.escape(part[1:-1], quote=False).replace('|', '&#124;')}</code>"
        if part.startswith("`") and "|" in part
        else part.replace("|", r"\|")
        for part in parts
    )
