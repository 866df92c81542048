"""What the detectors know of a run between batches and over restarts."""

import msgspec
import pytest
from tests.domain.alerts.detectors.detector_inputs import (
    EVERYTHING,
    plan,
    refused,
    see,
    shell,
    used,
)

from subagents.domain.alerts.detectors import Watch


@pytest.mark.requirement("detectors:small")
def test_what_is_kept_between_batches_stays_small() -> None:
    busy = [
        *EVERYTHING,
        plan(*((f"Step {n} " + "x" * 180, "pending") for n in range(100))),
        *(refused(f"error kind {chr(65 + n)}") for n in range(26)),
        *(shell(f"make target-{n}") for n in range(100)),
        *(used("Bash", command="sleep 1 " + "y" * 4_000, call_id=f"c{n}") for n in range(50)),
    ]
    watch, _ = see(*busy)

    assert len(msgspec.json.encode(watch)) < 8_000
    assert msgspec.json.decode(msgspec.json.encode(watch), type=Watch) == watch


@pytest.mark.requirement("detectors:small")
def test_a_state_that_another_version_stored_is_read_as_far_as_it_is_known() -> None:
    stored = b'{"attempt": 2, "pieces": 7, "passing": [1], "of_tomorrow": {"x": 1}}'

    assert msgspec.json.decode(stored, type=Watch) == Watch(attempt=2, pieces=7, passing=(1,))
    assert msgspec.json.decode(b"{}", type=Watch) == Watch()
