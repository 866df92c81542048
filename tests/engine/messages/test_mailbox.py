"""Waiting readers get what others do not take."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.engine.world import ME, World, in_world

from subagents.config.settings import Agent
from subagents.domain.run.run import (
    Phase,
)
from subagents.domain.run.values import announcement_id, replace
from subagents.engine.messages.mailbox import WaitResult
from subagents.errors import StoreUnavailable

T = TypeVar("T")


@pytest.mark.requirement("delivery:offer-lease", "wait:whole-session")
async def test_whoever_waits_gets_what_a_dead_reader_held_as_soon_as_its_lease_is_over(
    world: World,
) -> None:
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED)
    assert len(await world.engine.mailbox.offer_inbox(ME, reader="dead")) == 1
    begun = world.clock.now_ms()

    found = await world.clock.result(
        world.engine.mailbox.wait([], session=ME, timeout_s=300, reader="alive")
    )

    assert found.offered == (announcement_id(run_id),)
    assert world.clock.now_ms() - begun == 60_000


@pytest.mark.requirement("wait:whole-session", "delivery:consumed-once")
async def test_whoever_waits_beside_a_reader_is_let_go_when_that_one_acknowledges(
    world: World,
) -> None:
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED)
    (row,) = await world.engine.mailbox.offer_inbox(ME, reader="first")
    waiting = asyncio.ensure_future(
        world.engine.mailbox.wait([], session=ME, timeout_s=300, reader="second")
    )
    await world.clock.advance(10)
    assert not waiting.done()
    begun = world.clock.now_ms()
    await world.clock.result(world.engine.mailbox.acknowledge([row.message.id], reader="first"))

    found = await world.clock.result(waiting)

    assert (found.completed, found.offered) == ((), ())
    assert world.clock.now_ms() - begun < 1_000


@pytest.mark.requirement("wait:whole-session")
async def test_whoever_waits_is_told_at_once_though_another_has_given_up_waiting(
    world: World,
) -> None:
    run_id = await world.spawn("slow")
    gone, stays = (
        asyncio.ensure_future(
            world.engine.mailbox.wait([], session=ME, timeout_s=300, reader=reader)
        )
        for reader in ("gone", "stays")
    )
    await world.until(run_id, Phase.RUNNING)
    gone.cancel()
    await world.until(run_id, Phase.COMPLETED)
    ended = world.clock.now_ms()

    found = await world.clock.result(stays)

    assert found.offered == (announcement_id(run_id),)
    assert world.clock.now_ms() - ended < 1_000


@pytest.mark.requirement("wait:whole-session", "delivery:consumed-once")
def test_of_two_that_look_at_the_same_moment_one_is_told_what_ended_and_the_other_nothing(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_ids = [await world.spawn() for _ in range(3)]
        for run_id in run_ids:
            await world.until(run_id, Phase.COMPLETED)
        mailbox = world.engine.mailbox
        read = mailbox._off_loop

        async def read_as_a_thread_does(work: Callable[[], T]) -> T:
            await asyncio.sleep(0)  # others go on meanwhile
            return await read(work)

        mailbox._off_loop = read_as_a_thread_does

        found = await world.clock.result(
            asyncio.gather(
                *(
                    world.engine.mailbox.wait([], session=ME, timeout_s=1, reader=reader)
                    for reader in ("first", "second")
                )
            )
        )

        told = [run.id for each in found for run in each.completed]
        offered = [message for each in found for message in each.offered]
        assert sorted(told) == sorted(run_ids)
        assert sorted(offered) == sorted(map(announcement_id, run_ids))

    in_world(tmp_path, scenario)


@pytest.mark.requirement("field:omnigent-5614", "queries:attention")
def test_omnigent_5614_what_nobody_acknowledges_is_offered_once_more_and_then_needs_attention(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        await world.until(run_id, Phase.COMPLETED)

        async def kinds() -> list[str]:
            return [item.kind for item in await world.engine.queries.attention(ME)]

        for reader in ("first wake", "second wake"):
            assert len(await world.engine.mailbox.offer_inbox(ME, reader=reader)) == 1
            assert await kinds() == []
            await world.clock.advance(61)

        assert await kinds() == ["unread"]
        await world.clock.result(world.engine.sweep.once())
        (item,) = await world.engine.queries.attention(ME)
        assert (item.kind, item.run.id) == ("unread", run_id)
        assert item.text == "offered to 2 readers, none of which took it"
        (row,) = await world.engine.mailbox.offer_inbox(ME, reader="awake")
        await world.clock.result(world.engine.mailbox.acknowledge([row.message.id], reader="awake"))
        assert await kinds() == []

    in_world(tmp_path, scenario)


@pytest.mark.requirement("wait:needs")
async def test_a_wait_that_does_not_ask_for_needs_is_left_alone_by_questions(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(world.engine.questions.ask(run_id, "which?"))
    begun = world.clock.now_ms()

    found = await world.clock.result(
        world.engine.mailbox.wait([run_id], session=ME, timeout_s=5, reader="me")
    )

    assert (found.needs, world.clock.now_ms() - begun) == ((), 5_000)


@pytest.mark.requirement("wait:needs")
def test_each_session_is_told_of_a_question_once_and_a_waiting_one_at_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)

        def wait(timeout_s: float) -> Coroutine[Any, Any, WaitResult]:
            return world.engine.mailbox.wait(
                [run_id], session=ME, timeout_s=timeout_s, reader="me", returns_on_needs=True
            )

        waiting = asyncio.ensure_future(wait(300))
        await world.clock.advance(1)
        asked = await world.clock.result(world.engine.questions.ask(run_id, "which?"))
        (need,) = (await world.clock.result(waiting)).needs
        assert (need.id, need.run.id) == (asked.id, run_id)

        # Whoever did not get the answer is told again; whoever got it is not.
        assert len((await world.clock.result(wait(0))).needs) == 1
        world.engine.mailbox.note_told([need.id], session=ME)
        assert (await world.clock.result(wait(1))).needs == ()

    in_world(tmp_path, scenario)


@pytest.mark.requirement("wait:needs")
def test_a_wait_returns_when_the_provider_refuses_an_awaited_run_and_once_only(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        refusal = {"subagents": "result", "text": "", "isError": True, "error": "429"}
        first: tuple[dict[str, object], ...] = ({"said": {**refusal, "isLimit": True}}, {"exit": 1})
        script: tuple[dict[str, object], ...] = (
            *first,
            {"continued": True},
            {"result": "done after all"},
        )
        agent = Agent(runtime="scripted", script=script)
        settings = replace(world.settings, agents={**world.settings.agents, "limited": agent})
        run_id = await world.spawn("limited", settings=settings)

        def wait() -> Coroutine[Any, Any, WaitResult]:
            return world.engine.mailbox.wait(
                [run_id], session=ME, timeout_s=300, reader="me", returns_on_needs=True
            )

        found = await world.clock.result(wait())
        (need,) = found.needs
        limited = need.run.retry.limited
        assert (need.run.id, need.request, found.completed) == (run_id, None, ())
        assert limited is not None
        assert (limited.text, need.id) == ("429", f"{run_id}:limit:{limited.since_ms}")

        world.engine.mailbox.note_told([need.id], session=ME)
        ended = await world.clock.result(wait())
        assert ([run.result for run in ended.completed], ended.needs) == (["done after all"], ())

    in_world(tmp_path, scenario)


@pytest.mark.requirement("delivery:consumed-once", "commit:failure-recovers")
async def test_what_a_failed_commit_was_to_consume_stays_with_its_reader_until_somebody_says_so(
    world: World,
) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(world.engine.questions.notify(run_id, "half way"))
    (row,) = await world.engine.mailbox.offer_inbox(ME, reader="first")
    world.store.failures_left = 1
    with pytest.raises(StoreUnavailable):
        await world.engine.mailbox.acknowledge([row.message.id], reader="first")
    await world.clock.until(lambda: world.engine.degraded is None, within_s=30)

    offered = await world.clock.result(world.engine.mailbox.offer_inbox(ME, reader="second"))
    done = world.engine.mailbox.acknowledge([row.message.id], reader="second")

    assert (offered, await world.clock.result(done)) == ((), 1)
    assert world.store.inbox(ME, unconsumed=True) == []
