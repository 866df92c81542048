"""What schedules are and came to, as answers."""

from subagents.api.wire.listing import Listing
from subagents.api.wire.run_answers import PlannedBudget, PlannedCheck
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.api.wire.words import (
    UNSAID,
    FailurePolicy,
    MissedPolicy,
    OverlapPolicy,
    TimeDecision,
)


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


class ScheduledRun(WireStruct, frozen=True, kw_only=True):
    """What a schedule starts each time, as it was asked for."""

    label: str | None = None
    """Of a step of a plan; null = it has none, or is called like its schedule."""
    checks: list[PlannedCheck] = []
    """What must be true of its output; empty = it has no contract."""
    on_failure: FailurePolicy = UNSAID
    """What follows when a check fails: `retry_once`, `escalate` or `fail`."""
    retry_until_verified: int = 0
    """How often a failed check is tried again."""
    attempts_max: int = 1
    """So many it has at most, the one retry of `onFailure: retry_once` not counted."""
    budget: PlannedBudget | None = None
    """What it and everything below it may use; null = it has no limits of its own."""


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
    runs: list[ScheduledRun] = []
    """What it starts each time, in the order of its steps; empty where all schedules are listed."""
    budget: PlannedBudget | None = None
    """What all steps of its plan may use together; null = nothing bounds them."""
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
    warnings: list[str] = []
    """Of one that was added: what its work would be warned of if it started now."""


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
