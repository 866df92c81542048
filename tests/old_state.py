"""The databases that released versions left when they were killed with everything open."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def folders() -> list[Path]:
    """One of each released version: ``state-<version>``."""
    return sorted(DATA.glob("state-*"))


def restore(path: Path, version: str = "0.1.0") -> None:
    """Write the database, as that version left it, to a file that is not there yet."""
    script = gzip.decompress((DATA / f"state-{version}" / "state.sql.gz").read_bytes()).decode()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    path.chmod(0o600)


def expected(version: str = "0.1.0") -> dict[str, Any]:
    """``takenAtMs``, ``unread`` (messages) and ``runs``: what that version said, by run."""
    file = DATA / f"state-{version}" / "expected.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found
