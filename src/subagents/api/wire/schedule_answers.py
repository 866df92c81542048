"""What schedules are and came to, as answers."""

from subagents.api.wire.listing import Listing
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.api.wire.words import UNSAID, MissedPolicy, OverlapPolicy, TimeDecision


class ScheduledTimeRow(WireStruct, frozen=True, kw_only=True):
    """A time that was due, or several missed ones, and what became of it."""

    due_at: Time | None = None
    """When it was due; of several the newest."""
    decision: TimeDecision = UNSAID
    """`started`, `skipped` (an earlier one's runs had not ended), `missed`, or `refused`."""
    decided_at: Time | None = None
    """When that was decided."""
    run_ids: list[str] = []
    """What was started."""
    text: str = ""
    """Why nothing was started, or what else was done."""
    times: int = 1
    """So many times, where several were missed."""
    by_hand: bool = False
    """Somebody started it besides its times."""


class ScheduleRow(WireStruct, frozen=True, kw_only=True):
    """A schedule and how it stands."""

    schedule_id: str = ""
    """Its id."""
    name: str = ""
    """As it was given; no two have the same."""
    when: str = ""
    """Five fields of cron, an alias such as `@daily`, or `every 15m`."""
    zone: str = ""
    """The time zone in which that is meant."""
    words: str = ""
    """The same in words."""
    next_at: Time | None = None
    """When it is due next; null while it is paused."""
    paused_at: Time | None = None
    """Since when it starts nothing; null = it does."""
    overlap: OverlapPolicy = UNSAID
    """What a time does while runs of an earlier one have not ended."""
    missed: MissedPolicy = UNSAID
    """What is done about times that passed while nothing could be started."""
    task: str = ""
    """The beginning of the task of its run; of a plan its name."""
    agent_id: str | None = None
    """Which agent does it, where the schedule says so."""
    steps: int | None = None
    """Of a plan; null = it is one run."""
    tag: str = ""
    """That each of its runs has."""
    cwd: str = ""
    """Where it works."""
    requester: str = ""
    """The session whose runs they are."""
    created_at: Time | None = None
    """When it was added."""
    running: list[str] = []
    """Its runs that have not ended."""
    times: list[ScheduledTimeRow] = []
    """What became of the newest times, newest first."""


class SchedulePage(Listing, frozen=True, kw_only=True):
    """All schedules, oldest first."""

    schedules: list[ScheduleRow] = []
    """Each with what became of its newest times."""


class ScheduleStart(WireStruct, frozen=True, kw_only=True):
    """What a schedule started by hand."""

    run_ids: list[str] = []
    """In the order of its steps."""
    plan_id: str | None = None
    """Of its plan; null = it is one run."""
