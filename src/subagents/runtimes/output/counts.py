"""Whole numbers that another program wrote, read without trust."""

from typing import Final

COUNT_MAX: Final = 2**53
"""The largest whole number that JavaScript can tell from its neighbours: a count above it is
nonsense."""


def as_count(value: object, *, least: int = 0) -> int | None:
    """``value`` as a whole number from ``least`` to ``COUNT_MAX``; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Compared as it is: JSON knows whole numbers that no float can hold.
    return int(value) if least <= value <= COUNT_MAX else None
