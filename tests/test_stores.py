"""Which store a home has."""

import sys
from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError
from subagents.installation import extra_command
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
def test_an_address_is_that_of_a_postgresql_and_is_told_without_its_password(home: Paths) -> None:
    store = store_of(home, DaemonSettings(store=ELSEWHERE))

    assert store.place == "postgresql://me@db.example/subagents"
    with pytest.raises(ConfigError, match="is no plain name") as refused:
        store_of(home, DaemonSettings(store=f"{ELSEWHERE}?schema=a-b"))
    assert "password" not in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.requirement("store:place")
def test_without_the_extra_an_address_says_what_to_install(
    home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [
        each for each in sys.modules if each.startswith("subagents.extensions.cluster.postgres")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match="psycopg is not installed") as refused:
        store_of(home, DaemonSettings(store=ELSEWHERE))
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(extra_command("postgres"))
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
