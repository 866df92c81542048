"""The measure of what one must know, and its budgets."""

from pathlib import Path

import pytest
from scripts import house


@pytest.mark.requirement("house:budgets")
def test_the_core_and_every_extension_keep_to_their_lines() -> None:
    assert list(house.exceeded()) == []


@pytest.mark.requirement("house:budgets")
def test_no_budget_is_of_something_that_is_not_there() -> None:
    assert house.budgets().keys() == house.lines().keys()


@pytest.mark.requirement("house:budgets")
def test_a_part_that_grew_over_its_budget_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(house, "budgets", lambda: {"core": 1, "web": 10**6})
    monkeypatch.setattr(house, "lines", lambda: {"core": 1_004, "web": 5, "new": 7})

    assert list(house.exceeded()) == [
        (
            "core has 1,004 lines, 1,003 more than its budget in [tool.house.lines]: shorten or"
            " move something, or write a decision for a rise"
        ),
        "new has 7 lines and no budget in [tool.house.lines]",
    ]


@pytest.mark.requirement("house:words")
def test_words_for_users_are_those_that_somebody_wrote_outside_of_the_project_section(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n\n<!-- not run: why -->\n\nthree\n\n<!-- x: drawn -->\n\nnot these\n\n"
        "<!-- end of x -->\n\nfour\n"
    )
    assert house.word_count(page) == 10

    monkeypatch.setattr(house, "lines", dict)
    monkeypatch.setattr(house, "words", lambda: {"Home": 60_001, house.FOR_MAKERS: 9})
    assert list(house.exceeded()) == [
        "the pages for users have 60,001 words, 1 more than they may have"
    ]


@pytest.mark.requirement("house:extensions")
def test_no_module_of_the_core_imports_an_extension_and_none_another_one() -> None:
    imports = list(house.imports())
    found = {each for each in imports if each[0] == house.CORE or each[1] not in house.SHARED}

    assert found == set()
