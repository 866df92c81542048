"""A home without a run: it says what it is, a demo runs in it, and no page leads nowhere."""

import shutil
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers

PAGES: Final = ("", "runs", "plans", "schedules", "sessions", "inbox", "agents", "cost", "alerts")
OTHERS: Final = ("system", "search", "compare", "new", "runs/none", "nowhere")
WAYS_OUT: Final = """
() => document.querySelectorAll("main a, main button:not([disabled]), main textarea").length
"""


@pytest.mark.requirement("web:first-minute")
def test_the_demo_runs_in_the_home_of_the_page_and_its_question_is_answered_there(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    expect(page.get_by_text("This page shows tasks that are handed over")).to_be_visible()
    page.get_by_role("button", name="Run the demo here").click()
    expect(page.get_by_role("heading", name="Sort the report by size or by name?")).to_be_visible()
    page.keyboard.press("q")
    page.keyboard.press("2")
    page.keyboard.press("Enter")

    def states() -> set[tuple[str, str]]:
        return {(row["label"], row["state"]) for row in home.get("/v1/runs")["runs"]}

    done = {(label, "ok") for label in ("count", "lint", "report", "summary")}
    until(lambda: states() == done, what="the demo's runs are ok")
    rows = {row["label"]: row for row in home.get("/v1/runs")["runs"]}
    assert rows["count"]["attempt"] == 2, "its first attempt does not keep its contract"
    where = Path(rows["report"]["directory"])
    assert where.name == "work"
    shutil.rmtree(where.parent)


@pytest.mark.requirement("web:first-minute")
def test_no_page_of_a_new_home_leads_nowhere(browsers: Browsers) -> None:
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")
    for place in (*PAGES, *OTHERS):
        page.goto(f"{origin}/ui/{place}")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        page.wait_for_function(WAYS_OUT)
    page.goto(f"{origin}/ui/")
    page.get_by_role("main").get_by_role("button", name="Start a task").click()
    expect(page.get_by_role("combobox")).to_have_value("> echo hello")
    expect(page.get_by_role("button", name="Start it")).to_be_enabled()
