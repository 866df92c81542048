"""What the daemon's calls know of disks."""

from pathlib import Path

import pytest
from tests.api.home_daemon import build


@pytest.mark.requirement("operations:disk")
def test_the_room_on_the_disk_that_holds_the_state_is_known(tmp_path: Path) -> None:
    assert build(tmp_path).free_bytes() > 0
