"""One moment of ``watch``: which runs are shown in which order, and what each row says. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from subagents.cli.show import render
from subagents.text import compact, cost_bound, cut_start, duration, milliseconds_of, one_line

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunRow, RunStatus

NAME_CHARS_MAX: Final = 80
HEADERS: Final = ("", "run", "agent", "state", "time", "tokens", "cost", "children", "seen", "now")
WORKING: Final = frozenset({"running", "spawning", "ending", "verifying"})
FAILURES: Final = frozenset({"error", "timeout", "lost"})
ANCESTORS_MAX: Final = 3
STALE_MS: Final = 5 * 60_000
"""The time without a sign of life after which a run is shown in the colour of a warning."""


class Frame:
    """What is known of the runs at one moment, in the order in which they are shown."""

    def __init__(self, found: "Sequence[RunStatus]", folded: "Sequence[RunRow]") -> None:
        self.shown = sorted(found, key=place)
        self.folded = folded
        self._labels = {each.run_id: each for each in found}

    @property
    def is_over(self) -> bool:
        return all(each.outcome is not None for each in (*self.shown, *self.folded))

    @property
    def summary(self) -> str:
        """``2 need you · 3 at work · 1 waiting · 2 failed · 12 done``."""
        counts = Counter(group_of(row) for row in (*self.shown, *self.folded))
        needs = f"need{'s' * (counts[0] == 1)} you"
        words = {0: needs, 2: "at work", 3: "waiting", 1: "failed", 4: "done"}
        return " · ".join(f"{counts[each]} {text}" for each, text in words.items() if counts[each])

    @property
    def fold(self) -> str:
        """What there was no room for, in one line; empty = nothing."""
        if not self.folded:
            return ""
        return f"… {len(self.folded)} more: subagents list"

    def columns(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """Those of ``HEADERS`` in which any of these rows has something to say."""
        last = len(HEADERS) - 1
        return [
            index
            for index in range(len(HEADERS))
            if index == last or any(row[index] not in {"", "-"} for row in rows)
        ]

    def cells(self, row: "RunStatus", now_ms: float) -> list[str]:
        """One row of the table, under ``HEADERS``."""
        tokens = None if row.usage is None else row.usage.tokens
        children = ""
        if row.children_total:
            children = f"{row.children_total - row.children_active}/{row.children_total}"
        age_ms = row.last_activity_age_ms
        return [
            render.icon(row.shown_state),
            self.name(row),
            row.agent_id,
            render.word(row.shown_state),
            render.elapsed(row, now_ms),
            "-" if tokens is None else compact(tokens),
            _cost(row),
            children,
            duration(age_ms) if row.outcome is None and age_ms is not None else "",
            now_of(row),
        ]

    def is_below(self, row: "RunStatus") -> bool:
        """Whether its name begins with that of a run that spawned it."""
        return row.requester_run in self._labels

    def name(self, row: "RunStatus") -> str:
        """Its label behind those of the runs that spawned it, as far as they are shown."""
        names = [row.label or row.run_id]
        above = self._labels.get(row.requester_run or "")
        while above is not None and len(names) <= ANCESTORS_MAX:
            names.insert(0, above.label or above.run_id)
            above = self._labels.get(above.requester_run or "")
        whole = "/".join(one_line(name, chars_max=NAME_CHARS_MAX) for name in names)
        return cut_start(whole, NAME_CHARS_MAX)


def _cost(row: "RunStatus") -> str:
    if row.cost_usd is None:
        return "-"
    unknown = 0 if row.usage is None else row.usage.cost_unknown_runs
    return cost_bound(row.cost_usd, unknown_runs=unknown)


def group_of(row: "RunRow") -> int:
    """0 needs somebody, 1 failed, 2 at work, 3 waits for something, 4 done."""
    if row.outcome is not None:
        return 1 if row.outcome.status in FAILURES else 4
    if row.pending_request_count:
        return 0
    return 2 if row.shown_state in WORKING else 3


def place(row: "RunRow") -> tuple[int, int, str]:
    """By group, then as they were spawned: rows do not jump while nothing happens to them."""
    return (group_of(row), milliseconds_of(row.created_at) or 0, row.run_id)


def now_of(row: "RunStatus") -> str:
    """What it does now: a question first, then its progress and what it was last seen at."""
    text = render.now_text(row)
    if row.outcome is not None or row.pending_request_count or row.shown_state not in WORKING:
        return text
    if row.latest_progress is None:
        return row.last_activity or text
    return f"{text} · {row.last_activity}" if row.last_activity else text
