"""Fifteen things that people come for, each from the page they would be on: none over five actions.

An action is a click, a key, a choice of a list or some words that are typed. With ``-s`` each is
printed with its actions and its seconds in the browser, which are judged by nobody here.
"""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from tests.e2e.live_home import LiveHome, until
from tests.web.conftest import Browsers

from subagents.client.client import Client

ACTIONS_MAX: Final = 5
TABS: Final = 20
PLACES: Final = ("", "runs", "plans", "inbox", "cost", "schedules", "agents", "system", "alerts")
SPENDS: Final = """echo '{"subagents": "usage", "costUsd": %s}'"""
TWICE: Final = "test -e flag && exit; touch flag; echo 'ImportError: cart' >&2; exit 3"
AT_ONCE: Final = """
async (link) => {
  const begun = performance.now();
  link.click();
  while (document.querySelector("h1")?.textContent !== link.textContent) {
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - begun;
}
"""


class Hand:
    """Somebody at one page, whose actions are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.actions = 0
        self.told: list[str] = []

    def click(self, role: str, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        self.actions += 1
        (within or self.page).get_by_role(role, name=name).first.click()  # type: ignore[arg-type]

    def press(self, *keys: str) -> None:
        for each in keys:
            self.actions += 1
            self.page.keyboard.press(each)

    def write(self, words: str) -> None:
        self.actions += 1
        self.page.keyboard.type(words)

    def choose(self, field: str, option: str) -> None:
        self.actions += 1
        self.page.get_by_label(field, exact=True).select_option(label=option)

    @contextmanager
    def task(self, name: str, place: str = "") -> Iterator[Page]:
        self.page.goto(f"{self.page.evaluate('location.origin')}/ui/{place}")
        expect(self.page.get_by_role("heading", level=1)).to_have_count(1)
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)
        self.actions, begun = 0, time.monotonic()
        yield self.page
        seconds = time.monotonic() - begun
        self.told.append(f"{name:<34} {self.actions} {seconds:5.1f} s")
        assert self.actions <= ACTIONS_MAX, name


def a_day(home: LiveHome) -> None:
    """Runs of every kind that the tasks are about."""
    home.wait(home.spawn("echo collecting; echo 'no such module: tax' >&2; exit 2", label="bad"))
    home.wait(home.spawn(TWICE, label="twice", retryCount=1))
    home.wait(*(home.spawn(SPENDS % usd, label=f"usd-{usd}") for usd in (0.5, 3.5, 1)))
    contract = {"artifacts": [{"path": "said.txt"}]}
    home.wait(home.spawn("echo a > said.txt; echo the needle", verification=contract))
    first = home.spawn("while sleep 0.2; do echo line $((n=n+1)); done", label="talks")
    home.spawn("true", label="later", dependsOn=[first])
    above = home.spawn("sleep 600", label="above")
    for run in (first, above):
        home.until_phase(run, "running")
    me = {name.lower(): value for name, value in home.as_worker(above).items()}
    with Client(home.paths.socket, headers=me) as client:
        client.post("/v1/runs", home.spawn_body("sleep 600", label="below"))
    spec = {"task": "true", "agentId": "sh"}
    body = {"name": "nightly", "when": "0 3 * * *", "cwd": str(home.work), "specs": [spec]}
    home.post("/v1/schedules", body)


def act(hand: Hand, home: LiveHome) -> None:
    rows = hand.page.get_by_role("treegrid", name="runs").get_by_role("row")
    with hand.task("why did it fail") as page:
        hand.click("link", "bad")
        expect(page.get_by_text("no such module: tax").first).to_be_visible()
    run = str(home.get("/v1/runs", label="above")["runs"][0]["runId"])
    asked = home.post("/v1/requests", {"runId": run, "question": "which?", "options": ["a", "b"]})
    with hand.task("answer, from another page", "cost") as page:
        expect(page.get_by_role("button", name="1 question")).to_be_visible()
        hand.press("a")
        expect(page.get_by_role("listitem", name="asks: above")).to_be_focused()
        hand.press("2", "Enter")
        until(lambda: home.get(f"/v1/requests/{asked['requestId']}")["answer"] == "b", what="b")
    with hand.task("the costliest run today") as page:
        hand.click("link", "Runs")
        hand.click("link", "Today")
        hand.choose("sorted by", "costliest first")
        expect(rows.nth(1)).to_contain_text("usd-3.5")
    with hand.task("cancel a subtree") as page:
        hand.click("link", "above")
        hand.click("button", "Cancel")
        expect(page.get_by_text("above and 1 run below it will be cancelled").first).to_be_visible()
        assert home.wait(run)["completed"][0]["outcome"]["status"] == "cancelled"


def go_on(hand: Hand, _: LiveHome) -> None:
    rows = hand.page.get_by_role("treegrid", name="runs").get_by_role("row")
    with hand.task("compare two attempts") as page:
        hand.click("link", "twice")
        hand.click("link", "compare the last two")
        expect(page.get_by_text("attempts of one run have the same")).to_be_visible()
    with hand.task("retry all that failed in a time") as page:
        hand.click("link", "Runs")
        hand.click("link", "Failed")
        hand.choose("spawned", "today")
        expect(rows).to_have_count(2)
        hand.press("V")
        hand.click("button", "Retry 1")
        expect(page.get_by_text("was started again as").first).to_be_visible()
    with hand.task("a new run with a contract") as page:
        hand.press("c")
        expect(page.get_by_label("task", exact=True)).to_be_focused()
        hand.write("echo b > said.txt")
        hand.click("button", "Add a check")
        hand.write("said.txt")
        expect(page.get_by_role("region", name="This would start")).to_contain_text("artifact")
        hand.click("button", "Start it")
        expect(page.get_by_role("heading", level=1)).to_contain_text("echo b")
    with hand.task("the same again, in the box") as page:
        hand.press("Control+k")
        hand.write("> echo c > said.txt")
        expect(page.get_by_role("region", name="This would start")).to_contain_text("artifact")
        hand.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("echo c")
    with hand.task("follow a log") as page:
        hand.click("link", "talks")
        hand.click("link", re.compile("transcript"))
        expect(page.get_by_role("log").get_by_text(re.compile(r"line \d+")).last).to_be_visible()


def look(hand: Hand, _: LiveHome) -> None:
    with hand.task("the unreliable agent") as page:
        hand.click("link", "Agents")
        expect(page.get_by_role("group", name="agents").get_by_text("% of")).not_to_have_count(0)
    with hand.task("what waits, and why") as page:
        expect(page.get_by_role("region", name="waiting")).to_contain_text("talks")
    with hand.task("pause a schedule") as page:
        hand.click("link", "Schedules")
        hand.click("button", "Pause")
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
    with hand.task("a word in any transcript") as page:
        hand.press("Control+k")
        hand.write("the needle")
        hand.click("option", "in transcripts")
        expect(page.get_by_role("list").get_by_text("the needle").first).to_be_visible()
    with hand.task("cost of this week by agent") as page:
        hand.click("link", "Cost")
        hand.choose("how far back", "7 days")
        expect(page.get_by_role("group", name="groups")).to_contain_text("$5.00")


@pytest.mark.requirement("web:tasks")
@pytest.mark.timeout(400)
def test_fifteen_everyday_tasks_take_at_most_five_actions_each(
    home: LiveHome, browsers: Browsers
) -> None:
    a_day(home)
    hand = Hand(browsers.at_the_page())
    for part in (act, go_on, look):
        part(hand, home)
    with hand.task("a second reader's link") as page:
        hand.click("link", "System")
        hand.click("button", "Make a link for a reader")
        link = page.locator(".command code", has_text="#k=").inner_text()
    reader = browsers.tab()
    browsers.open_page(reader, link)
    expect(reader.get_by_text("You are a viewer: you may look.").first).to_be_visible()
    phone = Hand(browsers.at_the_page(viewport={"width": 390, "height": 800}, has_touch=True))
    home.post("/v1/requests", {"runId": first_of(home, "talks"), "question": "now?"})
    with phone.task("act on a phone") as page:
        expect(page.get_by_role("heading", name="now?")).to_be_visible()
        phone.click("button", "Deny")
        expect(page.get_by_role("heading", name="now?")).to_have_count(0)
    told = [*hand.told, *phone.told]
    assert len(told) == 16
    sys.stdout.write("\n".join(("", "task, actions, seconds", *told, "")))


def first_of(home: LiveHome, label: str) -> str:
    return str(home.get("/v1/runs", label=label)["runs"][0]["runId"])


@pytest.mark.requirement("web:tabs")
@pytest.mark.tier("all")
@pytest.mark.timeout(400)
def test_with_twenty_tabs_of_one_browser_every_click_still_gets_its_answer(
    home: LiveHome, browsers: Browsers
) -> None:
    """Seven of them with a live transcript, each of which once held a connection of six."""
    talks = [home.spawn("echo hello; sleep 600", label=f"talks-{at}") for at in range(7)]
    for run in talks:
        home.until_phase(run, "running")
    first = browsers.at_the_page()
    context: BrowserContext = first.context
    origin = first.evaluate("location.origin")
    places = [f"runs/{run}/transcript" for run in talks]
    places += [PLACES[at % len(PLACES)] for at in range(TABS - 1 - len(places))]
    tabs = [first]
    for place in places:
        tab = context.new_page()
        tab.goto(f"{origin}/ui/{place}")
        expect(tab.get_by_role("heading", level=1)).to_have_count(1)
        tabs.append(tab)
    took = []
    for tab in tabs:
        tab.bring_to_front()
        for name in ("Plans", "Cost"):
            link = tab.get_by_role("navigation", name="pages").get_by_role("link", name=name).first
            took.append(float(link.evaluate(AT_ONCE)))
            expect(tab.locator("[aria-busy=true]")).to_have_count(0)
    took.sort()
    told = f"median {took[len(took) // 2]:.0f} ms, worst {took[-1]:.0f} ms"
    sys.stdout.write(f"\n{len(took)} clicks in {TABS} tabs: {told}\n")


@pytest.mark.requirement("web:tabs")
def test_code_of_other_pages_is_fetched_ahead_and_a_click_waits_for_none(
    browsers: Browsers,
) -> None:
    page = browsers.at_the_page()
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some((each) => /new-run-/.test(each.name))"
    )
    expect(page.get_by_role("link", name="New run")).to_be_visible()
    page.route("**/assets/*", lambda route: route.abort())
    for name in ("Runs", "Plans", "Schedules", "Cost", "System"):
        page.get_by_role("navigation", name="pages").get_by_role("link", name=name).first.click()
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
