"""What runs used of the caps that they share (``shared_caps``), and what follows when one is spent.

The sums are kept in memory, by the ledger's step that changes a run, and made again from the stored
runs at every start: there is no second truth that a crash could leave behind. A spawn looks at one
sum for each cap.

In a cluster they are what this start of the node saw, and the cluster tells what the others did
(``share``). A plan's runs are all in one partition, so the budget of a plan is never shared.

When a cap is spent, live runs under it are stopped with what they have, and new ones are refused.
Runs that wait in a queue wait for the next day, or end where there is none.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.budgets import shared_caps
from subagents.domain.rules.budgets.budgets import COST
from subagents.domain.rules.budgets.request_holds import Cap, Counted, Need
from subagents.domain.rules.budgets.shared_caps import NOTHING, SharedCap, Used
from subagents.domain.run.events import BudgetExhausted
from subagents.domain.run.run import BudgetStop, Phase, Run
from subagents.domain.run.spec import PlanBudget, Resolved, RunSpec
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.errors import Forbidden
from subagents.ports import Amount, CapKey, CapShare, CapWanted, Place, RunFilter, readable

log = logging.getLogger(__name__)

PAGE: Final = 500
LOOK_S: Final = 60.0
"""The wall clock can jump: look at least this often whether the day is over."""
AT_WORK: Final = frozenset({Phase.SPAWNING, Phase.RUNNING, Phase.ENDING})


class Day(NamedTuple):
    """One day where the daemon is, in milliseconds since 1970."""

    begin_ms: int
    end_ms: int

    @property
    def end_text(self) -> str:
        """``2026-11-23 00:00 CET``."""
        return f"{datetime.fromtimestamp(self.end_ms / 1000).astimezone():%Y-%m-%d %H:%M %Z}"


def local_day(now_ms: int) -> Day:
    """The day of this moment in the daemon's time zone; 23 or 25 hours where clocks change."""
    midnight = datetime.fromtimestamp(now_ms / 1000).replace(  # noqa: DTZ006  the local zone
        hour=0, minute=0, second=0, microsecond=0
    )
    ends = [int((midnight + timedelta(days=days)).timestamp() * 1000) for days in (0, 1)]
    return Day(*ends)


class SharedSpending:
    """See the module.

    Args:
        kernel: Its ledger tells of each change of a run.
        caps: Those of the configuration.
        day_of: The day of a moment.
    """

    def __init__(
        self, kernel: Kernel, caps: Sequence[SharedCap], day_of: Callable[[int], Day] = local_day
    ) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._configured = tuple(caps)
        self._plans: dict[str, SharedCap] = {}
        self._day_of = day_of
        self._day = Day(0, 0)
        self._used: dict[str, Used] = {}
        self._spent: dict[str, SharedCap] = {}
        """Caps of which nothing is left."""
        self._to_stop: dict[str, SharedCap] = {}
        """The caps among these whose runs were not stopped yet."""
        self._changed = asyncio.Event()
        self._tell: Callable[[], None] | None = None
        """What is called when the other nodes should know; None = there are none."""
        self._before: dict[str, Used] | None = None
        """What all stored runs had used when this start began to count; None = it did not yet."""
        self._shares: dict[str, CapShare] = {}
        self._kept: dict[str, Amount] = {}
        """What may be used and held here of each cap that is shared, before requests must wait."""
        self._needs: dict[AttemptId, Mapping[str, Amount]] = {}
        """What requests that wait could use in addition, of each cap."""
        self.has_news = False
        """Something was used here that the others do not know of."""
        kernel.ledger.recorded = self.record

    # -- the sums ----------------------------------------------------------------------------

    @property
    def caps_in_use(self) -> tuple[SharedCap, ...]:
        """Those of the configuration, and of plans that have an open run."""
        plans = (run.resolved.plan for run in self._ledger.live.values())
        open_plans = {plan.id for plan in plans if plan is not None}
        in_use = (cap for name, cap in self._plans.items() if name in open_plans)
        return (*self._configured, *in_use)

    @property
    def day(self) -> Day:
        """Today."""
        self._turn_day(self._clock.now_ms())
        return self._day

    def used(self, cap: SharedCap) -> Used:
        """What is gone of it; of a daily one, today."""
        self._turn_day(self._clock.now_ms())
        return self._sum(cap)

    def _sum(self, cap: SharedCap) -> Used:
        """On all nodes, as far as known."""
        own = self._used.get(cap.key, NOTHING)
        if self._tell is None or cap.plan is not None:
            return own
        share = self._shares.get(cap.key)
        if share is None:
            return own.plus((self._before or {}).get(cap.key, NOTHING))
        used = share.others_used
        others = Used(used.tokens, 0, used.usd, *share.others_held, share.others_cost_unknown)
        return own.plus(others)

    async def load(self) -> None:
        """Make the sums again, from the stored runs."""
        seen = None if self._tell is None or self._before is None else self._used
        self._used, self._plans, self._spent, self._to_stop = {}, {}, {}, {}
        if seen is None:
            now = self._clock.now_ms()
            self._day = day = self._day_of(now)
            if any(cap.is_daily for cap in self._configured):
                await self._off_loop(lambda: self._count_day(day))
            if lasting := [cap for cap in self._configured if not cap.is_daily]:
                await self._off_loop(lambda: self._count(RunFilter(), lasting))
        if self._tell is not None:
            if seen is None:
                self._before, seen = self._used, {}
            keys = {cap.key for cap in self._configured}
            self._used = {key: used for key, used in seen.items() if key in keys}
        await self.adopt(await self._off_loop(self._store.load_open))
        self._look_at_limits(self._configured)

    async def recall(self, runs: Iterable[Run]) -> None:
        """Count what the plans of these have used that had no open run when this start counted."""
        plans = ((run, run.resolved.plan) for run in runs)
        await self.adopt([run for run, plan in plans if plan and plan.id not in self._plans])

    async def adopt(self, open_runs: Sequence[Run]) -> None:
        """Count what the plans of runs that become ours have used; before they are."""
        plans = {run.resolved.plan.id: run.resolved.plan for run in open_runs if run.resolved.plan}
        caps = {cap.key: cap for cap in map(self._know_plan, plans.values())}
        for key in caps:
            self._used.pop(key, None)
            self._spent.pop(key, None)
        if caps:
            await self._off_loop(lambda: self._count_plans(open_runs, caps))
            self._look_at_limits(caps.values())

    def _count(self, where: RunFilter, caps: Sequence[SharedCap]) -> None:
        for run in self._pages(where):
            self._add(run, shared_caps.used_by(run), caps)

    def _count_plans(self, open_runs: Iterable[Run], plans: Mapping[str, SharedCap]) -> None:
        """Of each plan: its steps, what else their requesters asked for, and all below them."""
        seen: set[RunId] = set()
        requesters = {run.requester for run in open_runs if run.resolved.plan is not None}
        filters = [RunFilter(requester=each) for each in requesters]
        filters.append(RunFilter(steps_of=tuple(cap.plan or "" for cap in plans.values())))
        pending = [run for each in filters for run in self._pages(each)]
        while pending:
            run = pending.pop()
            if run.id in seen or run.resolved.plan is None:
                continue
            seen.add(run.id)
            key = f"plan:{run.resolved.plan.id}"
            if key in plans:
                self._add(run, shared_caps.used_by(run), [plans[key]])
            below = (readable(self._store, child.run_id) for child in run.children)
            pending += [found for found in below if found is not None]

    def _count_day(self, day: Day) -> None:
        daily = [cap for cap in self._configured if cap.is_daily]
        seen: set[RunId] = set()
        # In a cluster that begins, the open runs of all nodes: later each node says what it saw.
        found = (
            (*self._pages(RunFilter(ended_after_ms=day.begin_ms)), *self._store.load_open())
            if self._tell is None
            else self._pages(RunFilter(active_since_ms=day.begin_ms))
        )
        for run in found:
            if run.id in seen or not any(cap.is_of(run) for cap in daily):
                continue
            seen.add(run.id)
            used = shared_caps.used_by(run)
            if run.times.created_at_ms < day.begin_ms:
                before = self._used_before(run.id, day.begin_ms)
                used = used.minus(before._replace(held_tokens=0, held_usd=0.0))
            self._add(run, used, daily)

    def _used_before(self, run_id: RunId, at_ms: int) -> Used:
        """What a run that is older than the day had used until then, by its journal."""
        run: Run | None = None
        after = 0
        while entries := self._store.journal(run_id, after_seq=after, limit=PAGE):
            for entry in entries:
                if entry.at_ms >= at_ms:
                    return NOTHING if run is None else shared_caps.used_by(run)
                run = reduce(run, entry.event).run
            after = entries[-1].seq
        return NOTHING if run is None else shared_caps.used_by(run)

    def _pages(self, where: RunFilter) -> Iterable[Run]:
        where = replace(where, archived=True, limit=PAGE)
        while found := self._store.runs(where):
            yield from found
            last = Place(found[-1].times.created_at_ms, found[-1].id)
            where = replace(where, behind=last)

    def record(self, before: Run | None, run: Run, at_ms: int) -> None:
        """Take over one change of a run's attempts; most change nothing here."""
        if not self._configured and run.resolved.plan is None:
            return
        if run.resolved.plan is not None and run.resolved.plan.id not in self._plans:
            self._know_plan(run.resolved.plan)
        known = NOTHING if before is None else shared_caps.used_by(before)
        more = shared_caps.used_by(run).minus(known)
        if more == NOTHING:
            return
        self._turn_day(at_ms)
        caps = self._caps_of(run.spec, run.resolved)
        for cap in caps:
            self._used[cap.key] = self._used.get(cap.key, NOTHING).plus(more)
        self._look_at_limits(caps)
        if self._tell is not None and self._configured:
            self.has_news = True

    def _caps_of(self, spec: RunSpec, resolved: Resolved) -> list[SharedCap]:
        """The caps under which a run falls; of all plans, which may be many, only its own."""
        found = [cap for cap in self._configured if cap.holds_for(spec, resolved)]
        plan = None if resolved.plan is None else self._plans.get(resolved.plan.id)
        return found if plan is None else [*found, plan]

    def _know_plan(self, plan: PlanBudget) -> SharedCap:
        cap = SharedCap(key=f"plan:{plan.id}", limit=plan.budget, plan=plan.id)
        self._plans[plan.id] = cap
        return cap

    def _add(self, run: Run, more: Used, caps: Iterable[SharedCap]) -> None:
        for cap in caps:
            if cap.is_of(run):
                self._used[cap.key] = self._used.get(cap.key, NOTHING).plus(more)

    def _turn_day(self, at_ms: int) -> None:
        """At midnight what was used of daily caps is nothing again; what is held stays held."""
        if at_ms < self._day.end_ms:
            return
        self._day = self._day_of(at_ms)
        for cap in self._configured:
            if cap.is_daily:
                held = self._used.get(cap.key, NOTHING)
                self._used[cap.key] = Used(
                    held_tokens=max(held.held_tokens, 0), held_usd=max(held.held_usd, 0.0)
                )
                for sums in (self._shares, self._kept, self._before or {}):
                    sums.pop(cap.key, None)
                self._spent.pop(cap.key, None)
                self._to_stop.pop(cap.key, None)
        self._changed.set()

    def _look_at_limits(self, caps: Iterable[SharedCap]) -> None:
        for cap in caps:
            is_spent = shared_caps.is_spent(cap, self._sum(cap))
            if is_spent and cap.key not in self._spent:
                self._spent[cap.key] = self._to_stop[cap.key] = cap
                self._changed.set()

    # -- what is asked -------------------------------------------------------------------------

    def caps_for(self, run: Run, counted: Counted) -> list[Cap]:
        """What a request of the run must fit into."""
        self._turn_day(self._clock.now_ms())
        caps = self._caps_of(run.spec, run.resolved)
        own = shared_caps.caps_for(run, caps, self._used, counted)
        return own if self._tell is None else [self._within_share(cap) for cap in own]

    def _within_share(self, cap: Cap) -> Cap:
        """The same cap, of which nothing is left but what is kept for this node."""
        found = next((each for each in self._configured if each.key == cap.key), None)
        if found is None:
            return cap
        given = self._kept.get(cap.key, Amount())
        kept = given.usd if cap.dimension is COST else given.tokens
        own, total = self._used.get(cap.key, NOTHING), self._sum(found)
        spent = cap.dimension.of(total.minus(own))
        return cap._replace(gone=cap.gone + cap.limit - kept, spent=cap.spent + spent)

    def is_ended_by(self, run: Run, more: Amounts) -> bool:
        """Whether so much more use of the run spends a cap that is not spent yet."""
        used = Used(more.tokens, more.total_tokens, more.cost_usd)
        return any(
            cap.key not in self._spent and shared_caps.is_spent(cap, self._sum(cap).plus(used))
            for cap in self._caps_of(run.spec, run.resolved)
        )

    def admit(self, run: Run) -> bool:
        """Whether a queued run may start an attempt now."""
        if not self._spent:
            return True
        caps = self._caps_of(run.spec, run.resolved)
        return not any(cap.key in self._spent for cap in caps)

    def check(self, spec: RunSpec, resolved: Resolved) -> None:
        """Refuse a new run under a cap of which nothing is left.

        Raises:
            Forbidden: Guardrail ``budget``: which cap, what is used of it, and until when.
        """
        if not self._configured and resolved.plan is None:
            return
        self._turn_day(self._clock.now_ms())
        for cap in (each for each in self._caps_of(spec, resolved) if each.key in self._spent):
            used = shared_caps.text(cap, self._sum(cap))
            hint = f"raise it in subagents.toml ([{cap.key}]) and restart the daemon"
            if cap.plan is not None:
                hint = "it is the plan's for good: start what is left as a plan of its own"
            elif cap.is_daily:
                hint = f"spawn it again after {self._day.end_text}, or {hint}"
            error = Forbidden(f"{cap.name} is used up: {used}", guardrail="budget", hint=hint)
            until = {"until": self._day.end_text} if cap.is_daily else {}
            error.details = {**error.details, "key": cap.key, **until}
            raise error

    # -- what the nodes of a cluster keep of it ------------------------------------------------

    def share(self, tell: Callable[[], None]) -> None:
        """The caps of the configuration are those of all nodes: call ``tell`` when one is short."""
        self._tell = tell

    def reserve(self, run: Run, need: Need, counted: Counted) -> None:
        """A request of the run waits until so much of each of its caps is kept for it."""
        caps = shared_caps.caps_for(run, self._caps_of(run.spec, run.resolved), self._used, counted)
        needs: dict[str, Amount] = {}
        for cap in caps:
            own = self._used.get(cap.key, NOTHING)
            tokens, usd = needs.get(cap.key, Amount())
            if cap.dimension is not COST:
                # The request takes the place of what the run holds now, so ``gone`` may be less.
                ahead = int(cap.gone) - own.tokens - own.held_tokens
                tokens = max(need.input_tokens + need.output_tokens + ahead, 0)
            else:
                ahead_usd = cap.gone - own.cost_usd - own.held_usd
                usd = max(need.cost_usd(need.output_tokens) + ahead_usd, 0.0)
            needs[cap.key] = Amount(tokens, usd)
        self._needs[run.attempt_id] = needs
        if self._tell is not None:
            self._tell()

    def unreserve(self, attempt: AttemptId) -> None:
        """Its request waits no more."""
        self._needs.pop(attempt, None)

    def wanted(self) -> dict[CapKey, CapWanted]:
        """What was used and is needed here; until the answer nothing starts that is not in it."""
        self._turn_day(self._clock.now_ms())
        self.has_news = False
        found = {}
        for cap in self._configured:
            own = self._used.get(cap.key, NOTHING)
            before = (self._before or {}).get(cap.key, NOTHING)
            needs = [each.get(cap.key, Amount()) for each in self._needs.values()]
            used, held = Amount(own.tokens, own.cost_usd), Amount(own.held_tokens, own.held_usd)
            known = self._kept.get(cap.key, Amount())
            self._kept[cap.key] = Amount(
                min(known.tokens, used.tokens + held.tokens), min(known.usd, used.usd + held.usd)
            )
            found[self._cap_key(cap)] = CapWanted(
                cap.limit.max_tokens,
                cap.limit.max_cost_usd,
                used,
                held,
                Amount(sum(each.tokens for each in needs), sum(each.usd for each in needs)),
                own.cost_unknown,
                Amount(before.tokens + before.held_tokens, before.cost_usd + before.held_usd),
                before.cost_unknown,
            )
        return found

    def learn(self, shares: Mapping[CapKey, CapShare]) -> None:
        """What the others used, and what is kept for us; what was asked before midnight is void."""
        for cap in self._configured:
            share = shares.get(self._cap_key(cap))
            if share is not None:
                self._shares[cap.key], self._kept[cap.key] = share, share.kept
        self._look_at_limits(self._configured)

    def _cap_key(self, cap: SharedCap) -> CapKey:
        if not cap.is_daily:
            return CapKey(cap.key, "")
        return CapKey(cap.key, f"{datetime.fromtimestamp(self.day.begin_ms / 1000):%Y-%m-%d}")  # noqa: DTZ006  the local zone

    # -- what follows --------------------------------------------------------------------------

    async def run(self) -> None:
        """Stop runs as caps are spent, and let queued ones start when the day is over."""
        while True:
            if self._ledger.failure is None:
                now = self._clock.now_ms()
                if now < self._day.begin_ms:
                    # The clock was ahead: what was used counts, but not until the day it showed.
                    self._day = self._day_of(now)
                self._turn_day(now)
                self._stop_under_spent()
                if self._ledger.lanes.unpark():
                    self._ledger.fill_lanes()
            left_s = max(self._day.end_ms - self._clock.now_ms(), 0) / 1000
            await wait_at_most(self._clock, min(left_s + 0.001, LOOK_S), self._changed)
            self._changed.clear()

    def _stop_under_spent(self) -> None:
        now = self._clock.now_ms()
        spent, self._to_stop = self._to_stop, {}
        for cap in spent.values():
            used = shared_caps.text(cap, self._sum(cap))
            stop = BudgetStop(by=RunId(cap.key), label="", used=used, at_ms=now, name=cap.name)
            for run in tuple(self._ledger.live.values()):
                # What waits under a daily cap waits on, for tomorrow.
                is_ended = run.phase in AT_WORK or (not cap.is_daily and not run.is_settled)
                if is_ended and run.budget.stop is None and cap.is_of(run):
                    self._ledger.apply_now(run.id, BudgetExhausted(at_ms=now, stop=stop))
