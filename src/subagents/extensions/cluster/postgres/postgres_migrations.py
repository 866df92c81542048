"""Numbered, forward-only migrations of a schema in PostgreSQL; all that are missing in one
transaction, which one process at a time makes.

Nodes of two versions work in one cluster while it is upgraded, and an old one that starts again
meanwhile finds a migration that it does not know. So a migration which the version before can
live with says how far that one knows them: ``-- needs 0005``. Without such a line only programs
that know it may use the schema.
"""

import re
from functools import cache
from typing import Final

from subagents.errors import CorruptState
from subagents.extensions.cluster.postgres.link import Link
from subagents.store.named_statements import named_statements, numbered_scripts

LOCK_WAIT: Final = "60s"
"""How long another process that migrates is waited for."""
IDLE_MAX: Final = "10s"


_NEEDS: Final = re.compile(r"^-- needs (\d{4})$", re.MULTILINE)


RUN_ROW: Final = (
    *("number", "run_id", "seq", "phase", "label", "agent_id", "requester", "requester_run"),
    *("session_key", "is_over", "keeps_session", "created_at_ms", "ended_at_ms", "archived_at_ms"),
    *("origin", "state", "origin_checksum", "state_checksum", "directory", "tags", "outcome"),
    *("plan", "pending", "origin_signature", "state_signature"),
)
"""The columns of a run's row that ``rows`` reads, in this order, and its signatures."""


@cache
def statements(schema: str, package: str = __package__) -> dict[str, str]:
    """Every named statement of a package, about this schema."""
    found = named_statements(package)
    run_row = ", ".join(f"run.{column}" for column in RUN_ROW)
    return {
        name: sql.replace("{schema}", schema).replace("{run_row}", run_row)
        for name, sql in found.items()
    }


@cache
def scripts() -> tuple[tuple[int, str, str], ...]:
    """``(number, name, script)`` of every file in ``migrations/``, in order."""
    return numbered_scripts(__package__)


def migrate(link: Link, schema: str) -> None:
    """Apply what is missing.

    Raises:
        CorruptState: Only newer programs may use the schema; nothing was changed.
        psycopg.Error: The server refused a step; nothing was changed.
    """
    sql = statements(schema)
    with link.connection.transaction():
        link.ask(sql["set_waits"], (LOCK_WAIT, IDLE_MAX))
        link.ask(sql["lock_migrations"])
        link.ask(sql["make_schema"])
        link.ask(sql["make_migrations"])
        current = require_known(link, schema)
        for number, name, script in scripts():
            if number > current:
                # Several statements, which only the simple protocol takes.
                link.run_script(script.replace("{schema}", schema))
                link.ask(sql["put_migration"], (number, name, needs(number, script)))


def needs(number: int, script: str) -> int:
    """The least newest migration that a program knows which may use a schema with this one."""
    said = _NEEDS.search(script)
    return number if said is None else int(said[1])


def require_known(link: Link, schema: str) -> int:
    """Refuse a schema that only newer programs may use; the newest migration that it has.

    Raises:
        CorruptState: It needs one that is not known here.
    """
    ((current, needed),) = link.ask(statements(schema)["select_migrations"])
    newest = scripts()[-1][0]
    if int(str(needed)) > newest:
        raise CorruptState(
            f"schema {schema} has migration {current} and needs programs that know {needed};"
            f" this version knows {newest}",
            hint="install the newer subagents again, or restore a backup from before the upgrade",
        )
    return int(str(current))
