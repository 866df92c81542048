"""Both databases, for tests of what every store must do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.postgres_server import PostgresPlace, PostgresServer, pooled, running
from tests.store.row_place import RowPlace
from tests.store.sqlite.sqlite_place import SqlitePlace


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process; they kill it, and its machine never."""
    with running(is_durable=False) as server:
        yield server


@pytest.fixture
def postgres_place(postgres: PostgresServer, tmp_path: Path) -> PostgresPlace:
    return PostgresPlace(postgres, tmp_path)


@pytest.fixture(scope="session")
def pooler(postgres: PostgresServer) -> Iterator[Path]:
    """A PgBouncer before that server."""
    with pooled(postgres) as host:
        yield host


@pytest.fixture
def pooled_place(postgres: PostgresServer, pooler: Path, tmp_path: Path) -> PostgresPlace:
    return PostgresPlace(postgres, tmp_path, host=pooler)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.tier("check"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> RowPlace:
    if request.param == "sqlite":
        return SqlitePlace(tmp_path)
    return PostgresPlace(request.getfixturevalue("postgres"), tmp_path)
