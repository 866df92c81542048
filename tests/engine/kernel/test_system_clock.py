"""The machine's clock, set while a daemon lives, and ids; the clocks are replaced here."""

import os
import re
import time
import uuid
from bisect import bisect

import pytest

from subagents.engine.kernel.system_clock import READ_AHEAD_BYTES, RandomIds, SystemClock
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


@pytest.mark.requirement("ownership:lapse")
@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux' clock")
def test_the_time_a_suspended_machine_sleeps_has_elapsed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept_ns, real = 3_600 * 10**9, time.clock_gettime_ns
    clock = SystemClock()
    before_ms, steady_ms = clock.elapsed_ms(), clock.steady_ms()

    def after_a_nap(which: int) -> int:
        return real(which) + (slept_ns if which == time.CLOCK_BOOTTIME else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", after_a_nap)

    assert clock.elapsed_ms() - before_ms >= 3_600_000
    assert clock.steady_ms() - steady_ms < 3_600_000


@pytest.mark.requirement("ids:random")
def test_ids_are_made_of_random_bytes_that_are_each_used_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[bytes] = []

    def urandom(number: int) -> bytes:
        given.append(bytes((len(given) + at // 256 + at) % 256 for at in range(number)))
        return given[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    ids = RandomIds(Second())
    seen = b""
    for _ in range(500):
        found = ids._random(56)
        assert len(found) == 56
        seen += found

    # All of each reading but an end that is too short for the next id.
    usable = READ_AHEAD_BYTES // 56 * 56
    assert seen == b"".join(each[:usable] for each in given)[: len(seen)]
    assert len(given) == -(-500 // (READ_AHEAD_BYTES // 56))


@pytest.mark.requirement("ids:random")
def test_ten_thousand_ids_differ_and_have_their_forms() -> None:
    ids = RandomIds(Second())
    runs = {ids.run_id() for _ in range(10_000)}
    sessions = {ids.session_uuid() for _ in range(10_000)}
    secrets = {ids.token_secret() for _ in range(10_000)}

    assert len(runs) == len(sessions) == len(secrets) == 10_000
    assert all(re.fullmatch("r-[0-9a-hjkmnp-tv-z]{10}", each) for each in runs)
    assert all(uuid.UUID(each).version == 4 for each in sessions)
    assert all(re.fullmatch("[A-Za-z0-9_-]{43}", each) for each in secrets)
    # Every character of the alphabet stands in every place behind the second.
    assert all(len({each[place] for each in runs}) == 32 for place in range(4, 12))


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
