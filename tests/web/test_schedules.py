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


@pytest.mark.requirement("web:schedules")
def test_a_plan_that_ran_becomes_a_schedule(home: LiveHome, browsers: Browsers) -> None:
    specs = [
        {"task": "true", "label": "list", "agentId": "sh"},
        {"task": "true", "label": "count", "agentId": "sh", "dependsOn": ["list"]},
    ]
    plan = home.post("/v1/plans", {"name": "audit", "specs": specs, "cwd": str(home.work)})
    home.wait(*(each["runId"] for each in plan["receipts"]))
    page = browsers.at_the_page()
    page.goto(f"{page.url}plans/{plan['planId']}")
    page.get_by_role("button", name="Use as a new plan").click()
    page.get_by_role("button", name="Show what would start").click()
    times = page.get_by_role("region", name="Or at its times")
    times.get_by_label("when").fill("@weekly")
    times.get_by_role("button", name="Schedule it").click()
    expect(page.get_by_role("heading", name="Schedules", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="audit")).to_be_visible()
    (made,) = home.get("/v1/schedules")["schedules"]
    assert (made["name"], made["steps"]) == ("audit", 2)
    assert home.get("/v1/runs")["total"] == 2
