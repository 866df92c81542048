"""The TCP listener: who may call at all, checked before anything else of a call.

The Unix socket is guarded by the file system; a port is open to every program of the machine and,
through any page it shows, to a browser. So each request must name us as its host (a page that makes
a name of its own point here does not), come from no foreign page, and bring a token. There are no
CORS headers: no page of another origin reads an answer.
"""

import contextlib
import hmac
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from subagents.api.calls.auth import CONNECTION, Connection, note_refusal, run_concerned
from subagents.api.calls.call import problem, status_of
from subagents.api.calls.services import Services
from subagents.config.settings import DaemonSettings
from subagents.errors import (
    ConfigError,
    Forbidden,
    SubagentsError,
    Unauthorized,
)

FILE_NAME: Final = "operator.token"
TOKEN_BYTES: Final = 32
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
OTHERS: Final = 0o077
OPEN_PATHS: Final = frozenset({"/healthz"})
"""Answered without a token: whether somebody is there is no secret."""
HTTP_PORT: Final = 80
"""Left out of ``Host`` and ``Origin`` by clients."""
MISDIRECTED: Final = 421


class TcpGuard:
    """ASGI middleware around the daemon's application, for its TCP listener only.

    Args:
        app: The application.
        services: For workers' tokens, and to note who was turned away.
        settings: Host and port it listens on.
        operator_token: See ``operator_token``.
    """

    def __init__(
        self, app: ASGIApp, services: Services, settings: DaemonSettings, operator_token: str
    ) -> None:
        self._app = app
        self._services = services
        self._operator_token = operator_token.encode()
        self._hosts = own_names(settings)
        self._origins = frozenset(f"http://{each}" for each in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host, port = scope["client"] or ("", 0)
        connection = Connection(f"{host}:{port}")
        try:
            self._check(scope, connection)
        except SubagentsError as error:
            self._note(scope, connection, error)
            await _answer(error)(scope, receive, send)
            return
        state = {**scope.get("state", {}), CONNECTION: connection}
        await self._app({**scope, "state": state}, receive, send)

    def _check(self, scope: Scope, connection: Connection) -> None:
        """Let the request in, or say why not.

        Raises:
            Forbidden: The host is not us (``guardrail`` "host"), or the page is foreign ("origin").
            Unauthorized: No token, or one that is not valid.
        """
        hosts = _given(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            raise Forbidden(
                f"this is not {_shown(hosts)}; it is known as {known}", guardrail="host"
            )
        origins = _given(scope, b"origin")
        if origins and (len(origins) != 1 or origins[0].lower() not in self._origins):
            raise Forbidden(f"pages of {_shown(origins)} may not call here", guardrail="origin")
        if scope["path"] in OPEN_PATHS:
            return
        token = _bearer(_given(scope, b"authorization"))
        if hmac.compare_digest(token.encode(), self._operator_token):
            connection.is_operator = True
            return
        self._services.engine.identify(token)

    def _note(self, scope: Scope, connection: Connection, error: SubagentsError) -> None:
        call = f"{scope['method']} {scope['path']}"
        note_refusal(
            self._services,
            None,
            call,
            error.message,
            peer=connection.peer,
            run_id=run_concerned(error),
        )


def own_names(settings: DaemonSettings) -> frozenset[str]:
    """What a client may call us in ``Host``, in lower case."""
    configured = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
    hosts = {"127.0.0.1", "localhost", "[::1]", configured}
    names = {f"{host}:{settings.http_port}" for host in hosts}
    return frozenset(names | hosts if settings.http_port == HTTP_PORT else names)


def _given(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def _shown(values: list[str]) -> str:
    text = " and ".join(values)[:100]
    return text.encode("unicode_escape").decode() if text else "a host without a name"


def _bearer(given: list[str]) -> str:
    hint = f"send Authorization: Bearer <the content of {FILE_NAME} in the state directory>"
    if not given:
        raise Unauthorized("calls over TCP need a token", hint=hint)
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("Authorization must be: Bearer <token>", hint=hint)
    return token.strip()


def _answer(error: SubagentsError) -> Response:
    is_misdirected = isinstance(error, Forbidden) and error.guardrail == "host"
    status = MISDIRECTED if is_misdirected else status_of(error)
    return problem({**error.to_wire(), "status": status}, status)


# -- the operator's token -----------------------------------------------------------------------


def operator_token(state_dir: Path) -> str:
    """The token that makes a client on TCP the operator's; made when there is none yet.

    Args:
        state_dir: Holds ``operator.token``, mode 0600. Whoever can read it is the operator.

    Raises:
        ConfigError: The file is open to others, belongs to another user, or holds something else.
    """
    file = state_dir / FILE_NAME
    try:
        return _read_token(file)
    except FileNotFoundError:
        _write_token(file)
        return _read_token(file)


def _read_token(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as opened:
        found = os.fstat(opened.fileno())
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & OTHERS:
            raise ConfigError(
                f"{file} is open to others: its token is no secret any more",
                hint=f"delete it; the next daemon makes a new one: rm {file}",
            )
        token = opened.read(1024).strip()
    if not TOKEN.fullmatch(token):
        raise ConfigError(
            f"{file} does not hold a token of 43 url-safe characters",
            hint=f"delete it; the next daemon makes a new one: rm {file}",
        )
    return token


def _write_token(file: Path) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="ascii") as opened:
        opened.write(f"{secrets.token_urlsafe(TOKEN_BYTES)}\n")
    draft.replace(file)


# -- the listener -------------------------------------------------------------------------------


@contextlib.contextmanager
def bound(settings: DaemonSettings) -> Iterator[socket.socket]:
    """A socket at the configured address; it does not listen yet.

    Raises:
        ConfigError: The port is taken, or not for us.
    """
    family = socket.AF_INET6 if ":" in settings.http_host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        # The connections of a daemon that was killed must not keep the next one from the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.http_host, settings.http_port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {settings.http_url}: {error.strerror or error}",
                hint="choose another daemon.http_port, or 0 for none",
            ) from error
        listener.setblocking(False)
        yield listener
