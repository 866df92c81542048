"""What schedules start has no shell of a caller."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.cli.runs import test_process_of_caller
from tests.cli.runs.test_process_of_caller import said

odd = test_process_of_caller.odd


@pytest.mark.requirement("environment:process")
def test_what_a_schedule_starts_runs_as_the_documentation_says(odd: Home, tmp_path: Path) -> None:
    file = tmp_path / "said"
    said(odd, "umask 051", "", "schedule", "add", "mask", "@hourly", f"umask > {file}")
    run_id = said(odd, "umask 051", "", "schedule", "run-now", "mask").split()[0]
    said(odd, "umask 051", "", "wait", run_id)
    assert file.read_text() == "0022\n"
