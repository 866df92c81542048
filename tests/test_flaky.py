"""A test that is red now and then is found; one that never is exits with 0."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TESTS = '''
from pathlib import Path

import pytest

RUNS = Path(__file__).with_name("runs")


@pytest.fixture
def number():
    """Of this run; of the next one when this is torn down."""
    RUNS.touch()
    yield len(RUNS.read_text()) + 1
    RUNS.write_text(RUNS.read_text() + "x")


def test_every_third(number):
    assert number % 3, number


@pytest.mark.parametrize("given", [1, 2])
def test_never(given, tmp_path):
    (tmp_path / "mine").mkdir()


@pytest.mark.skip
def test_skipped():
    pass


def test_ends_the_process():
    import os

    os._exit(7)
'''


def flaky(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    file = tmp_path / "test_given.py"
    file.write_text(TESTS)
    test, *more = words
    options = ["--load", "1", "--at-once", "1", *more]
    return subprocess.run(
        [sys.executable, "-m", "scripts.flaky", f"{file}::{test}", *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=200,
    )


@pytest.mark.requirement("ci:flaky")
def test_a_test_that_is_red_every_third_time_is_found_with_its_line(tmp_path: Path) -> None:
    done = flaky(tmp_path, "test_every_third", "--times", "12")

    assert done.returncode == 1, done.stdout + done.stderr
    head, which, where = done.stdout.splitlines()
    assert head.startswith("4 red of 12; ")
    assert which.split(maxsplit=2)[:2] == ["4", "×"]
    assert which.endswith("test_given.py::test_every_third")
    assert where.endswith("test_given.py:18: AssertionError: 3")
    assert (tmp_path / "runs").read_text() == "x" * 12


@pytest.mark.requirement("ci:flaky")
def test_tests_that_are_always_green_exit_with_0(tmp_path: Path) -> None:
    done = flaky(tmp_path, "test_never", "--times", "3")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0 red of 6; ")


@pytest.mark.requirement("ci:flaky")
@pytest.mark.parametrize(
    ("test", "code", "said"),
    [
        ("test_skipped", 2, "nothing was run"),
        ("test_ends_the_process", 1, "exit 7: it said nothing"),
        ("test_not_there", 1, "exit 4: "),
    ],
)
def test_what_was_not_run_to_its_end_is_not_called_green(
    tmp_path: Path, test: str, code: int, said: str
) -> None:
    done = flaky(tmp_path, test, "--times", "2")

    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout
