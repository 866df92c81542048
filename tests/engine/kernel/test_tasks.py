"""Tasks: a time limit that many share."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from subagents.engine.kernel.tasks import TimeLimit


async def _value(value: str) -> str:
    return value


async def _hang() -> None:
    await asyncio.Event().wait()


def _run_counted(scenario: Callable[[], Coroutine[None, None, None]]) -> int:
    """Run it, and say how many timers of the loop it took."""
    timers = 0

    async def counted() -> None:
        nonlocal timers
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def counting(*args: object, **more: object) -> asyncio.TimerHandle:
            nonlocal timers
            timers += 1
            return call_at(*args, **more)  # type: ignore[arg-type]  # what it was called with

        loop.call_at = counting  # type: ignore[method-assign]  # to count
        await scenario()

    asyncio.run(counted())
    return timers


@pytest.mark.requirement("tasks:shared-time-limit")
def test_a_thousand_works_under_one_limit_take_one_timer() -> None:
    async def scenario() -> None:
        limit = TimeLimit(60.0)
        works = [limit.of(_value(str(number))) for number in range(1_000)]
        assert await asyncio.gather(*works) == [str(number) for number in range(1_000)]

    assert _run_counted(scenario) == 1


@pytest.mark.requirement("tasks:shared-time-limit")
async def test_each_work_that_takes_too_long_is_cancelled_and_says_so() -> None:
    limit = TimeLimit(0.01)
    first = asyncio.gather(limit.of(_hang()), limit.of(_value("done")), return_exceptions=True)
    hung, done = await first
    assert isinstance(hung, TimeoutError)
    assert done == "done"
    # And so is what begins when nothing is under way any more.
    with pytest.raises(TimeoutError):
        await limit.of(_hang())
    current = asyncio.current_task()
    assert current is not None
    assert not current.cancelling()


@pytest.mark.requirement("tasks:shared-time-limit")
async def test_whoever_is_cancelled_by_somebody_else_is_not_told_that_it_took_too_long() -> None:
    limit = TimeLimit(60.0)
    working = asyncio.ensure_future(limit.of(_hang()))
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


@pytest.mark.requirement("tasks:shared-time-limit")
async def test_a_work_that_is_late_and_cancelled_is_cancelled() -> None:
    limit = TimeLimit(0.01)

    async def cancelled_while_it_is_late() -> None:
        current = asyncio.current_task()
        assert current is not None
        try:
            await _hang()
        finally:
            current.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(limit.of(cancelled_while_it_is_late()))


@pytest.mark.requirement("tasks:shared-time-limit")
def test_a_work_that_ends_all_the_same_leaves_its_task_uncancelled() -> None:
    async def scenario() -> None:
        limit = TimeLimit(0.01)

        async def stubborn() -> str:
            try:
                await _hang()
            except asyncio.CancelledError:
                return "done all the same"
            return ""

        assert await limit.of(stubborn()) == "done all the same"
        current = asyncio.current_task()
        assert current is not None
        assert not current.cancelling()

    asyncio.run(scenario())
