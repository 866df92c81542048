"""A worker's process is known by its mark, or by whose child it is; a person's never is."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import Harness, until

from subagents.domain.run.values import AttemptId
from subagents.ports import Origin
from subagents.runtimes.process import cgroups, origins
from subagents.runtimes.process.origins import Origins
from subagents.runtimes.process.processes import (
    ATTEMPT_VARIABLE,
    ROOT_VARIABLE,
    Process,
    alive,
    look,
)

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
        shell.communicate(timeout=90)


def marked(number: int, root: str = ROOT) -> dict[str, str]:
    return {ATTEMPT_VARIABLE: f"r-0000000001#{number}", ROOT_VARIABLE: root}


@pytest.mark.requirement("identity:dropped-token")
def test_a_process_with_a_mark_and_its_cleaned_descendants_are_that_attempts() -> None:
    bare = "env -i sh -c 'sh -c \"echo \\$\\$; read line\"; exit 0'"
    with started(bare, marked(2)) as (shell, bare_pid):
        assert Origins(ROOT).origin_of(shell) == Origin(
            AttemptId("r-0000000001#2"), is_certain=False
        )
        assert Origins(ROOT).origin_of(bare_pid) == Origins(ROOT).origin_of(shell)


@pytest.mark.requirement("identity:dropped-token")
def test_processes_of_other_homes_and_of_nobody_are_no_workers() -> None:
    for environ in ({}, marked(1, "/elsewhere"), {ATTEMPT_VARIABLE: "r-0000000001#1"}):
        with started("echo $$; read line", environ) as (shell, _):
            assert Origins(ROOT).origin_of(shell) is None
    assert Origins(ROOT).origin_of(os.getpid()) is None


CUT_LOOSE = (
    "(env -i setsid sh -c 'echo $$ > pid; mv pid loose; sleep 600' &); "
    "until [ -e loose ]; do sleep 0.01; done; kill -9 $PPID; sleep 600"
)


@pytest.mark.requirement("identity:cut-loose")
@pytest.mark.skipif(cgroups.place().path is None, reason=f"{cgroups.place().problem}")
def test_a_process_without_mark_token_and_parents_is_that_worker_by_its_cgroup(
    tmp_path: Path,
) -> None:
    with Harness(tmp_path) as harness:
        asyncio.run(harness.runtime().start(harness.launch("sh", "-c", CUT_LOOSE)))
        until("it is loose", (harness.cwd / "loose").exists)
        pid, shim = int((harness.cwd / "loose").read_text()), harness.directory().shim()
        assert shim is not None
        until("nobody is above it", lambda: not alive(shim))
        found = look(pid)
        assert found is not None
        assert found.marker is None
        worker = Origin(harness.ref().attempt_id, is_certain=True)
        assert Origins(str(harness.root)).origin_of(pid) == worker
        assert Origins(ROOT).origin_of(pid) is None


@pytest.mark.requirement("identity:gone-before-looked-at")
def test_a_process_that_has_ended_is_nobody_rather_than_a_person() -> None:
    with pytest.raises(ProcessLookupError):
        Origins(ROOT).origin_of(2**22 + 1)


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
    assert [known.origin_of(9) for _ in range(3)] == [None] * 3
    assert looked == [*range(9, 0, -1), 9, *range(9, 0, -1)]
