"""Waiting together: who gives up takes nothing from the others."""

import pytest

from subagents.engine.kernel.waiters import Waiters, Wakeups


@pytest.mark.requirement("ledger:waiting")
async def test_one_that_gives_up_waiting_leaves_the_others_waiting() -> None:
    waiters = Waiters()
    first, second = waiters.join(), waiters.join()
    first.cancel()
    assert not second.done()

    waiters.wake()
    await second


@pytest.mark.requirement("ledger:waiting")
async def test_all_that_wait_raise_the_error_that_they_are_woken_with() -> None:
    waiters = Waiters()
    waiting = [waiters.join(), waiters.join()]
    waiters.wake(ValueError("it never will"))
    for each in waiting:
        with pytest.raises(ValueError, match="it never will"):
            await each


@pytest.mark.requirement("ledger:waiting")
async def test_a_wait_for_several_things_is_woken_by_each_and_leaves_nothing_behind() -> None:
    wakeups: Wakeups[str] = Wakeups()
    with wakeups.waiting("a", "b", "a") as first, wakeups.waiting("b") as second:
        wakeups.wake(["a", "c"])
        assert (first.is_set(), second.is_set()) == (True, False)
        wakeups.wake_all()
        assert second.is_set()
        assert "b" in wakeups

    assert not wakeups
