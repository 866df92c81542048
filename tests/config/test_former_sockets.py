"""What a version before left in the runtime directory leads to the home."""

import socket
from pathlib import Path

import pytest

from subagents.config.former_sockets import former_sockets, leave_links
from subagents.config.paths import Paths
from subagents.config.socket_path import digest


@pytest.mark.requirement("daemon:socket:former")
def test_links_are_left_where_a_version_before_listened_and_nowhere_else(short_path: Path) -> None:
    runtime = short_path / "rt"
    environ = {"HOME": str(short_path), "XDG_RUNTIME_DIR": str(runtime)}
    paths = Paths.resolve(environ)
    paths.ensure()
    leave_links(paths, environ)
    assert not runtime.exists()

    before = runtime / "subagents" / digest(str(paths.state_dir))
    before.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(before / "subagents.sock"))
    for _ in range(2):
        leave_links(paths, environ)
    assert {each.name: each.readlink() for each in before.iterdir()} == {
        "subagents.sock": paths.socket,
        "supervisor.sock": paths.supervisor_socket,
    }


@pytest.mark.requirement("daemon:socket:former")
@pytest.mark.parametrize(
    "changed",
    [
        {"SUBAGENTS_HOME": "/srv/agents"},
        {"XDG_RUNTIME_DIR": ""},
        {"XDG_RUNTIME_DIR": "rt"},
        {"XDG_RUNTIME_DIR": "/nowhere"},
        {"HOME": "/another"},
    ],
)
def test_a_home_that_was_never_there_has_none(tmp_path: Path, changed: dict[str, str]) -> None:
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "rt")}
    state = Paths.resolve(environ).state_dir
    (tmp_path / "rt" / "subagents" / digest(str(state))).mkdir(parents=True)
    assert len(list(former_sockets(Paths.resolve(environ), environ))) == 1
    assert list(former_sockets(Paths.resolve(environ | changed), environ | changed)) == []
