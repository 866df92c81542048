"""Which store a home has."""

from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError
from subagents.stores import store_file_of, store_of

ELSEWHERE = "postgresql://me:password@db.example/subagents"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("SUBAGENTS_HOME", str(tmp_path))
    return Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})


@pytest.mark.requirement("store:place")
def test_without_an_address_the_store_is_a_file_in_the_state_directory(home: Paths) -> None:
    file = store_file_of(home)

    assert file is not None
    assert file.place == store_of(home, DaemonSettings()).place == str(home.database)


@pytest.mark.requirement("store:place")
def test_a_store_that_this_version_does_not_have_is_refused_without_its_password(
    home: Paths,
) -> None:
    with pytest.raises(ConfigError, match="no store for postgresql://") as refused:
        store_of(home, DaemonSettings(store=ELSEWHERE))

    assert "password" not in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.details == {"keys": ["daemon.store"]}


@pytest.mark.requirement("store:place")
def test_a_store_elsewhere_is_no_file_whatever_lies_in_the_state_directory(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_DAEMON__STORE", ELSEWHERE)

    assert store_file_of(home) is None


@pytest.mark.requirement("store:place", "cli:db:repair")
def test_a_configuration_that_cannot_be_read_hides_no_file(home: Paths) -> None:
    home.config_file.parent.mkdir(parents=True)
    home.config_file.write_text("zzz = ")

    assert store_file_of(home) is not None
