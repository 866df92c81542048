"""Logging browsers in and out: codes, cookies, and the list of who is logged in.

A code comes over the Unix socket into the hands of the user and from there, behind the ``#`` of an
address, into the page, which gives it for a cookie. The operator's token goes into no browser.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller, connection_of
from subagents.api.calls.call import answer, body_of, path_part, query_of, require_operator
from subagents.api.calls.login import Login, Role
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of
from subagents.api.wire.wire_struct import made
from subagents.errors import NotFound, UsageError
from subagents.extensions.web.login_answers import LoginCode, LoginList, LoginRow, OwnLogin
from subagents.extensions.web.logins import CODE_MS, csrf_of, ends_ms, logins_of
from subagents.text import iso, parse_duration

FAR: Final = "is_far"
"""The name in a request's state of: over TLS, and from no process of the user's, as far as we see.
Then only links log in."""
CODE_BODY_BYTES_MAX: Final = 1024
COOKIE_S: Final = 30 * 24 * 3600
"""A cookie may be kept so long; when the login is over is not for the browser to say."""


class CodeBody(wire.Body, frozen=True):
    """What the login that a code is for may do."""

    role: str = Role.OPERATOR
    valid_for: str | None = None
    """A duration, such as `24h`, at most `7d`: the code is a link, which one viewer's browser opens
    at any time until then. Unset = a code for a minute."""


class LoginBody(wire.Body, frozen=True):
    """The code that a page found behind the ``#`` of its address."""

    code: str


async def make_code(request: Request) -> Response:
    """POST /v1/login/codes: what opens the page in a browser, once.

    Within a minute, on connections of the user's own processes; or as a link for a viewer, over
    TLS from any machine. Opens a TCP port on loopback when there is none yet.
    """
    services, caller = services_of(request), Caller.of(request)
    require_operator(caller, "logging a browser in")
    body = wire.parse_body(await body_of(request), CodeBody)
    role = Role(one_of("role", body.role, [*Role]))
    if body.valid_for is not None and role is not Role.VIEWER:
        raise UsageError("a link is for a viewer", details={"field": "role"})
    url, login_id = await services.tcp.open(), None
    if body.valid_for is None:
        code, until_ms = logins_of(services).code(role), services.now_ms() + CODE_MS
    else:
        for_ms = parse_duration(body.valid_for, field="validFor")
        port = urlsplit(url).port or 0
        code, link = await logins_of(services).link(port=port, for_ms=for_ms)
        login_id, until_ms = link.id, ends_ms(link)
    found = LoginCode(
        url=f"{url}/#k={code}", role=role, expires_at=iso(until_ms), login_id=login_id
    )
    return answer(found, status=201)


async def log_in(request: Request) -> Response:
    """POST /v1/login: a code for a cookie; over TCP, from our own page."""
    services, connection = services_of(request), connection_of(request.scope)
    body = wire.parse_body(await body_of(request, bytes_max=CODE_BODY_BYTES_MAX), LoginBody)
    if connection.port is None:
        raise UsageError("a browser logs in over the TCP port", hint="open it: subagents ui")
    browser = request.headers.get("user-agent", "unknown")
    is_far = bool(request.scope["state"].get(FAR))
    token, login = await logins_of(services).take(
        body.code, port=connection.port, browser=browser, is_far=is_far
    )
    left_s = COOKIE_S
    if login.until_ms is not None:
        left_s = max(login.until_ms - services.now_ms(), 0) // 1000
    answered = answer(_own(login, csrf_of(token)))
    answered.set_cookie(
        cookie_name(connection.port),
        token,
        max_age=left_s,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answered


async def own_login(request: Request) -> Response:
    """GET /v1/login: with what rights this call is made, and what its writes must bring."""
    require_operator(Caller.of(request), "a login")
    query_of(request, ())
    connection = connection_of(request.scope)
    return answer(_own(connection.login, connection.csrf))


async def log_out(request: Request) -> Response:
    """DELETE /v1/login: the login that this call was made with is over."""
    require_operator(Caller.of(request), "a login")
    connection = connection_of(request.scope)
    if connection.login is None or connection.port is None:
        raise NotFound("this call was made without a login", hint="see: subagents ui --sessions")
    login = await logins_of(services_of(request)).revoke(connection.login.id)
    answered = answer(_row(login, own=login))
    answered.delete_cookie(cookie_name(connection.port), path="/", httponly=True, samesite="strict")
    return answered


async def list_logins(request: Request) -> Response:
    """GET /v1/logins: every browser that is logged in, and every link."""
    require_operator(Caller.of(request), "the list of logins")
    query_of(request, ())
    own = connection_of(request.scope).login
    found = logins_of(services_of(request))
    rows = [_row(each, own) for each in found.all()]
    return answer(LoginList(logins=rows, has_links=found.has_links))


async def revoke(request: Request) -> Response:
    """DELETE /v1/logins/{login}: it is over at once, with all that its page has open."""
    require_operator(Caller.of(request), "revoking a login")
    own = connection_of(request.scope).login
    login = await logins_of(services_of(request)).revoke(path_part(request, "login"))
    return answer(_row(login, own))


def cookie_name(port: int) -> str:
    """The name of our cookie: browsers send cookies to every port of a host."""
    return f"subagents-{port}"


def _own(login: Login | None, csrf: str | None) -> OwnLogin:
    if login is None:
        return OwnLogin()
    return OwnLogin(login_id=login.id, role=login.role, csrf=csrf)


def _row(login: Login, own: Login | None) -> LoginRow:
    is_own = own is not None and login.id == own.id
    return made(
        LoginRow,
        login,
        login_id=login.id,
        is_own=is_own,
        is_link=login.until_ms is not None,
        ends_at=iso(ends_ms(login)),
    )


OPERATIONS: Final = {
    ("POST", "/v1/login"): Operation(log_in, body=LoginBody, answers=(OwnLogin,)),
    ("GET", "/v1/login"): Operation(own_login, answers=(OwnLogin,)),
    ("DELETE", "/v1/login"): Operation(log_out, answers=(LoginRow,)),
    ("POST", "/v1/login/codes"): Operation(
        make_code, body=CodeBody, status=201, answers=(LoginCode,)
    ),
    ("GET", "/v1/logins"): Operation(list_logins, answers=(LoginList,)),
    ("DELETE", "/v1/logins/{login}"): Operation(revoke, answers=(LoginRow,)),
}
ROUTES: Final = routes(OPERATIONS)
PATH_WORDS: Final = {"login": "A login: `loginId` in `GET /v1/logins`."}
