"""Lists and graphs of very many runs: few nodes, and words that say what is left out."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.live_home import LiveHome, live_home
from tests.free_ports import free_port
from tests.web.conftest import Browsers
from tests.web.test_accessibility import NODES_MAX, SIDEWAYS

from subagents.client.client import Client

MANY: Final = 1_000
CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 3000
max_concurrent = 1
max_spawn_depth = 3
"""


def steps(home: LiveHome, number: int, prefix: str) -> dict[str, Any]:
    """The body of a plan of so many steps, all but the first of which wait for that."""
    spec = {"task": "sleep 600", "agentId": "sh"}
    first, *others = [{**spec, "label": f"{prefix}{at}"} for at in range(number)]
    specs = [first, *({**each, "dependsOn": [first["label"]]} for each in others)]
    return {"specs": specs, "name": "large", "cwd": str(home.work)}


def nodes(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


@pytest.mark.requirement("web:many-runs")
def test_a_thousand_runs_are_few_rows_one_folded_graph_and_sessions_page_by_page(
    home: LiveHome, browsers: Browsers
) -> None:
    old = home.client(session="agent:older:main")
    old.post("/v1/runs", home.spawn_body("sleep 600", label="older"))
    plan = home.post("/v1/plans", steps(home, MANY, "r"))["planId"]
    page = browsers.at_the_page()
    origin = page.evaluate("location.origin")

    page.goto(f"{origin}/ui/runs?flat=1")
    table = page.get_by_role("treegrid", name="runs")
    expect(table).to_have_attribute("aria-rowcount", str(MANY + 1))  # counted no further
    assert table.get_by_role("row").count() < 80
    assert nodes(page) < NODES_MAX

    page.goto(f"{origin}/ui/sessions")
    expect(page.get_by_role("link", name="agent:main:main")).to_be_visible()
    expect(page.get_by_role("link", name="agent:older:main")).to_have_count(0)
    expect(page.get_by_text("Of the newest 1,000 of 1,000 or more runs.")).to_be_visible()
    page.get_by_role("button", name="Look at older ones").click()
    expect(page.get_by_role("link", name="agent:older:main")).to_be_visible()
    expect(page.get_by_role("button", name="Look at older ones")).to_have_count(0)

    with page.expect_event("worker") as laid_out:
        page.goto(f"{origin}/ui/plans/{plan}")
    assert "layout-worker" in laid_out.value.url, "the page itself lays nothing out"
    expect(page.get_by_text("More than 300 runs: folded by state.")).to_be_visible()
    graph = page.get_by_role("group", name="graph of runs")
    expect(graph.get_by_role("link")).to_have_count(2)
    expect(graph).to_contain_text(f"{MANY - 1} runs")
    assert nodes(page) < NODES_MAX
    page.get_by_role("checkbox", name="fold by state").uncheck()
    expect(graph.get_by_role("link")).not_to_have_count(2)
    top = graph.get_by_role("link").first.text_content()
    assert nodes(page) < NODES_MAX
    graph.evaluate("(each) => each.scrollTo(0, each.scrollHeight)")
    expect(graph.get_by_role("link").first).not_to_have_text(str(top))
    assert nodes(page) < NODES_MAX
    page.get_by_role("button", name="Table").click()
    expect(page.get_by_role("link", name="r0", exact=True)).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="r999", exact=True)).to_be_visible()
    assert nodes(page) < NODES_MAX
    assert page.evaluate(SIDEWAYS) == []


@pytest.mark.requirement("web:many-runs")
def test_more_than_two_thousand_runs_are_a_table_that_says_why(
    chromium: Browser, tmp_path: Path
) -> None:
    config = f"[daemon]\nhttp_port = {free_port()}\n{CONFIG}"
    with live_home(tmp_path, config=config) as home:
        root = home.spawn("sleep 600", label="root")
        home.until_phase(root, "running")
        with Client(
            home.paths.socket,
            headers={key.lower(): value for key, value in home.as_worker(root).items()},
        ) as worker:
            for prefix in ("a", "b"):
                specs = [{**each, "dependsOn": []} for each in steps(home, MANY, prefix)["specs"]]
                worker.post("/v1/plans", {"specs": specs, "cwd": str(home.work)}, timeout_s=60)
        with ExitStack() as stack:
            page = Browsers(chromium, home, stack).at_the_page()
            page.goto(f"{page.evaluate('location.origin')}/ui/trees/{root}")
            expect(page.get_by_text("More than 2,000 runs: a table shows more")).to_be_visible()
            expect(page.get_by_text("2,000 of 2,001 runs are shown.")).to_be_visible()
            expect(page.get_by_role("button", name="Graph")).to_be_disabled()
            expect(page.get_by_role("group", name="graph of runs")).to_have_count(0)
