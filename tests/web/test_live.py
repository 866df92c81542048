"""The page while things change: one stream for all tabs, right after kill -9, quiet otherwise."""

import re
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
    expect(page.get_by_text("By main: “mine was first”")).to_be_visible()
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
def test_a_viewer_has_no_button_or_box_that_would_change_something(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="watched")
    home.until_phase(run, "running")
    home.post("/v1/requests", {"runId": run, "question": "which?"})
    operator, viewer = browsers.at_the_page(), browsers.at_the_page("viewer")
    origin = viewer.evaluate("location.origin")
    for page, shown in ((operator, True), (viewer, False)):
        expect(page.get_by_role("heading", name="which?")).to_be_visible()
        for name in ("Answer", "Deny"):
            expect(page.get_by_role("button", name=name)).to_have_count(int(shown))
        expect(page.get_by_role("link", name="New run")).to_have_count(int(shown))
        expect(page.get_by_placeholder("answer")).to_have_count(int(shown))
        page.goto(f"{origin}/ui/runs/{run}")
        expect(page.get_by_role("heading", name="watched", level=1)).to_be_visible()
        for name in ("Pause", "Cancel"):
            expect(page.get_by_role("button", name=name)).to_have_count(int(shown))
    viewer.goto(f"{origin}/ui/new")
    expect(viewer.get_by_text("You are a viewer", exact=True)).to_be_visible()


@pytest.mark.requirement("web:live")
def test_a_plain_command_is_offered_no_message_no_interrupt_and_no_continuation(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")
    for agent, able in (("sh", 0), ("talker", 1)):
        run = home.spawn("sleep 600", agent=agent)
        home.until_phase(run, "running")
        page.goto(f"{origin}/ui/runs/{run}")
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        for name in ("Steer", "Interrupt"):
            expect(page.get_by_role("button", name=name)).to_have_count(able)
        home.post(f"/v1/runs/{run}/cancel", {})
        expect(page.get_by_role("button", name="Retry with changes")).to_be_visible()
        expect(page.get_by_role("button", name="Continue")).to_have_count(able)


@pytest.mark.requirement("web:live")
def test_seven_silent_transcripts_in_a_browser_leave_its_connections_free(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("echo begun; sleep 600")
    home.until_phase(run, "running")
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")
    for _ in range(7):
        tab = page.context.new_page()
        tab.goto(f"{origin}/ui/runs/{run}/transcript")
        expect(tab.get_by_role("log").get_by_text("begun", exact=True)).to_be_visible()
    page.goto(f"{origin}/ui/runs")
    expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
    assert page.evaluate("async () => (await fetch('/v1/runs')).status") == 200


@pytest.mark.requirement("web:read-marks")
def test_who_marks_a_failure_as_read_takes_its_result_from_no_agent(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("exit 3", label="broke")
    home.until_phase(run, "completed")
    page = browsers.at_the_page()
    page.get_by_role("button", name="mark as read").click()
    expect(page.get_by_text("Nothing needs you")).to_be_visible()
    (message,) = home.get("/v1/inbox")["messages"]
    assert (message["runId"], message["consumedAt"]) == (run, None)
    page.get_by_role("link", name="Inbox").first.click()
    expect(page.get_by_text("Nothing unread")).to_be_visible()
    page.keyboard.press("h")
    page.locator("button.headline").click()
    expect(page.get_by_text("for main")).to_be_visible()
    page.get_by_role("button", name="Take it in its name").click()
    expect(page.get_by_text("Taken for main").first).to_be_visible()
    assert home.get("/v1/inbox")["messages"] == []


@pytest.mark.requirement("web:live")
def test_ages_are_by_the_daemons_clock(home: LiveHome, browsers: Browsers) -> None:
    run = home.spawn("true", label="just-now")
    home.until_phase(run, "completed")
    page = browsers.tab()
    page.clock.set_fixed_time("2100-01-01T00:00:00Z")
    browsers.open_page(page)
    ended = page.get_by_role("region", name="just ended")
    expect(ended.get_by_role("link", name="just-now")).to_be_visible()
    expect(ended.locator("time")).to_have_text(re.compile(r"^(now|\d+ (s|min) ago)$"))
