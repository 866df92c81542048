"""A real PostgreSQL, and homes that share a schema of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.trust_homes import TrustHomes
from tests.store.postgres_server import PostgresServer, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running(is_durable=False) as server:
        yield server


@pytest.fixture
def homes(postgres: PostgresServer, tmp_path: Path) -> TrustHomes:
    return TrustHomes(postgres.url(postgres.new_schema()), tmp_path)
