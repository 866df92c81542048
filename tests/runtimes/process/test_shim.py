"""One worker per attempt, its end on record, whoever is killed when."""

import asyncio
import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import Ended, Harness, off_loop, until, until_async

import subagents
from subagents.domain.run.run import Exit
from subagents.domain.run.signals import ProgressSeen
from subagents.domain.run.values import RunId
from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.runtimes.output.output_reader import Sizes
from subagents.runtimes.process import shim
from subagents.runtimes.process.processes import alive
from subagents.runtimes.process.shim import SHIM, AttemptDirectory

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def _daemon(harness: Harness, body: str) -> "subprocess.Popen[str]":
    """Another process that works on the same attempts; ``body`` sees ``harness``."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\nfrom tests.runtimes.attempt_harness import *\n"
        "from subagents.domain.run.signals import ProgressSeen\n"
        f"harness = Harness(Path({str(harness.root.parent)!r}))\n{body}"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


@pytest.mark.requirement("runtimes:one-worker")
async def test_starting_twice_gives_one_worker_and_the_second_start_adopts_it(
    harness: Harness,
) -> None:
    runtime, launch = harness.runtime(), harness.launch("sh", "-c", "echo $$; exec sleep 60")
    first = await runtime.start(launch)
    second = await harness.runtime().start(launch)

    assert not first.adopted
    assert second.adopted
    assert first.pid == second.pid
    assert len(harness.carriers()) == 2  # the worker and its shim
    await runtime.stop(harness.ref(), grace_s=5)


@pytest.mark.requirement("start:failure-is-told")
async def test_a_start_for_which_something_cannot_be_made_is_refused_by_its_name(
    harness: Harness,
) -> None:
    def command() -> shim.ShimCommand:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/home/me/.claude/projects")

    attempts = shim.ProcessAttempts(harness.root, SystemClock(), off_loop)
    with pytest.raises(RuntimeUnavailable, match=r"cannot start a worker: .*\.claude/projects"):
        await attempts.start(harness.directory(), command)


@pytest.mark.requirement("runtimes:one-worker")
def test_an_ended_attempt_is_adopted_and_not_run_again(harness: Harness) -> None:
    async def go() -> None:
        runtime, launch = harness.runtime(), harness.launch("sh", "-c", "echo ran >> ran")
        await runtime.start(launch)
        await harness.read(runtime)
        assert (await runtime.start(launch)).adopted
        assert (await harness.read(runtime)).exited.exit == Exit(code=0)

    asyncio.run(go())
    assert (harness.cwd / "ran").read_text() == "ran\n"


@pytest.mark.requirement("runtimes:one-worker")
def test_starting_at_the_same_time_in_several_processes_gives_one_worker(harness: Harness) -> None:
    body = (
        "launch = harness.launch('sh', '-c', 'echo $$ >> started; exec sleep 60')\n"
        "print('ready', flush=True)\n"
        "until('go', (harness.cwd / 'go').exists)\n"
        "started = asyncio.run(harness.runtime().start(launch))\n"
        "print(started.pid, started.adopted)\n"
    )
    daemons = [_daemon(harness, body) for _ in range(4)]
    for daemon in daemons:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "ready\n"
    (harness.cwd / "go").touch()
    answers = [daemon.communicate(timeout=90)[0].split() for daemon in daemons]

    [pid] = (harness.cwd / "started").read_text().split()
    assert {answer[0] for answer in answers} == {pid}
    assert sorted(answer[1] for answer in answers) == ["False", "True", "True", "True"]


@pytest.mark.requirement("runtimes:one-worker")
@pytest.mark.parametrize("shell", SHELLS)
def test_of_many_shims_for_one_attempt_exactly_one_runs_the_worker(
    tmp_path: Path, shell: str
) -> None:
    ran = tmp_path / "ran"
    shims = [
        subprocess.Popen(
            [*_shell(shell), str(SHIM), str(tmp_path), "sh", "-c", f"echo $$ >> {ran}"],
            stderr=subprocess.DEVNULL,
        )
        for _ in range(20)
    ]

    assert [shim.wait(timeout=90) for shim in shims] == [0] * 20
    assert len(ran.read_text().split()) == 1


def _shell(name: str) -> list[str]:
    return [name, "sh"] if name == "busybox" else [name]


@pytest.mark.requirement("runtimes:exit-recorded")
@pytest.mark.parametrize(
    ("script", "exit_"),
    [
        ("exit 0", Exit(code=0)),
        ("exit 3", Exit(code=3)),
        ("exit 255", Exit(code=255)),
        ("kill -9 $$", Exit(signal=9)),
        ("kill -TERM $$", Exit(signal=15)),
        ("kill -INT $$", Exit(signal=2)),
    ],
)
def test_the_exit_is_what_the_worker_ended_with(harness: Harness, script: str, exit_: Exit) -> None:
    assert harness.ended("sh", "-c", script).exited.exit == exit_


@pytest.mark.requirement("runtimes:exit-recorded")
@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_records_the_end_of_a_worker_when_the_whole_group_is_signalled(
    tmp_path: Path, shell: str
) -> None:
    shim = subprocess.Popen(
        [
            *_shell(shell),
            str(SHIM),
            str(tmp_path),
            "sh",
            "-c",
            "kill -TERM 0; kill -TERM 0; sleep 60",
        ],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    shim.wait(timeout=90)

    assert (tmp_path / "exit").read_text() == "signal 15\n"


@pytest.mark.requirement("runtimes:signals-not-ignored")
def test_the_worker_ignores_no_signal_because_of_the_shim(harness: Harness) -> None:
    ended = harness.ended("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")
    # Whoever started this test may ignore some, such as a shell that put it into the background.
    own = re.findall(
        r"^Sig(?:Ign|Blk):\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    inherited = [int(mask, 16) for mask in own]
    masks = [int(line.split()[1], 16) for line in ended.result.text.splitlines()]
    assert [mask & ~known for mask, known in zip(masks, inherited, strict=True)] == [0, 0]


@pytest.mark.requirement("runtimes:survives-daemon")
def test_a_killed_daemon_leaves_its_worker_and_the_next_reads_on(harness: Harness) -> None:
    script = (
        'echo \'{"subagents":"progress","phase":"one"}\'; '
        "while ! [ -e go ]; do sleep 0.02; done; "
        'echo \'{"subagents":"progress","phase":"two"}\'; exit 7'
    )
    daemon = _daemon(
        harness,
        "async def go():\n"
        "    runtime = harness.runtime()\n"
        f"    print((await runtime.start(harness.launch('sh', '-c', {script!r}))).pid)\n"
        "    async for seen, cursor in runtime.watch(harness.ref(), cursor=0, positions={}):\n"
        "        if isinstance(seen, ProgressSeen):\n"
        "            print(cursor, flush=True)\n"
        "asyncio.run(go())\n",
    )
    assert daemon.stdout is not None
    pid, cursor = int(daemon.stdout.readline()), int(daemon.stdout.readline())
    daemon.kill()
    daemon.communicate(timeout=90)

    async def go() -> Ended:
        runtime = harness.runtime()
        started = await runtime.start(harness.launch("sh", "-c", script))
        assert (started.adopted, started.pid) == (True, pid)
        (harness.cwd / "go").touch()
        return await harness.read(runtime, cursor=cursor)

    ended = asyncio.run(go())
    assert [each.progress.phase for each in ended.signals if isinstance(each, ProgressSeen)] == [
        "two"
    ]
    assert ended.exited.exit == Exit(code=7)


@pytest.mark.requirement("runtimes:survives-daemon")
def test_an_attempt_that_ended_while_no_daemon_ran_is_settled_from_its_files(
    harness: Harness,
) -> None:
    asyncio.run(harness.runtime().start(harness.launch("sh", "-c", "echo said; exit 5")))
    until("the exit is recorded", harness.directory().exit)

    for _ in range(2):  # as often as asked, until it is forgotten
        ended = asyncio.run(harness.read(harness.runtime()))
        assert ended.exited.exit == Exit(code=5)
        assert ended.result.text == "said"


@pytest.mark.requirement("runtimes:pid-reuse-refused")
@pytest.mark.parametrize("forged", ["start time", "boot"])
def test_a_process_that_only_has_the_recorded_id_is_neither_believed_nor_signalled(
    harness: Harness, forged: str
) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        start, boot = Path(f"/proc/{stranger.pid}/stat").read_text().split()[21], "-"
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        if forged == "boot":
            boot = "00000000-0000-0000-0000-000000000000"
        else:
            start = str(int(start) - 1)
        directory = harness.directory()
        directory.create({})
        who = f"shim {stranger.pid} {start}\nworker {stranger.pid} {start}\nboot {boot}\n"
        (directory.path / "claim").write_text(f"shim {stranger.pid} {start}\nboot {boot}\n")
        (directory.path / "pid").write_text(f"{who}session {stranger.pid}\n")

        ended = asyncio.run(harness.read(harness.runtime()))
        asyncio.run(harness.runtime().stop(harness.ref(), grace_s=0))

        assert "its exit was not recorded" in ended.vanished.error
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait(timeout=90)


@pytest.mark.requirement("runtimes:dead-shim")
def test_a_worker_whose_shim_was_killed_is_followed_and_its_exit_is_unknown(
    harness: Harness,
) -> None:
    async def go() -> Ended:
        runtime = harness.runtime()
        await runtime.start(
            harness.launch("sh", "-c", "while ! [ -e go ]; do sleep 0.02; done; echo late")
        )
        shim = harness.directory().shim()
        assert shim is not None
        os.kill(shim.pid, signal.SIGKILL)
        reading = asyncio.create_task(harness.read(runtime))
        await until_async("the shim is gone", lambda: not alive(shim))
        assert not reading.done()
        (harness.cwd / "go").touch()
        return await reading

    ended = asyncio.run(go())
    assert ended.exited.exit == Exit()
    assert ended.result.text == "late"


@pytest.mark.requirement("runtimes:vanished")
def test_an_attempt_killed_with_its_shim_vanishes_and_keeps_its_output(harness: Harness) -> None:
    asyncio.run(harness.runtime().start(harness.launch("sh", "-c", "echo partial; exec sleep 60")))
    until("it spoke", lambda: harness.directory().sizes().out)
    shim, worker = harness.directory().shim(), harness.directory().worker()
    assert shim is not None
    assert worker is not None
    for each in (shim, worker):
        os.kill(each.pid, signal.SIGKILL)
    until("both are gone", lambda: not alive(shim) and not alive(worker))

    ended = asyncio.run(harness.read(harness.runtime()))
    assert "the worker is gone and its exit was not recorded" in ended.vanished.error
    assert ended.result.text == "partial"


@pytest.mark.requirement("runtimes:vanished")
def test_an_attempt_that_nobody_started_vanishes_at_once(harness: Harness) -> None:
    ended = asyncio.run(harness.read(harness.runtime()))
    why = "it has no attempt directory: its worker was never started, or in another home"
    assert ended.vanished.error == why


@pytest.mark.requirement("runtimes:vanished")
def test_a_claim_whose_shim_died_before_the_worker_ran_is_not_started_again(
    harness: Harness,
) -> None:
    directory = harness.directory()
    directory.create({})
    (directory.path / "claim").write_text("shim 1 0\nboot 0\n")

    async def go() -> Ended:
        runtime = harness.runtime()
        started = await runtime.start(harness.launch("touch", "ran"))
        assert (started.adopted, started.pid) == (True, None)
        return await harness.read(runtime)

    assert "claimed but never ran" in asyncio.run(go()).vanished.error
    assert not (harness.cwd / "ran").exists()


@pytest.mark.requirement("runtimes:output-is-bounded-at-exit")
def test_what_children_write_after_the_worker_ended_is_not_waited_for(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.ended("sh", "-c", "echo mine; echo theirs")
    monkeypatch.setattr(AttemptDirectory, "sizes", lambda _place: Sizes(out=len("mine\n"), err=0))
    ended = asyncio.run(harness.read(harness.runtime()))

    assert ended.result.text == "mine"
    assert ended.pairs[-1][1] == len("mine\n")


@pytest.mark.requirement("runtimes:no-zombies")
def test_ended_workers_leave_no_zombie_and_no_descriptor(harness: Harness) -> None:
    async def go() -> None:
        runtime = harness.runtime()
        await runtime.start(harness.launch("true"))
        await harness.read(runtime)
        before = _descriptors()
        for number in range(2, 6):
            await runtime.start(harness.launch("true", number=number))
            await harness.read(runtime, number=number)
        assert _descriptors() == before

    asyncio.run(go())
    shims = [harness.directory(number).shim() for number in range(1, 6)]
    assert not [each for each in shims if each is None or Path(f"/proc/{each.pid}").exists()]


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.requirement("runtimes:watch-can-be-left")
def test_a_watch_that_is_cancelled_leaves_the_worker_alone_and_can_begin_again(
    harness: Harness,
) -> None:
    async def go() -> Ended:
        runtime = harness.runtime()
        await runtime.start(
            harness.launch("sh", "-c", "while ! [ -e go ]; do sleep 0.02; done; echo fine")
        )
        before = _descriptors()
        reading = asyncio.create_task(harness.read(runtime))
        await until_async("it is watched", lambda: _descriptors() > before)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        # A read that was under way on its thread still closes its file.
        await until_async("all is closed", lambda: _descriptors() == before)
        (harness.cwd / "go").touch()
        return await harness.read(runtime)

    assert asyncio.run(go()).result.text == "fine"


@pytest.mark.requirement("runtimes:handoff-is-prompt")
def test_an_exit_is_handed_over_long_before_the_next_poll(harness: Harness) -> None:
    async def go() -> float:
        runtime, loop = harness.runtime(), asyncio.get_running_loop()
        best_s = float("inf")
        for number in range(1, 4):
            await runtime.start(harness.launch("sleep", "0.2", number=number))
            begun = loop.time()
            await harness.read(runtime, number=number)
            best_s = min(best_s, loop.time() - begun)
        return best_s

    # Best of three, because the machine may be busy; the next poll would come after 0.4 s.
    assert asyncio.run(go()) < 0.3


@pytest.mark.requirement("runtimes:one-worker")
async def test_a_shim_that_runs_and_has_not_claimed_its_attempt_yet_is_waited_for(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = harness.root.parent / "late.sh"
    begun, go = harness.cwd / "begun", harness.cwd / "go"
    late.write_text(
        f'touch {begun}\nuntil test -e {go}; do sleep 0.01; done\nexec sh {SHIM} "$@"\n'
    )
    monkeypatch.setattr(shim, "SHIM", late)
    monkeypatch.setattr(shim, "START_BOUND_S", 0.0)
    starting = asyncio.create_task(harness.runtime().start(harness.launch("sleep", "600")))
    await until_async("the shim runs", begun.exists)
    assert not starting.done()
    monkeypatch.setattr(shim, "START_BOUND_S", 60.0)
    go.touch()
    assert (await starting).pid is not None


@pytest.mark.requirement("runtimes:stdin-fifo")
def test_a_fifo_as_stdin_blocks_nobody_and_feeds_a_line(harness: Harness) -> None:
    async def go() -> Ended:
        runtime, directory = harness.runtime(), harness.directory()
        directory.create({})
        os.mkfifo(directory.path / "stdin")
        started = await runtime.start(harness.launch("sh", "-c", "read line; echo got $line"))
        assert started.pid is not None  # it runs before anybody writes
        (directory.path / "stdin").write_text("a line\n")
        return await harness.read(runtime)

    assert asyncio.run(go()).result.text == "got a line"


@pytest.mark.requirement("runtimes:one-worker")
def test_a_second_start_keeps_the_input_that_the_first_ones_shim_may_read(
    harness: Harness,
) -> None:
    directory = harness.directory()
    directory.create({"in": b"asked\n"}, is_fed=True)
    with (directory.path / "in").open("ab+") as reading:
        reading.write(b"more\n")
        reading.flush()
        directory.create({"in": b"asked\n"}, is_fed=True)
        with (directory.path / "in").open("ab") as next_daemons:
            next_daemons.write(b"and more\n")
        reading.seek(0)
        assert reading.read() == b"asked\nmore\nand more\n"

    directory.create({"in": b"another\n"}, is_fed=True)
    assert (directory.path / "in").read_bytes() == b"another\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    where = tmp_path / "small"
    where.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(where)],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {made.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def _fill(directory: Path) -> Path:
    filler = directory / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 512)
    return filler


@pytest.mark.requirement("runtimes:full-disk")
def test_an_exit_that_did_not_fit_on_the_disk_is_recorded_when_there_is_room(
    small_disk: Path,
) -> None:
    with Harness(small_disk) as harness:

        async def go() -> Ended:
            runtime = harness.runtime()
            await runtime.start(
                harness.launch("sh", "-c", "while ! [ -e go ]; do sleep 0.02; done; exit 9")
            )
            worker, shim = harness.directory().worker(), harness.directory().shim()
            assert worker is not None
            assert shim is not None
            (harness.cwd / "go").touch()
            filler = _fill(small_disk)
            await until_async("the worker ended", lambda: not alive(worker))
            await until_async("an exit was tried", (harness.directory().path / "exit").exists)
            assert harness.directory().exit() is None
            assert alive(shim)
            filler.unlink()
            return await harness.read(runtime)

        assert asyncio.run(go()).exited.exit == Exit(code=9)


@pytest.mark.requirement("runtimes:full-disk")
def test_a_start_on_a_full_disk_starts_nothing_and_can_be_repeated(small_disk: Path) -> None:
    with Harness(small_disk) as harness:
        filler = _fill(small_disk)
        with pytest.raises(RuntimeUnavailable, match="cannot start a worker") as refused:
            harness.ended("true")
        assert refused.value.retryable
        filler.unlink()
        assert harness.ended("true").exited.exit == Exit(code=0)


@pytest.mark.requirement("runtimes:forget")
def test_forgetting_deletes_the_attempt_and_nothing_else(harness: Harness) -> None:
    harness.ended("true")
    other = AttemptDirectory(harness.root, harness.ref().run_id, 2)
    other.create({"task": b"kept"})

    async def go() -> None:
        for _ in range(2):
            await harness.runtime().forget(harness.ref())
        assert not harness.directory().path.exists()
        assert other.path.exists()
        await harness.runtime().forget(harness.ref(2))

    asyncio.run(go())
    assert list(harness.root.iterdir()) == []


@pytest.mark.requirement("shim:tidy")
def test_of_a_tidied_attempt_only_its_claim_is_left_and_it_is_not_started_again(
    harness: Harness,
) -> None:
    harness.ended("sh", "-c", "echo ran >>ran")
    for _ in range(2):
        asyncio.run(harness.runtime().tidy(harness.ref()))
    assert [each.name for each in harness.directory().path.iterdir()] == ["claim"]

    again = harness.ended("sh", "-c", "echo ran >>ran")

    assert again.vanished.error
    assert (harness.cwd / "ran").read_text() == "ran\n"
    asyncio.run(harness.runtime().tidy(harness.ref(number=2)))
    assert not harness.directory(number=2).path.exists()


@pytest.mark.requirement("runtimes:forget")
def test_a_file_that_goes_while_an_attempt_is_deleted_leaves_no_other_behind(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = AttemptDirectory(harness.root, harness.ref().run_id, 2)
    place.create({"task": b"secret", "out": b"said"})
    unlink = os.unlink

    def gone_before(name: str, *, dir_fd: int | None = None) -> None:
        monkeypatch.undo()
        unlink(name, dir_fd=dir_fd)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", gone_before)
    place.delete()

    assert not place.path.exists()


@pytest.mark.requirement("runtimes:forget")
def test_what_is_deleted_of_attempts_does_not_come_back_when_the_power_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, run = tmp_path / "attempts", tmp_path / "attempts" / "r-x"
    first, second = (AttemptDirectory(root, RunId("r-x"), number) for number in (1, 2))
    first.create({})
    second.create({})
    synced = []

    def fsync(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115 - of a descriptor
        if len(synced) == 1:
            raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="the disk fails"):
        first.delete()
    first.delete()
    second.delete()

    assert synced == [str(run), str(run), str(root)]
    AttemptDirectory(tmp_path / "never made", RunId("r-x"), 1).delete()


@pytest.mark.requirement("runtimes:private-files")
def test_attempt_files_are_private_and_ids_cannot_leave_the_root(harness: Harness) -> None:
    harness.ended("sh", "-c", "umask")
    for path in (harness.root, harness.directory().path.parent, harness.directory().path):
        assert path.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="cannot name a directory"):
        AttemptDirectory(harness.root, type(harness.ref().run_id)("../r-x"), 1)


# -- attempts of 0.1.0 --------------------------------------------------------------------------


@pytest.mark.requirement("runtimes:one-worker")
def test_a_worker_that_a_daemon_of_0_1_0_started_is_adopted_read_and_ended(
    harness: Harness,
) -> None:
    """Its shim's path, its marker and its files are written out: they are what 0.1.0 left."""
    directory = harness.root / "r-bench" / "1"
    directory.mkdir(parents=True)
    shim = Path(subagents.__file__).parent / "runtimes" / "shim.sh"
    script = 'echo hello; echo \'{"subagents":"text","text":"half"}\'; exec sleep 60'
    starter = subprocess.Popen(
        ["/bin/sh", str(shim), str(directory), "/bin/sh", "-c", script],
        cwd=harness.cwd,
        env={
            "PATH": os.environ["PATH"],
            "SUBAGENTS_ATTEMPT": "r-bench#1",
            "SUBAGENTS_ATTEMPTS_DIR": str(harness.root),
        },
        start_new_session=True,
    )

    async def go() -> Ended:
        runtime, out = harness.runtime(), directory / "out"
        # It claims the attempt before its worker says anything; a daemon of 0.1.0 waited for that.
        await until_async("its output", lambda: out.exists() and "half" in out.read_text())
        started = await runtime.start(harness.launch("sh", "-c", "echo ran >> ran"))
        assert started.adopted
        assert started.pid is not None
        origin = runtime.origin_of(started.pid)
        assert origin is not None
        assert origin.attempt_id == harness.ref().attempt_id
        await runtime.stop(harness.ref(), grace_s=5)
        return await harness.read(runtime)

    ended = asyncio.run(go())
    starter.wait()
    assert [each.text for each in ended.output if each.text] == ["hello", "half"]
    assert ended.exited.exit == Exit(signal=signal.SIGTERM)
    assert not harness.carriers()
    assert not (harness.cwd / "ran").exists()


@pytest.mark.requirement("runtimes:exit-recorded")
@pytest.mark.parametrize(
    "written", ["code\n", "code x\n", "code ²\n", "signal -9\n", "code 1e3\n", "\n"]
)
def test_a_record_of_the_exit_that_no_shim_wrote_says_nothing(tmp_path: Path, written: str) -> None:
    directory = AttemptDirectory(tmp_path, RunId("r-1"), 1)
    directory.path.mkdir(parents=True)
    (directory.path / "exit").write_text(written)
    (directory.path / "pid").write_text(f"shim {'9' * 20} 1\nboot b\nworker ² 1\nsession 1\n")

    assert directory.exit() is None
    assert (directory.shim(), directory.worker()) == (None, None)
