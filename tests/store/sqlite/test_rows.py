"""Runs, events and messages as rows, and back again."""

import msgspec
import pytest
from tests.builders import NOW_MS, RUN, Life, in_phase

from subagents.domain.run.events import Paused
from subagents.domain.run.run import OVER, Message, MessageKind, Phase
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import MessageId, RunId, SessionKey
from subagents.ports import JournalEntry, RunFilter
from subagents.store.sqlite import rows

COLUMNS = ("id", "seq", "phase", "label", "agent", "requester", "parent", "session", "over")
MESSAGE = Message(
    id=MessageId("r-1:announce"),
    session_key=SessionKey("agent:main:main"),
    run_id=RunId("r-1"),
    kind=MessageKind.ANNOUNCEMENT,
    created_at_ms=NOW_MS,
    text="done",
)


@pytest.mark.requirement("store:rows")
@pytest.mark.parametrize("phase", list(Phase))
def test_a_run_of_any_phase_is_read_back_as_it_was(phase: Phase) -> None:
    run = in_phase(phase).run

    assert rows.run_from(rows.origin_of(run), rows.state_of(run)) == run


@pytest.mark.requirement("store:rows")
def test_what_never_changes_is_not_written_again_with_every_state() -> None:
    task = "a task that is long " * 5_000
    run = Life.begin(RunSpec(task=task)).start().run

    assert task.encode() in rows.origin_of(run)
    assert len(rows.state_of(run)) < 2_000
    assert rows.state_of(run) in rows.updated(run)


@pytest.mark.requirement("store:rows")
@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.ANNOUNCING, Phase.COMPLETED])
def test_the_columns_that_are_looked_for_say_what_the_run_says(phase: Phase) -> None:
    run = in_phase(phase).run
    found = dict(zip(COLUMNS, rows.inserted(run), strict=False))

    assert found == {
        "id": run.id,
        "seq": run.seq,
        "phase": phase.value,
        "label": "job",
        "agent": "worker",
        "requester": run.requester,
        "parent": None,
        "session": run.session.first_key,
        "over": phase in OVER,
    }
    assert rows.updated(run)[:3] == (run.seq, phase.value, phase in OVER)
    assert rows.updated(run)[-1] == run.id


@pytest.mark.requirement("store:rows")
def test_columns_that_hold_no_run_are_refused() -> None:
    run = Life.begin().run

    for origin, state in ((b"{}", rows.state_of(run)), (rows.origin_of(run), b"[]")):
        with pytest.raises(msgspec.DecodeError):
            rows.run_from(origin, state)


@pytest.mark.requirement("store:rows")
def test_an_event_comes_back_with_its_number_and_key() -> None:
    event = Paused(at_ms=NOW_MS, by="me")
    entry = JournalEntry(run_id=RUN, seq=4, at_ms=NOW_MS, key="k", event=event)
    run_id, seq, at_ms, name, key, data, number = rows.event_inserted(9, entry)

    assert (run_id, name) == (RUN, "Paused")
    found = rows.feed_entry_from((number, run_id, seq, at_ms, key, data))  # type: ignore[arg-type]
    assert (found.number, found.entry) == (9, entry)


@pytest.mark.requirement("store:rows")
def test_a_message_that_nobody_waits_for_is_written_as_consumed() -> None:
    silent = msgspec.structs.replace(MESSAGE, consumed=True)

    *_, consumed_at, by = rows.message_inserted(silent)
    assert (consumed_at, by) == (NOW_MS, "not expected")
    *_, consumed_at, by = rows.message_inserted(MESSAGE)
    assert (consumed_at, by) == (None, None)


@pytest.mark.requirement("store:rows")
def test_a_row_of_the_inbox_is_its_message_and_what_became_of_it() -> None:
    unread = rows.inbox_row_from((7, *rows.message_inserted(MESSAGE)))
    read = rows.inbox_row_from((7, *rows.message_inserted(MESSAGE)[:-2], NOW_MS + 5, "me"))

    assert (unread.message, unread.number, unread.consumed_at_ms) == (MESSAGE, 7, None)
    assert (read.consumed_at_ms, read.consumed_by, read.message.consumed) == (
        NOW_MS + 5,
        "me",
        True,
    )
    with pytest.raises(TypeError, match="expected an integer column"):
        rows.inbox_row_from(("7", *rows.message_inserted(MESSAGE)))


@pytest.mark.requirement("store:rows")
def test_each_filter_uses_the_index_that_leaves_the_fewest_rows() -> None:
    me = SessionKey("agent:main:main")

    assert rows.selection(RunFilter()) == "select_runs"
    assert rows.selection(RunFilter(requester=me)) == "select_runs_of_requester"
    assert rows.selection(RunFilter(requester=me, requester_run=RUN)) == "select_runs_of_parent"
    assert rows.selection(RunFilter(requester=me, label="job")) == "select_runs_labelled"
    phases = (Phase.QUEUED, Phase.RUNNING)
    assert '["queued","running"]' in rows.filters(RunFilter(phases=phases))
    assert set(rows.filters(RunFilter())) <= {None, False}
