"""The row of an open run is a checkpoint, and the journal continues it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import a_store

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import CleanUp
from subagents.domain.run.events import (
    AttemptStarted,
    CancelRequested,
    Event,
    Prioritized,
    SlotGranted,
)
from subagents.domain.run.linked_runs import Child, Children
from subagents.domain.run.run import OVER, Phase, Run
from subagents.domain.run.values import RunId, replace
from subagents.errors import CorruptState, StoreUnavailable
from subagents.ports import Batch, OutboxEntry, RunFilter
from subagents.store.open_runs import EVENTS_MIN, OpenRuns, asked_for
from subagents.store.sqlite.salvage import salvage
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.testing.store_suite import NOW_MS, a_run, entry, over, spawned

QUEUED = RunFilter(phases=(Phase.QUEUED,))


@contextmanager
def opened(path: Path) -> Iterator[SqliteStore]:
    with closing(a_store(path)) as store:
        store.open("test")
        yield store


def changed(run: Run, *, times: int = 1) -> tuple[Run, Batch]:
    """The run after so many events, and the batch that has them."""
    batch = Batch()
    for _ in range(times):
        event = Prioritized(at_ms=NOW_MS, by="me", priority=run.seq)
        run = reduce(run, event).run
        batch.journal.append(entry(run, seq=run.seq, event=event))
    batch.runs[run.id] = run
    return run, batch


def kept_seq(path: Path, run: Run) -> int:
    """Of the run's row."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT seq FROM run WHERE run_id = ?", (run.id,)).fetchone()
        return int(found[0])


def executed(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(sql).rowcount == 1


@pytest.mark.requirement("store:checkpoints")
def test_a_change_of_an_open_run_is_an_event_alone_and_a_start_folds_it(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)

        assert store.run(later.id) == later
        assert later in store.load_open()
        assert kept_seq(path, later) == 1

    with opened(path) as store:
        assert store.run(later.id) == later
        assert store.runs(QUEUED) == [a_run(2), later]
        assert list(store.load_open()) == [later, a_run(2)]
        last, batch = changed(later)
        store.commit(batch)
        assert store.runs(RunFilter()) == [a_run(2), last]
        assert kept_seq(path, later) == 1


@pytest.mark.requirement("store:checkpoints")
def test_a_start_folds_a_bounded_number_of_events(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        run = a_run(1)
        for _ in range(EVENTS_MIN - 1):
            run, batch = changed(run)
            store.commit(batch)
        assert kept_seq(path, run) == 1
        run, batch = changed(run)
        store.commit(batch)
        assert kept_seq(path, run) == run.seq == EVENTS_MIN + 1


@pytest.mark.requirement("store:checkpoints")
def test_after_a_clean_stop_nothing_is_folded(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        store.checkpoint()
        assert kept_seq(path, later) == later.seq
    with opened(path) as store:
        assert store._all("select_behind") == []
        assert list(store.load_open()) == [later]


@pytest.mark.requirement("store:checkpoints")
def test_the_row_of_a_run_that_is_over_is_always_its_newest_state(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        event = CancelRequested(at_ms=NOW_MS, by="me", reason="no")
        cancelled = reduce(later, event).run
        ended = replace(over(cancelled), seq=cancelled.seq)
        batch = Batch(runs={ended.id: ended}, journal=[entry(ended, seq=ended.seq, event=event)])
        store.commit(batch)
        assert ended.phase in OVER
        assert kept_seq(path, ended) == ended.seq
        assert store.runs(RunFilter(phases=(Phase.COMPLETED,))) == [ended]
        assert store.count(QUEUED, most=100) == 0


@pytest.mark.requirement("store:checkpoints")
def test_filters_look_at_open_runs_as_they_are_and_not_at_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1), over(a_run(2))))
        event = CancelRequested(at_ms=NOW_MS, by="me", reason="no")
        settled = reduce(a_run(1), event).run
        assert settled.is_settled
        assert settled.phase not in OVER
        assert settled.outcome is not None
        entries = [entry(settled, seq=2, event=event)]
        store.commit(Batch(runs={settled.id: settled}, journal=entries))
        assert kept_seq(path, settled) == 1

    for _ in range(2):
        with opened(path) as store:
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
def test_a_commit_that_fails_leaves_what_is_known_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
        _, bad = changed(later)
        bad.journal.append(bad.journal[0])
        with pytest.raises(StoreUnavailable):
            store.commit(bad)

        assert store.run(later.id) == later
        assert list(store.load_open()) == [later]


@pytest.mark.requirement("store:checkpoints", "store:set-aside")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET at_ms = at_ms + 1 WHERE run = 1 AND seq = 3",
        "UPDATE journal SET data = x'7b7d' WHERE run = 1 AND seq = 3",
        "DELETE FROM journal WHERE run = 1 AND seq = 2",
    ],
)
def test_an_open_run_whose_journal_is_damaged_is_set_aside_and_the_others_go_on(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
    executed(path, damage)

    with opened(path) as store:
        assert list(store.load_open()) == [a_run(2)]
        assert store.runs(RunFilter()) == [a_run(2)]
        assert later.id in {each.name for each in store.set_aside()}
        with pytest.raises(CorruptState, match="is set aside"):
            store.run(later.id)
        assert any(problem.startswith(later.id) for problem in store.check())


@pytest.mark.requirement("store:checkpoints")
def test_what_another_version_journaled_is_folded_once(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        later, batch = changed(a_run(1))
        store.commit(batch)
    executed(path, "UPDATE node SET version = '0'")

    with opened(path) as store:
        assert list(store.load_open()) == [later]
        assert kept_seq(path, later) == later.seq


def happened(run: Run, event: Event, *, key: str | None = None) -> tuple[Run, Batch]:
    """The run after an event, and the batch that the engine makes of it."""
    step = reduce(run, event)
    batch = Batch(runs={run.id: step.run}, outbox=[*asked_for(step)])
    batch.journal.append(entry(step.run, seq=step.run.seq, event=event, key=key))
    return step.run, batch


def granted(run: Run) -> tuple[Run, Batch]:
    """It is to be started."""
    return happened(run, SlotGranted(at_ms=NOW_MS, session_key=run.session.first_key))


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_what_an_event_asks_for_is_folded_from_it_until_another_answers(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        run, batch = granted(a_run(1))
        store.commit(batch)
        (start,) = batch.outbox
        assert store.load_outbox() == [start]
        assert kept_seq(path, run) == 1

    for _ in range(2):
        with opened(path) as store:
            assert store.load_outbox() == [start]
    reader = a_store(path)
    reader.open_readonly()
    with closing(reader):
        assert reader.load_outbox() == [start]

    started = AttemptStarted(at_ms=NOW_MS, attempt=1)
    with opened(path) as store:
        run, batch = happened(run, started, key=start.key)
        batch.performed.append((run.id, start.seq, start.index))
        store.commit(batch)
        assert store.load_outbox() == []
        assert kept_seq(path, run) == 1
    with opened(path) as store:
        assert store.load_outbox() == []
        assert list(store.load_open()) == [run]


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_that_an_effect_is_done_without_an_answer_is_in_the_row_at_once(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        run, batch = granted(a_run(1))
        store.commit(batch)
        store.commit(Batch(performed=[(run.id, 2, 0)]))
        assert kept_seq(path, run) == run.seq

    with opened(path) as store:
        assert store.load_outbox() == []
        assert list(store.load_open()) == [run]


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_row_that_is_written_again_keeps_what_the_run_has_to_do(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        run, first = granted(a_run(1))
        store.commit(first)
        run, batch = changed(run, times=EVENTS_MIN)
        store.commit(batch)
        assert kept_seq(path, run) == run.seq

    with opened(path) as store:
        assert store.load_outbox() == first.outbox


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_run_that_is_over_may_have_something_to_do(tmp_path: Path) -> None:
    path, new = tmp_path / "db", tmp_path / "new"
    run = over(a_run(1))
    tidy = OutboxEntry(run_id=run.id, seq=1, index=0, effect=CleanUp(delete=False))
    with opened(path) as store:
        batch = spawned(run, over(a_run(2)))
        batch.outbox.append(tidy)
        store.commit(batch)

    assert salvage(path, new, ()) == []
    for file in (path, new):
        with opened(file) as store:
            assert store.load_outbox() == [tidy]
            assert list(store.load_open()) == []
            assert store.runs(RunFilter()) == [over(a_run(2)), run]
            store.commit(Batch(performed=[(run.id, 1, 0)]))
        with opened(file) as store:
            assert store.load_outbox() == []
            assert store.run(run.id) == run


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_first_commit_adds_to_what_the_file_says_is_to_be_done(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as store:
        store.commit(spawned(a_run(1)))
        run, first = granted(a_run(1))
        store.commit(first)
    with opened(path) as store:
        _, batch = changed(run, times=EVENTS_MIN)
        store.commit(batch)

    with opened(path) as store:
        assert store.load_outbox() == first.outbox


@pytest.mark.requirement("store:checkpoints")
def test_a_parent_of_many_is_written_more_seldom() -> None:
    parent = a_run(1)
    known = OpenRuns()
    known.committed(spawned(parent))

    assert known.is_due(replace(parent, seq=1 + EVENTS_MIN))
    children = Children(Child(run_id=RunId(f"r-{n}"), label="child") for n in range(200))
    many = replace(parent, seq=1 + EVENTS_MIN, children=children)
    assert not known.is_due(many)


@pytest.mark.requirement("store:checkpoints", "store:salvage")
def test_a_repair_continues_an_open_run_from_its_checkpoint(tmp_path: Path) -> None:
    path, new = tmp_path / "db", tmp_path / "new"
    with opened(path) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
        later, batch = granted(later)
        store.commit(batch)

    assert salvage(path, new, ()) == []

    with opened(new) as store:
        assert list(store.load_open()) == [later, a_run(2)]
        assert store.load_outbox() == batch.outbox


@pytest.mark.requirement("store:checkpoints", "store:salvage")
def test_a_repair_lets_nothing_go_on_whose_newest_events_may_be_missing(tmp_path: Path) -> None:
    path, new = tmp_path / "db", tmp_path / "new"
    with opened(path) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
    executed(path, "UPDATE journal SET at_ms = at_ms + 1 WHERE run = 1 AND seq = 4")

    (found,) = salvage(path, new, ())

    assert (found.run_id, found.is_known, found.is_lost) == (later.id, True, True)
    assert found.found == "it is known up to event 3, and what came after may be missing"
    with opened(new) as store:
        assert [run.seq for run in store.load_open()] == [3, 1]
