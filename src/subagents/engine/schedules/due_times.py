"""When a schedule is due: pure, from its expression, its zone and a time.

Expressions are those of cron(5) as Debian's cron reads them, also where clocks are set forward or
back: work of a skipped hour is due right after it, and work of a repeated hour once.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
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
EVERY_MS_MIN: Final = 10_000
WHEN_CHARS_MAX: Final = 200
_EVERY: Final = re.compile(r"every\s+(?P<length>\S.*)", re.IGNORECASE)
_EXAMPLES: Final = "'0 3 * * *', '@daily' or 'every 15m'"


def check_when(when: str, zone: str) -> None:
    """Raise UsageError unless these say when something is due."""
    zone_of(zone)
    if len(when) > WHEN_CHARS_MAX:
        raise _refusal(when[:40], f"has over {WHEN_CHARS_MAX} characters")
    if every_ms(when) is None:
        try:
            next(CronSim(cron_of(when), datetime.now(zone_of(zone))))
        except CronSimError as error:
            raise _refusal(when, str(error).lower()) from error
        except (StopIteration, ValueError, OverflowError) as error:
            raise _refusal(when, "is never due") from error


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name.

    Raises:
        UsageError: There is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f'zone "{name}" is not a time zone',
            hint="an IANA name, such as Europe/Berlin or UTC",
            details={"field": "zone"},
        ) from error


def cron_of(when: str) -> str:
    """The five fields that are meant.

    Raises:
        UsageError: There are more or fewer, or an alias is not known.
    """
    text = when.strip()
    if text.startswith("@"):
        fields = ALIASES.get(text.lower())
        if fields is None:
            raise _refusal(when, f"is none of {', '.join(ALIASES)}")
        return fields
    if len(text.split()) != FIELDS:
        raise _refusal(when, "needs five fields: minute hour day-of-month month day-of-week")
    return text


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
    words: str = CronSim(cron_of(when), datetime.fromtimestamp(0, ZoneInfo("UTC"))).explain()
    return words


def _refusal(when: str, why: str) -> UsageError:
    return UsageError(
        f'when "{when}": {why}', hint=f"for example {_EXAMPLES}", details={"field": "when"}
    )


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
