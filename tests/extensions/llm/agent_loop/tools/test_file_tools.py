"""Reading, writing and editing files."""

import os
from pathlib import Path

import pytest
from tests.extensions.llm.agent_loop.tool_calls import call

from subagents.extensions.llm.agent_loop.tools import file_tools
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds, ToolRefused


@pytest.mark.requirement("llm:tools:read")
def test_reading_numbers_the_lines_and_says_how_to_continue(bounds: PathBounds, work: Path) -> None:
    assert call(bounds, "read", path="a.txt", offset=2, limit=1) == (
        "2\ttwo\n[1 more lines; continue with offset=3]"
    )
    (work / "long.txt").write_text("\n".join(f"line {n}" for n in range(5_000)))
    said = call(bounds, "read", path="long.txt")
    assert said.endswith(f"continue with offset={file_tools.READ_LINES_MAX + 1}]")
    (work / "wide.txt").write_text("x" * 70_000)
    assert call(bounds, "read", path="wide.txt").endswith("x… (10002 more characters)")


@pytest.mark.requirement("llm:tools:read")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "there is no missing"),
        (".", "is a directory; list it"),
        ("binary", "is not text"),
        ("fifo", "is no regular file"),
    ],
)
def test_what_cannot_be_read_as_text_is_refused_at_once(
    bounds: PathBounds, work: Path, path: str, said: str
) -> None:
    (work / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(work / "fifo")
    assert said in call(bounds, "read", path=path)


@pytest.mark.requirement("llm:tools:write")
def test_writing_makes_directories_and_keeps_the_permissions_of_what_it_replaces(
    bounds: PathBounds, work: Path
) -> None:
    assert call(bounds, "write", path="b/c.sh", content="echo 1") == "b/c.sh: 6 bytes written"
    (work / "b/c.sh").chmod(0o755)
    call(bounds, "write", path="b/c.sh", content="echo 2")
    assert (work / "b/c.sh").read_text() == "echo 2"
    assert (work / "b/c.sh").stat().st_mode & 0o777 == 0o755
    assert [each.name for each in (work / "b").iterdir()] == ["c.sh"]


@pytest.mark.requirement("llm:tools:edit")
def test_an_edit_replaces_what_is_there_once_and_refuses_what_is_not_or_is_twice(
    bounds: PathBounds, work: Path
) -> None:
    assert call(bounds, "edit", path="a.txt", old="two", new="2") == "a.txt: 1 replaced"
    assert "does not hold that text" in call(bounds, "edit", path="a.txt", old="two", new="2")
    assert "times in a.txt" in call(bounds, "edit", path="a.txt", old="e", new="E")
    assert call(bounds, "edit", path="a.txt", old="e", new="E", all=True) == "a.txt: 3 replaced"
    assert (work / "a.txt").read_text() == "onE\n2\nthrEE\n"


@pytest.mark.requirement("loop:tools:git")
@pytest.mark.parametrize(
    "path", [".git", ".git/config", ".git/hooks/pre-commit", "below/.git/config", ".GIT/config",
             "link/config", "below/../.git/commondir"],
)  # fmt: skip
def test_what_git_would_run_is_neither_written_nor_edited(
    bounds: PathBounds, work: Path, path: str
) -> None:
    for directory in (".git", ".GIT", "below/.git"):
        (work / directory).mkdir(parents=True, exist_ok=True)
        (work / directory / "config").write_text("[core]\n")
    (work / "link").symlink_to(".git")
    with pytest.raises(ToolRefused, match="belongs to git"):
        file_tools.write(bounds, path, "x")
    if (work / path).is_file():
        with pytest.raises(ToolRefused, match="belongs to git"):
            file_tools.edit(bounds, path, "[core]", "x", is_all=False)


@pytest.mark.requirement("loop:tools:git")
@pytest.mark.parametrize(
    "path", [".gitignore", ".gitattributes", ".github/ci.yml", "x.git", "git/a"]
)
def test_what_is_only_named_like_it_is_written(bounds: PathBounds, work: Path, path: str) -> None:
    file_tools.write(bounds, path, "x")
    assert (work / path).read_text() == "x"
