"""Which daemon a command speaks to, in whose name, and whether it may start one.

No command asks beforehand whether one answers: the first call that finds none starts it, in a home
that never had one, after a reboot and after a crash alike. One exception: a daemon that was told to
stop stays stopped until the machine is rebooted, or a command asks for work: ``run``, ``spawn``,
``plan run``, ``retry``, ``wait`` and ``up``. Other commands say that it was stopped.
"""

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from subagents import __version__
from subagents.cli.ending import at_last, settled
from subagents.cli.flags import refusal
from subagents.cli.output import note
from subagents.client.client import DEFAULT_SESSION, Client, Document
from subagents.config.socket_path import socket_path
from subagents.errors import EXIT_OK, DaemonUnreachable, UsageError

if TYPE_CHECKING:
    from subagents.config.paths import Paths

READER: Final = os.urandom(16).hex()
"""This process, to the inbox: what was offered to it is consumed by it."""
POLL_S: Final = 20.0
"""One long poll; less than any time limit between here and the daemon."""
_LOOKS: Final = frozenset(
    {"/v1/wait", "/v1/inbox", "/v1/inbox/ack", "/v1/runs/dry-run", "/v1/plans/dry-run"}
)
"""Where a POST does nothing that a second one would do again."""

_NAME: Final = r"[!-~]{1,200}"
_KEY: Final = r"agent:[a-z0-9][a-z0-9_-]{0,63}:[!-~]{1,200}"


def session() -> str:
    """The caller's session: a worker's own, else the user's."""
    return os.environ.get("SUBAGENTS_SESSION_KEY") or DEFAULT_SESSION


def session_of(name: str | None) -> str:
    """The key of a named session; a whole key stays as it is.

    Raises:
        UsageError: It is empty, too long, or has spaces or other than printable ASCII characters.
    """
    found = "main" if name is None else name
    if re.fullmatch(_KEY, found):
        return found
    if not re.fullmatch(_NAME, found) or found.startswith("agent:"):
        why = f"must be 1 to 200 printable characters without spaces, not {found[:80]!r}"
        raise refusal("--session", why)
    return f"agent:main:{found}"


def paths() -> "Paths":
    from subagents.config.paths import Paths  # noqa: PLC0415  most need only the socket

    return Paths.resolve(os.environ)


def worker_socket() -> str | None:
    """The socket a worker was given; its daemon is never started from here."""
    return os.environ.get("SUBAGENTS_SOCKET") or None


def connect(*, starts: bool | None = False) -> Client:
    """A client of this home's daemon, or of the one whose worker this is.

    Args:
        starts: Start the daemon when the first call finds none, also one that was told to stop.
            Later, and without it, that one stays stopped; with None nothing is started.
    """
    if (given := worker_socket()) is not None:
        return _Acting(given, session=session(), reader=READER)

    def start() -> bool:
        is_first = client.daemon_version is None
        return _start(paths(), starts=bool(starts) and is_first, is_first=is_first)

    socket = socket_path(os.environ) or paths().socket
    begin = None if starts is None else start
    client = _Acting(socket, session=session(), reader=READER, start=begin)
    # At the end, below what the command has to say: it is the last thing that is read.
    at_last(partial(warn_of_version, client))
    return client


class _Acting(Client):
    """Notes that something was done: from then on that is what the exit code says."""

    def post(self, path: str, body: object = None, *, timeout_s: float | None = None) -> Document:
        answer = super().post(path, body, timeout_s=timeout_s)
        if path not in _LOOKS:
            settled(EXIT_OK)
        return answer

    def delete(self, path: str) -> Document:
        answer = super().delete(path)
        settled(EXIT_OK)
        return answer


def _start(home: "Paths", *, starts: bool, is_first: bool) -> bool:
    """Start it unless it was told to stop; returns whether the call is to be tried again."""
    from subagents.client import daemon_start  # noqa: PLC0415

    # One that answered before, and now has no socket, is stopping.
    is_stopping = not is_first and not home.socket.exists()
    if not starts and (is_stopping or daemon_start.was_told_to_stop(home)):
        if not is_first:
            return False
        raise DaemonUnreachable(
            "no daemon runs: the last one was told to stop",
            hint="start it: subagents up",
            details={"socket": str(home.socket)},
            is_lasting=True,
        )
    # Asked before the new one overwrites what the last one left.
    had_crashed = daemon_start.was_killed(home)
    if daemon_start.ensure_daemon(home) and had_crashed:
        note("The daemon had crashed and was restarted. Runs were not affected.")
    return True


def warn_of_version(client: Client) -> None:
    """Say it when the daemon that answered ``client`` is of another version than this command."""
    # A worker cannot do anything about it.
    if client.daemon_version in {None, __version__} or worker_socket() is not None:
        return
    theirs = client.daemon_version or "0.1.0 or older"
    note(
        f"warning: the daemon is version {theirs}, this command {__version__};"
        " restart it: subagents down --yes && subagents up"
    )


ASIDE_NAMED_MAX: Final = 5


def warn_of_refusal(client: Client) -> None:
    """Say it when the daemon accepts no new runs now, or leaves out damaged ones."""
    found = client.get("/version")
    if why := found.get("degraded"):
        note(f"warning: new runs are refused: {why}")
    if why := found.get("problem"):
        note(f"warning: nothing is started on this node: {why}; others go on with its sessions")
    warn_of_set_aside(found)


def warn_of_set_aside(answer: Document) -> None:
    """Name what an answer says is damaged and left out."""
    aside = answer.get("setAside")
    if isinstance(aside, list) and aside:
        more = f" and {len(aside) - ASIDE_NAMED_MAX} more" if len(aside) > ASIDE_NAMED_MAX else ""
        names = ", ".join(str(each) for each in aside[:ASIDE_NAMED_MAX])
        note(f"warning: damaged and set aside: {names}{more}; see: subagents doctor")


def caller_cwd() -> str:
    """The working directory.

    Raises:
        UsageError: It was deleted, or no request can name it.
    """
    try:
        found = os.getcwd()  # noqa: PTH109  pathlib takes longer to import than all of this
        found.encode()
    except (FileNotFoundError, UnicodeEncodeError) as error:
        why = "no longer exists" if isinstance(error, OSError) else "has a name that is no UTF-8"
        raise UsageError(f"the working directory {why}", hint="cd to another directory") from error
    return found


def is_worker() -> bool:
    """Whether a worker calls: a model, more likely than a person."""
    return bool(os.environ.get("SUBAGENTS_RUN_ID"))


def config_environment() -> dict[str, str]:
    """The variables that set configuration keys: they hold for the runs spawned from here.

    A worker has none to bring: its limits are those it was started with.
    """
    if is_worker():
        return {}
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("SUBAGENTS_") and "__" in name
    }


def place() -> Document:
    """What a spawn tells of where it was called."""
    return {"cwd": caller_cwd(), "configEnv": config_environment()}
