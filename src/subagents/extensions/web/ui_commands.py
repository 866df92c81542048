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
from subagents.text import age, milliseconds_of

LOGINS: Final = "/v1/logins"


def ui(
    *logins: Annotated[
        str, Parameter(help="With --revoke: ids that --sessions shows.", metavar="[ID...]")
    ],
    viewer: Annotated[bool, Parameter(help="A login that may look, and change nothing.")] = False,
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
    over restarts of the daemon, or until it is revoked.

    For example:

        subagents ui

        subagents ui --viewer --no-open

        subagents ui --revoke --all
    """
    view = chosen(sessions=sessions, revoke=revoke)
    if not revoke:
        refuse_unused("needs --revoke", all=everything)
        if logins:
            raise refusal(logins[0], "needs --revoke")
    if view:
        refuse_unused(f"does not go with {view}", viewer=viewer, no_open=no_open)
    if sessions:
        return _list_logins(json=json)
    if revoke:
        return _revoke(logins, everything=everything, json=json)
    if not page_files.is_here():
        raise NotFound(page_files.MISSING, hint=page_files.WAY_OUT)
    with connect(starts=True) as client:
        answer = client.post("/v1/login/codes", {"role": "viewer" if viewer else "operator"})
    if json:
        output.document(answer)
        return EXIT_OK
    made = read(answer, LoginCode)
    output.line(made.url)
    if not no_open and has_browser(os.environ):
        import webbrowser  # noqa: PLC0415  only here

        webbrowser.open(made.url)
    elif "SSH_CONNECTION" in os.environ:
        port = urlsplit(made.url).port
        output.note(f"  to reach it from your machine: ssh -L {port}:127.0.0.1:{port} …")
    output.note(f"  opens the page once, within a minute, as {made.role}")
    return EXIT_OK


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
    ages = [
        age(now_ms - (milliseconds_of(at) or now_ms)) for at in (login.created_at, login.used_at)
    ]
    return [login.login_id, login.role, *ages, login.browser]
