"""A real PostgreSQL, and homes that share a schema of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.extensions.cluster.trust_homes import TrustHomes
from tests.store.conftest import pooled_place, pooler, postgres, postgres_place
from tests.store.postgres_server import PostgresServer, running

__all__ = ["pooled_place", "pooler", "postgres", "postgres_place"]


@pytest.fixture
def homes(postgres: PostgresServer, tmp_path: Path) -> TrustHomes:
    return TrustHomes(postgres.url(postgres.new_schema()), tmp_path)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One for each test: it may be killed and frozen."""
    with running() as server:
        yield server
