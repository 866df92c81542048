"""Every file that is made stands in the list."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home


def listed(home: Home) -> dict[str, Path]:
    found = home.ok("config", "--paths", "--json").json
    return {name: Path(str(each["path"])) for name, each in found.items() if isinstance(each, dict)}


@pytest.mark.requirement("cli:paths")
def test_all_places_are_below_the_home_and_none_is_made_by_looking(home: Home) -> None:
    (home.work / "subagents.toml").write_text("")
    found = listed(home)
    assert found.pop("projectConfig") == home.work / "subagents.toml"
    assert all(path.is_relative_to(home.root / "h") for path in found.values())
    assert "(not there)" in home.ok("config", "--paths").out
    assert not (home.root / "h").exists()


@pytest.mark.requirement("cli:paths")
def test_what_a_run_leaves_is_in_a_place_that_is_listed(shared: Home) -> None:
    shared.ok("run", "true", "--env", "A=b")
    found = listed(shared)
    # Beside the database are its log and its lock; records of attempts are a file for each day, and
    # one that says how far they go.
    beside = ("subagents.db", "agent-performance", "start.lock", "daemon.log")
    unknown = [
        each
        for each in found["state"].iterdir()
        if each not in found.values() and not each.name.startswith(beside)
    ]
    assert unknown == []
