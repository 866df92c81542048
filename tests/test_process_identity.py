"""A number is one process only together with when, since which boot and where."""

import os
import subprocess
import sys

import pytest

from subagents.process_identity import boot_id, parsed, pid_namespace, start_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.requirement("process:identity")
def test_a_process_has_a_start_that_no_other_one_of_its_number_has() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert start_of(child.pid) == start_of(child.pid) != start_of(os.getpid())
            child.kill()
            # Not reaped yet: a zombie is nobody.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert start_of(child.pid) is None
        finally:
            child.kill()
    assert start_of(child.pid) is None


@pytest.mark.requirement("process:identity")
@pytest.mark.parametrize(
    ("name", "state", "threads", "lives"),
    [
        ("sleep", "S", 1, "alive"),
        ("a) Z 1 (b", "R", 1, "alive"),
        ("x) ", "T", 3, "alive"),
        ("(sd-pam)", "D", 1, "alive"),
        ("tmux: server", "Z", 1, "dead"),
        ("leader", "Z", 4, "alive"),
        ("gone", "X", 1, "dead"),
    ],
)
def test_what_the_kernel_says_is_read_whatever_the_name(
    name: str, state: str, threads: int, lives: str
) -> None:
    text = (
        f"4711 ({name}) {state} 1 4711 4700 34816 4711 4194304 1 2 3 4 5 6 7 8 20 0 {threads} 0"
        " 277150 10 20 30\n"
    )
    found = parsed(text.encode())
    assert found == (lives == "dead", 1, 4700, "277150")


@pytest.mark.requirement("process:identity")
def test_boot_and_namespace_are_told_apart_from_nothing() -> None:
    assert len(boot_id()) == 36
    assert pid_namespace().startswith("pid:[")
