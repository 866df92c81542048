"""The named statements: each used, each understood by the schema, none scanning a table."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace

from subagents.domain.cluster.partitioning import OUTAGE_LEASES
from subagents.extensions.cluster.postgres import postgres_store
from subagents.extensions.cluster.postgres.link import values_of
from subagents.extensions.cluster.postgres.postgres_migrations import statements
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore, numbered
from subagents.store import rows
from subagents.store.sqlite import statements as sqlite_statements

PIECES = {"any_run", "tagged_runs"}
"""Stand in others only."""
RUNS = {"archive_run", "end_run", "update_run"}
UTILITIES = {"make_schema", "make_migrations"}


def numbered_of(sql: str) -> str:
    names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", sql))
    return numbered(sql, names)[0]


def numbered_places(sql: str) -> set[str]:
    return set(re.findall(r"\$(\d+)", sql))


def plan_of(store: PostgresStore, sql: str) -> str:
    """How a statement is executed, whatever its parameters are and however few rows there are."""
    sql = numbered_of(sql)
    values = ", ".join(["NULL"] * len(set(re.findall(r"\$\d+", sql))))
    with store._reader() as link, link.connection.transaction(force_rollback=True):
        link.ask("SET LOCAL enable_seqscan = off")
        link.ask("SET LOCAL plan_cache_mode = force_generic_plan")
        link.ask(f"PREPARE planned AS {sql.removesuffix(';')}")
        found = link.ask(f"EXPLAIN EXECUTE planned{f'({values})' if values else ''}")
        link.ask("DEALLOCATE planned")
    return "\n".join(str(line) for (line,) in found)


@pytest.mark.requirement("store:named-statements")
def test_every_named_statement_is_used() -> None:
    store, own = Path(rows.__file__).parent, Path(postgres_store.__file__).parent
    sources = (*store.glob("*.py"), *own.glob("*.py"))
    text = "".join(each.read_text("utf-8") for each in sources)

    assert [name for name in statements("s") if f'"{name}"' not in text] == []


@pytest.mark.requirement("store:named-statements")
def test_every_statement_is_understood_by_the_schema(postgres_place: PostgresPlace) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
        for name, sql in statements(postgres_place.schema).items():
            if name not in PIECES | UTILITIES:
                assert plan_of(store, sql), name


@pytest.mark.requirement("store:named-statements")
def test_what_both_dialects_write_has_the_same_parameters() -> None:
    ours, theirs = statements("s"), sqlite_statements.statements()
    is_change = re.compile(r"INSERT|UPDATE|DELETE")
    written = [name for name, sql in ours.items() if is_change.match(sql) and "$1::" in sql]
    for name in ("insert_run", "insert_event", "update_run", "end_run", "put_lease"):
        assert name in written
    for name in {*written} & theirs.keys() - {"insert_run", "update_event"}:  # which say more
        places = set(re.findall(r"\?(\d+)", theirs[name])) or range(theirs[name].count("?"))
        values = [tuple(None for _ in numbered_places(ours[name]))]
        (found,) = values_of(ours[name], values)
        signatures = name in {"insert_event", "put_schedule", "update_origin"} | RUNS
        assert len(found) == len(places) + signatures, name


@pytest.mark.requirement("store:indexed")
@pytest.mark.parametrize(
    "name",
    [
        *("load_open", "load_keys", "load_open_keys", "select_run", "select_journal"),
        *("select_unread", "select_message", "find_runs", "update_run", "select_archivable"),
        *("select_feed", "newest_number", "select_tails", "select_prunable"),
        *("select_all_unread", "select_blockers", "count_unread", "select_touched"),
        *("select_these", "end_run", "archive_run", "insert_event", "consume_message"),
        *("delete_journal", "delete_messages", "release_lease", "move_messages", "load_pending"),
        *("outdate_alerts", "forget_idempotency", "count_below", "select_behind"),
        *("select_alerted", "select_alerted_of_run", "select_news", "select_open_ids"),
        *("run_part", "session_part", "event_place", "update_event", "kept_of_parts"),
    ],
)
def test_what_is_asked_all_the_time_scans_no_table(
    postgres_place: PostgresPlace, name: str
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
        plan = plan_of(store, statements(postgres_place.schema)[name])

    assert "Seq Scan on" not in plan.replace("Seq Scan on set_aside", ""), plan


@pytest.mark.requirement("cluster:outage")
@pytest.mark.parametrize("name", ["end_lapsed", "survey_nodes"])
def test_a_node_is_waited_for_as_long_as_its_workers_may_live_on(name: str) -> None:
    assert f"- {OUTAGE_LEASES} * lease_ms" in statements("s")[name]
