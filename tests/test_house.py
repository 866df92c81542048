"""The measure of what one must know, and its budgets."""

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


@pytest.mark.requirement("house:extensions")
def test_no_module_of_the_core_imports_an_extension_and_none_another_one() -> None:
    found = {each for each in house.imports() if each[1] != "conversation"}
    found |= {each for each in house.imports() if each[0] == house.CORE}

    assert found == set()
