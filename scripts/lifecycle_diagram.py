"""Draws docs/lifecycle.md from the reducer's own table, so that the page cannot say anything else.

    python -m scripts.lifecycle_diagram [--check] [FILE]

writes the part between the page's two markers; with ``--check`` it changes nothing and exits with 1
when the page is out of date.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from subagents.domain.lifecycle.transitions import STALE, TRANSITIONS
from subagents.domain.run.events import EVENT_TYPES
from subagents.domain.run.run import OVER, Phase

PAGE: Final = "docs/lifecycle.md"
BEGIN: Final = (
    "<!-- lifecycle: written by `make docs` from src/subagents/domain/lifecycle/transitions.py -->"
)
END: Final = "<!-- end of lifecycle -->"
FIRST: Final = (Phase.WAITING, Phase.QUEUED, Phase.ANNOUNCING)
"""Where ``Spawned`` leads: the last when a run it depends on has failed already."""
STEPS_AT_MOST: Final = 4
"""Event names on one arrow; more would not be read."""


def diagram() -> str:
    """The phases and what leads from one to another, as a Mermaid state diagram."""
    arrows: dict[tuple[Phase, Phase], list[str]] = {}
    for phase, kind, targets in _rows():
        for target in targets:
            if target is not phase:
                arrows.setdefault((phase, target), []).append(kind)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {phase}: Spawned" for phase in FIRST]
    lines += [
        f"    {source} --> {target}: {_named(kinds)}"
        for (source, target), kinds in sorted(arrows.items(), key=lambda arrow: _order(*arrow[0]))
    ]
    lines += [f"    {phase} --> [*]" for phase in Phase if phase in OVER]
    return "\n".join([*lines, "```"])


def transition_table() -> str:
    """Every legal pair of phase and event, and the phases it may lead to."""
    lines = ["| phase | event | may lead to |", "|---|---|---|"]
    for phase, kind, targets in _rows():
        shown = ", ".join("stays" if target is phase else f"`{target}`" for target in targets)
        lines.append(f"| `{phase}` | `{kind}` | {shown} |")
    return "\n".join(lines)


def stale_table() -> str:
    """In which phases an event is late or doubled: journaled, and nothing else."""
    lines = ["| event | is stale in |", "|---|---|"]
    for kind in EVENT_TYPES:
        phases = [phase for phase in Phase if (phase, kind) in STALE]
        if phases:
            lines.append(f"| `{kind.__name__}` | {', '.join(f'`{phase}`' for phase in phases)} |")
    return "\n".join(lines)


def drawn(page: str) -> str:
    """``page`` with everything between its markers drawn anew.

    Raises:
        ValueError: A marker is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    parts = (
        BEGIN,
        diagram(),
        "## Every legal step",
        transition_table(),
        "## Stale events",
        "A late or doubled event is a fact, not news: it is journaled and changes nothing else.",
        stale_table(),
        END,
    )
    return before + "\n\n".join(parts) + after


def main(arguments: list[str]) -> int:
    """``[--check] [FILE]``; returns the exit code."""
    is_check = "--check" in arguments
    file = Path(next((each for each in arguments if each != "--check"), PAGE))
    page = file.read_text(encoding="utf-8")
    if drawn(page) == page:
        return 0
    if is_check:
        sys.stderr.write(f"{file} is out of date: run `make docs`\n")
        return 1
    file.write_text(drawn(page), encoding="utf-8")
    return 0


def _rows() -> Iterable[tuple[Phase, str, tuple[Phase, ...]]]:
    """The table in the order of a run's life; ``Spawned`` begins it and is in no row."""
    for phase in Phase:
        for kind in EVENT_TYPES:
            targets = TRANSITIONS.get((phase, kind))
            if targets is not None:
                yield phase, kind.__name__, tuple(each for each in Phase if each in targets)


def _order(source: Phase, target: Phase) -> tuple[int, int]:
    phases = list(Phase)
    return phases.index(source), phases.index(target)


def _named(kinds: list[str]) -> str:
    more = len(kinds) - STEPS_AT_MOST
    shown = ", ".join(kinds[:STEPS_AT_MOST])
    return f"{shown} and {more} more" if more > 0 else shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
