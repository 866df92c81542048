"""``init`` writes a configuration that loads."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.cli.show.test_live_screen import on_terminal

from subagents.extensions.install.starter import starter_text


@pytest.mark.requirement("cli:init", "cli:confirm")
def test_init_writes_a_file_that_loads_and_replaces_one_only_when_told(home: Home) -> None:
    file = home.work / "subagents.toml"
    assert home.ok("init", "--json").json["file"] == str(file.resolve())
    assert home.ok("config", "--check").out == f"valid: {file.resolve()}\n"
    file.write_text("# mine\n")
    refused = home.cli("init")
    assert refused.code == 2
    assert file.read_text() == "# mine\n"
    home.ok("init", "--yes")
    assert "[agents.command]" in file.read_text()
    assert (home.work / "subagents.toml.bak").read_text() == "# mine\n"


@pytest.mark.requirement("cli:confirm")
@pytest.mark.parametrize(("typed", "kept"), [("n\n", "# mine\n"), ("y\n", "")])
def test_on_a_terminal_a_file_is_replaced_only_after_a_yes(
    shared: Home, typed: str, kept: str
) -> None:
    file: Path = shared.work / "subagents.toml"
    file.write_text("# mine\n")
    try:
        code, shown = on_terminal(shared, "init", typed=typed)
        assert code == 0
        assert "exists. Replace it? [y/N]" in shown
        assert file.read_text() == (kept or starter_text(shared.env()))
    finally:
        file.unlink()
