"""How a plan stands, in one line: as its summary, and while somebody waits for it."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from subagents.cli.show import render
from subagents.text import duration, milliseconds_of

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import PlanStanding

GOOD: Final = "ok"


def title(found: "PlanStanding") -> str:
    """``nightly (r-…)``; its id alone where it has no name."""
    return found.plan_id if found.name is None else f"{found.name} ({found.plan_id})"


def states(found: "PlanStanding") -> str:
    """``3 of 4 ok, 1 failed``."""
    counts = Counter[str]()
    for state, count in found.states.items():
        counts[render.word(state)] += count
    others = [f"{count} {word}" for word, count in counts.items() if word != GOOD]
    return ", ".join([f"{found.states.get(GOOD, 0)} of {found.steps} ok", *others])


def took_ms(found: "PlanStanding", now_ms: float | None = None) -> int | None:
    """From its start to its end, or to now; None = it has not ended, or nobody knows."""
    began_ms = milliseconds_of(found.created_at)
    ended_ms = milliseconds_of(found.ended_at) or now_ms
    return None if began_ms is None or ended_ms is None else round(ended_ms - began_ms)


def line(found: "PlanStanding", now_ms: float | None = None) -> str:
    """``plan nightly (r-…): 3 of 4 ok, 1 failed · 2m 5s``."""
    took = took_ms(found, now_ms)
    return f"plan {title(found)}: {states(found)}{'' if took is None else f' · {duration(took)}'}"
