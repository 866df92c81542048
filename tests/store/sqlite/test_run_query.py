"""What a list costs is what it shows: query plans, and the steps of SQLite's machine."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import a_store

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.ports import Batch, Place, RunFilter
from subagents.store.run_filters import mentions
from subagents.store.sqlite.run_query import narrowed
from subagents.store.sqlite.statements import statements
from subagents.testing.store_suite import NOW_MS, a_run, archived, over, spawned

ME = SessionKey("agent:main:main")
RUN = RunId("r-1")


RUNS = 3_000
PLACE = Place(NOW_MS + 500, RunId("r-500"))
STEPS_PER_RUN = 250
"""Of SQLite's machine, for a run that is shown; one that is only counted takes 15."""

FILTERS = {
    "all": (RunFilter(), "run_created"),
    "archived": (RunFilter(listed=False, archived=True), "run_created"),
    "given up": (RunFilter(phases=(Phase.COMPLETED_GIVEUP,)), "run_given_up"),
    "open": (RunFilter(phases=(Phase.RUNNING, Phase.QUEUED)), "run_open"),
    "most phases": (RunFilter(phases=(Phase.COMPLETED, Phase.RUNNING)), "run_created"),
    "failed": (RunFilter(outcomes=(Status.ERROR, Status.TIMEOUT)), "run_outcome"),
    "most outcomes": (RunFilter(outcomes=(Status.OK, Status.ERROR)), "run_created"),
    "an agent": (RunFilter(agent_id="a1"), "run_agent"),
    "no such agent": (RunFilter(agent_id="nobody", archived=True), "run_agent"),
    "a directory": (RunFilter(directory="/srv/p3"), "run_directory"),
    "directories": (RunFilter(directory="/srv"), "run_directory"),
    "no such directory": (RunFilter(directory="/home", archived=True), "run_directory"),
    "a tag": (RunFilter(tags=("t0",)), "run_tag"),
    "no such tag": (RunFilter(tags=("none",)), "run_tag"),
    "a label": (RunFilter(requester=ME, label="label9"), "run_label"),
    "a requester": (RunFilter(requester=ME, agent_id="a1"), "run_requester"),
    "no such requester": (RunFilter(requester=SessionKey("agent:x:y")), "run_requester"),
    "since": (RunFilter(since_ms=NOW_MS + RUNS), "run_created"),
    "a run's": (RunFilter(requester=ME, requester_run=RUN), "run_parent"),
    "below a run": (RunFilter(requester=ME, label="job", below=RUN), "autoindex_run_1 (run_id=?)"),
    "a plan": (RunFilter(plan="r-1"), "run_plan"),
    "plans": (RunFilter(requester=ME, plans=True), "run_plans"),
    "a page": (RunFilter(archived=True, behind=PLACE), "run_created"),
    "the oldest": (RunFilter(oldest_first=True), "run_created"),
    "after the oldest": (RunFilter(requester=ME, behind=PLACE, oldest_first=True), "run_requester"),
}


def of_many(number: int) -> Run:
    """Half of them are archived, and they are of three agents in ten directories."""
    run, place = a_run(number), f"/srv/p{number % 10}"
    run = replace(
        run,
        spec=replace(run.spec, tags=(f"t{number % 2}",)),
        resolved=replace(run.resolved, agent_id=f"a{number % 3}", cwd=place),
        times=replace(run.times, created_at_ms=NOW_MS + number),
    )
    return archived(over(run), NOW_MS) if number < RUNS // 2 else over(run)


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
        assert all("run_open" in line or "run_plans" in line for line in whole), lines


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
