"""Every example about contracts does what its page says, also when it is run once more."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.bubblewrap import needs_bubblewrap
from tests.cli.cli_home import Home

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/howto/contracts.md").read_text()
README: Final = (ROOT / "README.md").read_text()
EXAMPLES: Final = dict(
    re.findall(r"^## ([^\n]+)\n\n```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
)

MARKS: Final = {"A judge": needs_bubblewrap}
"""It may only read."""


def run(argv: list[str], home: Home, cwd: Path) -> str:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=home.env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("docs:contracts")
@pytest.mark.parametrize(
    "title",
    [pytest.param(each, marks=MARKS.get(each, ())) for each in EXAMPLES],
)
def test_an_example_of_a_contract_runs_as_it_stands_and_again(
    shared: Home, tmp_path: Path, title: str
) -> None:
    for _ in range(2):
        run(["/bin/sh", "-ec", EXAMPLES[title]], shared, tmp_path)


@pytest.mark.requirement("docs:contracts")
def test_every_kind_of_check_has_its_example() -> None:
    assert len(EXAMPLES) == 10


@pytest.mark.requirement("docs:readme")
def test_the_readmes_first_run_ends_well_in_any_directory_and_again(
    shared: Home, tmp_path: Path
) -> None:
    (first, *_) = re.findall(r"^\$ (subagents run .*)$", README, re.MULTILINE)
    assert "--verify" in first
    for _ in range(2):
        assert run(["/bin/sh", "-ec", first], shared, tmp_path) == "listed\n"


@pytest.mark.requirement("docs:readme")
def test_the_readmes_python_ends_well_in_any_directory_and_again(
    shared: Home, tmp_path: Path
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for _ in range(2):
        assert run([sys.executable, "-c", program], shared, tmp_path).startswith("ok passed ")
