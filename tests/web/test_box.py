"""The one box, Ctrl K: it finds anything by its words, and starts a task behind `>`."""

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers


@pytest.mark.requirement("web:one-box")
def test_a_task_starts_as_the_last_run_did_once_what_would_start_was_shown(
    home: LiveHome, browsers: Browsers
) -> None:
    work = home.work / "shop"
    work.mkdir()
    contract = {"artifacts": [{"path": "said.txt"}]}
    home.wait(home.spawn("echo a > said.txt", cwd=str(work), verification=contract))
    page = browsers.at_the_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("> echo hello > said.txt")
    page.keyboard.press("Enter")
    planned = page.get_by_role("region", name="This would start")
    expect(planned).to_contain_text("artifact said.txt")
    expect(planned).to_contain_text("sh (command)")
    expect(planned).to_contain_text(str(work))
    assert home.get("/v1/runs")["total"] == 1, "what was not shown yet is not started"

    page.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_role("heading", name="Now", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_have_value("> echo hello > said.txt")
    expect(planned).to_contain_text("artifact said.txt")
    page.keyboard.press("ArrowDown")
    expect(planned).not_to_contain_text("sh (command)")
    page.keyboard.press("ArrowUp")
    expect(planned).to_contain_text("sh (command)")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("echo hello")
    newest = home.get("/v1/runs")["runs"][0]
    home.wait(newest["runId"])
    row = home.row(newest["runId"])
    assert (row["agentId"], row["directory"]) == ("sh", str(work))
    assert row["verdict"]["status"] == "passed"
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_have_value("")


@pytest.mark.requirement("web:one-box")
def test_the_draft_of_the_box_goes_on_as_a_form_with_all_parameters(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("fix it")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    page.get_by_role("option", name="start fix it as a task").click()
    page.get_by_role("button", name="All parameters").click()
    expect(page.get_by_label("task", exact=True)).to_have_value("fix it")
    assert home.get("/v1/runs")["runs"] == []


@pytest.mark.requirement("web:one-box")
def test_plans_schedules_agents_and_saved_filters_are_found_by_their_names(
    home: LiveHome, browsers: Browsers
) -> None:
    spec = {"task": "true", "agentId": "sh"}
    home.post("/v1/plans", {"name": "release train", "specs": [spec], "cwd": str(home.work)})
    body = {"name": "train-nightly", "when": "0 3 * * *", "cwd": str(home.work), "specs": [spec]}
    home.post("/v1/schedules", body)
    page = browsers.at_the_page()
    page.goto(f"{page.url}runs?q=agent%3Ash")
    page.get_by_role("button", name="+ save this filter").click()
    page.keyboard.type("training")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("train")
    options = page.get_by_role("listbox", name="found").get_by_role("option")
    for kind in ("filter training", "plan release train", "schedule train-nightly"):
        expect(options.filter(has_text=kind.split(maxsplit=1)[1]).first).to_contain_text(
            kind.split(maxsplit=1)[0]
        )
    page.get_by_label("what to find").fill("quick")
    expect(options.first).to_contain_text("agent")
    page.keyboard.press("Enter")
    expect(page.get_by_label("filter:")).to_have_value("agent:quick")


@pytest.mark.requirement("web:search")
def test_a_word_is_found_in_any_transcript_and_leads_to_its_line(
    home: LiveHome, browsers: Browsers
) -> None:
    lines = "for at in $(seq 300); do echo line $at; done; echo 'the needle (x)'; seq 300"
    runs = [home.spawn(lines, label="has-it"), home.spawn("echo hay", label="has-not")]
    home.wait(*runs)
    page = browsers.at_the_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("needle (x)")
    page.get_by_role("option", name="in transcripts").click()
    expect(page.get_by_role("status").filter(has_text="searched")).to_contain_text(
        "1 run with it, 2 of 2 runs searched"
    )
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="has-it"))
    row.get_by_role("link", name="the needle (x)").last.click()
    expect(page.get_by_role("log").get_by_text("the needle (x)").last).to_be_in_viewport()
    page.go_back()
    page.get_by_placeholder("in all runs").fill("label:has-not")
    expect(page.get_by_text("No line has it")).to_be_visible()
