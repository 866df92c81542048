"""``init`` writes a configuration that loads."""

import pytest
from tests.cli.cli_home import Home


@pytest.mark.requirement("cli:init", "cli:confirm")
def test_init_writes_a_file_that_loads_and_replaces_one_only_when_told(home: Home) -> None:
    file = home.work / "subagents.toml"
    assert home.ok("init", "--json").json["file"] == str(file.resolve())
    assert home.ok("config", "validate").out == f"valid: {file.resolve()}\n"
    file.write_text("# mine\n")
    refused = home.cli("init")
    assert refused.code == 2
    assert file.read_text() == "# mine\n"
    home.ok("init", "--yes")
    assert "[agents.command]" in file.read_text()
    assert (home.work / "subagents.toml.bak").read_text() == "# mine\n"
