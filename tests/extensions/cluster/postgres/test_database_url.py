"""The address of a database is libpq's, but for the schema."""

import psycopg
import pytest

from subagents.extensions.cluster.postgres.database_url import parse_url


@pytest.mark.requirement("store:postgres")
def test_what_libpq_reads_reaches_it_as_it_was_written() -> None:
    found = parse_url("postgresql:///agents?host=/run/my%20dir&schema=ours&application_name=a+b")
    assert psycopg.conninfo.conninfo_to_dict(found.conninfo) == {
        "dbname": "agents",
        "host": "/run/my dir",
        "application_name": "a+b",
    }
    assert found.schema == "ours"


@pytest.mark.requirement("store:postgres")
def test_the_address_that_people_see_has_no_password() -> None:
    shown = parse_url("postgresql://me:s%40cret@a,b/x?password=secret&sslmode=require").shown
    assert shown == "postgresql://me@a,b/x?sslmode=require"
