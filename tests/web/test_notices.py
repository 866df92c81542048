"""What comes to a person who does not look at the page: notifications of the browser."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home
from tests.free_ports import free_port
from tests.web.conftest import Browsers

from subagents.errors import NotFound

RECORDED: Final = """
window.shown = [];
window.Notification = class {
  static permission = "default";
  static requestPermission = async () => "granted";
  constructor(title, options) { window.shown.push({title, ...options, it: this}); }
  close() {}
};
document.hasFocus = () => window.looks ?? false;
"""
"""A browser that was asked, and says yes; nobody looks at its page."""
TITLES: Final = "window.shown.map((each) => each.title)"
SPENDS: Final = """for usd in 0.6 0.9; do
  echo '{"subagents": "usage", "costUsd": '$usd'}'
done
sleep 600"""
FAILS: Final = "echo '<b>no</b>' >&2; exit 1"


def at_the_page(browsers: Browsers) -> Page:
    page = browsers.tab()
    page.add_init_script(RECORDED)
    browsers.open_page(page)
    page.get_by_role("checkbox", name="notify me").check()
    return page


@pytest.mark.requirement("web:notifications")
def test_a_question_a_plans_first_failure_and_a_budget_at_80_percent_are_told_of(
    home: LiveHome, browsers: Browsers
) -> None:
    before = home.spawn("sleep 600", label="before")
    home.until_phase(before, "running")
    home.post("/v1/requests", {"runId": before, "question": "old?"})
    page = at_the_page(browsers)
    home.wait(home.spawn("exit 3", label="alone"))
    home.spawn(SPENDS, label="spends", budget={"maxCostUsd": 1})
    page.wait_for_function("() => window.shown.length > 0")
    specs = [{"task": FAILS, "label": each, "agentId": "sh"} for each in ("one", "two")]
    plan = home.post("/v1/plans", {"specs": specs, "name": "release", "cwd": str(home.work)})
    home.wait(*(each["runId"] for each in plan["receipts"]))
    page.wait_for_function("() => window.shown.length > 1")
    asked = home.post("/v1/requests", {"runId": before, "question": "new <b>x</b>?"})
    page.wait_for_function("() => window.shown.length > 2")

    assert page.evaluate(TITLES) == [
        "spends used 90 % of its budget",
        "Plan release: its first failure",
        "before asks",
    ]
    assert page.evaluate("window.shown[2].body") == "new <b>x</b>?"

    page.evaluate("window.shown[2].it.onclick()")
    dialog = page.get_by_role("dialog", name="before")
    dialog.get_by_label("answer before").last.fill("yes")
    dialog.get_by_role("button", name="Answer").last.click()
    expect(dialog.get_by_role("heading", name="new")).to_have_count(0)
    assert home.get(f"/v1/requests/{asked['requestId']}")["answer"] == "yes"


@pytest.mark.requirement("web:notifications")
def test_one_tab_tells_of_it_and_none_while_somebody_looks(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="asks")
    home.until_phase(run, "running")
    page = at_the_page(browsers)
    other = page.context.new_page()
    other.add_init_script(RECORDED)
    other.goto(page.url)
    switch = other.get_by_role("checkbox", name="notify me")
    switch.uncheck()
    expect(page.get_by_role("checkbox", name="notify me")).not_to_be_checked()
    switch.check()
    home.post("/v1/requests", {"runId": run, "question": "which?"})
    for each in (page, other):
        expect(each.get_by_role("heading", name="which?")).to_be_visible()
    shown = page.evaluate(TITLES) + other.evaluate(TITLES)
    assert shown == ["asks asks"]

    for each in (page, other):
        each.evaluate("window.looks = true")
    home.post("/v1/requests", {"runId": run, "question": "and now?"})
    expect(page.get_by_role("heading", name="and now?")).to_be_visible()
    assert page.evaluate(TITLES) + other.evaluate(TITLES) == shown


@pytest.mark.requirement("web:notifications", "notifications:test")
def test_a_channel_of_the_daemon_is_shown_with_its_last_delivery_and_tried(
    chromium: Browser, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/shown\n')
    program.chmod(0o755)
    config = (
        f'[daemon]\nhttp_port = {free_port()}\n{DEFAULTS}[notifications.desk]\nurl = "desktop"\n'
    )
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    with live_home(tmp_path, config=config, env=env) as home, ExitStack() as stack:
        home.wait(home.spawn("exit 3", label="fails"))
        browsers = Browsers(chromium, home, stack)
        page = browsers.at_the_page()
        page.goto(f"{page.url}system")
        panel = page.get_by_role("region", name="Notifications")
        expect(panel).to_contain_text("desk (desktop) last")
        panel.get_by_role("button", name="Send a test").click()
        expect(panel).to_contain_text("the test was taken")
        assert "A test of the channel desk: it works." in (tmp_path / "shown").read_text()
        program.write_text("#!/bin/sh\necho '<b>no</b>' >&2\nexit 1\n")
        panel.get_by_role("button", name="Send a test").click()
        expect(panel).to_contain_text("the test was not taken: ")
        expect(panel).to_contain_text("<b>no</b>")
        with pytest.raises(NotFound, match="no channel 'phone' is known"):
            home.post("/v1/notifications/phone/test")
        looking = browsers.at_the_page("viewer")
        looking.goto(f"{looking.url}system")
        expect(looking.get_by_text("You are a viewer", exact=True)).to_be_visible()
        expect(looking.get_by_role("alert")).to_have_count(0)
