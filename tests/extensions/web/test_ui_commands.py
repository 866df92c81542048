"""``subagents ui``: a page on a fresh installation, and who is logged in."""

import http.client
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.cli_home import Home

from subagents.config.paths import Paths
from subagents.extensions.web import page_files
from subagents.extensions.web.ui_commands import has_browser

NO_WINDOW = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}


def log_in(address: str) -> int:
    """What the page does with the address that it was opened by."""
    found = urlsplit(address)
    calling = http.client.HTTPConnection(found.hostname or "", found.port, timeout=40)
    try:
        origin = f"{found.scheme}://{found.netloc}"
        body = json.dumps({"code": found.fragment.removeprefix("k=")})
        headers: dict[str, str | bytes] = {
            "Origin": origin,
            "User-Agent": "Firefox \u202e".encode(),
        }
        calling.request("POST", "/v1/login", body, headers)
        answered = calling.getresponse()
        answered.read()
        return answered.status
    finally:
        calling.close()


@pytest.mark.requirement("cli:ui")
def test_on_a_fresh_installation_it_prints_an_address_that_logs_in_once(home: Home) -> None:
    done = home.ok("ui", env=NO_WINDOW)
    assert done.out.startswith("http://127.0.0.1:")
    assert "/#k=" in done.out
    assert "opens the page once, within a minute, as operator" in done.err
    assert log_in(done.out.strip()) == 200
    assert log_in(done.out.strip()) == 401
    again = home.ok("ui", "--viewer", "--json", env=NO_WINDOW).json
    assert again["role"] == "viewer"
    assert str(again["url"]).partition("#")[0] == done.out.partition("#")[0]


@pytest.mark.requirement("page:missing")
def test_an_installation_without_the_page_says_so_before_it_opens_one(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "FOLDER", tmp_path)
    done = home.cli("ui", env=NO_WINDOW)
    assert (done.code, done.out) == (3, "")
    assert "the web page is not in this installation" in done.err
    assert "install subagents again" in done.err
    (check,) = page_files.checks(Paths.resolve(home.env()), None)
    assert (check.status, check.fix) == ("warn", page_files.WAY_OUT)


@pytest.mark.requirement("cli:ui")
def test_the_address_goes_to_the_browser_unless_it_is_not_wanted(home: Home) -> None:
    opened = home.root / "opened"
    browser = home.root / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    environ = {**NO_WINDOW, "BROWSER": f"{browser} %s"}
    done = home.ok("ui", env=environ)
    assert opened.read_text() == done.out
    home.ok("ui", "--no-open", env=environ)
    home.ok("ui", "--json", env=environ)
    assert opened.read_text() == done.out


@pytest.mark.requirement("cli:ui")
def test_over_ssh_it_says_how_to_come_from_there(home: Home) -> None:
    done = home.ok("ui", env={**NO_WINDOW, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"})
    port = urlsplit(done.out.strip()).port
    assert f"ssh -L {port}:127.0.0.1:{port}" in done.err
    assert not has_browser({"SSH_CONNECTION": "x"})
    assert has_browser({"WAYLAND_DISPLAY": "wayland-0"})


@pytest.mark.requirement("cli:ui")
def test_sessions_are_listed_and_revoked_by_name_or_all(home: Home) -> None:
    home.ok("up")
    assert home.ok("ui", "--sessions").out.startswith("No browser is logged in.")
    for role in ((), ("--viewer",), ()):
        assert log_in(home.ok("ui", *role, env=NO_WINDOW).out.strip()) == 200
    rows = home.ok("ui", "--sessions", "--json").rows("logins")
    assert [each["role"] for each in rows] == ["operator", "viewer", "operator"]
    listed = home.ok("ui", "--sessions").out
    assert listed.split()[:5] == ["ID", "ROLE", "MADE", "USED", "BROWSER"]
    assert "\u202e" not in listed
    assert (
        home.ok("ui", "--revoke", rows[1]["loginId"]).out
        == f"{rows[1]['loginId']} is logged out.\n"
    )
    assert home.cli("ui", "--revoke", rows[1]["loginId"]).code == 3
    revoked = home.ok("ui", "--revoke", "--all", "--json").rows("logins")
    assert [each["loginId"] for each in revoked] == [rows[0]["loginId"], rows[2]["loginId"]]
    assert home.ok("ui", "--sessions").out.startswith("No browser is logged in.")
    assert home.ok("ui", "--revoke", "--all").out == "No browser was logged in.\n"


@pytest.mark.requirement("cli:ui", "link:once")
def test_a_link_is_told_with_its_end_and_listed_until_it_is_revoked(home: Home) -> None:
    home.ok("up", env={"SUBAGENTS_WEB__LINKS": "true"})
    unasked = home.cli("ui", "--for", "2d")
    assert (unasked.code, "--for needs --link" in unasked.err) == (2, True)
    done = home.ok("ui", "--link", "--for", "30m", env=NO_WINDOW)
    (row,) = home.ok("ui", "--sessions", "--json").rows("logins")
    for words in ("ssh -N -R", "it is over in ", f"subagents ui --revoke {row['loginId']}"):
        assert words in done.err
    # Nobody used it yet.
    assert re.search(r"ago +- +nobody yet \(a link, over in", home.ok("ui", "--sessions").out)
    assert log_in(done.out.strip()) == 200
    home.ok("ui", "--revoke", str(row["loginId"]))
    assert log_in(done.out.strip()) == 401


@pytest.mark.requirement("cli:ui")
def test_what_to_revoke_is_said(home: Home) -> None:
    for words in (("ui", "--revoke"), ("ui", "--revoke", "w-1", "--all")):
        refused = home.cli(*words)
        assert (refused.code, "name the logins to revoke, or --all" in refused.err) == (2, True)
    unknown = home.cli("ui", "close")
    assert unknown.code == 2
    assert "close needs --revoke" in unknown.err


@pytest.mark.requirement("cli:ui")
def test_its_help_has_its_flags_and_the_commands_below_it(home: Home) -> None:
    for words in (("ui", "--help"), ("help", "ui")):
        page = home.ok(*words).out
        assert page.startswith("Usage: subagents ui [OPTIONS]")
        for each in ("--viewer", "--no-open", "sessions", "revoke"):
            assert each in page


@pytest.mark.requirement("cli:ui", "login:worker")
def test_a_worker_opens_no_page(home: Home) -> None:
    done = home.ok("run", "subagents ui 2>&1 || echo refused with $?")
    assert "refused with 4" in done.out
    assert "/#k=" not in done.out
    assert not (Path(home.root) / "h" / "state" / "logins.json").exists()
