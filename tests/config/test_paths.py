"""Where state lives, and that it is private."""

import os
import pwd
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from subagents.config.paths import Paths, session_name
from subagents.config.socket_path import SOCKET_BYTES_MAX
from subagents.errors import ConfigError, UsageError


@pytest.fixture
def xdg(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without SUBAGENTS_HOME whose base directories are below `short_path`."""
    monkeypatch.delenv("SUBAGENTS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(short_path))
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(short_path / name.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path / "runtime"))
    return short_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.requirement("paths:home")
def test_everything_is_below_the_home_that_is_named() -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": "/srv/h"})

    assert paths.config_file == Path("/srv/h/config/subagents.toml")
    assert paths.database == Path("/srv/h/state/subagents.db")
    assert paths.attempts_dir == Path("/srv/h/state/attempts")
    assert paths.log_file == Path("/srv/h/state/daemon.log")
    assert paths.lock_file == Path("/srv/h/state/subagents.lock")
    assert paths.cache_dir == Path("/srv/h/cache")
    assert paths.socket == Path("/srv/h/run/subagents.sock")


@pytest.mark.requirement("paths:home")
def test_a_relative_home_starts_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert Paths.resolve({"SUBAGENTS_HOME": "h"}).state_dir == tmp_path / "h" / "state"


@pytest.mark.requirement("paths:home")
def test_a_home_of_an_unknown_user_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such user to expand ~ for"):
        Paths.resolve({"SUBAGENTS_HOME": "~nobody-of-that-name/x"})


@pytest.mark.requirement("paths:xdg")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_without_a_home_the_xdg_directories_are_used(xdg: Path) -> None:
    paths = Paths.resolve(os.environ)

    assert paths.config_file == xdg / "config" / "subagents" / "subagents.toml"
    assert paths.state_dir == xdg / "state" / "subagents"
    assert paths.cache_dir == xdg / "cache" / "subagents"


@pytest.mark.requirement("paths:xdg")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_the_sockets_are_in_the_state_directory_whatever_the_system_has_for_them(
    xdg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (xdg / "runtime").mkdir(mode=0o700)
    before = Paths.resolve(os.environ)
    monkeypatch.setenv("TMPDIR", str(xdg / "elsewhere"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    assert Paths.resolve(os.environ) == before
    assert before.socket.parent == before.runtime_dir == before.state_dir / "run"
    assert before.supervisor_socket.parent == before.runtime_dir


@pytest.mark.requirement("paths:home")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_a_user_without_any_home_directory_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_user: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for environ in ({}, {"HOME": ""}, {"HOME": "x"}, {"SUBAGENTS_HOME": "~"}):
        with pytest.raises(ConfigError, match="HOME names no directory"):
            Paths.resolve(environ)
    assert Paths.resolve({"XDG_STATE_HOME": "/s", "HOME": "/h"}).state_dir == Path("/s/subagents")


@pytest.mark.requirement("paths:home")
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_the_users_own_directory_is_never_the_root_of_the_system() -> None:
    own = Path(pwd.getpwuid(os.getuid()).pw_dir)

    assert Paths.resolve({"SUBAGENTS_HOME": "~/x", "HOME": ""}).state_dir == own / "x/state"
    assert Paths.resolve({"SUBAGENTS_HOME": "~/x", "HOME": "/h"}).state_dir == Path("/h/x/state")


@pytest.mark.requirement("paths:private")
def test_directories_are_created_for_their_owner_alone(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path / "a" / "h")})
    previous = os.umask(0)
    try:
        paths.ensure()
        paths.ensure()
    finally:
        os.umask(previous)

    made = (paths.state_dir, paths.attempts_dir, paths.cache_dir, paths.runtime_dir)
    assert [mode(directory) for directory in made] == [0o700] * 4
    assert mode(tmp_path / "a") == 0o700


@pytest.mark.requirement("paths:private")
def test_a_directory_of_ours_that_others_may_enter_is_closed_to_them(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.state_dir.mkdir(mode=0o755)

    paths.ensure()

    assert mode(paths.state_dir) == 0o700


@pytest.mark.requirement("paths:private")
def test_a_file_in_the_way_of_a_directory_is_named(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.state_dir.write_text("")

    with pytest.raises(ConfigError) as caught:
        paths.ensure()

    assert caught.value.message == f"{paths.state_dir} is in the way: it is not a directory"


@pytest.mark.requirement("paths:private")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give directories away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.state_dir.mkdir()
    os.chown(paths.state_dir, 12345, -1)

    with pytest.raises(ConfigError, match=r"belongs to another user \(uid 12345, not 0\)"):
        paths.ensure()


@pytest.mark.requirement("paths:socket-length")
@pytest.mark.parametrize("excess", [0, 1])
def test_a_socket_path_one_byte_too_long_is_replaced_by_a_short_one(excess: int) -> None:
    filler = SOCKET_BYTES_MAX - len("//run/supervisor.sock") + excess
    paths = Paths.resolve({"SUBAGENTS_HOME": "/" + "é" * (filler // 2) + "x" * (filler % 2)})

    assert len(os.fsencode(paths.supervisor_socket)) <= SOCKET_BYTES_MAX
    assert paths.supervisor_socket.parent == paths.socket.parent
    assert paths.socket.is_relative_to(paths.runtime_dir) == (excess == 0)


@pytest.mark.requirement("paths:socket-length")
def test_the_short_socket_directory_is_private_and_the_same_for_the_same_home(
    tmp_path: Path,
) -> None:
    home = tmp_path / ("h" * 120)
    paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
    try:
        paths.ensure()

        assert mode(paths.socket.parent) == 0o700
        assert Paths.resolve({"SUBAGENTS_HOME": str(home)}).socket == paths.socket
        assert Paths.resolve({"SUBAGENTS_HOME": f"{home}2"}).socket != paths.socket
    finally:
        paths.socket.parent.rmdir()


@pytest.mark.requirement("paths:socket-length")
def test_a_link_planted_at_the_short_socket_directory_is_refused(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path / ("p" * 120))})
    (tmp_path / "target").mkdir()
    paths.socket.parent.symlink_to(tmp_path / "target")
    try:
        with pytest.raises(ConfigError, match="is in the way: it is a link, not a directory"):
            paths.ensure()
    finally:
        paths.socket.parent.unlink()


@pytest.mark.requirement("paths:windows")
def test_windows_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError) as caught:
        Paths.resolve({"SUBAGENTS_HOME": "C:/x"}, platform="win32")

    assert caught.value.message.startswith("subagents does not run on Windows")
    assert caught.value.hint == "run it inside WSL 2"


@pytest.mark.requirement("config:start-up")
def test_finding_the_paths_of_a_named_home_imports_nothing_heavy() -> None:
    program = (
        "import sys; from subagents.config.paths import Paths;"
        "Paths.resolve({'SUBAGENTS_HOME': '/h'});"
        "print(*{'msgspec', 'platformdirs', 'tomllib', 'tomlkit', 'pydantic'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == ""


@pytest.mark.requirement("mcp:bridge:session")
def test_a_projects_session_is_named_after_it_and_its_real_path(tmp_path: Path) -> None:
    project, other = tmp_path / "My Projéct!", tmp_path / "b" / "My Projéct!"
    project.mkdir()
    other.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(project)
    name = session_name(project)
    assert re.fullmatch(r"my-proj-ct-[0-9a-f]{8}", name)
    assert session_name(link) == session_name(f"{project}/") == name
    assert session_name(other) != name
    assert re.fullmatch(r"project-[0-9a-f]{8}", session_name("/"))
    assert len(session_name(tmp_path / ("x" * 200))) == 40 + 9
