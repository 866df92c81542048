"""What an agent may do unasked is shown with its card, and taken back by the user alone."""

import pytest
from tests.cli.cli_home import Home

from subagents.config.paths import Paths
from subagents.store.allowed_call_file import AllowedCallFile


@pytest.mark.requirement("permissions:for-agent")
def test_the_card_shows_what_is_allowed_unasked_and_revoke_takes_one_back(home: Home) -> None:
    log = AllowedCallFile(Paths.resolve(home.env()))
    for call in ("Bash: make a/b", "Edit: /x y"):
        log.change("command", call, allow=True)
    card = home.ok("agents", "command").out
    assert "unasked:      Bash: make a/b\n              Edit: /x y\n" in card
    left = home.ok("agents", "command", "--revoke", "Bash: make a/b", "--json").json
    assert left["allowedCalls"] == ["Edit: /x y"]
    assert log.read() == {"command": ("Edit: /x y",)}
    assert "needs an AGENT" in home.cli("agents", "--revoke", "Edit: /x y").err
    given = ("agents", "--suggest", "x", "--revoke", "Edit: /x y")
    assert "does not go with --suggest" in home.cli(*given).err


@pytest.mark.requirement("agents:stats")
def test_how_attempts_ended_is_counted_for_the_days_that_are_kept(home: Home) -> None:
    assert home.ok("agents").out.splitlines()[1].split()[:5] == [
        "command",
        "command",
        "-",
        "-",
        "yes",
    ]
    home.ok("run", "true")
    head, row = home.ok("stats", "--attempts", "--since", "1d").out.splitlines()
    assert (head.split()[4], row.split()[:3]) == ("OF", ["command", "1", "100"])
    assert row[head.index(" OF ") :].split()[0] == "1"
    refused = home.cli("stats", "--attempts", "--since", "2020-01-01")
    assert "--since with --attempts must be one of the last 30 days" in refused.err
