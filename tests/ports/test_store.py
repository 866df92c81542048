"""The records that a store keeps, and what one commit writes."""

from dataclasses import fields

import pytest
from tests.builders import NOW_MS, RUN, Life

from subagents.domain.run.effects import StartAttempt
from subagents.domain.run.events import Archived
from subagents.ports.store import Batch, JournalEntry, OutboxEntry


@pytest.mark.requirement("store:outbox")
def test_effects_of_one_event_have_keys_of_their_own() -> None:
    entries = [
        OutboxEntry(run_id=RUN, seq=seq, index=index, effect=StartAttempt(attempt=1))
        for seq, index in ((3, 0), (3, 1), (31, 0))
    ]

    assert [each.key for each in entries] == [f"{RUN}/3/0", f"{RUN}/3/1", f"{RUN}/31/0"]


@pytest.mark.requirement("store:commit")
def test_a_batch_is_empty_until_something_is_to_be_written() -> None:
    run = Life.begin().run
    entry = JournalEntry(run_id=RUN, seq=1, at_ms=NOW_MS, event=Archived(at_ms=NOW_MS))

    assert Batch().is_empty()
    for batch in (
        Batch(runs={RUN: run}),
        Batch(journal=[entry]),
        Batch(performed=[(RUN, 1, 0)]),
        Batch(consumed=[("m", NOW_MS, "me")]),
        Batch(leases={RUN: None}),
    ):
        assert not batch.is_empty()


@pytest.mark.requirement("store:commit")
def test_batches_share_nothing() -> None:
    one, other = Batch(), Batch()

    assert not any(getattr(one, f.name) is getattr(other, f.name) for f in fields(Batch))
