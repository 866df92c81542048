"""The table of tiers: what it says of a place, what is left out, and that its places are there."""

import importlib.metadata
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from packaging.requirements import Requirement
from tests.tiers import Selection, Tier, Tiers

ROOT: Final = Path(__file__).parents[1]
ROWS: Final = {
    "tests/slow": Tier.all,
    "tests/slow/test_a.py": Tier.ci,
    "tests/slow/test_a.py::test_quick": Tier.test,
    "tests/slow/test_a.py::test_cases[one]": Tier.check,
    "tests/x/conftest.py::server": Tier.check,
}
TIERS: Final = Tiers(ROWS)
IMPORTED: Final = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
"""What is imported when the module is."""


@pytest.mark.requirement("tests:tiers")
@pytest.mark.parametrize(
    ("place", "uses", "expected"),
    [
        ("tests/x/test_x.py::test_x", [], Tier.test),
        ("tests/x/test_x.py::test_x", ["tests/x/conftest.py::server"], Tier.check),
        ("tests/x/test_x.py::test_x", ["tests/x/conftest.py::other"], Tier.test),
        ("tests/slow/test_b.py::test_b[1]", [], Tier.all),
        ("tests/slow/test_b.py::test_b", ["tests/x/conftest.py::server"], Tier.all),
        ("tests/slow/test_a.py::test_a", [], Tier.ci),
        ("tests/slow/test_a.py::test_quick", ["tests/x/conftest.py::server"], Tier.test),
        ("tests/slow/test_a.py::test_quick[a::b]", [], Tier.test),
        ("tests/slow/test_a.py::test_cases[one]", [], Tier.check),
        ("tests/slow/test_a.py::test_cases[two]", [], Tier.ci),
        ("tests/slower/test_a.py::test_a", [], Tier.test),
    ],
)
def test_the_row_nearest_to_a_test_says_from_which_tier_on_it_runs(
    place: str, uses: list[str], expected: Tier
) -> None:
    assert TIERS.of(place, uses) == expected


@pytest.mark.requirement("tests:tiers")
def test_a_tier_that_is_none_and_a_place_that_is_named_twice_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "tiers.toml"
    table.write_text('[nightly]\n"tests/x" = "slow"\n')
    with pytest.raises(ValueError, match="nightly is no tier"):
        Tiers.read(table)
    table.write_text('[ci]\n"tests/x" = "slow"\n[all]\n"tests/x" = "slow"\n')
    with pytest.raises(ValueError, match="tests/x is named twice"):
        Tiers.read(table)


@pytest.mark.requirement("tests:tiers")
def test_every_place_that_the_table_names_is_there() -> None:
    gone = []
    for row in Tiers.read().rows:
        file, _, name = row.partition("::")
        path = ROOT / file
        function = name.partition("[")[0]
        text = path.read_text("utf-8") if path.is_file() else ""
        # A fixture may be another conftest's.
        is_there = any(each in text for each in (f"def {function}(", f'"{function}"'))
        if not path.exists() or (function and not is_there):
            gone.append(row)

    assert gone == []


def selected(asked: Tier, arguments: list[str], places: list[str]) -> list[str]:
    """What is left of ``places`` for a command line with these arguments."""
    config: Any = SimpleNamespace(
        rootpath=ROOT,
        args=arguments,
        invocation_params=SimpleNamespace(dir=ROOT),
        hook=SimpleNamespace(pytest_deselected=lambda items: None),
    )
    selection = Selection(config, TIERS, asked)
    items = [
        SimpleNamespace(
            nodeid=each,
            _fixtureinfo=SimpleNamespace(name2fixturedefs={}),
            iter_markers=lambda _name: iter(()),
        )
        for each in places
        if not selection.pytest_ignore_collect(ROOT / each.partition("::")[0])
    ]
    selection.pytest_collection_modifyitems(config, cast("list[pytest.Item]", items))
    return [each.nodeid for each in items]


PLACES: Final = [
    "tests/slow/test_a.py::test_a",
    "tests/slow/test_a.py::test_quick",
    "tests/slow/test_b.py::test_b",
    "tests/slow/test_b.py::test_b[1]",
    "tests/x/test_x.py::test_x",
]


@pytest.mark.requirement("tests:tiers")
@pytest.mark.parametrize(
    ("asked", "arguments", "left_out"),
    [
        (Tier.test, [], ["test_a", "test_b", "test_b[1]"]),
        (Tier.test, ["tests/slow"], ["test_a", "test_b", "test_b[1]"]),
        (Tier.ci, [], ["test_b", "test_b[1]"]),
        (Tier.all, [], []),
        (Tier.test, ["tests/slow/test_b.py"], ["test_a"]),
        (Tier.test, ["tests/slow/test_b.py::test_b"], ["test_a"]),
        (Tier.test, ["tests/slow/test_b.py::test_b[1]"], ["test_a", "test_b"]),
    ],
)
def test_what_is_of_a_later_tier_is_left_out_unless_the_command_line_names_it(
    asked: Tier, arguments: list[str], left_out: list[str]
) -> None:
    kept = [re.sub(".*::", "", each) for each in selected(asked, arguments, PLACES)]
    assert [each for each in ["test_a", "test_b", "test_b[1]"] if each not in kept] == left_out
    assert {"test_quick", "test_x"} <= {*kept}


@pytest.mark.requirement("tests:tiers")
def test_files_with_dear_tests_come_first_and_each_stays_together() -> None:
    a_place, later, *others = PLACES

    assert selected(Tier.all, [], [others[2], later, a_place, *others[:2]]) == [
        *others[:2],
        later,
        a_place,
        others[2],
    ]


@pytest.mark.requirement("tests:tiers")
def test_quick_tests_import_nothing_that_the_group_dev_does_not_bring() -> None:
    tiers, owners, brought = Tiers.read(), importlib.metadata.packages_distributions(), _brought()
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in (ROOT / "tests").rglob("*.py")
        if tiers.runs_any(file.relative_to(ROOT).as_posix(), Tier.test)
        for name in IMPORTED.findall(file.read_text("utf-8"))
        if name in owners and not brought & {*map(_normal, owners[name])}
    ]
    assert missing == []


def _brought() -> frozenset[str]:
    """The distributions of the group dev, with all that they require here."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    left = [Requirement(each) for each in groups["dev"]]
    seen: set[tuple[str, str]] = set()
    while left:
        asked = left.pop()
        for extra in ("", *asked.extras):
            if (key := (_normal(asked.name), extra)) in seen:
                continue
            seen.add(key)
            needs = map(Requirement, importlib.metadata.requires(asked.name) or ())
            left += [e for e in needs if e.marker is None or e.marker.evaluate({"extra": extra})]
    return frozenset(name for name, _ in seen)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
