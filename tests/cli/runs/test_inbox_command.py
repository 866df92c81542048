"""``inbox``: what it shows beside messages."""

import pytest
from tests.cli.cli_home import Home

FULL = """echo '{"subagents":"context","tokens":150000,"window":200000}'; sleep 1"""


@pytest.mark.requirement("cli:alerts")
def test_past_alerts_are_listed_with_what_became_of_each(shared: Home) -> None:
    run = shared.spawn(FULL, "--label", "full")
    shared.ok("wait", run)
    (alert,) = shared.ok("inbox", "--alerts", "full", "--json").rows("alerts")
    assert (alert["kind"], alert["runId"]) == ("context_pressure", run)
    asked = ("inbox", "--alerts", run, "--kind", "context_pressure", "--limit", "1")
    shown = shared.ok(*asked).out.splitlines()
    assert shown[0].split() == ["AGE", "RUN", "ALERT", "FATE", "TEXT"]
    assert "full  context pressure  sent" in shown[1]
    listed = shared.ok("inbox", "--all").out
    assert "[subagent:full]" not in listed, "its label has a column"
    assert shared.ok("inbox", "--alerts", run, "--kind", "stuck").err.strip() == "No alerts."
    for flags in (["--alerts"], [], ["--all"]):
        none = shared.cli("inbox", *flags, "--limit", "0")
        assert (none.code, "limit" in none.err) == (2, True)
    refused = shared.cli("inbox", "--alerts", "--kind", "loud")
    assert (refused.code, "kind" in refused.err) == (2, True)
