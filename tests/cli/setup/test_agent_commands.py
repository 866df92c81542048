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
