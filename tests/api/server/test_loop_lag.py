"""How late the loop is: looked at while there is work, and never to find out that there is none."""

import threading
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send
from tests.api.home_daemon import serving, until

from subagents.api.calls.services import LAGS_S
from subagents.api.server import loop_lag
from subagents.api.server.loop_lag import LoopLag
from subagents.engine.records.counters import Histogram


async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Answers at once."""


async def call(lag: LoopLag) -> None:
    await lag({"type": "http"}, None, None)  # type: ignore[arg-type]  # the app reads none


@pytest.mark.requirement("metrics:loop-lag")
async def test_a_loop_that_was_held_up_shows() -> None:
    seconds = Histogram(LAGS_S)
    await call(LoopLag(app, seconds))
    threading.Event().wait(loop_lag.LOOK_S + 0.2)  # holding the loop up is what is tested
    await until(lambda: seconds.sum > 0.15)


@pytest.mark.requirement("metrics:loop-lag")
async def test_calls_of_a_daemon_have_its_loop_looked_at(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        before = sum(home.services.loop_lag_s.counts)
        await home.ok("GET", "/healthz")
        await until(lambda: sum(home.services.loop_lag_s.counts) > before)


@pytest.mark.requirement("daemon:idle", "metrics:loop-lag")
async def test_many_calls_have_the_loop_looked_at_once_and_then_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_lag, "LOOK_S", 0.001)
    seconds = Histogram(LAGS_S)
    lag = LoopLag(app, seconds)
    for _ in range(3):
        await call(lag)
    await until(lambda: sum(seconds.counts) == 1)
    assert lag._look is None
