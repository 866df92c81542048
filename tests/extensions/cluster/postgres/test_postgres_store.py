"""What only PostgreSQL has: a server that can go away, and lines to it that can be cut."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.store.cut_line import Cut, CutLine, laid

from subagents.domain.run.values import SessionKey, replace
from subagents.errors import AlreadyRunning, CorruptState, Fenced, StoreUnavailable
from subagents.extensions.cluster.postgres import postgres_migrations
from subagents.extensions.cluster.postgres.home_lock import HomeLock
from subagents.extensions.cluster.postgres.link import Link, escaped, unescaped
from subagents.extensions.cluster.postgres.postgres_store import READERS_MAX, PostgresStore
from subagents.extensions.testing.stored_values import (
    ME,
    NOW_MS,
    a_run,
    entry,
    message,
    over,
    spawned,
)
from subagents.ports import Batch, RememberedKey, RunFilter

# -- a line that is cut ----------------------------------------------------------------------


@pytest.fixture
def line(postgres: PostgresServer) -> Iterator[CutLine]:
    with laid(postgres.directory) as line:
        yield line


def over_line(line: CutLine, place: PostgresPlace) -> PostgresStore:
    """Opened; what it sends goes over the line."""
    url = place.server.url(place.schema, host=line.directory)
    store = PostgresStore(url, place.lock)
    store.open("one")
    return store


@pytest.mark.requirement("store:outcome-unknown")
@pytest.mark.parametrize("what", [Cut.ANSWER_LOST, Cut.PACKET_LOST, Cut.DELAYED])
def test_a_commit_whose_line_is_cut_is_made_once_and_answered(
    what: Cut, line: CutLine, postgres_place: PostgresPlace
) -> None:
    with closing(over_line(line, postgres_place)) as store:
        store.commit(spawned(a_run(1)))
        line.cut(what)
        batch = spawned(a_run(2))
        batch.messages.append(message(a_run(2)))
        store.commit(batch)

        assert line.is_cut.is_set()
        if what is Cut.DELAYED:
            assert b"is over" in line.deliver()
        store.commit(spawned(a_run(3)))
        assert [each.entry.run_id for each in store.feed(after=0)] == [
            a_run(n).id for n in (1, 2, 3)
        ]
        assert store.unread_total() == 1


@pytest.mark.requirement("store:outcome-unknown")
def test_until_it_is_known_what_became_of_a_commit_nothing_else_is_written(
    line: CutLine, postgres_place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(over_line(line, postgres_place)) as store:
        store.commit(spawned(a_run(1)))
        line.cut(Cut.DELAYED)
        with monkeypatch.context() as patch:
            # There is no server to be asked.
            patch.setattr(store, "_url", store._url._replace(conninfo="host=/nowhere"))
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                store.commit(spawned(a_run(2)))
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                store.probe()
        store.probe()
        assert b"is over" in line.deliver()
        assert list(store.load_open()) == [a_run(1)]
        store.commit(spawned(a_run(2)))
        assert list(store.load_open()) == [a_run(1), a_run(2)]


@pytest.mark.requirement("store:epoch-fences")
def test_a_commit_that_is_on_its_way_while_another_takes_over_is_not_made(
    line: CutLine, postgres_place: PostgresPlace
) -> None:
    with closing(over_line(line, postgres_place)) as old:
        old.commit(spawned(a_run(1)))
        line.cut(Cut.HALF_SENT)
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(old.commit, spawned(a_run(2)))
            assert line.is_cut.wait(60)
            postgres_place.lose_lock()
            # It has the row of the node, and would keep it as long as it is frozen.
            with closing(postgres_place.store()) as new:
                assert new.open("two") == 2
                assert list(new.load_open()) == [a_run(1)]
                line.thaw()
                with pytest.raises(Fenced, match="epoch 1 is over"):
                    writing.result(60)
                new.commit(spawned(a_run(2)))
                with pytest.raises(Fenced):
                    old.probe()
                assert len(new.feed(after=0)) == 2


@pytest.mark.requirement("store:one-packet")
def test_all_of_a_commit_is_sent_before_anything_is_waited_for(
    line: CutLine, postgres_place: PostgresPlace
) -> None:
    with closing(over_line(line, postgres_place)) as store:
        store.commit(spawned(a_run(0), a_run(1)))
        for first in (10, 20):  # with what has to be prepared, and without
            runs = [over(a_run(n), result="long " * 50_000) for n in range(first, first + 10)]
            batch = spawned(*runs)
            batch.messages = [message(run) for run in runs]
            batch.consumed = [(message(runs[0]).id, NOW_MS, "me")]
            batch.idempotency = [RememberedKey(ME, f"k{first}", runs[0].id, NOW_MS, None)]
            batch.runs[a_run(first // 20).id] = over(a_run(first // 20))
            line.cut(Cut.WHOLE)
            store.commit(batch)
            assert line.is_cut.is_set()
        assert store.count(RunFilter(), most=100) == 22


# -- an owner that is frozen ---------------------------------------------------------------------

COMMITS = """
import sys
from pathlib import Path
from subagents.errors import Fenced
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore
from subagents.extensions.testing.stored_values import a_run, spawned
store = PostgresStore(sys.argv[1], Path(sys.argv[2]))
store.open("one")
try:
    for number in range(100_000):
        store.commit(spawned(*(a_run(n) for n in range(10 * number, 10 * number + 10))))
        print(number, flush=True)
except Fenced:
    print("fenced", flush=True)
"""


@pytest.mark.requirement("store:epoch-fences")
def test_an_owner_that_is_frozen_while_it_commits_stops_nobody_and_writes_no_more(
    postgres_place: PostgresPlace,
) -> None:
    argv = [sys.executable, "-c", COMMITS, postgres_place.url, str(postgres_place.lock)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as frozen:
        assert frozen.stdout is not None
        try:
            told = [frozen.stdout.readline() for _ in range(5)]
            frozen.send_signal(signal.SIGSTOP)
            postgres_place.lose_lock()
            with closing(postgres_place.store()) as store:
                store.open("two")
                known = store.count(RunFilter(), most=10_000_000)
                assert known >= 10 * len(told)
                frozen.send_signal(signal.SIGCONT)
                assert frozen.stdout.read().split()[-1] == "fenced"
                assert store.count(RunFilter(), most=10_000_000) == known
        finally:
            frozen.kill()


# -- a server that goes away -----------------------------------------------------------------


@pytest.mark.requirement("store:server-restarts")
def test_what_was_committed_is_there_after_an_immediate_restart_and_the_store_goes_on(
    postgres_place: PostgresPlace,
) -> None:
    server = postgres_place.server
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
        assert store.run(a_run(1).id) == a_run(1)
        server.kill()
        try:
            with pytest.raises(StoreUnavailable):
                store.commit(spawned(a_run(2)))
            with pytest.raises(StoreUnavailable):
                store.probe()
            with pytest.raises(StoreUnavailable):
                store.feed(after=0)
        finally:
            server.start()
        store.probe()
        assert list(store.load_open()) == [a_run(1)]
        store.commit(spawned(a_run(2)))
        server.kill()
        server.start()
        # Nobody noticed: neither what reads nor what writes.
        assert store.run(a_run(2).id) == a_run(2)
        store.commit(spawned(a_run(3)))
        assert [each.entry.run_id for each in store.feed(after=0)] == [
            a_run(n).id for n in (1, 2, 3)
        ]


@pytest.mark.requirement("store:pooler")
def test_nothing_is_prepared_where_another_backend_may_have_the_next_transaction(
    postgres: PostgresServer, pooler: Path
) -> None:
    direct, behind = Link(postgres.conninfo()), Link(f"host={pooler} user=tests dbname=postgres")
    for link in (direct, behind):
        for number in range(20):
            link.send([("SELECT $1::bigint", [(number,)])])
            assert link.ask("SELECT $1::bigint", [number]) == [(number,)]
    (known,) = direct.ask("SELECT count(*) FROM pg_prepared_statements")
    assert known >= (2,)
    assert behind.ask("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
    direct.close()
    behind.close()


@pytest.mark.requirement("store:durable")
def test_a_commit_is_on_the_servers_disk_also_where_the_server_would_not_wait(
    postgres_place: PostgresPlace,
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
    postgres_place.execute("CREATE TABLE seen (word text)")
    look = "INSERT INTO {schema}.seen VALUES (current_setting('synchronous_commit'))"
    postgres_place.execute(
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {look.format(schema=postgres_place.schema)}; RETURN NULL; END $$"
    )
    postgres_place.execute(
        f"CREATE TRIGGER see AFTER INSERT ON journal EXECUTE FUNCTION {postgres_place.schema}.see()"
    )
    postgres_place.execute("ALTER ROLE tests SET synchronous_commit = off")
    try:
        with closing(postgres_place.store()) as store:
            store.open("two")
            assert store._fetched("SELECT current_setting('synchronous_commit')", ()) == [("off",)]
            store.commit(spawned(a_run(1)))
    finally:
        postgres_place.execute("ALTER ROLE tests RESET synchronous_commit")
    assert postgres_place.asked("SELECT word FROM seen") == [("on",)]


@pytest.mark.requirement("store:connections")
def test_however_many_read_at_once_a_store_has_five_connections(
    postgres_place: PostgresPlace,
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
        before = len(postgres_place.asked("SELECT pid FROM pg_stat_activity"))
        barrier = threading.Barrier(32)

        def ask(_: int) -> int:
            barrier.wait()
            return len(store.runs(RunFilter()))

        with ThreadPoolExecutor(32) as threads:
            assert set(threads.map(ask, range(32))) == {1}
        now = len(postgres_place.asked("SELECT pid FROM pg_stat_activity"))
        assert now - before <= READERS_MAX


# -- whose it is -----------------------------------------------------------------------------


@pytest.mark.requirement("store:one-home")
def test_two_homes_do_not_share_a_database(postgres_place: PostgresPlace, tmp_path: Path) -> None:
    other = PostgresStore(postgres_place.url, tmp_path / "other" / "postgres.lock")
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
    with pytest.raises(CorruptState, match="belongs to another home") as refused:
        other.open("two")
    assert refused.value.hint is not None
    # The hint says how it changes hands; then the lock has been let go, too.
    identity = refused.value.hint.partition("echo ")[2].partition(" ")[0]
    (tmp_path / "other" / "postgres.lock").write_text(identity)
    with closing(other):
        assert other.open("two") == 2
        assert list(other.load_open()) == [a_run(1)]


@pytest.mark.requirement("store:one-home")
def test_an_empty_database_beside_what_runs_left_is_refused(
    postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    left = tmp_path / "transcripts"
    (left / "r-1").mkdir(parents=True)
    store = PostgresStore(postgres_place.url, postgres_place.lock, belongings=[left])

    with pytest.raises(CorruptState, match=r"is empty, but .* has files of 1 run"):
        store.open("one")
    (left / "r-1").rmdir()
    with closing(store):
        assert store.open("one") == 1


@pytest.mark.requirement("store:one-holder")
def test_a_lock_goes_with_its_holder_and_its_home_stays(tmp_path: Path) -> None:
    first, second = HomeLock(tmp_path / "lock"), HomeLock(tmp_path / "lock")
    first.take()
    home = first.home()
    with pytest.raises(AlreadyRunning):
        second.take()
    first.release()
    second.take()
    assert second.home() == home != ""
    second.release()


@pytest.mark.requirement("store:migrations")
def test_a_schema_of_a_newer_version_is_refused_and_not_changed(
    postgres_place: PostgresPlace,
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
    put = "INSERT INTO migration (number, name, needs) VALUES (%s, 'later', %s)"
    postgres_place.execute(put, 999, 998)

    with closing(postgres_place.store()) as store:
        for use in (partial(store.open, "two"), store.open_readonly):
            with pytest.raises(
                CorruptState, match="migration 999 and needs programs that know 998"
            ):
                use()
    assert postgres_place.asked("SELECT epoch FROM cluster") == [(1,)]


@pytest.mark.requirement("store:migrations")
def test_a_schema_of_a_newer_version_that_says_this_one_can_live_with_it_is_used(
    postgres_place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = postgres_migrations.scripts()
    later = "-- 0999 later\n--\n-- needs 0001\n\nCREATE TABLE {schema}.later ()"
    monkeypatch.setattr(postgres_migrations, "scripts", lambda: (*known, (999, "later", later)))
    with closing(postgres_place.store()) as store:
        store.open("new")
    monkeypatch.undo()

    with closing(postgres_place.store()) as store:
        assert store.open("old") == 2


@pytest.mark.requirement("store:migrations")
def test_a_migration_that_fails_changes_nothing(
    postgres_place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
    steps = (
        *postgres_migrations.scripts(),
        (999, "broken", "CREATE TABLE {schema}.new (); SELECT 1/0"),
    )
    monkeypatch.setattr(postgres_migrations, "scripts", lambda: steps)
    refused = pytest.raises(StoreUnavailable, match="division by zero")
    with closing(postgres_place.store()) as store, refused:
        store.open("two")
    monkeypatch.undo()
    with closing(postgres_place.store()) as store:
        assert store.open("two") == 2


@pytest.mark.requirement("store:postgres")
def test_a_user_that_may_make_no_schema_uses_one_that_is_its_own(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    its = postgres.new_schema()
    postgres.execute_script(f"CREATE ROLE {its} LOGIN; CREATE SCHEMA {its} AUTHORIZATION {its}")
    url = postgres.url(its).replace("tests@", f"{its}@")
    for _ in range(2):
        with closing(PostgresStore(url, tmp_path / "postgres.lock")) as store:
            store.open("one")


@pytest.mark.requirement("store:unreachable")
def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    store = PostgresStore("postgresql://me:s3cret@/db?host=/nowhere", tmp_path / "lock")

    with pytest.raises(StoreUnavailable, match="postgresql://me@/db") as refused:
        store.open("one")
    assert "s3cret" not in str(refused.value)


# -- values ----------------------------------------------------------------------------------


@pytest.mark.requirement("store:any-text")
def test_any_text_and_the_largest_numbers_come_back_as_they_were(
    postgres_place: PostgresPlace,
) -> None:
    odd = "a\0b\x1bc\x1b0\x1b1 ☃ \U0010ffff\r\n\\x00"
    run = replace(over(a_run(1), result=odd), requester=SessionKey(f"agent:{odd}:main"))
    run = replace(run, resolved=replace(run.resolved, label=odd, cwd=f"/{odd}"))
    with closing(postgres_place.store()) as store:
        store.open("one")
        batch = spawned(run)
        batch.journal.append(entry(run, seq=2, key=odd))
        batch.messages.append(message(run, text=odd))
        batch.idempotency.append(RememberedKey(run.requester, odd, run.id, 2**63 - 1, odd))
        store.commit(batch)

        assert store.run(run.id) == run
        assert store.runs(RunFilter(label=odd)) == store.runs(RunFilter(text=odd)) == [run]
        assert store.runs(RunFilter(directory=f"/{odd}")) == [run]
        assert [row.message.text for row in store.inbox(run.requester, unconsumed=True)] == [odd]
        assert store.load_keys([run.id]) == {run.id: {odd}}
        assert list(store.load_idempotency(0)) == batch.idempotency
        assert store.check() == []


@pytest.mark.requirement("store:any-text")
@pytest.mark.parametrize(
    "text", ["", "plain", "\0", "\x1b", "\x1b0", "\0\x1b1\x1b\0", "0\x1b\x1b1"]
)
def test_a_text_without_nul_stands_for_each_text(text: str) -> None:
    assert "\0" not in escaped(text)
    assert unescaped(escaped(text)) == text
    assert escaped(text + "/more").startswith(escaped(text))


@pytest.mark.requirement("store:backup")
def test_a_copy_by_pg_dump_while_in_use_is_restored_by_pg_restore(
    postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
        server = postgres_place.server
        dump = ["pg_dump", "--format=custom", f"--schema={postgres_place.schema}"]
        dump += [f"--dbname={server.conninfo()}", f"--file={target}"]
        subprocess.run(dump, check=True, capture_output=True)
        store.commit(spawned(a_run(2)))
    postgres_place.execute(f"DROP SCHEMA {postgres_place.schema} CASCADE")
    subprocess.run(
        ["pg_restore", f"--dbname={server.conninfo()}", str(target)],
        check=True,
        capture_output=True,
    )

    with closing(postgres_place.store()) as store:
        store.open("two")
        assert list(store.load_open()) == [a_run(1)]
        assert store.check() == []


@pytest.mark.requirement("store:place")
def test_a_store_tells_how_large_it_is_and_whether_it_is_there(
    postgres_place: PostgresPlace,
) -> None:
    with closing(postgres_place.store()) as store:
        assert store.size_bytes() == 0
        with pytest.raises(StoreUnavailable, match="there is no schema of ours"):
            store.open_readonly()
        store.open("one")
        assert store.size_bytes() > 0
        with closing(postgres_place.store()) as reader:
            reader.open_readonly()
            assert list(reader.load_open()) == []


@pytest.mark.requirement("store:full-disk")
def test_what_the_server_refuses_is_refused_whole_and_it_goes_on(
    postgres_place: PostgresPlace,
) -> None:
    with closing(postgres_place.store()) as store:
        store.open("one")
        store.commit(spawned(a_run(1)))
        postgres_place.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'no space left on device' USING ERRCODE = '53100'; END $$"
        )
        postgres_place.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON journal EXECUTE FUNCTION"
            f" {postgres_place.schema}.refuse()"
        )
        with pytest.raises(StoreUnavailable, match="refused a write: no space left"):
            store.commit(spawned(a_run(2)))
        assert list(store.load_open()) == [a_run(1)]
        postgres_place.execute("DROP TRIGGER full_disk ON journal")
        store.probe()
        store.commit(Batch(journal=[entry(a_run(1), seq=2)]))
        assert [each.entry.seq for each in store.feed(after=0)] == [1, 2]


@pytest.mark.requirement("store:connections")
def test_no_connection_is_left_open(postgres_place: PostgresPlace) -> None:
    asked = b"SELECT pid FROM pg_stat_activity WHERE application_name = 'subagents'"
    with psycopg.connect(postgres_place.server.conninfo(), autocommit=True) as connection:
        others = set(connection.execute(asked))  # of the pooler
        with closing(postgres_place.store()) as store:
            store.open("one")
            store.count(RunFilter(), most=1)
            assert set(connection.execute(asked)) - others
        while set(connection.execute(asked)) - others:  # a backend ends when it sees that it may
            pass
