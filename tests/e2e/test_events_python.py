"""``Orchestrator.events``: a program that follows its runs over kill -9 of the daemon."""

import asyncio
from pathlib import Path

import pytest
from tests.e2e.live_home import BOUND_S, live_home

from subagents import DaemonUnreachable, Orchestrator
from subagents.client import transport

Seen = list[tuple[object, object]]


@pytest.mark.requirement("python:events")
def test_a_program_follows_its_runs_over_the_death_of_the_daemon(tmp_path: Path) -> None:
    async def follow(root: Path, seen: Seen, *, ends: int) -> None:
        async with Orchestrator.connect(home=root) as subagents:
            # The home is named by the caller; the daemon is the test's to start.
            async for event in subagents.events(after=0, types=["run", "completion"]):
                seen.append((event.seq, event.event or event.type))
                if sum(name == "completion" for _, name in seen) == ends:
                    return

    with live_home(tmp_path) as home:

        async def scenario() -> Seen:
            seen: Seen = []
            following = asyncio.create_task(follow(home.root / "home", seen, ends=2))
            first = await asyncio.to_thread(home.spawn, "echo one")
            await asyncio.to_thread(home.finish, first)
            second = await asyncio.to_thread(home.spawn, "sleep 0.3; echo two")
            await asyncio.to_thread(home.restart_after_kill)
            await asyncio.to_thread(home.finish, second)
            async with asyncio.timeout(BOUND_S):
                await following
            return seen

        seen = asyncio.run(scenario())

    steps = [number for number, name in seen if name != "completion"]
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.requirement("python:events")
def test_only_what_is_new_is_told_and_an_absent_daemon_is_said_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "RECONNECT_S", 0.5)
    with live_home(tmp_path) as home:
        home.finish(home.spawn("echo old"))

        async def scenario() -> None:
            async with Orchestrator.connect(home=home.root / "home") as subagents:
                events = subagents.events(types=["completion"])
                coming = asyncio.ensure_future(anext(events))
                while not coming.done():
                    await asyncio.to_thread(home.finish, await asyncio.to_thread(home.spawn, ":"))
                event = await coming
                assert event.label != "old"
                assert event.result == ""
                home.stop()
                async with asyncio.timeout(BOUND_S):
                    with pytest.raises(DaemonUnreachable):
                        [event async for event in events]

        asyncio.run(scenario())
