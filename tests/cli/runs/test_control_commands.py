"""Commands that act on runs."""

import pytest
from tests.cli.cli_home import Home, until


@pytest.mark.requirement("cli:selectors")
def test_several_runs_are_cancelled_by_phase_only_when_that_was_said(home: Home) -> None:
    home.ok("up")
    runs = {home.spawn("sleep 60") for _ in range(2)}
    until(lambda: all(home.field(run, "phase") == "running" for run in runs), "both run")
    refused = home.cli("cancel", "phase:running")
    assert refused.code == 2
    assert "Cancel 2 runs?" in refused.err
    done = home.ok("cancel", "phase:running", "--yes", "--json")
    assert {each["runId"] for each in done.rows("runs")} == runs
