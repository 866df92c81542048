"""The versions of what works together."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.client.peer import daemon_of_other_code

from subagents.cli.main import main
from subagents.errors import EXIT_OK
from subagents.version import __version__


@pytest.mark.requirement("cli:version")
def test_without_a_daemon_the_client_says_what_it_is_and_starts_none(home: Home) -> None:
    found = home.ok("version", "--json").json
    assert found["daemon"] is None
    assert "not running" in home.ok("version").out
    assert not (home.root / "h" / "state").exists()


@pytest.mark.requirement("cli:version")
def test_client_daemon_schema_and_python_are_named(shared: Home) -> None:
    found = shared.ok("version", "--json").json
    client, daemon, schema = found["client"], found["daemon"], found["schema"]
    assert isinstance(client, dict)
    assert isinstance(daemon, dict)
    assert isinstance(schema, dict)
    assert client["version"] == daemon["version"] == __version__
    assert client["python"].count(".") == 2
    assert schema["newest"] == schema["database"] == daemon["schema"]
    assert shared.ok("version").out.startswith(f"subagents  {__version__}\n")


@pytest.mark.requirement("cli:version", "cli:version-skew")
def test_a_daemon_of_other_code_of_this_version_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon_of_other_code(tmp_path, monkeypatch, {"version": __version__}):
        assert main(["version"]) == EXIT_OK
    assert f"the daemon is version {__version__} (other code)" in capsys.readouterr().err
