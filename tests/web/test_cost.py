"""What attempts came to over time, and the runs behind each bar."""

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

SPENDS = """echo '{"subagents": "usage", "costUsd": 1.5}'"""


@pytest.mark.requirement("web:over-time")
def test_each_bar_leads_to_the_runs_of_its_time(home: LiveHome, browsers: Browsers) -> None:
    home.wait(home.spawn(SPENDS, label="spends", tags=["nightly run"]))
    home.wait(*(home.spawn("exit 3", label=f"fails-{at}") for at in range(2)))
    page = browsers.at_the_page()
    page.goto(f"{page.url}cost?days=7")
    table = page.get_by_role("group", name="over time").get_by_role("row")
    expect(table).to_have_count(8)
    expect(table.nth(1)).to_contain_text("2 failed")
    expect(table.nth(1)).to_contain_text("1 of 3")

    page.get_by_role("link", name="2 failed").click()
    runs = page.get_by_role("treegrid", name="runs").get_by_role("row")
    expect(runs).to_have_count(3)
    expect(runs.filter(has_text="fails-")).to_have_count(2)
    page.go_back()
    page.get_by_role("link", name="$1.50").first.click()
    expect(runs.nth(1)).to_contain_text("spends")
    page.go_back()
    page.get_by_label("added up by").select_option("by tag")
    page.get_by_role("link", name="nightly run").click()
    expect(runs).to_have_count(2)
    expect(runs.nth(1)).to_contain_text("spends")
