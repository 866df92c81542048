"""What needs somebody: folded to causes, the newest first, with what depended on each below it."""

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers


@pytest.mark.requirement("web:causes")
def test_failures_are_folded_to_causes_with_what_depended_on_them(
    home: LiveHome, browsers: Browsers
) -> None:
    home.wait(*(home.spawn(f"exit {code}", label=f"single-{code}") for code in range(10, 16)))
    broken = "echo starting; echo 'error: disk full' >&2; exit 1"
    specs = [
        {"task": broken, "label": "build", "agentId": "sh"},
        {"task": broken, "label": "docs", "agentId": "sh"},
        {"task": "true", "label": "ship", "agentId": "sh", "dependsOn": ["build"]},
        {"task": "true", "label": "announce", "agentId": "sh", "dependsOn": ["ship"]},
    ]
    plan = home.post("/v1/plans", {"specs": specs, "name": "p", "cwd": str(home.work)})
    home.wait(*(each["runId"] for each in plan["receipts"]))
    page = browsers.at_the_page()
    needs = page.get_by_role("region", name="needs you")
    lines = needs.get_by_role("listitem").filter(
        has=page.get_by_role("button", name="mark as read")
    )
    expect(lines).to_have_count(6)
    expect(lines.first).to_contain_text("exit code 1: error: disk full")
    expect(lines.first).to_contain_text("and 1 other like it, 2 depend on it")
    expect(lines.nth(1)).to_contain_text("single-")

    for key in ("j", "Enter"):
        page.keyboard.press(key)
    for label in ("ship", "announce"):
        expect(lines.first.get_by_role("link", name=label)).to_be_visible()
    needs.get_by_role("button", name="1 more").click()
    expect(lines).to_have_count(7)

    lines.first.get_by_role("button", name="mark as read").click()
    expect(page.get_by_text("Marked 4 results as read").last).to_be_visible()
    page.keyboard.press("z")
    lines.first.get_by_role("button", name="Retry plan").click()
    expect(page.get_by_text("Started 4 runs again").last).to_be_visible()
