"""A cgroup for each attempt, where the kernel has cgroup v2 and lets us make them.

Whatever a worker starts is born in its cgroup and stays there, wherever it moves otherwise: to
another session, another parent, an environment without our marker. So all of it is found without a
look at other processes, ended at once (``cgroup.kill``), known at our doors, and held to limits.

Shims are born in it (``launcher.py``), so that there is no moment before. Cgroups are made where
the daemon is: below a systemd of the user that is a scope or service with ``Delegate=yes``. Limits
need controllers, which the kernel gives to the children of a cgroup only when no process is in
itself: for them the daemon moves to a leaf next to its workers.

A process of the same user may write itself into another cgroup. A worker in bubblewrap cannot: it
sees them read-only.
"""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from subagents.domain.run.values import AttemptId, RunId, attempt_id
from subagents.runtimes.process.kernel_files import read
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.text import size

CGROUP_VARIABLE: Final = "SUBAGENTS_SHIM_CGROUP"
"""Tells a shim in which cgroup it is, for its records; the worker does not get it."""
LEAF: Final = "daemon"
"""Where a daemon sits next to its workers; the unit's ``DelegateSubgroup`` as well."""
CONTROLLERS: Final[Mapping[str, str]] = {
    "memory_mb": "memory",
    "pids": "pids",
    "cpu_percent": "cpu",
}
"""Which controller keeps a worker to which of ``[agents.<id>.limits]``."""
MIB: Final = 1024 * 1024
CPU_PERIOD_US: Final = 100_000
REMOVE_TRIES: Final = 6
"""A shim ends some milliseconds after it wrote down the end of its worker."""
TRY_TRIES: Final = 60

_LOCK: Final = threading.Lock()
_STARTING: Final[set[str]] = set()
"""Names of cgroups in which something is being started by this process."""
_TRY: Final = "subagents-try."
_WAY_OUT: Final = "start the daemon with `subagents up` or `subagents service install` on systemd"


class Place(NamedTuple):
    """Where this process can make cgroups."""

    path: str | None
    """None = nowhere."""
    controllers: frozenset[str] = frozenset()
    """The controllers that can limit what is in its groups."""
    problem: str | None = None
    """Why there is none, or not every controller; None = all is there."""

    @property
    def words(self) -> str:
        """What workers' processes are kept together by."""
        if self.path is None:
            return f"shims adopt what workers leave behind; no cgroups: {self.problem}"
        limits = ", ".join(sorted(self.controllers)) or "none"
        text = f"each worker in a cgroup of its own below {self.path}; limits: {limits}"
        return text if self.problem is None else f"{text} ({self.problem})"

    def unkept(self, limits: Iterable[str]) -> str | None:
        """Which of these keys of ``limits`` nothing here can enforce, and why; None = all can."""
        missing = [key for key in limits if CONTROLLERS[key] not in self.controllers]
        return f"{', '.join(missing)}: {self.problem}" if missing else None


@cache
def place() -> Place:
    """Look once for this process. Blocking, some milliseconds: it tries with a process."""
    own = _own()
    if own is None:
        return Place(None, problem="no cgroup v2 that this process is in is mounted")
    # In the leaf that `enter_leaf` made, or a unit's `DelegateSubgroup`.
    base = own.parent if own.name == LEAF else own
    problem = _try(base)
    if problem is not None:
        return Place(None, problem=problem)
    wanted = set(CONTROLLERS.values())
    kept = frozenset(each for each in wanted if _enable(base, each))
    missing = ", ".join(sorted(wanted - kept))
    problem = f"no controller {missing} for what is below {base}; {_WAY_OUT}" if missing else None
    return Place(str(base), kept, problem)


def enter_leaf(root: str) -> None:
    """Let a daemon leave its cgroup to its workers, so that these can be limited. Never raises.

    Only where no other process is in it; and not in a service whose unit has no
    ``DelegateSubgroup``, which systemd could not restart while workers are there. A daemon that a
    worker of the installation below ``root`` starts is the user's, and leaves the worker's cgroup.
    """
    own = _own()
    if own is None or own.name == LEAF or own.suffix == ".service":
        return
    with contextlib.suppress(OSError):
        for each in (own, *own.parents):
            if each.name.startswith(_prefix(root)):
                leaf = each.parent / LEAF
                place = leaf if leaf.is_dir() else each.parent
                _write(f"{place}/cgroup.procs", str(os.getpid()))
                return
        # https://docs.kernel.org/admin-guide/cgroup-v2.html, "No Internal Process Constraint": only
        # a cgroup without processes of its own gives controllers to those below it.
        controllers = set(_text(f"{own}/cgroup.controllers").split())
        if controllers & set(CONTROLLERS.values()) and pids(str(own)) == [os.getpid()]:
            (own / LEAF).mkdir(exist_ok=True)
            _write(f"{own}/{LEAF}/cgroup.procs", str(os.getpid()))


def path_of(root: str, run_id: RunId, number: int, turn: int) -> str | None:
    """Of one turn of an attempt below ``root``; None where none can be made."""
    base = place().path
    return None if base is None else f"{base}/{_prefix(root)}{run_id}.{number}.{turn}"


def make(group: str, limits: Mapping[str, int], *, own_pids: int = 0) -> None:
    """Make it, with its limits. Idempotent.

    Args:
        group: Its directory, in one that exists.
        limits: See ``CONTROLLERS``.
        own_pids: Processes in it that are ours and not the worker's.

    Raises:
        OSError: It cannot be made, or not be limited so.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(group)  # noqa: PTH102  # hot: once per attempt
    for key, value in limits.items():
        match key:
            case "memory_mb":
                _write(f"{group}/memory.max", str(value * MIB))
                with contextlib.suppress(OSError):  # a kernel without swap
                    _write(f"{group}/memory.swap.max", "0")
            case "pids":
                _write(f"{group}/pids.max", str(value + own_pids))
            case "cpu_percent":
                _write(f"{group}/cpu.max", f"{value * CPU_PERIOD_US // 100} {CPU_PERIOD_US}")


def pids(group: str) -> list[int]:
    """Every process in it and below it; none when there is no such cgroup."""
    return [int(pid) for each in _tree(group) for pid in _text(f"{each}/cgroup.procs").split()]


def holds(group: str, pid: int) -> bool:
    """Whether the process is in it, or below it, now."""
    return f"/{PurePosixPath(group).name}/" in f"{_cgroup_of(pid)}/"


def kill(group: str, *, sparing: int | None) -> None:
    """SIGKILL to all that is in it and below it, also to what forks meanwhile. Blocking, 20 ms.

    Nothing when we are in it ourselves. A process that is spared is moved to where we are.
    """
    inside = pids(group)
    if os.getpid() in inside:
        return
    with contextlib.suppress(OSError):
        if sparing in inside:
            _write(f"{_own()}/cgroup.procs", str(sparing))
    with contextlib.suppress(OSError):
        _write(f"{group}/cgroup.kill", "1")


def remove(group: str, *, tries: int = REMOVE_TRIES) -> bool:
    """Remove it with what the worker made below it; False = a process stays in it. Blocking."""
    for again in range(tries):
        try:
            os.rmdir(group)  # noqa: PTH106  # hot: once per attempt
        except FileNotFoundError:
            return True
        except OSError:
            for each in reversed(list(_tree(group))):
                with contextlib.suppress(OSError):
                    os.rmdir(each)  # noqa: PTH106
            time.sleep(0.001 * again)
        else:
            return True
    return False


def reached_limit(group: str) -> str | None:
    """The limit at which the kernel ended processes in it; None = none."""
    events = dict(line.split() for line in _text(f"{group}/memory.events").splitlines())
    most = _text(f"{group}/memory.max").strip()
    if events.get("oom_kill", "0") == "0" or not most.isdecimal():
        return None
    return f"memory limit of {size(int(most))} (limits.memory_mb)"


def attempt_of(pid: int, root: str) -> AttemptId | None:
    """The attempt below ``root`` in whose cgroup the process is, if any.

    Raises:
        OSError: We could not look (no descriptor or memory left).
    """
    prefix = _prefix(root)
    for part in _cgroup_of(pid).split("/"):
        if part.startswith(prefix):
            return _attempt(part.removeprefix(prefix))
    return None


@contextlib.contextmanager
def starting(group: str) -> Iterator[None]:
    """No ``left_behind`` removes it meanwhile: until something is started in it, it is empty."""
    name = PurePosixPath(group).name
    with _LOCK:
        _STARTING.add(name)
    try:
        yield
    finally:
        with _LOCK:
            _STARTING.discard(name)


def seen(root: str) -> Mapping[str, AttemptId]:
    """The names of the cgroups that are there now, with their attempts below ``root``.

    Those in which a daemon tried whether it can have any, and was killed, are removed.
    """
    base, prefix = place().path, _prefix(root)
    found = {}
    for name in () if base is None else os.listdir(base):  # noqa: PTH208
        if name.startswith(_TRY) and not os.path.exists(f"/proc/{name.removeprefix(_TRY)}"):  # noqa: PTH110
            remove(f"{base}/{name}")
        attempt = _attempt(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if attempt is not None:
            found[name] = attempt
    return found


def left_behind(
    names: Mapping[str, AttemptId], known: Collection[AttemptId]
) -> list[tuple[AttemptId, int]]:
    """Processes in cgroups of attempts that are not in ``known``; empty ones are removed.

    Args:
        names: What ``seen`` returned.
        known: Asked for after that: of an attempt that began in between nothing is seen yet.
    """
    base = place().path
    found: list[tuple[AttemptId, int]] = []
    for name, attempt in names.items():
        if attempt in known:
            continue
        with _LOCK:
            # An attempt of a run that another node decides about is not known here either.
            is_removed = name in _STARTING or remove(f"{base}/{name}", tries=2)
        if not is_removed:
            found += [(attempt, pid) for pid in pids(f"{base}/{name}")]
    return found


def groups_of(root: str, base: str) -> list[str]:
    """The cgroups of attempts below ``root``, in the directory in which a daemon makes them."""
    with contextlib.suppress(FileNotFoundError):
        return [f"{base}/{name}" for name in os.listdir(base) if name.startswith(_prefix(root))]  # noqa: PTH208
    return []


def _own() -> Path | None:
    """The directory of the cgroup that this process is in."""
    own = PurePosixPath(_cgroup_of(os.getpid()))
    for line in _text("/proc/self/mountinfo").splitlines():
        mount, _, source = line.partition(" - ")
        if not source.startswith("cgroup2 "):
            continue
        # Blanks and the like are written as octal numbers.
        root, point = (each.encode().decode("unicode_escape") for each in mount.split(" ")[3:5])
        if own.is_relative_to(root):
            return Path(point) / own.relative_to(root)
    return None


def _try(base: Path) -> str | None:
    """Why no shim can be started in a cgroup below; None = one can."""
    group = f"{base}/{_TRY}{os.getpid()}"
    try:
        make(group, {})
        if not os.path.exists(f"{group}/cgroup.kill"):  # noqa: PTH110
            return "this kernel cannot kill a cgroup (cgroup.kill came with Linux 5.14)"
        LAUNCHER.start([b"/bin/sh", b"-c", b":"], {}, b"/", cgroup=os.fsencode(group))
    except OSError as error:
        return f"no cgroup can be made and entered below {base} ({error.strerror}); {_WAY_OUT}"
    finally:
        # On a busy machine the process that tried takes its time to end.
        any(remove(group) for _ in range(TRY_TRIES))
    return None


def _enable(base: Path, controller: str) -> bool:
    file = f"{base}/cgroup.subtree_control"
    with contextlib.suppress(OSError):
        _write(file, f"+{controller}")
    return controller in _text(file).split()


@cache
def _prefix(root: str) -> str:
    # Other installations may have their workers next to ours.
    return f"subagents-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}."


def _attempt(name: str) -> AttemptId | None:
    run_id, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    return attempt_id(RunId(run_id), int(number)) if number.isdecimal() else None


def _tree(group: str) -> Iterator[str]:
    """It and all below it, parents first."""
    return (directory for directory, _, _ in os.walk(group))


def _cgroup_of(pid: int) -> str:
    """Its path in cgroup v2; empty when the process is gone or there is no such thing."""
    for line in _text(f"/proc/{pid}/cgroup").splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    return ""


def _text(path: str) -> str:
    return os.fsdecode(read(path))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(text)
