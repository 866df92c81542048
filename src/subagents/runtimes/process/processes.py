"""Which processes belong to an attempt, whether they live, and how to end all of them.

A process id alone says nothing: it is used again. ``Identity`` is the id plus the start time and
the boot, and everything here checks it before it believes or signals a process.

Agents start shell children as leaders of sessions of their own (Claude Code and Codex do so for
every command), so a process group is not the attempt. An attempt's processes are, taken from one
look at all processes: those that carry its marker in their environment, those in the session of its
shim, and every descendant of these, so also children that were given a clean environment. Orphans
are descendants too: their shim adopts them (``launcher.py``). When a shim is killed, what it had
adopted with a clean environment, in a session of its own, is not known any more.

Where the attempt has a cgroup (``cgroups.py``) none of this is asked: its processes are in there,
or, when they took pains to leave it, still children of the shim.

Linux reads ``/proc``. Elsewhere ``psutil`` does, and identity is weaker: a process counts as the
recorded one when it was not created after the record was written. That code is not tested.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from subagents.domain.run.values import AttemptId
from subagents.errors import ConfigError, RuntimeUnavailable
from subagents.ports import Clock, OffLoop
from subagents.process_identity import Stat, boot_id, parsed
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.kernel_files import read

if sys.platform != "linux":
    import psutil  # type: ignore[import-untyped]

ATTEMPT_VARIABLE: Final = "SUBAGENTS_ATTEMPT"
ROOT_VARIABLE: Final = "SUBAGENTS_ATTEMPTS_DIR"
"""The variable by which another installation's workers are never taken for ours."""
TURN_VARIABLE: Final = "SUBAGENTS_TURN"
"""Absent in the first turn of an attempt."""

KILL_BOUND_S: Final = 10.0
"""How long after the grace period processes may take to die of KILL (uninterruptible I/O)."""

SHIM_BOUND_S: Final = 2.0
"""How long a shim whose worker is gone may take to record the exit (a full disk) before KILL."""

LOOKS_MAX: Final = 100
"""The most looks at the processes of an attempt to which one signal is sent."""

RESCAN_S: Final = 1.0
"""While waiting, new processes of the attempt are looked for this often."""

EXIT_POLL_S: Final = 0.2
"""How often a process is looked at where there is no pidfd."""

_LINUX: Final = sys.platform == "linux"


class Identity(NamedTuple):
    """One process, and no later one with the same id."""

    pid: int
    start: str
    """Start time in ticks since the boot; ``-`` where there is no ``/proc``."""
    boot: str
    recorded_s: float
    """When this was written down, in seconds since the epoch; used without ``/proc`` only."""


class Marker(NamedTuple):
    """What every process of an attempt carries in its environment."""

    attempt_id: AttemptId
    root: str
    turn: int = 1

    def variables(self) -> dict[str, str]:
        turn = {TURN_VARIABLE: str(self.turn)} if self.turn > 1 else {}
        return {ATTEMPT_VARIABLE: self.attempt_id, ROOT_VARIABLE: self.root, **turn}

    def covers(self, other: "Marker | None") -> bool:
        """This turn or one before it; after a crash a turn is cleaned up while the next runs."""
        if other is None or other.turn > self.turn:
            return False
        return (other.attempt_id, other.root) == (self.attempt_id, self.root)


class Process(NamedTuple):
    """What one look at a live process showed."""

    pid: int
    parent: int
    session: int
    start: str
    marker: Marker | None


def check_sight(proc: Path = Path("/proc")) -> None:
    """Raise ConfigError where processes cannot be told apart: then nothing here can be trusted.

    Args:
        proc: Where Linux shows them; of no matter on other systems.
    """
    if not _LINUX:
        return
    try:
        seen = str((proc / "self").readlink())
    except OSError:
        seen = ""
    if seen == str(os.getpid()):
        return
    what = f"{proc} shows the processes of another namespace" if seen else f"{proc} is not mounted"
    raise ConfigError(
        f"{what}: workers could be neither watched nor ended",
        hint=f"mount it: mount -t proc proc {proc} (in a container: --mount-proc, or its default)",
    )


def alive(identity: Identity) -> bool:
    """True while exactly this process runs; a zombie does not, nor another one with its id."""
    if identity.start == "-":
        return _alive_elsewhere(identity)
    # Ticks are counted from the boot: after another one the same id and start time may recur.
    if identity.boot != boot_id():
        return False
    fields = _stat(identity.pid)
    return fields is not None and fields.start == identity.start and not fields.dead


@contextlib.contextmanager
def on_end(identity: Identity, notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` once on the event loop when the process ends, at once when it has ended.

    Costs a file descriptor and no thread; without pidfd (older kernels, other systems, half of our
    descriptors in use) a look every ``EXIT_POLL_S``.

    Raises:
        OSError: No descriptor left even for a look.
    """
    loop = asyncio.get_running_loop()
    descriptor = _pidfd(identity.pid)
    if descriptor is not None and descriptor >= _descriptors() // 2:
        # Workers must not take what connections, files and new workers need.
        os.close(descriptor)
        descriptor = None
    if descriptor is None:
        with _polled(identity, notify, loop):
            yield
        return

    def ended() -> None:
        # The descriptor stays readable: without removing the reader the loop would spin.
        loop.remove_reader(descriptor)
        notify()

    try:
        # Looked at while the descriptor pins it: what it names is the process or a later one.
        if alive(identity):
            loop.add_reader(descriptor, ended)
        else:
            notify()
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def _polled(
    identity: Identity, notify: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> Iterator[None]:
    timer: asyncio.Handle

    def look() -> None:
        nonlocal timer
        try:
            is_alive = alive(identity)
        except OSError:
            is_alive = True  # that is not known: look again
        if is_alive:
            timer = loop.call_later(EXIT_POLL_S, look)
        else:
            notify()

    timer = loop.call_soon(look)
    try:
        yield
    finally:
        timer.cancel()


class Census:
    """Looks at all processes, off the loop; callers that wait at the same time share one look.

    So ending 200 attempts at once costs a few looks, not 200.
    """

    def __init__(self, off_loop: OffLoop) -> None:
        self._off_loop = off_loop
        self._lock = asyncio.Lock()
        self._asked = 0
        self._answered = 0
        self._last: tuple[Process, ...] = ()

    async def take(self) -> tuple[Process, ...]:
        """Return what a look showed that began after this call."""
        self._asked += 1
        mine = self._asked
        async with self._lock:
            if self._answered < mine:
                covers = self._asked
                self._last = await self._off_loop(scan)
                self._answered = covers
            return self._last


def scan() -> tuple[Process, ...]:
    """Look at every live process once; those that end meanwhile are left out.

    Environments of other users' processes cannot be read and count as without marker. For root all
    can: a worker that changed its user still belongs to its attempt.
    """
    if not _LINUX:
        return _scan_elsewhere()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  # Path objects for every process cost more
        process = look(int(name)) if name.isdecimal() else None
        if process is not None:
            found.append(process)
    return tuple(found)


def look(pid: int) -> Process | None:
    """The live process with that id; None without one, and where there is no ``/proc``.

    Raises:
        OSError: We could not look (no descriptor or memory left).
    """
    fields = _stat(pid) if _LINUX else None
    if fields is None or fields.dead:
        return None
    environ = read(f"/proc/{pid}/environ")
    if not environ and fields.parent not in _KERNEL:
        # In the middle of its exec it has none for some microseconds, and must not be overlooked.
        environ = read(f"/proc/{pid}/environ")
    marker = _marker(environ)
    return Process(pid, fields.parent, fields.session, fields.start, marker)


def members(
    processes: Sequence[Process], marker: Marker, *, shim: Identity | None
) -> tuple[Process, ...]:
    """The attempt's processes among ``processes``, without its shim.

    Never ourselves, nor what leads to us, nor what we or another attempt of ours started: the
    daemon may itself carry a marker, when a worker's command started it.
    """
    by_pid = {each.pid: each for each in processes}
    carriers = {each.pid for each in processes if marker.covers(each.marker)}
    spared = _spared(by_pid, marker) - carriers | {0, 1, os.getpid()}
    chosen = carriers | _in_session_of(shim, processes, carriers)
    chosen -= spared
    add_descendants(chosen, processes, spared)
    if shim is not None and shim.pid in chosen and by_pid[shim.pid].start == shim.start:
        chosen.discard(shim.pid)
    return tuple(by_pid[pid] for pid in chosen)


def _in_session_of(
    shim: Identity | None, processes: Sequence[Process], carriers: set[int]
) -> set[int]:
    if shim is None or shim.pid <= 1:
        return set()
    session = {each.pid for each in processes if each.session == shim.pid}
    # The number of a session may be in use again once all its processes ended; one carrier in it
    # proves that it is still the shim's.
    return session if session & carriers else set()


def _spared(by_pid: Mapping[int, Process], marker: Marker) -> set[int]:
    """Our own ancestors, and the workers of other attempts of this installation."""
    spared = {
        each.pid
        for each in by_pid.values()
        if each.marker is not None
        and not marker.covers(each.marker)
        and each.marker.root == marker.root
    }
    pid = os.getpid()
    while pid in by_pid and by_pid[pid].parent not in spared:
        pid = by_pid[pid].parent
        spared.add(pid)
    return spared


def marked(root: str) -> list[tuple[AttemptId, int]]:
    """All processes that carry the marker of an attempt under ``root``. Blocking, milliseconds."""
    return [
        (each.marker.attempt_id, each.pid)
        for each in scan()
        if each.marker is not None and each.marker.root == root
    ]


def add_descendants(chosen: set[int], processes: Iterable[Process], spared: set[int]) -> None:
    """Choose the processes that descend from chosen ones, too, but none that is spared."""
    children: dict[int, list[int]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each.pid)
    unseen = list(chosen)
    while unseen:
        for child in children.get(unseen.pop(), ()):
            if child not in chosen and child not in spared:
                chosen.add(child)
                unseen.append(child)


async def end_tree(
    marker: Marker,
    *,
    shim: Identity | None,
    grace_s: float,
    groups: Sequence[str],
    census: Census | None,
    clock: Clock,
    off_loop: OffLoop,
) -> None:
    """TERM, ``grace_s`` seconds, KILL, for every process of the attempt; return when all are gone.

    Stopped processes are continued, so that they can act on the TERM; processes that appear
    meanwhile are ended too. The shim is left to record the exit, ``SHIM_BOUND_S`` at most.
    Idempotent.

    Args:
        marker: By which its processes are known.
        shim: Its shim.
        grace_s: Between TERM and KILL.
        groups: Its cgroups.
        census: Looks at all processes; None = all of them are in ``groups``.
        clock: Only waits.
        off_loop: Carries what the kernel takes its time for.

    Raises:
        RuntimeUnavailable: Some were still there ``KILL_BOUND_S`` after the first KILL; all were
            sent KILL. Repeat it.
    """
    loop = asyncio.get_running_loop()
    kill_at = loop.time() + grace_s
    signalled: set[Identity] = set()
    alone_since: float | None = None
    while True:
        left = await _tree(marker, shim=shim, groups=groups, census=census)
        if not left and (shim is None or not alive(shim)):
            return
        now = loop.time()
        if now > kill_at + KILL_BOUND_S:
            raise RuntimeUnavailable(
                f"attempt {marker.attempt_id}: processes {', '.join(str(p.pid) for p in left)} "
                f"survived SIGKILL for {KILL_BOUND_S:.0f} s (blocked in the kernel?)"
            )
        if left:
            alone_since = None
            if now >= kill_at:
                spared = shim.pid if shim is not None and alive(shim) else None
                for group in groups:
                    await off_loop(partial(cgroups.kill, group, sparing=spared))
            _signal_all(left, signalled, force=now >= kill_at)
            if shim is not None and now > kill_at + SHIM_BOUND_S:
                # On a full disk it waits with one `sleep` after the other, each of them left; or
                # it waits for us, as for the worker's other children.
                send(shim, signal.SIGKILL)
            until = now + RESCAN_S if now >= kill_at else min(kill_at, now + RESCAN_S)
            await _until_gone(left, until_s=until, clock=clock)
        elif shim is not None:
            alone_since = now if alone_since is None else alone_since
            if now >= alone_since + SHIM_BOUND_S:
                send(shim, signal.SIGKILL)
            await _until_gone([shim], until_s=now + RESCAN_S / 2, clock=clock)


async def signal_tree(
    marker: Marker,
    number: signal.Signals,
    *,
    shim: Identity | None,
    groups: Sequence[str],
    census: Census | None,
) -> None:
    """Send a signal once to every process of the attempt, also to those that appear meanwhile.

    Not to its shim. For SIGSTOP and SIGCONT: whoever is stopped starts no more processes, so that
    the looks come to an end.

    Args:
        marker: By which its processes are known.
        number: The signal.
        shim: Its shim.
        groups: Its cgroups.
        census: Looks at all processes; None = all of them are in ``groups``.
    """
    signalled: set[Identity] = set()
    for _ in range(LOOKS_MAX):
        left = await _tree(marker, shim=shim, groups=groups, census=census) - signalled
        if not left:
            return
        for each in left:
            send(each, number)
        signalled |= left


async def _tree(
    marker: Marker, *, shim: Identity | None, groups: Iterable[str], census: Census | None
) -> set[Identity]:
    """All processes of the attempt that live, without its shim and us."""
    seen = () if census is None else await census.take()
    if shim is not None:
        seen = (*seen, *_adopted(shim, seen))
    found = seen if census is None else members(seen, marker, shim=shim)
    all_ = {identity_of(each) for each in (*found, *_inside(groups))}
    # A worker's command may have started us.
    return {
        each for each in all_ if each.pid != os.getpid() and (shim is None or each[:2] != shim[:2])
    }


def _inside(groups: Iterable[str]) -> list[Process]:
    """What is in these cgroups, the shim too."""
    seen = [(group, look(pid)) for group in groups for pid in cgroups.pids(group)]
    # Asked again by its id, which may be another process's by now.
    return [each for group, each in seen if each is not None and cgroups.holds(group, each.pid)]


def _adopted(shim: Identity, seen: Sequence[Process]) -> list[Process]:
    """Children of the shim that a look at all processes missed: they fork and exit all the time."""
    known = {each.pid for each in seen}
    pids = map(int, read(f"/proc/{shim.pid}/task/{shim.pid}/children").split())
    found = [look(pid) for pid in pids if pid not in known and alive(shim)]
    return [each for each in found if each is not None and each.parent == shim.pid]


def _signal_all(left: Iterable[Identity], signalled: set[Identity], *, force: bool) -> None:
    for each in left:
        if force:
            send(each, signal.SIGKILL)
        elif each not in signalled:
            signalled.add(each)
            send(each, signal.SIGTERM)
            # A stopped process handles its TERM only when it is continued.
            send(each, signal.SIGCONT)


async def _until_gone(processes: Iterable[Identity], *, until_s: float, clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    pause_s, left = 0.002, list(processes)
    while True:
        left = [each for each in left if alive(each)]
        remaining_s = until_s - loop.time()
        if not left or remaining_s <= 0:
            return
        await clock.sleep(min(pause_s, remaining_s))
        pause_s = min(pause_s * 1.5, 0.1)


def send(identity: Identity, number: signal.Signals) -> None:
    """Send a signal to exactly this process; nothing when it is gone."""
    descriptor = _pidfd(identity.pid)
    try:
        # Checked while the descriptor pins the process: its id cannot be used again in between.
        if not alive(identity):
            return
        if descriptor is None:
            os.kill(identity.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        if descriptor is not None:
            os.close(descriptor)


def unmarked(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that outlives us, and must not pass for one of a worker's.

    A command of a worker may have started the daemon.
    """
    marks = {ATTEMPT_VARIABLE, ROOT_VARIABLE, TURN_VARIABLE}
    return {name: value for name, value in environ.items() if name not in marks}


def identity_of(process: Process) -> Identity:
    """Of a process that was seen."""
    return Identity(process.pid, process.start, boot_id(), _NEVER)


_NEVER: Final = float("inf")
_KERNEL: Final = (0, 2)
"""Parents of threads of the kernel."""


def _stat(pid: int) -> Stat | None:
    data = read(f"/proc/{pid}/stat")
    return parsed(data) if data else None


def _marker(environ: bytes) -> Marker | None:
    if b"SUBAGENTS_ATTEMPT=" not in environ:
        return None
    values = dict(
        each.split("=", 1)
        for each in os.fsdecode(environ).split("\0")
        if each.startswith((f"{ATTEMPT_VARIABLE}=", f"{ROOT_VARIABLE}=", f"{TURN_VARIABLE}="))
    )
    if ATTEMPT_VARIABLE not in values:
        return None
    turn = values.get(TURN_VARIABLE, "")
    return Marker(
        AttemptId(values[ATTEMPT_VARIABLE]),
        values.get(ROOT_VARIABLE, ""),
        int(turn) if turn.isdecimal() else 1,
    )


def _descriptors() -> int:
    """How many file descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        # Gone (the caller looks), not known to this kernel, or no descriptor left.
        return None


if sys.platform != "linux":

    def _alive_elsewhere(identity: Identity) -> bool:
        try:
            process = psutil.Process(identity.pid)
            created_s = float(process.create_time())
            dead = process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False
        return not dead and created_s <= identity.recorded_s + 1

    def _scan_elsewhere() -> tuple[Process, ...]:
        found = []
        for each in psutil.process_iter():
            try:
                environ = "\0".join(f"{key}={value}" for key, value in each.environ().items())
            except psutil.Error:
                environ = ""
            with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
                marker = _marker(environ.encode())
                found.append(Process(each.pid, each.ppid(), os.getsid(each.pid), "-", marker))
        return tuple(found)

else:

    def _alive_elsewhere(identity: Identity) -> bool:
        """False: without a start time nothing proves which process has this id."""
        return identity.start != "-"

    def _scan_elsewhere() -> tuple[Process, ...]:
        return ()
