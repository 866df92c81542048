"""The simulated daemon on a real PostgreSQL: a few seeds, and two broken stores that are caught."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresServer, running
from tests.simulation.postgres_host import PostgresHost
from tests.simulation.simulator import Verdict, simulate

from subagents.extensions.cluster.postgres.postgres_store import PostgresStore


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running(is_durable=False) as server:
        yield server


def simulated(server: PostgresServer, seed: int) -> Verdict:
    return simulate(seed, is_sound=True, make_host=partial(PostgresHost, server))


@pytest.mark.requirement("simulator:postgres")
def test_some_seeds_hold_on_postgresql_with_kills_and_lines_that_are_cut(
    server: PostgresServer,
) -> None:
    verdicts = [simulated(server, seed) for seed in (2, 3, 5, 18)]

    assert [each.broken for each in verdicts if each.broken is not None] == []
    assert sum(each.crashes for each in verdicts) > 10


@pytest.mark.requirement("simulator:postgres")
@pytest.mark.parametrize("belief", [True, False])
def test_a_store_that_guesses_what_became_of_a_commit_is_caught(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, *, belief: bool
) -> None:
    real = PostgresStore._settle

    def guessed(store: Any) -> bool:
        is_asked = store._unsure is not None
        real(store)
        return is_asked and belief

    monkeypatch.setattr(PostgresStore, "_settle", guessed)
    # Which would notice that what is believed to be there is not.
    monkeypatch.setattr(PostgresStore, "_place_of", lambda store, _number, _journal: store._place)
    # The first catches it as long as nothing moves what seeds do.
    assert any(simulated(server, seed).broken is not None for seed in (4, 8, 22))
