"""A tiny cut of the parts that need no minutes."""

import pytest
from tests.torture import crash_copies, full_disk
from tests.torture.bed import tried


@pytest.mark.requirement("torture:crash-copies")
def test_copies_made_in_the_middle_of_writes_open_and_add_up() -> None:
    found = tried("crash_copies", crash_copies.torture, seed=1, minutes=0.04)
    assert found.wrong == []
    assert found.faults[0].tried > 0


@pytest.mark.requirement("torture:full-disk", "disk:noisy-worker")
def test_twenty_runs_settle_although_the_disk_was_full_in_the_middle() -> None:
    found = tried("full_disk", full_disk.torture, seed=1, minutes=0.01)
    if found.skipped:
        pytest.skip(found.skipped)
    assert found.wrong == []
    assert found.faults[0].tried > 0
