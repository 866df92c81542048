"""`make test-near`: which tests are beside what changed."""

from pathlib import Path

import pytest
from scripts.near import near


@pytest.mark.requirement("project:near")
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["src/subagents/x/y.py"], ["tests/x/test_y.py"]),
        (["src/subagents/x/z.py"], ["tests/x"]),
        (["src/subagents/x/y.py", "src/subagents/x/z.py"], ["tests/x"]),
        (["src/subagents/text.py"], ["tests/test_text.py"]),
        (["src/subagents/other.py"], []),
        (["scripts/near.py"], ["tests/test_near.py"]),
        (["tests/x/test_y.py", "tests/x/rig.py"], ["tests/x"]),
        (["tests/x/test_y.py", "tests/x/test_y.py"], ["tests/x/test_y.py"]),
        (["tests/x/test_gone.py"], []),
        (["README.md", "tests/builders.py"], []),
    ],
)
def test_beside_a_file_are_its_mirrored_test_or_its_folders(
    tmp_path: Path, changed: list[str], expected: list[str]
) -> None:
    (tmp_path / "tests/x").mkdir(parents=True)
    for name in ("tests/x/test_y.py", "tests/test_text.py", "tests/test_near.py"):
        (tmp_path / name).touch()

    assert near(changed, tmp_path) == expected
