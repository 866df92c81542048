"""The page while things change: one stream for all tabs, right after kill -9, quiet otherwise."""

from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Request, Route, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

RIGHT_WITHIN_MS: Final = 3_000
QUIET_MS: Final = 19_000
"""Shorter than the silence after which a stream counts as dead: the clock brings no heartbeats."""


def calls_of(context: BrowserContext) -> list[str]:
    """The paths of calls that pages make from now on, as they are made."""
    found: list[str] = []

    def note(request: Request) -> None:
        path = request.url.partition("//")[2].partition("/")[2].partition("?")[0]
        if path.startswith(("v1/", "version")):
            found.append(path)

    context.on("request", note)
    return found


@pytest.mark.requirement("web:live")
def test_an_answer_in_one_browser_takes_the_question_from_the_other(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="shared")
    home.until_phase(run, "running")
    home.post("/v1/requests", {"runId": run, "question": "which?", "options": ["one", "two"]})
    one, other = browsers.at_the_page(), browsers.at_the_page()
    for page in (one, other):
        expect(page.get_by_role("heading", name="which?")).to_be_visible()
    other.get_by_label("answer shared").fill("a draft of mine")
    one.get_by_text("one", exact=True).click()
    one.get_by_role("button", name="Answer").click()
    for page in (one, other):
        expect(page.get_by_role("heading", name="which?")).to_have_count(0)
        expect(page).to_have_title("Now · subagents")


@pytest.mark.requirement("web:live")
def test_who_answers_second_hears_what_was_answered_and_can_send_it_as_a_steer(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    asked = home.post("/v1/requests", {"runId": run, "question": "which?"})
    path = f"/v1/requests/{asked['requestId']}/respond"
    page = browsers.at_the_page()

    def overtaken(route: Route) -> None:
        home.post(path, {"response": "mine was first"})
        route.continue_()

    page.route("**/respond", overtaken)
    page.get_by_placeholder("answer").fill("mine came second")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("By agent:main:main: “mine was first”")).to_be_visible()
    expect(page.get_by_role("button", name="Send as steer")).to_be_visible()
    assert home.get(f"/v1/requests/{asked['requestId']}")["answer"] == "mine was first"


@pytest.mark.requirement("web:live")
def test_after_kill_9_the_page_says_so_and_is_right_within_three_seconds_of_the_next_daemon(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="survivor")
    home.until_phase(run, "running")
    pages = [browsers.at_the_page(), browsers.at_the_page()]
    for page in pages:
        expect(page.get_by_role("link", name="survivor")).to_be_visible()
    home.kill()
    for page in pages:
        expect(
            page.get_by_text("The daemon does not answer. What you see is as of")
        ).to_be_visible()
        expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    home.start()
    missed = home.spawn("sleep 600", label="newcomer")
    home.until_phase(missed, "running")
    for page in pages:
        expect(page.get_by_role("link", name="newcomer")).to_be_visible(timeout=RIGHT_WITHIN_MS)
        expect(page.get_by_text("What you see is as of")).to_have_count(0)
        expect(page.get_by_role("button", name="Cancel").first).to_be_enabled()


@pytest.mark.requirement("web:live")
def test_tabs_of_a_browser_share_one_stream_and_the_next_takes_it_over(
    home: LiveHome, browsers: Browsers
) -> None:
    first = browsers.at_the_page()
    calls = calls_of(first.context)
    origin = first.evaluate("location.origin")
    second = first.context.new_page()
    second.goto(f"{origin}/ui/")
    expect(second.get_by_role("heading", name="Now", level=1)).to_be_visible()
    # Who is looked at reads: the second tab took the stream, and the first hears of it.
    assert calls.count("v1/events") <= 1
    run = home.spawn("sleep 600", label="told-to-both")
    home.until_phase(run, "running")
    for page in (first, second):
        expect(page.get_by_role("link", name="told-to-both")).to_be_visible()
    second.close()
    other = home.spawn("sleep 600", label="after-the-close")
    home.until_phase(other, "running")
    expect(first.get_by_role("link", name="after-the-close")).to_be_visible()


@pytest.mark.requirement("web:live")
def test_a_page_asks_nothing_while_nothing_happens(home: LiveHome, browsers: Browsers) -> None:
    page = browsers.at_the_page()
    page.clock.install()
    page.goto(f"{page.evaluate('location.origin')}/ui/")
    expect(page.get_by_text("No runs yet")).to_be_visible()
    calls = calls_of(page.context)
    page.clock.run_for(QUIET_MS)
    assert calls == []


@pytest.mark.requirement("web:live")
def test_a_viewer_sees_what_could_be_done_and_why_it_may_not(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    page = browsers.at_the_page("viewer")
    button = page.get_by_role("button", name="Cancel")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", "viewer: may look")
