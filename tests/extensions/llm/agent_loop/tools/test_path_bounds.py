"""No tool of the worker leaves its working directory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.llm.agent_loop.tool_calls import call

from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds

OUTSIDE: dict[str, Callable[[PathBounds, str], str]] = {
    "read": lambda bounds, path: call(bounds, "read", path=path),
    "write": lambda bounds, path: call(bounds, "write", path=path, content="x"),
    "edit": lambda bounds, path: call(bounds, "edit", path=path, old="not", new="x"),
    "grep": lambda bounds, path: call(bounds, "grep", pattern="yours", path=path),
}


@pytest.mark.requirement("llm:tools:bounds")
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "out/secret.txt", "link.txt", "a/../../secret.txt", "{root}/secret.txt"],
)
def test_no_tool_leaves_the_working_directory_by_dots_links_or_whole_paths(
    bounds: PathBounds, work: Path, name: str, path: str
) -> None:
    said = OUTSIDE[name](bounds, path.format(root=work.parent))
    assert "is outside of the working directory" in said
    assert "not yours" not in said
    assert (work.parent / "secret.txt").read_text() == "not yours"


@pytest.mark.requirement("llm:tools:bounds")
def test_a_new_file_is_not_written_through_a_link_that_leads_out(
    bounds: PathBounds, work: Path
) -> None:
    assert "outside" in call(bounds, "write", path="out/new.txt", content="x")
    (work / "dangling").symlink_to(work.parent / "made.txt")
    assert "outside" in call(bounds, "write", path="dangling", content="x")
    assert not (work.parent / "new.txt").exists()
    assert not (work.parent / "made.txt").exists()


@pytest.mark.requirement("llm:tools:bounds")
def test_a_search_and_a_listing_do_not_follow_links_out(bounds: PathBounds) -> None:
    assert call(bounds, "grep", pattern="yours") == "(no match)"
    assert "secret.txt (" not in call(bounds, "list", recursive=True)


@pytest.mark.requirement("llm:tools:bounds")
def test_a_link_within_the_working_directory_is_the_file_it_names(bounds: PathBounds) -> None:
    assert call(bounds, "read", path="inside.txt").startswith("1\tone")
