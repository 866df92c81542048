"""Text of workers in the page: shown as it is, never obeyed."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

MARKUP: Final = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
TURNED: Final = "rtl-\u202egnp.exe"
PRINTS: Final = (
    r"printf '<b>bold</b> \033[31mred\033[0m javascript:alert(1) https://example.org/x\n';"
    r" printf '\342\200\256turned \000\n'; exit 3"
)
HARMED: Final = """
() => [window.hacked ?? 0, document.querySelectorAll("main img, main script, main b.x").length,
       document.querySelectorAll("[style]").length]
"""
WATCH: Final = """
() => {
  window.violations = [];
  addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI));
}
"""


@pytest.mark.requirement("web:hostile-text")
def test_markup_and_marks_of_a_worker_are_text_on_every_tab(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn(f"{PRINTS} # {MARKUP}", label=MARKUP, agent="command")
    other = home.spawn("echo ok", label=TURNED, agent="command")
    home.wait(run, other)
    page = browsers.at_the_page()
    page.evaluate(WATCH)

    expect(page.get_by_text("<img src=x onerror").first).to_be_visible()
    expect(page.locator(".mark", has_text="U+202E").first).to_be_visible()
    page.get_by_role("link", name="<img src=x").first.click()
    for tab in ("Overview", "Transcript", "Timeline", "Tree", "Messages", "Raw"):
        page.get_by_role("navigation", name="about this run").get_by_role("link", name=tab).click()
        expect(page.locator(".tab .panel, .tab .log").first).to_be_visible()
    _looks_harmless(page)


@pytest.mark.requirement("web:hostile-text")
def test_a_transcript_shows_colours_as_classes_and_only_web_addresses_as_links(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn(PRINTS, agent="command")
    home.wait(run)
    page = browsers.at_the_page()
    page.evaluate(WATCH)
    page.goto(f"{_origin(page)}/ui/runs/{run}/transcript")

    log = page.get_by_role("log")
    expect(log.get_by_text("<b>bold</b>").last).to_be_visible()
    expect(log.locator(".mark", has_text="U+202E").last).to_be_visible()
    assert set(log.get_by_role("link").all_inner_texts()) == {"https://example.org/x"}
    _looks_harmless(page)


def _origin(page: Page) -> str:
    return str(page.evaluate("location.origin"))


def _looks_harmless(page: Page) -> None:
    assert page.evaluate(HARMED) == [0, 0, 0]
    assert page.evaluate("window.violations ?? []") == []
