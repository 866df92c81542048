"""A short cut of the torture: a few dozen bits, each in every kind of place."""

import pytest
from tests.torture import bit_flips


@pytest.mark.requirement("store:bit-flips")
def test_no_flipped_bit_is_believed() -> None:
    found = bit_flips.run(60, seed=17)

    assert found.faults == []
    seen = {what for _, what in found.outcomes}
    assert {"refused", "set aside", "no difference"} <= seen
