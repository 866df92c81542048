"""The records that a store keeps, and what one commit writes."""

from dataclasses import fields

import pytest
from tests.builders import RUN

from subagents.domain.run.effects import StartAttempt
from subagents.ports.store import Batch, OutboxEntry


@pytest.mark.requirement("store:outbox")
def test_effects_of_one_event_have_keys_of_their_own() -> None:
    entries = [
        OutboxEntry(run_id=RUN, seq=seq, index=index, effect=StartAttempt(attempt=1))
        for seq, index in ((3, 0), (3, 1), (31, 0))
    ]

    assert [each.key for each in entries] == [f"{RUN}/3/0", f"{RUN}/3/1", f"{RUN}/31/0"]


@pytest.mark.requirement("store:commit")
def test_batches_share_nothing() -> None:
    one, other = Batch(), Batch()

    assert not any(getattr(one, f.name) is getattr(other, f.name) for f in fields(Batch))
