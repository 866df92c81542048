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
    page.get_by_label("whose attempts").select_option("nightly run")
    expect(table.nth(1)).to_contain_text("1 of 1")
    expect(page.get_by_text("No run had to wait")).to_be_visible()
    page.get_by_label("added up by").select_option("by model")
    expect(table.nth(1)).to_contain_text("1 of 3")
    page.get_by_label("added up by").select_option("by tag")
    page.get_by_role("link", name="nightly run").click()
    expect(runs).to_have_count(2)
    expect(runs.nth(1)).to_contain_text("spends")


@pytest.mark.requirement("web:over-time")
def test_schedules_have_their_sums_and_what_waited_to_begin_is_counted(
    home: LiveHome, browsers: Browsers
) -> None:
    spec = {"task": SPENDS, "agentId": "sh"}
    body = {"name": "nightly", "when": "0 3 * * *", "cwd": str(home.work), "specs": [spec]}
    home.post("/v1/schedules", body)
    home.wait(*home.post("/v1/schedules/nightly/run")["runIds"])
    first = home.spawn("sleep 2", label="first")
    waited = home.spawn("true", label="waited", dependsOn=[first])
    home.wait(waited)
    page = browsers.at_the_page()
    page.goto(f"{page.url}cost?by=schedule")
    groups = page.get_by_role("group", name="groups").get_by_role("row")
    expect(groups).to_have_count(2)
    expect(groups.nth(1)).to_contain_text("$1.50")
    waits = page.get_by_role("group", name="waited to begin").get_by_role("row")
    expect(waits).to_have_count(2)
    waits.nth(1).get_by_role("link", name="1").click()
    expect(page.get_by_role("treegrid", name="runs").get_by_text("waited")).to_be_visible()
    page.go_back()
    page.get_by_label("whose attempts").select_option("nightly")
    expect(page.get_by_text("No run had to wait")).to_be_visible()
    page.get_by_role("link", name="nightly").click()
    rows = page.get_by_role("treegrid", name="runs").get_by_role("row")
    expect(rows).to_have_count(2)
