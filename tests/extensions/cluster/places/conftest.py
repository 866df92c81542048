"""Both ways to a place, for tests of what each must do."""

from collections.abc import Iterator

import pytest
from tests.extensions.cluster.places.place_worlds import PolledWorld, TemporalWorld
from tests.extensions.cluster.places.temporal_server import TemporalServer, temporal
from tests.extensions.cluster.postgres.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def temporal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture(params=["postgres", "temporal"])
def world(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[PolledWorld]:
    if request.param == "postgres":
        made = PolledWorld(postgres)
    else:
        pytest.importorskip("temporalio")
        made = TemporalWorld(postgres, request.getfixturevalue("temporal_server"))
    yield made
    made.close()
