"""The real Claude Code asks whether it may; a person answers on a phone, whatever was killed."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.claude_place import program
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until
from tests.e2e.program_setups import CLAUDE
from tests.e2e.runtime_cells import RUN_S
from tests.e2e.scripted_model import Say, ScriptedModel, Use
from tests.free_ports import free_port
from tests.web.conftest import Browsers

WIDTH: Final = 390
ASKING: Final = replace(CLAUDE, options={"ask": True})

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[LiveHome, ScriptedModel]]:
    with ScriptedModel({}) as model:
        ASKING.prepare(model.url, tmp_path / "setup")
        config = ASKING.config(model.url, tmp_path / "setup") + DEFAULTS
        config += f"\n[daemon]\nhttp_port = {free_port()}\n"
        with live_home(tmp_path, config=config) as home:
            yield home, model


def asked(home: LiveHome, run_id: str, times: int = 1) -> bool:
    requests = home.show(run_id)["requests"]
    return len(requests) == times and requests[-1]["status"] == "pending"


def what_it_makes(home: LiveHome, model: ScriptedModel) -> Path:
    """The file for which ``script:asking`` must ask."""
    made = home.work / "made"
    model.scripts["asking"] = [
        Use("Bash", {"command": f"touch {made}"}),
        lambda seen: Say(f"made {made.exists()}"),
    ]
    return made


def on_a_phone(chromium: Browser, home: LiveHome, stack: ExitStack) -> Page:
    browsers = Browsers(chromium, home, stack)
    return browsers.at_the_page(viewport={"width": WIDTH, "height": 800}, has_touch=True)


@pytest.mark.requirement("claude-worker:e2e:permission")
def test_what_was_asked_before_daemon_and_worker_were_killed_is_allowed_on_a_phone(
    place: tuple[LiveHome, ScriptedModel], chromium: Browser
) -> None:
    home, made = place[0], what_it_makes(*place)
    run_id = home.spawn("script:asking", agent="claude", retryCount=1, retryDelay=0)
    until(lambda: asked(home, run_id), what="the question", within_s=RUN_S)
    worker = home.worker_pid(run_id)
    home.kill()
    os.kill(worker, signal.SIGKILL)
    home.start()
    until(lambda: asked(home, run_id, 2), what="its next attempt asks again", within_s=RUN_S)
    with ExitStack() as stack:
        page = on_a_phone(chromium, home, stack)
        question = page.get_by_role("heading", name=f"May it use Bash? touch {made}")
        expect(question).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == WIDTH
        page.get_by_role("radio", name="once").tap()
        page.get_by_role("button", name="Answer").tap()
        (done,) = home.finish(run_id, timeout_s=RUN_S)
        assert done["result"] == "made True", done
        expect(question).to_have_count(0)


@pytest.mark.requirement("permissions:for-agent")
def test_what_is_allowed_for_the_agent_is_not_asked_in_its_next_run_until_it_is_revoked(
    place: tuple[LiveHome, ScriptedModel], chromium: Browser
) -> None:
    home, made = place[0], what_it_makes(*place)
    first = home.spawn("script:asking", agent="claude")
    until(lambda: asked(home, first), what="the question", within_s=RUN_S)
    with ExitStack() as stack:
        page = on_a_phone(chromium, home, stack)
        page.get_by_role("radio", name="for this agent").tap()
        page.get_by_role("button", name="Answer").tap()
        expect(page.get_by_role("heading", name="May it use Bash?")).to_have_count(0)
        home.kill()
    home.start()
    assert home.finish(first, timeout_s=RUN_S)[0]["result"] == "made True"
    made.unlink()

    second = home.spawn("script:asking", agent="claude")
    assert home.finish(second, timeout_s=RUN_S)[0]["result"] == "made True"
    assert home.show(second)["requests"] == []

    with ExitStack() as stack:
        page = on_a_phone(chromium, home, stack)
        page.goto(page.url.partition("/ui")[0] + "/ui/agents")
        panel = page.locator("section", has_text="Used without asking")
        expect(panel).to_contain_text(f"Bash: touch {made}")
        assert page.evaluate("document.documentElement.scrollWidth") == WIDTH
        panel.get_by_role("button", name="Revoke").tap()
        expect(panel).to_have_count(0)
    third = home.spawn("script:asking", agent="claude")
    until(lambda: asked(home, third), what="the question again", within_s=RUN_S)
    home.post(f"/v1/runs/{third}/cancel")
