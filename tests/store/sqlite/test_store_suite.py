"""The SQLite store does what every store must do."""

from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.testing.conformance import (
    Behaviour,
    Broken,
    StorePlace,
    expect,
    expect_error,
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


@pytest.mark.requirement("store:suite-can-fail")
def test_the_suite_fails_where_a_promise_is_broken() -> None:
    with pytest.raises(Broken, match="number\n  promised: 2\n  found:    1"):
        expect("number", found=1, wanted=2)
    with pytest.raises(Broken, match="quiet: OSError was not raised"):
        expect_error("quiet", OSError, list)
