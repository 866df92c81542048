"""A working directory for the worker's own tools."""

from pathlib import Path

import pytest

from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory beside something that is none of the worker's business."""
    (tmp_path / "secret.txt").write_text("not yours")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    (work / "out").symlink_to(tmp_path)
    (work / "link.txt").symlink_to(tmp_path / "secret.txt")
    (work / "inside.txt").symlink_to(work / "a.txt")
    return work


@pytest.fixture
def bounds(work: Path) -> PathBounds:
    return PathBounds(str(work))
