"""What is due comes once, at its newest time, earliest first."""

import pytest

from subagents.engine.kernel.due_heap import SPARE, DueHeap


@pytest.mark.requirement("time:due-heap")
def test_a_key_is_due_at_its_newest_time_and_once() -> None:
    due: DueHeap[str] = DueHeap()
    assert due.put("a", 10)
    assert not due.put("b", 30)
    assert not due.put("a", 20)
    due.put("c", 15)
    due.drop("c")
    assert due.next_ms == 20
    assert list(due.take(19)) == []
    assert list(due.take(30)) == ["a", "b"]
    assert due.next_ms is None
    assert list(due.take(100)) == []


@pytest.mark.requirement("time:due-heap")
def test_all_times_move_with_the_clock() -> None:
    due: DueHeap[str] = DueHeap()
    due.put("a", 10)
    due.put("b", 20)
    due.put("b", 30)
    due.shift(-5)
    assert list(due.take(5)) == ["a"]
    assert due.next_ms == 25


@pytest.mark.requirement("time:due-heap")
def test_what_was_replaced_or_dropped_does_not_pile_up() -> None:
    due: DueHeap[int] = DueHeap()
    for number in range(10_000):
        due.put(number, number + 1_000_000)
        due.drop(number)
        due.put(-1, number)
    assert len(due._heap) <= 2 * len(due.due_ms) + SPARE
    assert list(due.take(10_000)) == [-1]
