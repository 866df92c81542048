"""The list of runs: its order and its times stand in the address; the daemon sorts and folds."""

import json

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers


def spends(home: LiveHome, label: str, usd: float, tokens: int) -> str:
    used = {"subagents": "usage", "tokensIn": tokens, "tokensOut": 0, "costUsd": usd}
    return home.spawn(f"echo '{json.dumps(used)}'", label=label)


def labels(page: Page, *wanted: str) -> None:
    """Wait until these are the rows of the table, in this order."""
    names = page.get_by_role("treegrid", name="runs").locator(".label")
    expect(names).to_have_text([*wanted])


@pytest.mark.requirement("web:runs-list")
def test_order_and_time_of_the_list_stand_in_its_address(
    home: LiveHome, browsers: Browsers
) -> None:
    runs = [spends(home, "dear", 3.5, 10), spends(home, "cheap", 0.1, 900)]
    home.wait(*runs, home.spawn("true", label="silent"))
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")
    page.goto(f"{origin}/ui/runs?sort=cost&time=1h")
    labels(page, "dear", "cheap", "silent")
    cost = page.get_by_role("columnheader", name="cost")
    expect(cost).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_label("spawned", exact=True)).to_have_value("1h")

    page.get_by_role("button", name="tokens").click()
    labels(page, "cheap", "dear", "silent")
    assert page.evaluate("location.search") == "?sort=tokens&time=1h"
    page.get_by_label("sorted by").select_option("newest first")
    labels(page, "silent", "cheap", "dear")

    page.get_by_label("spawned", exact=True).select_option("yesterday")
    expect(page.get_by_text("No run fits yesterday")).to_be_visible()
    page.get_by_label("spawned", exact=True).select_option("from … to …")
    labels(page, "silent", "cheap", "dear")
    page.get_by_label("spawned before").fill("2020-01-01T00:00")
    expect(page.get_by_text("No run fits")).to_be_visible()
    address = page.url
    assert "2020-01-01T" in address
    page.goto(address.replace("2020-01-01", "2120-01-01"))
    labels(page, "silent", "cheap", "dear")


@pytest.mark.requirement("web:runs-list")
def test_a_plan_is_one_row_with_its_states_and_enter_unfolds_its_steps(
    home: LiveHome, browsers: Browsers
) -> None:
    specs = [{"task": f"exit {code}", "agentId": "sh", "label": f"s{code}"} for code in (0, 3, 0)]
    specs[2]["label"] = "s-end"
    plan = home.post("/v1/plans", {"specs": specs, "name": "nightly", "cwd": str(home.work)})
    home.wait(*(each["runId"] for each in plan["receipts"]), home.spawn("true", label="alone"))
    page = browsers.at_the_page()
    page.goto(f"{page.evaluate('location.origin')}/ui/runs")
    labels(page, "alone", "nightly")
    row = page.get_by_role("row", name="nightly")
    expect(row).to_contain_text("1 failed · 2 ok")
    expect(row).to_have_attribute("aria-expanded", "false")

    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    labels(page, "alone", "nightly", "s0", "s3", "s-end")
    page.keyboard.press("v")
    expect(page.get_by_text("3 chosen")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    labels(page, "alone", "nightly")
    page.get_by_role("button", name="nightly").click()
    labels(page, "alone", "nightly", "s0", "s3", "s-end")
    page.goto(f"{page.url}?q=nightly")  # who looks for something means runs
    expect(page.get_by_text("No run fits nightly")).to_be_visible()


@pytest.mark.requirement("web:bulk")
def test_all_that_fit_are_retried_read_and_cancelled_with_second_thoughts(
    home: LiveHome, browsers: Browsers
) -> None:
    failed = [home.spawn("exit 3", label=f"f{number}") for number in range(12)]
    home.wait(*failed)
    active = [home.spawn("sleep 600", label=f"w{number}") for number in range(2)]
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")
    page.goto(f"{origin}/ui/runs?q=state:failed")
    bulk = page.get_by_role("group", name="chosen runs")
    page.get_by_role("button", name="Choose all").click()
    expect(bulk).to_contain_text("12 chosen")
    bulk.get_by_role("button", name="Mark 12 as read").click()
    expect(page.get_by_text("Marked 12 results as read").last).to_be_visible()
    page.keyboard.press("z")
    until(lambda: not any(home.show(run)["readAt"] for run in failed), what="unread again")

    page.keyboard.press("V")
    again = bulk.get_by_role("button", name="Retry 12")
    expect(again).to_be_disabled()
    bulk.get_by_label("type 12 to retry").fill("12")
    page.clock.install()
    again.click()
    expect(page.get_by_text("12 runs will be started again in 5 s").last).to_be_visible()
    page.clock.run_for(6_000)
    expect(page.get_by_text("12 runs were started again").last).to_be_visible()
    assert home.get("/v1/runs")["total"] == 26

    page.goto(f"{origin}/ui/runs?q=state:working")
    page.get_by_role("button", name="Choose all").click()
    bulk.get_by_role("button", name="Cancel 2").click()
    expect(page.get_by_text("2 runs and all below will be cancelled in 6 s").last).to_be_visible()
    page.keyboard.press("z")
    until(lambda: not any(home.show(run)["cancelAt"] for run in active), what="kept")
