"""Ends the workers of a node whose lease is over, whatever became of its daemon.

It is a process and a session by itself, which sleeps until the end that ``node_deadline`` says. If
that was moved on meanwhile, it sleeps again. Else all workers of the home are killed with their
shims, and whatever appears after them, until there is a later end.

    python -m subagents.extensions.cluster.watchdog STATE_DIR ATTEMPTS_DIR [CGROUPS_DIR]
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from subagents.extensions.cluster import node_deadline
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.kernel_files import read
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.runtimes.process.processes import (
    Process,
    add_descendants,
    identity_of,
    scan,
    send,
    unmarked,
)

LOCK: Final = "watchdog.lock"
"""A file in the state directory, held by the one watchdog of a home while it lives."""
LOOK_S: Final = 0.25
"""How often new workers are looked for after the end."""
AGAIN_S: Final = 0.005
"""How often they are looked for while there are some."""
LINGER_S: Final = 60.0
"""How long after the end it stays with nothing left to kill: no daemon renews it any more."""
START_BOUND_S: Final = 10.0
"""How long a watchdog may take to be there; a few tenths on a machine that is not busy."""
TAKE_BOUND_S: Final = 1.0
"""How long a new one tries to get the lock, which ``_is_watched`` holds for a moment."""
SHIMS_LAST_S: Final = 1.0
"""How long a shim is left at most to adopt what its worker leaves behind, so that it is found."""

_TIMER_ABSOLUTE: Final = 1
_BOOTTIME: Final = 7
_TIMER: Final = struct.Struct("4q")
"""``struct itimerspec``: the interval, of which there is none, and the time."""


class Watchdog:
    """The daemon's side: moves the end on, and sees to it that it is watched.

    Args:
        state_dir: The state directory of the home.
        attempts_dir: ``Paths.attempts_dir``; right below the state directory.
    """

    def __init__(self, state_dir: Path, attempts_dir: Path) -> None:
        self._state_dir = state_dir
        self._attempts_dir = attempts_dir

    def extend(self, until_ms: int) -> None:
        """Let workers live until then. Blocking: a write, and a process where none watches.

        Never extended by guess: the caller has renewed the lease, and knows by its own clock when
        it asked for it.

        Args:
            until_ms: When the renewal was asked for, plus the lease, minus
                ``node_deadline.margin_s``, all by ``node_deadline.elapsed_ms``.

        Raises:
            OSError: It could not be written, or nothing could be started that watches it; workers
                end when the earlier end comes.
        """
        # Before the look: whichever watchdog is there, or comes now, reads it.
        node_deadline.write(self._state_dir, until_ms)
        if not _is_watched(self._state_dir):
            self._start()

    def leave(self) -> None:
        """Remove the end: the node has left its cluster, and no other one takes its runs over."""
        node_deadline.remove(self._state_dir)

    def _start(self) -> None:
        base = cgroups.place().path
        words = [str(self._state_dir), str(self._attempts_dir), *([base] if base else [])]
        argv = [sys.executable, "-P", "-m", __spec__.name, *words]
        env = {os.fsencode(k): os.fsencode(v) for k, v in unmarked(os.environ).items()}
        LAUNCHER.start([os.fsencode(each) for each in argv], env, b"/")
        until_s = time.monotonic() + START_BOUND_S
        while not _is_watched(self._state_dir):
            if time.monotonic() > until_s:
                raise OSError("the process that watches over the workers' deadline did not start")
            time.sleep(0.01)


def _is_watched(state_dir: Path) -> bool:
    with _lock(state_dir) as is_ours:
        return not is_ours


@contextlib.contextmanager
def _lock(state_dir: Path) -> Iterator[bool]:
    """Take the lock until the block ends; False = somebody has it."""
    file = os.open(state_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(file)


def watch(state_dir: Path, attempts_dir: Path, cgroups_dir: str | None) -> None:
    """Wait and kill until there is no end any more, or it was not moved on for ``LINGER_S``."""
    timer = _timer()
    if cgroups_dir is not None and _is_later(state_dir):
        for group in cgroups.groups_of(str(attempts_dir), cgroups_dir):
            _freeze(group, is_on=False)  # a watchdog before us may have been killed in between
    idle_since_ms: int | None = None
    while (deadline := node_deadline.read(state_dir)) is not None:
        if deadline.left_ms:
            idle_since_ms = None
            _sleep_until(timer, deadline.until_ms)
            continue
        now_ms = node_deadline.elapsed_ms()
        if end_workers(attempts_dir, cgroups_dir, daemon=deadline.pid):
            idle_since_ms = None
            continue
        idle_since_ms = now_ms if idle_since_ms is None else idle_since_ms
        if now_ms - idle_since_ms >= LINGER_S * 1000:
            return
        time.sleep(LOOK_S)


def end_workers(attempts_dir: Path, cgroups_dir: str | None, *, daemon: int) -> bool:
    """SIGKILL to every process of every attempt of the home, until none is left.

    Args:
        attempts_dir: The directory by which its attempts are known.
        cgroups_dir: The directory of their cgroups; None = they have none.
        daemon: A process that is spared, as are its ancestors.

    Returns:
        Whether there was any.
    """
    root, state_dir = str(attempts_dir), attempts_dir.parent
    begun_s = time.monotonic()
    was_any = False
    while True:
        groups = [] if cgroups_dir is None else cgroups.groups_of(root, cgroups_dir)
        if _is_later(state_dir):
            return was_any
        # After a pause of the whole machine they run as we do: first they are stopped, with one
        # write for each attempt, and looked at then.
        for group in groups:
            _freeze(group, is_on=True)
        left, shims = _carriers(root, scan(), spared=(os.getpid(), daemon))
        for group in groups:
            cgroups.kill(group, sparing=None)
        if _is_later(state_dir):
            return was_any  # what began meanwhile may live
        if not left:
            return was_any
        was_any = True
        # The shims last: what a killed worker leaves behind is found as their child.
        workers = [each for each in left if each.pid not in shims]
        is_late = time.monotonic() - begun_s > SHIMS_LAST_S
        for each in left if is_late or not workers else workers:
            send(identity_of(each), signal.SIGKILL)
        time.sleep(AGAIN_S)


def _is_later(state_dir: Path) -> bool:
    """Whether there is a later end by now."""
    deadline = node_deadline.read(state_dir)
    return deadline is not None and bool(deadline.left_ms)


def _freeze(group: str, *, is_on: bool) -> None:
    if not cgroups.holds(group, os.getpid()):
        with contextlib.suppress(OSError):
            Path(group, "cgroup.freeze").write_text(str(int(is_on)), "ascii")


def _carriers(
    root: str, processes: Sequence[Process], *, spared: Iterable[int]
) -> tuple[list[Process], set[int]]:
    """The processes of all attempts under ``root``, and which of them are shims.

    Those that are spared are never among them, nor what leads to them.
    """
    by_pid = {each.pid: each for each in processes}
    kept = {0, 1}
    for leaf in spared:
        pid = leaf
        while pid in by_pid and pid not in kept:
            kept.add(pid)
            pid = by_pid[pid].parent
    chosen = {each.pid for each in processes if each.marker and each.marker.root == root} - kept
    shims = {pid for pid in chosen if by_pid[pid].session == pid and _runs_shim(pid)}
    chosen |= {each.pid for each in processes if each.session in shims} - kept
    add_descendants(chosen, processes, kept)
    return [by_pid[pid] for pid in chosen], shims


def _runs_shim(pid: int) -> bool:
    words = read(f"/proc/{pid}/cmdline").split(b"\0")
    return len(words) > 1 and words[1].endswith(b"/shim.sh")


def _timer() -> int | None:
    """A timer of the kernel's by the clock that goes on while the machine sleeps; None = none."""
    if sys.platform != "linux":
        return None
    try:
        timer = int(ctypes.CDLL(None).timerfd_create(_BOOTTIME, os.O_CLOEXEC))
    except (AttributeError, OSError):
        return None
    return timer if timer >= 0 else None


def _sleep_until(timer: int | None, until_ms: int) -> None:
    if timer is not None:
        # A nanosecond more, since timerfd_settime(2) takes 0 for "no timer".
        at = _TIMER.pack(0, 0, until_ms // 1000, until_ms % 1000 * 1_000_000 + 1)
        if ctypes.CDLL(None).timerfd_settime(timer, _TIMER_ABSOLUTE, at, None) == 0:
            os.read(timer, 8)
            return
    # The clock of this one stands still while the machine sleeps.
    time.sleep(min(max(until_ms - node_deadline.elapsed_ms(), 1) / 1000, 1.0))


def main() -> None:
    """Be the watchdog of a home, unless it has one."""
    state_dir, attempts_dir = map(Path, sys.argv[1:3])
    until_s = time.monotonic() + TAKE_BOUND_S
    while True:
        with _lock(state_dir) as is_ours:
            if is_ours:
                watch(state_dir, attempts_dir, sys.argv[3] if len(sys.argv) > 3 else None)
                return
        if time.monotonic() > until_s:
            return
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    main()
