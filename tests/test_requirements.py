"""Every test names what it proves, and the page of requirements lists just that."""

import ast
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from scripts.requirements_page import lost, proofs, sections

ROOT = Path(__file__).parent.parent
ID = re.compile(r"[a-z0-9-]+(:[a-z0-9._-]+)+")


@pytest.fixture(scope="module")
def proven() -> set[str]:
    return {*proofs()}


@pytest.mark.requirement("requirements:both-ways")
def test_every_test_names_a_requirement() -> None:
    bare = []
    for path in ROOT.glob("tests/**/test_*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("test_"):
                continue
            if "requirement" not in "".join(map(ast.dump, node.decorator_list)):
                bare.append(f"{path.name}::{node.name}")

    assert bare == []


@pytest.mark.requirement("requirements:both-ways")
def test_every_requirement_is_an_area_and_a_behaviour(proven: set[str]) -> None:
    assert [name for name in proven if not ID.fullmatch(name)] == []


@pytest.mark.requirement("requirements:both-ways")
def test_the_page_names_each_requirement_once_with_a_test_of_it() -> None:
    (section,) = sections({"a:c": ["test_it_does_c"], "a:b": ["test_it_does_b"]})

    assert section == "## a\n\n- `a:b` it does b\n- `a:c` it does c"


@pytest.mark.requirement("requirements:lost")
def test_a_requirement_that_lost_its_last_test_since_a_commit_is_named(tmp_path: Path) -> None:
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    one, two = (f'@pytest.mark.requirement("a:{name}")\ndef test_{name}(): ...\n' for name in "bc")
    (tmp_path / "src/subagents/extensions/testing").mkdir(parents=True)
    (tmp_path / "src/subagents/extensions/testing/suite.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(one + two)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git(["git", "init", "-q"])
    git(["git", "add", "."])
    git(["git", *author, "commit", "-qm", "first"])

    (tmp_path / "tests/test_a.py").unlink()
    (tmp_path / "tests/test_moved.py").write_text(two)

    assert lost("HEAD", tmp_path) == {"a:b"}


@pytest.mark.requirement("requirements:both-ways")
def test_failures_seen_in_the_field_name_requirements_that_tests_prove(proven: set[str]) -> None:
    text = (ROOT / "docs" / "field-failures.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    ids = {name for row in rows for name in re.findall(r"`([a-z0-9-]+:[^`]+)`", row)}

    assert len(rows) > 30
    assert sorted(ids - proven) == []
