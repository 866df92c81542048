"""Who makes a call.

A worker proves with its token which attempt it belongs to, and is held to its own subtree. Over TCP
a client proves with the operator's token, or a browser with its login's cookie, that it may call at
all (``tcp``). On the Unix socket the operating system has let in only the user who owns the daemon:
a top-level session named in a header distinguishes callers, it does not keep them out.
"""

import errno
import os
import re
import select
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Scope

from subagents.api.calls.login import Login
from subagents.api.calls.refusals import Refusal, is_refusal
from subagents.api.calls.services import Services, services_of
from subagents.config.settings import Settings
from subagents.domain.redaction.redact import redact
from subagents.domain.run.access import AccessLevel, Ceiling
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import SubagentsError, Unauthorized, Unavailable, UsageError
from subagents.ports import TOKEN_VARIABLE, Origin

DEFAULT_SESSION: Final = "agent:main:main"
SESSION: Final = re.compile(r"agent:[a-z0-9][a-z0-9_-]{0,63}:[!-~]{1,200}")
READER: Final = re.compile(r"[!-~]{1,200}")
CWD_BYTES_MAX: Final = 4096
CONNECTION: Final = "connection"
"""The name under which a request's state holds its ``Connection``."""
MCP_PATH: Final = "/mcp"
A2A_PATH: Final = "/a2a"
TEXT_CHARS_MAX: Final = 400
# Linux has it since 6.5; the socket module has no name for it yet.
_SO_PEERPIDFD: Final = 77
_PEER: Final = struct.Struct("3i")
"""``struct ucred``: pid, uid, gid."""


@dataclass(slots=True)
class Connection:
    """The other end of one connection, as the operating system and the listener know it."""

    peer: str
    """``pid 4711`` on the Unix socket, ``127.0.0.1:40112`` on TCP."""
    pid: int | None = None
    """The process that connected, where the system says so."""
    end: socket.socket | None = None
    """Our end of the Unix socket, where ``pid`` is known."""
    is_operator: bool = False
    """This request came over TCP with the operator's token, or from a browser that is logged in."""
    port: int | None = None
    """Our port on TCP."""
    login: Login | None = None
    """The login of the browser that made this request over TCP. What a viewer may not, the listener
    refuses."""
    csrf: str | None = None
    """What the page of this login sends along with its writes."""
    _origin: Origin | None = None
    _has_looked: bool = False

    def origin(self, origin_of: Callable[[int], Origin | None]) -> Origin | None:
        """The attempt whose worker is at the other end; looked up once.

        Raises:
            OSError: It cannot be known: whoever connected is gone, or we could not look.
        """
        if not self._has_looked and self.pid is not None:
            self._origin = origin_of(self.pid)
            # Only of a process that is still there it is sure that the id was not another one's.
            if self._origin is None and self.end is not None and _has_ended(self.end):
                raise ProcessLookupError(errno.ESRCH, f"process {self.pid} has ended")
            self._has_looked = True
        return self._origin

    @classmethod
    def on(cls, end: socket.socket) -> Self:
        """Of a client of the Unix socket."""
        # 0: it lives in another pid namespace.
        pid = _peer(end)[0] or None if sys.platform == "linux" else None
        return cls("") if pid is None else cls(f"pid {pid}", pid, end)


NOWHERE: Final = Connection("")


def connection_of(scope: Scope) -> Connection:
    """The connection that a request came over; without a server of ours, one that says nothing."""
    found = scope.get("state", {}).get(CONNECTION)
    return found if isinstance(found, Connection) else NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a call."""

    session: SessionKey
    reader: str
    """Names the client process: offers of the inbox are made to it."""
    is_operator: bool
    """A person's own client: no worker, and none that says it speaks for an agent."""
    run_id: RunId | None = None
    """The run on whose behalf a worker speaks; None = it is no worker."""
    attempt: int | None = None
    """The attempt that a worker belongs to, 1 for the first."""
    cwd: str | None = None
    """The directory its client works in; absolute."""
    peer: str = ""
    """The process or address it calls from; see ``Connection``."""
    ceiling: Ceiling | None = None
    """The most that the runs it spawns may do, as its client said; None = a person, a worker (whose
    run has its own), or a client whose limits are unknown."""

    @property
    def is_worker(self) -> bool:
        """Whether a token proved for which run it speaks."""
        return self.run_id is not None

    @classmethod
    def of(cls, request: Request) -> "Caller":
        """Make out who calls.

        A token in ``Authorization: Bearer`` says which worker it is, whatever the other headers
        say. Without one the caller is the top-level session in ``X-Subagents-Session``, with an
        operator's rights unless ``X-Subagents-Caller: agent``, ``/mcp`` or ``/a2a`` shows that an
        agent drives it. ``X-Subagents-Reader`` and ``X-Subagents-Cwd`` say more of the client.

        Raises:
            UsageError: A header is malformed.
            Unauthorized: The token is not valid, or a worker presents none.
            Unavailable: It cannot be made out now.
        """
        services = services_of(request)
        connection = connection_of(request.scope)
        session, reader = _session_and_reader(request)
        cwd = _cwd_of(request)
        # The listener has checked the operator's token already: it is no worker's.
        token = None if connection.is_operator else _bearer_of(request)
        if token is not None:
            known = services.engine.identify(token)
            caller = cls(
                session=known.session_key,
                reader=reader or known.session_key,
                is_operator=False,
                run_id=known.run_id,
                attempt=known.attempt,
                cwd=cwd,
                peer=connection.peer,
            )
        else:
            refuse_worker_without_token(services, session, connection)
            agent = (
                request.headers.get("x-subagents-caller") == "agent"
                # These speak protocols of agents.
                or _is_below(request, MCP_PATH)
                or _is_below(request, A2A_PATH)
            )
            caller = cls(
                session=session,
                reader=reader or session,
                is_operator=not agent,
                cwd=cwd,
                peer=connection.peer,
                ceiling=_ceiling_of(request, cwd),
            )
        request.scope["caller"] = caller  # for ``note_if_refused``, should the call fail
        return caller

    def context(self, settings: Settings, cwd: str = "") -> SpawnContext:
        """What the runs that it spawns go by; ``cwd`` is for those that name no directory."""
        return SpawnContext(
            session=self.session,
            settings=settings,
            cwd=cwd,
            is_operator=self.is_operator,
            ceiling=self.ceiling,
        )


def _session_and_reader(request: Request) -> tuple[SessionKey, str | None]:
    """The session as the client names it, and its reader.

    Raises:
        UsageError: One is malformed.
    """
    session = request.headers.get("x-subagents-session", _default_session(request))
    if not SESSION.fullmatch(session):
        raise UsageError(
            "X-Subagents-Session must be a session key such as agent:main:main",
            details={"field": "X-Subagents-Session"},
        )
    reader = request.headers.get("x-subagents-reader")
    if reader is not None and not READER.fullmatch(reader):
        raise UsageError(
            "X-Subagents-Reader must be 1 to 200 printable characters",
            details={"field": "X-Subagents-Reader"},
        )
    return SessionKey(session), reader


def _cwd_of(request: Request) -> str | None:
    """The client's directory, percent-encoded in its header.

    Raises:
        UsageError: Not an absolute path in UTF-8.
    """
    given = request.headers.get("x-subagents-cwd")
    if given is None:
        return None
    try:
        cwd = unquote(given, errors="strict")
        is_path = cwd.startswith("/") and "\0" not in cwd and len(cwd.encode()) <= CWD_BYTES_MAX
    except UnicodeError:
        is_path = False
    if not is_path:
        raise UsageError(
            "X-Subagents-Cwd must be an absolute path, percent-encoded UTF-8,"
            f" of at most {CWD_BYTES_MAX} bytes",
            details={"field": "X-Subagents-Cwd"},
        )
    return cwd


def _ceiling_of(request: Request, cwd: str | None) -> Ceiling | None:
    """The client's own limits as its header has them: ``LEVEL`` or ``LEVEL; their source``.

    Raises:
        UsageError: No such level.
    """
    given = request.headers.get("x-subagents-ceiling")
    if given is None:
        return None
    word, _, source = given.partition(";")
    level = word.strip().lower()
    if level not in {*AccessLevel} or len(given) > TEXT_CHARS_MAX:
        raise UsageError(
            "X-Subagents-Ceiling must be read, write or full, and after a semicolon who says so",
            details={"field": "X-Subagents-Ceiling"},
        )
    # Clients that may write may do so in their own directory; nothing else is known of them.
    below = cwd if level == AccessLevel.WRITE else None
    return Ceiling(level=AccessLevel(level), source=source.strip() or "the caller", below=below)


def _bearer_of(request: Request) -> str | None:
    """The token of the call, None without one.

    Raises:
        Unauthorized: Some other kind of credentials.
    """
    given = request.headers.getlist("authorization")
    if not given:
        return None
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(
            "Authorization must be: Bearer <token>",
            hint=f"a worker sends the token in its {TOKEN_VARIABLE}",
        )
    return token.strip()


def refuse_worker_without_token(
    services: Services, session: SessionKey, connection: Connection
) -> None:
    """A name in a header is no proof, and to leave the token out is no way to more rights.

    Raises:
        Unauthorized: The session is a worker's, or the process at the other end is.
        Unavailable: No descriptor is left to look at that process.
    """
    hint = f"send the token in {TOKEN_VARIABLE} as Authorization: Bearer <token>"
    if session.split(":", 2)[2].startswith("subagent:"):
        raise Unauthorized(
            f"{session} is a worker's session, and the call has no token",
            hint=hint,
            details={"runId": services.engine.queries.run_of(session)},
        )
    try:
        origin = connection.origin(services.origin_of)
    except OSError as error:
        raise Unavailable(f"cannot look who calls: {error}", hint="call again") from error
    if origin is None:
        return
    run_id = RunId(origin.attempt_id.rpartition("#")[0])
    run = services.engine.queries.open_run(run_id)
    # A process that a worker left behind speaks for nobody. A variable proves less than a cgroup:
    # a person's shell may have inherited it, so it counts only while the run goes on.
    if origin.is_certain or (run is not None and not run.is_settled):
        raise Unauthorized(
            f"process {connection.pid} belongs to the worker {origin.attempt_id}, and the call has"
            " no token",
            hint=hint,
            details={"runId": run_id},
        )


def _default_session(request: Request) -> str:
    """A2A clients call as the agent that is offered to them: they may start that one alone."""
    if not _is_below(request, A2A_PATH):
        return DEFAULT_SESSION
    agent_id = request.scope["path"].removeprefix(f"{A2A_PATH}/").partition("/")[0]
    return f"agent:{agent_id}:a2a"


def _is_below(request: Request, prefix: str) -> bool:
    path: str = request.scope["path"]
    return path == prefix or path.startswith(f"{prefix}/")


# -- the other end of a connection --------------------------------------------------------------


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, None where the system does not say."""
    return None if sys.platform != "linux" else _peer(connection)[1]


def _has_ended(connection: socket.socket) -> bool:
    """Whether the process that connected is gone; False where the kernel does not say."""
    try:
        descriptor = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        # Some have none to give of a process that is gone; before Linux 6.5 there is no such thing.
        return error.errno in {errno.ESRCH, errno.EINVAL}
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(descriptor)


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid, uid, gid = _PEER.unpack(raw)
    return int(pid), int(uid), int(gid)


# -- who was turned away ------------------------------------------------------------------------


def note_refusal(
    services: Services,
    caller: Caller | None,
    call: str,
    reason: str,
    *,
    peer: str = "",
    by: str = "unknown",
    run_id: RunId | None = None,
) -> None:
    """Remember that ``call`` was refused; returns at once and never fails.

    Args:
        services: The daemon's.
        caller: Who called, None when that could not be made out.
        call: What was asked for: ``POST /v1/runs``, or a tool's name. No query, no body.
        reason: The message of the refusal.
        peer: The other end of the connection, when ``caller`` does not say.
        by: Who called, when ``caller`` does not say.
        run_id: The run concerned, when ``caller`` is none of its workers.
    """
    # Whoever is refused chose the path, the host and the names: a token may stand in them.
    services.refusals.add(
        Refusal(
            at_ms=services.now_ms(),
            call=_shown(call),
            reason=_shown(reason),
            by=caller.session if caller is not None else by,
            peer=caller.peer if caller is not None else peer,
            run_id=caller.run_id if caller is not None and caller.run_id else run_id,
        )
    )


def _shown(text: str) -> str:
    # Cut twice: what is refused must not be much work.
    return redact(text[: 4 * TEXT_CHARS_MAX])[:TEXT_CHARS_MAX]


def note_if_refused(request: Request, error: SubagentsError) -> None:
    """As ``note_refusal``, for a request that failed; failures of other kinds are not noted."""
    if not is_refusal(error):
        return
    caller: Caller | None = request.scope.get("caller")
    note_refusal(
        services_of(request),
        caller,
        f"{request.method} {request.scope['path']}",
        error.message,
        peer=connection_of(request.scope).peer,
        run_id=run_concerned(error),
    )


def run_concerned(error: SubagentsError) -> RunId | None:
    """The run that a refused token or session names, genuine or not."""
    found = error.details.get("runId")
    return RunId(found) if isinstance(found, str) else None
