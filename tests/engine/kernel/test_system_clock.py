"""The machine's clock, set while a daemon lives, and ids; the clocks are replaced here."""

import re
import time
from bisect import bisect

import pytest

from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.ports import Clock

NOW_MS = 1_750_000_000_000
PAGE_ROWS = 100
"""So many ids about are on a page of an index."""


class Second(Clock):
    """It stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW_MS

    def now_ms(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@pytest.mark.requirement("timers:clock-steps")
def test_a_machine_clock_that_is_set_changes_nothing_until_the_step_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    before_ms, set_ns = clock.now_ms(), time.time_ns() - 3_600 * 10**9
    began_ns = time.monotonic_ns()
    monkeypatch.setattr(time, "time_ns", lambda: set_ns + time.monotonic_ns() - began_ns)

    assert 0 <= clock.now_ms() - before_ms < 10_000
    assert clock.take_step_ms() == pytest.approx(-3_600_000, abs=200)
    assert clock.now_ms() == pytest.approx(before_ms - 3_600_000, abs=10_000)
    assert clock.take_step_ms() == 0


@pytest.mark.requirement("store:lean")
def test_runs_of_one_second_touch_few_pages_of_an_index_over_their_ids() -> None:
    clock = Second()
    ids = RandomIds(clock)
    known = []
    for second in range(100_000):
        clock.now = NOW_MS + second * 1_000
        known.append(ids.run_id())
    known.sort()
    clock.now += 1_000

    assert len({bisect(known, ids.run_id()) // PAGE_ROWS for _ in range(500)}) <= 2


@pytest.mark.requirement("queries:resolve")
def test_an_id_is_ten_characters_and_told_apart_by_its_first_ones() -> None:
    clock = Second()
    ids, made = RandomIds(clock), []
    for second in range(32):
        clock.now = NOW_MS + second * 1_000
        made.append(ids.run_id())
    of_one_second = [ids.run_id() for _ in range(1_000)]

    assert all(re.fullmatch(r"r-[0-9a-hjkmnp-tv-z]{10}", each) for each in made)
    assert len({each[2] for each in made}) == 32
    assert len({each[:4] for each in of_one_second}) == 1
    assert len({each[4] for each in of_one_second}) > 16
    assert len({*of_one_second}) == 1_000
