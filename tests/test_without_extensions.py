"""The copy in which the core's tests run: all that git knows but the extensions and their tests."""

from pathlib import Path

import pytest
from scripts.core_alone import copied
from tests.repository import a_repository, commit


@pytest.mark.requirement("extensions:core-alone")
def test_the_copy_has_what_git_knows_without_extensions_and_their_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, to = a_repository(tmp_path / "place"), tmp_path / "to"
    extensions = "src/subagents/extensions"
    for name in (
        *(f"{extensions}/__init__.py", f"{extensions}/testing/kit.py", f"{extensions}/web/page.py"),
        *("src/subagents/core.py", "tests/extensions/web/test_page.py", "out/built.py", "gone.py"),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    commit(place, "second")
    (place / "gone.py").unlink()
    (place / "not_added.py").touch()
    monkeypatch.chdir(place)

    copied(to)

    assert {str(each.relative_to(to)) for each in to.rglob("*") if each.is_file()} == {
        *(".gitignore", "not_added.py", "sub/a.txt", "tests/test_a.py", "src/subagents/core.py"),
        *(f"{extensions}/__init__.py", f"{extensions}/testing/kit.py"),
    }
