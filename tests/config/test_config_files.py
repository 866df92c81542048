"""A file of configuration counts only where nobody else could have written it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.config.places import LIMIT, Place

from subagents.cli.setup import doctor
from subagents.config import ConfigCache
from subagents.config.config_files import find_files
from subagents.config.trust import trust

SOMEBODY = 12_345
NINE = "[agents.defaults.subagents]\nmax_concurrent = 9\n"
is_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


def limit(place: Place) -> tuple[int, tuple[str, ...]]:
    config = place.load()
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
    place: Place, harm: Callable[[Path], str]
) -> None:
    place.project.write_text(NINE)
    assert limit(place) == (9, ())
    said = harm(place.project)
    found, (line,) = limit(place)
    assert found == 8
    assert line.startswith(f"{place.project} is ignored: ")
    assert said in line
    assert f"subagents config trust {place.project}" in line
    assert ("chown" in line) or (f"chmod go-w {place.project}" in line)


@pytest.mark.requirement("config:ownership")
@pytest.mark.parametrize("harm", HARMS)
def test_a_file_in_a_directory_that_others_can_write_does_not_count(
    place: Place, harm: Callable[[Path], str]
) -> None:
    place.project.write_text(NINE)
    said = harm(place.project.parent)
    found, (line,) = limit(place)
    assert found == 8
    assert f"its directory {place.project.parent}" in line
    assert said.strip("()") in line


@pytest.mark.requirement("config:ownership")
@pytest.mark.parametrize("harm", HARMS)
def test_a_user_file_that_others_can_write_does_not_count(
    place: Place, harm: Callable[[Path], str]
) -> None:
    place.user.write_text(NINE)
    assert limit(place) == (9, ())
    harm(place.user)
    found, (line,) = limit(place)
    assert found == 8
    assert str(place.user) in line


@is_root
@pytest.mark.requirement("config:ownership")
def test_a_link_of_somebody_else_to_a_file_of_ours_does_not_count(place: Place) -> None:
    mine = place.cwd.parent / "mine.toml"
    mine.write_text(NINE)
    place.project.symlink_to(mine)
    assert limit(place) == (9, ())
    given_away(place.project)
    found, (line,) = limit(place)
    assert found == 8
    assert "the link belongs to" in line


@pytest.mark.requirement("config:ownership")
def test_a_file_of_ours_in_a_sticky_directory_counts(place: Place) -> None:
    place.project.write_text(NINE)
    place.project.parent.chmod(0o1777)
    assert limit(place) == (9, ())


@pytest.mark.requirement("config:ownership")
def test_behind_a_file_that_does_not_count_the_next_one_does(place: Place) -> None:
    place.project.write_text(NINE)
    nearer = place.cwd / "subagents.toml"
    nearer.write_text(NINE.replace("9", "10"))
    nearer.chmod(0o666)
    found, (line,) = limit(place)
    assert found == 9
    assert str(nearer) in line


@pytest.mark.requirement("config:ownership")
def test_a_file_of_somebody_else_counts_when_exactly_its_bytes_are_trusted(place: Place) -> None:
    place.project.write_text(NINE)
    place.project.chmod(0o666)
    trust(place.paths, place.project)
    assert limit(place) == (9, ())
    place.project.write_text(NINE.replace("9", "99"))
    found, (line,) = limit(place)
    assert found == 8
    assert str(place.project) in line


@pytest.mark.requirement("config:ownership")
def test_a_wrong_file_of_somebody_else_stops_nobody(place: Place) -> None:
    place.project.write_text("this is = no [toml")
    place.project.chmod(0o666)
    assert limit(place)[0] == 8


@pytest.mark.requirement("config:ownership")
def test_the_cache_notices_that_a_file_was_opened_to_others(place: Place) -> None:
    place.project.write_text(NINE)
    cache = ConfigCache(place.environ, place.paths)
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 9
    place.project.parent.chmod(0o777)
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 8


@pytest.mark.requirement("config:search-root")
def test_the_search_ends_at_the_root_of_the_repository(place: Place) -> None:
    place.project.write_text(NINE)
    (place.cwd.parent / ".git").write_text("gitdir: elsewhere")
    assert limit(place) == (8, ())
    (place.cwd.parent / "subagents.toml").write_text(NINE.replace("9", "10"))
    assert limit(place) == (10, ())


@pytest.mark.requirement("config:search-root")
def test_the_search_ends_at_the_home_directory(place: Place) -> None:
    place.project.write_text(NINE)
    place.environ["HOME"] = str(place.cwd.parent)
    assert limit(place) == (8, ())
    place.environ["HOME"] = str(place.project.parent)
    assert limit(place) == (9, ())


@pytest.mark.requirement("config:ownership")
def test_doctor_names_the_file_that_does_not_count(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.project.write_text(NINE)
    place.project.chmod(0o666)
    monkeypatch.chdir(place.cwd)
    check = doctor._config(place.paths)
    assert check.status == "warn"
    assert f"{place.project} is ignored: others can write it (mode 0666)" in check.detail


@pytest.mark.requirement("config:ownership")
def test_no_file_is_no_problem(place: Place) -> None:
    shutil.rmtree(place.user.parent)
    assert find_files(place.cwd, place.user, None) == (None, ())
    assert place.load().origins.get(LIMIT) is None
