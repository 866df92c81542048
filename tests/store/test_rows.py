"""Runs, events and messages as rows, and back again."""

import msgspec
import pytest
from tests.builders import NOW_MS, RUN, Life, a_resolved, in_phase

from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.effects import CleanUp, decode_effects
from subagents.domain.run.events import AttemptPlaced, Paused, SteerRequested, WorktreePlanned
from subagents.domain.run.run import OVER, Message, MessageKind, Phase
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import MessageId, RunId, SessionKey
from subagents.domain.run.workspace import Worktree
from subagents.ports import JournalEntry, OutboxEntry
from subagents.store import rows
from subagents.store.rows import Checkpoint

COLUMNS = (
    *("number", "id", "seq", "phase", "label", "agent", "requester", "parent", "session"),
    "over",
)
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

    assert rows.RUN.read(rows.inserted(7, Checkpoint(run))) == run


@pytest.mark.requirement("store:rows")
def test_what_a_run_has_to_do_is_in_its_row_under_its_checksum() -> None:
    run = in_phase(Phase.RUNNING).run
    effects = ((4, 0, CleanUp(delete=False)), (4, 1, CleanUp(delete=True)))
    kept = Checkpoint(
        run, tuple(OutboxEntry(run_id=run.id, seq=s, index=i, effect=e) for s, i, e in effects)
    )
    row = rows.inserted(7, kept)

    assert rows.checkpoint_from(row) == kept
    assert rows.checkpoint_from(rows.inserted(7, Checkpoint(run))) == Checkpoint(run)
    for damaged in (None, b"[]", b""):
        with pytest.raises(ValueError, match="does not match its checksum"):
            rows.checkpoint_from((*row[:-1], damaged))


@pytest.mark.requirement("store:rows")
def test_what_never_changes_is_not_written_again_with_every_state() -> None:
    task = "a task that is long " * 5_000
    run = Life.begin(RunSpec(task=task)).start().run

    assert task.encode() in rows.origin_of(run)
    assert len(rows.state_of(run)) < 2_000
    assert rows.state_of(run) in rows.updated(Checkpoint(run))


@pytest.mark.requirement("store:rows")
@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.ANNOUNCING, Phase.COMPLETED])
def test_the_columns_that_are_looked_for_say_what_the_run_says(phase: Phase) -> None:
    run = in_phase(phase).run
    found = dict(zip(COLUMNS, rows.inserted(7, Checkpoint(run)), strict=False))

    assert found == {
        "number": 7,
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
    assert rows.updated(Checkpoint(run))[:2] == (run.seq, phase.value)
    assert rows.ended_run(Checkpoint(run))[5] == (phase in OVER)
    assert {each(Checkpoint(run))[-1] for each in (rows.updated, rows.ended_run)} == {run.id}


@pytest.mark.requirement("store:rows")
def test_columns_that_hold_no_run_are_refused() -> None:
    run = Life.begin().run

    *before, origin, state, _, _, directory, tags, outcome, plan, _ = rows.inserted(
        7, Checkpoint(run)
    )
    rest = (None, None, directory, tags, outcome, plan, None)
    for row in ((*before, b"{}", state, *rest), (*before, origin, b"[]", *rest)):
        with pytest.raises(msgspec.DecodeError):
            rows.RUN.read(row)


@pytest.mark.requirement("store:rows")
def test_an_event_comes_back_with_its_number_and_key() -> None:
    event = Paused(at_ms=NOW_MS, by="me")
    entry = JournalEntry(run_id=RUN, seq=4, at_ms=NOW_MS, key="k", event=event)
    row = rows.event_inserted(9, entry)

    assert row[:2] == (9, RUN)
    assert row[4] == "Paused"
    found = rows.feed_entry_from(row)
    assert (found.number, found.entry) == (9, entry)


@pytest.mark.requirement("store:rows")
def test_a_message_that_nobody_waits_for_is_written_as_consumed() -> None:
    silent = msgspec.structs.replace(MESSAGE, consumed=True)

    assert rows.message_inserted(7, silent)[7:9] == (NOW_MS, "not expected")
    assert rows.message_inserted(7, MESSAGE)[7:9] == (None, None)


@pytest.mark.requirement("store:set-aside")
def test_an_unread_message_that_a_flipped_bit_calls_read_is_refused() -> None:
    row = rows.message_inserted(7, MESSAGE)

    with pytest.raises(ValueError, match="not by anybody"):
        rows.inbox_row_from((*row[:7], 0, None, *row[9:]))
    with pytest.raises(ValueError, match="not at any time"):
        rows.inbox_row_from((*row[:7], None, "", *row[9:]))


@pytest.mark.requirement("store:rows")
def test_a_row_of_the_inbox_is_its_message_and_what_became_of_it() -> None:
    row = rows.message_inserted(7, MESSAGE)
    unread = rows.inbox_row_from(row)
    seen = (NOW_MS + 5, "me")
    read = rows.inbox_row_from((*row[:7], *seen, *row[9:11], rows.checksum(*seen)))

    assert (unread.message, unread.number, unread.consumed_at_ms) == (MESSAGE, 7, None)
    assert (read.consumed_at_ms, read.consumed_by, read.message.consumed) == (
        NOW_MS + 5,
        "me",
        True,
    )
    with pytest.raises(TypeError, match="expected an integer column"):
        rows.inbox_row_from(("7", *row[1:9], None, None, None))


@pytest.mark.requirement("store:search")
def test_a_row_found_by_what_its_run_does_not_say_is_refused() -> None:
    row = rows.inserted(7, Checkpoint(in_phase(Phase.COMPLETED).run))

    for at in (-5, -4, -3, -2):
        changed = [*row]
        changed[at] = "something else"
        with pytest.raises(ValueError, match="directory, tags, outcome or plan"):
            rows.RUN.read(tuple(changed))


@pytest.mark.requirement("store:rows")
@pytest.mark.parametrize(
    "data", [b'{"spec":{"task":"\xff"}}', b'{"x":' + b"[" * 10_000, b"", b"[]"]
)
def test_whatever_a_damaged_column_holds_is_refused_in_one_way(data: bytes) -> None:
    run = in_phase(Phase.RUNNING).run

    for read in (
        lambda: rows.run_from(data, rows.state_of(run)),
        lambda: rows.run_from(rows.origin_of(run), data),
        lambda: rows.feed_entry_from((1, run.id, 1, 1, "Paused", None, data, None)),
        lambda: decode_effects(b"[[1,0," + data + b"]]"),
    ):
        with pytest.raises(msgspec.DecodeError):
            read()


@pytest.mark.requirement("cluster:files-at-place")
def test_a_worktree_that_was_planned_at_a_place_is_read_back_with_the_run() -> None:
    access = Access(level=AccessLevel.WRITE, below="/r")
    life = Life.begin(resolved=a_resolved(cwd="/r", contract_root="/r", access=access)).grant()
    origin = rows.origin_of(life.run)
    life.apply(AttemptPlaced(at_ms=life.at_ms, attempt=1, node="b"))
    tree = Worktree(repository="/r", path="/t/x", branch="subagents/x", origin="/r", node="b")
    life.apply(WorktreePlanned(at_ms=life.at_ms, worktree=tree, cwd="/t/x"))

    found = rows.run_from(origin, rows.state_of(life.run))

    assert found == life.run
    assert found.resolved.cwd == "/t/x"


@pytest.mark.requirement("budget:raised")
def test_a_budget_that_was_raised_is_read_back_with_the_run() -> None:
    life = Life.begin(RunSpec(task="x", budget=Budget(max_tokens=100, max_cost_usd=1))).start()
    origin = rows.origin_of(life.run)
    for tokens in (50, 25):
        more = Amounts(tokens=tokens, cost_usd=0.5)
        life.apply(SteerRequested(at_ms=life.at_ms, by="me", message="go on", added=more))

    found = rows.run_from(origin, rows.state_of(life.run))

    assert found == life.run
    assert found.spec.budget == Budget(max_tokens=175, max_cost_usd=2)
