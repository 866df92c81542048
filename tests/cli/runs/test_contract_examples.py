"""Every example on the page about contracts does what the page says."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.cli.cli_home import Home

PAGE: Final = Path(__file__).parents[3] / "docs/howto/contracts.md"
EXAMPLES: Final = dict(
    re.findall(r"^## ([^\n]+)\n\n```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)


@pytest.mark.requirement("docs:contracts")
@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_of_a_contract_runs_as_it_stands(
    shared: Home, tmp_path: Path, title: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-ec", EXAMPLES[title]],
        cwd=tmp_path,
        env=shared.env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("docs:contracts")
def test_every_kind_of_check_has_its_example() -> None:
    assert len(EXAMPLES) == 9
