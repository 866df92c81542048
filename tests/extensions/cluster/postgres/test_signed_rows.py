"""Who can write the database is no node by that: what work is started from is signed."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.extensions.cluster.pinned_nodes import SECRET
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace
from tests.extensions.cluster.postgres.shared_place import ALL, SharedPlace, shared, signer_of
from tests.store.row_place import granted

from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.errors import ConfigError, CorruptState
from subagents.extensions.cluster.postgres import postgres_migrations
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore
from subagents.extensions.cluster.trust.signing import UNSIGNED
from subagents.extensions.testing.stored_values import a_run, a_schedule, spawned
from subagents.store import rows

RUN_COLUMNS = (
    "number, run_id, seq, phase, label, agent_id, requester, requester_run, session_key, is_over,"
    " keeps_session, created_at_ms, ended_at_ms, archived_at_ms, origin, state, origin_checksum,"
    " state_checksum, directory, tags, outcome, plan, pending"
)


@pytest.fixture
def cluster(postgres_place: PostgresPlace, tmp_path: Path) -> Iterator[SharedPlace]:
    with shared(postgres_place, tmp_path) as found:
        found.secret = SECRET.encode()
        yield found


def begun(cluster: SharedPlace, name: str = "a") -> PostgresStore:
    """A node that has all partitions that are free."""
    store = cluster.opened(name)
    store.claim(ALL)
    return store


def again(cluster: SharedPlace, store: PostgresStore, name: str = "a") -> PostgresStore:
    """The next start of that home, which reads everything from the database."""
    store.close()
    return begun(cluster, name)


def forged(cluster: SharedPlace, run: Run) -> None:
    """Written by somebody who knows our source, but not the secret: each checksum is right."""
    row = rows.inserted(7, rows.Checkpoint(run))
    marks = ", ".join("?" * (len(row) + 1))
    sql = f"INSERT INTO run ({RUN_COLUMNS}, part) VALUES ({marks})"  # noqa: S608 - of ours
    cluster.place.execute(sql, *row, 0)


@pytest.mark.requirement("cluster:signed")
def test_a_run_that_nobody_with_the_secret_wrote_is_started_by_no_node_and_told_once(
    cluster: SharedPlace, caplog: pytest.LogCaptureFixture
) -> None:
    store, ours, theirs = begun(cluster), a_run(1), a_run(2)
    store.commit(spawned(ours))
    forged(cluster, theirs)
    caplog.set_level(logging.ERROR)
    store = again(cluster, store)
    for _ in range(2):
        assert [run.id for run in store.load_open()] == [ours.id]
        with pytest.raises(CorruptState, match=UNSIGNED):
            store.run(theirs.id)
    assert [(e.run_id, e.reason) for e in store.set_aside()] == [(theirs.id, UNSIGNED)]
    assert caplog.text.count(UNSIGNED) == 1
    assert [run.id for run in cluster.opened("b")._open_runs()] == [ours.id]


@pytest.mark.requirement("cluster:signed")
@pytest.mark.parametrize("what", ["origin", "state", "event", "signature"])
def test_a_run_of_ours_that_was_changed_starts_nothing(cluster: SharedPlace, what: str) -> None:
    store, run, other = begun(cluster), a_run(1), a_run(2)
    store.commit(spawned(run, other))
    ((number,),) = cluster.place.asked("SELECT number FROM run WHERE run_id = ?", run.id)
    later, batch = granted(run)
    values: rows.Row
    if what == "origin":
        evil = replace(run, spec=replace(run.spec, task="rm -rf /"))
        row = rows.inserted(int(str(number)), rows.Checkpoint(evil))
        change, values = "origin = ?, origin_checksum = ?", (row[14], row[16])
    elif what == "state":
        change = "seq = ?, phase = ?, state = ?, state_checksum = ?, pending = ?"
        values = rows.updated(rows.Checkpoint(later))[:-1]
    elif what == "event":
        values = rows.event_inserted(99, batch.journal[0])
        cluster.place.execute(
            "INSERT INTO journal"
            " (place, run, number, run_id, seq, at_ms, type, key, data, checksum)"
            " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, *values),
        )
        change, values = "seq = seq", ()
    else:
        change = "state_signature = (SELECT state_signature FROM run WHERE run_id = ?)"
        values = (other.id,)
    sql = f"UPDATE run SET {change} WHERE run_id = ?"  # noqa: S608 - of ours
    assert cluster.place.execute(sql, *values, run.id) == 1
    store = again(cluster, store)
    assert [each.id for each in store.load_open()] == [other.id]
    assert [(e.run_id, e.reason) for e in store.set_aside()] == [(run.id, UNSIGNED)]


@pytest.mark.requirement("cluster:signed")
def test_a_schedule_and_a_node_that_nobody_signed_are_none(
    cluster: SharedPlace, caplog: pytest.LogCaptureFixture
) -> None:
    store = begun(cluster)
    name, state, checksum = rows.schedule_put(a_schedule("s-forged", 1))
    cluster.place.execute("INSERT INTO schedule VALUES (?, ?, ?)", name, state, checksum)
    assert store.load_schedules() == []
    cluster.opened("b")
    cluster.place.execute("UPDATE node SET certificate = 'another' WHERE name = 'b'")
    caplog.set_level(logging.ERROR)
    for _ in range(2):
        found = store.survey()
        shown = {each.name: each.certificate for each in found.nodes.values()}
        assert (shown, found.forged) == ({"a": b"a", "b": None}, 1)
    assert caplog.text.count("the row of node b is not signed") == 1
    cluster.place.execute("UPDATE node SET certificate = 'b', name = 'c' WHERE name = 'b'")
    assert {e.name: e.certificate for e in store.survey().nodes.values()}["c"] is None
    cluster.place.execute("UPDATE node SET name = 'b' WHERE name = 'c'")
    assert {e.name: e.certificate for e in store.survey().nodes.values()}["b"] == b"b"
    cluster.place.execute("UPDATE node SET is_over = TRUE WHERE name = 'b'")
    assert all(each.certificate != b"b" for each in store.survey().nodes.values())


@pytest.mark.requirement("cluster:upgrade")
def test_what_nodes_of_the_version_before_wrote_counts_until_the_last_of_them_is_gone(
    cluster: SharedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.secret = None
    old, next_one = begun(cluster, "old"), cluster.started("new")
    theirs, ours = a_run(1), a_run(2)
    old.commit(spawned(theirs))
    next_one.close()
    cluster.secret = SECRET.encode()
    new = cluster.opened("new")
    assert [run.id for run in new.load_partitions(ALL).runs] == [theirs.id]
    new.sign_all()
    assert new.has_unsigned, "one of them is at work"
    old.commit(granted(theirs)[1])
    old.release(ALL)
    old.close()
    new.claim(ALL)
    new.commit(spawned(ours))
    changed, batch = granted(ours)
    new.commit(batch)
    new.sign_all()
    assert not new.has_unsigned

    new = again(cluster, new, "new")
    assert {run.id: run.seq for run in new.load_open()} == {theirs.id: 2, ours.id: changed.seq}
    forged(cluster, a_run(3))
    assert len(again(cluster, new, "new").load_open()) == 2
    # From now on no program of that version begins here.
    known = postgres_migrations.scripts()[:5]
    monkeypatch.setattr(postgres_migrations, "scripts", lambda: known)
    link = Link(cluster.server.conninfo())
    with pytest.raises(CorruptState, match="needs programs that know 6"):
        postgres_migrations.require_known(link, cluster.place.schema)
    link.close()


@pytest.mark.requirement("cluster:signed")
def test_what_was_signed_with_another_secret_is_signed_anew_when_nobody_has_that_any_more(
    cluster: SharedPlace,
) -> None:
    store, run = begun(cluster), a_run(1)
    store.commit(spawned(run))
    changed, batch = granted(run)
    store.commit(batch)
    cluster.lose_lock("a")  # it was killed: that event is not in the row of its run
    cluster.place.execute("UPDATE cluster SET is_signed = FALSE, secret_check = NULL")
    signer_of(cluster.lock("a"), b"").marker.unlink()
    cluster.secret = b"another of sixteen letters"
    store = begun(cluster)
    store.sign_all()
    assert not store.has_unsigned
    store = again(cluster, store)
    assert {each.id: each.seq for each in store.load_open()} == {run.id: changed.seq}
    assert not store.set_aside()


@pytest.mark.requirement("cluster:signed")
def test_a_home_that_knows_the_runs_signed_believes_no_database_that_says_otherwise(
    cluster: SharedPlace,
) -> None:
    begun(cluster).close()
    cluster.place.execute("UPDATE cluster SET is_signed = FALSE")
    with pytest.raises(ConfigError, match="this home knew them signed") as refused:
        cluster.started("a")
    assert "postgres.signed" in (refused.value.hint or "")
    with pytest.raises(ConfigError, match="this home never worked on it"):
        cluster.started("fresh")
    with pytest.raises(ConfigError, match="this home never worked on it"):
        cluster.started("fresh")


@pytest.mark.requirement("cluster:signed")
def test_another_secret_or_none_is_refused_before_anything_is_read(cluster: SharedPlace) -> None:
    begun(cluster)
    cluster.secret = b"another one of them"
    with pytest.raises(ConfigError, match="is not the one with which") as refused:
        cluster.started("b")
    assert "another one" not in f"{refused.value.message} {refused.value.hint}"
    cluster.secret = None
    with pytest.raises(ConfigError, match="are signed, and this daemon has no secret"):
        cluster.started("b")


@pytest.mark.requirement("cluster:join")
def test_nodes_that_are_started_at_the_same_moment_make_one_cluster(cluster: SharedPlace) -> None:
    stores = [cluster.node(name) for name in "abcd"]
    with ThreadPoolExecutor(len(stores)) as threads:
        epochs = [*threads.map(lambda store: store.open("one"), stores)]
    assert sorted(epochs) == [1, 2, 3, 4]
    found = stores[0].survey().nodes.values()
    assert {each.name: each.certificate for each in found} == {e: e.encode() for e in "abcd"}


@pytest.mark.requirement("cluster:signed")
def test_a_signature_is_of_one_kind_of_row_with_these_columns_and_of_one_secret(
    tmp_path: Path,
) -> None:
    signer = signer_of(tmp_path / "a" / "postgres.lock", SECRET.encode())
    found = signer.sign("state", "r-1", 2, None)
    assert signer.is_ours(found, "state", "r-1", 2, None)
    for other in (("event", "r-1", 2, None), ("state", "r-12", None), ("state", "r-1", 3, None)):
        assert not signer.is_ours(found, *other)
    assert not signer.is_ours(None, "state", "r-1", 2, None)
    assert not signer_of(tmp_path / "b" / "postgres.lock", b"other").is_ours(found, "state", "r-1")
    signer.prove(None, "state", "whatever")
    signer.require()
    for each in (signer, signer_of(tmp_path / "a" / "postgres.lock", SECRET.encode())):
        with pytest.raises(ValueError, match=UNSIGNED):
            each.prove(None, "state", "whatever")
