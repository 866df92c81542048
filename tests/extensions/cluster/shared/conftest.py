"""The files of runs in a real PostgreSQL, as nodes of a cluster have them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.extensions.cluster.shared.row_place import RowPlace

from subagents.extensions.cluster.shared.run_tables import RunTables

NewTables = Callable[..., RunTables]


@pytest.fixture
def new_tables(postgres_place: PostgresPlace) -> Iterator[NewTables]:
    """Tables as another node sees them, each time it is called."""
    store = postgres_place.store()
    store.open("tests")
    store.close()
    made = []

    def new(identity: str = "a node") -> RunTables:
        made.append(RunTables(postgres_place.url, lambda: identity))
        return made[-1]

    yield new
    for each in made:
        each.close()


@pytest.fixture
def row_place(postgres: PostgresServer, tmp_path: Path) -> Iterator[RowPlace]:
    place = RowPlace(PostgresPlace(postgres, tmp_path))
    yield place
    place.close()


@pytest.fixture
def transcripts(row_place: RowPlace) -> RowPlace:
    return row_place
