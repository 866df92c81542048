"""Starts the work of schedules at their times.

What became of a time is stored in the commit of the runs that it started. So a crash before that
commit leaves the time undecided, to be decided after the restart, and one after it leaves nothing
to do: every time is decided exactly once.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, cast

from subagents.domain.rules.parameter_checks import check_name
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Mode, OnDependencyFailure, RunSpec, ScheduledTime
from subagents.domain.run.values import RunId, SessionKey, announcement_id, replace
from subagents.domain.schedules import schedule as schedules
from subagents.domain.schedules.schedule import (
    NAME_CHARS_MAX,
    SCHEDULES_MAX,
    Decision,
    DueTime,
    Missed,
    Overlap,
    Schedule,
    ScheduleId,
)
from subagents.engine.engine import Engine, HasSession, Part
from subagents.engine.kernel.tasks import wait_at_most
from subagents.engine.runs.dependencies import asked_dependencies
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import Beside, PlanAsked, RunAsked, SpawnContext, Trial
from subagents.errors import (
    Conflict,
    Elsewhere,
    Fenced,
    NotFound,
    StoreUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.extensions.schedules.due_times import check_when, next_due, passed
from subagents.ports import Batch
from subagents.text import counted, one_line

log = logging.getLogger(__name__)

LATE_MS: Final = 60_000
"""A time that is further in the past was missed: nothing could be started then."""
SET_BACK_MS: Final = 3 * 3_600_000
AGAIN_MS: Final = 60_000
"""The time until the next try, where the store could take no new runs."""
MADE_UP_AT_ONCE: Final = 5
MADE_UP_GAP_MS: Final = 10_000
"""Five schedules make up for what they missed in a gap, and five more each ten seconds."""
TEXT_CHARS_MAX: Final = 500
ID_MARK: Final = "s-"


class Schedules(Part):
    """All schedules of this node, and the task that starts what is due."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ledger, self._adapters = engine.ledger, engine.adapters
        self._off_loop, self._clock = engine.adapters.off_loop, engine.adapters.clock
        self._environments = engine.adapters.logs.environments
        self._live: dict[ScheduleId, Schedule] = {}
        """The schedules as they are with the next commit."""
        self._published: dict[ScheduleId, Schedule] = {}
        self._due: dict[ScheduleId, int | None] = {}
        """When to look at each next: at its next time, or later, where it must wait for that."""
        self._changed = asyncio.Event()
        self._must_look_back = False
        self._working: asyncio.Task[None] | None = None
        """Runs ``run`` once there is a schedule: until then nobody has to wait for anything."""
        engine.timers.on_step(self.clock_stepped)

    @classmethod
    def of(cls, engine: Engine) -> "Schedules":
        """Those of an engine."""
        return cast("Schedules", engine.parts["schedules"])

    @property
    def sessions(self) -> frozenset[SessionKey]:
        """See ``Part``: those who added what is in memory."""
        return frozenset(e.requester for e in (*self._live.values(), *self._published.values()))

    async def read(self, has: HasSession) -> Callable[[], None]:
        """See ``Part``."""
        stored = await self._off_loop(self._adapters.store.load_schedules)
        return partial(self._join, [each for each in stored if await has(each.requester)])

    def _join(self, found: Iterable[Schedule]) -> None:
        for each in found:
            self._live[each.id] = self._published[each.id] = each
            self._due[each.id] = next_due(each)
            self._must_look_back = True
        self._changed.set()
        if self._working is not None and self._working.done():
            self._working = None  # it ended with what was in memory before
        self._begin_if_needed()

    def leave(self, sessions: Collection[SessionKey]) -> None:
        """See ``Part``."""
        known = {**self._published, **self._live}
        for schedule_id in [each.id for each in known.values() if each.requester in sessions]:
            for one in (self._live, self._published, self._due):
                one.pop(schedule_id, None)

    def _begin_if_needed(self) -> None:
        if self._live and self._working is None:
            self._working = self._engine.keep(self.run, "schedules")

    def on_commit(self, batch: Batch) -> None:
        """See ``Part``."""
        for schedule_id, schedule in batch.schedules.items():
            if schedule is None:
                self._published.pop(schedule_id, None)
            else:
                self._published[schedule_id] = schedule

    def clock_stepped(self, _by_ms: int) -> None:
        """The machine's clock was set, or it slept: other times may be due now."""
        self._must_look_back = True
        self._changed.set()

    # -- looking -----------------------------------------------------------------------------

    @property
    def all(self) -> tuple[Schedule, ...]:
        """Oldest first."""
        return tuple(self._published.values())

    async def everywhere(self) -> tuple[Schedule, ...]:
        """The same with those of other daemons that share the store.

        Raises:
            StoreUnavailable: It cannot be read.
        """
        if not self._engine.partitions.is_shared:
            return self.all
        return tuple(await self._off_loop(self._adapters.store.load_schedules))

    async def find(self, selector: str) -> Schedule:
        """One by its name or id.

        Raises:
            NotFound: There is none.
            Elsewhere: It is another daemon's.
            StoreUnavailable: Nobody can say whose it is.
        """
        for each in await self.everywhere():
            if selector in {each.name, each.id}:
                await self._engine.partitions.require_session(each.requester)
                return self._published.get(each.id, each)
        raise NotFound(f'no schedule "{selector}"', hint="see: subagents schedule list")

    def running(self, schedule: Schedule) -> tuple[RunId, ...]:
        """Its runs that have not ended, of one of ours."""
        return tuple(run_id for run_id in _started_by(schedule) if self._is_open(run_id))

    async def running_of(self, found: Sequence[Schedule]) -> Mapping[ScheduleId, Sequence[RunId]]:
        """The same of each of these, whose ever they are."""
        of_others = [each for each in found if each.id not in self._published]
        ids = [run_id for each in of_others for run_id in _started_by(each)]
        runs = await self._engine.queries.these(ids) if ids else {}
        is_open = {run_id for run_id, run in runs.items() if not run.is_settled}
        theirs = {each.id: [*filter(is_open.__contains__, _started_by(each))] for each in of_others}
        return {each.id: theirs.get(each.id) or self.running(each) for each in found}

    def keeps(self, name: str) -> bool:
        """See ``Part``."""
        of, is_ours = ScheduleId(name.partition(".")[0]), not self._engine.partitions.is_shared
        others = () if is_ours or name[:2] != ID_MARK else self._adapters.store.load_schedules()
        return of in self._live or any(each.id == of for each in others)

    async def upcoming(self) -> list[tuple[int, str]]:
        """See ``Part``."""
        due = [(next_due(each), each.name) for each in await self.everywhere()]
        return [(due_ms, name) for due_ms, name in due if due_ms is not None]

    # -- changing ----------------------------------------------------------------------------

    async def add(
        self,
        wanted: Schedule,
        environments: Sequence[CallerEnvironment | None] = (),
        *,
        replaces: bool = False,
    ) -> Schedule:
        """Store a schedule, after all that a spawn of its work now would be refused for.

        Args:
            wanted: With any id and times; both are set here.
            environments: For each spec the variables brought for its worker; () = none.
            replaces: Take the place of the one of the same name, if there is one.

        Raises:
            Conflict: There is one of that name, or its place is not to be had.
            Elsewhere: Another daemon decides about its session.
            UsageError: It says no times, or starts what no schedule can start.
            SubagentsError: As ``Spawner.spawn_batch`` would refuse the work now.
        """
        check_when(wanted.when, wanted.zone)
        _check(wanted)
        partitions = self._engine.partitions
        await partitions.require_session(wanted.requester)
        async with partitions.exclusively(f"schedule {wanted.name}"):
            return await self._added(wanted, environments, replaces=replaces)

    async def _added(
        self,
        wanted: Schedule,
        environments: Sequence[CallerEnvironment | None],
        *,
        replaces: bool,
    ) -> Schedule:
        await self._replaced(wanted, replaces=replaces)
        now = self._clock.now_ms()
        schedule = replace(
            wanted,
            id=ScheduleId(ID_MARK + self._adapters.ids.run_id().partition("-")[2]),
            created_at_ms=now,
            decided_to_ms=now,
            has_environment=any(each is not None for each in environments),
        )
        await self._spawn(schedule, schedule.specs, environments, trial=Trial.LATER)
        await self._keep(schedule, environments)
        try:
            replaced = await self._replaced(schedule, replaces=replaces)
            # Nothing is awaited from here on: its session may have become another node's meanwhile.
            await self._engine.partitions.require_session(schedule.requester)
        except SubagentsError:
            await self._forget(schedule)
            raise
        if replaced is not None:
            self._put(replaced.id, None)
            # Its runs go on, and count for the overlap.
            left = (each for each in replaced.times if any(map(self._is_open, each.run_ids)))
            schedule = replace(schedule, times=tuple(left))
        self._put(schedule.id, schedule)
        await self._ledger.committed()
        if replaced is not None:
            await self._forget(replaced)
        return schedule

    async def warnings(
        self, schedule: Schedule, environments: Sequence[CallerEnvironment | None] = ()
    ) -> list[str]:
        """What its work would be warned of if it started now; nothing where it could not."""
        with suppress(SubagentsError):
            found = await self._spawn(schedule, schedule.specs, environments, trial=Trial.NOW)
            return list(dict.fromkeys(text for each in found for text in each.warnings))
        return []

    async def _replaced(self, wanted: Schedule, *, replaces: bool) -> Schedule | None:
        """The schedule whose place a new one of this name takes.

        Raises:
            Conflict: It may not, or there are too many.
        """
        name, part_of = wanted.name, self._engine.partitions.partition_of_session
        others = (each for each in await self.everywhere() if each.id not in self._published)
        known = [*self._live.values(), *others]
        same = next((each for each in known if each.name == name), None)
        if same is not None and not replaces:
            raise Conflict(
                f'there is a schedule "{name}" already ({same.id})',
                hint="--replace puts this one in its place; its runs go on",
            )
        if same is not None and await part_of(same.requester) != await part_of(wanted.requester):
            raise Conflict(
                f'schedule "{name}" ({same.id}) is of another session, {same.requester}, which'
                " another node may decide about",
                hint=f"remove it first: subagents schedule remove {name}",
            )
        if same is None and len(known) >= SCHEDULES_MAX:
            raise Conflict(f"there are {SCHEDULES_MAX} schedules already: remove one")
        return same

    async def remove(self, schedule_id: ScheduleId) -> Schedule:
        """Remove it; runs that it started go on."""
        schedule = self._known(schedule_id)
        self._put(schedule_id, None)
        await self._ledger.committed()
        await self._forget(schedule)
        return schedule

    async def pause(self, schedule_id: ScheduleId) -> Schedule:
        """Let it start nothing until it is resumed; its runs go on."""
        return await self._change(schedule_id, schedules.paused)

    async def resume(self, schedule_id: ScheduleId) -> Schedule:
        """Let it go on with the next time that is due; what was due meanwhile is left out."""
        return await self._change(schedule_id, schedules.resumed)

    async def run_now(self, schedule_id: ScheduleId) -> tuple[Receipt, ...]:
        """Start its work now, besides its times; also while it is paused.

        Raises:
            Conflict: Its overlap is ``skip``, and runs of an earlier time have not ended.
            SubagentsError: As ``Spawner.spawn_batch`` raises it.
        """
        schedule, now = self._known(schedule_id), self._clock.now_ms()
        due = DueTime(due_ms=now, decision=Decision.STARTED, at_ms=now, by_hand=True)
        found = await self._started(schedule, due)
        if isinstance(found, str):
            raise Conflict(
                f'schedule "{schedule.name}": {found}',
                hint=f"wait for it, or add the schedule with another overlap than"
                f" {schedule.overlap}",
            )
        return found

    async def _change(
        self, schedule_id: ScheduleId, change: Callable[[Schedule, int], Schedule]
    ) -> Schedule:
        schedule = self._known(schedule_id)
        changed = change(schedule, self._clock.now_ms())
        if changed is not schedule:
            self._put(schedule_id, changed)
            await self._ledger.committed()
        return changed

    def _known(self, schedule_id: ScheduleId) -> Schedule:
        schedule = self._live.get(schedule_id)
        if schedule is None:
            raise NotFound(f"schedule {schedule_id} was removed")
        return schedule

    def _put(self, schedule_id: ScheduleId, schedule: Schedule | None) -> None:
        self._ledger.put_schedule(schedule_id, schedule)
        if schedule is None:
            self._live.pop(schedule_id, None)
            self._due.pop(schedule_id, None)
        else:
            self._live[schedule_id] = schedule
            self._due[schedule_id] = next_due(schedule)
        self._begin_if_needed()
        self._changed.set()

    # -- the variables for their workers -------------------------------------------------------

    async def _keep(
        self, schedule: Schedule, environments: Sequence[CallerEnvironment | None]
    ) -> None:
        if not schedule.has_environment:
            return
        for at, each in enumerate(environments):
            brought = each if each is not None else CallerEnvironment()
            try:
                keep = partial(self._environments.keep, [_kept_as(schedule, at)], brought)
                await self._off_loop(keep)
            except OSError as error:
                await self._forget(schedule)
                raise StoreUnavailable(
                    f"the variables for its workers cannot be kept: {error}; nothing was stored"
                ) from error

    async def _brought(self, schedule: Schedule) -> list[CallerEnvironment | None]:
        if not schedule.has_environment:
            return []
        try:
            return [
                await self._off_loop(partial(self._environments.read, _kept_as(schedule, at)))
                for at in range(len(schedule.specs))
            ]
        except OSError as error:
            raise Conflict(
                f"the variables that were given with it cannot be read: {error}",
                hint="add it again, with its variables and --replace",
            ) from error

    async def _forget(self, schedule: Schedule) -> None:
        for at in range(len(schedule.specs) if schedule.has_environment else 0):
            await self._off_loop(partial(self._environments.forget, _kept_as(schedule, at)))

    # -- what is due ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Start what is due until cancelled."""
        while True:
            await self.start_due()
            self._changed.clear()
            due = min((each for each in self._due.values() if each is not None), default=None)
            if due is None:
                await self._changed.wait()
            else:
                wait_ms = max(due - self._clock.now_ms(), 1)
                await wait_at_most(self._clock, wait_ms / 1000, self._changed)

    async def start_due(self) -> None:
        """Decide the times that have passed: of those that are made up for, a few at once."""
        now, made_up = self._clock.now_ms(), 0
        if self._must_look_back:
            self._must_look_back = False
            self._look_back(now)
        for schedule_id in tuple(self._live):
            schedule, due = self._live.get(schedule_id), self._due.get(schedule_id)
            if schedule is None or due is None or due > now:
                continue
            times = passed(schedule, now)
            if times is None:
                continue
            is_late = times.number > 1 or now - times.newest_ms > LATE_MS
            if is_late and schedule.missed is Missed.ONCE:
                made_up += 1
                if made_up > MADE_UP_AT_ONCE:
                    self._due[schedule_id] = now + MADE_UP_GAP_MS
                    continue
            await self._decide(schedule, times.newest_ms, times.number)

    def _look_back(self, now_ms: int) -> None:
        """Let nobody wait for a year because the clock was a year ahead for a minute.

        A clock that was set back by less than ``SET_BACK_MS`` starts nothing a second time.
        """
        for schedule in tuple(self._live.values()):
            if schedule.decided_to_ms - now_ms > SET_BACK_MS:
                log.warning(
                    "schedule %s: the clock was set back; its times begin anew", schedule.name
                )
                self._put(schedule.id, replace(schedule, decided_to_ms=now_ms))

    async def _decide(self, schedule: Schedule, due_ms: int, count: int) -> None:
        now = self._clock.now_ms()
        due = DueTime(due_ms=due_ms, decision=Decision.STARTED, at_ms=now, count=count)
        is_late = now - due_ms > LATE_MS
        if is_late and schedule.missed is Missed.SKIP:
            text = f"{counted(count, 'time')} missed: nothing could be started then"
            log.warning("schedule %s: %s", schedule.name, text)
            self._note(replace(due, decision=Decision.MISSED, text=text), schedule.id)
            return
        if missed := count if is_late else count - 1:
            due = replace(due, text=f"makes up for {counted(missed, 'missed time')}")
        try:
            found = await self._started(schedule, due)
        except (StoreUnavailable, Fenced, Elsewhere) as error:
            # Nothing was stored, this time's decision neither: it is still due.
            log.warning("schedule %s cannot start its work yet: %s", schedule.name, error)
            if schedule.id in self._due:  # else another node has it by now, or nobody
                self._due[schedule.id] = now + AGAIN_MS
        except SubagentsError as error:
            text = error.message if error.hint is None else f"{error.message}; {error.hint}"
            self._refuse(schedule, due, text)
        except Exception as error:
            # One of them must not keep the others from starting.
            log.exception("schedule %s", schedule.name)
            self._refuse(schedule, due, repr(error))
        else:
            if isinstance(found, str):
                self._note(replace(due, decision=Decision.SKIPPED, text=found), schedule.id)

    def _refuse(self, schedule: Schedule, due: DueTime, why: str) -> None:
        text = one_line(why, TEXT_CHARS_MAX)
        log.warning("schedule %s: its work was refused: %s", schedule.name, text)
        self._note(replace(due, decision=Decision.REFUSED, text=text), schedule.id)

    def _note(self, due: DueTime, schedule_id: ScheduleId) -> None:
        """The decision is durable with the next commit, unless the schedule is gone."""
        schedule = self._live.get(schedule_id)
        if schedule is not None:
            self._put(schedule_id, schedules.decided(schedule, due, self._is_open))

    async def _started(self, schedule: Schedule, due: DueTime) -> tuple[Receipt, ...] | str:
        """Start its work for a time; a text says why nothing was started.

        Raises:
            SubagentsError: The spawn was refused; nothing was stored.
        """
        running = self.running(schedule)
        after: Sequence[RunId] = ()
        if running and schedule.overlap is Overlap.SKIP:
            return f"{_runs(running)} had not ended"
        if running and schedule.overlap is Overlap.QUEUE:
            if sum(bool({*each.run_ids} & {*running}) for each in schedule.times) > 1:
                return f"{_runs(running)} had not ended, and one time waits already"
            after = running
        elif running and schedule.overlap is Overlap.CANCEL:
            for run_id in running:
                reason = f"schedule {schedule.name} is due again"
                await self._engine.control.cancel(run_id, by=schedule.requester, reason=reason)
            after = [run_id for run_id in running if self._is_open(run_id)]
            due = replace(
                due, text="; ".join(filter(None, (due.text, f"cancelled {_runs(running)}")))
            )
        receipts = await self._spawn(
            schedule,
            [_for_time(spec, schedule, after) for spec in schedule.specs],
            await self._brought(schedule),
            due=due,
        )
        await self._outdate(schedule)
        return receipts

    def _is_open(self, run_id: RunId) -> bool:
        # One that is stored with the next commit counts for whoever starts its work meanwhile.
        run = self._ledger.published.get(run_id) or self._ledger.live.get(run_id)
        return run is not None and not run.is_settled

    async def _spawn(
        self,
        schedule: Schedule,
        specs: Sequence[RunSpec],
        environments: Sequence[CallerEnvironment | None],
        *,
        due: DueTime | None = None,
        trial: Trial | None = None,
    ) -> tuple[Receipt, ...]:
        settings = await self._engine.settings_of(schedule.cwd)
        if schedule.default_agent is not None and settings.defaults.agent is None:
            specs = [
                replace(each, agent_id=each.agent_id or schedule.default_agent) for each in specs
            ]
        brought = environments or [None] * len(specs)
        asked = [
            RunAsked(spec=spec, environment=own) for spec, own in zip(specs, brought, strict=True)
        ]
        plan, time = schedule.plan, None
        if due is not None:
            time = ScheduledTime(
                schedule=schedule.id, name=schedule.name, due_ms=due.due_ms, by_hand=due.by_hand
            )

        def check() -> None:
            if due is None:
                return
            now = self._known(schedule.id)
            if now.paused_at_ms is not None and not due.by_hand:
                raise Conflict(f'schedule "{now.name}" was paused meanwhile')
            if now.overlap is Overlap.SKIP and (running := self.running(now)):
                raise Conflict(f'schedule "{now.name}": {_runs(running)} had not ended')

        def note(runs: Iterable[Run]) -> None:
            if due is not None:
                self._note(replace(due, run_ids=tuple(run.id for run in runs)), schedule.id)

        return await self._engine.spawner.spawn_batch(
            asked,
            SpawnContext(session=schedule.requester, settings=settings, cwd=schedule.cwd),
            plan=None
            if plan is None
            else PlanAsked(name=plan.name, budget=plan.budget, jobs=plan.jobs),
            scheduled=time,
            beside=Beside(check, note),
            trial=trial,
        )

    async def _outdate(self, before: Schedule) -> None:
        """Mark good results of the time before as read: nobody wants to read a hundred of them.

        What did not end ok stays unread until somebody reads it.
        """
        for run_id in next((each.run_ids for each in before.times if each.run_ids), ()):
            try:
                run = await self._engine.queries.run(run_id)
                if run.outcome is not None and run.outcome.is_ok:
                    await self._engine.mailbox.acknowledge(
                        [announcement_id(run_id)], reader=f"schedule {before.name}, due again"
                    )
            except (NotFound, StoreUnavailable, Fenced) as error:
                log.info("the result of %s stays unread: %s", run_id, error)


def _started_by(schedule: Schedule) -> list[RunId]:
    return [run_id for each in reversed(schedule.times) for run_id in each.run_ids]


def _kept_as(schedule: Schedule, at: int) -> RunId:
    return RunId(f"{schedule.id}.{at}")


def _runs(run_ids: Sequence[RunId]) -> str:
    return " ".join(run_ids[:3]) + (f" and {len(run_ids) - 3} more" if len(run_ids) > 3 else "")


def _for_time(spec: RunSpec, schedule: Schedule, after: Sequence[RunId]) -> RunSpec:
    """What is started: named and findable by its schedule, and after what has not ended."""
    tags = spec.tags if schedule.tag in spec.tags else (*spec.tags, schedule.tag)
    # The steps of a plan name each other by their labels, and the plan has a name.
    label = spec.label or (schedule.name if schedule.plan is None else None)
    named = replace(spec, tags=tags, label=label)
    if not after or asked_dependencies(spec):
        return named
    return replace(named, depends_on=tuple(after), on_dependency_failure=OnDependencyFailure.RUN)


def _check(schedule: Schedule) -> None:
    """Refuse what could not be started time after time."""
    check_name("name", schedule.name, chars_max=NAME_CHARS_MAX)
    if schedule.name.startswith(ID_MARK):
        raise UsageError(f'name must not begin with "{ID_MARK}"', details={"field": "name"})
    for spec in schedule.specs:
        for field, is_given, why in (
            ("idempotencyKey", spec.idempotency_key is not None, "each time is started once"),
            ("continues", spec.continues is not None, "a session is continued once"),
            ("mode", spec.mode is Mode.SESSION, "a session does not end by itself"),
        ):
            if is_given:
                raise UsageError(f"{field} is not for schedules: {why}", details={"field": field})
    alone = schedule.plan is None and bool(asked_dependencies(schedule.specs[0]))
    if alone and schedule.overlap in {Overlap.QUEUE, Overlap.CANCEL}:
        raise UsageError(
            f"overlap {schedule.overlap} starts a run after its predecessor: dependsOn and"
            " chainAfter are not for it",
            details={"field": "overlap"},
        )
