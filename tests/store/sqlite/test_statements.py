"""The named statements: each used, each understood by the schema, none scanning a table."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import filled

from subagents.store import rows
from subagents.store.sqlite.statements import statements


@pytest.mark.requirement("store:named-statements")
def test_every_named_statement_is_used_and_every_used_one_exists() -> None:
    named = set(statements())
    store = Path(rows.__file__).parent
    sources = (*store.glob("*.py"), *store.glob("sqlite/*.py"))
    text = "".join(each.read_text("utf-8") for each in sources)

    unused = {name for name in named if f'"{name}"' not in text}

    assert unused == set()


@pytest.mark.requirement("store:named-statements")
def test_every_statement_is_understood_by_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    require_understood(path, statements())


def require_understood(path: Path, named_statements: Mapping[str, str]) -> None:
    """Fail unless the database there understands all of these."""
    with closing(sqlite3.connect(path)) as connection:
        for name, sql in named_statements.items():
            if ":" in sql:
                named = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
                connection.execute(f"EXPLAIN {sql}", named)
                continue
            places = max(sql.count("?"), 1)
            try:
                connection.execute(f"EXPLAIN {sql}", (None,) * places)
            except sqlite3.ProgrammingError:
                numbered = {part[0] for part in sql.split("?")[1:] if part[:1].isdigit()}
                connection.execute(f"EXPLAIN {sql}", (None,) * (len(numbered) or 0))
            assert sql.strip(), name


@pytest.mark.requirement("store:indexed")
@pytest.mark.parametrize(
    "name",
    [
        *("load_open", "load_keys", "load_open_keys", "select_run", "select_journal"),
        *("select_unread", "select_message", "find_runs", "update_run", "select_archivable"),
        *("select_feed", "newest_number", "select_prunable", "select_all_unread"),
        *("select_blockers", "count_unread", "select_touched", "select_these"),
        *("end_run", "archive_run", "select_alerted", "select_alerted_of_run", "select_news"),
    ],
)
def test_what_is_asked_all_the_time_scans_no_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    sql = statements()[name]
    numbered = {part[0] for part in sql.split("?")[1:] if part[:1].isdigit()}
    places = len(numbered) or sql.count("?")
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * places).fetchall()

    steps = [str(row[3]) for row in plan]
    scans = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
    # What is set aside are a few rows, if any.
    assert not [step for step in scans if step != "SCAN set_aside"], steps
