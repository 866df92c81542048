"""The SQLite store does what every store must do."""

from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.testing.conformance import (
    Behaviour,
    StorePlace,
)
from subagents.testing.store_suite import SUITE


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
        for each in SUITE.behaviours
    ],
)
def test_sqlite_keeps_this_promise(behaviour: Behaviour[StorePlace], tmp_path: Path) -> None:
    behaviour.check(SqlitePlace(tmp_path))
