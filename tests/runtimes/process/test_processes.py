"""Ending an attempt ends everything it started, and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.runtimes.attempt_harness import BOUND_S, Harness, off_loop, until

from subagents.domain.run.run import Exit
from subagents.domain.run.values import AttemptId
from subagents.errors import ConfigError
from subagents.process_identity import boot_id
from subagents.runtimes.process import processes
from subagents.runtimes.process.processes import (
    Census,
    Identity,
    Marker,
    Process,
    alive,
    check_sight,
    marked,
    members,
    on_end,
    scan,
)

T = TypeVar("T")


def _identity(pid: int) -> Identity:
    [found] = [each for each in scan() if each.pid == pid]
    return Identity(pid, found.start, boot_id(), time.time())


STUBBORN = (
    "trap '' TERM; "
    "setsid sh -c 'echo $$ > session; trap \"\" TERM; while :; do sleep 1; done' & "
    "setsid env -i sh -c 'echo $$ > bare; trap \"\" TERM; while :; do sleep 1; done' & "
    "sh -c 'echo $$ > halted; kill -STOP $$; sleep 60' & "
    "while :; do sleep 1; done"
)


@pytest.mark.requirement("runtimes:stop-ends-everything")
def test_stop_ends_a_worker_that_ignores_term_with_all_its_descendants(harness: Harness) -> None:
    """Own sessions, scrubbed environments and stopped processes do not save anybody."""

    async def go() -> list[Identity]:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", STUBBORN))
        pids = [
            int(await asyncio.to_thread(until, name, (lambda name=name: _line(harness.cwd / name))))
            for name in ("session", "bare", "halted")
        ]
        found = [_identity(pid) for pid in pids]
        await runtime.stop(harness.ref(), grace_s=0.3)
        ended = await harness.read(runtime)
        assert ended.exited.exit == Exit(signal=9)
        await runtime.stop(harness.ref(), grace_s=0.3)
        return found

    for each in asyncio.run(go()):
        assert not alive(each)
    assert harness.carriers() == []


def _line(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text.strip() if text.endswith("\n") else ""


@pytest.mark.requirement("runtimes:stop-is-gentle-first")
async def test_a_worker_that_heeds_term_ends_in_its_own_way_within_the_grace(
    harness: Harness,
) -> None:
    runtime = harness.runtime()
    await runtime.start(
        harness.launch(
            "sh", "-c", "trap 'echo tidied; exit 3' TERM; echo up; while :; do sleep 0.02; done"
        )
    )
    await asyncio.to_thread(until, "it is up", lambda: harness.directory().sizes().out)
    async with asyncio.timeout(BOUND_S):
        await runtime.stop(harness.ref(), grace_s=10 * BOUND_S)
    ended = await harness.read(runtime)
    assert ended.exited.exit == Exit(code=3)
    assert ended.result.text == "up\ntidied"


@pytest.mark.requirement("runtimes:stop-is-gentle-first")
async def test_a_stopped_process_is_continued_so_that_it_can_heed_term(harness: Harness) -> None:
    runtime = harness.runtime()
    started = await runtime.start(
        harness.launch(
            "sh", "-c", "trap 'echo heeded; exit 0' TERM; echo up; while :; do sleep 0.02; done"
        )
    )
    await asyncio.to_thread(until, "it is up", lambda: harness.directory().sizes().out)
    assert started.pid is not None
    os.kill(started.pid, signal.SIGSTOP)
    await runtime.stop(harness.ref(), grace_s=20)
    assert (await harness.read(runtime)).result.text == "up\nheeded"


@pytest.mark.requirement("runtimes:stop-ends-everything")
def test_stop_ends_what_a_worker_left_behind_when_it_exited(harness: Harness) -> None:
    async def go() -> None:
        runtime = harness.runtime()
        # One that never pauses fills the disk where this test is killed.
        says = "setsid timeout 60 sh -c 'while echo more; do sleep 0.01; done'"
        left = f"setsid sleep 60 & {says} & exit 0"
        await runtime.start(harness.launch("sh", "-c", left))
        assert (await harness.read(runtime)).exited.exit == Exit(code=0)
        assert harness.carriers()
        await runtime.stop(harness.ref(), grace_s=5)

    asyncio.run(go())
    assert harness.carriers() == []


DAEMONIZED = "(env -i setsid sh -c 'echo $$ > lost; exec sleep 602' &); "


@pytest.mark.requirement("runtimes:stop-ends-everything")
@pytest.mark.parametrize("then", ["exec sleep 60", "exit 0"])
def test_stop_ends_an_orphan_without_our_environment_in_a_session_of_its_own(
    harness: Harness, then: str
) -> None:
    async def go() -> Identity:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", DAEMONIZED + then))
        lost = await asyncio.to_thread(until, "the orphan", lambda: _line(harness.cwd / "lost"))
        found = _identity(int(lost))
        if then == "exit 0":
            assert (await harness.read(runtime)).exited.exit == Exit(code=0)
            assert alive(found)
        await runtime.stop(harness.ref(), grace_s=5)
        return found

    assert not alive(asyncio.run(go()))
    assert harness.carriers() == []


RESTLESS = """
import os, sys, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.0005)
"""


@pytest.mark.requirement("runtimes:stop-ends-everything")
def test_stop_ends_a_process_that_is_another_one_every_millisecond(harness: Harness) -> None:
    async def go() -> Identity:
        runtime = harness.runtime()
        await runtime.start(harness.launch("env", "-i", sys.executable, "-S", "-c", RESTLESS))
        shim = harness.directory().shim()
        assert shim is not None
        assert (await harness.read(runtime)).exited.exit == Exit(code=0)
        await runtime.stop(harness.ref(), grace_s=0)
        return shim

    # It ends by itself only when it has no child any more.
    assert not alive(asyncio.run(go()))


@pytest.mark.requirement("runtimes:no-look-without-need")
async def test_nobody_looks_at_all_processes_after_a_worker_that_left_nothing_behind(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def counted() -> tuple[Process, ...]:
        looks.append(1)
        return scan()

    monkeypatch.setattr(processes, "scan", counted)
    runtime = harness.runtime()
    await runtime.start(harness.launch("sh", "-c", "sleep 0 & wait"))
    await harness.read(runtime)
    await runtime.stop(harness.ref(), grace_s=5)
    assert not looks
    # Whoever gets the marker later is looked for again.
    runtime.marker(harness.ref())
    await runtime.stop(harness.ref(), grace_s=5)
    assert looks


@pytest.mark.requirement("runtimes:stop-before-start")
def test_an_attempt_that_was_stopped_before_it_started_never_starts(harness: Harness) -> None:
    async def go() -> None:
        runtime = harness.runtime()
        await runtime.stop(harness.ref(), grace_s=5)
        started = await runtime.start(harness.launch("touch", "ran"))
        assert started.pid is None
        ended = await harness.read(runtime)
        assert ended.vanished.error == "the worker was stopped before it started"

    asyncio.run(go())
    assert not (harness.cwd / "ran").exists()


@pytest.mark.requirement("runtimes:stop-ends-only-its-own")
def test_stop_leaves_other_attempts_and_other_installations_alone(
    harness: Harness, tmp_path: Path
) -> None:
    with Harness(tmp_path / "other") as other:

        async def go() -> None:
            runtime = harness.runtime()
            await runtime.start(harness.launch("sleep", "60", number=1))
            await runtime.start(harness.launch("sleep", "60", number=2))
            await other.runtime().start(other.launch("sleep", "60", number=1))
            await runtime.stop(harness.ref(1), grace_s=5)

        asyncio.run(go())
        assert len(harness.carriers()) == 2
        assert len(other.carriers()) == 2


@pytest.mark.requirement("runtimes:orphans")
async def test_orphans_are_live_workers_of_this_root_that_nobody_knows(harness: Harness) -> None:
    runtime = harness.runtime()
    for number in (1, 2):
        await runtime.start(harness.launch("sleep", "60", number=number))
    known = {harness.ref(1).attempt_id}
    found = await runtime.orphans(lambda: known)

    worker = harness.directory(2).worker()
    assert worker is not None
    assert {attempt for attempt, _ in found} == {harness.ref(2).attempt_id}
    assert worker.pid in {pid for _, pid in found}
    assert marked("/elsewhere") == []


@pytest.mark.requirement("runtimes:pid-reuse-refused")
def test_identity_is_id_and_start_time_and_boot_together() -> None:
    own = _identity(os.getpid())
    assert alive(own)
    assert not alive(own._replace(start=str(int(own.start) + 1)))
    assert not alive(own._replace(boot="another"))
    assert not alive(own._replace(start="-"))


@pytest.mark.requirement("runtimes:no-zombies")
def test_a_zombie_is_not_alive_and_its_end_is_told_without_pidfd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_pidfd", lambda _pid: None)

    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    identity = _identity(child.pid)

    async def go() -> None:
        ended = asyncio.Event()
        with on_end(identity, ended.set):
            assert child.stdin is not None
            child.stdin.close()
            await asyncio.wait_for(ended.wait(), 20)

    asyncio.run(go())
    assert not alive(identity)
    child.wait(timeout=90)


MARK = Marker(AttemptId("r-a#1"), "/root")
OTHER = MARK._replace(attempt_id=AttemptId("r-b#1"))
OWN = os.getpid()
SHIM = Identity(10, "5", "boot", 0.0)


def _process(
    pid: int, parent: int, session: int, marker: Marker | None = None, *, start: str = "5"
) -> Process:
    return Process(pid, parent, session, start, marker)


@pytest.mark.requirement("runtimes:stop-ends-only-its-own")
@pytest.mark.parametrize(
    ("processes_", "chosen"),
    [
        pytest.param([_process(10, 1, 10, MARK)], set(), id="the shim itself is left to record"),
        pytest.param(
            [_process(10, 1, 10, MARK), _process(11, 10, 10, MARK), _process(12, 1, 10)],
            {11, 12},
            id="its session, also without a marker",
        ),
        pytest.param(
            [_process(10, 1, 10), _process(12, 1, 10)],
            set(),
            id="a session of that number without any carrier is a stranger's",
        ),
        pytest.param(
            [_process(20, 1, 20, MARK), _process(21, 20, 21), _process(22, 21, 21)],
            {20, 21, 22},
            id="descendants of a carrier, whatever their environment and session",
        ),
        pytest.param(
            [_process(20, 1, 20, MARK._replace(root="/other")), _process(21, 20, 20)],
            set(),
            id="another installation's attempt of the same id",
        ),
        pytest.param(
            [_process(0, 0, 0), _process(1, 0, 0), _process(2, 1, 0), _process(10, 1, 10, MARK)],
            set(),
            id="nothing of the system's own session",
        ),
        pytest.param(
            [_process(20, 1, 20, MARK), _process(OWN, 20, OWN, MARK), _process(22, OWN, 22)],
            {20},
            id="neither the daemon that carries the marker nor what it started",
        ),
        pytest.param(
            [_process(10, 1, 10, MARK), _process(19, 1, 10), _process(OWN, 19, OWN)],
            set(),
            id="nothing that leads to the daemon",
        ),
        pytest.param(
            [_process(20, 1, 20, MARK), _process(21, 20, 21, OTHER), _process(22, 21, 21)],
            {20},
            id="no other attempt of this installation",
        ),
        pytest.param(
            [_process(10, 1, 10, MARK, start="6")],
            {10},
            id="a carrier that has the dead shim's number",
        ),
    ],
)
def test_an_attempts_processes_are_carriers_their_session_and_descendants(
    processes_: list[Process], chosen: set[int]
) -> None:
    assert {each.pid for each in members(processes_, MARK, shim=SHIM)} == chosen


@pytest.mark.requirement("runtimes:stop-ends-only-its-own")
def test_without_a_shim_on_record_only_carriers_and_their_descendants_are_chosen() -> None:
    processes_ = [_process(2, 0, 0), _process(30, 2, 0, MARK), _process(31, 2, 0)]
    assert [each.pid for each in members(processes_, MARK, shim=None)] == [30]


@pytest.mark.requirement("runtimes:stop-shares-looks")
def test_many_stops_at_once_share_their_looks_at_all_processes() -> None:
    looks = 0

    async def counted(look: Callable[[], T]) -> T:
        nonlocal looks
        looks += 1
        return await off_loop(look)

    async def go() -> None:
        census = Census(counted)
        await asyncio.gather(*(census.take() for _ in range(200)))

    asyncio.run(go())
    assert looks <= 2


@pytest.mark.requirement("processes:seen-at-all")
@pytest.mark.parametrize(
    ("link", "why"),
    [
        (None, "is not mounted"),
        ("1", "shows the processes of another namespace"),
        ("", "is not mounted"),
        ("/", "shows the processes of another namespace"),
    ],
)
def test_where_processes_cannot_be_told_apart_it_is_said_with_the_way_out(
    tmp_path: Path, link: str | None, why: str
) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    if link:
        (proc / "self").symlink_to(link)
    elif link is not None:
        (proc / "self").touch()

    with pytest.raises(ConfigError, match=why) as refused:
        check_sight(proc)
    assert f"mount -t proc proc {proc}" in (refused.value.hint or "")
    check_sight()
