"""Raw output is let go when all of it is kept elsewhere, and never before."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.engine.fake_clock import FakeClock
from tests.engine.world import WatchedRuntime, World, in_world, settings_of

from subagents.config.settings import Agent
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import replace
from subagents.engine.attempts import supervisor as supervise
from subagents.errors import RuntimeUnavailable
from subagents.ports import AttemptRef
from subagents.store.transcripts.transcript_files import TranscriptFiles


def _prints(word: str) -> list[dict[str, object]]:
    return [{"print": f"{word} {number}"} for number in range(6)]


CHATTY: tuple[dict[str, object], ...] = (
    *_prints("line"),
    {"progress": {"phase": "half"}},
    *_prints("more"),
    {"sleep_ms": 60_000},
    {"result": "said all"},
)

HEARD = len(CHATTY) - 2
"""Its steps up to the last one that says anything."""

TWICE: tuple[dict[str, object], ...] = (
    {"attempt": 1},
    *CHATTY,
    {"exit": 1},
    {"attempt": 2},
    {"result": "done"},
)


class Told(NamedTuple):
    """One call of ``discard`` and what was durable then."""

    attempt: int
    cursor: int
    positions: dict[str, int]
    ended: bool
    has_end: bool
    """The attempt's end was in the database."""
    kept: dict[str, int]
    """Positions in the transcript on disk."""
    leased: int
    """Cursor in the lease."""


class LettingRuntime(WatchedRuntime):
    """Notes what it is told to let go; can refuse, or never answer."""

    def __init__(self, clock: FakeClock, world: World) -> None:
        super().__init__(clock, Abilities(survives_daemon=True))
        self.world = world
        self.told: list[Told] = []
        self.refusals = 0
        self.is_stuck = False

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        stored = self.world.store.run(ref.run_id)
        assert stored is not None
        lease = next((x for x in self.world.store.load_leases() if x.run_id == ref.run_id), None)
        checkpoint = TranscriptFiles(self.world.directory / "transcripts").resume(ref.run_id)
        self.told.append(
            Told(
                attempt=ref.number,
                cursor=cursor,
                positions=dict(positions),
                ended=ended,
                has_end=stored.attempts[ref.number - 1].evidence.exit is not None,
                kept=checkpoint.positions,
                leased=-1 if lease is None else lease.cursor,
            )
        )
        if self.is_stuck:
            await asyncio.get_running_loop().create_future()
        if self.refusals:
            self.refusals -= 1
            raise RuntimeUnavailable("the disk is busy")


async def _begin(world: World) -> LettingRuntime:
    agents = dict(world.settings.agents)
    agents["chatty"] = Agent(runtime="scripted", script=CHATTY)
    agents["twice"] = Agent(runtime="scripted", script=TWICE)
    world.settings = replace(settings_of(), agents=agents)
    runtime = LettingRuntime(world.clock, world)
    await world.crash()
    await world.boot(runtime)
    return runtime


@pytest.mark.requirement("output:durable-first")
async def test_output_is_let_go_when_the_end_is_durable_and_not_before(world: World) -> None:
    runtime = await _begin(world)
    run_id = await world.spawn("twice", retry_count=1, retry_delay=60_000)
    await world.until(run_id, Phase.RUNNING)
    await world.clock.advance(30)
    world.hold_commits()
    await world.clock.advance(60)
    assert world.engine.ledger.live[run_id].attempt.evidence.exit is not None
    assert runtime.told == []
    world.let_commits_go()
    await world.until(run_id, Phase.COMPLETED)

    first = runtime.told[0]
    assert (first.ended, first.has_end) == (True, True)
    assert first.positions == {"steps": HEARD}
    assert first.kept == {"1/steps": HEARD}


@pytest.mark.requirement("output:never-fatal")
async def test_what_could_not_be_let_go_harms_no_run_and_is_let_go_when_it_is_cleaned_up(
    world: World,
) -> None:
    runtime = await _begin(world)
    runtime.refusals = 2
    run_id = await world.spawn("twice", retry_count=1, retry_delay=60_000)
    run = await world.until(run_id, Phase.COMPLETED)

    assert run.attempt.evidence.result == "done"
    assert [(told.attempt, told.ended) for told in runtime.told] == [
        (1, True),
        (1, True),
        (2, True),
    ]


@pytest.mark.requirement("output:let-go-once")
async def test_output_of_a_run_that_ends_with_its_worker_is_let_go_once(world: World) -> None:
    runtime = await _begin(world)
    run_id = await world.spawn("chatty")
    await world.until(run_id, Phase.COMPLETED)

    (told,) = runtime.told
    assert told.has_end
    assert told.kept == {"1/steps": HEARD}


@pytest.mark.requirement("output:crash-before-it-is-let-go")
async def test_a_crash_between_the_end_and_letting_go_leaves_it_to_the_cleanup(
    world: World,
) -> None:
    runtime = await _begin(world)
    runtime.is_stuck = True
    run_id = await world.spawn("chatty")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.until(lambda: bool(runtime.told), within_s=600)
    runtime.is_stuck = False
    before = len(runtime.told)
    await world.restart()
    await world.until(run_id, Phase.COMPLETED)

    assert [told.ended for told in runtime.told[before:]] == [True]


@pytest.mark.requirement("output:durable-first")
def test_a_worker_that_talks_much_has_its_output_let_go_while_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "DISCARD_AFTER", 5)

    async def scenario(world: World) -> None:
        runtime = await _begin(world)
        run_id = await world.spawn("chatty")
        await world.until(run_id, Phase.RUNNING)
        await world.clock.advance(20)

        assert runtime.told
        for told in runtime.told:
            assert not told.ended
            assert told.positions["steps"] <= told.kept["1/steps"]
            assert 0 < told.cursor <= told.leased
        assert HEARD - 5 < runtime.told[-1].positions["steps"] <= HEARD
        again = len(runtime.told)
        await world.clock.advance(20)
        assert len(runtime.told) == again  # nothing new, nothing to say
        await world.until(run_id, Phase.COMPLETED)

    in_world(tmp_path, scenario)
