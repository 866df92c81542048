"""A file of configuration counts only where nobody else could have written it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.config.config_homes import LIMIT, ConfigHome

from subagents.config.config_files import find_files
from subagents.config.layers import LOOK_AGAIN_S, ConfigCache
from subagents.config.trust import trust

SOMEBODY = 12_345
NINE = "[agents.defaults.subagents]\nmax_concurrent = 9\n"
is_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


def limit(home: ConfigHome) -> tuple[int, tuple[str, ...]]:
    config = home.load()
    return config.settings.defaults.max_concurrent, config.ignored


def given_away(path: Path) -> str:
    os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    return f"belongs to uid {SOMEBODY}, not to you"


def open_to_all(path: Path) -> str:
    path.chmod(0o777)
    return "(mode 0777)"


def open_to_group(path: Path) -> str:
    path.chmod(0o775)
    os.chown(path, -1, os.getgid() if os.getuid() else SOMEBODY)
    return "(mode 0775)"


HARMS = [
    pytest.param(given_away, marks=is_root),
    open_to_all,
    pytest.param(open_to_group, marks=is_root),
]


@pytest.mark.requirement("config:ownership")
@pytest.mark.parametrize("harm", HARMS)
def test_a_project_file_that_others_can_write_does_not_count_and_that_is_said(
    home: ConfigHome, harm: Callable[[Path], str]
) -> None:
    home.project.write_text(NINE)
    assert limit(home) == (9, ())
    said = harm(home.project)
    found, (line,) = limit(home)
    assert found == 8
    assert line.startswith(f"{home.project} is ignored: ")
    assert said in line
    assert f"subagents config --trust {home.project}" in line
    assert ("chown" in line) or (f"chmod go-w {home.project}" in line)


@pytest.mark.requirement("config:ownership")
@pytest.mark.parametrize("harm", HARMS)
def test_a_file_in_a_directory_that_others_can_write_does_not_count(
    home: ConfigHome, harm: Callable[[Path], str]
) -> None:
    home.project.write_text(NINE)
    said = harm(home.project.parent)
    found, (line,) = limit(home)
    assert found == 8
    assert f"its directory {home.project.parent}" in line
    assert said.strip("()") in line


@pytest.mark.requirement("config:ownership")
@pytest.mark.parametrize("harm", HARMS)
def test_a_user_file_that_others_can_write_does_not_count(
    home: ConfigHome, harm: Callable[[Path], str]
) -> None:
    home.user.write_text(NINE)
    assert limit(home) == (9, ())
    harm(home.user)
    found, (line,) = limit(home)
    assert found == 8
    assert str(home.user) in line


@is_root
@pytest.mark.requirement("config:ownership")
def test_a_link_of_somebody_else_to_a_file_of_ours_does_not_count(home: ConfigHome) -> None:
    mine = home.cwd.parent / "mine.toml"
    mine.write_text(NINE)
    home.project.symlink_to(mine)
    assert limit(home) == (9, ())
    given_away(home.project)
    found, (line,) = limit(home)
    assert found == 8
    assert "the link belongs to" in line


@pytest.mark.requirement("config:ownership")
def test_a_file_of_ours_in_a_sticky_directory_counts(home: ConfigHome) -> None:
    home.project.write_text(NINE)
    home.project.parent.chmod(0o1777)
    assert limit(home) == (9, ())


@pytest.mark.requirement("config:ownership")
def test_behind_a_file_that_does_not_count_the_next_one_does(home: ConfigHome) -> None:
    home.project.write_text(NINE)
    nearer = home.cwd / "subagents.toml"
    nearer.write_text(NINE.replace("9", "10"))
    nearer.chmod(0o666)
    found, (line,) = limit(home)
    assert found == 9
    assert str(nearer) in line


@pytest.mark.requirement("config:ownership")
def test_a_file_of_somebody_else_counts_when_exactly_its_bytes_are_trusted(
    home: ConfigHome,
) -> None:
    home.project.write_text(NINE)
    home.project.chmod(0o666)
    trust(home.paths, home.project)
    assert limit(home) == (9, ())
    home.project.write_text(NINE.replace("9", "99"))
    found, (line,) = limit(home)
    assert found == 8
    assert str(home.project) in line


@pytest.mark.requirement("config:ownership")
def test_a_wrong_file_of_somebody_else_stops_nobody(home: ConfigHome) -> None:
    home.project.write_text("this is = no [toml")
    home.project.chmod(0o666)
    assert limit(home)[0] == 8


@pytest.mark.requirement("config:ownership")
def test_the_cache_notices_that_a_file_was_opened_to_others(home: ConfigHome) -> None:
    home.project.write_text(NINE)
    now_s = 0.0
    cache = ConfigCache(home.environ, home.paths, lambda: now_s)
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 9
    home.project.parent.chmod(0o777)
    now_s += LOOK_AGAIN_S
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 8


@pytest.mark.requirement("config:search-root")
def test_the_search_ends_at_the_root_of_the_repository(home: ConfigHome) -> None:
    home.project.write_text(NINE)
    (home.cwd.parent / ".git").write_text("gitdir: elsewhere")
    assert limit(home) == (8, ())
    (home.cwd.parent / "subagents.toml").write_text(NINE.replace("9", "10"))
    assert limit(home) == (10, ())


@pytest.mark.requirement("config:search-root")
def test_the_search_ends_at_the_home_directory(home: ConfigHome) -> None:
    home.project.write_text(NINE)
    home.environ["HOME"] = str(home.cwd.parent)
    assert limit(home) == (8, ())
    home.environ["HOME"] = str(home.project.parent)
    assert limit(home) == (9, ())


@pytest.mark.requirement("config:ownership")
def test_no_file_is_no_problem(home: ConfigHome) -> None:
    shutil.rmtree(home.user.parent)
    assert find_files(home.cwd, home.user, None) == (None, ())
    assert home.load().origins.get(LIMIT) is None
