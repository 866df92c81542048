"""``mcp install`` with real programs: each is asked itself what it has, before and after."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.real.install import found, node, place

from subagents.cli.main import main
from subagents.errors import EXIT_OK, EXIT_USAGE

pytestmark = pytest.mark.timeout(300)

CLINE_FILE: Final = ".cline/data/settings/cline_mcp_settings.json"
SAYS: Final = {
    "copilot": "subagents (local)",
    "kilo": "connected",
    "pi": "subagents: connected",
    "cline": '"transport"',
}
"""What each program says of us when it has us; Kilo and pi have spoken to our server then."""


def _binary(name: str) -> Path | None:
    here = found("pi-acp" if name == "pi" else name)
    if here is None:
        return None
    return place() / "pi-acp/node_modules/.bin/pi" if name == "pi" else Path(here[-1])


def _asks(name: str, home: Path) -> Callable[[], str]:
    def asked() -> str:
        if name == "cline":  # it has no list
            return (home / CLINE_FILE).read_text()
        argv = [name, "mcp", "list"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    return asked


@pytest.mark.requirement("mcp-install:real")
@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_real_program_has_our_server_after_install_and_not_after_uninstall(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = _binary(name)
    if binary is None:
        pytest.skip(f"{name} is not installed: make test-real")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / name).symlink_to(binary)
    path = [programs, node(24)[0].parent, Path(sys.executable).parent]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, path), os.environ["PATH"]]))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path / "h"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(programs)
    ask = _asks(name, tmp_path)

    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    assert SAYS[name] in ask()
    main(["down", "--yes"])  # what came to life to answer it

    if name == "kilo":
        assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_USAGE
        return
    assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_OK
    assert SAYS[name] not in ask()


@pytest.mark.requirement("mcp-install:real")
def test_a_real_goose_reads_the_entry_that_is_printed_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    goose = found("goose")
    if goose is None:
        pytest.skip("goose is not installed: make test-real")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert main(["mcp", "config", "goose", "--json"]) == EXIT_OK
    told = json.loads(capsys.readouterr().out)
    file = Path(told["file"])
    file.parent.mkdir(parents=True)
    file.write_text(told["snippet"])

    argv = [*goose, "info", "-v"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    assert "subagents" in done.stdout, done
