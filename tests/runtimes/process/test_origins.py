"""A worker's process is known by its mark, or by whose child it is; a person's never is."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from subagents.runtimes.process import origins
from subagents.runtimes.process.origins import Origins
from subagents.runtimes.process.processes import ATTEMPT_VARIABLE, ROOT_VARIABLE, Process

ROOT = "/srv/attempts"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")


@contextmanager
def started(script: str, environ: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """The pids of a shell and of the process whose pid its script prints."""
    shell = subprocess.Popen(
        ["sh", "-c", f"{script}; exit 0"],
        env={"PATH": os.environ["PATH"], **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert shell.stdout is not None
        yield shell.pid, int(shell.stdout.readline())
    finally:
        # Each script waits for the end of its input.
        shell.communicate(timeout=20)


def marked(number: int, root: str = ROOT) -> dict[str, str]:
    return {ATTEMPT_VARIABLE: f"r-0000000001#{number}", ROOT_VARIABLE: root}


@pytest.mark.requirement("identity:dropped-token")
def test_a_process_with_a_mark_and_its_cleaned_descendants_are_that_attempts() -> None:
    bare = "env -i sh -c 'sh -c \"echo \\$\\$; read line\"; exit 0'"
    with started(bare, marked(2)) as (shell, bare_pid):
        assert Origins(ROOT).attempt_of(shell) == "r-0000000001#2"
        assert Origins(ROOT).attempt_of(bare_pid) == "r-0000000001#2"


@pytest.mark.requirement("identity:dropped-token")
def test_processes_of_other_homes_and_of_nobody_are_no_workers() -> None:
    for environ in ({}, marked(1, "/elsewhere"), {ATTEMPT_VARIABLE: "r-0000000001#1"}):
        with started("echo $$; read line", environ) as (shell, _):
            assert Origins(ROOT).attempt_of(shell) is None
    assert Origins(ROOT).attempt_of(os.getpid()) is None
    assert Origins(ROOT).attempt_of(2**22 + 1) is None


@pytest.mark.requirement("identity:dropped-token")
def test_a_process_is_searched_once_and_a_later_one_with_its_id_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    starts = iter(["1", "1", "2"])

    def look(pid: int) -> Process:
        looked.append(pid)
        return Process(pid, pid - 1, 7, next(starts) if pid == 9 else "0", None)

    monkeypatch.setattr(origins, "look", look)
    known = Origins(ROOT)
    assert [known.attempt_of(9) for _ in range(3)] == [None] * 3
    assert looked == [*range(9, 0, -1), 9, *range(9, 0, -1)]
