"""The TCP listener: who may call at all, checked before anything else of a call.

The Unix socket is guarded by the file system; a port is open to every program of the machine and,
through any page it shows, to a browser. So each request must name us as its host (a page that makes
a name of its own point here does not), come from no foreign page, and bring a token, or the cookie
of a login. There are no CORS headers: no page of another origin reads an answer.

Browsers send a cookie to every port of a host, and so to whatever another user runs on one. So a
cookie, and the code that is given for one, count only from a process of our own user; over TLS
those of a link count from anywhere, since they open no more than a viewer may see (``viewer``).
"""

import hmac
import os
import re
import secrets
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from subagents.api.calls.auth import CONNECTION, Connection, note_refusal, run_concerned
from subagents.api.calls.call import problem, status_of
from subagents.api.calls.login import Login, Role
from subagents.api.calls.services import Services
from subagents.config.settings import DaemonSettings
from subagents.domain.run.values import RunId
from subagents.errors import (
    ConfigError,
    Elsewhere,
    Forbidden,
    SubagentsError,
    Unauthorized,
)
from subagents.extensions.web.login_call import LoginCall
from subagents.extensions.web.login_routes import FAR, cookie_name
from subagents.extensions.web.logins import csrf_of, logins_of
from subagents.extensions.web.tcp_peer import PEER, TcpPeer
from subagents.extensions.web.viewer import may_see
from subagents.extensions.web.web_page import WebPage

FILE_NAME: Final = "operator.token"
TOKEN_BYTES: Final = 32
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
OTHERS: Final = 0o077
OPEN_PATHS: Final = frozenset({"/healthz"})
"""Answered without a token: whether somebody is there is no secret."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
"""Left out of ``Host`` and ``Origin`` by clients."""
MISDIRECTED: Final = 421
LOG_IN: Final = ("POST", "/v1/login")
LOG_OUT: Final = ("DELETE", "/v1/login")
OWN_LOGIN: Final = ("GET", "/v1/login")
READS: Final = frozenset({"GET", "HEAD"})
"""What changes nothing."""
OWN_SITES: Final = frozenset({"same-origin", "none"})
"""Values of ``Sec-Fetch-Site``; "none" is somebody who typed the address."""
CSRF_HEADER: Final = b"x-subagents-csrf"


class TcpGuard:
    """ASGI middleware around the daemon's application, for its TCP listener only.

    Args:
        app: The application.
        services: For workers' tokens, and to note who was turned away.
        settings: Host and port it listens on.
        operator_token: See ``operator_token``.
        page: What browsers are shown before they call; the same for everybody.
        certified: Names of hosts in the port's certificate.
    """

    def __init__(
        self,
        app: ASGIApp,
        services: Services,
        settings: DaemonSettings,
        operator_token: str,
        page: WebPage,
        *,
        certified: Collection[str] = (),
    ) -> None:
        self._app = app
        self._page = page
        self._services = services
        self._logins = logins_of(services)
        self._port = settings.http_port
        self._operator_token = operator_token.encode()
        self._hosts = own_names(settings, certified)
        self._origins = frozenset(f"{settings.http_scheme}://{each}" for each in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host, port = scope["client"] or ("", 0)
        connection = Connection(f"{host}:{port}", port=self._port)
        try:
            self._check_names(scope)
            if self._page.answers(scope):
                await self._page(scope, receive, send)
                return
            is_far = await self._admit(scope, connection)
        except SubagentsError as error:
            self._note(scope, connection, error)
            await _answer(error)(scope, receive, send)
            return
        state = {**scope.get("state", {}), CONNECTION: connection, FAR: is_far}
        known = {**scope, "state": state}
        if connection.login is None:
            await self._app(known, receive, send)
        else:
            call = LoginCall(self._logins, connection.login)
            await call(self._app, known, receive, send)

    def _check_names(self, scope: Scope) -> None:
        """Whether somebody means us, and is no page of somebody else.

        Raises:
            Forbidden: The host is not us (``guardrail`` "host"), or the page is foreign ("origin").
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

    async def _admit(self, scope: Scope, connection: Connection) -> bool:
        """Let the request in, or say why not.

        Returns:
            Whether it is a login that only a link's code makes.

        Raises:
            Forbidden: A login's call that is not its page's own, or not for its role.
            Unauthorized: No token and no cookie, or one that is not valid.
        """
        call = (scope["method"], scope["path"])
        if scope["path"] in OPEN_PATHS:
            return False
        if call == LOG_IN:
            _require_own_page(scope)
            return await self._is_far(scope)
        authorizations = _given(scope, b"authorization")
        cookie = None if authorizations else _cookie(scope, cookie_name(self._port))
        if cookie is not None:
            login = self._logins.use(cookie, is_far=await self._is_far(scope))
            connection.is_operator, connection.login = True, login
            connection.csrf = csrf_of(cookie)
            _check_login(scope, login, connection.csrf)
            return False
        token = _bearer(authorizations)
        if hmac.compare_digest(token.encode(), self._operator_token):
            connection.is_operator = True
            return False
        try:
            self._services.engine.identify(token)
        except Unauthorized as error:
            if not await self._is_elsewhere(run_concerned(error)):
                raise
            # Its owner says whether the token is good: nothing is answered here.
        return False

    async def _is_elsewhere(self, run_id: RunId | None) -> bool:
        """Whether another node decides about a run."""
        try:
            if run_id is not None:
                await self._services.engine.partitions.require_run(run_id)
        except Elsewhere:
            return True
        return False

    async def _is_far(self, scope: Scope) -> bool:
        """Whether the other end is no process of our user's, or of root's, but speaks TLS.

        Raises:
            Forbidden: It is none of theirs, and nothing is encrypted.
        """
        peer = scope.get("state", {}).get(PEER)
        if not isinstance(peer, TcpPeer):
            return False
        owner = await peer.owner(self._services.off_loop)
        is_far = owner not in {os.getuid(), 0}
        if is_far and scope["scheme"] != "https":
            who = "nobody knows whom" if owner is None else f"user {owner}"
            raise Forbidden(
                f"this connection belongs to {who}, and logins are for user {os.getuid()}",
                guardrail="user",
                hint="open the page as the user whose daemon this is, or forward it: ssh -L",
            )
        return is_far

    def _note(self, scope: Scope, connection: Connection, error: SubagentsError) -> None:
        if isinstance(error, Unauthorized) and self._only_asks(scope):
            return
        login = connection.login
        note_refusal(
            self._services,
            None,
            f"{scope['method']} {scope['path']}",
            error.message,
            peer=connection.peer,
            by="unknown" if login is None else f"the {login.role} {login.id}",
            run_id=run_concerned(error),
        )

    def _only_asks(self, scope: Scope) -> bool:
        """Whether it asks if it is logged in, as our page does when it opens, and tries nothing."""
        is_asking = (scope["method"], scope["path"]) == OWN_LOGIN
        brings = _given(scope, b"authorization") or _cookie(scope, cookie_name(self._port))
        return is_asking and not brings


def own_names(settings: DaemonSettings, certified: Collection[str] = ()) -> frozenset[str]:
    """What a client may call us in ``Host``, in lower case.

    Args:
        settings: Where we listen.
        certified: Names of hosts in our certificate, IPv6 addresses in brackets.
    """
    host = settings.http_host.lower()
    configured = f"[{host}]" if ":" in host else host
    hosts = {"127.0.0.1", "localhost", "[::1]", configured, *certified}
    names = {f"{host}:{settings.http_port}" for host in hosts}
    is_default = settings.http_port == DEFAULT_PORTS[settings.http_scheme]
    return frozenset(names | hosts if is_default else names)


def _require_own_page(scope: Scope) -> None:
    """Raises ``Forbidden`` unless a page of ours, which browsers always name, makes this call."""
    if not _given(scope, b"origin"):
        raise Forbidden("only our own page may do this, and names its Origin", guardrail="origin")


def _check_login(scope: Scope, login: Login, csrf: str) -> None:
    """Whether a call with a cookie is one of our page's, and one that its user may make.

    Raises:
        Forbidden: It is neither.
    """
    sites = _given(scope, b"sec-fetch-site")
    if sites and sites[0] not in OWN_SITES:
        raise Forbidden(f"a page that is {_shown(sites)} may not call here", guardrail="origin")
    if scope["method"] in READS:
        if login.role is not Role.OPERATOR and not may_see(scope):
            raise Forbidden(f"a {login.role} sees runs, and nothing else here", guardrail="role")
        return
    _require_own_page(scope)
    given = _given(scope, CSRF_HEADER)
    if len(given) != 1 or not hmac.compare_digest(given[0].encode(), csrf.encode()):
        raise Forbidden(
            "a write with a cookie needs X-Subagents-CSRF as GET /v1/login gives it",
            guardrail="csrf",
        )
    if login.role is not Role.OPERATOR and (scope["method"], scope["path"]) != LOG_OUT:
        raise Forbidden(f"a {login.role} may look, and change nothing", guardrail="role")


def _cookie(scope: Scope, name: str) -> str | None:
    for header in _given(scope, b"cookie"):
        for each in header.split(";"):
            key, _, value = each.strip().partition("=")
            if key == name:
                return value
    return None


def _given(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def _shown(values: list[str]) -> str:
    text = " and ".join(values)[:100]
    return text.encode("unicode_escape").decode() if text else "a host without a name"


def _bearer(given: list[str]) -> str:
    hint = (
        f"send Authorization: Bearer <the content of {FILE_NAME} in the state directory>;"
        " a browser logs in: subagents ui"
    )
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
