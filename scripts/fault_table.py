"""The faults that ``make torture`` tried, and what it saw, as a table in docs/failure-modes.md.

    python -m scripts.fault_table [--check] [FILE]

writes the part between the page's two markers from ``tests/torture/seen.json``, which the torture
keeps; with ``--check`` it changes nothing and exits with 1 when the page is out of date.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from scripts.marked_pages import drawn_anew, update

PAGE: Final = "docs/failure-modes.md"
RECORD: Final = Path("tests/torture/seen.json")
BEGIN: Final = "<!-- faults tried: written by `make docs` from tests/torture/seen.json -->"
END: Final = "<!-- end of faults tried -->"


def drawn(page: str, seen: dict[str, Any]) -> str:
    """``page`` with everything between its markers drawn anew.

    Args:
        page: The whole text.
        seen: Part → what the torture wrote of it.

    Raises:
        ValueError: A marker is missing.
    """
    return drawn_anew(page, BEGIN, END, table(seen))


def table(seen: dict[str, Any]) -> str:
    """One row per fault; what was wrong stands below it as such."""
    lines = ["| fault | tried | seen | run |", "|---|---|---|---|"]
    for part, found in seen.items():
        run = f"`{part}`, {found['date']}, {found['seconds']:,.0f} s, seed {found['seed']}"
        lines += [
            f"| {each['fault']} | {each['tried']:,} | {each['seen']} | {run} |"
            for each in found["faults"]
        ]
        lines += [f"| {part} | | **wrong**: {each} | {run} |" for each in found["wrong"]]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """``[--check] [FILE]``; returns the exit code."""
    return update(
        arguments, PAGE, lambda page: drawn(page, json.loads(RECORD.read_text(encoding="utf-8")))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
