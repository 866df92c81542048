"""A worker that is far ahead of its reader is stopped, and goes on when it was read."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGCONT

import pytest
from tests.runtimes.attempt_harness import off_loop, until_async

from subagents.domain.run.values import AttemptId, RunId
from subagents.engine.kernel.system_clock import SystemClock
from subagents.runtimes.process import backpressure, shim
from subagents.runtimes.process.backpressure import (
    HELD,
    UNREAD_BYTES_MAX,
    UNREAD_BYTES_MIN,
    Backpressure,
)
from subagents.runtimes.process.processes import Census, Marker
from subagents.runtimes.process.shim import AttemptDirectory, ProcessAttempts


class Noisy:
    """A worker with a child, and how much of what it wrote is unread."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.unread = 0
        self.marker = Marker(AttemptId("r-noisy#1"), str(directory))
        env = {**os.environ, **self.marker.variables()}
        command = ["sh", "-c", "cat /dev/zero > /dev/null & echo; wait"]
        self.worker = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
        assert self.worker.stdout is not None
        self.worker.stdout.readline()  # its child is there

    def watcher(self) -> Backpressure:
        return Backpressure(
            self.marker, self.directory, lambda: None, lambda: self.unread, Census(off_loop)
        )

    def states(self) -> set[str]:
        pid = self.worker.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        stats = [Path(f"/proc/{each}/stat").read_text() for each in (str(pid), *children)]
        return {stat[stat.rfind(")") + 2] for stat in stats}

    def is_held(self) -> bool:
        return self.states() == {"T"}

    def end(self) -> None:
        pid = self.worker.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (*children, str(pid)):
            os.kill(int(each), 9)
        self.worker.communicate()


@pytest.fixture
def noisy(tmp_path: Path) -> Iterator[Noisy]:
    found = Noisy(tmp_path)
    yield found
    found.end()


async def seen(condition: Callable[[], bool]) -> None:
    await until_async("the processes' states", condition)


@asynccontextmanager
async def held(noisy: Noisy) -> AsyncIterator[Backpressure]:
    pressure = noisy.watcher()
    noisy.unread = UNREAD_BYTES_MAX + 1
    pressure.look()
    await seen(noisy.is_held)
    yield pressure


@pytest.mark.requirement("runtimes:backpressure", "disk:noisy-worker")
def test_all_processes_of_a_worker_that_is_far_ahead_are_stopped_until_it_was_read(
    noisy: Noisy,
) -> None:
    async def scenario() -> None:
        async with held(noisy) as pressure:
            noisy.unread = UNREAD_BYTES_MIN

            def goes_on() -> bool:
                pressure.look()  # as after every read
                return "T" not in noisy.states()

            await seen(goes_on)
        assert not (noisy.directory / HELD).exists()

    asyncio.run(scenario())


@pytest.mark.requirement("runtimes:backpressure")
async def test_a_worker_that_is_read_in_time_is_never_stopped(noisy: Noisy) -> None:
    pressure = noisy.watcher()
    noisy.unread = UNREAD_BYTES_MIN
    for _ in range(3):
        pressure.look()
        await asyncio.sleep(0)

    assert pressure._holding is None


@pytest.mark.requirement("runtimes:backpressure", "disk:noisy-worker")
async def test_on_a_disk_that_is_almost_full_little_is_allowed(
    noisy: Noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.statvfs_result((4096, 4096, 10, 10, 10, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    pressure = noisy.watcher()
    noisy.unread = UNREAD_BYTES_MIN + 1
    pressure.look()
    await seen(noisy.is_held)
    pressure.let_go()


@pytest.mark.requirement("runtimes:backpressure")
async def test_whoever_adopts_a_worker_that_was_held_lets_it_go_on(noisy: Noisy) -> None:
    async with held(noisy):
        pass  # and its daemon is killed
    await noisy.watcher().take_over()
    await seen(lambda: "T" not in noisy.states())
    assert not (noisy.directory / HELD).exists()


@pytest.mark.requirement("runtimes:backpressure", "pause:freezes")
async def test_a_held_worker_that_is_paused_goes_on_when_neither_keeps_it(
    noisy: Noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = ProcessAttempts(noisy.directory, SystemClock(), off_loop)
    directory = AttemptDirectory(noisy.directory, RunId("r-noisy"), 1)
    directory.path.mkdir(parents=True)
    noisy.directory = directory.path
    sent = list[int]()

    async def signalled(_marker: Marker, number: int, **_: object) -> None:
        sent.append(number)

    monkeypatch.setattr(shim, "signal_tree", signalled)
    monkeypatch.setattr(backpressure, "send", lambda _, number: sent.append(number))
    pressure = noisy.watcher()
    noisy.unread = UNREAD_BYTES_MAX + 1
    pressure.look()
    await seen(lambda: len(sent) == 2)  # it and its child
    await attempts.freeze(noisy.marker.attempt_id, directory)
    pressure.let_go()
    assert SIGCONT not in sent
    (directory.path / HELD).touch()
    await attempts.thaw(noisy.marker.attempt_id, directory)
    assert SIGCONT not in sent
    await noisy.watcher().take_over()
    assert SIGCONT in sent
