"""The daemon's life at the command line: ``up`` and ``down``."""

import signal
import time
from typing import Final

from subagents.cli import output
from subagents.cli.connection import paths, session, warn_of_version
from subagents.cli.flags import Json, Yes
from subagents.client.client import Client
from subagents.client.daemon_start import answers, ensure_daemon, finds_former, holder
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord
from subagents.config.paths import Paths
from subagents.errors import DaemonUnreachable, Unavailable
from subagents.process_identity import UNKNOWN
from subagents.text import counted

STOP_TIMEOUT_S: Final = 20.0
STOP_POLL_S: Final = 0.01
SILENT_S: Final = 3.0
"""How long a daemon may be silent: one whose socket was removed makes it again in a second."""


def up(*, json: Json = False) -> None:
    """Start the daemon in the background unless it is already running.

    For example:

        subagents up

        subagents up --json
    """
    home = paths()
    was_started = False

    def start() -> bool:
        nonlocal was_started
        was_started = ensure_daemon(home)
        return True

    # Not ``connect``: inside a worker, too, this is about the daemon of this home.
    with Client(home.socket, session=session(), start=start) as client:
        version = client.get("/version")
    if json:
        output.document(
            {
                "daemonPid": version.get("pid"),
                "started": was_started,
                "version": version.get("version"),
                "socket": str(home.socket),
                "supervisorSocket": str(home.supervisor_socket),
                "database": version.get("database"),
            }
        )
        return
    verb = "started" if was_started else "was running already"
    output.line(f"The daemon {verb} (pid {version.get('pid')}, {home.socket}).")
    warn_of_version(client)
    if why := version.get("degraded"):
        output.note(f"warning: new runs are refused: {why}")


def down(*, yes: Yes = False, json: Json = False) -> None:
    """Stop the daemon. Workers keep running, and the next daemon takes them over.

    Asks first if runs are active; without a terminal, --yes is required.

    For example:

        subagents down

        subagents down --yes && subagents up
    """
    home = paths()
    home.require_ours()
    finds_former(home)
    silent = _silent(home)
    if silent is not None:
        _end(home, silent, yes=yes, json=json)
        return
    if not answers(home.socket):
        if json:
            output.document({"stopped": False, "daemonPid": None})
        else:
            output.line("No daemon is running.")
        return
    # Read before it is stopped: afterwards nothing tells its end from that of a later one.
    before = holder(home)
    with Client(home.socket, session=session()) as client:
        if not yes:
            found = client.get("/v1/diagnostics").get("openRuns")
            runs = found if isinstance(found, int) else 0
            what = counted(runs, "run is", "runs are")
            question = f"{what} active; workers go on, unverified and undelivered. Stop the daemon?"
            if runs and not output.is_confirmed(question, yes=yes):
                output.note("The daemon keeps running.")
                return
        daemon_pid = client.get("/version").get("pid")
        try:
            client.post("/v1/shutdown")
        except DaemonUnreachable:
            # It stopped before it could answer, which is what was asked for.
            output.note("The daemon is stopping.")
    _stopped(home, before, daemon_pid if isinstance(daemon_pid, int) else None, json=json)


def _end(home: Paths, silent: DaemonRecord, *, yes: bool, json: bool) -> None:
    """Signal a daemon that does not answer, if it is certain which process that is."""
    if not silent.is_here:
        raise _elsewhere(silent)
    # It holds the home, so it is the daemon; a signal ends it as the call would.
    question = f"The daemon (pid {silent.pid}) does not answer at {home.socket}. Stop it?"
    if not output.is_confirmed(question, yes=yes):
        output.note("The daemon keeps running.")
        return
    from subagents.runtimes.process.processes import Identity, send  # noqa: PLC0415  only here

    daemon = Identity(silent.pid, silent.start, silent.boot, time.time())
    send(daemon, signal.SIGTERM)
    # A process that is stopped (SIGSTOP) handles the SIGTERM only when it is continued.
    send(daemon, signal.SIGCONT)
    _stopped(home, silent, silent.pid, json=json)


def _elsewhere(silent: DaemonRecord) -> DaemonUnreachable:
    details = {"pid": silent.pid, "host": silent.host}
    if silent.boot == UNKNOWN:
        return DaemonUnreachable(
            f"the daemon of this home does not answer; it is pid {silent.pid}, of a version that"
            " does not say on which machine, so nothing was signalled",
            hint=f"if that is it (ps -p {silent.pid}): kill {silent.pid}",
            details=details,
        )
    return DaemonUnreachable(
        f"the daemon of this home is elsewhere ({silent.words}) and does not answer;"
        " nothing was signalled",
        hint="stop it there: subagents down",
        details=details,
    )


def _silent(home: Paths) -> DaemonRecord | None:
    """A daemon that is there and does not answer, also not in a moment; else None."""
    due = time.monotonic() + SILENT_S
    while not answers(home.socket):
        found = holder(home)
        if found is None or found.is_on_other_machine or time.monotonic() > due:
            return found
        time.sleep(STOP_POLL_S)
    return None


def _stopped(home: Paths, before: DaemonRecord | None, pid: int | None, *, json: bool) -> None:
    """Wait for its end, and say it."""
    due = time.monotonic() + STOP_TIMEOUT_S
    while not _is_over(home, before):
        if time.monotonic() > due:
            kill = f"; as a last resort, `kill -9 {pid}` (no run is lost)"
            is_known = before is not None and before.is_here
            raise Unavailable(
                f"the daemon (pid {pid}) has not stopped yet",
                hint=f"run `subagents doctor`{kill if is_known else ''}",
            )
        time.sleep(STOP_POLL_S)
    if json:
        output.document({"stopped": True, "daemonPid": pid})
    else:
        output.line(f"The daemon (pid {pid}) stopped.")


def _is_over(home: Paths, before: DaemonRecord | None) -> bool:
    """Whether that daemon has let go of the home, and its process has ended where it was only a
    daemon: one inside another program goes on.
    """
    if answers(home.socket) or (before is not None and holder(home) == before):
        return False
    # The lock is let go of while the process is still ending: a restart must wait for that.
    last = daemon_record.read(home.lock_file)
    return last is None or not last.has_ended or not last.is_alive
