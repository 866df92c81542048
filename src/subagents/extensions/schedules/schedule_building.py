"""Schedules as answers."""

from collections.abc import Sequence
from typing import Final

import msgspec

from subagents.api.answers.dry_run import checks_of
from subagents.api.calls.services import Services
from subagents.api.wire.schedule_answers import ScheduledRun, ScheduledTimeRow, ScheduleRow
from subagents.api.wire.wire_struct import iso_or_none, made
from subagents.api.wire.words import UNSAID
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId
from subagents.domain.schedules.schedule import DueTime, Schedule
from subagents.extensions.schedules.due_times import in_words, next_due
from subagents.extensions.schedules.schedules import Schedules
from subagents.text import iso, one_line

TASK_CHARS_MAX: Final = 200


def row(schedule: Schedule, schedules: Schedules) -> ScheduleRow:
    """How a schedule stands, and what it starts.

    Args:
        schedule: A stored one, of this daemon's.
        schedules: Know which of its runs have not ended.
    """
    found = _standing(schedule, schedules.running(schedule))
    return msgspec.structs.replace(found, runs=[_started(each) for each in schedule.specs])


def _started(spec: RunSpec) -> ScheduledRun:
    contract = spec.verification
    return made(
        ScheduledRun,
        label=spec.label,
        checks=[*checks_of(contract)],
        on_failure=UNSAID if contract is None else contract.on_failure,
        retry_until_verified=spec.retry_until_verified,
        attempts_max=spec.attempts_max,
        budget=spec.budget,
    )


def _standing(schedule: Schedule, running: Sequence[RunId]) -> ScheduleRow:
    plan, first = schedule.plan, schedule.specs[0]
    agents = {spec.agent_id for spec in schedule.specs}
    return made(
        ScheduleRow,
        schedule,
        schedule_id=schedule.id,
        runs=(),
        words=in_words(schedule.when),
        next_at=iso_or_none(next_due(schedule)),
        task=one_line(first.label or first.task if plan is None else plan.name, TASK_CHARS_MAX),
        agent_id=(agents.pop() or schedule.default_agent) if len(agents) == 1 else None,
        steps=None if plan is None else len(schedule.specs),
        budget=None if plan is None else plan.budget,
        running=[*running],
        times=[_time(each) for each in schedule.times],
        warnings=(),
    )


async def rows(schedules: Schedules) -> list[ScheduleRow]:
    """All of them, oldest first, whose ever they are."""
    found = await schedules.everywhere()
    running = await schedules.running_of(found)
    return [_standing(each, running[each.id]) for each in found]


async def diagnosed(services: Services) -> list[ScheduleRow]:
    """What ``GET /v1/diagnostics`` says of them."""
    return await rows(Schedules.of(services.engine))


def _time(due: DueTime) -> ScheduledTimeRow:
    return made(ScheduledTimeRow, due, decided_at=iso(due.at_ms), times=due.count)
