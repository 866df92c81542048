"""What an agent may do unasked is shown with its card, and taken back by the user alone."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.client.peer import Peer, http

from subagents.cli.main import main
from subagents.config.paths import Paths
from subagents.errors import EXIT_OK
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


AGENTS = [{"id": "a", "tags": ["quick", "cheap"]}, {"id": "b"}]
RECORDS = [{"name": "a", "attemptCount": 3, "success": {"count": 1, "n": 2}}, {"name": "b"}]


@pytest.mark.requirement("agents:stats", "agents:cards")
@pytest.mark.parametrize(
    ("words", "answer", "column", "cells"),
    [
        (["agents"], {"agents": AGENTS}, "TAGS", ["quick, cheap", "-"]),
        (["stats", "--attempts"], {"stats": RECORDS}, "ATTEMPTS", ["3", "0"]),
        (["stats", "--attempts", "--since", "1d"], {"stats": RECORDS}, "OF", ["2", "-"]),
    ],
)
def test_what_an_agent_has_is_in_its_column_and_a_dash_where_it_has_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    words: list[str],
    answer: dict[str, object],
    column: str,
    cells: list[str],
) -> None:
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    with closing(Peer(paths.socket, lambda _: http(answer))):
        assert main(words) == EXIT_OK
    head, *rows = capsys.readouterr().out.splitlines()
    at = re.search(rf"\b{column}\b", head)
    assert at is not None
    assert [row[at.start() :].split("  ")[0].strip() for row in rows] == cells
