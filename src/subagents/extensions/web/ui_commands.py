"""``ui``: the web page, and the browsers that are logged in."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit

from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter, chosen, refusal, refuse_unused
from subagents.client.client import Document, segment
from subagents.errors import EXIT_OK, NotFound, UsageError
from subagents.extensions.web import page_files
from subagents.extensions.web.login_answers import LoginCode, LoginList, LoginRow
from subagents.text import age, milliseconds_of, upcoming

LOGINS: Final = "/v1/logins"
LINK_FOR: Final = "24h"


def ui(
    *logins: Annotated[
        str, Parameter(help="With --revoke: ids that --sessions shows.", metavar="[ID...]")
    ],
    viewer: Annotated[bool, Parameter(help="A login that may look, and change nothing.")] = False,
    link: Annotated[
        bool, Parameter(help="A link for a teammate, who may look: over TLS or an SSH tunnel.")
    ] = False,
    valid_for: Annotated[
        str | None,
        Parameter(name="--for", help="With --link: how long; default 24h, at most 7d."),
    ] = None,
    no_open: Annotated[bool, Parameter(name="--no-open", help="Print the address alone.")] = False,
    sessions: Annotated[bool, Parameter(help="List the browsers that are logged in.")] = False,
    revoke: Annotated[bool, Parameter(help="Log these browsers out, at once.")] = False,
    everything: Annotated[
        bool, Parameter(name="--all", help="With --revoke: all that there are.")
    ] = False,
    json: Json = False,
) -> int:
    """Open the web page in a browser, logged in.

    The address holds once, for a minute. The login holds until it was not used for 12 hours, also
    over restarts of the daemon, or until it is revoked. A link is opened once, too, at any time
    until it is over; --sessions and --revoke are for links as well.

    For example:

        subagents ui

        subagents ui --viewer --no-open

        subagents ui --link --for 2d

        subagents ui --revoke --all
    """
    view = chosen(sessions=sessions, revoke=revoke)
    if not revoke:
        refuse_unused("needs --revoke", all=everything)
        if logins:
            raise refusal(logins[0], "needs --revoke")
    if view:
        refuse_unused(f"does not go with {view}", viewer=viewer, link=link, no_open=no_open)
    if not link:
        refuse_unused("needs --link", **{"for": valid_for is not None})
    if sessions:
        return _list_logins(json=json)
    if revoke:
        return _revoke(logins, everything=everything, json=json)
    if not page_files.is_here():
        raise NotFound(page_files.MISSING, hint=page_files.WAY_OUT)
    role = "viewer" if viewer or link else "operator"
    body = {"role": role, "validFor": valid_for or LINK_FOR} if link else {"role": role}
    with connect(starts=True) as client:
        answer = client.post("/v1/login/codes", body)
    if json:
        output.document(answer)
        return EXIT_OK
    _tell(read(answer, LoginCode), opens=not no_open and has_browser(os.environ))
    return EXIT_OK


def _tell(made: LoginCode, *, opens: bool) -> None:
    """Print the address, and how it is used, or open it."""
    output.line(made.url)
    is_link = made.login_id is not None
    there = f"{urlsplit(made.url).port}:127.0.0.1:{urlsplit(made.url).port}"
    if is_link and made.url.startswith("http:"):
        output.note(f"  without TLS it needs a tunnel that you open: ssh -N -R {there} HOST")
    elif not is_link and not opens and "SSH_CONNECTION" in os.environ:
        output.note(f"  to reach it from your machine: ssh -L {there} …")
    if is_link:
        output.note(
            f"  opens the page in one browser, as viewer; it is over {_ahead(made.expires_at)}"
        )
        output.note(f"  to end it before: subagents ui --revoke {made.login_id}")
        return
    if opens:
        import webbrowser  # noqa: PLC0415  only here

        webbrowser.open(made.url)
    output.note(f"  opens the page once, within a minute, as {made.role}")


def _list_logins(*, json: bool) -> int:
    with connect() as client:
        answer = client.get(LOGINS)
    if json:
        output.document(answer)
        return EXIT_OK
    logins = read(answer, LoginList).logins
    if not logins:
        output.line("No browser is logged in. To open the page: subagents ui")
        return EXIT_OK
    headers = ["id", "role", "made", "used", "browser"]
    output.table(headers, [_cells(each) for each in logins])
    return EXIT_OK


def _revoke(logins: Sequence[str], *, everything: bool, json: bool) -> int:
    if everything == bool(logins):
        raise UsageError("name the logins to revoke, or --all", hint="see: subagents ui --sessions")
    with connect() as client:
        if everything:
            logins = tuple(each.login_id for each in read(client.get(LOGINS), LoginList).logins)
        answers: list[Document] = [client.delete(f"{LOGINS}/{segment(each)}") for each in logins]
    if json:
        output.document({"logins": answers})
        return EXIT_OK
    for each in answers:
        output.line(f"{read(each, LoginRow).login_id} is logged out.")
    if not answers:
        output.line("No browser was logged in.")
    return EXIT_OK


def has_browser(environ: Mapping[str, str]) -> bool:
    """Whether a browser with a window can be opened from here."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform == "darwin" or any(environ.get(name) for name in names)


def _cells(login: LoginRow) -> list[str]:
    now_ms = time.time_ns() // 1_000_000
    made, used = (
        age(now_ms - (milliseconds_of(at) or now_ms)) for at in (login.created_at, login.used_at)
    )
    ages = [made, used if login.is_opened else "-"]
    browser = login.browser if login.is_opened else "nobody yet"
    if login.is_link:
        browser += f" (a link, over {_ahead(login.ends_at)})"
    return [login.login_id, login.role, *ages, browser]


def _ahead(at: str) -> str:
    now_ms = time.time_ns() // 1_000_000
    return upcoming(milliseconds_of(at) or now_ms, now_ms)
