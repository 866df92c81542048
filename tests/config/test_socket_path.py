"""The socket's path that commands start with is the one that everything else works out."""

import os
from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.config.socket_path import socket_path

LONG = "d" * 120
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "a home": {"SUBAGENTS_HOME": "/srv/agents"},
    "a long home": {"SUBAGENTS_HOME": f"/srv/{LONG}"},
    "an empty home": {"SUBAGENTS_HOME": ""},
    "the user's directories": {},
    "a state directory": {"XDG_STATE_HOME": "/var/state"},
    "a long state directory": {"XDG_STATE_HOME": f"/var/{LONG}", "XDG_RUNTIME_DIR": "/none"},
    "an empty state directory": {"XDG_STATE_HOME": ""},
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
    "a relative state directory": {"XDG_STATE_HOME": "here"},
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
