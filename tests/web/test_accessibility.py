"""Every page, light and dark, wide and narrow: nothing that axe finds, nothing sideways."""

from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

AXE: Final = Path("web/node_modules/axe-core/axe.min.js")
RUN_AXE: Final = """
async () => {
  const wanted = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const {violations} = await axe.run(document, {runOnly: wanted});
  return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target).join(" ")}`);
}
"""
SIDEWAYS: Final = """
() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("main *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth)
    .map((each) => `${each.tagName}.${each.getAttribute("class")}: ${each.textContent}`)
"""
NODES_MAX: Final = 3_000
PAGES: Final = (
    *("", "runs", "plans", "plans/last", "sessions", "sessions/agent:main:main", "inbox"),
    *("agents", "cost", "alerts", "system", "new"),
)
TABS: Final = ("", "/transcript", "/timeline", "/tree", "/changes", "/messages", "/raw")


def fill(home: LiveHome) -> str:
    """Runs of many states; returns one that asks."""
    asks = home.spawn(
        "sleep 600", label="asks", verification={"artifacts": [{"path": "a.txt", "minBytes": 9}]}
    )
    home.until_phase(asks, "running")
    home.post("/v1/requests", {"runId": asks, "question": "which?", "options": ["one", "two"]})
    failed = home.spawn("echo done", verification={"artifacts": [{"path": "none.json"}]})
    steps = [
        {"task": "true", "label": "first", "agentId": "sh"},
        {"task": "true", "label": "second", "agentId": "sh", "dependsOn": ["first"]},
    ]
    body = {"specs": steps, "name": "nightly", "cwd": str(home.work)}
    plan = [each["runId"] for each in home.post("/v1/plans", body)["receipts"]]
    home.wait(failed, *plan)
    return asks


@pytest.mark.requirement("web:accessible")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 320])
def test_axe_finds_nothing_on_any_page_and_nothing_is_sideways(
    home: LiveHome, browsers: Browsers, width: int, theme: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make web")
    asks = fill(home)
    page = browsers.at_the_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    origin = page.evaluate("location.origin")
    script = AXE.read_text(encoding="utf-8")
    for place in (*PAGES, *(f"runs/{asks}{tab}" for tab in TABS)):
        page.goto(f"{origin}/ui/{place}")
        expect(
            page.locator("main").locator("section, ul, form, .empty, .box").first
        ).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        page.evaluate(script)
        assert page.evaluate(RUN_AXE) == [], place
        assert page.evaluate(SIDEWAYS) == [], place
        assert page.evaluate("document.querySelectorAll('*').length") < NODES_MAX, place


@pytest.mark.requirement("web:accessible")
def test_a_thousand_runs_are_a_table_of_few_rows_that_says_how_many_there_are(
    home: LiveHome, browsers: Browsers
) -> None:
    specs = [{"task": "sleep 600", "label": f"r{at}", "agentId": "sh"} for at in range(1, 1000)]
    first = home.spawn("sleep 600", label="first")
    waiting = [{**spec, "dependsOn": [first]} for spec in specs]
    home.post("/v1/plans", {"specs": waiting, "name": "large", "cwd": str(home.work)})
    page = browsers.at_the_page()
    page.goto(f"{page.evaluate('location.origin')}/ui/runs")

    table = page.get_by_role("treegrid", name="runs")
    expect(table).to_have_attribute("aria-rowcount", "1001")
    assert table.get_by_role("row").count() < 80
    assert page.evaluate("document.querySelectorAll('*').length") < NODES_MAX
