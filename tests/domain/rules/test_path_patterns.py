"""What a pattern of a contract matches."""

import pytest

from subagents.domain.rules.path_patterns import PARTS_MAX, pattern_of
from subagents.errors import ContractError


@pytest.mark.requirement("contract:patterns")
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("out/*.csv", ["out/a.csv", "./out/.csv"[2:]], ["out/x/a.csv", "a.csv", "out/a.csvx"]),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py/b"]),
        ("src/**", ["src/a", "src/a/b"], ["srcs/a"]),
        ("src/**/t/?.x", ["src/t/a.x", "src/1/2/t/b.x"], ["src/t/ab.x", "src/t/1/a.x"]),
        ("[!a]*", ["b"], ["a", "b/c"]),
        ("a.b", ["a.b"], ["axb"]),
        ("./out//x", ["out/x"], ["x"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_names_are_matched_one_by_one(pattern: str, yes: list[str], no: list[str]) -> None:
    found = pattern_of(pattern, field="path")
    assert [path for path in yes if not found.matches(path)] == []
    assert [path for path in no if found.matches(path)] == []


@pytest.mark.requirement("contract:patterns")
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("tests", ["tests", "tests/a/b"], ["testsuite/a", "x/tests"]),
        ("tests/", ["tests/a"], ["test"]),
        ("src/*", ["src/p", "src/p/q"], ["src"]),
        ("*.lock", ["a.lock"], ["b/a.lock"]),
        (".", ["a", "a/b"], []),
    ],
)
def test_a_directory_stands_for_all_below_it(pattern: str, yes: list[str], no: list[str]) -> None:
    found = pattern_of(pattern, field="path", whole_directories=True)
    assert [path for path in yes if not found.matches(path)] == []
    assert [path for path in no if found.matches(path)] == []


@pytest.mark.requirement("contract:patterns")
@pytest.mark.parametrize("text", ["/abs", "../up", "a/../../b", "a/" * PARTS_MAX + "b"])
def test_a_pattern_stays_below_the_directory_and_within_bounds(text: str) -> None:
    with pytest.raises(ContractError, match=r"^path must"):
        pattern_of(text, field="path")


@pytest.mark.requirement("contract:patterns")
def test_a_malicious_pattern_takes_no_time() -> None:
    many = pattern_of("**/" * 40 + "*a" * 40 + "b", field="path")
    assert not many.matches("/".join(["a" * 200] * 50))


@pytest.mark.requirement("contract:patterns")
@pytest.mark.parametrize(
    ("text", "base"), [("out/*/x", "out"), ("a/b", "a/b"), ("*", ""), ("a/**", "a")]
)
def test_only_what_can_match_needs_to_be_looked_at(text: str, base: str) -> None:
    assert pattern_of(text, field="path").base == base
