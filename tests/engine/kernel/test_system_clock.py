"""The machine's clock, set while a daemon lives; the clocks themselves are replaced here."""

import time

import pytest

from subagents.engine.kernel.system_clock import SystemClock


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
