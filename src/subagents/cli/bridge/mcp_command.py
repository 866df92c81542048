"""``subagents mcp``: what MCP clients start to speak to the daemon over stdin and stdout."""

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final
from urllib.parse import quote

from subagents.cli.bridge.bridge import Bridge, Daemon, say
from subagents.client.daemon_start import ensure_daemon
from subagents.config.paths import Paths, session_name
from subagents.errors import EXIT_OK, UsageError

PROJECT_VARIABLE: Final = "CLAUDE_PROJECT_DIR"
"""Set by Claude Code for the servers it starts; others start them in the project."""
TOKEN: Final = "SUBAGENTS_TOKEN"  # noqa: S105 - its name
NAMES: Final = ("SUBAGENTS_SOCKET", "SUBAGENTS_SESSION_KEY", TOKEN)
ANCESTORS_MAX: Final = 32
_NAME: Final = re.compile(r"[!-~]{1,200}")
_KEY: Final = re.compile(r"agent:[a-z0-9][a-z0-9_-]{0,63}:[!-~]{1,200}")


def mcp(*arguments: str) -> int:
    """Serve MCP on stdin and stdout. MCP clients such as Claude Code and Codex start this.

    Starts the daemon if none is running and reconnects after a restart. Without ``--session``, the
    session is named after the project directory, so that a restarted client finds its inbox again.
    Inside a worker, it acts for that worker's run.

    For example:
        subagents mcp
        subagents mcp --session review

    Args:
        arguments: ``--session NAME``, or nothing.
    """
    wanted = _session_argument(arguments)
    if sys.stdin.isatty():
        say("waiting for an MCP client on stdin; `subagents mcp config` prints how to set one up")
    daemon = daemon_of(os.environ, wanted)
    # Clients end their servers with either; both mean "done", also where SIGINT came in ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    return Bridge(daemon, stdin=sys.stdin.buffer, stdout=sys.stdout.fileno()).run()


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(EXIT_OK)


def _session_argument(arguments: Sequence[str]) -> str | None:
    """The value of ``--session``; read without a parser, which would double the time to start.

    Raises:
        UsageError: Anything else was given.
    """
    hint = "subagents mcp [--session NAME]"
    match arguments:
        case ():
            return None
        case ("--session", name):
            return name
        case (option,) if option.startswith("--session="):
            return option.partition("=")[2]
        case ("--session",):
            raise UsageError("--session needs a name", hint=hint, details={"field": "--session"})
        case _:
            raise UsageError(f"unknown argument {arguments[0]!r}", hint=hint)


def daemon_of(environ: Mapping[str, str], wanted: str | None) -> Daemon:
    """The daemon to speak to, and in whose name.

    Args:
        environ: A worker's has SUBAGENTS_SOCKET, SUBAGENTS_SESSION_KEY and SUBAGENTS_TOKEN; where
            its program started us without them, they are looked for above us.
        wanted: A session's name or whole key; None = that of the project directory.

    Raises:
        UsageError: The name cannot be one.
        ConfigError: The home cannot be found.
    """
    project = environ.get(PROJECT_VARIABLE) or os.getcwd()  # noqa: PTH109  pathlib costs time here
    headers = {
        "x-subagents-caller": "agent",
        "x-subagents-cwd": quote(os.path.realpath(project)),
    }
    environ = {**worker_variables(environ), **environ}
    socket_path = environ.get("SUBAGENTS_SOCKET")
    if socket_path:
        headers["x-subagents-session"] = environ.get("SUBAGENTS_SESSION_KEY") or session_of(wanted)
        if token := environ.get("SUBAGENTS_TOKEN"):
            headers["authorization"] = f"Bearer {token}"
        return Daemon(socket_path, headers, start=None)
    headers["x-subagents-session"] = session_of(wanted or session_name(project))
    paths = Paths.resolve(environ)

    def start() -> None:
        if ensure_daemon(paths):
            say("started the daemon")

    return Daemon(str(paths.socket), headers, start)


def session_of(name: str | None) -> str:
    """The key of a named session; a whole key stays as it is.

    Raises:
        UsageError: It is empty, too long, or has spaces or other than printable ASCII characters.
    """
    found = "main" if name is None else name
    if _KEY.fullmatch(found):
        return found
    if not _NAME.fullmatch(found) or found.startswith("agent:"):
        raise UsageError(
            f"--session must be 1 to 200 printable characters without spaces, not {found[:80]!r}",
            details={"field": "--session"},
        )
    return f"agent:main:{found}"


def worker_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """``NAMES`` as the nearest process above us has them; empty when we have them ourselves.

    Agent programs start their tool servers with a few harmless variables only. A token in an
    argument or a file would lie about where others can read it; in the environment of the worker,
    which is above us, it is already. Linux only: elsewhere ``/proc`` is missing.

    Returns:
        Nothing, too, when nobody above us is a worker, or may not be read.
    """
    if environ.get(TOKEN):
        return {}
    pid = os.getppid()
    for _ in range(ANCESTORS_MAX):
        if pid <= 1:
            break
        found = _variables(pid)
        if TOKEN in found:
            return found
        pid = _parent(pid)
    return {}


def _variables(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            pairs = (os.fsdecode(each).partition("=") for each in file.read().split(b"\0"))
            return {name: value for name, _, value in pairs if name in NAMES}
    except OSError:
        return {}


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            # The name in parentheses may hold anything, also ") ".
            return int(file.read().rpartition(b") ")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
