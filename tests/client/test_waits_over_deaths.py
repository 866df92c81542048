"""Every client's wait, over daemons that die one after the other: one rule, by a turned clock."""

import math
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.client.turned_clock import (
    AWAY_S,
    LIVES_S,
    BlockingConnection,
    LoopConnection,
    MortalDaemons,
    TurnedClock,
)
from tests.simulation.virtual_loop import VirtualLoop

from subagents.api.wire.run_answers import RunStatus
from subagents.cli.runs import attach, follow
from subagents.cli.show import events_command, log_command
from subagents.client import client as client_module
from subagents.client import transport, worker_calls
from subagents.client.agent_tools import Tools
from subagents.client.client import AsyncClient, Client, persistently
from subagents.client.orchestrator import Orchestrator
from subagents.client.run_handle import RunHandle
from subagents.client.transport import RECONNECT_S, Absence, Gone, NotHttp, Silent
from subagents.client.worker_calls import WorkerCalls
from subagents.errors import DaemonUnreachable, NotFound, StoreUnavailable, Unavailable

ENDED = {
    "completed": [],
    "pending": [],
    "errors": [{"runId": "r-1", "error": "it was pruned"}],
    "messages": [],
}
"""The shortest answer that ends a wait."""
PAGE = {
    "runId": "r-1",
    "ended": True,
    "lines": [],
    "nextSeq": 1,
    "totalLines": 0,
    "returnedLines": 0,
    "offset": 0,
}


def answer_to(sent: bytes) -> object:
    """What each kind of call gets in the end."""
    target = sent.split()[1].decode()
    if target.startswith("/v1/tools"):
        structured: dict[str, object] = {"completed": [], "pending": [], "errors": []}
        return {"text": "ended", "isError": False, "structured": structured, "tools": []}
    if "/log" in target:
        return PAGE
    if target.startswith("/v1/events"):
        event = {"seq": 1, "type": "run", "event": "x", "runId": "r-1", "occurredAt": "x"}
        return {"seq": 1, "events": [event], "label": "x"}
    if target.startswith("/v1/requests/"):
        return {"requestId": "q1", "status": "answered"}
    if target == "/v1/requests":
        return {"requestId": "q1", "status": "pending"}
    return ENDED


# -- blocking clients ------------------------------------------------------------------------------

Blocking = Callable[[Client], object]


def waits(_: Client) -> object:
    waiting = follow.Waiting(["r-1"], until="all", timeout_s=None, starts=False)
    waiting.run()
    if waiting.error is not None:
        raise waiting.error
    return waiting.document


def waits_for_a_time(_: Client) -> object:
    waiting = follow.Waiting(["r-1"], until="all", timeout_s=20 * LIVES_S, starts=False)
    waiting.run()
    if waiting.error is not None:
        raise waiting.error
    return waiting.document


def follows_a_log(client: Client) -> object:
    page = SimpleNamespace(run_id="r-1", ended=False, next_seq=1)
    asked: Any = {"grep": None, "type": None, "attempt": None}
    log_command._follow(client, cast("Any", page), asked, json=False)
    return True


def follows_events(client: Client) -> object:
    return next(events_command._pages(client, {}, 0, until=None))


def attaches(client: Client) -> object:
    follower = attach.Follower("r-1", tail=1, json=False)
    return follower._print(client, "r-1", {"afterSeq": 0, "waitSeconds": 20})


def worker_calls_now() -> float:
    """By the clock that the test turns."""
    now: float = vars(worker_calls)["time"].monotonic()
    return now


def asks(client: Client) -> object:
    return WorkerCalls(client, "r-1")._settled("q1", until=worker_calls_now() + 1e6)


BLOCKING: list[Blocking] = [
    waits,
    waits_for_a_time,
    follows_a_log,
    follows_events,
    attaches,
    asks,
]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> TurnedClock:
    found = TurnedClock()
    for module in (client_module, worker_calls, follow):
        monkeypatch.setattr(module, "time", found)
    return found


def blocking(daemons: MortalDaemons, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch) -> Client:
    def connection(_: object) -> BlockingConnection:
        return BlockingConnection(daemons, clock)

    monkeypatch.setattr(client_module, "Connection", connection)
    client = Client("/nowhere")
    monkeypatch.setattr(follow, "connect", lambda **_: client)
    return client


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize("wait", BLOCKING)
def test_a_wait_that_blocks_survives_daemons_that_die_when_it_is_older_than_any_limit(
    wait: Blocking, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = MortalDaemons(3, answer_to, clock.monotonic, lives_s=LIVES_S)
    assert wait(blocking(daemons, clock, monkeypatch))
    assert len(daemons.asked) == 4


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize("wait", [each for each in BLOCKING if each is not asks])
def test_a_wait_that_blocks_gives_up_when_no_daemon_comes_for_half_a_minute(
    wait: Blocking, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = MortalDaemons(1, answer_to, clock.monotonic, away_s=None, lives_s=50.0)
    began = clock.now_s
    with pytest.raises(DaemonUnreachable):
        wait(blocking(daemons, clock, monkeypatch))
    assert clock.now_s - began - 50.0 == pytest.approx(RECONNECT_S, abs=1)


# -- clients of an event loop ----------------------------------------------------------------------

Awaiting = Callable[[AsyncClient], Awaitable[object]]


def handle(client: AsyncClient) -> RunHandle:
    return RunHandle(client, cast("RunStatus", SimpleNamespace(run_id="r-1", label="")))


async def waits_in_python(client: AsyncClient) -> object:
    with pytest.raises(NotFound, match="pruned"):
        await handle(client).wait()
    return True


async def follows_in_python(client: AsyncClient) -> object:
    return [line async for line in handle(client).follow()] == []


async def hears_events(client: AsyncClient) -> object:
    async for event in Orchestrator(client, cwd=Path("/")).events(after=0):
        return event
    return None


async def uses_the_tool(client: AsyncClient) -> object:
    return await Tools(client).sessions_wait(timeout_seconds=600)


AWAITING: list[Awaiting] = [
    waits_in_python,
    follows_in_python,
    hears_events,
    uses_the_tool,
]


class LoopClient(AsyncClient):
    """The real client, whose daemons are those of the test."""

    def __init__(self, daemons: MortalDaemons) -> None:
        super().__init__("/nowhere")
        self._daemons = daemons

    async def _connected(self) -> Any:
        return LoopConnection(self._daemons)


def on_virtual_time(work: Awaitable[object], loop: VirtualLoop) -> Any:
    async def done() -> object:
        return await work

    task = loop.create_task(done())
    loop.run(is_over=task.done, steps_max=100_000)
    return task.result()


def turned_to(loop: VirtualLoop) -> float:
    """Seconds since it began."""
    return loop.time()


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    found = VirtualLoop(random.Random(1))  # type: ignore[abstract]  # noqa: S311  nothing secret
    yield found
    found.close()


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize("wait", AWAITING)
def test_a_wait_in_an_event_loop_survives_daemons_that_die_when_it_is_older_than_any_limit(
    wait: Awaiting, loop: VirtualLoop
) -> None:
    lives_s = 50.0 if wait is uses_the_tool else LIVES_S
    daemons = MortalDaemons(3, answer_to, loop.time, lives_s=lives_s)
    assert on_virtual_time(wait(LoopClient(daemons)), loop)
    assert len(daemons.asked) == 4


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize("wait", AWAITING)
def test_a_wait_in_an_event_loop_gives_up_when_no_daemon_comes_for_half_a_minute(
    wait: Awaiting, loop: VirtualLoop
) -> None:
    daemons = MortalDaemons(1, answer_to, loop.time, away_s=None, lives_s=50.0)
    with pytest.raises(DaemonUnreachable):
        on_virtual_time(wait(LoopClient(daemons)), loop)
    assert turned_to(loop) - 50.0 == pytest.approx(RECONNECT_S, abs=1)


# -- the rule --------------------------------------------------------------------------------------


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize(
    ("until", "losses", "goes_on"),
    [
        # (seconds of the try, whether a daemon was there until its end)
        pytest.param(None, [(0, True)], True, id="one loss"),
        pytest.param(None, [(500, True)], True, id="a loss after any time"),
        pytest.param(None, [(1, True)] * 40, False, id="a call that itself ends daemons"),
        pytest.param(math.inf, [(1, True)] * 40, True, id="a wait over many daemons"),
        pytest.param(math.inf, [(500, True), (0, False), (29, False)], True, id="away for 29 s"),
        pytest.param(math.inf, [(500, True), (0, False), (31, False)], False, id="away for 31 s"),
        pytest.param(math.inf, [(0, False), (31, False)], False, id="never there"),
        pytest.param(math.inf, [(29, False), (2, True), (29, False)], True, id="there in between"),
        pytest.param(10.0, [(9, True), (5, True), (29, False)], False, id="its own time is up"),
        pytest.param(10.0, [(20, True), (20, False)], True, id="lost behind its own time"),
    ],
)
def test_a_daemon_is_looked_for_since_it_was_last_there(
    until: float | None,
    losses: list[tuple[float, bool]],
    goes_on: bool,  # noqa: FBT001
) -> None:
    now = 0.0
    absence = Absence(until=until, now=lambda: now)
    found = True
    for seconds, was_there in losses:
        absence.asking()
        now += seconds
        found = absence.goes_on(was_there=was_there)
        if not found:
            break
    assert found is goes_on


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize(
    ("gone", "was_there"),
    [
        (Gone("it closed the connection", was_sent=True), True),
        (Gone("nobody listens", was_sent=False), False),
        (Silent(60.0), False),
        (NotHttp(), False),
    ],
)
def test_only_a_daemon_that_took_the_call_and_ended_was_there(
    gone: Gone,
    was_there: bool,  # noqa: FBT001
) -> None:
    assert gone.was_there is was_there


@pytest.mark.requirement("client:waits-over-deaths")
def test_a_daemon_that_stops_is_waited_for_and_one_that_cannot_write_is_not(
    clock: TurnedClock,
) -> None:
    answers: list[object] = [Unavailable("the daemon is stopping"), "done"]

    def call() -> object:
        clock.sleep(200)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert persistently(call, until=math.inf) == "done"
    answers[:] = [StoreUnavailable("the disk is full"), "done"]
    with pytest.raises(StoreUnavailable):
        persistently(call, until=math.inf)
    answers[:] = [Unavailable("the daemon is stopping")] * 1000
    clock.now_s = 0.0
    with pytest.raises(Unavailable):
        persistently(lambda: answers_at_once(answers), until=math.inf)
    assert clock.now_s == pytest.approx(RECONNECT_S, abs=1)


def answers_at_once(answers: list[object]) -> object:
    answer = answers.pop(0)
    assert isinstance(answer, Exception)
    raise answer


@pytest.mark.requirement("client:waits-over-deaths")
def test_half_a_minute_is_longer_than_a_daemon_takes_to_come_back() -> None:
    assert AWAY_S < transport.RECONNECT_S
