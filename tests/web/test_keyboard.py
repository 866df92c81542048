"""The page by keys alone: find, answer, cancel and think better of it, retry."""

from typing import Final

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers

QUESTION: Final = "Drop the column?"


@pytest.mark.requirement("web:keyboard")
def test_a_question_is_found_from_any_page_and_answered_with_four_keys(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="asks-me")
    home.until_phase(run, "running")
    page = browsers.at_the_page()
    body = {"runId": run, "question": QUESTION, "options": ["Drop it", "Keep it"]}
    asked = home.post("/v1/requests", body)

    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    expect(page).to_have_title("(1) asks: asks-me · Now")
    for key in ("g", "a"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    expect(page).to_have_title("(1) asks: asks-me · Agents")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    for key in ("q", "2", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name=QUESTION)).to_have_count(0)
    found = home.get(f"/v1/requests/{asked['requestId']}")
    assert (found["answer"], found["decision"]) == ("Keep it", "answer")


@pytest.mark.requirement("web:keyboard")
def test_a_question_is_answered_without_leaving_the_page(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="asks-me")
    home.until_phase(run, "running")
    page = browsers.at_the_page()
    page.goto(f"{page.url}cost")
    expect(page.get_by_role("heading", name="Cost", level=1)).to_be_visible()
    body = {"runId": run, "question": QUESTION, "options": ["Drop it", "Keep it"]}
    asked = home.post("/v1/requests", body)
    expect(page.get_by_role("button", name="1 question")).to_be_visible()
    page.keyboard.press("a")
    dialog = page.get_by_role("dialog", name="asks-me")
    expect(dialog.get_by_role("listitem", name="asks: asks-me")).to_be_focused()
    for key in ("2", "Enter"):
        page.keyboard.press(key)
    expect(dialog.get_by_role("heading", name=QUESTION)).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Cost", level=1)).to_be_visible()
    assert home.get(f"/v1/requests/{asked['requestId']}")["answer"] == "Keep it"


@pytest.mark.requirement("web:keyboard")
def test_enter_sends_nothing_while_no_option_is_chosen(home: LiveHome, browsers: Browsers) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    asked = home.post("/v1/requests", {"runId": run, "question": QUESTION, "options": ["yes"]})
    page = browsers.at_the_page()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    page.keyboard.press("q")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Answer")).to_be_disabled()
    assert home.get(f"/v1/requests/{asked['requestId']}")["status"] == "pending"


@pytest.mark.requirement("web:keyboard")
def test_a_cancel_waits_for_second_thoughts_and_then_is_done(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="victim")
    home.until_phase(run, "running")
    page = browsers.at_the_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("victim")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("workingvictim")
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="victim", level=1)).to_be_visible()

    page.keyboard.press("Backspace")
    expect(page.get_by_text("victim will be cancelled in 5 s").last).to_be_visible()
    page.keyboard.press("z")
    until(lambda: home.show(run)["cancelAt"] is None, what="a cancel that was taken back")
    expect(page.get_by_role("button", name="Cancel")).to_be_enabled()

    page.keyboard.press("Backspace")
    assert home.wait(run)["completed"][0]["outcome"]["status"] == "cancelled"
    kinds = [type(event).__name__ for event in home.journal(run)]
    assert (kinds.count("CancelPlanned"), kinds.count("CancelWithdrawn")) == (2, 1)


@pytest.mark.requirement("web:keyboard")
def test_rows_are_walked_through_and_a_failure_is_started_again(
    home: LiveHome, browsers: Browsers
) -> None:
    runs = [home.spawn(f"exit {code}", label=f"fails-{code}") for code in (3, 4)]
    home.wait(*runs)
    page = browsers.at_the_page()
    expect(page.get_by_role("link", name="fails-4").first).to_be_visible()
    page.clock.install()
    for key in ("j", "j", "r"):
        page.keyboard.press(key)
    expect(page.get_by_text("will be started again in 5 s").last).to_be_visible()
    page.keyboard.press("z")
    page.clock.run_for(6_000)
    assert len(home.get("/v1/runs")["runs"]) == 2

    for _ in range(3):
        page.keyboard.down("r")  # it is held
    page.keyboard.up("r")
    page.clock.run_for(6_000)
    expect(page.get_by_text("was started again as").last).to_be_visible()
    assert len(home.get("/v1/runs")["runs"]) == 3


@pytest.mark.requirement("web:keyboard")
def test_keys_are_letters_while_somebody_writes(home: LiveHome, browsers: Browsers) -> None:
    page = browsers.at_the_page()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("chg?")
    expect(page.get_by_label("filter:")).to_have_value("chg?")
    assert page.evaluate("location.pathname") == "/ui/runs"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
