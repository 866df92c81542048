"""What the daemon's calls know of lanes and disks."""

from pathlib import Path

import pytest
from tests.api.home_daemon import build


@pytest.mark.requirement("operations:disk")
def test_the_size_of_the_database_counts_its_write_ahead_log(tmp_path: Path) -> None:
    found = build(tmp_path)
    assert found.database_bytes() == 0

    found.paths.database.write_bytes(b"x" * 100)
    assert found.database_bytes() == 100
    found.paths.database.with_name(f"{found.paths.database.name}-wal").write_bytes(b"x" * 23)

    assert found.database_bytes() == 123
    assert found.free_bytes() > 0
