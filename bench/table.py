"""What was measured against what was wanted, as one table; a miss is printed as a miss."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Percentiles(NamedTuple):
    p50_ms: float
    p99_ms: float


def percentiles(seconds: Sequence[float]) -> Percentiles:
    """Median and 99th percentile (nearest rank) in milliseconds; NaN when there is nothing."""
    if not seconds:
        return Percentiles(math.nan, math.nan)
    ordered = sorted(seconds)

    def rank(part: float) -> float:
        return ordered[max(math.ceil(part * len(ordered)) - 1, 0)] * 1000

    return Percentiles(rank(0.5), rank(0.99))


class Row(NamedTuple):
    """One measured quantity over all rounds."""

    what: str
    values: list[float]
    unit: str
    target: float | None = None
    """None = shown, not judged."""
    better: Literal["higher", "lower"] = "lower"

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the target; None without one."""
        if self.target is None:
            return None
        if self.better == "higher":
            return self.median >= self.target
        return self.median < self.target

    @property
    def ratio(self) -> float | None:
        """How many times better than wanted: 1 or more is met."""
        if self.target is None or not self.median:
            return None
        if self.better == "higher":
            return self.median / self.target
        return self.target / self.median


def cells(row: Row) -> tuple[str, str, str, str, str]:
    """The row in words: what, measured, target, met or missed, times better than wanted."""
    spread = f"{_number(row.median)} [{_number(min(row.values))}–{_number(max(row.values))}]"
    if row.target is None or row.ratio is None:
        return row.what, f"{spread} {row.unit}", "", "", ""
    sign = "≥" if row.better == "higher" else "<"
    wanted = f"{sign} {_number(row.target)} {row.unit}"
    return (
        row.what,
        f"{spread} {row.unit}",
        wanted,
        "met" if row.is_met else "MISSED",
        (f"{row.ratio:.2f}×"),
    )


HEAD = ("what", "measured: median [min–max]", "target", "", "better than wanted")


def render(rows: Sequence[Row]) -> str:
    """A Markdown table that also reads well in a terminal."""
    lines = [HEAD, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "?"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
