"""When each tier of the tests last ran green, and what it came to, as a table in docs/tests.md.

    python -m scripts.green_page [--check] [FILE]

writes the part between the page's two markers from ``tests/last_green.json``, which
``python -m scripts.gate TIER --record`` writes; with ``--check`` it changes nothing and exits with
1 when the page is out of date.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from scripts.gate import RECORD
from scripts.marked_pages import drawn_anew, update

PAGE: Final = "docs/tests.md"
BEGIN: Final = "<!-- last green: written by `make docs` from tests/last_green.json -->"
END: Final = "<!-- end of last green -->"


def drawn(page: str, record: dict[str, Any]) -> str:
    """``page`` with the table between its markers drawn anew.

    Args:
        page: The whole text.
        record: Tier → what it came to.

    Raises:
        ValueError: A marker is missing.
    """
    lines = ["| tier | last green | tests | minutes | parts, in seconds | on |", "|---" * 6 + "|"]
    for tier, found in record.items():
        parts = ", ".join(f"{part} {seconds}" for part, seconds in found["parts"].items())
        on = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
        lines.append(
            f"| `{tier}` | {found['date']}, `{found['commit']}` | {found['tests']:,} |"
            f" {found['seconds'] / 60:.1f} | {parts} | {on} |"
        )
    return drawn_anew(page, BEGIN, END, "\n".join(lines))


def main(arguments: Sequence[str]) -> int:
    """``[--check] [FILE]``; returns the exit code."""
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return update(arguments, PAGE, lambda page: drawn(page, record))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
