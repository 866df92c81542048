"""Schedules on the page: when next, what the last times came to; paused, resumed, run now."""

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers


@pytest.mark.requirement("web:schedules")
def test_a_schedule_says_what_it_came_to_and_is_paused_resumed_and_run_now(
    home: LiveHome, browsers: Browsers
) -> None:
    spec = {"task": "exit 3", "agentId": "sh"}
    body = {"name": "nightly", "when": "0 3 * * *", "cwd": str(home.work), "specs": [spec]}
    home.post("/v1/schedules", body)
    page = browsers.at_the_page()
    for key in ("g", "d"):
        page.keyboard.press(key)
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="nightly"))
    expect(row).to_contain_text("At 03:00 every day")
    expect(row).to_contain_text("no time yet")
    page.keyboard.press("j")
    page.keyboard.press("p")
    expect(row.get_by_role("button", name="Resume")).to_be_visible()
    page.keyboard.press("z")
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    assert home.get("/v1/schedules/nightly")["pausedAt"] is None

    row.get_by_role("button", name="Run now").click()
    expect(row.get_by_role("link", name="failed")).to_be_visible()
    expect(row).to_contain_text("by hand")
    page.clock.install()
    row.focus()
    page.keyboard.press("r")
    expect(
        page.get_by_text("The work of nightly will be started again in 5 s").last
    ).to_be_visible()
    page.keyboard.press("z")
    page.clock.run_for(6_000)
    row.get_by_role("button", name="Pause").click()
    until(lambda: home.get("/v1/schedules/nightly")["pausedAt"] is not None, what="paused")
    assert home.get("/v1/runs")["total"] == 1
    looking = browsers.at_the_page("viewer")
    looking.goto(f"{page.evaluate('location.origin')}/ui/schedules")
    expect(looking.get_by_role("link", name="nightly")).to_be_visible()
    expect(looking.get_by_role("button", name="Run now")).to_have_count(0)
