"""A wait of the bridge, over daemons that die one after the other, by a turned clock."""

import json
import os
from typing import Any, cast

import pytest
from tests.client.turned_clock import BlockingConnection, MortalDaemons, TurnedClock

from subagents.client import client as client_module
from subagents.client.transport import RECONNECT_S
from subagents.errors import DaemonUnreachable
from subagents.extensions.mcp.bridge import bridge as bridge_module
from subagents.extensions.mcp.bridge import daemon_link
from subagents.extensions.mcp.bridge.bridge import Bridge
from subagents.extensions.mcp.bridge.bridge_rpc import Call

LIVES_S = 50.0
"""What an agent program calls over MCP has to be back within five minutes, in all."""


def answer_to(sent: bytes) -> object:
    """What a call gets in the end."""
    _, _, body = sent.partition(b"\r\n\r\n")
    return {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": {"ok": True}}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> TurnedClock:
    found = TurnedClock()
    for module in (client_module, bridge_module, daemon_link):
        monkeypatch.setattr(module, "time", found)
    return found


def wait(daemons: MortalDaemons, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch) -> object:
    def connection(_: object) -> BlockingConnection:
        return BlockingConnection(daemons, clock)

    monkeypatch.setattr(client_module, "Connection", connection)
    monkeypatch.setattr(bridge_module, "Connection", connection)
    link = daemon_link.Daemon("/nowhere", {}, None)
    serving = Bridge(link, stdin=cast("Any", None), stdout=os.open(os.devnull, os.O_WRONLY))
    arguments = {"until": "all", "timeoutSeconds": 600}
    params = {"name": "sessions_wait", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    call = Call(1, 7, "tools/call", params, json.dumps(message).encode())
    answer = serving._answer(call)
    assert answer is not None
    found: Any = json.loads(answer.message)["result"]
    if "structuredContent" in found:
        raise DaemonUnreachable(found["structuredContent"]["error"])
    return found


@pytest.mark.requirement("client:waits-over-deaths")
def test_a_wait_survives_daemons_that_die(
    clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = MortalDaemons(3, answer_to, clock.monotonic, lives_s=LIVES_S)
    assert wait(daemons, clock, monkeypatch)
    assert len(daemons.asked) == 4


@pytest.mark.requirement("client:waits-over-deaths")
def test_a_wait_gives_up_when_no_daemon_comes_for_half_a_minute(
    clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = MortalDaemons(1, answer_to, clock.monotonic, away_s=None, lives_s=LIVES_S)
    began = clock.now_s
    with pytest.raises(DaemonUnreachable):
        wait(daemons, clock, monkeypatch)
    assert clock.now_s - began - LIVES_S == pytest.approx(RECONNECT_S, abs=1)


@pytest.mark.requirement("client:waits-over-deaths")
def test_the_next_daemon_is_asked_only_for_what_is_left_of_a_wait(
    clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = MortalDaemons(3, answer_to, clock.monotonic, lives_s=LIVES_S)
    wait(daemons, clock, monkeypatch)
    bodies = [json.loads(sent.partition(b"\r\n\r\n")[2]) for sent in daemons.asked]
    left = [body["params"]["arguments"]["timeoutSeconds"] for body in bodies]
    assert left[0] == 600
    assert left[1:] == pytest.approx([200, 130, 60], abs=2)


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({"timeoutSeconds": 100}, 90),
        ({"timeoutSeconds": 600}, 260),
        ({}, 20),
        (None, 20),
        ({"timeoutSeconds": 5}, 0),
        ({"timeoutSeconds": "soon"}, 20),
    ],
)
def test_a_wait_that_is_asked_again_keeps_its_own_end(arguments: Any, left: float) -> None:
    params = {"name": "sessions_wait"} | ({} if arguments is None else {"arguments": arguments})
    call = Call(1, "a", "tools/call", params, b"{}")
    call.has_waited(10.0)
    message = json.loads(call.body)
    assert message["id"] == "a"
    assert message["params"]["arguments"]["timeoutSeconds"] == left


@pytest.mark.requirement("client:waits-over-deaths")
@pytest.mark.parametrize("name", ["sessions_spawn", "request_orchestrator", "sessions_list"])
def test_a_call_that_is_no_wait_with_a_time_is_asked_again_as_it_is(name: str) -> None:
    call = Call(1, 1, "tools/call", {"name": name, "arguments": {"timeoutSeconds": 9}}, b"{}")
    call.has_waited(10.0)
    assert call.body == b"{}"
