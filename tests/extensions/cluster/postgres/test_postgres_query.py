"""Lists in PostgreSQL are those of SQLite, and cost what they show."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.store.many_runs import FILTERS, RUNS, of_many
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import replace
from subagents.extensions.cluster.postgres.postgres_migrations import statements
from subagents.extensions.cluster.postgres.postgres_query import narrowed
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore, numbered
from subagents.extensions.testing.stored_values import NOW_MS, a_run, over, spawned
from subagents.ports import RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

ROWS_PER_RUN = 5
"""Visited for a run that is shown. In a directory of which one in ten is, ten are."""

SEARCHES = {
    **{name: where for name, (where, _) in FILTERS.items()},
    "a text": RunFilter(text="task 29"),
    "a label in capitals": RunFilter(text="LABEL7", archived=True),
    "no such text": RunFilter(text="nothing of the kind"),
    "a model": RunFilter(model="small"),
    "a page of a text": RunFilter(text="task", limit=7, offset=5),
    "the oldest with a text": RunFilter(text="9", oldest_first=True, limit=20),
    "by their end with a text": RunFilter(text="9", by_end=True, limit=20),
    "the first ends with a text": RunFilter(text="9", by_end=True, oldest_first=True, offset=3),
}


class Both(NamedTuple):
    sqlite: SqliteStore
    postgres: PostgresStore
    place: PostgresPlace


def ending(number: int) -> Run:
    """It has ended, and is not over yet."""
    return replace(
        over(a_run(number), ended_ms=NOW_MS + number % 400), phase=Phase.ANNOUNCE_DEFERRED
    )


@pytest.fixture(scope="module")
def many(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("many")
    place = PostgresPlace(postgres, directory)
    runs = [of_many(n) for n in range(RUNS)] + [a_run(n) for n in range(RUNS, RUNS + 10)]
    runs += [ending(n) for n in range(RUNS + 10, RUNS + 20)]
    with (
        closing(SqlitePlace(directory).store()) as sqlite,
        closing(place.store()) as store,
    ):
        for each in (sqlite, store):
            each.open("one")
            each.commit(spawned(*runs))
        place.execute("ANALYZE")
        yield Both(sqlite, store, place)


def ids(runs: object) -> list[str]:
    assert isinstance(runs, list)
    return [run.id for run in runs if isinstance(run, Run)]


@pytest.mark.requirement("store:filters", "store:search")
@pytest.mark.parametrize("name", SEARCHES)
def test_each_list_is_that_of_sqlite(name: str, many: Both) -> None:
    where = SEARCHES[name]
    for each in (where, replace(where, archived=True), replace(where, limit=3, offset=2)):
        assert ids(many.postgres.runs(each)) == ids(many.sqlite.runs(each))
        assert many.postgres.count(each, most=100) == many.sqlite.count(each, most=100)


@pytest.mark.requirement("store:filters")
def test_filters_together_find_what_sqlite_finds(many: Both) -> None:
    default = RunFilter()
    changed = [
        {
            name: value
            for name in where.__struct_fields__
            if (value := getattr(where, name)) != getattr(default, name)
        }
        for where in SEARCHES.values()
    ]
    found = 0
    for one, two in combinations(changed, 2):
        where = RunFilter(**{**one, **two})
        expected = ids(many.sqlite.runs(where))
        found += len(expected)
        assert ids(many.postgres.runs(where)) == expected, where
    assert found > 1_000


def visited(plan: dict[str, Any]) -> int:
    """Rows of tables and indexes that a plan looked at."""
    below = sum(visited(each) for each in plan.get("Plans", ()))
    if not plan["Node Type"].endswith("Scan") or plan["Node Type"] in {"CTE Scan", "Subquery Scan"}:
        return below
    passed = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return int(sum(plan.get(each, 0) for each in passed) * plan["Actual Loops"]) + below


def plan_of(store: PostgresStore, statement: str, values: Sequence[object]) -> dict[str, Any]:
    """How it was executed just now."""
    explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
    ((found,),) = store._fetched(explain, values)
    plan: dict[str, Any] = found[0]["Plan"]  # type: ignore[index]
    return plan


@pytest.mark.requirement("store:lists-are-bounded")
@pytest.mark.parametrize("name", FILTERS)
def test_a_page_costs_what_it_shows_and_not_what_there_is(name: str, many: Both) -> None:
    where, _ = FILTERS[name]
    asked, parameters = narrowed(many.postgres._sql, "select_runs", where, lambda: (), far=20)
    statement, values = numbered(asked, {**parameters, "limit": 20, "offset": 0})
    plan = plan_of(many.postgres, statement, values)

    assert visited(plan) <= (plan["Actual Rows"] + 30) * ROWS_PER_RUN, plan


@pytest.mark.requirement("store:alerts")
def test_alerts_are_found_without_the_events_between_them(postgres_place: PostgresPlace) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
        postgres_place.execute(
            "INSERT INTO journal (place, number, run, run_id, seq, at_ms, type, data)"
            " SELECT n, n, 1, 'r-1', n, 0,"
            " CASE WHEN n / 500 * 500 = n THEN 'Alerted' ELSE 'CleanedUp' END, '' "
            " FROM generate_series(100, 6000) AS n"
        )
        postgres_place.execute("ANALYZE")

        plan = plan_of(store, statements(postgres_place.schema)["select_alerted"], (5_000, 5))

    assert (plan["Actual Rows"], visited(plan)) == (5, 5), plan
