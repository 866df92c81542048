"""Schedules: work that is started at its times, and what became of those times.

A schedule keeps what a spawn would have been given, word for word, and up to when its times were
decided (``decided_to_ms``). Both change in the commit that stores the runs of a time, so no time
is forgotten and none starts its work twice.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NewType

from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.values import RunId, SessionKey, Value, replace

NAME_CHARS_MAX: Final = 60
TIMES_KEPT: Final = 20
"""How many of the newest times stay with their schedule; its runs are kept as all runs are."""
MISSED_MAX: Final = 1_000
"""Missed times are counted up to here."""
SCHEDULES_MAX: Final = 1_000

ScheduleId = NewType("ScheduleId", str)


def tag_of(name: str) -> str:
    """The tag of the runs of the schedule of this name."""
    return f"schedule:{name}"


class Overlap(StrEnum):
    """What a due time does while runs of an earlier one have not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    """Start after them; one such waits, further ones are skipped."""
    CANCEL = "cancel"
    """Cancel them, and start when they have ended."""
    ALLOW = "allow"
    """Start in parallel with them."""


class Missed(StrEnum):
    """What is done about times that passed while nothing could be started."""

    ONCE = "once"
    """Start once for all of them."""
    SKIP = "skip"


class Decision(StrEnum):
    """What became of a due time."""

    STARTED = "started"
    SKIPPED = "skipped"
    """An earlier one's runs had not ended."""
    MISSED = "missed"
    REFUSED = "refused"
    """The spawn was refused; the text says why."""


class DueTime(Value, frozen=True):
    """A time that was due, or several missed ones, and what became of it."""

    due_ms: int
    decision: Decision
    at_ms: int
    """When that was decided."""
    run_ids: tuple[RunId, ...] = ()
    text: str = ""
    """Why nothing was started, or what was done to earlier runs."""
    count: int = 1
    """How many times are due together; ``due_ms`` is the newest of them."""
    by_hand: bool = False


class ScheduledPlan(Value, frozen=True):
    """Its runs are a plan each time."""

    name: str
    budget: Budget | None = None
    jobs: int | None = None
    """The most of its runs that work at once; None = as their lanes allow."""


class Schedule(Value, frozen=True):
    """What to start and when, and how far that has come."""

    id: ScheduleId
    name: str
    when: str
    """Five fields of cron, an alias such as ``@daily``, or ``every 15m``."""
    zone: str
    """IANA name of the time zone in which ``when`` is meant; or a rule as POSIX has it in TZ."""
    specs: tuple[RunSpec, ...]
    cwd: str
    requester: SessionKey
    """Who added it: its runs are theirs."""
    created_at_ms: int
    decided_to_ms: int
    """Every time up to this one was decided on."""
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.ONCE
    plan: ScheduledPlan | None = None
    """None = it is one run."""
    default_agent: str | None = None
    """The agent for specs that name none, where the configuration has no default."""
    has_environment: bool = False
    """Variables were brought for its workers; they are in files of their own."""
    paused_at_ms: int | None = None
    times: tuple[DueTime, ...] = ()
    """What became of the newest times, newest first."""

    @property
    def tag(self) -> str:
        """That each of its runs has."""
        return tag_of(self.name)


def decided(schedule: Schedule, due: DueTime, is_open: Callable[[RunId], bool]) -> Schedule:
    """The schedule after what became of a time; one started by hand leaves its times alone."""
    up_to = schedule.decided_to_ms if due.by_hand else max(schedule.decided_to_ms, due.due_ms)
    times = (due, *schedule.times)
    # Further times are decided by runs that have not ended, however long ago they began.
    old = () if schedule.overlap is Overlap.ALLOW else times[TIMES_KEPT:]
    kept = (*times[:TIMES_KEPT], *(each for each in old if any(map(is_open, each.run_ids))))
    return replace(schedule, decided_to_ms=up_to, times=kept)


def paused(schedule: Schedule, at_ms: int) -> Schedule:
    """The schedule while it starts nothing; one that is paused already stays as it is."""
    return schedule if schedule.paused_at_ms is not None else replace(schedule, paused_at_ms=at_ms)


def resumed(schedule: Schedule, at_ms: int) -> Schedule:
    """The schedule going on; what was due while it was paused is not made up for."""
    if schedule.paused_at_ms is None:
        return schedule
    return replace(schedule, paused_at_ms=None, decided_to_ms=max(schedule.decided_to_ms, at_ms))
