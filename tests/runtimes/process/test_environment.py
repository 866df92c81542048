"""What workers find in their environment."""

import shutil
from pathlib import Path

import pytest

from subagents.runtimes.process.environment import is_on_path


@pytest.mark.requirement("worker:path:looked-up-once")
def test_a_program_is_looked_up_once_for_each_path_until_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        (directory / "tool").touch(0o755)
    looked: list[str] = []
    which = shutil.which

    def counted(name: str, *, path: str) -> str | None:
        looked.append(name)
        return which(name, path=path)

    monkeypatch.setattr(shutil, "which", counted)
    path = f"{first}:{second}"

    assert all(is_on_path("tool", path) for _ in range(10))
    assert len(looked) == 1
    (first / "tool").unlink()
    assert is_on_path("tool", path)
    (second / "tool").unlink()
    assert not is_on_path("tool", path)
    assert len(looked) == 3
    assert not any(is_on_path("tool", path) for _ in range(10))
    assert len(looked) == 3
