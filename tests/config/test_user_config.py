"""While the user's file is wrong, what it said before holds."""

import pytest
from tests.config.config_homes import LIMIT, ConfigHome

from subagents.config import user_config
from subagents.config.user_config import UserConfig
from subagents.errors import ConfigError

NINE = "[agents.defaults.subagents]\nmax_concurrent = 9\n"
WRONG = "[agents.defaults.subagents]\nmax_concurent = 9\n"


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch, home: ConfigHome) -> None:
    monkeypatch.setattr(user_config, "LOOK_AGAIN_S", 0)
    home.paths.ensure()


@pytest.mark.requirement("daemon:last-good-config")
def test_what_was_good_last_holds_also_for_the_next_process(home: ConfigHome) -> None:
    home.user.write_text(NINE)
    first = UserConfig(home.environ, home.paths)
    assert first.now().defaults.max_concurrent == 9
    home.user.write_text(NINE.replace("9", "10"))
    assert first.now().defaults.max_concurrent == 10
    home.user.write_text(WRONG)
    assert first.now().defaults.max_concurrent == 10
    assert first.problem is not None

    second = UserConfig(home.environ, home.paths, {LIMIT: 3})
    assert second.at_start.settings.defaults.max_concurrent == 3
    assert second.now().defaults.max_concurrent == 3
    assert second.problem is not None
    assert (
        f"{home.user}:2: unknown key agents.defaults.subagents.max_concurent"
        in second.problem.message
    )

    home.user.write_text(NINE)
    assert second.now().defaults.max_concurrent == 9
    assert second.problem is None


@pytest.mark.requirement("daemon:last-good-config")
def test_a_relative_path_of_the_last_good_file_starts_where_the_file_is(home: ConfigHome) -> None:
    home.user.write_text("[agents.a]\nruntime = 'command'\ncommand = ['a']\ncwd = 'here'\n")
    UserConfig(home.environ, home.paths).now()
    home.user.write_text(WRONG)
    kept = UserConfig(home.environ, home.paths).at_start.settings
    assert kept.agent("a").cwd == str(home.user.parent / "here")


@pytest.mark.requirement("daemon:last-good-config", "files:private")
def test_the_last_good_file_is_its_owners_alone(home: ConfigHome) -> None:
    home.user.write_text(NINE)
    UserConfig(home.environ, home.paths).now()
    assert home.paths.last_good_config_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("daemon:last-good-config")
def test_without_anything_good_before_the_error_is_about_the_file_as_it_is(
    home: ConfigHome,
) -> None:
    home.user.write_text(WRONG)
    with pytest.raises(ConfigError, match="max_concurent"):
        UserConfig(home.environ, home.paths)
