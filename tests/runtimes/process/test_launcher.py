"""What the launcher starts is on its own: a session, default signals, and the orphans below it."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import until

from subagents.runtimes.process.launcher import (
    FILE_BLOCKS_VARIABLE,
    REAPS_VARIABLE,
    SETTINGS_VARIABLE,
    UMASK_VARIABLE,
    Launcher,
)
from subagents.runtimes.process.processes import look

OURS = os.nice(0)
"""Only root can have a priority above it."""
LOWER = min(OURS + 3, 19)


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


def started(launcher: Launcher, cwd: Path, script: str) -> int:
    argv = [b"/bin/sh", b"-c", script.encode()]
    return launcher.start(argv, {b"PATH": os.environb[b"PATH"], b"B": b"\xff"}, bytes(cwd))


def written(path: Path) -> str:
    def look_at() -> str:
        text = path.read_text() if path.exists() else ""
        return text if text.endswith("\n") else ""

    return until(str(path), look_at)


@pytest.mark.requirement("runtimes:launcher")
def test_it_leads_a_session_and_ignores_no_signal_and_has_no_open_file(
    launcher: Launcher, tmp_path: Path
) -> None:
    script = "{ grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/$$/fd; echo end; } > said"
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        pid = started(launcher, tmp_path, script + f"; echo ${REAPS_VARIABLE} > reaps; sleep 60")
    finally:
        signal.signal(signal.SIGQUIT, before)
    try:
        found = written(tmp_path / "reaps")
        process = look(pid)
        assert process is not None
        assert process.session == pid
        assert found == "1\n"
        blocked, ignored, *descriptors, end = (tmp_path / "said").read_text().split("\n")[:-1]
        # Those of the C library, from 32 on, come from whoever started the tests.
        masks = [int(each.split()[1], 16) & 0x7FFFFFFF for each in (blocked, ignored)]
        assert masks == [0, 0]
        assert (set(descriptors) - {"10"}, end) == ({"0", "1", "2"}, "end")
    finally:
        os.killpg(pid, signal.SIGKILL)


@pytest.mark.requirement("runtimes:launcher")
def test_orphans_below_what_it_starts_become_its_children(
    launcher: Launcher, tmp_path: Path
) -> None:
    script = "(env -i setsid sh -c 'echo $$ > lost; exec sleep 60' &); exec sleep 60"
    pid = started(launcher, tmp_path, script)
    try:
        orphan = look(int(written(tmp_path / "lost")))
        assert orphan is not None
        assert orphan.parent == pid
        os.kill(orphan.pid, signal.SIGKILL)
    finally:
        os.killpg(pid, signal.SIGKILL)


@pytest.mark.requirement("runtimes:launcher")
def test_what_cannot_be_started_is_refused_with_the_systems_reason(
    launcher: Launcher, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        launcher.start([b"/nowhere"], {}, b"/")
    with pytest.raises(FileNotFoundError):
        launcher.start([b"/bin/true"], {}, bytes(tmp_path / "missing"))
    with pytest.raises(OSError, match="Argument list too long"):
        launcher.start([b"/bin/true", b"x" * 3_000_000], {}, b"/")
    assert launcher.start([b"/bin/true"], {}, b"/") > 1


@pytest.mark.requirement("runtimes:launcher")
def test_a_launcher_that_was_killed_is_replaced_and_what_it_started_goes_on(
    launcher: Launcher, tmp_path: Path
) -> None:
    first = started(launcher, tmp_path, "exec sleep 60")
    try:
        process = look(first)
        assert process is not None
        os.kill(process.parent, signal.SIGKILL)
        second = started(launcher, tmp_path, "exec sleep 60")
        os.killpg(second, signal.SIGKILL)
        assert look(first) is not None
    finally:
        os.killpg(first, signal.SIGKILL)


@pytest.mark.requirement("runtimes:launcher")
def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    launcher = Launcher()
    worker = started(launcher, tmp_path, "exec sleep 60")
    try:
        process = look(worker)
        assert process is not None
        launcher.close()
        until("its end", lambda: look(process.parent) is None)
        assert look(worker) is not None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker, signal.SIGKILL)


@pytest.mark.requirement("environment:process")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"umask=0027 priority={OURS}", f"0027||{OURS}"),
        (f"umask=0777 priority={LOWER}", f"0777||{LOWER}"),
        (f"umask=0000 priority={OURS} nofile=300:400", f"0000||{OURS} 300 400"),
        (f"umask=0022 priority={OURS} core=0:0 nofile=64:64", f"0022||{OURS} 64 64"),
        (f"umask=0022 priority={OURS} fsize=10240:-1", f"0022|20|{OURS}"),
        (f"umask=0022 priority={OURS} nice=0:20", f"0022||{OURS}"),
        (f"umask=0022 priority={OURS} processors=8191", f"0022||{OURS}"),
        (f"umask=0022 priority={OURS} nosuch=1:1", f"0022||{OURS}"),
    ],
)
def test_it_is_run_as_its_caller_is_and_is_told_what_is_left_to_do(
    launcher: Launcher, tmp_path: Path, line: str, said: str
) -> None:
    limits = "; ulimit -S -n; ulimit -H -n" if "nofile" in line else ""
    variables = f'"${UMASK_VARIABLE}|${FILE_BLOCKS_VARIABLE}|$(nice)"'
    ours = f"env | grep {SETTINGS_VARIABLE}"
    script = f"{{ echo {variables}{limits}; {ours}; true; }} > said; mv said told"
    env = {b"PATH": os.environb[b"PATH"], SETTINGS_VARIABLE.encode(): line.encode()}
    launcher.start([b"/bin/sh", b"-c", script.encode()], env, bytes(tmp_path))
    assert " ".join(written(tmp_path / "told").split()) == said


@pytest.mark.requirement("environment:process")
def test_it_runs_on_the_processors_of_its_caller(launcher: Launcher, tmp_path: Path) -> None:
    one = min(os.sched_getaffinity(0))
    env = {SETTINGS_VARIABLE.encode(): f"umask=0022 priority=0 processors={one}".encode()}
    script = b"grep Cpus_allowed_list /proc/self/status > said; mv said told"
    env[b"PATH"] = os.environb[b"PATH"]
    launcher.start([b"/bin/sh", b"-c", script], env, bytes(tmp_path))
    assert written(tmp_path / "told").split()[1] == str(one)


@pytest.mark.requirement("runtimes:launcher")
def test_where_no_launcher_can_be_had_a_start_fails_with_the_reason_and_the_next_one_may_work(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("sys.executable", "/bin/false")
        with pytest.raises(ChildProcessError, match="the process that starts them ended"):
            started(launcher, tmp_path, "true")
    assert started(launcher, tmp_path, "echo it works > said") > 0
    assert written(tmp_path / "said") == "it works\n"
