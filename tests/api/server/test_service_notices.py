"""What a service manager hears of the daemon, on a real datagram socket."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.home_daemon import DEADLINE_S

from subagents.api.server import service_notices


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(tmp_path / "notify"))
        bound.settimeout(DEADLINE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield bound


@pytest.mark.requirement("daemon:watchdog")
@pytest.mark.parametrize("end", [b"STOPPING=1", b"RELOADING=1"])
def test_the_watchdog_hears_of_us_while_the_loop_turns_and_then_how_that_ends(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))

    async def scenario() -> list[bytes]:
        stopping, anew = asyncio.Event(), asyncio.Event()
        if end == b"RELOADING=1":
            anew.set()
        async with service_notices.told(stopping, anew):
            heard = [await asyncio.to_thread(manager.recv, 100) for _ in range(3)]
            stopping.set()
            while heard[-1] == b"WATCHDOG=1":
                heard.append(await asyncio.to_thread(manager.recv, 100))
        return heard

    heard = asyncio.run(scenario())
    assert heard[:3] == [b"WATCHDOG=1"] * 3
    assert heard[-1] == end


@pytest.mark.requirement("daemon:watchdog")
@pytest.mark.parametrize(
    ("variables", "every_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 30),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_it_hears_of_us_twice_in_its_time_and_only_when_we_are_meant(
    manager: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    every_s: float | None,
) -> None:
    del manager
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert service_notices.interval_s() == every_s


@pytest.mark.requirement("daemon:ready:service-manager")
def test_without_a_service_manager_nothing_is_told_and_a_deaf_one_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("", str(tmp_path / "nobody"), "@nobody-listens-here"):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        service_notices.tell(service_notices.READY)
