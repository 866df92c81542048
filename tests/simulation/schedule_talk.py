"""A schedule in the simulation: whatever crashes, each of its times starts its work once.

``Times`` is what the judge knows of schedules, from committed batches and from the file.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

from subagents.domain.run.run import Run
from subagents.domain.run.spec import RunSpec, ScheduledTime
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.schedules.schedule import (
    Missed,
    Overlap,
    Schedule,
    ScheduledPlan,
    ScheduleId,
)
from subagents.engine.engine import Engine
from subagents.errors import SubagentsError
from subagents.extensions.schedules.schedules import SET_BACK_MS, Schedules
from subagents.ports import Batch

T = TypeVar("T")
Call = Callable[[Callable[[Engine], Coroutine[Any, Any, T]]], Coroutine[Any, Any, T]]

NAME: Final = "tick"
READER: Final = f"schedule {NAME}"
EVERY: Final = "every 10s"


def is_outdated(reader: str, run: Run | None) -> bool:
    """Whether a good result was marked as read because its schedule was due again."""
    is_good = run is not None and run.outcome is not None and run.outcome.is_ok
    return is_good and reader.startswith(READER)


def _key(time: ScheduledTime) -> tuple[str, int, bool]:
    return time.schedule, time.due_ms, time.by_hand


def _is_forgotten(before: Schedule, now: Schedule) -> bool:
    """Whether times that were decided are to come; a clock that was set back far begins anew."""
    return 0 < before.decided_to_ms - now.decided_to_ms <= SET_BACK_MS


class Times:
    """Which times of schedules were decided, and with which runs.

    Args:
        fail: Takes a broken invariant and what broke it.
    """

    def __init__(self, fail: Callable[[str, str], None]) -> None:
        self._fail = fail
        self._known: dict[ScheduleId, Schedule] = {}
        self._started: dict[tuple[str, int, bool], frozenset[RunId]] = {}
        """By schedule, due time, and whether by hand: both may be of one millisecond."""
        self.may_be_gone = False
        """Somebody asked for their removal; whether it was done need not be known."""

    def on_commit(self, batch: Batch) -> None:
        """What one batch says of schedules, and of the runs that it creates for them."""
        made: dict[tuple[str, int, bool], set[RunId]] = {}
        for run_id in batch.created:
            time = batch.runs[run_id].resolved.scheduled
            if time is not None:
                made.setdefault(_key(time), set()).add(run_id)
        for key, run_ids in made.items():
            if key in self._started:
                self._fail("a time starts its work once", f"{key}: {sorted(run_ids)}")
            schedule = batch.schedules.get(ScheduleId(key[0]))
            listed = () if schedule is None else schedule.times
            # Removed in this very batch, it was there when they were stored.
            is_removed = schedule is None and key[0] in batch.schedules
            if not is_removed and not any(run_ids == {*each.run_ids} for each in listed):
                self._fail("a time is decided with its runs", f"{key}: {sorted(run_ids)}")
            self._started[key] = frozenset(run_ids)
        for schedule_id, schedule in batch.schedules.items():
            self._look_at(schedule_id, schedule)

    def _look_at(self, schedule_id: ScheduleId, schedule: Schedule | None) -> None:
        before = self._known.pop(schedule_id, None)
        if schedule is None:
            return
        self._known[schedule_id] = schedule
        if before is not None and _is_forgotten(before, schedule):
            self._fail("what was decided stays decided", schedule_id)
        for each in schedule.times:
            # Of itself, or of the one that it replaced, whose open runs count for its overlap.
            is_known = any(
                key[1:] == (each.due_ms, each.by_hand) and run_ids == {*each.run_ids}
                for key, run_ids in self._started.items()
            )
            if each.run_ids and not is_known:
                self._fail("a time is decided with its runs", f"{schedule_id} {each.due_ms}")

    def may_cancel(self, run: Run) -> bool:
        """Whether a later time of its schedule ends the run, also when that cannot be stored."""
        time = run.resolved.scheduled
        known = None if time is None else self._known.get(ScheduleId(time.schedule))
        return known is not None and known.overlap is Overlap.CANCEL

    def reload(self, runs: Iterable[Run], schedules: Iterable[Schedule]) -> None:
        """After a crash: the file must hold what was committed."""
        found: dict[tuple[str, int, bool], set[RunId]] = {}
        for run in runs:
            time = run.resolved.scheduled
            if time is not None:
                found.setdefault(_key(time), set()).add(run.id)
        for key, run_ids in found.items():
            if self._started.get(key, run_ids) != run_ids:
                self._fail("a time starts its work once", f"{key} after a restart")
            self._started[key] = frozenset(run_ids)
        stored = {each.id: each for each in schedules}
        names = {each.name for each in stored.values()}
        for schedule_id, known in self._known.items():
            now = stored.get(schedule_id)
            if known.name not in names and not self.may_be_gone:
                self._fail("nothing acknowledged is lost", f"{schedule_id} after a restart")
            if now is not None and _is_forgotten(known, now):
                self._fail("what was decided stays decided", f"{schedule_id} after a restart")
        self._known = {}
        for schedule_id, schedule in stored.items():
            self._look_at(schedule_id, schedule)


class ScheduleTalk:
    """The person who adds a schedule, starts it by hand now and then, and removes it at last.

    Args:
        seed: Decides what is scheduled; three seeds of four have no schedule.
        call: Asks the living daemon.
        session: An operator's.
        spec: Makes a run of a label.
        times: Of the judge; told before they are removed.
    """

    def __init__(
        self,
        seed: int,
        call: Call[Any],
        session: SessionKey,
        spec: Callable[[str], RunSpec],
        times: Times,
    ) -> None:
        self._times = times
        self._rng = random.Random(f"{seed}:schedule")
        self._call = call
        self._session = session
        self._spec = spec
        self.is_wanted = self._rng.random() < 0.25

    async def go_on(self) -> None:
        """Add it, however often the daemon dies meanwhile; then use it until cancelled."""
        rng = self._rng
        wanted = self._wanted()
        while True:
            added = await self._try(lambda engine: Schedules.of(engine).add(wanted, replaces=True))
            if added is not None:
                break
            await asyncio.sleep(1 + rng.random())
        while True:
            await asyncio.sleep(40 * rng.random())
            act = rng.choice(("run_now", "pause", "resume"))
            await self._try(lambda engine, act=act: _acted(engine, act))  # type: ignore[misc]  # bound by the default

    async def remove(self) -> None:
        """So that everything can come to rest."""
        self._times.may_be_gone = True
        while True:
            found = await self._try(_all)
            if found == ():
                return
            await self._try(_removed)
            await asyncio.sleep(0.5)

    def _wanted(self) -> Schedule:
        rng = self._rng
        several = rng.random() < 0.3
        labels = [NAME, f"{NAME}-too"] if several else [NAME]
        specs = tuple(self._spec(label) for label in labels)
        return Schedule(
            id=ScheduleId(""),
            name=NAME,
            when=EVERY,
            zone="UTC",
            specs=specs,
            cwd="/",
            requester=self._session,
            created_at_ms=0,
            decided_to_ms=0,
            overlap=rng.choice([*Overlap]),
            missed=rng.choice([*Missed]),
            plan=ScheduledPlan(name=NAME) if several else None,
        )

    async def _try(self, request: Callable[[Engine], Coroutine[Any, Any, T]]) -> T | None:
        try:
            found: T = await self._call(request)
        except SubagentsError:
            return None
        return found


async def _all(engine: Engine) -> tuple[Schedule, ...]:
    return Schedules.of(engine).all


async def _removed(engine: Engine) -> None:
    for each in Schedules.of(engine).all:
        await Schedules.of(engine).remove(each.id)


async def _acted(engine: Engine, act: str) -> None:
    for each in Schedules.of(engine).all:
        await getattr(Schedules.of(engine), act)(each.id)
