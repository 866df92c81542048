"""Two attempts or two runs beside each other, by an address that can be sent to somebody."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

TASK: Final = "echo same; test -e flag && echo '<i>new</i>' && exit; touch flag; echo old; exit 3"
CHECK: Final = {"commands": ["test -e flag"]}


def cells(page: Page, row: str) -> list[str]:
    found = page.get_by_role("row").filter(has=page.get_by_role("cell", name=row, exact=True))
    return found.get_by_role("cell").all_inner_texts()[1:]


@pytest.mark.requirement("web:compare")
def test_two_runs_that_were_chosen_are_compared_and_what_only_one_says_is_marked(
    home: LiveHome, browsers: Browsers
) -> None:
    first = home.spawn(TASK, label="first")
    home.wait(first)
    second = home.spawn(TASK, label="second", verification={**CHECK, "fresh": False})
    home.wait(second)
    page = browsers.at_the_page()
    page.goto(f"{page.url}runs")
    for label in ("first", "second"):
        page.get_by_role("checkbox", name=f"choose {label}").check()
    page.get_by_role("link", name="Compare").click()

    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    expect(page).to_have_url(f"{page.evaluate('location.origin')}/ui/compare?a={first}&b={second}")
    expect(page.locator(".diff div")).to_have_text(["same", "-old", "+<i>new</i>"])
    assert cells(page, "exit code") == ["3", "0"]
    assert cells(page, "cost") == ["not reported", "not reported"]
    assert cells(page, "contract") == ["–", "1 of 1 check passed"]
    assert cells(page, "label") == ["first", "second"]


@pytest.mark.requirement("web:compare")
def test_the_last_two_attempts_of_a_run_are_one_click_from_it(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn(TASK, label="again", retryCount=1)
    home.wait(run)
    page = browsers.at_the_page()
    page.goto(f"{page.url}runs/{run}")
    page.get_by_role("link", name="compare the last two").click()
    expect(page.get_by_text("attempts of one run have the same")).to_be_visible()
    assert cells(page, "exit code") == ["3", "0"]
    page.reload()
    expect(page.get_by_label("attempt of the first")).to_have_value(f"{run}#1")
    page.get_by_label("attempt of the first").select_option("attempt 2")
    expect(page.get_by_text("the same", exact=True)).to_be_visible()
