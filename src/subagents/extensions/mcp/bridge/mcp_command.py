"""``subagents mcp``: what MCP clients start to speak to the daemon over stdin and stdout."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final
from urllib.parse import quote

from subagents.cli.connection import session_of
from subagents.client.daemon_start import ensure_daemon
from subagents.config.paths import Paths, session_name
from subagents.domain.run.shell_variables import STARTED_BY
from subagents.errors import EXIT_OK, UsageError
from subagents.extensions.mcp.bridge.bridge import Bridge, Input
from subagents.extensions.mcp.bridge.caller_limits import Limits, host_program, limits_of
from subagents.extensions.mcp.bridge.daemon_link import Daemon, say
from subagents.extensions.mcp.bridge.handshake import (
    PROJECT_VARIABLE,
    Handshake,
    place_of,
    project_files,
)
from subagents.extensions.mcp.bridge.worker_above import worker_variables

HOOK_VARIABLE: Final = "SUBAGENTS_HOOKED"
"""Set by the Claude Code plugin, which brings our hooks along with the server."""


def mcp(
    arguments: Sequence[str], lines: Input | None = None, handshake: Handshake | None = None
) -> int:
    """Serve MCP on stdin and stdout. MCP clients such as Claude Code and Codex start this.

    Starts the daemon if none is running and reconnects after a restart. Without ``--session``, the
    session is named after the project directory, so that a restarted client finds its inbox again.
    Inside a worker, it acts for that worker's run.

    For example:

        subagents mcp

        subagents mcp --session review

    Args:
        arguments: ``--session NAME``, and ``--ceiling read|write|full``: the most that workers of
            this client may do, whatever it may do itself.
        lines: Of the client, some of them read already; None = stdin.
        handshake: Answers what clients ask while they connect; None = the daemon does.
    """
    options = _options(arguments)
    limits = limits_of(os.environ, options.get("--ceiling"))
    if sys.stdin.isatty():
        say("waiting for an MCP client on stdin; `subagents mcp config` prints how to set one up")
    daemon = daemon_of(os.environ, options.get("--session"), limits)
    # Clients end their servers with either; both mean "done", also where SIGINT came in ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    bridge = Bridge(
        daemon,
        stdin=sys.stdin.buffer if lines is None else lines,
        stdout=sys.stdout.fileno(),
        handshake=handshake,
    )
    if handshake is not None:
        paths, project = Paths.resolve(os.environ), _project_of(os.environ)
        files = [str(paths.config_file), str(paths.trusted_file), *project_files(project)]
        bridge.check_handshake(files, place_of(arguments, project))
    return bridge.run()


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(EXIT_OK)


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """The options given; read without a parser, which would double the time to start.

    Raises:
        UsageError: Anything else was given.
    """
    hint = "subagents mcp [--session NAME] [--ceiling read|write|full]"
    names = {"--session": "a name", "--ceiling": "read, write or full"}
    found: dict[str, str] = {}
    left = list(arguments)
    while left:
        option, equals, value = left.pop(0).partition("=")
        if option not in names:
            raise UsageError(f"unknown argument {option!r}", hint=hint)
        if not equals:
            if not left:
                text = f"{option} needs {names[option]}"
                raise UsageError(text, hint=hint, details={"field": option})
            value = left.pop(0)
        found[option] = value
    return found


def daemon_of(environ: Mapping[str, str], wanted: str | None, limits: Limits = dict) -> Daemon:
    """The daemon to speak to, and in whose name.

    Args:
        environ: A worker's has SUBAGENTS_SOCKET, SUBAGENTS_SESSION_KEY and SUBAGENTS_TOKEN; where
            its program started us without them, they are looked for above us.
        wanted: A session's name or whole key; None = that of the project directory.
        limits: Says what its program may do itself; a worker's run says that of a worker.

    Raises:
        UsageError: The name cannot be one.
        ConfigError: The home cannot be found.
    """
    project = _project_of(environ)
    headers = {
        "x-subagents-caller": "agent",
        "x-subagents-cwd": quote(os.fsencode(os.path.realpath(project))),
    }
    if environ.get(HOOK_VARIABLE):
        headers["x-subagents-wake"] = "hook"
    # Its own variables count first: those above us are a worker's in which another may run.
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
        host = host_program()
        started_by = {} if host is None else {STARTED_BY: host}
        if ensure_daemon(paths, {**os.environ, **started_by}):
            say("started the daemon")

    return Daemon(str(paths.socket), headers, start, limits)


def _project_of(environ: Mapping[str, str]) -> str:
    return environ.get(PROJECT_VARIABLE) or os.getcwd()  # noqa: PTH109  pathlib costs time here
