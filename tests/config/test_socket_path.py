"""The socket's path that commands start with is the one that everything else works out."""

import os
import pwd
import sys
from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.config.socket_path import SOCKET_BYTES_MAX, socket_path

LONG = "d" * 120
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "a home": {"SUBAGENTS_HOME": "/srv/agents"},
    "a long home": {"SUBAGENTS_HOME": f"/srv/{LONG}"},
    "an empty home": {"SUBAGENTS_HOME": ""},
    "the user's directories": {},
    "a state directory": {"XDG_STATE_HOME": "/var/state"},
    "a long state directory": {"XDG_STATE_HOME": f"/var/{LONG}", "XDG_RUNTIME_DIR": "/none"},
    "an empty state directory": {"XDG_STATE_HOME": ""},
    "a relative state directory": {"XDG_STATE_HOME": "here"},
    "a runtime directory": {"XDG_RUNTIME_DIR": "{tmp}"},
    "a runtime directory with a slash": {"XDG_RUNTIME_DIR": "{tmp}/"},
    "a runtime directory that is not there": {"XDG_RUNTIME_DIR": "/nowhere"},
    "a relative runtime directory": {"XDG_RUNTIME_DIR": "here"},
}
WORKED_OUT: dict[str, dict[str, str]] = {
    "relative": {"SUBAGENTS_HOME": "here"},
    "of a user": {"SUBAGENTS_HOME": "~/agents"},
    "with dots": {"SUBAGENTS_HOME": "/srv/../agents"},
    "with a slash": {"SUBAGENTS_HOME": "/srv/agents/"},
    "an empty HOME": {"HOME": ""},
    "a relative HOME": {"HOME": "here"},
    "a HOME with a slash": {"HOME": "/home/u/"},
}


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "os._Environ[str]":
    for name in ("SUBAGENTS_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return os.environ


@pytest.mark.requirement("paths:xdg")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_quick_answer_is_the_whole_one(
    name: str, environ: "os._Environ[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in ENVIRONMENTS[name].items():
        monkeypatch.setenv(key, value.format(tmp=tmp_path))
    assert socket_path(environ) == str(Paths.resolve(environ).socket)


@pytest.mark.requirement("paths:xdg")
@pytest.mark.parametrize("name", WORKED_OUT)
def test_what_must_be_worked_out_has_no_quick_answer(
    name: str, environ: "os._Environ[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in WORKED_OUT[name].items():
        monkeypatch.setenv(key, value)
    assert socket_path(environ) is None


SDK = {"LOGNAME": "u", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "TERM": "dumb", "USER": "u"}
"""What the SDKs of MCP hand on by default, besides HOME."""
CALLERS: dict[str, dict[str, str]] = {
    "a login shell": {"HOME": "{home}", "XDG_RUNTIME_DIR": "{rt}", "PATH": "/usr/bin"},
    "another login": {"HOME": "{home}", "XDG_RUNTIME_DIR": "{other}"},
    "cron": {"HOME": "{home}", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "u"},
    "an MCP client": {"HOME": "{home}", **SDK},
    "env -i": {"HOME": "{home}", "PATH": "/bin"},
    "su, which keeps the directory of the user before": {
        "HOME": "{home}", "USER": "u", "XDG_RUNTIME_DIR": "/run/user/99999",
    },
    "after the last logout": {"HOME": "{home}", "XDG_RUNTIME_DIR": "{rt}/gone"},
    "a batch node": {"HOME": "{home}", "TMPDIR": "/scratch/42", "XDG_RUNTIME_DIR": ""},
    "a service": {"HOME": "{home}", "INVOCATION_ID": "1", "RUNTIME_DIRECTORY": "/run/x"},
    "a HOME with a slash": {"HOME": "{home}/", "XDG_RUNTIME_DIR": "{rt}"},
    "empty variables": {
        "HOME": "{home}", "SUBAGENTS_HOME": "", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": "",
    },
    "relative variables, which count as unset": {"HOME": "{home}", "XDG_STATE_HOME": "state"},
    "the default, written out": {"HOME": "/x", "XDG_STATE_HOME": "{home}/.local/state"},
    "HOME unset": {"PATH": "/bin"},
    "HOME empty": {"HOME": "", "PATH": "/bin"},
    "HOME relative": {"HOME": "."},
}  # fmt: skip


@pytest.mark.requirement("paths:socket-of-home")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
@pytest.mark.parametrize("name", CALLERS)
def test_every_caller_of_a_home_comes_to_the_same_socket(
    name: str, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, runtime, other = (short_path / each for each in ("u", "rt", "other"))
    for each in (home, runtime, other):
        each.mkdir(mode=0o700)
    entry = list(pwd.getpwuid(os.getuid()))
    entry[5] = str(home)
    monkeypatch.setattr(pwd, "getpwuid", lambda _user: pwd.struct_passwd(entry))
    environ = {
        key: value.format(home=home, rt=runtime, other=other)
        for key, value in CALLERS[name].items()
    }
    wanted = home / ".local/state/subagents/run/subagents.sock"
    assert Paths.resolve(environ).socket == wanted
    assert socket_path(environ) in {str(wanted), None}


@pytest.mark.requirement("paths:socket-of-home")
@pytest.mark.parametrize("length", [10, 60, 86, 87, 110, 200])
def test_a_home_has_one_socket_by_whatever_way_it_is_reached(tmp_path: Path, length: int) -> None:
    deep = tmp_path / "d" / ("n" * length)
    deep.mkdir(parents=True)
    (tmp_path / "short").symlink_to(deep)
    (tmp_path / ("long" * 30)).symlink_to(deep)
    found = {
        os.path.realpath(Paths.resolve({"SUBAGENTS_HOME": str(way)}).socket)
        for way in (deep, tmp_path / "short", tmp_path / ("long" * 30))
    }
    assert len(found) == 1
    assert len(os.fsencode(found.pop())) <= SOCKET_BYTES_MAX
