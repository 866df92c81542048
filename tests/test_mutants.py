"""A seed draws the same faults again, and tests that notice one are told from those that do not."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="the dependency group mutants is not installed")

from scripts.mutants import Mutant, drawn, tried

TESTED = "def larger(left, right):\n    return right if left < right else left\n"
UNTESTED = "def doubled(number):\n    print(number)\n    return number + number\n"
CHECK = "from subagents.tested.code import larger\nassert larger(1, 2) == larger(2, 1) == 2\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package of two modules, and a program that tests one of them."""
    for name, text in (("tested", TESTED), ("untested", UNTESTED)):
        (tmp_path / "src" / "subagents" / name).mkdir(parents=True)
        (tmp_path / "src" / "subagents" / name / "code.py").write_text(text)
    (tmp_path / "check.py").write_text(CHECK)
    return tmp_path


def drawn_of(checkout: Path, seed: int, count: int, *groups: str) -> list[Mutant]:
    return drawn(checkout, "src/subagents", seed, count, groups)


@pytest.mark.requirement("mutants:seeded")
def test_a_seed_draws_the_same_mutants_again_and_of_each_group_as_many(checkout: Path) -> None:
    first = drawn_of(checkout, 7, 5, "tested", "untested")

    assert first == drawn_of(checkout, 7, 5, "tested", "untested")
    assert [each.group for each in first] == ["tested"] * 3 + ["untested"] * 2
    assert len({each.code for each in first} - {TESTED, UNTESTED}) == 5
    assert first != drawn_of(checkout, 8, 5, "tested", "untested")


@pytest.mark.requirement("mutants:seeded")
def test_types_declarations_and_what_is_logged_are_left_as_they_are(tmp_path: Path) -> None:
    module = tmp_path / "src" / "subagents" / "one" / "code.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "LIMIT: Final = 100\n"
        "class Kept(Struct, frozen=True): ...\n"
        "@cache(typed=True)\n"
        "def told(found: Literal[1]) -> Literal[2]:\n"
        "    assert not found\n"
        '    log.info("%s", 3 + 4)\n'
        "    pause(LIMIT, timeout_s=30)\n"
        "    return None\n"
    )

    [only] = drawn_of(tmp_path, 1, 1, "one")

    assert (only.line, only.operator, only.after) == (7, "DropCall", "pass")


def outcomes(checkout: Path, mutants: Sequence[Mutant], *commands: str) -> list[tuple[str, str]]:
    found = tried(checkout, mutants, commands, jobs=2)
    return [(mutant.group, verdict.outcome) for mutant, verdict in found]


@pytest.mark.requirement("mutants:tried")
def test_a_tested_mutant_is_killed_in_a_copy_and_an_untested_one_survives(checkout: Path) -> None:
    mutants = drawn_of(checkout, 7, 4, "tested", "untested")

    found = outcomes(checkout, mutants, "python -c ''", "python check.py")

    assert found == [("tested", "killed")] * 2 + [("untested", "survived")] * 2
    assert (checkout / mutants[0].path).read_text() == TESTED


@pytest.mark.requirement("mutants:tried")
def test_child_processes_without_a_search_path_import_the_copy(checkout: Path) -> None:
    (checkout / "parent.py").write_text(
        "import subprocess, sys\n"
        "sys.exit(subprocess.run([sys.executable, 'check.py'], env={}, cwd='.').returncode)\n"
    )

    found = outcomes(checkout, drawn_of(checkout, 7, 1, "tested"), "python parent.py")

    assert found == [("tested", "killed")]


@pytest.mark.requirement("mutants:tried")
def test_tests_that_are_red_without_a_mutant_judge_none(checkout: Path) -> None:
    with pytest.raises(RuntimeError, match="red without a mutant: python absent"):
        outcomes(checkout, drawn_of(checkout, 7, 1, "tested"), "python absent.py")


@pytest.mark.requirement("mutants:seeded")
def test_the_list_names_the_place_the_operator_and_both_texts() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "scripts.mutants", "--seed", "1", "--count", "6", "--only", "2"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert listed.startswith("  2  src/subagents/domain/")
    assert "  →  " in listed
    assert listed.count("\n") == 1
