"""A real PostgreSQL, and homes that share a schema of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.trust_homes import TrustHomes
from tests.store.postgres_server import PostgresServer, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process that leave it as it is."""
    with running(is_durable=False) as server:
        yield server


@pytest.fixture
def homes(postgres: PostgresServer, tmp_path: Path) -> TrustHomes:
    return TrustHomes(postgres.url(postgres.new_schema()), tmp_path)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One for each test: it may be killed and frozen."""
    with running() as server:
        yield server
