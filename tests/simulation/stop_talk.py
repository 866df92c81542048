"""Planned stops in the simulation: each comes once, at its time, unless it is taken back before.

They draw from a generator of their own, so that what else happens in a seed stays as it was.
``PlannedStops`` is what the judge knows of them, from committed events and from the file.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from subagents.domain.run.events import (
    CancelPlanned,
    CancelWithdrawn,
    TimerCause,
    TimerFired,
)
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId
from subagents.engine.engine import Engine
from subagents.errors import SubagentsError
from subagents.ports import JournalEntry

T = TypeVar("T")

PAUSE_S: Final = 6.0
AFTER_S: Final = 12.0
"""Most are planned less far ahead."""
LATE_S: Final = 60.0
"""So long nothing may be stored on the worst of disks; timers fire in the moment they are due."""
MARK: Final = "plan "


class _Plan(NamedTuple):
    """Times are by the loop's clock, which nobody sets."""

    by: str
    due_s: float
    """Counted from when its commit was seen, which a bad disk keeps waiting."""
    not_before_s: float
    """Counted from when it was asked for."""


class PlannedStops:
    """Which stops are planned, and what became of them.

    Args:
        fail: Takes a broken invariant and what broke it.
    """

    def __init__(self, fail: Callable[[str, str], None]) -> None:
        self._fail = fail
        self._pending: dict[RunId, _Plan] = {}
        self._not_before: dict[str, float] = {}
        """By who plans."""
        self._since_s = 0.0
        """When the daemon that lives now had read its file."""

    def asked(self, by: str, not_before_s: float) -> None:
        """Somebody is about to plan one."""
        self._not_before[by] = not_before_s

    def look_at(self, before: Run, entry: JournalEntry, after: Run, now_s: float) -> None:
        """One committed event, and the run around it, at the loop's time."""
        event = entry.event
        plan = self._pending.get(before.id)
        if plan is not None and now_s > max(plan.due_s, self._since_s) + LATE_S:
            self._fail("a planned stop comes at its time", f"{before.id}: {plan.by}")
        match event:
            case CancelPlanned() if after.control.planned is not None:
                due_s = now_s + (event.due_ms - event.at_ms) / 1000
                self._pending[before.id] = _Plan(event.by, due_s, self._not_before[event.by])
            case CancelWithdrawn():
                self._pending.pop(before.id, None)
            case TimerFired(cause=TimerCause.CANCEL):
                self._came(before, after, self._pending.pop(before.id, None), now_s)
            case _:
                pass
        if after.planned is None:
            self._pending.pop(before.id, None)  # it has ended, or the turn that was meant has
        self._look_at_who(before, after, plan)

    def _came(self, before: Run, after: Run, plan: _Plan | None, now_s: float) -> None:
        if plan is None:
            self._fail("a planned stop comes once, and not when taken back", before.id)
        elif now_s < plan.not_before_s - 2:
            # A clock that was set is followed where it was set by a second and more.
            self._fail("a planned stop comes at its time", f"{before.id} before it")
        if after.control.planned is not None:
            self._fail("a planned stop comes once, and not when taken back", f"{before.id} again")

    def _look_at_who(self, before: Run, after: Run, plan: _Plan | None) -> None:
        """Who planned it is who stopped it."""
        cancel = after.control.cancel
        if cancel is None or before.control.cancel is not None or cancel.cascaded:
            return
        if cancel.by.startswith(MARK) and (plan is None or plan.by != cancel.by):
            self._fail("a planned stop comes once, and not when taken back", f"by {cancel.by}")

    def reload(self, runs: Iterable[Run], now_s: float) -> None:
        """After a crash: what the file says of them, with what nobody was told of any more."""
        self._since_s = now_s
        known, self._pending = self._pending, {}
        for run in runs:
            planned, before = run.planned, known.get(run.id)
            if planned is None:
                continue
            is_known = before is not None and before.by == planned.by
            due_s = before.due_s if before is not None and is_known else now_s + AFTER_S
            # Nobody follows a clock that is set while no daemon lives.
            self._pending[run.id] = _Plan(planned.by, due_s, not_before_s=0.0)


class Host(Protocol):
    """The daemon, as its callers reach it over every crash."""

    is_calm: bool

    async def call(self, request: Callable[[Engine], Coroutine[Any, Any, T]]) -> T: ...


class Judge(Protocol):
    """Who hears of what was promised."""

    view: dict[RunId, Run]
    cancels_asked: set[RunId]
    stops: PlannedStops

    def promised(self, run: Run) -> None: ...


class StopTalk:
    """Somebody who stops runs, and thinks better of it now and then."""

    def __init__(self, seed: int, host: Host, judge: Judge) -> None:
        self._rng = random.Random(f"{seed}:stops")
        self._host, self._judge = host, judge
        self.is_wanted = self._rng.random() < 0.3
        self._plans = 0

    async def go_on(self) -> None:
        """Plan stops until the simulation becomes calm."""
        rng = self._rng
        while not self._host.is_calm:
            await asyncio.sleep(rng.random() * PAUSE_S)
            known = [run for run in self._judge.view.values() if not run.is_settled]
            if known:
                await self._plan(rng.choice(known))

    async def _plan(self, run: Run) -> None:
        rng = self._rng
        self._plans += 1
        by, after_ms = f"{MARK}{self._plans}", 1 + round(rng.random() * AFTER_S * 1000)
        is_turn = run.phase is Phase.RUNNING and rng.random() < 0.4
        self._judge.cancels_asked.add(run.id)
        self._judge.stops.asked(by, asyncio.get_running_loop().time() + after_ms / 1000)
        if is_turn:
            planned = await self._try(
                lambda engine: engine.control.interrupt(run.id, by=by, after_ms=after_ms)
            )
        else:
            planned = await self._try(
                lambda engine: engine.control.plan_cancel(run.id, by=by, after_ms=after_ms)
            )
        if planned is not None and rng.random() < 0.5:
            await asyncio.sleep(rng.random() * AFTER_S)
            await self._try(lambda engine: engine.control.withdraw_cancel(run.id, by=by))

    async def _try(self, request: Callable[[Engine], Coroutine[Any, Any, Run]]) -> Run | None:
        try:
            found = await self._host.call(request)
        except SubagentsError:
            return None
        self._judge.promised(found)
        return found
