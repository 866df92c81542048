"""Every test names what it proves, and the page of requirements lists just that."""

import ast
import re
from pathlib import Path

import pytest
from scripts.requirements_page import named, page, proofs

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
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            if "requirement" not in "".join(map(ast.dump, node.decorator_list)):
                bare.append(f"{path.name}::{node.name}")

    assert bare == []


@pytest.mark.requirement("requirements:both-ways")
def test_every_requirement_is_an_area_and_a_behaviour(proven: set[str]) -> None:
    assert [name for name in proven if not ID.fullmatch(name)] == []


@pytest.mark.requirement("requirements:both-ways")
def test_a_page_names_each_requirement_once_with_a_test_of_it() -> None:
    text = page({"a:b": ["test_it_does_b"], "a:c": ["test_it_does_c"]})

    assert "- `a:b` it does b\n- `a:c` it does c" in text
    assert named(text) == {"a:b", "a:c"}


@pytest.mark.requirement("requirements:both-ways")
def test_failures_seen_in_the_field_name_requirements_that_tests_prove(proven: set[str]) -> None:
    text = (ROOT / "docs" / "field-failures.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    ids = {name for row in rows for name in re.findall(r"`([a-z0-9-]+:[^`]+)`", row)}

    assert len(rows) > 30
    assert sorted(ids - proven) == []
