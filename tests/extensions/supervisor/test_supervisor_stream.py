"""What supervisors are pushed: each subscription from its own place, once and in order."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.api.home_daemon import Document, serving, until
from tests.extensions.supervisor.supervisor_clients import create, supervisor

from subagents.domain.run.values import RunId
from subagents.domain.transcript.feed_entry import FeedDocument
from subagents.engine.runs.feed import Page, Scope
from subagents.extensions.supervisor.supervisor_stream import Stream, Subscription


@pytest.mark.requirement("supervisor:subscribe")
async def test_each_of_two_supervisors_hears_what_it_subscribed_to(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as home,
        supervisor(home, "one") as one,
        supervisor(home, "two") as two,
    ):
        everything = await two.do("subscribe")
        assert (everything["subscribed"], everything["seq"]) == ("*", 0)
        await create(one, home, "mine", "quick")
        await home.spawn("quick", label="by hand")
        assert (await one.until_end("mine"))["event"] == "completion"
        await two.until_end("mine")
        await two.until_end("by hand")
        assert {each["agentId"] for each in one.events} == {"mine"}
        assert await two.do("unsubscribe") == {"unsubscribed": 1}
        await create(one, home, "after", "quick")
        await one.until_end("after")
        await two.do("ping")
        assert {each["agentId"] for each in two.events} == {"mine", "by hand"}


@pytest.mark.requirement("supervisor:subscribe")
async def test_a_name_means_the_supervisors_own_runs_of_that_name_also_later_ones(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        await one.do("subscribe", agentId="worker")
        await home.spawn("quick", label="worker")
        for _ in range(2):
            await create(one, home, "worker", "quick", subscribe=False)
            found = len(one.events) + 1
            await one.told(found)
        await one.do("ping")
        runs = {each["runId"] for each in one.events}
        mine = (await home.ok("GET", "/v1/runs?requester=agent:openclaw:main"))["runs"]
        assert runs == {each["runId"] for each in mine}
        assert len(one.events) == 2
        bad = await one.refused("subscribe", events=["completed"])
        assert bad[0] == "invalid"
        assert 'did you mean "completion"?' in bad[1]
        assert (await one.refused("subscribe", session="x"))[0] == "invalid"


@pytest.mark.requirement("supervisor:replay")
def test_replay_gives_what_was_missed_then_what_happens_each_once_and_in_order(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            names = ["run", "completion"]
            async with supervisor(home) as one:
                await one.do("subscribe", **{"from": 0}, events=names)
                for number in range(3):
                    await create(one, home, f"early{number}", "quick")
                for number in range(3):
                    await one.until_end(f"early{number}")
                # Where both kinds are wanted, ``run`` is the last of its number.
                while one.events[-1]["event"] != "run":
                    await one.told(len(one.events) + 1)
                seen = one.events[-1]["seq"]
            async with supervisor(home) as again:
                burst = asyncio.gather(*(home.spawn("quick", label=f"l{n}") for n in range(20)))
                start = await again.do("subscribe", **{"from": seen}, events=names)
                assert start["seq"] == seen
                await again.do("subscribe", agentId="l3", events=["completion"])
                await burst
                for number in range(20):
                    await again.until_end(f"l{number}")
                async with supervisor(home) as whole:
                    await whole.do("subscribe", **{"from": 0}, events=names)
                    wanted = [
                        each
                        for each in await whole.told(len(one.events) + len(again.events))
                        if each["seq"] > seen
                    ]

            def keys(found: list[Document]) -> list[tuple[int, str]]:
                return [(each["seq"], each["event"]) for each in found]

            got = keys(again.events)
            assert got == sorted(set(got), key=got.index)
            assert [n for n, _ in got] == sorted(n for n, _ in got)
            assert got == keys(wanted)[: len(got)]
            steps = [number for number, name in got if name == "run"]
            assert steps == list(range(seen + 1, steps[-1] + 1))

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:replay")
async def test_a_second_subscription_replays_what_it_wants_and_nothing_of_the_first(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        await one.do("subscribe", events=["completion"])
        for name in ("a", "b"):
            await home.spawn("quick", label=name)
            await one.until_end(name)
        await one.do("subscribe", agentId="a", events=["completion"], **{"from": 0})
        await one.told(3)
        await home.spawn("quick", label="c")
        await one.until_end("c")
        assert [each["agentId"] for each in one.events] == ["a", "b", "a", "c"]


@pytest.mark.requirement("supervisor:replay")
async def test_a_subscription_made_while_events_are_being_sent_loses_none_of_its_own(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        first = str((await home.spawn("quick"))["runId"])
        await home.until_phase(first, "completed")
        newest = await home.services.engine.feed.newest()
        began, may_go, told = asyncio.Event(), asyncio.Event(), list[tuple[int, str]]()

        async def send(each: FeedDocument) -> None:
            told.append((each.number, each.name))
            if each.number == newest:
                began.set()
                await may_go.wait()

        stream = Stream(home.services.engine.feed, send)
        stream.add("*", Subscription(Scope(), frozenset({"run"}), 0))
        pushing = asyncio.create_task(stream.run())
        await began.wait()
        stream.add("late", Subscription(Scope(), frozenset({"completion"}), 0))
        may_go.set()
        await until(lambda: told[-1][1] == "completion")
        assert [number for number, name in told if name == "run"] == list(range(1, newest + 1))
        assert sum(name == "completion" for _, name in told) == 1
        pushing.cancel()
        await asyncio.wait({pushing})


@pytest.mark.requirement("supervisor:replay")
@pytest.mark.parametrize("is_replay", [False, True])
async def test_a_subscription_that_comes_late_is_sent_nothing_that_its_stream_had_unless_it_replays(
    tmp_path: Path, *, is_replay: bool
) -> None:
    async with serving(tmp_path) as home:
        first = RunId((await home.spawn("quick"))["runId"])
        await home.until_phase(first, "completed")
        newest = await home.services.engine.feed.newest()
        told = list[tuple[int, str]]()

        async def send(each: FeedDocument) -> None:
            told.append((each.number, each.name))

        stream = Stream(home.services.engine.feed, send)
        stream.add("*", Subscription(Scope(), frozenset({"run", "completion"}), 0))
        pushing = asyncio.create_task(stream.run())
        await until(lambda: bool(told) and told[-1] == (newest, "run"))
        one = Subscription(Scope(run=first), frozenset({"completion"}), 0, is_replay=is_replay)
        stream.add("one", one)
        await until(lambda: one.after == newest)
        assert len(told) - len(set(told)) == (1 if is_replay else 0)
        pushing.cancel()
        await asyncio.wait({pushing})


@pytest.mark.requirement("supervisor:replay")
async def test_a_number_of_another_database_is_answered_with_a_reset(tmp_path: Path) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        found = await one.do("subscribe", **{"from": 4711})
        assert (found["seq"], found["reset"]) == (0, True)


@pytest.mark.requirement("supervisor:bounded")
def test_while_a_supervisor_does_not_read_nothing_more_is_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            feed = home.services.engine.feed
            may_go, told, pages = asyncio.Event(), list[int](), list[int]()
            read = feed.page

            async def page(after: int) -> Page:
                pages.append(after)
                return await read(after)

            async def send(each: FeedDocument) -> None:
                told.append(each.number)
                await may_go.wait()

            monkeypatch.setattr(feed, "page", page)
            stream = Stream(feed, send)
            stream.add("*", Subscription(Scope(), frozenset({"run"}), 0))
            pushing = asyncio.create_task(stream.run())
            ids = [str((await home.spawn("quick"))["runId"]) for _ in range(60)]
            for run_id in ids:
                await home.until_phase(run_id, "completed")
            assert told == [1]
            assert len(pages) <= 2
            newest = await feed.newest()
            may_go.set()
            await until(lambda: told[-1] == newest)
            assert told == list(range(1, newest + 1))
            assert set(feed._waiting) == {stream._changed}
            pushing.cancel()
            await asyncio.wait({pushing})
            assert not feed._waiting

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:bounded")
async def test_a_supervisor_that_does_not_read_holds_up_nobody_and_misses_nothing(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path) as home,
        supervisor(home, "lazy") as lazy,
        supervisor(home, "keen") as keen,
    ):
        await lazy.do("subscribe", events=["completion"])
        lazy.reader._transport.pause_reading()  # type: ignore[attr-defined]
        task = "head -c 100000 /dev/zero | tr '\\0' x"
        for number in range(100):
            await create(keen, home, f"k{number}", "shell", task=task)
            await keen.until_end(f"k{number}")
        assert (await keen.do("ping"))["pong"] is True
        lazy.reader._transport.resume_reading()  # type: ignore[attr-defined]
        await lazy.until_end("k99")
        assert lazy.events == keen.events
        assert sum(len(json.dumps(each)) for each in lazy.events) > 400_000
