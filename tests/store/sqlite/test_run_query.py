import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from subagents.domain.run.values import RunId, SessionKey
from subagents.ports import RunFilter
from subagents.store.sqlite.migrate import migrate
from subagents.store.sqlite.run_query import mentions, narrowed
from subagents.store.sqlite.statements import statements

ME = SessionKey("agent:main:main")
RUN = RunId("r-1")


def plan(path: Path, where: RunFilter) -> str:
    with closing(sqlite3.connect(path / "db")) as connection:
        migrate(connection, path / "db")
        connection.create_function("mentions", 3, mentions, deterministic=True)
        statement, parameters = narrowed(statements()["select_runs"], where, lambda: ())
        found = connection.execute(
            f"EXPLAIN QUERY PLAN {statement}", {**parameters, "limit": 50, "offset": 0}
        )
        return "\n".join(str(detail) for *_, detail in found)


@pytest.mark.requirement("store:rows")
@pytest.mark.parametrize(
    ("where", "index"),
    [
        (RunFilter(), "run_created"),
        (RunFilter(directory="/work", tags=("a",), text="b"), "run_created"),
        (RunFilter(requester=ME), "run_requester"),
        (RunFilter(requester=ME, requester_run=RUN), "run_parent"),
        (RunFilter(requester=ME, label="job"), "run_label"),
        (RunFilter(plan="r-1"), "run_plan"),
        (RunFilter(plans=True), "run_plans"),
        (RunFilter(requester=ME, label="job", below=RUN), "sqlite_autoindex_run_1 (run_id=?)"),
    ],
)
def test_each_filter_uses_the_index_that_leaves_the_fewest_rows(
    tmp_path: Path, where: RunFilter, index: str
) -> None:
    scans = [line for line in plan(tmp_path, where).splitlines() if " run " in f"{line} "]

    assert index in scans[0]


@pytest.mark.requirement("store:search")
def test_a_list_without_a_label_is_read_in_its_order_and_not_sorted(tmp_path: Path) -> None:
    for where in (RunFilter(), RunFilter(requester=ME), RunFilter(directory="/", text="x")):
        assert "TEMP B-TREE" not in plan(tmp_path, where)


@pytest.mark.requirement("store:search")
@pytest.mark.parametrize("origin", [b"{", b"\xff", b"[]", None, "text"])
def test_what_cannot_be_read_mentions_nothing(origin: object) -> None:
    assert not mentions(None, origin, "a")
    assert mentions("A label", origin, "a l")
