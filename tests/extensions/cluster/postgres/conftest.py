"""What every store must do is tried here with the rows in a real PostgreSQL."""

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace


@pytest.fixture
def place(postgres_place: PostgresPlace) -> PostgresPlace:
    return postgres_place
