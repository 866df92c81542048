"""What counts as lost of the words of simulated workers."""

import pytest
from tests.simulation.worker_talk import unseen_ends

from subagents.domain.run.events import AttemptStarted, Event, LeaseExpired


@pytest.mark.requirement("simulator:judges-rightly")
def test_only_of_the_turn_whose_lease_ran_out_the_last_words_may_be_missing() -> None:
    events: list[Event] = [
        AttemptStarted(at_ms=0, attempt=1, turn=1),
        AttemptStarted(at_ms=0, attempt=2, turn=1),
        AttemptStarted(at_ms=0, attempt=2, turn=2),
        LeaseExpired(at_ms=0, attempt=2),
        AttemptStarted(at_ms=0, attempt=2, turn=3),
    ]
    assert unseen_ends(events) == {(2, 2)}
