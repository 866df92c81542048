"""A real PostgreSQL, and homes that share a schema of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.extensions.cluster.pinned_nodes import ClusterHomes
from tests.extensions.cluster.postgres.postgres_server import (
    PostgresPlace,
    PostgresServer,
    pooled,
    running,
)


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
    """Where the socket of a PgBouncer before that server is."""
    with pooled(postgres) as found:
        yield found.directory


@pytest.fixture
def pooled_place(postgres: PostgresServer, pooler: Path, tmp_path: Path) -> PostgresPlace:
    return PostgresPlace(postgres, tmp_path, host=pooler)


@pytest.fixture
def homes(postgres: PostgresServer, tmp_path: Path) -> ClusterHomes:
    return ClusterHomes(postgres.url(postgres.new_schema()), tmp_path)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One for each test: it may be killed and frozen."""
    with running() as server:
        yield server
