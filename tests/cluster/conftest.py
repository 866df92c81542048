"""A PostgreSQL for the tests of this folder, and the number of rounds of the long ones."""

from collections.abc import Iterator

import pytest
from tests.store.postgres_server import PostgresServer, running


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One for each test: it may be killed and frozen."""
    with running() as server:
        yield server
