"""The versions of what works together."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.cli_home import Home
from tests.client.peer import Peer, http

from subagents.cli.main import main
from subagents.config.paths import Paths
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
    head = f"x-subagents-version: {__version__}\r\nx-subagents-code: wheel old 0\r\n"
    monkeypatch.setattr("subagents.version.code_stamp", lambda: "wheel new")
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    answer = http({"version": __version__}, head=head)
    with closing(Peer(paths.socket, lambda _: answer)):
        assert main(["version"]) == EXIT_OK
    assert f"the daemon is version {__version__} (other code)" in capsys.readouterr().err
