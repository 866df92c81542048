"""Durations as people write them: ``250ms``, ``5m``, ``1h30m``, ``2d``, ``PT5M``, ``90`` (seconds).

Source: 5-surfaces §2; 4-observability §2 (``since``).
"""

import re
from decimal import Decimal, InvalidOperation
from typing import Final

from subagents.errors import UsageError

DURATION_MS_MAX: Final = 365 * 24 * 3_600_000
"""A year; a longer one is a slip of the unit."""
TEXT_CHARS_MAX: Final = 64

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_PARTS: Final = re.compile(rf"({_NUMBER})(ms|s|m|h|d)")
_ISO: Final = re.compile(
    rf"p(?:(?P<d>{_NUMBER})d)?(?:t(?:(?P<h>{_NUMBER})h)?(?:(?P<m>{_NUMBER})m)?(?:(?P<s>{_NUMBER})s)?)?"
)


def milliseconds(text: str, *, field: str) -> int:
    """Parse a duration.

    Args:
        text: Parts from large to small, each unit at most once; or ISO 8601 with D, H, M, S; or a
            bare number of seconds. Case and surrounding blanks do not matter.
        field: What it was given for, for the message.

    Returns:
        Whole milliseconds, 0 to ``DURATION_MS_MAX``; a fraction of one is rounded.

    Raises:
        UsageError: Names the field and shows what is allowed.
    """
    plain = text.strip().lower()
    total = None if len(plain) > TEXT_CHARS_MAX else _total(plain)
    if total is None:
        raise UsageError(
            f"{field} must be a duration such as 250ms, 5m, 1h30m, 2d, PT5M or 90 (seconds),"
            f" not {text[:TEXT_CHARS_MAX]!r}",
            details={"field": field},
        )
    if total > DURATION_MS_MAX:
        raise UsageError(
            f"{field} must be at most 365d, not {text.strip()!r}", details={"field": field}
        )
    return round(total)


def seconds(text: str, *, field: str) -> float:
    """Like ``milliseconds``, in seconds."""
    return milliseconds(text, field=field) / 1000


def _total(text: str) -> Decimal | None:
    if re.fullmatch(_NUMBER, text, re.ASCII):
        return _decimal(text) * 1000
    iso = _ISO.fullmatch(text)
    if iso is not None:
        given = {unit: number for unit, number in iso.groupdict().items() if number is not None}
        if not given or text.endswith("t"):
            return None
        return sum((_decimal(number) * _UNITS_MS[unit] for unit, number in given.items()), _ZERO)
    return _parts(text)


def _parts(text: str) -> Decimal | None:
    total, position, smallest = _ZERO, 0, _UNITS_MS["d"] + 1
    while position < len(text):
        part = _PARTS.match(text, position)
        if part is None or _UNITS_MS[part[2]] >= smallest:
            return None
        smallest = _UNITS_MS[part[2]]
        total += _decimal(part[1]) * smallest
        position = part.end()
    return total if text else None


_ZERO: Final = Decimal(0)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:  # pragma: no cover - the pattern admits only digits
        raise ValueError(text) from error
