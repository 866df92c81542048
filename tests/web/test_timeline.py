"""Where a run's time, tokens and money went, call by call."""

import json
from typing import Final

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers

ENDED: Final = {"name": "Bash", "id": "1", "status": "ended", "durationMs": 62_000, "exitCode": 1}
BEGUN: Final = {"name": "<b>Edit</b>", "id": "2", "status": "started", "input": {"path": "a.py"}}
USED: Final = {"tokensIn": 1_000, "tokensOut": 200}


def printed(kind: str, **fields: object) -> str:
    return f"printf '%s\\n' '{json.dumps({'subagents': kind, **fields})}'"


@pytest.mark.requirement("web:tool-calls")
def test_each_tool_call_has_its_time_and_what_was_used_and_unknown_is_not_0(
    home: LiveHome, browsers: Browsers
) -> None:
    ended = printed("tool", **ENDED, input={"command": "make"})
    rest = f"{printed('usage', **USED)}; {printed('tool', **BEGUN)}; sleep 600"
    run = home.spawn(f"{ended}; until test -e go; do sleep 0.05; done; {rest}")
    until(lambda: "make" in str(home.get(f"/v1/runs/{run}/log")["lines"][2:]), what="the call")
    (home.work / "go").touch()
    page = browsers.at_the_page()
    page.goto(f"{page.url}runs/{run}/timeline")
    calls = page.get_by_role("group", name="tool calls").get_by_role("row")
    expect(calls).to_have_count(3)
    expect(calls.nth(1)).to_have_text("Bash make1 m 02 s??")
    expect(calls.nth(2).get_by_role("cell").nth(3)).to_have_text("1.2k")
    expect(calls.nth(2).get_by_role("cell").nth(4)).to_have_text("?")
    expect(calls.nth(2)).to_contain_text("<b>Edit</b>")

    calls.nth(1).get_by_role("link").click()
    expect(page.locator(".logline.marked")).to_contain_text("make")
