"""A database for tests of what every store must do; the tests of `cluster` bring another one."""

from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import SqlitePlace


@pytest.fixture
def place(tmp_path: Path) -> SqlitePlace:
    return SqlitePlace(tmp_path)
