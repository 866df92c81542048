"""Nothing that a worker starts breaks away from its attempt, whichever way this machine has."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.attempt_harness import Harness, until, until_async

from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.run import Exit
from subagents.domain.run.values import AttemptId
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.extensions.testing.process_place import RUN
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.process import cgroups, processes, sandbox
from subagents.runtimes.process.cgroups import Place
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.runtimes.process.processes import Process, look, scan

NOWHERE = Place(None, problem="not on this machine")
needs_cgroup = pytest.mark.skipif(
    cgroups.place().path is None, reason=f"no cgroups: {cgroups.place().problem}"
)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Harness(tmp_path) as harness:
        yield harness
        for pid in named(harness):
            os.kill(pid, signal.SIGKILL)


def named(harness: Harness) -> list[int]:
    """Live processes with this test's own directory in their command line."""
    found = []
    for directory in Path("/proc").glob("[1-9]*"):
        try:
            words = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if (
            os.fsencode(harness.cwd) in words
            and b"shim.sh" not in words
            and look(int(directory.name))
        ):
            found.append(int(directory.name))
    return found


# Each is run with the working directory as its argument, by which it is found again.
CUT_LOOSE = """
import os, signal, sys, time
def daemonize(*then):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        os.execve(sys.executable, [sys.executable, "-S", "-c", *then, sys.argv[1]], {})
    os.wait()
STAY = "import sys; open(sys.argv[1] + '/loose', 'a').write('.'); import time; time.sleep(600)"
"""
WAYS = {
    "double fork, own session, clean environment": "daemonize(STAY); time.sleep(600)",
    "its shim killed first": (
        "daemonize(STAY)\n"
        "while not os.path.exists(sys.argv[1] + '/loose'): time.sleep(0.01)\n"
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    ),
    "a storm that forks while it is ended": (
        "for _ in range(6):\n"
        '    daemonize("""import os, sys, time\n'
        "open(sys.argv[1] + '/loose', 'a').write('.')\n"
        "while True:\n"
        "    if os.fork(): os._exit(0)\n"
        '    os.setsid(); time.sleep(0.0005)""")\n'
        "time.sleep(600)"
    ),
    "started by a server of its own": (
        "os.mkfifo(sys.argv[1] + '/orders')\n"
        "daemonize(\"import os, sys; exec(open(sys.argv[1] + '/orders').read())\")"
    ),
}

ORDER = """
stay = "import sys, time; open(sys.argv[1] + '/loose', 'a').write('.'); time.sleep(600)"
argv = [sys.executable, "-S", "-c", stay, sys.argv[1]]
os.posix_spawn(sys.executable, argv, {}, setsid=True)
"""


@pytest.mark.requirement("runtimes:stop-ends-everything")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("containment", ["subreaper", "cgroup"])
def test_no_way_of_breaking_away_escapes_the_end_of_an_attempt(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, containment: str, way: str
) -> None:
    if containment == "subreaper":
        if "shim" in way:
            pytest.skip("only the kernel knows what a shim that was killed had adopted")
        monkeypatch.setattr(cgroups, "place", lambda: NOWHERE)
    elif cgroups.place().path is None:
        pytest.skip(f"no cgroups here: {cgroups.place().problem}")
    script = CUT_LOOSE + WAYS[way]

    async def go() -> None:
        runtime = harness.runtime()
        worker = (sys.executable, "-S", "-c", script, str(harness.cwd))
        await runtime.start(harness.launch(*worker))
        if "server" in way:
            # Whoever asks it is nobody of the attempt, and the worker has ended.
            await harness.read(runtime)
            await asyncio.to_thread((harness.cwd / "orders").write_text, ORDER)
        await asyncio.to_thread(until, "it is loose", (harness.cwd / "loose").exists)
        assert named(harness)
        await runtime.stop(harness.ref(), grace_s=0.2)

    asyncio.run(go())
    assert named(harness) == []
    assert harness.carriers() == []


@pytest.mark.requirement("runtimes:no-look-without-need")
@needs_cgroup
@pytest.mark.parametrize("then", ["sleep 600", "exit 0"])
def test_nobody_looks_at_all_processes_to_end_a_worker_in_a_cgroup(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    looks: list[int] = []

    def counted() -> tuple[Process, ...]:
        looks.append(1)
        return scan()

    monkeypatch.setattr(processes, "scan", counted)

    async def go() -> None:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", f"setsid sleep 60 & {then}"))
        if then == "exit 0":
            await harness.read(runtime)
        await runtime.stop(harness.ref(), grace_s=5)

    asyncio.run(go())
    assert not looks
    assert harness.carriers() == []


@pytest.mark.requirement("runtimes:containment")
@needs_cgroup
def test_a_killed_worker_has_its_exit_on_record_and_its_cgroup_is_gone(harness: Harness) -> None:
    async def go() -> str:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", "trap '' TERM; while :; do sleep 1; done"))
        group = harness.directory().cgroup()
        assert group is not None
        # Its shim, itself with its trap set, and its sleep.
        await until_async("it works", lambda: len(cgroups.pids(group)) >= 3)
        # What a worker makes of its own cgroup is no reason to leave it behind.
        (Path(group) / "own").mkdir()
        reading = asyncio.create_task(harness.read(runtime))
        await runtime.stop(harness.ref(), grace_s=0.1)
        assert (await reading).exited.exit == Exit(signal=9)
        return group

    assert not Path(asyncio.run(go())).exists()


@pytest.mark.requirement("runtimes:containment")
@needs_cgroup
def test_the_next_daemon_ends_an_attempt_by_the_cgroup_on_record_wherever_it_is_itself(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = CUT_LOOSE + WAYS["its shim killed first"]

    async def go() -> None:
        worker = (sys.executable, "-S", "-c", script, str(harness.cwd))
        await harness.runtime().start(harness.launch(*worker))
        await asyncio.to_thread(until, "it is loose", (harness.cwd / "loose").exists)
        monkeypatch.setattr(cgroups, "place", lambda: NOWHERE)
        await harness.runtime().stop(harness.ref(), grace_s=0)

    asyncio.run(go())
    assert named(harness) == []


@pytest.mark.requirement("runtimes:containment")
@needs_cgroup
def test_an_attempt_from_before_there_were_cgroups_ends_as_it_did(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = cgroups.place()

    async def go() -> None:
        monkeypatch.setattr(cgroups, "place", lambda: NOWHERE)
        await harness.runtime().start(harness.launch("sh", "-c", "setsid sleep 60 & sleep 60"))
        assert harness.directory().cgroup() is None
        monkeypatch.setattr(cgroups, "place", lambda: here)
        await harness.runtime().stop(harness.ref(), grace_s=5)

    asyncio.run(go())
    assert harness.carriers() == []


@pytest.mark.requirement("runtimes:orphans")
@needs_cgroup
def test_a_cgroup_of_an_attempt_that_nobody_knows_is_told_and_removed_when_it_is_empty(
    harness: Harness,
) -> None:
    async def go() -> CommandRuntime:
        runtime = harness.runtime()
        await runtime.start(harness.launch("env", "-i", "sleep", "60"))
        return runtime

    runtime = asyncio.run(go())
    group, attempt = harness.directory().cgroup(), harness.ref().attempt_id
    assert group is not None
    worker = harness.directory().worker()
    assert worker is not None
    assert asyncio.run(runtime.orphans(lambda: [attempt])) == []
    assert (attempt, worker.pid) in asyncio.run(runtime.orphans(list))
    cgroups.kill(group, sparing=None)
    tried = Path(group).with_name(f"subagents-try.{2**22 + 1}")
    tried.mkdir()

    def are_gone() -> bool:
        # A look after the last process has gone: the kernel keeps the group for a moment more.
        is_nobody_left = asyncio.run(runtime.orphans(list)) == []
        # The other one is of a daemon that was killed.
        return is_nobody_left and not Path(group).exists() and not tried.exists()

    until("they are removed", are_gone)


@pytest.mark.requirement("runtimes:orphans", "runtimes:start:beside-a-sweep")
@needs_cgroup
def test_what_begins_while_all_processes_are_looked_at_is_no_orphan(harness: Harness) -> None:
    async def go() -> None:
        runtime, group = harness.runtime(), cgroups.path_of(str(harness.root), RUN, 1, 1)
        assert group is not None

        def known() -> list[AttemptId]:
            cgroups.make(group, {})  # between the look and the removal
            return []

        assert await runtime.orphans(known) == []

    asyncio.run(go())
    Path(cgroups.path_of(str(harness.root), RUN, 1, 1) or "").rmdir()


@pytest.mark.requirement("runtimes:orphans", "runtimes:start:beside-a-sweep")
@needs_cgroup
def test_a_sweep_that_knows_nothing_of_it_removes_no_cgroup_in_which_a_worker_is_being_started(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, swept = LAUNCHER.start, []

    def after_a_sweep(*arguments: Any, **named: Any) -> int:
        # Of an attempt of another node's run nobody here knows.
        swept.append(cgroups.left_behind(cgroups.seen(str(harness.root)), ()))
        return start(*arguments, **named)

    monkeypatch.setattr(LAUNCHER, "start", after_a_sweep)
    ended = harness.ended("sh", "-c", "exit 3")
    assert ended.exited.exit == Exit(code=3)
    assert swept == [[]]


@pytest.mark.requirement("runtimes:start:again")
@needs_cgroup
@pytest.mark.parametrize(
    "number",
    [errno.ENOENT, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ECHILD],
    ids=errno.errorcode.get,
)
def test_a_start_that_fails_for_a_reason_of_ours_is_repeated(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    start, tried = LAUNCHER.start, []

    def failing_first(*arguments: Any, cgroup: bytes, **named: Any) -> int:
        tried.append(cgroup)
        if len(tried) < 3:
            if number == errno.ENOENT:
                Path(os.fsdecode(cgroup)).rmdir()
            raise OSError(number, os.strerror(number))
        return start(*arguments, cgroup=cgroup, **named)

    monkeypatch.setattr(LAUNCHER, "start", failing_first)
    assert harness.ended("sh", "-c", "exit 3").exited.exit == Exit(code=3)
    assert len(tried) == 3


@pytest.mark.requirement("runtimes:start:again")
@needs_cgroup
@pytest.mark.parametrize(
    ("number", "tries"), [(errno.EAGAIN, 4), (errno.EACCES, 1), (errno.ENOENT, 1)]
)
def test_a_start_that_goes_on_failing_or_always_would_is_an_error_that_says_why(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, number: int, tries: int
) -> None:
    tried = []

    def failing(*_arguments: Any, **_named: Any) -> int:
        tried.append(1)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(LAUNCHER, "start", failing)
    with pytest.raises(RuntimeUnavailable, match=os.strerror(number)):
        asyncio.run(harness.runtime().start(harness.launch("true")))
    assert len(tried) == tries


@pytest.mark.requirement("runtimes:containment")
@needs_cgroup
@pytest.mark.skipif(sandbox.problem() is not None, reason=f"{sandbox.problem()}")
def test_a_worker_in_the_sandbox_cannot_write_itself_into_another_cgroup(harness: Harness) -> None:
    into = f"{cgroups.place().path}/cgroup.procs"
    out = ("/bin/sh", "-c", 'printf 0 >"$1"', "sh", into)
    access = Access(level=AccessLevel.READ, below=None, kept_by=Keeper.BUBBLEWRAP)
    inside = sandbox.wrapped(
        out, cwd="/", access=access, places=sandbox.Places(), hold=lambda _: {}
    )
    assert harness.ended(*out).exited.exit == Exit(code=0)
    ended = harness.ended_launch(harness.launch(*inside, number=2))
    assert ended.exited.exit != Exit(code=0)
    assert "Read-only file system" in (ended.exited.stderr_tail or "")


# -- limits --------------------------------------------------------------------------------------


@pytest.mark.requirement("runtimes:limits")
def test_limits_are_what_the_kernel_is_told(tmp_path: Path) -> None:
    group = tmp_path / "group"
    cgroups.make(str(group), {"memory_mb": 64, "pids": 10, "cpu_percent": 150}, own_pids=1)
    told = {file.name: file.read_text() for file in group.iterdir()}
    assert told == {
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "pids.max": "11",
        "cpu.max": "150000 100000",
    }


@pytest.mark.requirement("runtimes:limits")
def test_a_worker_that_the_kernel_ended_at_its_limit_is_told_from_one_that_it_did_not(
    tmp_path: Path,
) -> None:
    assert cgroups.reached_limit(str(tmp_path / "nowhere")) is None
    (tmp_path / "memory.max").write_text("67108864\n")
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 0\n")
    assert cgroups.reached_limit(str(tmp_path)) is None
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 2\n")
    assert cgroups.reached_limit(str(tmp_path)) == "memory limit of 64.0 MiB (limits.memory_mb)"


@pytest.mark.requirement("runtimes:limits")
async def test_what_no_controller_keeps_is_named_and_never_started_without(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place("/x", frozenset({"pids"}), "no controller cpu, memory")
    assert place.unkept(["pids"]) is None
    assert place.unkept(["memory_mb", "pids"]) == "memory_mb: no controller cpu, memory"
    monkeypatch.setattr(cgroups, "place", lambda: NOWHERE)
    with pytest.raises(UsageError, match="pids: not on this machine"):
        await harness.runtime().start(harness.launch("true", limits={"pids": 5}))


# -- where cgroups are ---------------------------------------------------------------------------


MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "41 31 0:38 {root} {point} rw - cgroup2 cgroup2 rw,nsdelegate\n"
)


@pytest.mark.requirement("runtimes:containment")
@pytest.mark.parametrize(
    ("own", "root", "point", "found"),
    [
        ("/user.slice/a.scope", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/a.scope"),
        ("/", "/", "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ("/a/b", "/a", r"/my\040groups", "/my groups/b"),
        ("/c", "/a", "/sys/fs/cgroup", None),
    ],
)
def test_our_cgroup_is_found_by_its_mount_and_its_path(
    monkeypatch: pytest.MonkeyPatch, own: str, root: str, point: str, found: str | None
) -> None:
    files = {
        f"/proc/{os.getpid()}/cgroup": f"9:pids:/elsewhere\n0::{own}\n",
        "/proc/self/mountinfo": MOUNTS.format(root=root, point=point),
    }
    monkeypatch.setattr(cgroups, "read", lambda path: files.get(path, "").encode())
    assert cgroups._own() == (None if found is None else Path(found))


@pytest.mark.requirement("runtimes:containment")
@pytest.mark.parametrize(
    ("name", "others", "moves"),
    [("run-1.scope", "", ["daemon"]), ("run-1.scope", "1\n", []), ("a.service", "", [])],
)
def test_a_daemon_makes_room_for_limits_where_it_is_alone_and_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, others: str, moves: list[str]
) -> None:
    own = tmp_path / name
    own.mkdir()
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.procs").write_text(f"{others}{os.getpid()}\n")
    monkeypatch.setattr(cgroups, "_own", lambda: own)
    cgroups.enter_leaf("/srv/attempts")
    assert [each.name for each in own.iterdir() if each.is_dir()] == moves
    if moves:
        assert (own / "daemon" / "cgroup.procs").read_text() == str(os.getpid())


@pytest.mark.requirement("runtimes:containment")
@pytest.mark.parametrize(("root", "moves"), [("/srv/attempts", True), ("/srv/others", False)])
def test_a_daemon_that_a_worker_of_its_home_started_leaves_the_workers_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, *, moves: bool
) -> None:
    own = tmp_path / f"{cgroups._prefix('/srv/attempts')}r-1.1.1" / "own"
    own.mkdir(parents=True)
    monkeypatch.setattr(cgroups, "_own", lambda: own)
    cgroups.enter_leaf(root)
    assert (tmp_path / "cgroup.procs").exists() is moves


@pytest.mark.requirement("runtimes:stop-ends-only-its-own")
@needs_cgroup
async def test_whoever_ends_an_attempt_from_inside_it_ends_all_the_others(harness: Harness) -> None:
    """As a daemon does that a worker's command happened to start."""
    inside = f"""
import asyncio
from pathlib import Path
from tests.runtimes.attempt_harness import Harness
harness = Harness(Path({str(harness.root.parent)!r}))
asyncio.run(harness.runtime().stop(harness.ref(), grace_s=0.1))
(harness.cwd / "told").write_text(str(harness.carriers()))
"""
    script = f'sleep 600 & {sys.executable} -c "$INSIDE"; sleep 600'
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "INSIDE": inside}
    await harness.runtime().start(harness.launch("sh", "-c", script, env=env))
    await asyncio.to_thread(until, "it ended the others", (harness.cwd / "told").exists)


@pytest.mark.requirement("runtimes:containment")
@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place("/x", frozenset({"pids", "cpu"})), "cgroup of its own below /x; limits: cpu, pids"),
        (Place("/x", problem="no memory"), "cgroup of its own below /x; limits: none (no memory)"),
        (NOWHERE, "shims adopt what workers leave behind; no cgroups: not on this machine"),
    ],
)
def test_doctor_says_what_keeps_processes_together(place: Place, words: str) -> None:
    assert place.words.endswith(words)


@pytest.mark.requirement("runtimes:containment")
def test_where_no_cgroup_can_be_made_the_reason_and_the_way_out_are_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    problem = cgroups._try(file)
    assert problem is not None
    assert "Not a directory" in problem
    assert "subagents up" in problem
    assert cgroups.left_behind(cgroups.seen(str(file)), ()) == []
    assert cgroups.attempt_of(os.getpid(), str(file)) is None
