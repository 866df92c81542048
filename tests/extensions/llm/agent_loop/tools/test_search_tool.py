"""Searching files for a regular expression."""

from pathlib import Path

import pytest
from tests.extensions.llm.agent_loop.tool_calls import call

from subagents.extensions.llm.agent_loop.tools import search_tool
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds


@pytest.mark.requirement("llm:tools:grep")
def test_a_search_is_limited_in_matches_and_in_time(bounds: PathBounds, work: Path) -> None:
    (work / "many.txt").write_text("match\n" * 1_000)
    said = call(bounds, "grep", pattern="match").splitlines()
    assert len(said) == search_tool.MATCHES_MAX + 1
    assert said[-1] == f"[more than {search_tool.MATCHES_MAX} matches; narrow the search]"
    (work / "slow.txt").write_text("a" * 4_000 + "!\n")
    said_of_slow = call(bounds, "grep", pattern="(a+)+(b|c)+$", path="slow.txt")
    assert "too slow" in said_of_slow or said_of_slow == "(no match)"


@pytest.mark.requirement("llm:tools:grep")
def test_a_search_takes_a_glob_and_says_what_is_wrong_with_an_expression(
    bounds: PathBounds, work: Path
) -> None:
    (work / "b.py").write_text("one = 1\n")
    assert call(bounds, "grep", pattern="^one", glob="*.py") == "b.py:1:one = 1"
    assert call(bounds, "grep", pattern="ONE", path="a.txt", ignore_case=True) == "a.txt:1:one"
    assert call(bounds, "grep", pattern="(").startswith("refused: pattern: ")
