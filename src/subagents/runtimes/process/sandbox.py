"""Bubblewrap around a worker: it sees the file system read-only, but for a few places.

Writable are the working directory, when the run may write, a ``/tmp`` of its own, and what the
agent's program keeps of itself (sessions, caches). Settings of that program with hooks stay
read-only, and what git obeys stays as it is (``git_places``). It has a process namespace of its
own, so that it can neither enter the others through ``/proc`` nor leave the tree by which the
daemon knows its calls. The network stays: an agent needs its model. Sockets that lead out of the
sandbox (containers, system services, the operator's own) are covered.

Tried with bubblewrap 0.8, also as root in a container, where it keeps no capabilities.
"""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from subagents import process_group
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.values import Value
from subagents.errors import Forbidden, RuntimeUnavailable, UsageError
from subagents.runtimes.process.seclusion import Seclusion, check, mounts, shows, variables

PROGRAM: Final = "bwrap"
INSTALL: Final = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
TRY_BOUND_S: Final = 10.0
TMP: Final = "/tmp"  # noqa: S108  the system's own, which programs name; the worker gets another one
NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
BASE: Final = ("--ro-bind", "/", "/", "--dev", "/dev", *NAMESPACES, "--proc", "/proc")
OUTWARD: Final = (
    *("/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio"),
    *("/run/dbus/system_bus_socket", "/run/systemd/private", "/run/snapd.socket"),
)
"""Sockets of services that would act outside of the sandbox for whoever asks."""
EMPTY: Final[Mapping[str, str]] = {".json": "{}\n", ".jsonc": "{}\n", ".toml": ""}
"""Settings without any content, by the kind of their file."""

Hold = Callable[[str], Mapping[str, str]]
"""Makes what a sandbox holds in place in that directory, and says what to mount; see
``git_places.PlaceHolders.hold``."""


class Places(Value, frozen=True):
    """What one worker must reach besides its working directory; absolute."""

    writable: tuple[str, ...] = ()
    """Made when missing."""
    visible: tuple[str, ...] = ()
    """Seen read-only, also where they lie below ``/tmp``."""
    guarded: tuple[str, ...] = ()
    """Read-only also where they lie in a writable place. A directory (it ends in ``/``) and a file
    of JSON or TOML is made when missing, empty: or the worker could make it."""
    hidden: tuple[str, ...] = ()
    """Files that it must not even read."""


def problem() -> str | None:
    """Why no sandbox can be made here; None = one can. Blocking until one was, milliseconds."""
    found = shutil.which(PROGRAM)
    if found is None:
        return "bubblewrap is not installed"
    try:
        _try(found)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{found} cannot make a sandbox here: {error}"
    return None


@lru_cache(maxsize=1)
def _try(found: str) -> None:
    """Make one. Only that it worked is remembered: what was in its way may be gone next time."""
    done = process_group.run([found, *BASE, "true"], timeout_s=TRY_BOUND_S)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OSError(lines[-1] if lines else f"exit code {done.returncode}")


def wrapped(
    argv: Sequence[str],
    *,
    cwd: str,
    access: Access,
    places: Places,
    hold: Hold,
    is_offline: bool = False,
) -> tuple[str, ...]:
    """The command line that starts ``argv`` in a sandbox. Blocking: it looks at the places.

    Args:
        argv: Begins with an absolute path.
        cwd: The working directory.
        access: What the worker may do.
        places: What it needs besides that.
        hold: Called with a directory that it may write in.
        is_offline: Without any network; a program that needs a model cannot work so.

    Raises:
        UsageError: There is no bubblewrap any more, the directory is everything, or what git obeys
            there cannot be held; nothing was started.
        RuntimeUnavailable: What is to be held cannot be made.
    """
    program = _program(f'access "{access.level}"')
    offline = ["--unshare-net"] if is_offline else []
    if access.level is AccessLevel.FULL:
        return (program, "--dev-bind", "/", "/", *offline, "--chdir", cwd, "--", *argv)
    # A program may be an interpreter, and what it runs an argument.
    named = [word for word in argv if word.startswith("/") and os.path.exists(word)]  # noqa: PTH110
    needed = (cwd, *named, *map(os.path.realpath, named), *places.visible, *places.writable)
    built = [program, *BASE, *offline, "--tmpfs", TMP]
    for place in _below_tmp(needed):
        built += ["--ro-bind", place, place]
    mounts = dict.fromkeys(places.writable, "--bind")
    for place in places.writable:
        Path(place).mkdir(parents=True, exist_ok=True)
    for place in places.guarded:
        _make(place)
    mounts |= dict.fromkeys(filter(os.path.exists, places.guarded), "--ro-bind")
    if access.level is AccessLevel.WRITE:
        if os.path.realpath(cwd) == "/":
            raise UsageError('access "write" in / is access to everything; name another cwd')
        mounts |= {cwd: "--bind", **_held(hold, cwd)}
    # What lies within another place is mounted after it, or it would be covered.
    for place in sorted(mounts, key=lambda place: len(Path(place).parts)):
        built += [mounts[place], place, place]
    for place in (*OUTWARD, *_user_sockets(places.visible), *places.hidden):
        built += _covered(place)
    return (*built, "--chdir", cwd, "--", *argv)


def secluded(
    argv: Sequence[str],
    *,
    cwd: str,
    access: Access,
    seclusion: Seclusion,
    state_dir: Path,
    hold: Hold,
) -> tuple[str, ...]:
    """The command line that starts ``argv`` where it sees nothing but what ``access`` says.

    Blocking.

    Args:
        argv: Begins with an absolute path.
        cwd: The working directory, in what it sees.
        access: What the worker may do; ``sees`` is the directory that is there.
        seclusion: What is there besides the working directory.
        state_dir: Of this installation.
        hold: Called with a directory that it may write in.

    Raises:
        UsageError: There is no bubblewrap any more, the program is not there for the worker, what
            git obeys cannot be held, or with this directory nothing would be kept from it; nothing
            was started.
        RuntimeUnavailable: What is to be held cannot be made.
    """
    program = _program('isolation "sandbox"')
    work = access.sees or cwd
    check(work, state_dir)
    if not shows(argv[0], work, seclusion):
        raise UsageError(
            f'isolation "sandbox": the program {argv[0]} is not seen in there; put its directory '
            "on your PATH, or it into the working directory",
            details={"field": "isolation"},
        )
    may_write = access.level is not AccessLevel.READ
    built = [program, *NAMESPACES]
    if not access.network:
        built.append("--unshare-net")
    built += mounts(work, seclusion, may_write=may_write, is_offline=not access.network)
    if may_write:
        for place, how in _held(hold, work).items():
            built += [how, place, place]
    built += ["--remount-ro", "/", *variables(seclusion)]
    return (*built, "--chdir", cwd, "--", *argv)


def _program(promise: str) -> str:
    """Bubblewrap, by which a promise is kept.

    Raises:
        UsageError: There is none any more.
    """
    reason, program = problem(), shutil.which(PROGRAM)
    if reason is not None or program is None:
        raise UsageError(f"{promise} cannot be kept: {reason}; {INSTALL}")
    return program


def check_place(cwd: str, access: Access | None) -> None:
    """Refuse a working directory in which a worker cannot begin. Blocking.

    Raises:
        UsageError: It is not there, or it became a link, by which whoever spawned the worker could
            have it write elsewhere.
    """
    if not Path(cwd).is_dir():
        raise UsageError(f"the working directory {cwd} does not exist; name it in `cwd`")
    if access is None or not access.is_pinned or access.level is not AccessLevel.WRITE:
        return
    if os.path.realpath(cwd) != cwd:
        raise UsageError(
            f"the working directory {cwd} is or lies behind a symbolic link now, and who spawned "
            "the run may write in one place only",
            hint="name the directory itself in cwd",
            details={"field": "cwd"},
        )


def unkept(access: Access, missing: str) -> Forbidden:
    """The refusal of an access that nothing here keeps a worker to."""
    if access.sees is not None:
        return Forbidden(
            f'isolation "sandbox" (--isolation sandbox) does not work here: {missing}',
            guardrail="access",
            hint=INSTALL,
        )
    return Forbidden(
        f'nothing here keeps the worker to access "{access.level}": {missing}, and its program '
        "cannot be kept by its own means",
        guardrail="access",
        hint=f'{INSTALL}, or set access = "full" in the agent\'s table',
    )


def places_of(
    env: Mapping[str, str],
    *,
    state_dir: Path,
    writable: Iterable[str] = (),
    guarded: Iterable[str] = (),
) -> Places:
    """What any worker needs.

    Args:
        env: The worker's.
        state_dir: Of this installation; the operator's own means in it are hidden.
        writable: What its program writes.
        guarded: What its program obeys.
    """
    socket = env.get("SUBAGENTS_SOCKET", "")
    search = env.get("PATH", "").split(os.pathsep)
    visible = (env.get("HOME", ""), str(state_dir), socket, sys.prefix, sys.base_prefix, *search)
    hidden = [str(state_dir / "operator.token")]
    if socket:
        hidden.append(os.path.join(os.path.dirname(socket), "supervisor.sock"))  # noqa: PTH118, PTH120
    return Places(
        writable=tuple(writable),
        visible=tuple(place for place in visible if place.startswith("/")),
        guarded=tuple(guarded),
        hidden=tuple(hidden),
    )


def _held(hold: Hold, work: str) -> Mapping[str, str]:
    try:
        return hold(work)
    except OSError as error:
        raise RuntimeUnavailable(
            f"what git obeys in {work} cannot be held in place: {error}"
        ) from error


def _below_tmp(places: Iterable[str]) -> list[str]:
    """The entries of ``/tmp`` that these places lie in."""
    found: dict[str, None] = {}
    for place in places:
        parts = Path(place).parts
        if place.startswith(f"{TMP}/") and len(parts) > 2:
            entry = os.path.join(TMP, parts[2])  # noqa: PTH118
            if os.path.exists(entry):  # noqa: PTH110
                found[entry] = None
    return list(found)


def _user_sockets(visible: Iterable[str]) -> list[str]:
    """The sockets of the user's session, whose service manager runs any command for its user."""
    runtime = f"/run/user/{os.getuid()}"
    names = ("bus", "systemd/private", "docker.sock", "podman/podman.sock")
    seen = tuple(visible)
    return [place for name in names if (place := f"{runtime}/{name}") not in seen]


def _make(place: str) -> None:
    file = Path(place)
    if place.endswith("/"):
        file.mkdir(parents=True, exist_ok=True)
    elif file.suffix in EMPTY and file.parent.is_dir() and not file.exists():
        file.write_text(EMPTY[file.suffix])


def _covered(place: str) -> list[str]:
    try:
        kind = os.stat(place).st_mode  # noqa: PTH116
    except OSError:
        return []
    return ["--tmpfs", place] if stat.S_ISDIR(kind) else ["--ro-bind", "/dev/null", place]
