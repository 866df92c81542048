"""How texts, numbers and times are written for readers: the only formatter of the package.

Every command imports this module, so patterns and modules that few of them need come with their
first use.

What workers wrote is data from somebody untrusted. On a line of ours it can start no line of its
own, move no cursor and turn no text around; with several lines it stands in a fence that nothing
in it can end.
"""

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, overload

from subagents.errors import UsageError

if TYPE_CHECKING:
    from decimal import Decimal

LINE_CHARS_MAX: Final = 300
"""The length of ``one_line`` unless the caller asks for another."""
DURATION_MS_MAX: Final = 365 * 24 * 3_600_000
"""A year; a longer one is a slip of the unit."""
DURATION_CHARS_MAX: Final = 64
"""The longest text that is parsed as a duration."""

_ESCAPE: Final = r"\x1b\[[0-?]*[ -/]*[@-~]?"
_HARMFUL: Final = rf"{_ESCAPE}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"

# -- texts --------------------------------------------------------------------------------------


def harmless(text: str) -> str:
    """``text`` without escape sequences and control characters, except tab and line feed.

    Workers' texts reach the terminal of the person who asked; they may not move its cursor, write
    its clipboard or hide lines.
    """
    return text if text.isprintable() else re.sub(_HARMFUL, "", text)


def one_line(text: str, chars_max: int | None = LINE_CHARS_MAX) -> str:
    """``text`` on one line with single spaces, of printable characters only, cut when it is long.

    Args:
        text: Of any length.
        chars_max: None = the whole.
    """
    # Whole texts can be megabytes; a line needs only their beginning.
    kept = text if chars_max is None else text[: 8 * chars_max]
    if "\x1b" in kept:
        kept = re.sub(_ESCAPE, "", kept)
    line = " ".join(kept.split())
    if not line.isprintable():
        line = " ".join("".join(char for char in line if char.isprintable()).split())
    if chars_max is None:
        return line
    return cut(f"{line}…" if len(text) > 8 * chars_max else line, chars_max)


def cut(text: str, chars_max: int) -> str:
    """At most ``chars_max`` characters; an ellipsis stands for the end that is missing."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1].rstrip()}…"


def cut_start(text: str, chars_max: int) -> str:
    """At most ``chars_max`` characters; an ellipsis stands for the beginning that is missing."""
    return text if len(text) <= chars_max else f"…{text[len(text) - chars_max + 1 :]}"


def cut_middle(text: str, chars_max: int) -> str:
    """At most about ``chars_max`` characters, the beginning and the end, with a note between."""
    if len(text) <= chars_max:
        return text
    note = f"\n… ({len(text) - chars_max:,} characters left out) …\n"
    half = max((chars_max - len(note)) // 2, 1)
    return f"{text[:half]}{note}{text[-half:]}"


@overload
def shortened(text: str, chars_max: int, where: str = "") -> str: ...
@overload
def shortened(text: str | None, chars_max: int, where: str = "") -> str | None: ...
def shortened(text: str | None, chars_max: int, where: str = "") -> str | None:
    """The first ``chars_max`` characters, then how many are missing and where they are.

    Args:
        text: None stays None.
        chars_max: Without the note.
        where: What shows the whole: ``subagents result r-…``; "" = it is not mentioned.
    """
    if text is None or len(text) <= chars_max:
        return text
    place = f": {where}" if where else ""
    return f"{text[:chars_max]}… ({len(text) - chars_max} more characters{place})"


def fence(text: str) -> str:
    """Quote untrusted text so that nothing in it can end the quote."""
    ticks = "```"
    if "`" in text:
        longest = max(len(run) for run in re.findall(r"`+", text))
        ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{text}\n{ticks}"


def quoted(text: str) -> str:
    """A worker's text on one line in quotes, or fenced when it has several or is long."""
    line = one_line(text)
    return f'"{line}"' if line == text else f"says:\n{fence(text)}"


def listed(names: Sequence[str], names_max: int, total: int | None = None) -> str:
    """``a, b and 3 more``, each name on one line.

    Args:
        names: Those that are known, in order.
        names_max: So many are named.
        total: How many there are, when ``names`` are not all of them.
    """
    shown = ", ".join(one_line(name, chars_max=None) for name in names[:names_max])
    more = max(total or 0, len(names)) - min(len(names), names_max)
    return f"{shown} and {more} more" if more > 0 else shown


# -- numbers ------------------------------------------------------------------------------------


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 error``, ``2 errors``, ``3 tries`` (``plural`` where it is not the noun with an s)."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def compact(count: int) -> str:
    """A number of tokens: ``950``, ``4.2k``, ``80k``, ``1.5M``."""
    if count < 1_000:
        return str(count)
    # 999,950 and more would round to 1000k.
    divisor, sign = (1_000_000, "M") if count >= 999_950 else (1_000, "k")
    return f"{count / divisor:.1f}".removesuffix(".0") + sign


def money(usd: float) -> str:
    """``$0.50``; what is less than a cent keeps two digits, and is never ``$0.00``."""
    if usd >= 0.01 or usd <= 0:
        return f"${usd:.2f}"
    from decimal import Decimal  # noqa: PLC0415

    # A float as small as 0.00002 would be spelled 2e-05.
    return f"${Decimal(f'{usd:.2g}'):f}"


def cost_bound(usd: float, *, unknown_runs: int, runs: int = 1) -> str:
    """``$0.03``; where a part is unknown ``≥ $0.03``, and of several runs how many did not say.

    Args:
        usd: What is known.
        unknown_runs: Of how many runs not all is known.
        runs: Of how many it is the sum.
    """
    if not unknown_runs:
        return money(usd)
    missing = f", {counted(unknown_runs, 'run')} not reported" if runs > 1 else ""
    return f"≥ {money(usd)}{missing}"


def size(number: int) -> str:
    """Bytes as ``512 bytes``, ``1.5 KiB``, ``3.2 MiB``, ``40.0 GiB``."""
    for power, sign in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**power:
            return f"{number / 1024**power:.1f} {sign}"
    return counted(number, "byte")


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; ``signal 99`` when it has no name here."""
    import signal  # noqa: PLC0415

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# -- times --------------------------------------------------------------------------------------


def duration(milliseconds: int) -> str:
    """``850ms``, ``3.4s``, ``12s``, ``3m 5s``, ``2h 10m``, ``3d 4h``: rounded down, 0 at least."""
    if milliseconds < 1_000:
        return f"{max(milliseconds, 0)}ms"
    if milliseconds < 10_000:
        return f"{milliseconds // 100 / 10:g}s"
    # Cut, not rounded: what has taken 59.9 s has not taken a minute.
    seconds = milliseconds // 1_000
    for large, small, each, sub in _STEPS:
        if seconds >= each:
            whole, rest = f"{seconds // each}{large}", seconds % each // sub
            return f"{whole} {rest}{small}" if rest else whole
    return f"{seconds}s"


_STEPS: Final = (("d", "h", 86_400, 3_600), ("h", "m", 3_600, 60), ("m", "s", 60, 1))


def age(milliseconds: int) -> str:
    """``0s ago``, ``30s ago``, ``3m 5s ago``."""
    return f"{duration(milliseconds // 1_000 * 1_000) if milliseconds >= 1_000 else '0s'} ago"


def upcoming(at_ms: float, now_ms: float) -> str:
    """``in 35m``, ``tomorrow 02:00``, ``Mon 02:00`` or ``2026-12-24 02:00``, in local time."""
    left_ms = max(round(at_ms - now_ms), 0)
    if left_ms < 3_600_000:
        return f"in {duration(left_ms).split()[0]}"
    from datetime import date  # noqa: PLC0415

    at, now = time.localtime(at_ms / 1_000), time.localtime(now_ms / 1_000)
    days = (date(*at[:3]) - date(*now[:3])).days
    day = ("today", "tomorrow")[days] if days < 2 else "%a" if days < 7 else "%Y-%m-%d"
    return time.strftime(f"{day} %H:%M", at)


def iso(at_ms: int) -> str:
    """Milliseconds since the epoch as ``2026-07-01T14:05:09.250Z``."""
    seconds, rest_ms = divmod(at_ms, 1_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest_ms:03}Z"


def milliseconds_of(text: str | None) -> int | None:
    """The reverse of ``iso``; None = it is not known."""
    if text is None:
        return None
    from datetime import datetime  # noqa: PLC0415

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None


def clock(at_ms: int) -> str:
    """``14:05:09`` in UTC, for readers that have no time zone."""
    return time.strftime("%H:%M:%S", time.gmtime(at_ms / 1_000))


# -- durations as people write them ---------------------------------------------------------------

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_PART: Final = rf"({_NUMBER})(ms|s|m|h|d)"
_ISO: Final = (
    rf"p(?:(?P<d>{_NUMBER})d)?"
    rf"(?:t(?:(?P<h>{_NUMBER})h)?(?:(?P<m>{_NUMBER})m)?(?:(?P<s>{_NUMBER})s)?)?"
)


def parse_duration(text: str, *, field: str) -> int:
    """Read ``250ms``, ``5m``, ``1h30m``, ``2d``, ``PT5M`` or ``90`` (seconds).

    Args:
        text: Parts from large to small, each unit at most once; or ISO 8601 with D, H, M, S; or a
            bare number of seconds. Case and surrounding blanks do not matter.
        field: What it was given for, for the message.

    Returns:
        Whole milliseconds, 0 to ``DURATION_MS_MAX``; see ``whole_ms`` for fractions of one.

    Raises:
        UsageError: Names the field and shows what is allowed.
    """
    plain = text.strip().lower()
    total = None if len(plain) > DURATION_CHARS_MAX else _total(plain)
    if total is None:
        raise UsageError(
            f"{field} must be a duration such as 250ms, 5m, 1h30m, 2d, PT5M or 90 (seconds),"
            f" not {text[:DURATION_CHARS_MAX]!r}",
            details={"field": field},
        )
    if total > DURATION_MS_MAX:
        raise UsageError(
            f"{field} must be at most 365d, not {text.strip()!r}", details={"field": field}
        )
    return whole_ms(total)


def whole_ms(milliseconds: "float | Decimal") -> int:
    """A length of time that was asked for, rounded; never to 0, which often means "no limit"."""
    return max(round(milliseconds), 1) if milliseconds > 0 else 0


def _total(text: str) -> "Decimal | None":
    from decimal import Decimal  # noqa: PLC0415

    if re.fullmatch(_NUMBER, text, re.ASCII):
        return Decimal(text) * 1000
    iso_parts = re.fullmatch(_ISO, text)
    if iso_parts is not None:
        given = {unit: number for unit, number in iso_parts.groupdict().items() if number}
        if not given or text.endswith("t"):
            return None
        return sum(
            (Decimal(number) * _UNITS_MS[unit] for unit, number in given.items()), Decimal(0)
        )
    return _sum_of_parts(text)


def _sum_of_parts(text: str) -> "Decimal | None":
    from decimal import Decimal  # noqa: PLC0415

    total, position, smallest = Decimal(0), 0, _UNITS_MS["d"] + 1
    parts = re.compile(_PART)
    while position < len(text):
        part = parts.match(text, position)
        # From large to small: `5m1h` is more likely a slip than a wish.
        if part is None or _UNITS_MS[part[2]] >= smallest:
            return None
        smallest = _UNITS_MS[part[2]]
        total += Decimal(part[1]) * smallest
        position = part.end()
    return total if text else None


# -- times as people write them -------------------------------------------------------------------

_DATE: Final = r"[0-9]{4}-"
_DAYS: Final = {"today": 0, "yesterday": 1}


def parse_time(text: str, *, now_ms: int, field: str) -> int:
    """Read a time: so long before now, or ISO 8601.

    Args:
        text: ``5m``, ``2d``, ``today``, ``yesterday`` (when it began), ``2026-11-20``,
            ``2026-11-20T14:05:00Z``; a time without a zone is one of this machine's.
        now_ms: Now, in milliseconds since the epoch.
        field: What it was given for, for the message.

    Returns:
        Milliseconds since the epoch.

    Raises:
        UsageError: Neither; names the field and shows both forms.
    """
    plain = text.strip()
    if re.match(_DATE, plain) is None:
        try:
            return now_ms - parse_duration(plain, field=field)
        except UsageError as error:
            # A duration, but too long; anything else may still be a time.
            if "at most" in error.message:
                raise
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    if (days := _DAYS.get(plain.lower())) is not None:
        now = datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone()
        plain = f"{now.date() - timedelta(days)}"
    try:
        return round(datetime.fromisoformat(plain).timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{field} must be today, yesterday, a duration such as 5m, 24h or 2d, or a time such as"
            f" 2026-11-20 or 2026-11-20T14:05:00Z, not {text[:DURATION_CHARS_MAX]!r}",
            details={"field": field},
        ) from error


def chosen(text: str, options: Sequence[str]) -> str:
    """The option whose number was typed, or else what was typed."""
    number = int(text) if text.isdecimal() and text.isascii() and len(text) < 4 else 0
    # Among options that are numbers, such as "2" and "4", another number is an answer of one's own.
    is_place = 1 <= number <= len(options) and not any(map(str.isdecimal, options))
    return options[number - 1] if is_place else text


def camel(name: str) -> str:
    """``retry_count`` → ``retryCount``; a name in camelCase stays as it is."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def tools_in_words(
    tools: Sequence[str] | None, deny: Sequence[str], servers: Sequence[str] | None
) -> list[str]:
    """What a run was narrowed to, of its program's tools and its MCP servers; for a line."""
    found = [f"tools: {', '.join(tools) or 'none'}"] if tools is not None else []
    if tools is None and deny:
        found.append(f"tools: all but {', '.join(deny)}")
    if servers is not None:
        found.append(f"MCP servers: {', '.join(servers) or 'none but ours'}")
    return found
