"""The row of an open run is a checkpoint, and the journal continues it."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from tests.store.row_place import RowPlace, changed, granted, happened, opened

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import CleanUp
from subagents.domain.run.events import AttemptStarted, CancelRequested
from subagents.domain.run.linked_runs import Child, Children
from subagents.domain.run.run import OVER, Phase, Run
from subagents.domain.run.values import RunId, replace
from subagents.errors import CorruptState, StoreUnavailable
from subagents.extensions.testing.stored_values import NOW_MS, a_run, entry, over, spawned
from subagents.ports import Batch, OutboxEntry, RunFilter
from subagents.store.open_runs import EVENTS_MIN, OpenRuns
from subagents.store.rows import Checkpoint

QUEUED = RunFilter(phases=(Phase.QUEUED,))


def kept_seq(place: RowPlace, run: Run) -> int:
    """Of the run's row."""
    return int(str(place.asked("SELECT seq FROM run WHERE run_id = ?", run.id)[0][0]))


@pytest.mark.requirement("store:checkpoints")
def test_a_change_of_an_open_run_is_an_event_alone_and_a_start_folds_it(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)

        assert store.run(later.id) == later
        assert later in store.load_open()
        assert kept_seq(place, later) == 1

    with opened(place) as store:
        assert store.run(later.id) == later
        assert store.runs(QUEUED) == [a_run(2), later]
        assert list(store.load_open()) == [later, a_run(2)]
        last, batch = changed(later)
        store.commit(batch)
        assert store.runs(RunFilter()) == [a_run(2), last]
        assert kept_seq(place, later) == 1


@pytest.mark.requirement("store:checkpoints")
def test_a_start_folds_a_bounded_number_of_events(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        run = a_run(1)
        for _ in range(EVENTS_MIN - 1):
            run, batch = changed(run)
            store.commit(batch)
        assert kept_seq(place, run) == 1
        run, batch = changed(run)
        store.commit(batch)
        assert kept_seq(place, run) == run.seq == EVENTS_MIN + 1


@pytest.mark.requirement("store:checkpoints")
def test_after_a_clean_stop_nothing_is_folded(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        store.checkpoint()
        assert kept_seq(place, later) == later.seq
    with opened(place) as store:
        assert list(store.load_open()) == [later]


@pytest.mark.requirement("store:checkpoints")
def test_the_row_of_a_run_that_is_over_is_always_its_newest_state(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        event = CancelRequested(at_ms=NOW_MS, by="me", reason="no")
        cancelled = reduce(later, event).run
        ended = replace(over(cancelled), seq=cancelled.seq)
        batch = Batch(runs={ended.id: ended}, journal=[entry(ended, seq=ended.seq, event=event)])
        store.commit(batch)
        assert ended.phase in OVER
        assert kept_seq(place, ended) == ended.seq
        assert store.runs(RunFilter(phases=(Phase.COMPLETED,))) == [ended]
        assert store.count(QUEUED, most=100) == 0


@pytest.mark.requirement("store:checkpoints")
def test_filters_look_at_open_runs_as_they_are_and_not_at_their_rows(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1), over(a_run(2))))
        event = CancelRequested(at_ms=NOW_MS, by="me", reason="no")
        settled = reduce(a_run(1), event).run
        assert settled.is_settled
        assert settled.phase not in OVER
        assert settled.outcome is not None
        entries = [entry(settled, seq=2, event=event)]
        store.commit(Batch(runs={settled.id: settled}, journal=entries))
        assert kept_seq(place, settled) == 1

    for _ in range(2):
        with opened(place) as store:
            ended = RunFilter(ended_after_ms=NOW_MS)
            status = RunFilter(outcomes=(settled.outcome.status,))
            for where in (RunFilter(phases=(settled.phase,)), status):
                assert store.runs(where) == [settled]
                assert store.count(where, most=100) == 1
            assert settled in store.runs(ended)
            assert store.count(ended, most=100) == 2
            assert store.count(RunFilter(active_since_ms=NOW_MS + 1), most=100) == 0
            assert store.count(QUEUED, most=100) == 0
            store.load_open()


@pytest.mark.requirement("store:checkpoints")
def test_a_commit_that_fails_leaves_what_is_known_to_the_file(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        _, bad = changed(later)
        bad.journal.append(bad.journal[0])
        with pytest.raises(StoreUnavailable):
            store.commit(bad)

        assert store.run(later.id) == later
        assert list(store.load_open()) == [later]


@pytest.mark.requirement("store:checkpoints", "feed:completion")
def test_whoever_reads_an_event_reads_its_run_no_older(
    place: RowPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        seen: list[tuple[int, Run | None, Sequence[Run]]] = []
        after = OpenRuns.after

        def between(
            known: OpenRuns, batch: Batch
        ) -> Iterator[tuple[Checkpoint, bool]]:  # once to write the rows, once when they are there
            told = store.feed(after=0, limit=9)
            seen.append((told[-1].entry.seq, store.run(a_run(1).id), store.these([a_run(1).id])))
            return after(known, batch)

        monkeypatch.setattr(OpenRuns, "after", between)
        later, batch = changed(a_run(1), times=2)
        store.commit(batch)
        assert seen == [(1, a_run(1), [a_run(1)]), (later.seq, later, [later])]


@pytest.mark.requirement("store:checkpoints", "store:set-aside")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET at_ms = at_ms + 1 WHERE run_id = 'r-0000000001' AND seq = 3",
        "UPDATE journal SET data = x'7b7d' WHERE run_id = 'r-0000000001' AND seq = 3",
        "DELETE FROM journal WHERE run_id = 'r-0000000001' AND seq = 2",
    ],
)
def test_an_open_run_whose_journal_is_damaged_is_set_aside_and_the_others_go_on(
    place: RowPlace, damage: str
) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
    assert place.execute(damage) == 1

    with opened(place) as store:
        assert list(store.load_open()) == [a_run(2)]
        assert store.runs(RunFilter()) == [a_run(2)]
        assert later.id in {each.name for each in store.set_aside()}
        with pytest.raises(CorruptState, match="is set aside"):
            store.run(later.id)
        assert any(problem.startswith(later.id) for problem in store.check())


@pytest.mark.requirement("store:checkpoints")
def test_what_another_version_journaled_is_folded_once(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
    assert place.execute("UPDATE node SET version = '0'") == 1

    with opened(place) as store:
        assert list(store.load_open()) == [later]
        assert kept_seq(place, later) == later.seq


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_what_an_event_asks_for_is_folded_from_it_until_another_answers(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        run, batch = granted(a_run(1))
        store.commit(batch)
        (start,) = batch.outbox
        assert store.load_outbox() == [start]
        assert kept_seq(place, run) == 1

    for _ in range(2):
        with opened(place) as store:
            assert store.load_outbox() == [start]
    reader = place.store()
    reader.open_readonly()
    with closing(reader):
        assert reader.load_outbox() == [start]

    started = AttemptStarted(at_ms=NOW_MS, attempt=1)
    with opened(place) as store:
        run, batch = happened(run, started, key=start.key)
        batch.performed.append((run.id, start.seq, start.index))
        store.commit(batch)
        assert store.load_outbox() == []
        assert kept_seq(place, run) == 1
    with opened(place) as store:
        assert store.load_outbox() == []
        assert list(store.load_open()) == [run]


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_that_an_effect_is_done_without_an_answer_is_in_the_row_at_once(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        run, batch = granted(a_run(1))
        store.commit(batch)
        store.commit(Batch(performed=[(run.id, 2, 0)]))
        assert kept_seq(place, run) == run.seq

    with opened(place) as store:
        assert store.load_outbox() == []
        assert list(store.load_open()) == [run]


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_row_that_is_written_again_keeps_what_the_run_has_to_do(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        run, first = granted(a_run(1))
        store.commit(first)
        run, batch = changed(run, times=EVENTS_MIN)
        store.commit(batch)
        assert kept_seq(place, run) == run.seq

    with opened(place) as store:
        assert store.load_outbox() == first.outbox


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_first_commit_adds_to_what_the_file_says_is_to_be_done(place: RowPlace) -> None:
    with opened(place) as store:
        store.commit(spawned(a_run(1)))
        run, first = granted(a_run(1))
        store.commit(first)
    with opened(place) as store:
        _, batch = changed(run, times=EVENTS_MIN)
        store.commit(batch)

    with opened(place) as store:
        assert store.load_outbox() == first.outbox


@pytest.mark.requirement("store:checkpoints")
def test_a_parent_of_many_is_written_more_seldom() -> None:
    parent = a_run(1)
    known = OpenRuns()
    with known.committing(spawned(parent)):
        """As a store does."""

    assert known.is_due(replace(parent, seq=1 + EVENTS_MIN))
    children = Children(Child(run_id=RunId(f"r-{n}"), label="child") for n in range(200))
    many = replace(parent, seq=1 + EVENTS_MIN, children=children)
    assert not known.is_due(many)


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_run_that_is_over_may_have_something_to_do(place: RowPlace) -> None:
    run = over(a_run(1))
    tidy = OutboxEntry(run_id=run.id, seq=1, index=0, effect=CleanUp(delete=False))
    with opened(place) as store:
        batch = spawned(run, over(a_run(2)))
        batch.outbox.append(tidy)
        store.commit(batch)

    with opened(place) as store:
        assert store.load_outbox() == [tidy]
        assert list(store.load_open()) == []
        assert store.runs(RunFilter()) == [over(a_run(2)), run]
        store.commit(Batch(performed=[(run.id, 1, 0)]))
    with opened(place) as store:
        assert store.load_outbox() == []
        assert store.run(run.id) == run
