"""A page that stays open: what changes around it takes neither its truth nor its buttons."""

from typing import Final

import pytest
from playwright.sync_api import Route, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

LISTS_FAIL: Final = """
const real = window.fetch;
window.fails = {slow: false, until: 0};
const slowly = (signal) => new Promise((done, fail) => {
  setTimeout(done, 1_500);
  signal?.addEventListener("abort", () => fail(signal.reason));
});
const beats = () => new Response(new ReadableStream({
  start(stream) {
    const say = (text) => stream.enqueue(new TextEncoder().encode(text));
    let seq = 1_000;
    say(`id: ${seq}\\n\\n`);
    setInterval(() => {
      seq += 1;
      say(`id: ${seq}\\nevent: run\\ndata: {"seq": ${seq}, "runId": "r-other"}\\n\\n`);
    }, 200);
  },
}));
window.fetch = async (path, options) => {
  if (window.beats && String(path).startsWith("/v1/events")) return beats();
  if (!String(path).startsWith("/v1/runs?phase")) return real(path, options);
  if (window.fails.slow) await slowly(options.signal);
  if (performance.now() < window.fails.until) return new Response("{}", {status: 503});
  return real(path, options);
};
"""
REORDERED: Final = """
() => {
  const text = JSON.stringify({saved: [], theme: "dark", ofAnotherVersion: 1});
  localStorage.setItem("subagents:preferences", text);
  return text;
}
"""

LOCKS: Final = """
async () => {
  const {held, pending} = await navigator.locks.query();
  const ours = ({name}) => name === "subagents:stream";
  return [held.find(ours)?.clientId, pending.filter(ours).length];
}"""
HIDDEN: Final = """
() => {
  Object.defineProperty(document, "hidden", {get: () => true});
  document.dispatchEvent(new Event("visibilitychange"));
}
"""
LEADS_NOW: Final = f"async (before) => (await ({LOCKS})())[0] !== before"


@pytest.mark.requirement("web:tabs")
def test_of_tabs_in_sight_one_leads_and_each_stands_in_line_once(browsers: Browsers) -> None:
    first = browsers.at_the_page()
    second = first.context.new_page()
    second.goto(first.url)
    expect(second.get_by_role("heading", name="Now", level=1)).to_be_visible()
    for _ in range(3):
        for page in (first, second):
            leader, _ = page.evaluate(LOCKS)
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            page.wait_for_function(LEADS_NOW, arg=leader)
    leader, in_line = first.evaluate(LOCKS)
    assert in_line <= 2
    second.evaluate(HIDDEN)
    first.wait_for_function(LEADS_NOW, arg=leader)


@pytest.mark.requirement("web:tabs")
def test_who_logs_in_anew_in_another_tab_can_still_act_in_the_first(
    home: LiveHome, browsers: Browsers
) -> None:
    home.wait(home.spawn("exit 3", label="broke"))
    first = browsers.at_the_page()
    browsers.open_page(first.context.new_page())
    first.get_by_role("button", name="mark as read").click()
    expect(first.get_by_text("Nothing needs you")).to_be_visible()


@pytest.mark.requirement("web:tabs")
def test_what_another_tab_prefers_is_not_written_again(browsers: Browsers) -> None:
    first = browsers.at_the_page()
    other = first.context.new_page()
    other.goto(f"{first.url}assets/none.js")
    written = other.evaluate(REORDERED)
    expect(first.locator("html")).to_have_attribute("data-theme", "dark")
    assert other.evaluate("localStorage.getItem('subagents:preferences')") == written


@pytest.mark.requirement("web:live")
def test_slow_answers_come_although_runs_change_all_the_time(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.tab()
    page.add_init_script(f"window.beats = true;{LISTS_FAIL}")
    browsers.open_page(page)
    expect(page.get_by_text("No runs yet")).to_be_visible()
    page.evaluate("window.fails.slow = true")
    run = home.spawn("sleep 600", label="newcomer")
    home.until_phase(run, "running")
    expect(page.get_by_role("link", name="newcomer")).to_be_visible()


@pytest.mark.requirement("web:live")
def test_what_the_daemon_cannot_answer_now_is_asked_again(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.tab()
    page.add_init_script(LISTS_FAIL)
    browsers.open_page(page)
    expect(page.get_by_text("No runs yet")).to_be_visible()
    page.evaluate("window.fails.until = performance.now() + 3_000")
    run = home.spawn("sleep 600", label="newcomer")
    home.until_phase(run, "running")
    expect(page.get_by_role("link", name="newcomer")).to_be_visible()


@pytest.mark.requirement("web:live")
def test_what_ended_last_is_shown_also_when_it_was_spawned_long_before(
    home: LiveHome, browsers: Browsers
) -> None:
    long = home.spawn("sleep 600", label="long")
    home.until_phase(long, "running")
    home.wait(*(home.spawn("quick", agent="quick") for _ in range(31)))
    home.post(f"/v1/runs/{long}/cancel", {})
    home.wait(long)
    page = browsers.at_the_page()
    ended = page.get_by_role("region", name="just ended")
    expect(ended.get_by_role("link").nth(1)).to_have_text("long")


@pytest.mark.requirement("web:live")
def test_a_part_that_does_not_come_any_more_takes_nothing_else_along(browsers: Browsers) -> None:
    page = browsers.tab()
    page.route("**/assets/start-task-*.js", lambda route: route.abort())
    browsers.open_page(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("> fix it")
    expect(page.get_by_role("alert")).to_contain_text("This could not be shown")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Now", level=1)).to_be_visible()


@pytest.mark.requirement("web:live")
def test_the_page_of_another_version_says_so_and_how_to_get_the_new_one(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.at_the_page()
    own = home.get("/version")
    expect(page.get_by_text(f"daemon {own['version']}")).to_be_visible()

    def updated(route: Route) -> None:
        route.fulfill(json={**own, "version": "99.0"})

    page.route("**/version", updated)
    home.restart_after_kill()
    expect(page.get_by_text(f"this page is of {own['version']}")).to_be_visible()
    page.unroute("**/version")
    page.get_by_role("link", name="load it again").click()
    expect(page.get_by_text("this page is of")).to_have_count(0)


@pytest.mark.requirement("web:live")
def test_a_retry_that_was_waited_for_takes_nobody_from_another_page(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("exit 3", label="broke")
    home.wait(run)
    page = browsers.at_the_page()
    page.goto(f"{page.evaluate('location.origin')}/ui/runs/{run}")
    expect(page.get_by_role("heading", name="broke", level=1)).to_be_visible()
    page.clock.install()
    page.keyboard.press("r")
    expect(page.get_by_text("will be started again in 5 s").last).to_be_visible()
    page.get_by_role("link", name="Alerts").first.click()
    expect(page.get_by_role("heading", name="Alerts", level=1)).to_be_visible()
    page.clock.run_for(6_000)
    expect(page.get_by_text("was started again as").last).to_be_visible()
    expect(page.get_by_role("heading", name="Alerts", level=1)).to_be_visible()


@pytest.mark.requirement("web:tabs")
def test_what_stands_in_an_address_is_what_was_written(home: LiveHome, browsers: Browsers) -> None:
    home.wait(home.spawn("true", label="of-main"))
    page = browsers.at_the_page()
    page.get_by_role("link", name="Sessions").first.click()
    page.get_by_role("link", name="agent:main:main").click()
    expect(page.get_by_role("heading", name="agent:main:main", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="of-main").first).to_be_visible()
    page.get_by_role("link", name="Runs").first.click()
    page.get_by_label("filter:").fill("100%41 & 50%")
    expect(page.get_by_text("No run fits 100%41 & 50%")).to_be_visible()
    page.reload()
    expect(page.get_by_label("filter:")).to_have_value("100%41 & 50%")


@pytest.mark.requirement("web:live")
def test_a_double_click_starts_one(home: LiveHome, browsers: Browsers) -> None:
    home.wait(home.spawn("exit 3", label="broke"))
    page = browsers.at_the_page()
    page.get_by_role("button", name="Retry").dblclick()
    expect(page.get_by_text("was started again as").last).to_be_visible()
    page.get_by_role("button", name="mark as read").first.click()
    expect(page.get_by_text("as read").last).to_be_visible()
    assert len(home.get("/v1/runs")["runs"]) == 2
