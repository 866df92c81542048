"""Following the runs by number: in order, without gap or double, also over restarts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engine.world import ME, OTHER, World, in_world

from subagents.domain.run.events import Spawned
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId
from subagents.domain.transcript.feed_entry import (
    COMPLETION,
    NEWS,
    ROW,
    RUN,
    FeedDocument,
)
from subagents.engine.runs.feed import (
    PAGE,
    SHOWN_EVERY_MS,
    Follower,
    Scope,
)
from subagents.ports import FeedEntry

ALL = Scope()
EVERYTHING = frozenset({*NEWS, RUN})
STEPS = frozenset({RUN})


def follower(world: World, *, after: int = 0, scope: Scope = ALL, **names: bool) -> Follower:
    wanted = frozenset({COMPLETION}) if names.get("ends") else STEPS
    return Follower(world.engine.feed, after=after, scope=scope, names=wanted)


async def read(world: World, one: Follower) -> list[FeedDocument]:
    """Everything that is there for it now."""
    found: list[FeedDocument] = []
    while more := await world.clock.result(one.more(0)):
        found += more
    return found


def shown(runs: Sequence[Run]) -> list[FeedDocument]:
    """Each run as the document that a test looks at."""
    return [
        FeedDocument(number=run.seq, name=ROW, document={"runId": run.id, "phase": run.phase})
        for run in runs
    ]


def with_rows(world: World, after: int = 0, *names: str) -> Follower:
    return Follower(
        world.engine.feed, after=after, scope=ALL, names=frozenset(names), rows_of=shown
    )


def runs_in(found: Sequence[FeedDocument]) -> set[object]:
    return {each.document["runId"] for each in found}


@pytest.mark.requirement("feed:order")
async def test_a_follower_hears_of_every_event_once_in_the_order_of_their_commits(
    world: World,
) -> None:
    ids = [await world.spawn() for _ in range(3)]
    for run_id in ids:
        await world.until(run_id)
    await world.clock.advance(1)
    found = await read(world, follower(world))

    assert [each.number for each in found] == list(range(1, world.store.newest_number() + 1))
    for run_id in ids:
        journal = [type(e.event).__name__ for e in world.store.journal(run_id)]
        told = [e.document["type"] for e in found if e.document["runId"] == run_id]
        assert told == journal


@pytest.mark.requirement("feed:wakes")
async def test_a_follower_that_waits_is_woken_by_the_commit_and_by_nothing_else(
    world: World,
) -> None:
    one = follower(world)
    waiting = asyncio.ensure_future(one.more(3_600))
    await world.clock.advance(600)
    assert not waiting.done()
    run_id = await world.spawn()
    await world.clock.advance(1)

    assert waiting.done()
    assert waiting.result()[0].document["type"] == "Spawned"
    assert runs_in(list(waiting.result())) == {run_id}
    assert not world.engine.feed._waiting


@pytest.mark.requirement("feed:wakes")
async def test_nothing_comes_within_the_time_and_the_follower_says_so(world: World) -> None:
    waiting = asyncio.ensure_future(follower(world).more(15))
    await world.clock.advance(14)
    assert not waiting.done()
    await world.clock.advance(2)

    assert waiting.result() == []


@pytest.mark.requirement("feed:cancelled")
async def test_what_a_cancelled_wait_would_have_told_comes_again(world: World) -> None:
    one = follower(world)
    waiting = asyncio.ensure_future(one.more(60))
    await world.clock.idle()
    waiting.cancel()
    await world.spawn()

    assert (await read(world, one))[0].number == 1


@pytest.mark.requirement("feed:completion")
async def test_a_completion_is_told_also_by_whoever_reads_before_the_commit_is_published(
    world: World,
) -> None:
    """Between the commit and its publication memory still has the run without its outcome."""
    run_id = await world.spawn("slow")
    await world.clock.advance(1)
    before = world.engine.ledger.published[run_id]
    await world.until(run_id)
    world.engine.ledger.published[run_id] = before

    (end,) = await read(world, follower(world, ends=True))

    assert (end.document["runId"], end.document["result"]) == (run_id, "slowly done")


@pytest.mark.requirement("feed:replay")
async def test_replay_after_a_restart_gives_the_same_numbers_and_goes_on(world: World) -> None:
    first = await world.spawn()
    await world.until(first)
    await world.clock.advance(1)
    before = await read(world, follower(world))
    await world.restart()
    second = await world.spawn()
    await world.until(second)
    await world.clock.advance(1)
    after = await read(world, follower(world))
    missed = await read(world, follower(world, after=before[-1].number))

    assert after[: len(before)] == before
    assert missed == after[len(before) :]
    assert {second} <= runs_in(missed)


@pytest.mark.requirement("feed:replay")
async def test_more_than_a_page_is_read_page_by_page(world: World) -> None:
    ids = [await world.spawn() for _ in range(45)]
    for run_id in ids:
        await world.until(run_id)
    await world.clock.advance(1)
    assert world.store.newest_number() > PAGE
    one = follower(world, ends=True)

    assert runs_in(await read(world, one)) == set(ids)


@pytest.mark.requirement("feed:future")
async def test_a_number_from_the_future_is_noticed_and_following_begins_at_the_newest(
    world: World,
) -> None:
    await world.spawn("hang")
    await world.clock.advance(1)
    newest = world.store.newest_number()
    feed = world.engine.feed

    assert await feed.begin(newest + 1) == (newest, True)
    assert await feed.begin(newest) == (newest, False)
    assert await feed.begin(0) == (0, False)
    assert await feed.begin(None) == (newest, False)


@pytest.mark.requirement("feed:scope")
def test_each_scope_shows_its_runs_and_no_others(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        mine = await world.spawn("parent", label="mine")
        theirs = await world.spawn("quick", requester=OTHER, label="mine")
        await world.clock.advance(1)
        child = await world.spawn_child(mine)
        await world.clock.advance(1)
        await world.until(mine)
        run = await world.run(mine)

        async def shown(scope: Scope) -> set[object]:
            return runs_in(await read(world, follower(world, scope=scope)))

        assert await shown(ALL) == {mine, theirs, child}
        assert await shown(Scope(session=ME)) == {mine, child}
        assert await shown(Scope(session=OTHER)) == {theirs}
        assert await shown(Scope(session=run.session_key)) == {mine, child}
        assert await shown(Scope(run=mine)) == {mine}
        assert await shown(Scope(tree=mine)) == {mine, child}
        assert await shown(Scope(tree=mine, session=OTHER)) == set()
        assert await shown(Scope(label="mine", requester=ME)) == {mine}
        assert await shown(Scope(run=RunId("r-none"))) == set()

    in_world(tmp_path, work, max_spawn_depth=2)


@pytest.mark.requirement("feed:cost")
def test_ten_followers_cost_one_read_of_the_store_for_each_commit_and_none_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(world: World) -> None:
        await world.spawn("slow")
        await world.clock.advance(1)
        newest = world.store.newest_number()
        feed, reads = world.store.feed, list[int]()

        def counted(*, after: int, limit: int) -> Sequence[FeedEntry]:
            reads.append(after)
            return feed(after=after, limit=limit)

        monkeypatch.setattr(world.store, "feed", counted)
        followers = [follower(world, after=newest) for _ in range(10)]
        ten = [asyncio.create_task(each.more(30)) for each in followers]
        await world.clock.advance(1)
        assert reads == []
        run_id = await world.spawn()
        found = [await world.clock.result(each) for each in ten]

        assert reads == [newest]
        assert all(runs_in(each) == {run_id} for each in found)
        # As little where it came while none of them looked.
        del reads[:]
        other = await world.spawn("slow")
        await world.clock.advance(1)
        found = [await world.clock.result(each.more(30)) for each in followers]
        assert len(reads) == 1
        assert all(other in runs_in(each) for each in found)

    in_world(tmp_path, work)


@pytest.mark.requirement("feed:pruned")
async def test_the_events_of_a_pruned_run_are_gone_and_the_others_keep_their_numbers(
    world: World,
) -> None:
    first, second = await world.spawn(), await world.spawn()
    for run_id in (first, second):
        await world.until(run_id)
    await world.clock.advance(1)
    before = await read(world, follower(world))
    newest = world.store.newest_number()
    world.store.prune([second])
    after = await read(world, follower(world))

    assert after == [each for each in before if each.document["runId"] == first]
    assert world.store.newest_number() == newest
    third = await world.spawn()
    page = world.store.feed(after=newest)
    assert isinstance(page[0].entry.event, Spawned)
    assert page[0].entry.run_id == third
    assert page[0].number == newest + 1


@pytest.mark.requirement("feed:rows")
async def test_a_run_that_changes_all_the_time_is_shown_once_a_second_and_as_it_is_at_last(
    world: World,
) -> None:
    one = with_rows(world, world.store.newest_number())
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    first = await world.clock.result(one.more(0))
    for _ in range(5):
        await world.engine.control.pause(run_id, by="me")
        await world.engine.control.resume(run_id, by="me")
    await world.engine.control.cancel(run_id, by="me")
    await world.until(run_id, Phase.COMPLETED)
    at_once = await world.clock.result(one.more(0))
    begun_ms = world.clock.steady_ms()
    later = await world.clock.result(one.more(10))

    assert [each.document["phase"] for each in first] == [Phase.RUNNING]
    assert at_once == []
    assert [each.document["phase"] for each in later] == [Phase.COMPLETED]
    assert world.clock.steady_ms() - begun_ms <= SHOWN_EVERY_MS
    assert await world.clock.result(one.more(0)) == []


@pytest.mark.requirement("feed:rows")
async def test_who_comes_back_before_a_change_was_shown_is_shown_it_then(world: World) -> None:
    one = with_rows(world, 0, RUN)
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(one.more(0))
    whole = one.resume_at
    await world.engine.control.cancel(run_id, by="me")
    await world.until(run_id, Phase.COMPLETED)
    events = await world.clock.result(one.more(0))

    assert {each.name for each in events} == {RUN}
    assert (one.number, one.resume_at) == (world.store.newest_number(), whole)
    again = await world.clock.result(with_rows(world, one.resume_at).more(0))
    assert [each.document["phase"] for each in again] == [Phase.COMPLETED]


@pytest.mark.requirement("feed:rows")
async def test_a_burst_of_runs_is_shown_once_each(world: World) -> None:
    one = with_rows(world)
    ids = {await world.spawn() for _ in range(20)}
    for run_id in ids:
        await world.until(run_id, Phase.COMPLETED)
    found = await world.clock.result(one.more(0))

    assert len(found) == 20
    assert runs_in(found) == ids
    assert one.resume_at == one.number
