"""What a repair asks: each used, and understood by the schema."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import filled
from tests.store.sqlite.test_statements import require_understood

from subagents.extensions.repair import environments_in_backup, salvage


@pytest.mark.requirement("store:named-statements")
def test_every_statement_of_a_repair_is_used_and_understood(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    files = (salvage.__file__, environments_in_backup.__file__)
    text = "".join(Path(each).read_text("utf-8") for each in files)
    own = dict(salvage.own_statements())

    assert [name for name in own if f'"{name}"' not in text] == []
    with closing(sqlite3.connect(path)) as database:
        database.execute(own.pop("create_environments"))
    require_understood(path, own)
