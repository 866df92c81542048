"""The recording of ``subagents demo --walkaway`` as a moving picture: docs/walkaway.svg.

    python -m scripts.walkaway_picture [--check]

plays what stands on that page, each line at its own time, faster. It is one file without a script,
and a reader who asked for less motion sees all of it at once.
"""

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from scripts.walkaway_recording import BEGIN, END

PAGE: Final = Path("docs/howto/leave-running.md")
PICTURE: Final = Path("docs/walkaway.svg")
LENGTH_S: Final = 20.0
LINE_PX: Final = 19
MARGIN_PX: Final = 16
WIDTH_PX: Final = 820
CHECKS_S: Final = 3.0
"""Of the length, for the lines at the end, which have no time."""
STYLE: Final = (
    "text{font:13px ui-monospace,monospace;fill:#d6deeb;white-space:pre;"
    "animation:come .01s both}.k{fill:#ff8a80}.y{fill:#a5d6a7}.b{fill:#82b1ff}"
    "@keyframes come{from{opacity:0}to{opacity:1}}"
    "@media(prefers-reduced-motion:reduce){text{animation:none}}"
)
_TIME: Final = re.compile(r"^ +(\d+\.\d)s  ")


def lines_of(page: str) -> list[str]:
    """What the demo printed.

    Raises:
        ValueError: There is no recording.
    """
    _, found, rest = page.partition(BEGIN)
    recording, end, _ = rest.partition(END)
    block = re.search(r"```text\n(.*?)```", recording, re.DOTALL)
    if not found or not end or block is None:
        raise ValueError("the page has no recording")
    return block[1].rstrip("\n").splitlines()


def moments(lines: list[str]) -> Iterator[float]:
    """When each line appears, in seconds of the picture."""
    times = [float(match[1]) for line in lines if (match := _TIME.match(line))]
    pace = (LENGTH_S - CHECKS_S) / max(times)
    untimed_after = sum(1 for line in lines[1:] if line and not _TIME.match(line))
    now, step = 0.0, CHECKS_S / max(untimed_after, 1)
    for number, line in enumerate(lines):
        match = _TIME.match(line)
        if match:
            now = 0.4 + float(match[1]) * pace
        elif number and line:
            now += step
        yield round(now, 2)


def drawn(page: str) -> str:
    """The picture."""
    lines = lines_of(page)
    height = 2 * MARGIN_PX + LINE_PX * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height}" role="img">',
        "<title>subagents demo --walkaway: two agents go on while no daemon lives</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH_PX}" height="{height}" rx="8" fill="#10151f"/>',
    ]
    for number, (line, moment) in enumerate(zip(lines, moments(lines), strict=True)):
        if line:
            y = MARGIN_PX + LINE_PX * number + 13
            parts.append(
                f'<text x="{MARGIN_PX}" y="{y}" xml:space="preserve"{_colour(line)}'
                f' style="animation-delay:{moment}s">{escape(line, quote=False)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _colour(line: str) -> str:
    if "kill -9" in line or "no daemon;" in line:
        return ' class="k"'
    if "✔" in line or line.startswith("All of it") or ": ok," in line:
        return ' class="y"'
    return ' class="b"' if line.startswith("$") else ""


def main(arguments: list[str]) -> int:
    """Write the picture, or compare it; returns the exit code."""
    new = drawn(PAGE.read_text("utf-8"))
    old = PICTURE.read_text("utf-8") if PICTURE.exists() else ""
    if new != old and "--check" in arguments:
        sys.stderr.write(f"{PICTURE} is out of date: run `make docs`\n")
        return 1
    if new != old:
        PICTURE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
