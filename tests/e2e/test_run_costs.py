"""What a run of a real program makes the daemon ask of the system. These bounds may only shrink."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from subagents.runtimes.process import cgroups

MOST = {
    # Of a worker that lives when it is first looked at, and of its shim until that wrote its exit.
    "process files": 8.0,
    "looks at all processes": 0.0,
    # Its start, its first words if it lives, its end, its files; its cgroup if its shim is slow.
    "turns on threads for processes": 5.0,
}


@pytest.mark.requirement("e2e:run-costs")
@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux is asked")
@pytest.mark.parametrize("containment", ["cgroup", "subreaper"])
@pytest.mark.parametrize(
    ("program", "fsyncs"), [(("true",), 0), (("echo", "hi"), 3)], ids=["silent", "talking"]
)
def test_a_run_that_leaves_nothing_behind_costs_no_look_at_other_processes(
    tmp_path: Path, containment: str, program: tuple[str, ...], fsyncs: int
) -> None:
    if containment == "cgroup" and cgroups.place().path is None:
        pytest.skip(f"no cgroups: {cgroups.place().problem}")
    counting = [sys.executable, "-m", "tests.e2e.counted_daemon", str(tmp_path), containment]

    done = subprocess.run([*counting, *program], capture_output=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr.decode()
    counts = json.loads(done.stdout.splitlines()[-1])
    # A log's file, its directory, and theirs; of its own lines alone there is none.
    most = {**MOST, "fsyncs": fsyncs}
    assert {name: number for name, number in counts.items() if number > most.get(name, 1e9)} == {}
    assert counts["turns on threads for processes"] >= 1, "nothing was counted"
