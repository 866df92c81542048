"""Every page on a day with work, light and dark, at three widths: nothing that axe finds, nothing
sideways, no word cut, few nodes.

With ``WEB_PICTURES`` a picture of each is kept in that folder, the same one each time: the stage
has its own clock and ids. ``make web-pictures`` writes those that the documentation shows.
"""

import base64
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.web.conftest import Browsers
from tests.web.stage import NOW, RELEASE, SHOP, Stage, Story

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
CUT: Final = """
() => [...document.querySelectorAll("button, .button, .chip, th, h2, label, kbd, .tabs a, dt")]
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .filter((each) => !each.matches(".visually-hidden, .headline"))
  .map((each) => `${each.tagName}.${each.getAttribute("class")}: ${each.textContent}`)
"""
"""Words of ours that do not fit; what workers said may be cut where the peek has it whole."""
STEADY: Final = r"""
([home, shop]) => {
  const rules = [[/pid \d+/g, "pid 4711"], [home, shop]];
  document.querySelectorAll("input").forEach((each) => each.value = each.value.replace(home, shop));
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = rules.reduce((before, [from, to]) => before.replaceAll(from, to), node.data);
    if (text !== node.data) node.data = text;
  }
}
"""
"""Puts the same in place of what is another on each machine."""
NODES_MAX: Final = 3_000
BOUND_S: Final = 400
"""For a third of the pages, and the day before them, on a machine that is busy with other tests."""
HEIGHTS: Final = {1440: 900, 768: 1024, 320: 640}
QUALITY: Final = 82
"""Of WebP; below it thin letters get rings."""
SIZES: Final = [
    pytest.param(1440, "light"),
    pytest.param(320, "dark"),
    *(
        pytest.param(width, theme, marks=pytest.mark.tier("all"))
        for width, theme in ((1440, "dark"), (768, "light"), (768, "dark"), (320, "light"))
    ),
]


class View(NamedTuple):
    """A page, and what is pressed when it is there."""

    name: str
    place: str
    keys: str = ""
    types: str = ""


def runs_and_plans(story: Story) -> tuple[View, ...]:
    return (
        View("now", ""),
        View("runs", "runs"),
        View("plans", "plans"),
        View("plan", f"plans/{story.plan}"),
        View("schedules", "schedules"),
        View("sessions", "sessions"),
        View("session", f"sessions/{RELEASE}"),
        View("inbox", "inbox"),
    )


def one_run(story: Story) -> tuple[View, ...]:
    works, failed, asks = (f"runs/{each}" for each in (story.works, story.failed, story.asks))
    return (
        View("run", works),
        View("run-asks", asks),
        View("run-failed", failed),
        View("run-transcript", f"{works}/transcript"),
        View("run-timeline", f"{asks}/timeline"),
        View("run-tree", f"{works}/tree"),
        View("run-changes", f"{works}/changes"),
        View("run-messages", f"{asks}/messages"),
        View("run-raw", f"{works}/raw"),
        View("compare", f"compare?a={story.failed}&b={story.works}"),
    )


def all_else(_: Story) -> tuple[View, ...]:
    return (
        View("agents", "agents"),
        View("cost", "cost"),
        View("alerts", "alerts"),
        View("system", "system"),
        View("new-run", "new"),
        View("new-plan", "new?plan=1"),
        View("peek", "cost", "a"),
        View("search", "search?grep=legacy_token"),
        View("palette", "", "Control+k"),
        View("start", "", "Control+k", "> review the tests"),
        View("keys", "", "?"),
    )


def at_the_stage(
    chromium: Browser, stage: Stage, stack: ExitStack, *, width: int, theme: str
) -> Page:
    """An empty tab in which it is the stage's time."""
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": HEIGHTS[width]},
        "color_scheme": theme,
        "timezone_id": "UTC",
        "locale": "en-GB",
    }
    page = Browsers(chromium, stage.home, stack).tab(**options)
    page.clock.set_fixed_time(stage.at(NOW))
    return page


def looks_well(page: Page, view: str) -> None:
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for check in (RUN_AXE, SIDEWAYS, CUT):
        assert page.evaluate(check) == [], view
    assert page.evaluate("document.querySelectorAll('*').length") < NODES_MAX, view


def keep_picture(page: Page, name: str, stage: Stage) -> None:
    """As WebP, where somebody wants it."""
    folder = os.environ.get("WEB_PICTURES")
    if folder is None:
        return
    page.evaluate(STEADY, [str(stage.home.work), SHOP])
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": QUALITY}
    taken = session.send("Page.captureScreenshot", options)["data"]
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{name}.webp").write_bytes(base64.b64decode(taken))


@pytest.mark.requirement("web:accessible")
@pytest.mark.timeout(BOUND_S)
@pytest.mark.parametrize("views", [runs_and_plans, one_run, all_else])
@pytest.mark.parametrize(("width", "theme"), SIZES)
def test_axe_finds_nothing_on_any_page_and_nothing_is_sideways_or_cut(
    stage: tuple[Stage, Story],
    chromium: Browser,
    width: int,
    theme: str,
    views: Callable[[Story], tuple[View, ...]],
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make web")
    found, story = stage
    with ExitStack() as stack:
        page = at_the_stage(chromium, found, stack, width=width, theme=theme)
        browsers = Browsers(chromium, found.home, stack)
        origin = browsers.address().partition("#")[0]
        page.goto(f"{origin}ui/")
        if views is all_else:
            expect(page.get_by_role("heading", name="You are not logged in.")).to_be_visible()
            looks_well(page, "login")
            keep_picture(page, f"login-{width}-{theme}", found)
        browsers.open_page(page)
        page.wait_for_selector(".shell")
        for view in views(story):
            page.goto(f"{origin}ui/{view.place}")
            expect(
                page.locator("main").locator("section, ul, form, .empty, .box").first
            ).to_be_visible()
            if view.keys:
                page.keyboard.press(view.keys)
                expect(page.get_by_role("dialog")).to_be_visible()
            if view.types:
                page.keyboard.type(view.types)
                expect(page.get_by_role("region", name="This would start")).to_be_visible()
            looks_well(page, view.name)
            keep_picture(page, f"{view.name}-{width}-{theme}", found)
