"""The floor of (a) as it was on 2026-11-25: the yardstick that leaner rows do not move.

``frozen_floor.json.xz`` holds the schema of then and every statement of 24 runs with its rows,
commit by commit, as ``lifecycle.record`` keeps them. They are executed under as many new ids as are
wanted, with the settings that the store then had; the file is never made anew.
"""

import gc
import json
import lzma
import random
import re
import sqlite3
import string
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from bench.floor import replay
from bench.lifecycle import Statement

RECORDING: Final = Path(__file__).with_name("frozen_floor.json.xz")
RUNS: Final = 24
Column: TypeAlias = str | int | dict[str, str] | None
"""As JSON has it; an object is a blob."""
PRAGMAS: Final = (
    ("auto_vacuum", "INCREMENTAL"),
    ("journal_mode", "WAL"),
    ("synchronous", "FULL"),
    ("wal_autocheckpoint", "2000"),
    ("cache_size", "-16384"),
    ("secure_delete", "ON"),
)
_NUMBERED: Final = re.compile(r"INSERT INTO (\w+) \(number,")
_ID: Final = re.compile(r"r-[a-z0-9]{10}")
_ALPHABET: Final = string.digits + string.ascii_lowercase


class _Copies:
    """The rows of the recording, again and again, each time for other runs."""

    def __init__(self, recorded: Iterable[str], copies: int) -> None:
        drawn, names = random.Random(1), tuple(recorded)
        self._ids = [
            {name: f"r-{''.join(drawn.choices(_ALPHABET, k=10))}" for name in names}
            for _ in range(copies)
        ]

    def of(self, sql: str, rows: list[list[Column]], width: int) -> Statement:
        """The statement with its rows for all copies; ``width`` is of its table's numbers."""
        is_numbered = _NUMBERED.match(sql) is not None
        made = []
        for copy, ids in enumerate(self._ids):
            for row in rows:
                values = tuple(self._value(value, ids) for value in row)
                if is_numbered:
                    values = (int(str(values[0])) + copy * width, *values[1:])
                made.append(values)
        return sql, made

    def _value(self, value: Column, ids: dict[str, str]) -> object:
        if isinstance(value, dict):
            return _renamed(value["b"], ids).encode()
        return _renamed(value, ids) if isinstance(value, str) else value


def _renamed(text: str, ids: dict[str, str]) -> str:
    return _ID.sub(lambda found: ids.get(found[0], found[0]), text)


def commits(copies: int) -> tuple[list[str], list[list[Statement]]]:
    """The schema, and the recorded commits for ``copies`` times their 24 runs."""
    recording = json.loads(lzma.decompress(RECORDING.read_bytes()))
    widths: Counter[str] = Counter()
    for each in recording["commits"]:
        widths.update({sql: len(rows) for sql, rows in each})
    made = _Copies(recording["runs"], copies)
    found = [
        [made.of(sql, rows, widths[sql]) for sql, rows in each] for each in recording["commits"]
    ]
    return recording["schema"], found


def measure(database: Path, *, runs: int) -> dict[str, float]:
    """Runs per second, of at least ``runs`` runs."""
    copies = -(-runs // RUNS)
    schema, recorded = commits(copies)
    gc.collect()
    gc.disable()
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        for name, value in PRAGMAS:
            connection.execute(f"PRAGMA {name} = {value}")
        for sql in schema:
            connection.execute(sql)
        took = replay(connection, recorded)
    finally:
        connection.close()
    return {"runs_per_s": copies * RUNS / took, "commits": len(recorded)}
