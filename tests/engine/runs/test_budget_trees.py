"""Budgets of whole trees on a real engine: racing spawns, restarts, and the report that is left."""

import asyncio
import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.engine.world import ME, World, in_world, settings_of
from tests.simulation.bills import bill_of

from subagents.domain.rules.budgets.budgets import RESERVE
from subagents.domain.run import spending
from subagents.domain.run.events import ChildSpent, SignalReceived, SteerRequested
from subagents.domain.run.outcome import OK, Reason, Status
from subagents.domain.run.run import HOLDS_SLOT, MessageKind, Phase, Run
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.spec import Abilities, Budget, RunSpec
from subagents.domain.run.usage import Amounts, Usage
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.engine.attempts.launch import ref_of
from subagents.errors import Forbidden, NotFound, SubagentsError

_numbers = itertools.count()


async def use(world: World, run_id: RunId, tokens: int, cost: float | None = None) -> None:
    """The worker of a live run reports its totals."""
    usage = Usage(tokens_in=tokens, cost_usd=cost)
    seen = UsageSeen(key=f"usage{next(_numbers)}", usage=usage)
    number = len(world.engine.ledger.live[run_id].attempts)
    event = SignalReceived(at_ms=world.clock.now_ms(), attempt=number, signal=seen)
    await world.clock.result(world.engine.ledger.apply(run_id, event))
    await world.clock.idle()


async def running(world: World, parent: RunId | None = None, **spec: object) -> RunId:
    """A worker that hangs until it is stopped, below ``parent``."""
    if parent is None:
        run_id = await world.spawn("hang", **spec)
    else:
        run_id = await world.spawn_child(parent, "hang", **spec)
    await world.until(run_id, Phase.RUNNING)
    return run_id


async def refused(world: World, parent: RunId, **spec: object) -> Forbidden:
    with pytest.raises(Forbidden) as found:
        await world.spawn_child(parent, "hang", **spec)
    assert found.value.guardrail == "budget"
    return found.value


def used_by(world: World, root: RunId) -> int:
    """From scratch: every attempt of the root and of all runs below it."""
    found = {run.id: run for run in world.store.load_open()}
    return bill_of(found, found[root]).tokens or 0


# -- reserving ----------------------------------------------------------------------------------


@pytest.mark.requirement("budget:reserved-at-spawn", "field:stale-pool-read")
@pytest.mark.world(max_spawn_depth=2, max_children_per_agent=100)
async def test_fifty_racing_children_get_no_more_than_there_is(world: World) -> None:
    """prime-agent #1192: 270k tokens were spent under a cap of 100k, each saw a stale total."""
    lead = await running(world, budget=Budget(max_tokens=100_000))
    session = world.engine.ledger.published[lead].session_key
    tries = [
        world.try_spawn(
            "hang", requester=session, is_operator=False, budget=Budget(max_tokens=7_000)
        )
        for _ in range(50)
    ]
    found = await world.clock.result(asyncio.gather(*tries, return_exceptions=True))

    accepted = [each for each in found if not isinstance(each, BaseException)]
    errors = [each for each in found if isinstance(each, Forbidden)]
    assert (len(accepted), len(errors)) == (12, 38)
    assert {error.guardrail for error in errors} == {"budget"}
    run = await world.run(lead)
    assert spending.promised(run).tokens == 84_000


@pytest.mark.requirement("budget:reserved-at-spawn")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_that_ends_gives_back_what_it_did_not_use(world: World) -> None:
    lead = await running(world, budget=Budget(max_tokens=1_000, max_runs=3))
    first = await running(world, lead, budget=Budget(max_tokens=800))
    error = await refused(world, lead, budget=Budget(max_tokens=200))
    assert "has 100 of 1k tokens left for sub-agents (100 more are kept" in error.message
    await use(world, first, 300)
    await world.clock.result(world.engine.control.cancel(first, by="me"))
    await world.until(first)
    await use(world, lead, 50)

    await refused(world, lead, budget=Budget(max_tokens=551))
    await running(world, lead, budget=Budget(max_tokens=550))
    error = await refused(world, lead, budget=Budget(max_tokens=1))
    assert "tokens" in error.message
    run = await world.run(lead)
    assert spending.promised(run).runs == 3
    assert spending.spent(run).tokens_in == 350


@pytest.mark.requirement("budget:reserved-at-spawn")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_batch_that_does_not_fit_as_a_whole_stores_nothing(world: World) -> None:
    lead = await running(world, budget=Budget(max_runs=4))
    session = world.engine.ledger.published[lead].session_key
    specs = [RunSpec(task="x", agent_id="hang", label=f"c{n}") for n in range(4)]
    with pytest.raises(Forbidden, match="has 3 of 4 runs left for sub-agents, and 4 runs"):
        await world.batch(*specs, requester=session)
    assert not (await world.run(lead)).children
    await world.batch(*specs[:3], requester=session)
    assert len((await world.run(lead)).children) == 3


@pytest.mark.requirement("budget:reserved-at-spawn")
@pytest.mark.world(max_spawn_depth=3)
async def test_a_grandchild_is_counted_by_every_budget_above_it(world: World) -> None:
    top = await running(world, budget=Budget(max_runs=3))
    middle = await running(world, top)
    await running(world, middle)
    error = await refused(world, middle)

    assert f"({top}) has 0 of 3 runs left" in error.message
    assert await refused(world, top)
    # The retry that an operator asks for is a run like any other; outside it is free.
    assert (await running(world)) not in {top, middle}


@pytest.mark.requirement("spawn:guardrail-budget")
@pytest.mark.world(max_spawn_depth=2)
async def test_the_budget_is_the_last_thing_that_is_asked(world: World) -> None:
    lead = await running(world, budget=Budget(max_runs=2))
    await running(world, lead)
    await refused(world, lead)
    with pytest.raises(NotFound, match="Dependency run not found: nobody"):
        await world.spawn_child(lead, "hang", depends_on=("nobody",))
    full = settings_of(max_children_per_agent=1, max_spawn_depth=2)
    with pytest.raises(Forbidden) as found:
        await world.spawn_child(lead, "hang", settings=full)
    assert found.value.guardrail == "children"


# -- the end of a budget ------------------------------------------------------------------------


@pytest.mark.requirement("budget:report-reserve", "field:ate-the-report-turn")
@pytest.mark.world(max_spawn_depth=3, max_concurrent=1)
async def test_when_the_children_are_stopped_their_parent_still_gets_its_report_turn(
    world: World,
) -> None:
    lead = await world.spawn("parent", budget=Budget(max_tokens=1_000))
    await world.until(lead, Phase.RUNNING)
    live = await running(world, lead)
    deep = await running(world, live)
    queued = await world.spawn_child(lead, "hang")
    waits = await world.spawn_child(lead, depends_on=(queued,))
    await world.until(lead, Phase.ENDING)
    await use(world, deep, 905)
    run = await world.until(lead)

    ends = {
        each: (found.status, found.reason)
        for each in (live, deep, queued, waits)
        if (found := (await world.run(each)).outcome) is not None
    }
    assert ends == {
        live: (Status.PARTIAL, Reason.BUDGET),
        deep: (Status.PARTIAL, Reason.BUDGET),
        queued: (Status.ERROR, Reason.BUDGET),
        waits: (Status.ERROR, Reason.BUDGET),
    }
    assert run.outcome == OK
    assert run.attempt.turn.number == 2
    assert "All your sub-agents ended" in world.runtime.turns[0]
    assert "the rest is kept for its own report" in world.runtime.turns[0]
    assert world.runtime.starts_of(queued) == world.runtime.starts_of(waits) == 0


@pytest.mark.requirement("budget:stop-at-100", "budget:stop-below")
@pytest.mark.world(max_spawn_depth=3)
async def test_a_budget_that_is_used_up_across_restarts_ends_three_levels_and_is_announced(
    world: World,
) -> None:
    top = await running(world, budget=Budget(max_tokens=1_000), label="top")
    middle = await running(world, top, retry_count=3)
    leaf = await running(world, middle, retry_count=3)
    await use(world, leaf, 400)
    await world.restart()
    await use(world, middle, 200)
    await world.restart()
    assert spending.spent(await world.run(top)).tokens_in == 600
    await use(world, top, 450)

    for run_id in (top, middle, leaf):
        run = await world.until(run_id, within_s=10)
        assert run.outcome is not None
        assert (run.outcome.status, run.outcome.reason) == (Status.PARTIAL, Reason.BUDGET)
        assert len(run.attempts) == 1
        assert await world.folded(run_id) == run
    inbox = world.store.inbox(ME, unconsumed=True, limit=100)
    announced = [row for row in inbox if row.message.kind is MessageKind.ANNOUNCEMENT]
    assert [row.message.run_id for row in announced] == [top]
    assert "its budget is used up: 1.1k of 1k tokens" in announced[0].message.text
    assert "all 3 runs: tokens 1.1k" in announced[0].message.text
    alerts = [row.message.text for row in inbox if row.message.kind is MessageKind.ALERT]
    assert alerts == [
        "[subagent:top] 💰 60% of the budget: 600 of 1k tokens",
        (
            "[subagent:top] 💰 105% of the budget: 1.1k of 1k tokens "
            "(what was under way reported 450 at once); it is stopped"
        ),
    ]


@pytest.mark.requirement("budget:stop-at-100")
async def test_use_that_reaches_the_limit_stops_the_run_at_once_and_not_with_the_next_flush(
    world: World,
) -> None:
    reports = [{"usage": {"tokensIn": n * 400}} for n in range(1, 9)]
    script = tuple(step for each in reports for step in (each, {"sleep_ms": 50}))
    fast = replace(world.settings.agents["hang"], script=(*script, {"hang": True}))
    world.settings = replace(world.settings, agents={**world.settings.agents, "fast": fast})
    run_id = await world.spawn("fast", budget=Budget(max_tokens=1_000))
    run = await world.until(run_id, within_s=5)

    assert run.outcome is not None
    assert run.outcome.reason is Reason.BUDGET
    assert spending.total_usage(run).tokens == 1_200


@pytest.mark.requirement("budget:uncached-tokens", "budget:stop-at-100")
async def test_a_long_conversation_that_is_read_from_a_cache_stays_below_a_cap_of_tokens(
    world: World,
) -> None:
    turns = [{"tokensIn": n * 50_000, "tokensCacheRead": n * 49_000} for n in range(1, 21)]
    script = tuple(step for each in turns for step in ({"usage": each}, {"sleep_ms": 50}))
    long = replace(world.settings.agents["quick"], script=(*script, {"result": "done"}))
    world.settings = replace(world.settings, agents={**world.settings.agents, "long": long})
    run = await world.until(await world.spawn("long", budget=Budget(max_tokens=500_000)))
    stopped = await world.until(await world.spawn("long", budget=Budget(max_total_tokens=500_000)))

    assert run.outcome == OK
    assert spending.total_usage(run).tokens == 20_000
    assert stopped.outcome is not None
    assert stopped.outcome.error == ("stopped: its budget is used up: 500k of 500k total tokens")


@pytest.mark.requirement("budget:raised", "budget:reserved-at-spawn")
@pytest.mark.world(max_spawn_depth=3)
async def test_an_agent_raises_budgets_below_it_within_its_own_and_a_person_that_of_all(
    world: World,
) -> None:
    async def raised(run_id: RunId, tokens: int, by: str) -> None:
        added = Amounts(tokens=tokens, total_tokens=tokens)
        steered = world.engine.control.steer(run_id, "more", by=by, added=added)
        await world.clock.result(steered)
        await world.clock.advance(2)

    lead = await running(world, budget=Budget(max_tokens=1_000))
    child = await running(world, lead, budget=Budget(max_tokens=500))
    agent = (await world.run(lead)).session_key
    with pytest.raises(Forbidden, match="has 400 of 1k tokens left for sub-agents"):
        await raised(child, 401, agent)
    await raised(child, 400, agent)
    with pytest.raises(Forbidden, match="a run cannot steer itself"):
        await raised(lead, 1, agent)
    await raised(lead, 9_000, "a person")

    found = await world.run(child)
    assert found.spec.budget == Budget(max_tokens=900)
    assert spending.promised(await world.run(lead)).tokens == 900
    assert (await world.run(lead)).spec.budget == Budget(max_tokens=10_000)
    journal = world.store.journal(child, after_seq=0, limit=100)
    (event,) = [each.event for each in journal if isinstance(each.event, SteerRequested)]
    assert (event.by, event.added) == (agent, Amounts(tokens=400, total_tokens=400))
    await world.restart()
    assert (await world.run(child)).spec.budget == Budget(max_tokens=900)


@pytest.mark.requirement("budget:stop-below")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_start_that_was_still_to_come_does_not_happen_any_more(world: World) -> None:
    top = await running(world, budget=Budget(max_tokens=100))
    world.engine.outbox.add = lambda entry: None  # type: ignore[method-assign]
    child = await world.spawn_child(top, "hang")
    await use(world, top, 95)
    assert (await world.run(child)).phase is Phase.SPAWNING
    await world.restart()
    run = await world.until(child, within_s=10)

    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.ERROR, Reason.BUDGET)
    assert (run.outcome.error or "").startswith("not started: the budget of run")
    assert world.runtime.starts_of(child) == 0
    assert (await world.run(top)).phase is Phase.RUNNING


@pytest.mark.requirement("budget:retry-needs-budget", "field:retries-cost-six-times")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_that_fails_is_not_tried_again_when_the_budget_above_it_is_used_up(
    world: World,
) -> None:
    top = await running(world, budget=Budget(max_tokens=100))
    child = await world.spawn_child(top, "fail", retry_count=9, retry_delay=60_000)
    await world.until(child, Phase.RETRY_WAIT)
    await use(world, top, 95)
    run = await world.until(child, within_s=1)

    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.ERROR, Reason.BUDGET)
    assert len(run.attempts) == 1


@pytest.mark.requirement("budget:wall-clock")
@pytest.mark.world(max_spawn_depth=2)
async def test_the_time_of_a_subtree_is_up_while_no_daemon_lives(world: World) -> None:
    top = await running(world, budget=Budget(max_seconds=60))
    child = await running(world, top)
    await world.crash()
    world.clock.jump(120)
    await world.boot()
    first = await world.until(child, within_s=10)
    run = await world.until(top, within_s=10)

    assert first.outcome is not None
    assert first.outcome.reason is Reason.BUDGET
    assert run.outcome is not None
    assert "its budget is used up: 2m" in (run.outcome.error or "")


@pytest.mark.requirement("budget:wall-clock", "budget:report-reserve")
@pytest.mark.world(max_spawn_depth=2)
async def test_at_nine_tenths_of_the_time_only_the_children_are_stopped(world: World) -> None:
    top = await running(world, budget=Budget(max_seconds=100))
    child = await running(world, top)
    await world.clock.advance(89)
    assert (await world.run(child)).phase is Phase.RUNNING
    await world.clock.advance(2)
    assert (await world.run(child)).is_settled
    assert (await world.run(top)).phase is Phase.RUNNING
    assert "is used up but for its own report" in (await refused(world, top)).message
    run = await world.until(top, within_s=10)
    assert run.outcome is not None
    assert run.outcome.status is Status.PARTIAL


@pytest.mark.requirement("budget:rolled-up")
@pytest.mark.world(max_spawn_depth=2)
async def test_without_any_budget_all_is_summed_and_nothing_stopped(world: World) -> None:
    top = await running(world)
    child = await running(world, top)
    await use(world, child, 10**9, 3.0)
    assert spending.spent(await world.run(top)).cost_usd == 3.0
    assert (await world.run(top)).phase is Phase.RUNNING
    ended = SignalReceived(
        at_ms=world.clock.now_ms(),
        attempt=1,
        signal=UsageSeen(key="late", usage=Usage(tokens_in=10**12)),
    )
    await world.clock.result(world.engine.control.cancel(child, by="me"))
    await world.until(child)
    await world.engine.ledger.apply(child, ended)
    assert spending.spent(await world.run(top)).tokens_in == 10**9
    told = [e for e in world.store.journal(top, limit=1000) if isinstance(e.event, ChildSpent)]
    assert len(told) == 1


# -- whatever happens ---------------------------------------------------------------------------

STEPS: Final = 14
CALL: Final = 300
"""Tokens of one live call at most."""
BUDGETS: Final = (None, None, Budget(max_tokens=1_000), Budget(max_tokens=2_500, max_runs=4))


class Tree:
    """A random tree of runs, and what its workers used by their own count."""

    def __init__(self, world: World, data: DataObject) -> None:
        self.world, self.data = world, data
        self.runs: list[RunId] = []
        self.used: dict[RunId, int] = {}
        self.burst = self.burst_max = 0
        """Of all calls that were made in one step."""
        self.before: dict[RunId, Books] = {}

    def live(self) -> list[RunId]:
        known = self.world.engine.ledger.live
        return [each for each in self.runs if each in known and known[each].phase in HOLDS_SLOT]

    def _pick(self) -> RunId | None:
        live = self.live()
        return self.data.draw(st.sampled_from(live), label="run") if live else None

    async def step(self) -> None:
        doing = (self.spawn, self.spawn, self.call, self.call, self.call_all, self.end)
        self.burst = 0
        await self.data.draw(st.sampled_from((*doing, self.world.restart)), label="step")()
        await self.world.clock.idle()
        self.look()

    async def spawn(self) -> None:
        parent = self._pick()
        requester = ME
        if parent is not None and self.data.draw(st.integers(0, 4)):
            requester = self.world.engine.ledger.live[parent].session_key
        await self.begin(requester, self.data.draw(st.sampled_from(BUDGETS)))

    async def begin(self, requester: SessionKey, budget: Budget | None) -> None:
        try:
            receipt = await self.world.clock.result(
                self.world.try_spawn("hang", requester=requester, budget=budget, is_operator=True)
            )
        except SubagentsError:
            return
        self.runs.append(receipt.run.id)
        await self.world.clock.idle()

    async def call(self) -> None:
        run_id = self._pick()
        if run_id is not None:
            self.report(run_id)

    async def call_all(self) -> None:
        """Every live worker reports in the same instant, before any stop can reach it."""
        for run_id in self.live():
            self.report(run_id)

    def report(self, run_id: RunId) -> None:
        tokens = self.data.draw(st.integers(1, CALL), label="tokens")
        self.burst += tokens
        self.burst_max = max(self.burst, self.burst_max)
        self.used[run_id] = self.used.get(run_id, 0) + tokens
        self.signal(run_id, UsageSeen(key="u", usage=Usage(tokens_in=self.used[run_id])))

    async def end(self) -> None:
        run_id = self._pick()
        if run_id is not None:
            await self.world.runtime.stop(  # as if it had ended by itself
                ref_of(self.world.engine.ledger.live[run_id]), grace_s=0
            )

    def signal(self, run_id: RunId, signal: UsageSeen) -> None:
        run = self.world.engine.ledger.live[run_id]
        event = SignalReceived(
            at_ms=self.world.clock.now_ms(), attempt=len(run.attempts), signal=signal
        )
        self.world.engine.ledger.apply_now(run_id, event, key=f"u{next(_numbers)}")

    def look(self) -> None:
        """What must hold whenever all is still."""
        known = {run.id: run for each in self.runs if (run := self.world.store.run(each))}
        for run in known.values():
            seen = bill_of(known, run)
            assert seen.tokens == spending.spent(run).tokens_in
            for child in run.children:
                assert child.committed.tokens >= (child.spent.tokens_in or 0)
                assert child.committed.runs >= child.spent.runs >= 1
            self._look_at_budget(run, seen.tokens or 0, seen.runs)

    def _look_at_budget(self, run: Run, tokens: int, runs: int) -> None:
        own = self.used.get(run.id, 0)
        before = self.before.get(run.id, Books(0, 0, is_stopped=False, is_low=False))
        stopped, low = run.budget.stop is not None, run.budget.reserve is not None
        self.before[run.id] = Books(own, tokens - own, is_stopped=stopped, is_low=low)
        budget = run.spec.budget
        if budget is None:
            return
        assert runs <= (budget.max_runs or runs)
        if budget.max_tokens is None:
            return
        assert tokens <= budget.max_tokens + 2 * self.burst_max, "more than live calls can spend"
        if before.is_stopped:
            assert own == before.own, "it went on without budget"
        if before.is_low:
            assert tokens - own == before.below, "something below went on without budget"
        is_low = tokens >= budget.max_tokens - budget.max_tokens * RESERVE // 100
        assert low or not is_low
        if is_low:
            for child in run.active_children:
                assert self.world.engine.ledger.live[child.run_id].phase not in HOLDS_SLOT


class Books(NamedTuple):
    """Of one run, when all was still."""

    own: int
    below: int
    is_stopped: bool
    is_low: bool


@pytest.mark.requirement(
    "budget:never-exceeded", "field:stale-pool-read", "journal:fold-is-the-run"
)
@settings(max_examples=40)
@given(st.data())
def test_whatever_is_spawned_used_and_restarted_no_budget_is_exceeded(data: DataObject) -> None:
    """prime-agent #1192; by no more than what one live call per run can spend."""

    async def scenario(world: World) -> None:
        tree = Tree(world, data)
        await tree.begin(ME, Budget(max_tokens=3_000, max_runs=8))
        for _ in range(STEPS):
            await tree.step()
        for run_id in tree.runs:
            assert await world.folded(run_id) == world.store.run(run_id)

    with TemporaryDirectory() as directory:
        in_world(Path(directory), scenario, max_spawn_depth=4, abilities=Abilities(usage=True))
