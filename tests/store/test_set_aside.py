"""A row that is not what was written is set aside, and everything else is as before."""

from contextlib import closing

import pytest
from tests.store.row_place import RowPlace
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.domain.run.effects import CleanUp
from subagents.domain.run.events import SteerRequested
from subagents.domain.run.values import announcement_id, replace
from subagents.errors import CorruptState
from subagents.extensions.testing.stored_values import (
    ME,
    NOW_MS,
    a_run,
    entry,
    message,
    over,
    spawned,
)
from subagents.ports import Batch, Lease, OutboxEntry, RememberedKey, RunFilter


def change(place: RowPlace, sql: str) -> None:
    """Behind the store's back, as a bad disk would."""
    if "CAST" in sql and not isinstance(place, SqlitePlace):
        pytest.skip("PostgreSQL keeps no text that is none")
    assert place.execute(sql) == 1


def filled(place: RowPlace, runs: int) -> None:
    with closing(place.store()) as store:
        store.open("one")
        batch = spawned(*(a_run(n) for n in range(runs)))
        batch.messages += [message(run) for run in batch.runs.values()]
        store.commit(batch)


@pytest.mark.requirement("store:set-aside")
@pytest.mark.parametrize(
    "sql",
    [
        (
            "UPDATE run SET state = CAST(replace(state, '1700', '1701') AS BLOB)"
            " WHERE run_id = 'r-0000000002'"
        ),
        "UPDATE run SET state = x'7b7d' WHERE run_id = 'r-0000000002'",
        "UPDATE run SET origin = x'7b7d' WHERE run_id = 'r-0000000002'",
        "UPDATE run SET phase = 'running' WHERE run_id = 'r-0000000002'",
        "UPDATE run SET label = CAST(x'6cff' AS TEXT) WHERE run_id = 'r-0000000002'",
        "UPDATE run SET is_over = 1 WHERE run_id = 'r-0000000002'",
        "UPDATE run SET archived_at_ms = 7 WHERE run_id = 'r-0000000002'",
        "UPDATE run SET pending = x'5b5d' WHERE run_id = 'r-0000000002'",
        "UPDATE run SET pending = NULL WHERE run_id = 'r-0000000002'",
        "UPDATE lease SET cursor = cursor + 1 WHERE run_id = 'r-0000000002'",
        "UPDATE journal SET key = 'other' WHERE run_id = 'r-0000000002'",
    ],
)
def test_a_run_with_a_row_that_changed_is_set_aside_and_the_others_are_as_before(
    place: RowPlace, sql: str
) -> None:
    runs = [a_run(n) for n in range(5)]
    with closing(place.store()) as store:
        store.open("one")
        batch = spawned(*runs)
        batch.journal = [entry(run, key="k") for run in runs]
        batch.outbox = [
            OutboxEntry(run_id=run.id, seq=1, index=0, effect=CleanUp(delete=False)) for run in runs
        ]
        batch.leases = {
            run.id: Lease(run_id=run.id, attempt=1, owner="one", epoch=1, until_ms=9)
            for run in runs
        }
        store.commit(batch)
    change(place, sql)
    before = place.asked("SELECT * FROM run ORDER BY number")

    with closing(place.store()) as store:
        store.open("two")
        store.load_keys()
        others = [run for run in runs if run.id != runs[2].id]

        assert list(store.load_open()) == others
        assert [run.id for run in store.runs(RunFilter(archived=True))] == [
            run.id for run in reversed(others)
        ]
        assert store.count(RunFilter(), most=10_000) == 4
        assert {each.run_id for each in store.load_outbox()} == {run.id for run in others}
        assert {each.run_id for each in store.load_leases()} == {run.id for run in others}
        assert {each.name for each in store.set_aside()} == {runs[2].id}
        with pytest.raises(CorruptState, match=f"run {runs[2].id} is set aside: ") as refused:
            store.run(runs[2].id)
        assert refused.value.details == {"runId": runs[2].id}
        assert store.check()[0].startswith(runs[2].id)
        assert not store.prunable(10**15, 10)
    assert place.asked("SELECT * FROM run ORDER BY number") == before


@pytest.mark.requirement("store:set-aside")
def test_a_run_whose_row_goes_bad_under_a_daemon_is_left_out_of_full_pages(place: RowPlace) -> None:
    with closing(place.store()) as store:
        store.open("one")
        runs = [over(a_run(n)) for n in range(5)]
        store.commit(spawned(*runs))
        change(place, "UPDATE run SET state = x'7b7d' WHERE run_id = 'r-0000000003'")

        assert [run.id for run in store.runs(RunFilter(limit=2))] == [runs[4].id, runs[2].id]
        assert [each.name for each in store.set_aside()] == [runs[3].id]
        change(place, "UPDATE run SET state = x'7b7d' WHERE run_id = 'r-0000000000'")
        with pytest.raises(CorruptState, match="is set aside"):
            store.run(runs[0].id)


@pytest.mark.requirement("store:set-aside")
@pytest.mark.parametrize(
    "change_of",
    [
        "text = 'r-0000000001 endet'",
        "text = CAST(x'ff' AS TEXT)",
        "session_key = 'agent:mbin:main'",
        "consumed_at_ms = 7, consumed_by = 'somebody', read_checksum = 0",
        "number = 77",
    ],
)
def test_a_message_that_changed_is_not_handed_over_and_the_others_are(
    place: RowPlace, change_of: str
) -> None:
    filled(place, 3)
    change(place, f"UPDATE inbox SET {change_of} WHERE run_id = 'r-0000000001'")  # noqa: S608

    with closing(place.store()) as store:
        store.open("two")
        ids = [announcement_id(a_run(n).id) for n in (0, 2)]

        assert [row.message.id for row in store.inbox(ME, unconsumed=True)] == ids
        assert list(store.unread(ME, 10)) == ids
        assert store.unread_total() == 2
        assert store.message(announcement_id(a_run(1).id)) is None
        assert [each.run_id for each in store.set_aside()] == [a_run(1).id]
        assert store.run(a_run(1).id) == a_run(1)
        assert a_run(1).id not in store.prunable(10**15, 10)


@pytest.mark.requirement("store:set-aside")
def test_an_event_that_changed_is_left_out_and_named(place: RowPlace) -> None:
    filled(place, 3)
    change(place, "UPDATE journal SET at_ms = at_ms + 1 WHERE run_id = 'r-0000000001'")

    with closing(place.store()) as store:
        store.open("two")

        assert [each.entry.run_id for each in store.feed(after=0)] == [a_run(0).id, a_run(2).id]
        assert list(store.journal(a_run(1).id)) == []
        assert [each.name for each in store.set_aside()] == [f"{a_run(1).id}/1"]
        assert len(store.load_open()) == 3


@pytest.mark.requirement("store:set-aside")
def test_an_idempotency_key_that_changed_is_known_again_from_its_run(place: RowPlace) -> None:
    run = a_run(1)
    run = replace(run, spec=replace(run.spec, idempotency_key="once"))
    with closing(place.store()) as store:
        store.open("one")
        batch = spawned(run)
        batch.idempotency = [RememberedKey(ME, "once", run.id, run.times.created_at_ms, "{}")]
        store.commit(batch)
    change(place, "UPDATE idempotency SET key = 'onbe'")

    with closing(place.store()) as store:
        store.open("two")
        assert list(store.load_idempotency(0)) == [
            # What was asked for under it is not known any more.
            RememberedKey(ME, "once", run.id, run.times.created_at_ms, None)
        ]


@pytest.mark.requirement("store:set-aside")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE node SET epoch = 0", "its epoch"),
        ("UPDATE lease SET run_id = 'r-0000000003'", "work of a run that cannot be told"),
    ],
)
def test_what_cannot_be_set_aside_alone_refuses_the_start(
    place: RowPlace, sql: str, said: str
) -> None:
    with closing(place.store()) as store:
        store.open("one")
        batch = spawned(a_run(1))
        held = Lease(run_id=a_run(1).id, attempt=1, owner="one", epoch=1, until_ms=9)
        batch.leases = {held.run_id: held}
        store.commit(batch)
    change(place, sql)

    with pytest.raises(CorruptState, match=said):
        place.store().open("two")


@pytest.mark.requirement("store:set-aside")
def test_rows_without_checksums_of_older_versions_are_believed(place: RowPlace) -> None:
    filled(place, 3)
    place.execute("UPDATE run SET origin_checksum = NULL, state_checksum = NULL")
    place.execute("UPDATE journal SET checksum = NULL")
    place.execute("UPDATE inbox SET checksum = NULL, place_checksum = NULL")

    with closing(place.store()) as store:
        store.open("two")
        assert len(store.load_open()) == len(store.feed(after=0)) == store.unread_total() == 3
        assert store.check() == []


@pytest.mark.requirement("store:set-aside")
def test_erasing_a_run_passes_over_an_event_that_cannot_be_read(place: RowPlace) -> None:
    run = a_run(1)
    with closing(place.store()) as store:
        store.open("one")
        store.commit(spawned(run))
        told = SteerRequested(at_ms=NOW_MS, message="a secret", by="me")
        store.commit(Batch(runs={run.id: run}, journal=[entry(run, seq=2, event=told)]))
        change(place, "UPDATE journal SET data = x'7b' WHERE seq = 2")

        store.commit(Batch(runs={run.id: run}, erased={run.id}))

        assert store.run(run.id) == run
