"""The manifest and the tests agree, both ways."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from tests.requirements import (
    BOX_COUNTS,
    BOXES,
    FIELD,
    LATER,
    REQUIREMENTS,
    SEED_002_ROWS,
    SEED_004_ACCEPTANCE,
    Later,
)

ROOT = Path(__file__).parent.parent
LATER_MAX = 1
"""How many boxes and field failures nothing proves yet."""


def markers() -> dict[str, set[str]]:
    """Requirement id → the files whose tests name it, read from the source: no test is imported."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    sources = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("src/subagents/testing/**/*.py")]
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in {"requirement", "behaviour"}:
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        found[str(argument.value)].add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.requirement("requirements:both-ways")
def test_every_requirement_has_a_test() -> None:
    assert sorted(set(REQUIREMENTS) - set(markers())) == []


@pytest.mark.requirement("requirements:both-ways")
def test_every_marker_names_a_requirement() -> None:
    unknown = {name: sorted(files) for name, files in markers().items() if name not in REQUIREMENTS}

    assert unknown == {}


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
def test_every_box_of_the_seeds_is_mapped() -> None:
    wanted = {
        f"{section}.{n}" for section, count in BOX_COUNTS.items() for n in range(1, count + 1)
    }

    assert set(BOXES) == wanted
    assert len(wanted) == 63


@pytest.mark.requirement("requirements:both-ways")
def test_everything_mapped_is_a_requirement_or_named_as_later() -> None:
    mapped = [*BOXES.items(), *FIELD.items()]
    mapped += [(name, (name,)) for name in (*SEED_002_ROWS, *SEED_004_ACCEPTANCE)]
    missing = {
        f"{what}: {name}"
        for what, where in mapped
        if not isinstance(where, Later)
        for name in where
        if name not in REQUIREMENTS
    }

    assert missing == set()
    assert all(where for _, where in mapped)


@pytest.mark.requirement("requirements:both-ways")
def test_what_is_left_for_later_only_gets_shorter() -> None:
    assert len(LATER) <= LATER_MAX
    assert not [box for box in LATER if box.startswith("2.7")]


@pytest.mark.requirement("requirements:both-ways")
def test_every_requirement_has_a_source_and_a_sentence() -> None:
    for name, (source, sentence) in REQUIREMENTS.items():
        area, _, behaviour = name.partition(":")
        assert area, name
        assert behaviour, name
        assert source, name
        assert sentence.endswith("."), name
