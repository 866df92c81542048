"""Waits of every client that are older than any time limit in their path, over kill -9 thrice."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.bridge_client import PROGRAM, bridge, completed, environment
from tests.e2e.live_home import LiveHome, live_home, until

from subagents import Orchestrator, Subagents
from subagents.cli.connection import POLL_S
from subagents.client.client import TIMEOUT_S
from subagents.client.daemon_start import START_TIMEOUT_S
from subagents.client.orchestrator import EVENTS_WAIT_S
from subagents.client.run_handle import LOG_WAIT_S
from subagents.client.transport import RECONNECT_S
from subagents.errors import DaemonUnreachable
from subagents.extensions.mcp.bridge.daemon_link import SILENCE_S

OLD_S: Final = 5 + max(
    RECONNECT_S,
    SILENCE_S,
    TIMEOUT_S,
    START_TIMEOUT_S,
    POLL_S + TIMEOUT_S,
    EVENTS_WAIT_S + TIMEOUT_S,
    LOG_WAIT_S + TIMEOUT_S,
)
"""Older than whatever a client counts; the waits themselves are longer."""
WAIT_S: Final = 250.0
KILLS: Final = 3
ASKING: Final = "asking"


def command(home: LiveHome, *words: str) -> str:
    """What a command prints; one that did not succeed is shown with what it said."""
    done = subprocess.run(
        [PROGRAM, *words],
        env=environment(home),
        cwd=home.work,
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else f"{done.returncode}: {done.stderr}"


def in_python(home: LiveHome, task: str) -> object:
    with Subagents.connect(home=home.root / "home") as subagents:
        return subagents.spawn(task, agent="sh").wait().result


def in_a_loop(home: LiveHome, task: str) -> object:
    async def waited() -> object:
        async with Orchestrator.connect(home=home.root / "home") as subagents:
            return (await (await subagents.spawn(task, agent="sh")).wait(WAIT_S)).result

    return asyncio.run(waited())


def by_following(home: LiveHome, task: str) -> object:
    async def followed() -> object:
        async with Orchestrator.connect(home=home.root / "home") as subagents:
            run = await subagents.spawn(task, agent="sh")
            said = [line.text async for line in run.follow() if line.type == "text"]
            return said[-1]

    return asyncio.run(followed())


def by_events(home: LiveHome, task: str) -> object:
    async def heard() -> object:
        async with Orchestrator.connect(home=home.root / "home") as subagents:
            run = await subagents.spawn(task, agent="sh")
            async for event in subagents.events(after=0, run=run.id, types=["completion"]):
                return event.result
        return None

    return asyncio.run(heard())


def by_a_tool(home: LiveHome, task: str) -> object:
    async def waited() -> object:
        async with Orchestrator.connect(
            home=home.root / "home", session="agent:main:tool"
        ) as subagents:
            run = await subagents.spawn(task, agent="sh")
            found: Any = await subagents.tools.sessions_wait([run.id], timeout_seconds=WAIT_S)
            return found["completed"][0]["result"]

    return asyncio.run(waited())


def over_mcp(home: LiveHome, task: str) -> object:
    with bridge(home) as client:
        client.call("sessions_spawn", task=task, agentId="sh")
        number = client.start_call("sessions_wait", until="all", timeoutSeconds=WAIT_S)
        return completed(client.answer_to(number, within_s=WAIT_S)["result"])[0]["result"]


CLIENTS: Final[dict[str, Callable[[LiveHome, str], object]]] = {
    "run": lambda home, task: command(home, "run", "--agent", "sh", task),
    "python": in_python,
    "loop": in_a_loop,
    "follow": by_following,
    "events": by_events,
    "tool": by_a_tool,
    "mcp": over_mcp,
    "ask": lambda home, _: command(
        home, "run", "--agent", "sh", "--label", ASKING, f"{PROGRAM} ask 'what?' --timeout 20m"
    ),
}


@pytest.mark.requirement("client:waits-over-deaths")
def test_every_clients_wait_that_is_older_than_any_limit_survives_three_kills(
    tmp_path: Path,
) -> None:
    found: dict[str, object] = {}
    with live_home(tmp_path) as home:
        task = f"until [ -e {home.root}/go ]; do sleep 0.2; done; echo done"

        def wait(name: str) -> None:
            try:
                found[name] = CLIENTS[name](home, task)
            except Exception as error:  # noqa: BLE001  it is the test's to say
                found[name] = repr(error)

        threads = [threading.Thread(target=wait, args=(name,), daemon=True) for name in CLIENTS]
        for thread in threads:
            thread.start()
        until(lambda: len(home.client().get("/v1/runs")["runs"]) >= len(CLIENTS), what="all runs")  # type: ignore[arg-type]
        began = time.monotonic()
        until(lambda: time.monotonic() - began > OLD_S, what="old waits", within_s=2 * OLD_S)
        assert found == {}
        killed: set[int] = set()
        while len(killed) < KILLS:
            pid = until(lambda: _served_by(home, killed), what="a daemon that a client started")
            home.close_clients()
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        (home.root / "go").touch()
        until(home.is_up, what="a daemon that a client started")
        (asked,) = home.show(ASKING)["requests"]
        assert command(home, "answer", asked["requestId"], "done")
        for thread in threads:
            thread.join(WAIT_S)
        assert found == dict.fromkeys(CLIENTS, "done")


def _served_by(home: LiveHome, killed: set[int]) -> int | None:
    with contextlib.suppress(DaemonUnreachable):
        pid = int(home.get("/version")["pid"])
        return None if pid in killed else pid
    return None
