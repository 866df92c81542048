"""Programs that we start in a session of their own, and the one way to end such a group.

A program starts others (shells, filters, agent programs that start themselves again), and ending it
alone would leave those behind. The processes of an attempt are more than one group: they are found
by their marker, see ``runtimes.process``.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def kill_group(leader: int) -> None:
    """SIGKILL to every process of the group; nothing when none is left. Does not wait.

    Args:
        leader: The process id of a program that was started in a session of its own, and that
            nobody has reaped: afterwards the number may be another group's.
    """
    # PermissionError: macOS says so of a group of which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    ends_children: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """As ``subprocess.run`` without input and with both outputs, in a session of its own.

    When the time is up, or whoever waits is interrupted, the whole group is killed and the program
    reaped before this raises.

    Args:
        argv: The program and its arguments.
        timeout_s: How long it may take, in seconds.
        cwd: Where it works; None = here.
        env: Its whole environment; None = ours.
        ends_children: Kill what it left in its group after a normal end, too.

    Raises:
        subprocess.TimeoutExpired: It did not end within ``timeout_s`` seconds.
        OSError: It could not be started.
    """
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            # Also after a Ctrl-C, which went to our own group and not to this one.
            kill_group(process.pid)
            raise
    if ends_children:
        kill_group(process.pid)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)
