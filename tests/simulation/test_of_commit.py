"""Which seeds each commit tries."""

import pytest
from tests.simulation.of_commit import SEEDS, WITHOUT_GIT, commit, seeds_of_commit

ONE, OTHER = "a" * 40, "b" * 40


@pytest.mark.requirement("simulator:seeds-of-commit")
def test_the_seeds_of_a_commit_are_its_own_and_in_a_row() -> None:
    seeds = seeds_of_commit(50, ONE)

    assert len(seeds) == 50
    assert seeds.start == int(ONE, 16) % SEEDS
    assert set(seeds).isdisjoint(seeds_of_commit(50, OTHER))


@pytest.mark.requirement("simulator:seeds-of-commit")
def test_where_there_is_no_git_the_choice_is_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    commit.cache_clear()
    try:
        assert commit() == WITHOUT_GIT
        assert seeds_of_commit(10) == seeds_of_commit(10, WITHOUT_GIT)
    finally:
        commit.cache_clear()
