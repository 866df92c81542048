"""The list of runs: its order and its times stand in the address; the daemon sorts and folds."""

import json

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome
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
