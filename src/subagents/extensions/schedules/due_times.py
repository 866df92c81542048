"""When a schedule is due: pure, from its expression, its zone and a time.

Expressions are those of cron(5) as Debian's cron reads them, also where clocks are set forward or
back: work of a skipped hour is due right after it, and work of a repeated hour once. What crontabs
of other programs say besides, such as ``FRI-SUN``, is read, too, or refused with how to write it.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from itertools import islice, takewhile
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from subagents.domain.schedules.schedule import MISSED_MAX, Schedule
from subagents.errors import UsageError
from subagents.text import parse_duration

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS: Final = 5
MINUTE, HOUR, DAY_OF_WEEK = 0, 1, 4
FIELD_NAMES: Final = ("minute", "hour", "day-of-month", "month", "day-of-week")
_RANGES: Final = (range(60), range(24), range(1, 32), range(1, 13), range(8))
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
_NAMES: Final[dict[str, int]] = {
    **{name: number for number, name in enumerate(_DAYS)},
    **{name: number for number, name in enumerate(_MONTHS, start=1)},
}
_STEP: Final = re.compile(r"\*/([2-9]|\d\d)(?: \*){4}")
"""``*/15``, of which the words of cronsim could be read as one minute of the hour."""
_TERM: Final = re.compile(
    r"(?P<first>\*|[0-9]{1,2}|[A-Z]{3})(-(?P<last>[0-9]{1,2}|[A-Z]{3}))?(/(?P<step>[0-9]+))?"
)
EVERY_MS_MIN: Final = 10_000
WHEN_CHARS_MAX: Final = 200
_EVERY: Final = re.compile(r"every\s+(?P<length>\S.*)", re.IGNORECASE)
_EXAMPLES: Final = "'0 3 * * *', '@daily' or 'every 15m'"
_RULE: Final = re.compile(r"(?:[A-Za-z]{3,9}|<[-+A-Za-z0-9]{3,9}>)[-+]?[0-9][-+<>A-Za-z0-9,./:]*")
"""A zone as POSIX writes it in TZ: its letters, then hours behind (or, with -, before) UTC."""
_RULE_FILE: Final = b"TZif2" + bytes(39)
"""The head of a file as zoneinfo(5) keeps them, without one change of the clock."""


def check_when(when: str, zone: str) -> None:
    """Raise UsageError unless these say when something is due."""
    zone_of(zone)
    if len(when) > WHEN_CHARS_MAX:
        raise _refusal(when[:40], f"has over {WHEN_CHARS_MAX} characters")
    if every_ms(when) is None:
        _check_terms(when)
        try:
            next(CronSim(cron_of(when), datetime.now(zone_of(zone))))
        except CronSimError as error:
            raise _refusal(when, str(error).lower()) from error
        except (StopIteration, ValueError, OverflowError) as error:
            raise _refusal(when, "is never due") from error


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name, or of a rule as POSIX has it in TZ (``EST5EDT,M3.2.0,M11.1.0``).

    Raises:
        UsageError: It is neither.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if _RULE.fullmatch(name) and (found := _zone_of_rule(name)) is not None:
            return found
        raise UsageError(
            f'zone "{name}" is not a time zone',
            hint="an IANA name, such as Europe/Berlin or UTC",
            details={"field": "zone"},
        ) from error


@lru_cache(maxsize=100)
def _zone_of_rule(rule: str) -> ZoneInfo | None:
    """By the reader of zone files: they end with such a rule."""
    try:
        return ZoneInfo.from_file(BytesIO(_RULE_FILE * 2 + b"\n" + rule.encode() + b"\n"))
    except ValueError:
        return None


def cron_of(when: str) -> str:
    """The five fields that are meant.

    Raises:
        UsageError: There are more or fewer, or an alias is not known.
    """
    text = when.strip()
    if text.startswith("@"):
        meant = ALIASES.get(text.lower())
        if text.lower() == "@reboot":
            way_out = "take the others (grep -v @reboot); that line can call: subagents spawn TASK"
            raise _refusal(when, "is at no time that comes again", way_out)
        if meant is None:
            raise _refusal(when, f"is none of {', '.join(ALIASES)}")
        return meant
    fields = text.upper().split()
    if len(fields) != FIELDS:
        raise _refusal(when, "needs five fields: minute hour day-of-month month day-of-week")
    days = ",".join(map(_to_sunday, fields[DAY_OF_WEEK].split(",")))
    return " ".join((*fields[:DAY_OF_WEEK], days))


def _to_sunday(term: str) -> str:
    """A range that ends on Sunday ends with day 7: 0 would come before its beginning."""
    found = _TERM.fullmatch(term)
    if found is None or found["last"] not in ("SUN", "0") or found["first"] in ("SUN", "0", "*"):
        return term
    step = f"/{found['step']}" if found["step"] else ""
    return f"{found['first']}-7{step}"


def _check_terms(when: str) -> None:
    """Raise UsageError for ranges that run backwards and steps that are none."""
    for position, field in enumerate(cron_of(when).split()):
        for term in field.split(","):
            found = _TERM.fullmatch(term)
            if found is not None:
                _check_term(when, position, term, found)


def _check_term(when: str, position: int, term: str, found: re.Match[str]) -> None:
    name, all_values = FIELD_NAMES[position], _RANGES[position]
    first, last = _number(found["first"]), _number(found["last"])
    if first is not None and last is not None and last < first:
        end, begin = all_values[-1 if position != DAY_OF_WEEK else -2], all_values[0]
        parts = ((first, end), (begin, last))
        instead = ",".join(f"{one}" if one == other else f"{one}-{other}" for one, other in parts)
        raise _refusal(when, f"{name} {term} ends before it begins: write {instead}")
    values = _values(position, found)
    if found["step"] and found["step"] != "1" and len(values) == 1:
        raise _refusal(
            when,
            f"{name} {term} is only ever {values[0]}: write {values[0]}, or, for a length of time "
            "that goes on from one hour or day into the next, 'every …'",
        )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else _NAMES.get(text or "")


def _values(position: int, found: re.Match[str]) -> list[int]:
    """What a term stands for, in order; 7 is Sunday as 0 is. Empty = the parser refuses it."""
    all_values = _RANGES[position]
    first, last = _number(found["first"]), _number(found["last"])
    if first is None:
        first, last = all_values[0], all_values[-1]
    elif last is None:
        last = all_values[-1] if found["step"] else first
    values = range(first, last + 1)[:: int(found["step"] or 1) or 1]
    return list(dict.fromkeys(each % 7 for each in values) if position == DAY_OF_WEEK else values)


@lru_cache(maxsize=1_000)
def every_ms(when: str) -> int | None:
    """The time from one due time to the next; None = it is an expression of cron.

    Raises:
        UsageError: It is no length of time, or too short or long.
    """
    match = _EVERY.fullmatch(when.strip())
    if match is None:
        return None
    found = parse_duration(match["length"], field="when")
    if found < EVERY_MS_MIN:
        raise _refusal(when, "must be at least 10 seconds")
    return found


def in_words(when: str) -> str:
    """``At 03:00 on Monday through Friday``; ``every 15m`` as it is."""
    if every_ms(when) is not None:
        return when
    fields = cron_of(when).split()
    for position in (MINUTE, HOUR):
        fields[position] = ",".join(
            _even_or_listed(position, term) for term in fields[position].split(",")
        )
    if found := _STEP.fullmatch(" ".join(fields)):
        return f"Every {found[1]} minutes"
    return CronSim(" ".join(fields), datetime.fromtimestamp(0, ZoneInfo("UTC"))).explain()


def _even_or_listed(position: int, term: str) -> str:
    """``*/45`` is no "every 45th minute", since it begins again with each hour: ``0,45``."""
    found = _TERM.fullmatch(term)
    if found is None or not found["step"] or len(_RANGES[position]) % int(found["step"]) == 0:
        return term
    return ",".join(map(str, _values(position, found)))


def _refusal(when: str, why: str, hint: str = f"for example {_EXAMPLES}") -> UsageError:
    return UsageError(f'when "{when}": {why}', hint=hint, details={"field": "when"})


def due_after(schedule: Schedule, after_ms: int) -> Iterator[int]:
    """The times after ``after_ms`` at which it is due, in milliseconds since 1970, in order."""
    every = every_ms(schedule.when)
    if every is not None:
        passed = (after_ms - schedule.created_at_ms) // every
        while True:
            passed += 1
            yield schedule.created_at_ms + passed * every
    zone = zone_of(schedule.zone)
    for at in CronSim(cron_of(schedule.when), datetime.fromtimestamp(after_ms / 1000, zone)):
        due_ms = round(at.timestamp() * 1000)
        if due_ms > after_ms:
            yield due_ms


def next_due(schedule: Schedule) -> int | None:
    """When it is due next; None = it is paused, or never again.

    Never, too, where its time zone is none that this machine knows any more.
    """
    if schedule.paused_at_ms is not None:
        return None
    try:
        return next(due_after(schedule, schedule.decided_to_ms), None)
    except UsageError:
        return None


class Passed(NamedTuple):
    """Times that are due, or were."""

    newest_ms: int
    number: int
    """How many; at most ``MISSED_MAX``."""


def passed(schedule: Schedule, now_ms: int) -> Passed | None:
    """The times up to now that were not decided on; None = there are none."""
    if schedule.paused_at_ms is not None:
        return None
    found = [
        *takewhile(
            lambda due_ms: due_ms <= now_ms,
            islice(due_after(schedule, schedule.decided_to_ms), MISSED_MAX),
        )
    ]
    if not found:
        return None
    newest_ms = _newest_until(schedule, now_ms) if len(found) == MISSED_MAX else found[-1]
    return Passed(newest_ms, len(found))


def _newest_until(schedule: Schedule, now_ms: int) -> int:
    every = every_ms(schedule.when)
    if every is not None:
        return now_ms - (now_ms - schedule.created_at_ms) % every
    before = datetime.fromtimestamp(now_ms // 1000 + 1, zone_of(schedule.zone))
    newest = next(CronSim(cron_of(schedule.when), before, reverse=True))
    return round(newest.timestamp() * 1000)
