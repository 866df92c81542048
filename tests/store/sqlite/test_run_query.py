"""What a list costs is what it shows: query plans, and the steps of SQLite's machine."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.many_runs import FILTERS, RUNS, of_many
from tests.store.sqlite.sqlite_place import a_store

from subagents.extensions.testing.stored_values import NOW_MS, archived, spawned
from subagents.ports import Batch, RunFilter
from subagents.store.run_filters import mentions
from subagents.store.sqlite.run_query import narrowed
from subagents.store.sqlite.statements import statements

STEPS_PER_RUN = 250
"""Of SQLite's machine, for a run that is shown; one that is only counted takes 15."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("many") / "subagents.db"
    with closing(a_store(path)) as store:
        store.open("one")
        store.commit(spawned(*(of_many(n) for n in range(RUNS))))
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("mentions", 4, mentions, deterministic=True)
        yield connection


def page_of(where: RunFilter) -> tuple[str, dict[str, object]]:
    statement, parameters = narrowed(statements()["select_runs"], where, lambda: (), far=20)
    return statement, {**parameters, "limit": 20, "offset": 0}


def count_of(where: RunFilter) -> tuple[str, dict[str, object]]:
    return narrowed(statements()["count_runs"], where, lambda: (), far=100)


def steps(connection: sqlite3.Connection, asked: tuple[str, dict[str, object]]) -> int:
    """How many steps SQLite's machine takes, to ten; what a statement costs, without a clock."""
    found = 0

    def step() -> int:
        nonlocal found
        found += 10
        return 0

    connection.set_progress_handler(step, 10)
    connection.execute(*asked).fetchall()
    connection.set_progress_handler(None, 0)
    return found


@pytest.mark.requirement("store:lists-are-bounded")
@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_walks_the_index_that_leaves_the_fewest_runs(
    name: str, many: sqlite3.Connection
) -> None:
    where, index = FILTERS[name]
    for statement, parameters in (page_of(where), count_of(where)):
        found = many.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
        lines = [str(detail) for *_, detail in found]

        assert any(index in line for line in lines), lines
        # An index that has nothing else than what is asked for may be read from its begin.
        whole = [line for line in lines if line.startswith("SCAN run")]
        walked = ("run_open", "run_plans", "run_archive")
        assert all(any(each in line for each in walked) for line in whole), lines


@pytest.mark.requirement("store:lists-are-bounded")
@pytest.mark.parametrize("name", FILTERS)
def test_a_page_and_its_count_cost_what_they_show_and_not_what_there_is(
    name: str, many: sqlite3.Connection
) -> None:
    where, _ = FILTERS[name]
    found = len(many.execute(*page_of(where)).fetchall())

    assert steps(many, page_of(where)) < (found + 20) * STEPS_PER_RUN
    assert steps(many, count_of(where)) < 100 * STEPS_PER_RUN


@pytest.mark.requirement("store:search")
def test_a_tag_is_found_as_long_as_its_run_is_there_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    run, other = of_many(RUNS), of_many(RUNS + 2)
    tagged, shelved = RunFilter(tags=("t0",)), RunFilter(tags=("t0",), listed=False, archived=True)
    with closing(a_store(path)) as store:
        store.open("one")
        store.commit(spawned(run, other))
        assert [each.id for each in store.runs(tagged)] == [other.id, run.id]
        store.commit(Batch(runs={run.id: archived(run, NOW_MS)}))
        assert [each.id for each in store.runs(tagged)] == [other.id]
        assert [each.id for each in store.runs(shelved)] == [run.id]
        store.prune([run.id])
        assert list(store.runs(shelved)) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM run_tag").fetchone() == (1,)
