"""What a search of a transcript found, in the lines where it was found."""

import pytest
from playwright.sync_api import expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

PRINTS = "echo 'see https://example.org/error?id=1'; echo '😀 an Error'; echo nothing"


@pytest.mark.requirement("web:transcript-search")
def test_what_matched_is_marked_also_within_a_link_and_behind_an_emoji(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn(f"cat >/dev/null <<'END'\nEND\n{PRINTS}")
    home.wait(run)
    page = browsers.at_the_page()
    page.goto(f"{page.evaluate('location.origin')}/ui/runs/{run}/transcript")
    log = page.get_by_role("log")
    expect(log.get_by_text("nothing", exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("(?i)error")
    expect(log.locator(".text mark")).to_have_text(["error", "Error"])
    link = log.locator(".text .said").get_by_role("link")
    expect(link).to_have_attribute("href", "https://example.org/error?id=1")
    expect(log.get_by_text("nothing", exact=True)).to_have_count(0)

    page.keyboard.press("Control+a")
    page.keyboard.type("(")
    expect(page.get_by_role("alert")).to_contain_text("grep: missing )")


@pytest.mark.requirement("web:transcript-copy")
def test_copy_takes_all_lines_and_one_step_of_the_wheel_leaves_the_end(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("seq 1 600")
    home.wait(run)
    page = browsers.at_the_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{page.evaluate('location.origin')}/ui/runs/{run}/transcript")
    log = page.get_by_role("log")
    expect(log.get_by_text("600", exact=True).first).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied").first).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert set(map(str, range(1, 601))) <= set(copied)

    log.hover()
    page.mouse.wheel(0, -800)
    expect(page.get_by_role("checkbox", name="follow")).not_to_be_checked()


@pytest.mark.requirement("web:transcript-address")
def test_the_address_has_the_filter_and_the_line_and_a_download_has_all_lines(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("seq -f 'row %g' 1 600")
    home.wait(run)
    page = browsers.at_the_page()
    at = f"{page.evaluate('location.origin')}/ui/runs/{run}/transcript"
    page.goto(f"{at}?grep=row 33.$&type=text")
    log = page.get_by_role("log")
    expect(page.get_by_label("types of lines")).to_have_value("text")
    expect(log.locator(".logline")).to_have_count(10)
    log.locator(".logline", has_text="row 333").get_by_role("link").click()

    marked = log.locator(".logline.marked")
    expect(marked.get_by_text("row 333", exact=True)).to_be_in_viewport()
    expect(page.get_by_text("row 600", exact=True)).to_have_count(0)
    page.reload()
    expect(marked.get_by_text("row 333", exact=True)).to_be_in_viewport()
    expect(page.get_by_role("checkbox", name="follow")).not_to_be_checked()

    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == f"{run}.log"
    assert {f"row {each}" for each in range(1, 601)} <= set(
        saved.value.path().read_text().splitlines()
    )
