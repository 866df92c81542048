"""The database that version 0.1.0 left when it was killed with everything open."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "state-0.1.0"


def restore(path: Path) -> None:
    """Write the database, as 0.1.0 left it, to a file that is not there yet."""
    script = gzip.decompress((DATA / "state.sql.gz").read_bytes()).decode()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    path.chmod(0o600)


def expected() -> dict[str, Any]:
    """``takenAtMs``, ``unread`` (messages) and ``runs``: what 0.1.0 said, by run."""
    found: dict[str, Any] = json.loads((DATA / "expected.json").read_text("utf-8"))
    return found
