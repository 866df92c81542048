"""The built page, from the address that is printed to the end of its login."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import WAIT_MS, Browsers

NOT_LOGGED_IN = "You are not logged in"


def shows(page: Page, text: str) -> None:
    """Wait until the page says so."""
    expect(page.get_by_text(text).first).to_be_visible(timeout=WAIT_MS)


@pytest.mark.requirement("page:opens")
def test_it_opens_logged_in_leaves_no_code_and_asks_nobody_but_the_daemon(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="seen-in-the-page")
    home.until_phase(run, "running")
    tab = browsers.tab()
    asked: set[str] = set()
    wrong: list[str] = []
    tab.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    address = browsers.open_page(tab)
    shows(tab, "seen-in-the-page")
    assert "k=" not in tab.url
    assert asked == {urlsplit(address).netloc}
    assert wrong == [], "the content security policy fits the page"
    tab.reload()
    shows(tab, "seen-in-the-page")
    tab.goto(f"{address.partition('#')[0]}ui/runs")
    shows(tab, "seen-in-the-page")


@pytest.mark.requirement("page:opens", "login:code")
def test_an_address_that_was_used_says_how_to_get_another(
    home: LiveHome, browsers: Browsers
) -> None:
    first, other = browsers.tab(), browsers.tab()
    address = browsers.open_page(first)
    browsers.open_page(other, address)
    shows(other, NOT_LOGGED_IN)
    shows(other, "subagents ui")
    assert "k=" not in other.url


@pytest.mark.requirement("page:viewer")
def test_a_viewer_sees_what_there_is_and_why_nothing_can_be_pressed(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="seen-by-a-viewer")
    home.until_phase(run, "running")
    page = browsers.at_the_page("viewer")
    shows(page, "seen-by-a-viewer")
    shows(page, "You are a viewer: you may look.")


@pytest.mark.requirement("page:opens", "login:revoked")
def test_a_page_whose_login_was_revoked_shows_nothing_any_more(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="seen-for-a-while")
    home.until_phase(run, "running")
    page = browsers.at_the_page()
    shows(page, "seen-for-a-while")
    (login,) = home.get("/v1/logins")["logins"]
    with home.client() as client:
        client.delete(f"/v1/logins/{login['loginId']}")
    shows(page, NOT_LOGGED_IN)
    expect(page.get_by_text("seen-for-a-while")).to_have_count(0, timeout=WAIT_MS)


@pytest.mark.requirement("page:opens", "login:survives-kill")
def test_an_open_page_goes_on_with_the_next_daemon_after_kill_9(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    shows(page, "No runs yet")
    home.restart_after_kill()
    run = home.spawn("sleep 600", label="seen-after-the-kill")
    home.until_phase(run, "running")
    shows(page, "seen-after-the-kill")
