"""What a PostgreSQL store promises the nodes of a cluster (``ports.SharedStore``)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.pinned_nodes import SECRET
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.extensions.cluster.postgres.shared_place import ALL, MemberPlace, SharedPlace, shared
from tests.store.cut_line import Cut, CutLine, laid
from tests.store.row_place import changed, granted, happened

from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.events import SlotGranted
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId, SessionKey, attempt_id, replace
from subagents.errors import AlreadyRunning, CorruptState, Elsewhere, Fenced, StoreUnavailable
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers
from subagents.extensions.cluster.postgres.kept_node import KeptNode
from subagents.extensions.cluster.postgres.postgres_store import READERS_MAX, PostgresStore
from subagents.extensions.testing.conformance import Behaviour, StorePlace
from subagents.extensions.testing.store_suite import OTHER, SUITE
from subagents.extensions.testing.stored_values import (
    ME,
    NOW_MS,
    a_run,
    archived,
    below,
    entry,
    message,
    over,
    spawned,
)
from subagents.ports import Batch, Below, Lease, RunFilter

MINE, THEIRS = partition_of(ME), partition_of(OTHER)
BOUND_S = 60


@pytest.fixture
def cluster(postgres_place: PostgresPlace, tmp_path: Path) -> Iterator[SharedPlace]:
    with shared(postgres_place, tmp_path) as found:
        yield found


@pytest.fixture
def line(postgres: PostgresServer) -> Iterator[CutLine]:
    with laid(postgres.directory) as line:
        yield line


@pytest.fixture
def pair(cluster: SharedPlace) -> tuple[PostgresStore, PostgresStore]:
    """Two nodes: the first has the partition of ``ME``, the second that of ``OTHER``."""
    first, second = cluster.opened("a"), cluster.opened("b")
    assert first.claim([MINE]) == {MINE}
    assert second.claim([THEIRS]) == {THEIRS}
    return first, second


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
        for each in SUITE.behaviours
    ],
)
def test_a_member_of_a_cluster_keeps_what_every_store_promises(
    behaviour: Behaviour[StorePlace], postgres: PostgresServer, tmp_path: Path
) -> None:
    place = MemberPlace(postgres, tmp_path)
    with shared(place, tmp_path) as cluster:
        cluster.secret = SECRET.encode()
        cluster.opened("another")
        behaviour.check(place)


# -- who has what ------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:claim")
def test_a_partition_is_claimed_only_while_nobody_who_lives_has_it(cluster: SharedPlace) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")

    assert first.claim([1, 2]) == {1, 2}
    assert second.claim([2, 3]) == {3}
    assert first.claim([1]) == {1}  # again is harmless
    survey = first.survey()
    assert survey.owners == {1: first.identity, 2: first.identity, 3: second.identity}
    assert {each.name for each in survey.nodes.values()} == {"a", "b"}
    seen = survey.nodes[second.identity]
    assert (seen.url, seen.labels, seen.slots) == ("https://b.example:7337", ("linux",), 4)
    assert 60 < seen.left_s <= 120
    assert not seen.is_draining


@pytest.mark.requirement("cluster:claim")
def test_a_claim_fences_a_node_that_did_not_renew_and_takes_what_it_had(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim(ALL)
    first.commit(spawned(a_run(1)))
    cluster.lapse("a")
    assert first.survey().nodes[first.identity].left_s <= -60
    first.commit(spawned(a_run(2)))  # nobody has taken anything

    assert second.claim([MINE]) == {MINE}
    for write in (first.probe, first.renew, lambda: first.commit(spawned(a_run(3)))):
        with pytest.raises(Fenced, match="is over"):
            write()
    for give in (first.release, first.claim):
        with pytest.raises(Fenced):
            give([MINE])
    loaded = second.load_partitions([MINE])
    assert list(loaded.runs) == [a_run(1), a_run(2)]
    assert second.claim(ALL) == {*ALL}  # the rest of one that is over is nobody's


@pytest.mark.requirement("cluster:claim", "cluster:outage")
def test_who_is_not_known_to_a_node_takes_nothing_from_it_while_its_workers_may_live(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim([MINE])
    first.tell_peers(["another"])
    cluster.lapse("a")
    assert second.claim([MINE]) == frozenset()
    assert first.identity in second.survey().nodes

    long_ago = "UPDATE node SET until = until - interval '1 hour' WHERE name = ?"
    cluster.place.execute(long_ago, "a")
    assert second.claim([MINE]) == {MINE}
    with pytest.raises(Fenced):
        first.tell_peers([second.identity])


@pytest.mark.requirement("cluster:claim", "cluster:node-lost")
def test_a_node_that_was_started_again_is_known_to_those_that_knew_its_home(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim([MINE])
    assert first.home != second.home
    first.tell_peers([second.home])
    for name in ("a", "b"):
        cluster.lapse(name)
    cluster.lose_lock("b")
    again = cluster.started("b")
    assert again.home == second.home
    assert again.claim([MINE]) == frozenset()  # its right was not held for a lease yet
    cluster.place.execute("UPDATE node SET since = since - interval '1 hour'")

    assert again.claim([MINE]) == {MINE}


@pytest.mark.requirement("cluster:claim")
def test_what_a_forgotten_node_had_is_free_and_one_that_is_alive_is_not_forgotten(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim([MINE])
    first.tell_peers(["another"])
    second.forget("a")
    assert first.renew() == 60
    cluster.lapse("a")
    assert second.claim([MINE]) == frozenset()

    second.forget("a")
    assert second.claim([MINE]) == {MINE}
    with pytest.raises(Fenced):
        first.renew()


@pytest.mark.requirement("cluster:drain", "cluster:daemon-killed")
def test_a_node_that_stops_is_not_over_while_something_works_on_its_machine(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.has_workers = lambda: True
    first.close()
    assert second.survey().nodes[first.identity].left_s > 0

    again = cluster.started("a")
    again.close()
    assert not {first.identity, again.identity} & second.survey().nodes.keys()


@pytest.mark.requirement("cluster:drain")
def test_who_had_nothing_any_more_and_is_silent_for_a_day_leaves_no_row(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    second.claim([MINE])
    first.has_workers = lambda: True
    first.close()
    cluster.place.execute("UPDATE node SET until = until - interval '2 days'")
    cluster.opened("c")
    assert {*cluster.place.asked("SELECT name FROM node")} == {("b",), ("c",)}


@pytest.mark.requirement("cluster:places")
def test_the_offer_of_a_run_that_is_over_is_swept_and_no_other(cluster: SharedPlace) -> None:
    store, here, gone = cluster.opened("a"), a_run(1), a_run(2)
    store.claim(ALL)
    store.commit(spawned(here, gone))
    store.commit(Batch(runs={gone.id: over(gone)}))
    with closing(PostgresOffers(cluster.place.url)) as offers:
        for run in (here, gone):
            offers.put(Offer(attempt_id(run.id, 1), run.id, 1, None, 0, "/"))
        offers.sweep()
        assert [each.run_id for each in offers.open([], 9)] == [here.id]


@pytest.mark.requirement("schedule:once", "cluster:ownership")
def test_one_node_after_the_other_does_what_is_locked(cluster: SharedPlace) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    release, free = first.lock("schedule nightly"), first.lock("schedule hourly")
    waiting: list[str] = []

    def wait() -> None:
        unlock = second.lock("schedule nightly")
        waiting.append("has it")
        unlock()

    thread = threading.Thread(target=wait)
    thread.start()
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    until(lambda: cluster.place.asked(waits) == [(1,)], what="the other one waits")
    assert waiting == []
    release()
    thread.join(60)
    assert waiting == ["has it"]
    free()


@pytest.mark.requirement("cluster:daemon-killed")
def test_the_right_of_a_daemon_that_is_gone_is_renewed_unless_it_ended_or_another_has_it(
    cluster: SharedPlace,
) -> None:
    first = cluster.opened("a")
    last = "UPDATE node SET until = clock_timestamp() + interval '5 seconds' WHERE name = ?"
    cluster.place.execute(last, "a")

    with closing(KeptNode(cluster.place.url, first.identity)) as kept:
        assert kept.renew()
        assert first.survey().nodes[first.identity].left_s > 50

        cluster.lapse("a")
        assert not kept.renew()

        cluster.lose_lock("a")
        following = cluster.started("a")
        assert not kept.renew()
    with closing(KeptNode(cluster.place.url, following.identity)) as kept:
        assert kept.renew()


@pytest.mark.requirement("cluster:daemon-killed")
def test_a_database_that_is_away_is_no_end_of_a_right(cluster: SharedPlace) -> None:
    nobody = KeptNode("postgresql:///none?host=/nonexistent", "identity")

    with pytest.raises(OSError, match="cannot be asked"):
        nobody.renew()


@pytest.mark.requirement("cluster:claim")
def test_a_node_that_renews_is_never_taken_for_one_that_is_over(cluster: SharedPlace) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim(ALL)
    cluster.lapse("a")
    assert first.renew() == 60

    assert second.claim(ALL) == frozenset()
    first.commit(spawned(a_run(1)))


@pytest.mark.requirement("cluster:claim")
def test_of_many_nodes_that_claim_at_once_each_partition_has_one(cluster: SharedPlace) -> None:
    stores = [cluster.opened(f"n{number}") for number in range(6)]
    barrier = threading.Barrier(len(stores))

    def claim(store: PostgresStore) -> frozenset[int]:
        barrier.wait(BOUND_S)
        return store.claim(ALL)

    with ThreadPoolExecutor(len(stores)) as threads:
        taken = list(threads.map(claim, stores))
    assert sorted(part for each in taken for part in each) == [*ALL]


@pytest.mark.requirement("cluster:claim")
def test_a_node_that_is_frozen_while_it_commits_does_not_hold_up_a_claim(
    cluster: SharedPlace, line: CutLine
) -> None:
    first, second = cluster.opened("a", host=line.directory), cluster.opened("b")
    first.claim(ALL)
    first.commit(spawned(a_run(1)))
    cluster.lapse("a")
    line.cut(Cut.HALF_SENT)
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(first.commit, spawned(a_run(2)))
        assert line.is_cut.wait(BOUND_S)
        # It has its row in the database, and would keep it as long as it is frozen.
        assert second.claim(ALL) == {*ALL}
        line.thaw()
        with pytest.raises(Fenced, match="is over"):
            writing.result(BOUND_S)
    assert list(second.load_partitions(ALL).runs) == [a_run(1)]
    second.commit(spawned(a_run(2)))


@pytest.mark.requirement("cluster:claim")
@pytest.mark.parametrize("what", [Cut.ANSWER_LOST, Cut.PACKET_LOST])
def test_a_claim_and_a_release_whose_line_is_cut_are_made_once_and_answered(
    cluster: SharedPlace, line: CutLine, what: Cut
) -> None:
    first, second = cluster.opened("a", host=line.directory), cluster.opened("b")
    line.cut(what)
    assert first.claim([MINE]) == {MINE}
    assert line.is_cut.is_set()
    first.commit(spawned(a_run(1)))
    line.cut(what)
    first.release([MINE])
    assert line.is_cut.is_set()
    assert second.claim([MINE]) == {MINE}
    with pytest.raises(Elsewhere):
        first.commit(spawned(a_run(2)))


@pytest.mark.requirement("cluster:release")
def test_while_nobody_can_say_whether_a_partition_was_given_back_nothing_of_it_is_written(
    cluster: SharedPlace, line: CutLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cluster.opened("a", host=line.directory), cluster.opened("b")
    first.claim([MINE, THEIRS])
    line.cut(Cut.ANSWER_LOST)
    with monkeypatch.context() as patch:
        patch.setattr(first, "_url", first._url._replace(conninfo="host=/nowhere"))
        with pytest.raises(StoreUnavailable):
            first.release([MINE])
    assert second.claim([MINE]) == {MINE}
    with pytest.raises(Elsewhere):
        first.commit(spawned(a_run(1)))
    first.release([MINE])  # repeated
    first.commit(spawned(a_run(2, requester=OTHER)))
    second.commit(spawned(a_run(1)))


@pytest.mark.requirement("cluster:release")
def test_what_is_given_back_goes_on_elsewhere_with_its_work_leases_and_keys(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    first.commit(spawned(a_run(1)))
    run, batch = granted(a_run(1))
    batch.journal[0] = replace(batch.journal[0], key="once")
    held = Lease(run_id=run.id, attempt=1, owner="a", epoch=first._epoch + 5, until_ms=9)
    batch.leases[run.id] = held
    first.commit(batch)
    assert list(first.load_open()) == [run]
    first.release([MINE])
    assert not [*first.load_open(), *first.load_outbox(), *first.load_leases()]
    assert first.load_keys() == {}

    assert second.claim([MINE]) == {MINE}
    loaded = second.load_partitions([MINE])
    assert (list(loaded.runs), list(loaded.outbox)) == ([run], batch.outbox)
    assert (list(loaded.leases), loaded.keys) == ([held], {run.id: {"once"}})
    assert list(second.load_open()) == [run]
    assert list(second.load_outbox()) == batch.outbox
    # Its epoch is smaller than that of the one before, and the lease is its own.
    mine = replace(held, owner="b", epoch=second._epoch)
    later, batch = changed(run)
    batch.leases[run.id] = mine
    second.commit(batch)
    assert list(second.load_leases()) == [mine]
    assert list(second.load_open()) == [later]


@pytest.mark.requirement("cluster:release")
def test_numbers_grow_within_a_partition_through_all_its_hands(
    pair: tuple[PostgresStore, PostgresStore], cluster: SharedPlace
) -> None:
    first, second = pair
    for number in range(6):
        store, other = (first, second) if number % 2 == 0 else (second, first)
        batch = spawned(a_run(2 * number))
        batch.messages = [message(a_run(2 * number))]
        store.commit(batch)
        store.commit(spawned(a_run(2 * number + 1)))
        store.release([MINE])
        assert other.claim([MINE]) == {MINE}
    for asked in (
        "SELECT run_id FROM run ORDER BY number",
        "SELECT run_id FROM journal ORDER BY number",
    ):
        assert cluster.place.asked(asked) == [(a_run(number).id,) for number in range(12)]
    unread = [row.message.run_id for row in first.inbox(ME, unconsumed=True)]
    assert unread == [a_run(2 * number).id for number in range(6)]


@pytest.mark.requirement("cluster:release")
def test_a_member_that_gave_all_back_and_closes_leaves_nothing_to_wait_for(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim(ALL)
    first.release(ALL)
    first.close()

    assert second.claim(ALL) == {*ALL}
    assert list(second.survey().nodes) == [second.identity]


@pytest.mark.requirement("cluster:restart", "cluster:workers-end")
def test_what_a_member_has_when_it_closes_stays_its_own_until_its_right_is_over(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.opened("b")
    first.claim([MINE, THEIRS])
    first.release([THEIRS])
    first.close()

    assert second.claim([MINE, THEIRS]) == {THEIRS}
    assert second.survey().nodes[first.identity].is_draining
    cluster.lapse("a")
    assert second.claim([MINE]) == {MINE}


@pytest.mark.requirement("cluster:fence", "cluster:outage")
def test_who_did_not_hold_its_own_right_for_a_whole_lease_takes_nothing_from_anybody(
    cluster: SharedPlace,
) -> None:
    first, second = cluster.opened("a"), cluster.started("b")
    first.claim([MINE])
    cluster.lapse("a")

    assert second.claim([MINE, THEIRS]) == {THEIRS}
    first.commit(spawned(a_run(1)))

    cluster.lapse("b")
    second.renew()  # it could not for a minute, as nobody could
    assert second.claim([MINE]) == frozenset()


@pytest.mark.requirement("cluster:names")
def test_two_homes_that_are_alive_have_two_names(cluster: SharedPlace) -> None:
    cluster.opened("a")
    other = cluster.node("b", called="a")
    with pytest.raises(AlreadyRunning, match="a node called a") as refused:
        other.open("two")
    assert refused.value.hint is not None
    assert "daemon.node" in refused.value.hint

    cluster.lapse("a")
    other.open("two")


@pytest.mark.requirement("cluster:restart")
def test_a_home_that_is_started_again_has_its_partitions_back_at_once(
    cluster: SharedPlace,
) -> None:
    first, other = cluster.opened("a"), cluster.opened("b")
    first.claim([MINE, THEIRS])
    first.commit(spawned(a_run(1)))
    other.claim([7])
    cluster.lose_lock("a")

    again = cluster.opened("a")
    assert again.survey().owners == {
        MINE: again.identity,
        THEIRS: again.identity,
        7: other.identity,
    }
    assert list(again.load_open()) == [a_run(1)]
    again.commit(spawned(a_run(2)))
    with pytest.raises(Fenced):
        first.commit(spawned(a_run(3)))


@pytest.mark.requirement("cluster:drain")
def test_others_see_that_a_node_takes_no_more(pair: tuple[PostgresStore, PostgresStore]) -> None:
    first, second = pair
    first.drain(is_on=True)
    assert second.survey().nodes[first.identity].is_draining
    first.drain(is_on=False)
    assert not second.survey().nodes[first.identity].is_draining


@pytest.mark.requirement("cluster:sick-node")
def test_others_see_what_the_machine_of_a_node_lacks(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    first.degrade("no space left on its disk")
    seen = second.survey().nodes[first.identity]
    assert (seen.degraded, seen.takes) == ("no space left on its disk", False)
    first.degrade(None)
    assert second.survey().nodes[first.identity].takes


@pytest.mark.requirement("cluster:database-went-back")
@pytest.mark.parametrize("notices", ["renewal", "commit", "commit without an answer", "start"])
def test_a_database_that_lacks_what_it_acknowledged_is_told_once(
    notices: str, cluster: SharedPlace, caplog: pytest.LogCaptureFixture
) -> None:
    first = cluster.opened("a")
    first.claim(ALL)
    for number in range(3):
        first.commit(spawned(a_run(number)))
    assert first.survey().went_back is None
    if notices == "start":
        first.close()
        epoch = first._lock.path.with_name("postgres.epoch")
        epoch.write_text(epoch.read_text().replace("1 ", "9 ", 1))
        first = cluster.opened("a")
    else:
        cluster.place.execute("UPDATE node SET commits = commits - 2")
    if notices == "commit without an answer":
        first._unsure = first._made + 1
        assert not first._settle()
    if notices == "renewal":
        first.renew()
        assert first.survey().went_back is not None
    if notices in {"renewal", "commit"}:
        with pytest.raises(StoreUnavailable):
            first.commit(spawned(a_run(4)))
    first.renew()
    first.commit(spawned(a_run(5)))

    how = "this home saw start 9" if notices == "start" else "2 commits of this node gone"
    assert how in str(first.survey().went_back)
    assert [each.levelname for each in caplog.records if how in each.message] == ["ERROR"]


# -- what belongs to whom ----------------------------------------------------------------------


@pytest.mark.requirement("cluster:partitions")
def test_a_run_is_of_the_partition_of_the_session_above_its_tree(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    root, child = a_run(1), below(a_run(2, requester=OTHER), a_run(1))
    first.commit(spawned(root, child))
    deep = below(a_run(3, requester=OTHER), child)
    first.commit(spawned(deep))

    for run in (root, child, deep):
        assert second.partition(run.id) == MINE
        assert second.partition_of_worker(run.session.first_key) == MINE
    assert second.partition(RunId("r-none")) is None
    assert second.partition_of_worker(ME) is None


@pytest.mark.requirement("cluster:partitions")
def test_the_session_of_a_later_attempt_leads_to_the_partition_of_its_run(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    first.commit(spawned(a_run(1)))
    later = SessionKey("agent:worker:subagent:later")
    first.commit(happened(a_run(1), SlotGranted(at_ms=NOW_MS, session_key=later))[1])

    assert first.partition_of_worker(later) == second.partition_of_worker(later) == MINE


@pytest.mark.requirement("cluster:partitions")
def test_what_another_node_decides_is_not_written(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    first.commit(spawned(a_run(1)))
    later, batch = changed(a_run(1))

    for wrong in (spawned(a_run(2)), batch):
        with pytest.raises(Elsewhere) as refused:
            second.commit(wrong)
        assert refused.value.partition == MINE
    first.commit(batch)
    assert second.run(later.id) == later


@pytest.mark.requirement("cluster:partitions")
def test_each_node_archives_and_prunes_its_own_runs_alone(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    ended = [over(a_run(n, requester=who), ended_ms=NOW_MS) for n, who in ((1, ME), (2, OTHER))]
    gone = [archived(over(a_run(n, requester=who)), NOW_MS) for n, who in ((3, ME), (4, OTHER))]
    for store, index in zip(pair, (0, 1), strict=True):
        store.commit(spawned(ended[index], gone[index]))

    for store, index in zip(pair, (0, 1), strict=True):
        assert list(store.archivable(NOW_MS + 1, 9)) == [ended[index].id]
        assert list(store.prunable(NOW_MS + 1, 9)) == [gone[index].id]
    pair[0].prune([run.id for run in gone])
    assert pair[0].run(gone[0].id) is None
    assert pair[0].run(gone[1].id) == gone[1]


# -- what all see ------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:reads")
def test_lists_show_the_open_runs_of_others_as_they_are(
    pair: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = pair
    first.commit(spawned(a_run(1), below(a_run(2), a_run(1)), over(a_run(3))))
    second.commit(spawned(a_run(4, requester=OTHER)))
    run, batch = granted(a_run(1))
    first.commit(batch)
    assert run.phase is not Phase.QUEUED

    for store in pair:
        assert store.run(run.id) == run
        assert list(store.these([run.id])) == [run]
        moving = RunFilter(phases=(run.phase,))
        assert store.runs(moving) == [run]
        assert store.count(moving, most=9) == 1
        assert store.count(RunFilter(phases=(Phase.QUEUED,)), most=9) == 2
        assert {each.id for each in store.runs(RunFilter())} == {a_run(n).id for n in (1, 2, 3, 4)}
        assert list(store.below([run.id], most=9)) == [Below(run.id, None, 1, (a_run(2).id,))]
        assert list(store.find("r-")) == [a_run(n).id for n in (1, 2, 3, 4)]
    later, batch = changed(run)
    first.commit(batch)
    assert second.run(run.id) == later  # at once, also where lists look a moment later
    second._elsewhere.forget()
    assert second.runs(moving) == [later]
    ended = replace(over(later), seq=later.seq)
    first.commit(Batch(runs={ended.id: ended}))
    assert second.runs(RunFilter(outcomes=(OK.status,), top=True, label=run.resolved.label)) == [
        ended
    ]
    assert second.runs(moving) == []


@pytest.mark.requirement("cluster:reads")
def test_a_list_folds_of_others_what_is_new_and_not_everything_again(
    pair: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    first.commit(spawned(*(a_run(n) for n in range(20))))
    run, batch = granted(a_run(1))
    first.commit(batch)
    moving = RunFilter(phases=(run.phase,))
    assert second.runs(moving) == [run]
    asked: list[tuple[str, int]] = []
    fetched = second._fetched

    def counted(statement: str, parameters: object) -> list[tuple[object, ...]]:
        found = fetched(statement, parameters)  # type: ignore[arg-type]  # as it is called
        asked.append((statement, len(found)))
        return found

    monkeypatch.setattr(second, "_fetched", counted)
    assert second.count(moving, most=9) == 1
    assert len(asked) == 1  # a moment ago is now
    later, batch = changed(run)
    first.commit(batch)
    second._elsewhere.forget()
    asked.clear()
    assert second.count(moving, most=9) == 1
    tails = [size for statement, size in asked if statement == second._sql["select_tails"]]
    assert tails == [1]
    assert later.seq == run.seq + 1


@pytest.mark.requirement("cluster:reads")
def test_what_one_node_cannot_read_of_another_is_set_aside_by_its_owner_alone(
    pair: tuple[PostgresStore, PostgresStore], cluster: SharedPlace
) -> None:
    first, second = pair
    first.commit(spawned(a_run(1), a_run(2)))
    first._open.forget()
    assert cluster.place.execute("UPDATE run SET state = x'7b7d' WHERE run_id = 'r-0000000001'")

    assert [run.id for run in second.runs(RunFilter())] == [a_run(2).id]
    assert list(second.set_aside()) == []
    assert [run.id for run in first.load_open()] == [a_run(2).id]
    assert [each.run_id for each in second.set_aside()] == [a_run(1).id]


@pytest.mark.requirement("cluster:reads")
def test_a_node_that_joins_takes_nothing_back_that_another_set_aside(
    cluster: SharedPlace,
) -> None:
    first = cluster.opened("a")
    first.claim(ALL)
    first.commit(spawned(a_run(1)))
    first._open.forget()
    cluster.place.execute("UPDATE run SET state = x'7b7d'")
    assert list(first.load_open()) == []

    second = cluster.opened("b")
    assert [each.run_id for each in second.set_aside()] == [a_run(1).id]


# -- followers ---------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:feed")
def test_who_follows_two_that_commit_at_once_misses_nothing_and_hears_nothing_twice(
    pair: tuple[PostgresStore, PostgresStore], cluster: SharedPlace
) -> None:
    reader = cluster.opened("c")
    commits, events = 60, 3
    is_over = threading.Event()
    heard: list[tuple[RunId, int]] = []

    def follow() -> None:
        after = 0
        while True:
            was_over = is_over.is_set()
            page = reader.feed(after=after, limit=7)
            heard.extend((each.entry.run_id, each.entry.seq) for each in page)
            assert [each.number for each in page] == sorted({each.number for each in page})
            if page:
                assert page[0].number > after
                after = page[-1].number
            elif was_over and after <= reader.newest_number():
                return

    def commit(number: int) -> None:
        store, requester = pair[number], (ME, OTHER)[number]
        for each in range(commits):
            run = a_run(1 + number + 2 * each, requester=requester)
            batch = spawned(run)
            batch.journal += [entry(run, seq=seq) for seq in range(2, events + 1)]
            told = store.commit(batch)
            assert told > 0

    with ThreadPoolExecutor(3) as threads:
        following = threads.submit(follow)
        for writing in [threads.submit(commit, number) for number in (0, 1)]:
            writing.result(BOUND_S)
        is_over.set()
        following.result(BOUND_S)
    wanted = [(a_run(n).id, s) for n in range(1, 2 * commits + 1) for s in range(1, events + 1)]
    assert sorted(heard) == sorted(wanted)
    for requester in (ME, OTHER):  # and within a partition in their order
        of_one = [each for each in heard if (int(each[0][2:]) % 2 == 1) == (requester == ME)]
        assert of_one == sorted(of_one)


@pytest.mark.requirement("cluster:feed")
def test_nothing_behind_a_commit_that_is_under_way_is_told_before_it(
    pair: tuple[PostgresStore, PostgresStore], cluster: SharedPlace
) -> None:
    first, second = pair
    with psycopg.connect(cluster.server.conninfo()) as slow:
        slow.execute("SELECT pg_current_xact_id()")
        begin = second.newest_number()
        number = first.commit(spawned(a_run(1)))
        assert list(second.feed(after=0)) == []
        assert second.touched(after=0, ended_since_ms=0, limit=9) == (0, ())
        assert second.newest_number() < number
        first.renew()
        assert first.seen_number < number
        assert second.runs(RunFilter()) == [a_run(1)]
    found = second.feed(after=begin)
    assert [(each.number, each.entry) for each in found] == [(number, entry(a_run(1)))]
    assert second.newest_number() >= number
    first.renew()
    assert first.seen_number >= number


@pytest.mark.requirement("store:feed:order")
def test_a_daemon_alone_tells_of_its_commits_whatever_else_the_server_does(
    postgres_place: PostgresPlace,
) -> None:
    with (
        closing(postgres_place.store()) as store,
        psycopg.connect(postgres_place.server.conninfo()) as slow,
    ):
        store.open("one")
        slow.execute("SELECT pg_current_xact_id()")
        number = store.commit(spawned(a_run(1)))
        assert [each.number for each in store.feed(after=0)] == [number]
        assert store.newest_number() == number


@pytest.mark.requirement("store:feed:never-backwards")
def test_numbers_go_on_growing_in_a_server_whose_transactions_have_smaller_ones(
    cluster: SharedPlace,
) -> None:
    first = cluster.opened("a")
    first.claim(ALL)
    first.commit(spawned(a_run(1)))
    first.close()
    # As of a copy that was made by a server that has been at work for long.
    cluster.place.execute("UPDATE journal SET place = place + (1::bigint << 40)")
    ((before,),) = cluster.place.asked("SELECT max(place) FROM journal")

    again = cluster.opened("a")
    again.claim(ALL)
    assert again.newest_number() >= int(str(before))
    number = again.commit(spawned(a_run(2)))
    assert number > int(str(before))
    assert [each.number for each in again.feed(after=0)] == [before, number]


# -- alone and together ------------------------------------------------------------------------


@pytest.mark.requirement("cluster:alone")
def test_a_daemon_alone_is_refused_while_nodes_may_be_at_work(cluster: SharedPlace) -> None:
    member = cluster.opened("a")
    member.claim(ALL)
    member.commit(spawned(a_run(1)))
    alone = cluster.alone("b")

    with pytest.raises(
        AlreadyRunning, match=r"1 node of a cluster may be at work .*: a"
    ) as refused:
        alone.open("one")
    assert "cluster.listen" in (refused.value.hint or "")
    # Not even one that is past its lease, which may only wait for the database.
    cluster.place.execute("UPDATE node SET until = clock_timestamp()")
    with pytest.raises(AlreadyRunning):
        alone.open("one")
    cluster.place.execute("UPDATE node SET until = clock_timestamp() - interval '1 hour'")
    alone.open("one")
    assert list(alone.load_open()) == [a_run(1)]
    with pytest.raises(Fenced):
        member.commit(spawned(a_run(2)))


@pytest.mark.requirement("cluster:alone")
def test_a_member_is_refused_while_another_home_has_the_database_for_itself(
    cluster: SharedPlace, tmp_path: Path
) -> None:
    alone = cluster.alone("a")
    alone.open("one")
    alone.commit(spawned(a_run(1)))
    member = cluster.node("b")

    with pytest.raises(AlreadyRunning, match="is no member of a cluster") as refused:
        member.open("two")
    # Its home may come back as a member; or what it was is handed on.
    assert refused.value.hint is not None
    identity = refused.value.hint.partition("echo ")[2].partition(" ")[0]
    (tmp_path / "b" / "postgres.lock").write_text(identity)
    member.open("two")
    assert list(member.load_open()) == [a_run(1)]
    with pytest.raises(Fenced):
        alone.commit(spawned(a_run(2)))


@pytest.mark.requirement("cluster:alone")
def test_a_home_joins_and_leaves_a_cluster_with_its_runs(cluster: SharedPlace) -> None:
    alone = cluster.alone("a")
    alone.open("one")
    alone.commit(spawned(a_run(1)))
    alone.close()
    member, other = cluster.opened("a"), cluster.opened("b")
    assert member.claim(ALL) == {*ALL}
    assert list(member.load_partitions(ALL).runs) == [a_run(1)]
    for store in (member, other):
        store.close()

    again = cluster.alone("a")
    again.open("one")
    assert list(again.load_open()) == [a_run(1)]
    again.close()
    with pytest.raises(CorruptState, match="belongs to another home"):
        cluster.alone("b").open("two")


# -- connections -------------------------------------------------------------------------------


@pytest.mark.requirement("store:connections")
def test_however_many_read_at_once_a_member_has_six_connections(cluster: SharedPlace) -> None:
    asked = "SELECT pid FROM pg_stat_activity WHERE application_name = 'subagents'"
    before = len(cluster.place.asked(asked))
    store = cluster.opened("a")
    store.claim(ALL)
    barrier = threading.Barrier(24)

    def ask(number: int) -> int:
        barrier.wait(BOUND_S)
        if number:
            return len(store.runs(RunFilter(phases=(Phase.RUNNING,))))
        store.renew()
        return 0

    with ThreadPoolExecutor(24) as threads:
        assert set(threads.map(ask, range(24))) == {0}
    assert len(cluster.place.asked(asked)) - before <= READERS_MAX + 2


@pytest.mark.requirement("store:pooler")
def test_nodes_share_a_database_behind_a_pooler_of_transactions(
    pooled_place: PostgresPlace, tmp_path: Path
) -> None:
    with shared(pooled_place, tmp_path) as cluster:
        first, second = cluster.opened("a"), cluster.opened("b")
        assert first.claim(ALL) == {*ALL}
        for number in range(5):
            first.commit(spawned(a_run(number)))
            assert first.renew() == second.renew() == 60
        first.release([MINE])
        assert second.claim(ALL) == {MINE}
        assert len(second.load_partitions([MINE]).runs) == 5
        second.commit(spawned(a_run(7)))
        assert len(first.feed(after=0)) == 6
        cluster.lapse("b")
        assert first.claim([MINE]) == {MINE}
        with pytest.raises(Fenced):
            second.renew()
