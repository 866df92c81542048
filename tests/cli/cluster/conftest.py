"""Homes that are to share a real PostgreSQL."""

from collections.abc import Iterator

import pytest
from tests.store.postgres_server import PostgresServer, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with running(is_durable=False) as server:
        yield server
