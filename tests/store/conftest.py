"""Both databases, for tests of what every store must do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.postgres_server import PostgresPlace, PostgresServer, running
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.testing.conformance import StorePlace


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_place(postgres: PostgresServer, tmp_path: Path) -> PostgresPlace:
    return PostgresPlace(postgres, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    if request.param == "sqlite":
        return SqlitePlace(tmp_path)
    return PostgresPlace(request.getfixturevalue("postgres"), tmp_path)
