"""A new run and a plan: the daemon says what would start, and the second press starts it."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

from subagents.client.client import Client


@pytest.mark.requirement("web:dry-run")
def test_a_run_starts_with_what_the_form_proposes_once_its_task_is_written(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    page.keyboard.press("c")
    expect(page.get_by_text("Say what to do.")).to_be_visible()
    page.get_by_label("task", exact=True).fill("echo hello")
    expect(page.get_by_role("region", name="This would start")).to_contain_text("at once")
    page.get_by_role("button", name="Start it").click()
    expect(page.get_by_role("heading", name="echo hello", level=1)).to_be_visible()
    (row,) = home.get("/v1/runs")["runs"]
    assert (row["agentId"], Path(row["directory"])) == ("command", home.work.parent)


@pytest.mark.requirement("web:dry-run")
def test_what_would_start_is_shown_while_the_form_is_written_and_a_press_starts_it(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    page.keyboard.press("c")
    page.get_by_label("task", exact=True).fill("echo done > out.txt")
    page.get_by_label("agent", exact=True).select_option("auto")
    page.get_by_label("directory", exact=True).fill("/nowhere")
    expect(page.get_by_role("alert")).to_contain_text('cwd "/nowhere" is not a directory')
    expect(page.get_by_role("button", name="Start it")).to_be_disabled()
    page.get_by_label("agent", exact=True).select_option("")
    page.get_by_label("directory", exact=True).fill(str(home.work))
    planned = page.get_by_role("region", name="This would start")
    expect(planned).to_contain_text("none: its word is taken")

    page.get_by_role("button", name="Add a check").click()
    page.get_by_label("file", exact=True).fill("out.txt")
    page.get_by_label("minutes", exact=True).fill("2")
    expect(planned).to_contain_text("artifact out.txt")
    expect(planned).to_contain_text("2 m 00 s")
    page.reload()
    expect(page.get_by_label("file", exact=True)).to_have_value("out.txt")
    expect(planned).to_contain_text("artifact out.txt")
    assert home.get("/v1/runs")["runs"] == []
    page.get_by_role("button", name="Start it").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("echo done")
    (row,) = home.get("/v1/runs")["runs"]
    home.wait(row["runId"])
    assert home.row(row["runId"])["verdict"]["status"] == "passed"


@pytest.mark.requirement("web:dry-run")
def test_a_plan_shows_every_step_that_is_refused_and_then_who_waits_for_whom(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    page.keyboard.press("c")
    page.get_by_role("button", name="A plan").click()
    steps: list[dict[str, object]] = [
        {"label": "list", "task": "ls", "agentId": "nobody"},
        {"label": "count", "task": "wc", "agentId": "nobody either", "dependsOn": ["list"]},
    ]
    plan = page.get_by_label("plan", exact=True)
    plan.fill(json.dumps({"name": "nightly", "specs": steps}))
    page.get_by_label("cwd", exact=True).fill(str(home.work))
    page.get_by_role("button", name="Show what would start").click()
    expect(page.get_by_role("alert").get_by_role("listitem")).to_have_count(2)
    for step in steps:
        step["agentId"] = "quick"
    plan.fill(json.dumps({"name": "nightly", "specs": steps}))
    page.get_by_role("button", name="Show what would start").click()
    expect(page.get_by_role("region", name="This would start")).to_contain_text("after list")
    assert home.get("/v1/runs")["runs"] == []
    page.get_by_role("button", name="Start 2 runs").click()
    expect(page.get_by_role("heading", name="nightly", level=1)).to_be_visible()


@pytest.mark.requirement("web:sort")
def test_the_table_of_runs_says_how_it_is_sorted_and_turns(
    home: LiveHome, browsers: Browsers
) -> None:
    for label in ("first", "second"):
        home.wait(home.spawn("true", label=label))
    page = browsers.at_the_page()
    for key in ("g", "r"):
        page.keyboard.press(key)
    rows = page.get_by_role("row").filter(has=page.get_by_role("checkbox"))
    expect(rows.first).to_contain_text("second")
    time = page.get_by_role("columnheader", name="started")
    expect(time).to_have_attribute("aria-sort", "descending")
    page.get_by_label("sorted by").select_option("ended")
    ended = page.get_by_role("columnheader", name="ended")
    expect(ended).to_have_attribute("aria-sort", "descending")
    ended.get_by_role("button").click()
    expect(ended).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text("first")


@pytest.mark.requirement("web:sort")
def test_a_filter_finds_a_run_that_another_run_spawned(home: LiveHome, browsers: Browsers) -> None:
    above = home.spawn("sleep 600", label="above")
    home.until_phase(above, "running")
    me = {name.lower(): value for name, value in home.as_worker(above).items()}
    with Client(home.paths.socket, headers=me) as client:
        client.post("/v1/runs", home.spawn_body("true", label="leaf"))
    page = browsers.at_the_page()
    for key in ("g", "r"):
        page.keyboard.press(key)
    rows = page.get_by_role("row").filter(has=page.get_by_role("checkbox"))
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("above")
    page.keyboard.press("/")
    page.keyboard.type("label:leaf")
    expect(rows.filter(has_text="above")).to_have_count(0)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("leaf")
    page.get_by_role("checkbox", name="roots only").check()
    expect(page.get_by_text("No run fits label:leaf")).to_be_visible()
