"""The systemd service: its unit file, and systemctl."""

import sys
from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.extensions.service import service_commands


@pytest.mark.requirement("cli:service")
def test_the_service_leaves_workers_alone_and_needs_systemd(home: Home, tmp_path: Path) -> None:
    unit = home.ok("service", "install", "--dry-run").out
    assert "KillMode=process" in unit
    assert "Delegate=yes\nDelegateSubgroup=daemon\n" in unit
    assert f'Environment="SUBAGENTS_HOME={home.root / "h"}"' in unit
    assert "Type=notify\nNotifyAccess=main\nWatchdogSec=60\nTimeoutStartSec=infinity\n" in unit
    assert f'Environment="PATH={home.env()["PATH"]}"' in unit
    empty = tmp_path / "empty"
    empty.mkdir()
    done = home.cli("service", "install", env={"PATH": str(empty)})
    assert done.code == 7
    assert "has no systemd" in done.err


@pytest.mark.requirement("cli:service")
def test_the_service_is_installed_and_taken_away_through_systemctl(
    home: Home, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ $2 != is-active ]\n'
    )
    (tools / "systemctl").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    unit = tmp_path / "config" / "systemd" / "user" / "subagents.service"
    home.ok("up")
    refused = home.cli("service", "install", env=env)
    assert "subagents down --yes && subagents service install" in refused.err
    assert not unit.exists()
    home.down()
    assert home.cli("service", "install", env=env).code == 0
    assert "serve" in unit.read_text()
    assert "--user enable --now subagents.service" in (tmp_path / "calls").read_text()
    assert home.cli("service", "uninstall", env=env).code == 0
    assert not unit.exists()
    assert "--user disable --now subagents.service" in (tmp_path / "calls").read_text()


@pytest.mark.requirement("cli:service")
def test_a_path_with_blanks_and_percent_signs_survives_the_unit_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my py%/python")
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path / 'a "b" %c'))
    unit = service_commands.unit_text()
    assert 'ExecStart="/opt/my py%%/python" -m subagents serve\n' in unit
    assert f'Environment="SUBAGENTS_HOME={tmp_path}/a \\"b\\" %%c"\n' in unit
