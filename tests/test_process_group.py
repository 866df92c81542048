"""A program and all it started end together, however it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.cli_home import until
from tests.live_processes import is_running

import subagents
from subagents.process_group import kill_group, run

PACKAGE = Path(subagents.__file__).parent
SPAWNS = "sleep 300 >/dev/null 2>&1 </dev/null & echo $! > child; "


def child(place: Path) -> int:
    return int((place / "child").read_text())


@pytest.mark.requirement("process-group:ends")
def test_output_and_exit_status_come_back(tmp_path: Path) -> None:
    argv = ["sh", "-c", "pwd; echo $A >&2; cat; exit 3"]
    done = run(argv, timeout_s=30, cwd=tmp_path, env={"A": "b", "PATH": os.defpath})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n".encode(), b"b\n")


@pytest.mark.requirement("process-group:ends")
def test_a_program_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    argv = ["sh", "-c", f"trap '' TERM; {SPAWNS} sleep 300"]
    for timeout_s in (0.5, 5, 50):  # a busy machine takes its time to begin
        with pytest.raises(subprocess.TimeoutExpired):
            run(argv, timeout_s=timeout_s, cwd=tmp_path)
        if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
            break
    until(lambda: not is_running(child(tmp_path)), "its child is gone")


@pytest.mark.requirement("process-group:ends")
@pytest.mark.parametrize("ends_children", [False, True])
def test_what_it_leaves_behind_stays_unless_asked_otherwise(
    tmp_path: Path, *, ends_children: bool
) -> None:
    run(["sh", "-c", SPAWNS], timeout_s=30, cwd=tmp_path, ends_children=ends_children)
    if ends_children:
        until(lambda: not is_running(child(tmp_path)), "its child is gone")
    else:
        assert is_running(child(tmp_path))
        os.kill(child(tmp_path), 9)


@pytest.mark.requirement("process-group:ends")
def test_a_group_that_is_gone_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as process:
        process.wait()
        kill_group(process.pid)


@pytest.mark.requirement("process-group:ends")
def test_a_program_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/no/such/program"], timeout_s=1)


@pytest.mark.requirement("process-group:ends")
def test_nothing_else_in_the_package_kills_a_group() -> None:
    found = [file for file in PACKAGE.rglob("*.py") if "killpg" in file.read_text()]
    assert [file.name for file in found] == ["process_group.py"]
