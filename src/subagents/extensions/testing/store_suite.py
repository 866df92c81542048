"""What every ``Store`` must do (ports.Store), tried on a real one."""

from contextlib import closing
from typing import Any

from subagents.domain.lifecycle.erasure import DELETED
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.effects import Announce, CleanUp
from subagents.domain.run.events import Alerted, Archived, CleanedUp, Spawned, SteerRequested
from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.run import MessageKind, Phase, Request, Run
from subagents.domain.run.spec import Mode, PlanStep, RunSpec
from subagents.domain.run.values import (
    MessageId,
    RequestId,
    RunId,
    SessionKey,
    announcement_id,
    replace,
)
from subagents.errors import AlreadyRunning, Fenced, StoreUnavailable
from subagents.extensions.testing.conformance import (
    StorePlace,
    Suite,
    expect,
    expect_error,
)
from subagents.extensions.testing.stored_values import (
    ME,
    NOW_MS,
    _blocker,
    a_run,
    a_schedule,
    alert,
    archived,
    below,
    entry,
    message,
    opened,
    over,
    spawned,
    with_end,
)
from subagents.ports import (
    Batch,
    Below,
    JournalEntry,
    Lease,
    OutboxEntry,
    Place,
    RememberedKey,
    RunFilter,
)

OTHER = SessionKey("agent:other:main")

SUITE: Suite[StorePlace] = Suite()


# -- commits -------------------------------------------------------------------------------------


@SUITE.behaviour("store:round-trip")
def a_commit_is_read_back_as_it_was_written(place: StorePlace) -> None:
    run = a_run(1)
    effect = OutboxEntry(
        run_id=run.id,
        seq=1,
        index=0,
        effect=Announce(delivery_id=announcement_id(run.id), number=1),
    )
    lease = Lease(run_id=run.id, attempt=1, owner="one", epoch=1, until_ms=NOW_MS, cursor=7)
    batch = spawned(run)
    batch.outbox.append(effect)
    batch.messages.append(message(run))
    batch.leases[run.id] = lease
    kept = RememberedKey(ME, "key", run.id, NOW_MS, '{"task":"0f"}')
    before_digests = RememberedKey(OTHER, "key", run.id, NOW_MS, None)
    batch.idempotency += [kept, before_digests]
    with closing(opened(place)) as store:
        store.commit(batch)

        expect("run", found=store.run(run.id), wanted=run)
        expect("journal", found=list(store.journal(run.id)), wanted=batch.journal)
        expect("outbox", found=list(store.load_outbox()), wanted=[effect])
        expect("leases", found=list(store.load_leases()), wanted=[lease])
        found = [row.message for row in store.inbox(ME, unconsumed=True)]
        expect("inbox", found=found, wanted=[message(run)])
        expect(
            "idempotency",
            found=sorted(store.load_idempotency(NOW_MS - 1)),
            wanted=sorted([kept, before_digests]),
        )
        expect("keys that are over", found=list(store.load_idempotency(NOW_MS)), wanted=[])


@SUITE.behaviour("store:schedules")
def schedules_change_with_the_runs_of_their_batch(place: StorePlace) -> None:
    run, first, second = a_run(1), a_schedule("s-1", 1), a_schedule("s-2", 2)
    with closing(opened(place)) as store:
        store.commit(Batch(schedules={second.id: second, first.id: first}))
        expect("oldest first", found=list(store.load_schedules()), wanted=[first, second])
        batch = spawned(run)
        batch.schedules[first.id] = later = replace(first, decided_to_ms=NOW_MS)
        batch.schedules[second.id] = None
        bad = spawned(run)
        bad.schedules = dict(batch.schedules)
        bad.journal.append(entry(run, seq=1))  # the number is taken
        expect_error("a broken batch", StoreUnavailable, lambda: store.commit(bad))
        expect("as they were", found=list(store.load_schedules()), wanted=[first, second])
        store.commit(batch)
    with closing(opened(place, "two")) as store:
        expect("what is left", found=list(store.load_schedules()), wanted=[later])
        expect("with the run", found=store.run(run.id), wanted=run)


@SUITE.behaviour("store:durable")
def what_was_committed_is_there_after_closing_and_opening(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
    with closing(opened(place, "two")) as store:
        expect("the run", found=store.run(run.id), wanted=run)
        expect("open runs", found=list(store.load_open()), wanted=[run])


@SUITE.behaviour("store:update")
def an_update_changes_the_state_and_keeps_what_was_asked(place: StorePlace) -> None:
    run = a_run(1)
    later = over(replace(run, seq=2), result="done")
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        store.commit(Batch(runs={run.id: later}, journal=[entry(run, seq=2)]))

        expect("the run", found=store.run(run.id), wanted=later)
        expect("no open runs", found=list(store.load_open()), wanted=[])


@SUITE.behaviour("store:atomic")
def a_batch_that_fails_writes_nothing(place: StorePlace) -> None:
    first, second = a_run(1), a_run(2)
    with closing(opened(place)) as store:
        store.commit(spawned(first))
        bad = spawned(second)
        bad.messages.append(message(second))
        bad.outbox.append(
            OutboxEntry(run_id=second.id, seq=1, index=0, effect=CleanUp(delete=True))
        )
        bad.idempotency.append(RememberedKey(ME, "key", second.id, NOW_MS, None))
        bad.runs[first.id] = over(first)
        bad.journal.append(entry(first, seq=1))  # the number is taken
        expect_error("a broken batch", StoreUnavailable, lambda: store.commit(bad))

        expect("no second run", found=store.run(second.id), wanted=None)
        expect("first run as it was", found=store.run(first.id), wanted=first)
        expect("no message", found=list(store.inbox(None, unconsumed=False)), wanted=[])
        expect("no effect", found=list(store.load_outbox()), wanted=[])
        expect("no key", found=list(store.load_idempotency(0)), wanted=[])
        store.commit(spawned(second))
        expect("the store continues", found=store.run(second.id), wanted=second)


@SUITE.behaviour("store:one-announcement")
def a_run_has_one_announcement_for_ever(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        batch = spawned(run)
        batch.messages.append(message(run))
        store.commit(batch)
        again = Batch(messages=[message(run, text="again")])
        expect_error("a second announcement", StoreUnavailable, lambda: store.commit(again))
        store.commit(Batch(consumed=[(announcement_id(run.id), NOW_MS, "me")]))
        expect_error("one after reading", StoreUnavailable, lambda: store.commit(again))


@SUITE.behaviour("store:signal-once")
def a_signals_key_is_applied_once_per_run(place: StorePlace) -> None:
    one = a_run(1)
    two, alone = over(below(a_run(2), one)), over(a_run(3))
    with closing(opened(place)) as store:
        store.commit(spawned(one, two, alone))
        store.commit(Batch(journal=[entry(e, seq=2, key="exit") for e in (one, two, alone)]))
        again = Batch(journal=[entry(one, seq=3, key="exit")])
        expect_error("the same key again", StoreUnavailable, lambda: store.commit(again))

        expect("of loaded", found=store.load_keys(), wanted={one.id: {"exit"}, two.id: {"exit"}})
        expect("keys of one", found=store.load_keys([one.id]), wanted={one.id: {"exit"}})


@SUITE.behaviour("store:journal-order")
def a_journal_has_one_event_per_number_and_is_paged(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        store.commit(Batch(journal=[entry(run, seq=seq) for seq in range(2, 31)]))
        gap = Batch(journal=[entry(run, seq=5)])
        expect_error("a number again", StoreUnavailable, lambda: store.commit(gap))

        page = store.journal(run.id, after_seq=10, limit=5)
        expect("a page", found=[e.seq for e in page], wanted=[11, 12, 13, 14, 15])
        expect("all", found=len(store.journal(run.id)), wanted=30)
        expect("another run's", found=list(store.journal(RunId("r-none"))), wanted=[])


@SUITE.behaviour("store:feed:order")
def events_of_all_runs_have_one_order_and_are_paged_by_number(place: StorePlace) -> None:
    first, second = a_run(1), a_run(2)
    with closing(opened(place)) as store:
        begin = store.newest_number()
        expect("nothing yet", found=list(store.feed(after=0)), wanted=[])
        told = [store.commit(spawned(each)) for each in (first, second)]
        later = [entry(second, seq=2), entry(first, seq=2), entry(second, seq=3)]
        told.append(store.commit(Batch(journal=later)))
        feed = store.feed(after=begin)

        expect(
            "order",
            found=[each.entry for each in feed],
            wanted=[entry(first), entry(second), *later],
        )
        numbers = [each.number for each in feed]
        expect("numbers grow", found=numbers, wanted=sorted(set(numbers)))
        expect("told by their commits", found=told, wanted=[numbers[each] for each in (0, 1, 4)])
        expect("a commit of none", found=store.commit(Batch()), wanted=numbers[4])
        expect("a page", found=list(store.feed(after=numbers[0], limit=2)), wanted=list(feed[1:3]))
        expect("behind the last", found=list(store.feed(after=numbers[4])), wanted=[])
        newest = store.newest_number()
        expect("the newest", found=newest >= numbers[4], wanted=True)
        store.commit(Batch(journal=[entry(first, seq=3)]))
        found = [each.entry.seq for each in store.feed(after=newest)]
        expect("behind the newest", found=found, wanted=[3])
        expect("in the future", found=list(store.feed(after=newest + 2**40)), wanted=[])


@SUITE.behaviour("store:feed:failed-commit")
def a_commit_that_fails_is_nowhere_in_the_feed(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        expect_error(
            "an event of a run that is not there",
            StoreUnavailable,
            lambda: store.commit(Batch(journal=[entry(run, seq=2), entry(a_run(2))])),
        )
        store.commit(Batch(journal=[entry(run, seq=2)]))

        found = [each.entry for each in store.feed(after=0)]
        expect("events", found=found, wanted=[entry(run), entry(run, seq=2)])


@SUITE.behaviour("store:feed:never-backwards")
def a_number_is_never_given_twice_also_when_everything_was_pruned(place: StorePlace) -> None:
    runs = [over(a_run(n)) for n in (1, 2)]
    with closing(opened(place)) as store:
        last = store.commit(spawned(*runs))
        store.prune([runs[1].id])
        expect("newest after one", found=store.newest_number() >= last, wanted=True)
        store.prune([runs[0].id])
        expect("nothing left", found=list(store.feed(after=0)), wanted=[])
        expect("newest after all", found=store.newest_number() >= last, wanted=True)
    with closing(opened(place, "two")) as store:
        number = store.commit(spawned(a_run(3)))
        expect("the next", found=[e.number for e in store.feed(after=last)], wanted=[number])


@SUITE.behaviour("store:erased")
def an_erased_run_leaves_its_task_in_no_row_and_its_journal_still_folds(place: StorePlace) -> None:
    first = Spawned(
        at_ms=NOW_MS,
        run_id=RunId("r-erased"),
        spec=RunSpec(task="the secret word"),
        resolved=a_run(1).resolved,
        requester=ME,
        depth=1,
        session_key=SessionKey("agent:worker:subagent:1"),
    )
    steered = SteerRequested(at_ms=NOW_MS + 1, by="me", message="the secret message")
    run = replace(over(reduce(None, first).run), phase=Phase.CLEANUP_PENDING, seq=2)
    last = CleanedUp(at_ms=NOW_MS + 2, erased=True)
    other = a_run(2)
    with closing(opened(place)) as store:
        batch = spawned(other)
        batch.runs[run.id] = run
        batch.created.add(run.id)
        batch.journal += [entry(run, event=first), entry(run, seq=2, event=steered)]
        store.commit(batch)
        after = reduce(run, last).run
        changed = [entry(run, seq=3, event=last)]
        store.commit(Batch(runs={run.id: after}, journal=changed, erased={run.id}))

        expect("the run", found=store.run(run.id), wanted=after)
        expect("its task", found=after.spec.task, wanted=DELETED)
        kept = [each.event for each in store.journal(run.id)]
        spec = replace(first.spec, task=DELETED)
        wanted = [replace(first, spec=spec), replace(steered, message=DELETED), last]
        expect("its journal", found=kept, wanted=wanted)
        expect("another run", found=store.run(other.id), wanted=other)


@SUITE.behaviour("store:outbox")
def an_effect_stays_until_it_is_performed(place: StorePlace) -> None:
    run = a_run(1)
    effects = [
        OutboxEntry(run_id=run.id, seq=seq, index=i, effect=CleanUp(delete=False))
        for seq, i in ((2, 1), (10, 0), (2, 0))
    ]
    with closing(opened(place)) as store:
        batch = spawned(run)
        batch.outbox += effects
        store.commit(batch)
        keys = [e.key for e in store.load_outbox()]
        expect("in order", found=keys, wanted=[f"{run.id}/{n}" for n in ("2/0", "2/1", "10/0")])
        store.commit(Batch(performed=[(run.id, 2, 0)]))
        store.commit(Batch(performed=[(run.id, 2, 0)]))

        expect("two are left", found=len(store.load_outbox()), wanted=2)


@SUITE.behaviour("store:leases")
def a_lease_is_renewed_released_and_never_taken_back_by_an_older_epoch(place: StorePlace) -> None:
    run = a_run(1)
    old = Lease(run_id=run.id, attempt=1, owner="one", epoch=4, until_ms=NOW_MS)
    new = replace(old, owner="two", epoch=5, until_ms=NOW_MS + 9, cursor=3)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        for held in (old, new, old):
            store.commit(Batch(leases={run.id: held}))
        expect("the newer holder", found=list(store.load_leases()), wanted=[new])
        store.commit(Batch(leases={run.id: None}))

        expect("released", found=list(store.load_leases()), wanted=[])


# -- the inbox -----------------------------------------------------------------------------------


@SUITE.behaviour("store:inbox")
def unread_messages_come_oldest_first_and_consumption_is_recorded_once(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 4)]
    with closing(opened(place)) as store:
        batch = spawned(*runs)
        batch.messages += [message(run) for run in runs]
        store.commit(batch)
        store.commit(Batch(consumed=[(announcement_id(runs[0].id), NOW_MS + 1, "first")]))
        store.commit(Batch(consumed=[(announcement_id(runs[0].id), NOW_MS + 2, "second")]))

        row = store.message(announcement_id(runs[0].id))
        who = None if row is None else (row.consumed_at_ms, row.consumed_by, row.message.consumed)
        expect("the first reader stays", found=who, wanted=(NOW_MS + 1, "first", True))
        unread = [r.message.run_id for r in store.inbox(ME, unconsumed=True)]
        expect("unread", found=unread, wanted=[runs[1].id, runs[2].id])
        ids = [announcement_id(run.id) for run in runs[1:]]
        expect("unread ids", found=list(store.unread(ME, 10)), wanted=ids)
        expect("the first of them", found=list(store.unread(ME, 1)), wanted=ids[:1])
        expect("of another session", found=list(store.unread(OTHER, 10)), wanted=[])
        everything = [r.message.run_id for r in store.inbox(ME, unconsumed=False)]
        expect("all", found=everything, wanted=[run.id for run in runs])
        newest = [r.message.run_id for r in store.inbox(ME, unconsumed=False, limit=2)]
        expect("the newest, oldest first", found=newest, wanted=[runs[1].id, runs[2].id])
        expect("no such message", found=store.message("r-none:announce"), wanted=None)


@SUITE.behaviour("store:inbox")
def a_message_that_is_reopened_is_unread_again_where_it_is_said(
    place: StorePlace,
) -> None:
    run = a_run(1)
    name = announcement_id(run.id)
    with closing(opened(place)) as store:
        batch = spawned(run)
        batch.messages.append(message(run))
        store.commit(batch)
        store.commit(Batch(consumed=[(name, NOW_MS, "first")], reopened={name: OTHER}))

        found = [r.message.id for r in store.inbox(OTHER, unconsumed=True)]
        expect("unread again", found=found, wanted=[name])
        store.commit(Batch(consumed=[(name, NOW_MS + 1, "second")]))
        row = store.message(name)
        who = None if row is None else (row.consumed_at_ms, row.consumed_by)
        expect("its reader", found=who, wanted=(NOW_MS + 1, "second"))


@SUITE.behaviour("store:inbox")
def each_session_has_its_own_inbox_and_none_means_all(place: StorePlace) -> None:
    mine, theirs = a_run(1), a_run(2, requester=OTHER)
    with closing(opened(place)) as store:
        batch = spawned(mine, theirs)
        batch.messages += [message(mine), message(theirs)]
        store.commit(batch)

        found = [r.message.run_id for r in store.inbox(OTHER, unconsumed=True)]
        expect("one session", found=found, wanted=[theirs.id])
        expect("everybody", found=len(store.inbox(None, unconsumed=True)), wanted=2)
        expect("counted", found=store.unread_total(), wanted=2)
        store.commit(Batch(consumed=[(announcement_id(mine.id), NOW_MS, "me")]))
        expect("less what was read", found=store.unread_total(), wanted=1)


@SUITE.behaviour("store:inbox-blockers")
def blockers_are_found_among_all_messages_read_or_not(place: StorePlace) -> None:
    mine, theirs = a_run(1), replace(a_run(2), requester=OTHER)
    with closing(opened(place)) as store:
        batch = spawned(mine, theirs)
        batch.messages += [message(mine), _blocker(mine), message(theirs), _blocker(theirs)]
        store.commit(batch)
        store.commit(Batch(consumed=[(_blocker(mine).id, NOW_MS, "me")]))

        def found(session: SessionKey | None, limit: int) -> list[MessageId]:
            return [row.message.id for row in store.blockers(session, limit)]

        both = [_blocker(mine).id, _blocker(theirs).id]
        expect("everybody's, oldest first", found=found(None, 10), wanted=both)
        expect("one session's", found=found(ME, 10), wanted=both[:1])
        expect("the newest", found=found(None, 1), wanted=both[1:])


@SUITE.behaviour("store:inbox-moves")
def unread_messages_change_hands_and_read_ones_stay(place: StorePlace) -> None:
    read, unread = a_run(1), a_run(2)
    with closing(opened(place)) as store:
        batch = spawned(read, unread)
        batch.messages += [message(read), message(unread)]
        store.commit(batch)
        store.commit(Batch(consumed=[(announcement_id(read.id), NOW_MS, "me")]))
        store.commit(Batch(moved=[(ME, OTHER)], journal=[entry(read, seq=2)]))

        found = [r.message.run_id for r in store.inbox(OTHER, unconsumed=False)]
        expect("moved", found=found, wanted=[unread.id])
        stayed = [r.message.run_id for r in store.inbox(ME, unconsumed=False)]
        expect("stayed", found=stayed, wanted=[read.id])


@SUITE.behaviour("store:inbox-readdressed")
def one_unread_message_changes_hands_and_the_others_stay(place: StorePlace) -> None:
    read, unread, other = a_run(1), a_run(2), a_run(3)
    with closing(opened(place)) as store:
        batch = spawned(read, unread, other)
        batch.messages += [message(read), message(unread), message(other)]
        store.commit(batch)
        store.commit(Batch(consumed=[(announcement_id(read.id), NOW_MS, "me")]))
        names = [(announcement_id(each.id), OTHER) for each in (read, unread)]
        store.commit(Batch(readdressed=names, journal=[entry(read, seq=2)]))

        found = [r.message.run_id for r in store.inbox(OTHER, unconsumed=False)]
        expect("moved", found=found, wanted=[unread.id])
        stayed = [r.message.run_id for r in store.inbox(ME, unconsumed=False)]
        expect("stayed", found=stayed, wanted=[read.id, other.id])


@SUITE.behaviour("store:alerts-outdated")
def unread_alerts_are_no_news_once_the_end_was_read(place: StorePlace) -> None:
    run, other = a_run(1), a_run(2)
    with closing(opened(place)) as store:
        batch = spawned(run, other)
        batch.messages += [alert(run), alert(other), message(run)]
        store.commit(batch)
        store.commit(Batch(outdated=[(run.id, NOW_MS, "me")], journal=[entry(run, seq=2)]))

        left = [r.message.id for r in store.inbox(ME, unconsumed=True)]
        expect("left", found=left, wanted=[alert(other).id, message(run).id])


@SUITE.behaviour("store:inbox-consumed-at-once")
def a_message_can_be_written_as_consumed(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        batch = spawned(run)
        batch.messages.append(message(run, consumed=True))
        store.commit(batch)

        expect("nothing to read", found=list(store.inbox(ME, unconsumed=True)), wanted=[])
        expect("but on record", found=len(store.inbox(ME, unconsumed=False)), wanted=1)


# -- reading -------------------------------------------------------------------------------------


@SUITE.behaviour("store:open-runs")
def open_runs_come_oldest_first_with_the_ended_children_they_still_need(place: StorePlace) -> None:
    parent = a_run(2)
    child = over(below(a_run(3), parent))
    alone, early = over(a_run(4)), a_run(1)
    with closing(opened(place)) as store:
        store.commit(spawned(parent, child, alone, early))

        expect("open", found=list(store.load_open()), wanted=[early, parent, child])


@SUITE.behaviour("store:filters")
def every_filter_narrows_and_lists_are_newest_first(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 6)]
    runs[1] = over(replace(runs[1], requester=OTHER))
    runs[2] = over(archived(runs[2], NOW_MS))
    runs[3] = below(runs[3], runs[0])
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))

        def ids(where: RunFilter) -> list[int]:
            found = store.runs(where)
            counted = store.count(where, most=100)
            expect("count", found=counted >= len(found), wanted=True)
            return [int(run.id[2:]) for run in found]

        expect("all but archived", found=ids(RunFilter()), wanted=[5, 4, 2, 1])
        expect("archived too", found=ids(RunFilter(archived=True)), wanted=[5, 4, 3, 2, 1])
        expect("requester", found=ids(RunFilter(requester=OTHER)), wanted=[2])
        expect("children", found=ids(RunFilter(requester_run=runs[0].id)), wanted=[4])
        expect("phase", found=ids(RunFilter(phases=(Phase.COMPLETED,))), wanted=[2])
        both = RunFilter(phases=(Phase.COMPLETED, Phase.QUEUED))
        expect("phases", found=ids(both), wanted=[5, 4, 2, 1])
        expect("no phase at all", found=ids(RunFilter(phases=())), wanted=[])
        expect("label", found=ids(RunFilter(label="label4")), wanted=[4])
        expect("agent", found=ids(RunFilter(agent_id="nobody")), wanted=[])
        since = RunFilter(ended_after_ms=NOW_MS)
        expect("ended since then", found=ids(since), wanted=[2])
        expect("ended later", found=ids(RunFilter(ended_after_ms=NOW_MS + 1)), wanted=[])
        expect("a window", found=ids(RunFilter(limit=2, offset=1)), wanted=[4, 2])
        behind = RunFilter(limit=2, archived=True, behind=place_of(runs[3]))
        expect("the page behind a run", found=ids(behind), wanted=[3, 2])
        turned = RunFilter(limit=2, archived=True, oldest_first=True)
        expect("the oldest first", found=ids(turned), wanted=[1, 2])
        further = replace(turned, behind=place_of(runs[1]))
        expect("the oldest behind a run", found=ids(further), wanted=[3, 4])
        gone = Place(runs[3].times.created_at_ms, RunId("r-gone"))
        expect("none is left out", found=ids(RunFilter(behind=gone)), wanted=[4, 2, 1])
        hidden = RunFilter(listed=False, archived=True)
        expect("archived alone", found=ids(hidden), wanted=[3])
        expect("counted without it", found=store.count(RunFilter(limit=1), most=100), wanted=4)
        expect("no further than that", found=store.count(RunFilter(), most=3), wanted=3)


@SUITE.behaviour("store:filters")
def the_words_that_lists_show_find_runs_as_they_are_now(place: StorePlace) -> None:
    """A contract that was not met, a question, a pause: none of them is a column."""
    failed = Outcome(status=Status.ERROR, reason=Reason.VERIFICATION_FAILED)
    crashed = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE)
    runs = [a_run(n) for n in range(1, 8)]
    runs[1], runs[2] = with_end(runs[1], failed), with_end(runs[2], crashed)
    runs[3] = replace(with_end(runs[3], failed), phase=Phase.ANNOUNCE_DEFERRED)
    question = Request(
        id=RequestId(f"{runs[4].id}:q1"), attempt=1, question="?", asked_at_ms=1, deadline_ms=None
    )
    runs[4] = replace(runs[4], questions=replace(runs[4].questions, requests=(question,)))
    runs[5] = replace(runs[5], control=replace(runs[5].control, paused=True))
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))

        def ids(*states: str, **others: Any) -> list[int]:
            found = store.runs(RunFilter(states=states, **others))
            counted = store.count(RunFilter(states=states, **others), most=100)
            expect("count", found=counted, wanted=len(found))
            return [int(run.id[2:]) for run in found]

        expect("failed", found=ids("failed"), wanted=[4, 2])
        expect("by its index", found=ids("failed", outcomes=(Status.ERROR,)), wanted=[4, 2])
        expect("error", found=ids("error"), wanted=[4, 3, 2])
        expect("blocked", found=ids("blocked"), wanted=[5])
        expect("paused", found=ids("paused"), wanted=[6])
        expect("several", found=ids("paused", "failed", "blocked"), wanted=[6, 5, 4, 2])
        expect("a phase, too", found=ids("queued", "failed"), wanted=[7, 6, 5, 4, 2, 1])
        expect("none", found=ids("ok"), wanted=[])


@SUITE.behaviour("store:by-end")
def ended_runs_are_listed_by_when_they_ended(place: StorePlace) -> None:
    """Also those that are not over: what is stored of them may be older than their end."""
    ends = {1: 50, 2: 10, 3: 40, 4: 40, 5: 20}

    def ended(number: int) -> Run:
        run = over(a_run(number))
        assert run.conclusion is not None  # noqa: S101  it is over
        return replace(run, conclusion=replace(run.conclusion, ended_at_ms=NOW_MS + ends[number]))

    runs = {number: ended(number) for number in ends}
    runs[3] = archived(runs[3], NOW_MS + 99)
    runs[5] = replace(runs[5], phase=Phase.ANNOUNCE_DEFERRED)
    with closing(opened(place)) as store:
        store.commit(spawned(*runs.values(), a_run(6)))

        def found(where: RunFilter) -> list[int]:
            by_id = {run.id: number for number, run in runs.items()}
            return [by_id[run.id] for run in store.runs(where)]

        last = RunFilter(by_end=True)
        first, every = replace(last, oldest_first=True), replace(last, archived=True)
        behind = Place(NOW_MS + 40, runs[4].id)
        expect("the last end first", found=found(last), wanted=[1, 4, 5, 2])
        expect("the first end first", found=found(first), wanted=[2, 5, 4, 1])
        expect("archived ones, too", found=found(every), wanted=[1, 4, 3, 5, 2])
        expect("behind one", found=found(replace(last, behind=behind)), wanted=[5, 2])
        both = replace(every, behind=behind)
        expect("behind one of the same end", found=found(both), wanted=[3, 5, 2])
        expect("before it", found=found(replace(first, behind=behind)), wanted=[1])
        expect("counted", found=store.count(last, most=9), wanted=4)
        expect("narrowed", found=found(replace(last, label="label2")), wanted=[2])


@SUITE.behaviour("store:touched")
def what_was_journaled_since_leads_to_the_runs_it_is_about(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 5)]
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))
        marked = store.newest_number()
        late, early = over(runs[1]), over(runs[2])
        batch = Batch(runs={late.id: late, early.id: early})
        batch.journal = [entry(late, seq=2), entry(late, seq=3), entry(early, seq=2)]
        end = store.commit(batch)
        second = store.feed(after=marked)[1].number

        def touched(after: int, since_ms: int, limit: int = 100) -> tuple[int, list[RunId]]:
            number, found = store.touched(after=after, ended_since_ms=since_ms, limit=limit)
            return number, sorted(run.id for run in found)

        changed = [late.id, early.id]
        expect("both, once", found=touched(marked, 0), wanted=(end, changed))
        expect("a part", found=touched(marked, 0, limit=2), wanted=(second, changed[:1]))
        expect("the others", found=touched(second, 0), wanted=(end, changed[1:]))
        expect("none", found=touched(end, 0), wanted=(end, []))
        open_ones = [runs[0].id, runs[3].id]
        expect("not what ended before", found=touched(0, NOW_MS + 1), wanted=(end, open_ones))


@SUITE.behaviour("store:alerts")
def alerts_are_found_newest_first_with_the_news_that_their_runs_sent(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 4)]
    alert = Alert(kind=AlertKind.STUCK, text="silent", key="k")

    def alerted(run: Run, seq: int) -> JournalEntry:
        happened = Alerted(at_ms=NOW_MS, alert=alert)
        return JournalEntry(run_id=run.id, seq=seq, at_ms=NOW_MS, event=happened)

    with closing(opened(place)) as store:
        store.commit(spawned(*runs))
        batch = Batch(runs={run.id: run for run in runs[:2]})
        batch.journal = [alerted(runs[0], 2), alerted(runs[1], 2), alerted(runs[0], 3)]
        kinds = {"a1:stuck": MessageKind.ALERT, "n1": MessageKind.BLOCKER}
        batch.messages = [
            message(runs[0], id=MessageId(f"{runs[0].id}:{name}"), kind=kind)
            for name, kind in {**kinds, "announce": MessageKind.ANNOUNCEMENT}.items()
        ]
        last = store.commit(batch)
        third = store.feed(after=0)[-2].number

        def found(before: int, limit: int, run: Run | None = None) -> list[tuple[RunId, int]]:
            of = None if run is None else run.id
            entries = store.alerted(before=before, limit=limit, of=of)
            return [(each.entry.run_id, each.entry.seq) for each in entries]

        first, second = runs[0].id, runs[1].id
        newest = [(first, 3), (second, 2), (first, 2)]
        expect("all, newest first", found=found(last + 1, 9), wanted=newest)
        expect("a page", found=found(last + 1, 2), wanted=newest[:2])
        expect("behind it", found=found(third, 9), wanted=newest[2:])
        expect("of a run", found=found(last + 1, 9, runs[0]), wanted=[(first, 3), (first, 2)])
        expect("of none", found=found(last + 1, 9, runs[2]), wanted=[])
        news = [row.message.id for row in store.news_of([first, second])]
        expect("news", found=news, wanted=[f"{first}:a1:stuck", f"{first}:n1"])
        expect("news of none", found=list(store.news_of([])), wanted=[])


@SUITE.behaviour("store:below")
def what_is_below_runs_is_counted_on_all_levels(place: StorePlace) -> None:
    root, other, lone = a_run(1), a_run(2), a_run(3)
    child, gone = below(a_run(4), root), below(over(a_run(5)), root)
    deep = below(over(a_run(6)), child)
    theirs = below(a_run(7), other)
    with closing(opened(place)) as store:
        store.commit(spawned(root, other, lone, child, gone, deep, theirs))
        found = store.below([root.id, other.id, lone.id], most=100)
        some = store.below([root.id], most=1)

        ended = Below(root.id, Status.OK, 2)
        wanted = [
            ended,
            Below(root.id, None, 1, (child.id,)),
            Below(other.id, None, 1, (theirs.id,)),
        ]
        expect("below each", found=sorted(found, key=str), wanted=sorted(wanted, key=str))
        expect("no more than that", found=sum(each.number for each in some), wanted=1)
        expect("below none", found=list(store.below([], most=9)), wanted=[])
        these = store.these([deep.id, RunId("r-none"), root.id])
        expect("these", found=sorted(run.id for run in these), wanted=sorted([deep.id, root.id]))


@SUITE.behaviour("store:search")
def runs_are_found_by_what_people_remember_of_them(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 6)]
    runs[0] = _searched(runs[0], task='Fix the Größe of "all" tiles', tags=("nightly", "ui"))
    runs[1] = over(_searched(runs[1], cwd="/srv/shop", tags=("nightly",)))
    runs[2] = below(_searched(runs[2], cwd="/srv/shop/api"), runs[0])
    runs[3] = below(_searched(runs[3], cwd="/srv/shopping"), runs[2])
    runs[4] = replace(
        runs[4],
        times=replace(runs[4].times, created_at_ms=NOW_MS + 60_000),
        resolved=replace(runs[4].resolved, model="small"),
    )
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))

        def ids(where: RunFilter) -> list[int]:
            found = [int(run.id[2:]) for run in store.runs(where)]
            expect(f"counted: {where}", found=store.count(where, most=100), wanted=len(found))
            return found

        expect("in and below it", found=ids(RunFilter(directory="/srv/shop")), wanted=[3, 2])
        expect("a slash", found=ids(RunFilter(directory="/srv/shop/")), wanted=[3, 2])
        expect("all", found=len(ids(RunFilter(directory="/"))), wanted=5)
        expect("a tag", found=ids(RunFilter(tags=("nightly",))), wanted=[2, 1])
        expect("both tags", found=ids(RunFilter(tags=("ui", "nightly"))), wanted=[1])
        expect("no part of a tag", found=ids(RunFilter(tags=("night",))), wanted=[])
        expect("in the task", found=ids(RunFilter(text='größe OF "all"')), wanted=[1])
        expect("in the label", found=ids(RunFilter(text="LABEL4")), wanted=[4])
        expect("not in a key", found=ids(RunFilter(text="resolved")), wanted=[])
        expect("by its id", found=ids(RunFilter(text=runs[3].id.upper())), wanted=[4])
        expect("a model", found=ids(RunFilter(model="small")), wanted=[5])
        expect("no part of it", found=ids(RunFilter(model="mal")), wanted=[])
        expect("the tree", found=ids(RunFilter(below=runs[0].id)), wanted=[4, 3, 1])
        expect("the roots", found=ids(RunFilter(top=True)), wanted=[5, 2, 1])
        expect("a part", found=ids(RunFilter(below=runs[0].id, label="label3")), wanted=[3])
        expect("an outcome", found=ids(RunFilter(outcomes=(Status.OK,))), wanted=[2])
        expect("none such", found=ids(RunFilter(outcomes=(Status.LOST,))), wanted=[])
        expect("later", found=ids(RunFilter(since_ms=NOW_MS + 60_000)), wanted=[5])
        expect("earlier", found=ids(RunFilter(until_ms=NOW_MS + 60_000)), wanted=[4, 3, 2, 1])
        expect("of late", found=ids(RunFilter(active_since_ms=NOW_MS + 1)), wanted=[5, 4, 3, 1])
        expect("sessions", found=ids(RunFilter(keeps_session=True)), wanted=[])

        store.commit(Batch(runs={runs[2].id: over(runs[2])}))
        expect("an outcome of now", found=ids(RunFilter(outcomes=(Status.OK,))), wanted=[3, 2])


@SUITE.behaviour("store:plans")
def the_steps_of_a_plan_are_found_by_its_id(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 5)]
    for at, (number, plan) in enumerate(((0, 0), (1, 0), (2, 2))):
        step = PlanStep(plan=runs[plan].id, position=at, name="nightly")
        resolved = replace(runs[number].resolved, step=step)
        runs[number] = replace(runs[number], resolved=resolved)
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))

        def ids(where: RunFilter) -> list[int]:
            return [int(run.id[2:]) for run in store.runs(where)]

        expect("its steps", found=ids(RunFilter(steps_of=(runs[0].id,))), wanted=[2, 1])
        expect("the other's", found=ids(RunFilter(steps_of=(runs[2].id,))), wanted=[3])
        both = RunFilter(steps_of=(runs[0].id, runs[2].id))
        expect("of both", found=ids(both), wanted=[3, 2, 1])
        expect("no plan", found=ids(RunFilter(steps_of=(runs[3].id,))), wanted=[])
        expect("all plans", found=ids(RunFilter(plans=True)), wanted=[3, 1])
        expect("folded", found=ids(RunFilter(folded=True)), wanted=[4, 3, 1])
        steps = [Below(runs[0].id, None, 1, (runs[1].id,))]
        found = store.below([runs[0].id, runs[3].id], most=9, plans=[runs[0].id])
        expect("the steps behind its first", found=list(found), wanted=steps)
        expect("they are read back", found=store.run(runs[1].id), wanted=runs[1])


def place_of(run: Run) -> Place:
    return Place(run.times.created_at_ms, run.id)


def _searched(run: Run, *, task: str = "", tags: tuple[str, ...] = (), cwd: str = "/") -> Run:
    spec = replace(run.spec, task=task or run.spec.task, tags=tags)
    return replace(run, spec=spec, resolved=replace(run.resolved, cwd=cwd))


@SUITE.behaviour("store:find")
def ids_are_found_by_prefix_at_most_ten(place: StorePlace) -> None:
    runs = [a_run(n) for n in range(1, 25)]
    with closing(opened(place)) as store:
        store.commit(spawned(*runs))

        expect("one", found=list(store.find("r-0000000024")), wanted=[runs[23].id])
        expect("ten", found=len(store.find("r-00000000")), wanted=10)
        expect("none", found=list(store.find("r-9")), wanted=[])
        expect("no pattern", found=list(store.find("r-%")), wanted=[])


@SUITE.behaviour("store:committed-only")
def readers_see_only_committed_state(place: StorePlace) -> None:
    run = a_run(1)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        broken = Batch(runs={run.id: over(run)}, journal=[entry(run)])
        expect_error("a broken batch", StoreUnavailable, lambda: store.commit(broken))

        expect("as committed", found=store.run(run.id), wanted=run)
        expect("still open", found=list(store.load_open()), wanted=[run])


# -- who holds it --------------------------------------------------------------------------------


@SUITE.behaviour("store:one-holder")
def a_second_holder_is_refused_and_the_first_goes_on(place: StorePlace) -> None:
    with closing(opened(place)) as store:
        second = place.store()
        error = expect_error("a second holder", AlreadyRunning, lambda: second.open("two"))
        expect("with a way out", found=bool(error.hint), wanted=True)
        store.commit(spawned(a_run(1)))
    with closing(opened(place, "two")) as store:
        expect("after it closed", found=len(store.load_open()), wanted=1)


@SUITE.behaviour("store:epoch-fences")
def an_older_epoch_writes_nothing_any_more(place: StorePlace) -> None:
    with closing(place.store()) as old, closing(place.store()) as new:
        first = old.open("one")
        place.lose_lock()
        expect("a higher epoch", found=new.open("two") > first, wanted=True)
        run = a_run(1)
        expect_error("an old commit", Fenced, lambda: old.commit(spawned(run)))
        new.commit(spawned(run))

        expect("only the new one wrote", found=new.run(run.id), wanted=run)
        expect_error("an old probe", Fenced, old.probe)
        expect_error("an old prune", Fenced, lambda: old.prune([run.id]))
        expect("nothing was pruned", found=new.run(run.id), wanted=run)


@SUITE.behaviour("store:renew")
def a_right_that_ends_by_itself_is_renewed_until_the_epoch_is_over(place: StorePlace) -> None:
    with closing(place.store()) as old, closing(place.store()) as new:
        old.open("one")
        held_s = old.renew()
        expect("a length, where it ends", found=held_s is None or held_s > 0, wanted=True)
        place.lose_lock()
        new.open("two")
        if held_s is not None:
            expect_error("an old renewal", Fenced, old.renew)
        expect("the new one's", found=new.renew() is None, wanted=held_s is None)


@SUITE.behaviour("store:closed")
def a_closed_store_takes_nothing_and_closing_again_is_harmless(place: StorePlace) -> None:
    store = opened(place)
    store.close()
    store.close()

    expect_error("a commit", StoreUnavailable, lambda: store.commit(spawned(a_run(1))))


@SUITE.behaviour("store:probe")
def a_probe_leaves_nothing_behind(place: StorePlace) -> None:
    with closing(opened(place)) as store:
        for _ in range(3):
            store.probe()
        store.commit(spawned(a_run(1)))

        expect("room", found=store.has_room(), wanted=True)
        expect("healthy", found=list(store.check()), wanted=[])
        expect("the one run", found=store.count(RunFilter(), most=100), wanted=1)


# -- the end of runs -----------------------------------------------------------------------------


@SUITE.behaviour("store:archivable")
def runs_read_for_long_enough_are_archived_sessions_never(place: StorePlace) -> None:
    kept = a_run(3)
    runs = [
        over(a_run(1), ended_ms=NOW_MS - 10),
        over(a_run(2), ended_ms=NOW_MS + 10),
        over(
            replace(kept, resolved=replace(kept.resolved, mode=Mode.SESSION)), ended_ms=NOW_MS - 9
        ),
        over(a_run(4), ended_ms=NOW_MS - 20),
        archived(over(a_run(5), ended_ms=NOW_MS - 30), NOW_MS),
        a_run(6),
        replace(over(a_run(9), ended_ms=NOW_MS - 50), phase=Phase.CLEANUP_PENDING),
    ]
    unread, late = (over(a_run(each), ended_ms=NOW_MS - 40) for each in (7, 8))
    with closing(opened(place)) as store:
        batch = spawned(*runs, unread, late)
        batch.messages += [message(runs[0]), alert(runs[3]), message(unread), message(late)]
        store.commit(batch)
        read = [(runs[0], NOW_MS - 1), (late, NOW_MS)]
        store.commit(Batch(consumed=[(announcement_id(run.id), at, "me") for run, at in read]))

        expect(
            "oldest first", found=list(store.archivable(NOW_MS, 9)), wanted=[runs[3].id, runs[0].id]
        )
        expect("limited", found=list(store.archivable(NOW_MS, 1)), wanted=[runs[3].id])


@SUITE.behaviour("store:prunable")
def a_result_nobody_read_is_never_pruned(place: StorePlace) -> None:
    runs = [archived(over(a_run(n), ended_ms=NOW_MS - 100), NOW_MS - 50) for n in range(1, 4)]
    young = archived(over(a_run(8), ended_ms=NOW_MS + 5), NOW_MS + 6)
    shown = over(a_run(9), ended_ms=NOW_MS - 100)
    with closing(opened(place)) as store:
        batch = spawned(*runs, young, shown)
        batch.messages += [message(run) for run in runs]
        store.commit(batch)
        store.commit(
            Batch(
                consumed=[
                    (announcement_id(runs[0].id), NOW_MS - 10, "me"),
                    (announcement_id(runs[1].id), NOW_MS + 10, "me"),
                ]
            )
        )

        expect("read long ago", found=list(store.prunable(NOW_MS, 9)), wanted=[runs[0].id])


@SUITE.behaviour("store:prunable-alerts")
def news_that_nobody_read_keep_no_run(place: StorePlace) -> None:
    run = archived(over(a_run(1), ended_ms=NOW_MS - 100), NOW_MS - 50)
    with closing(opened(place)) as store:
        batch = spawned(run)
        batch.messages += [alert(run)]
        store.commit(batch)

        expect("unread", found=list(store.prunable(NOW_MS, 9)), wanted=[run.id])


@SUITE.behaviour("store:prune")
def pruning_deletes_a_run_and_all_that_belongs_to_it(place: StorePlace) -> None:
    gone, kept = over(a_run(1)), over(a_run(2))
    with closing(opened(place)) as store:
        batch = spawned(gone, kept)
        batch.messages += [message(gone), message(kept)]
        store.commit(batch)
        store.prune([gone.id])
        store.prune([gone.id])

        expect("the run", found=store.run(gone.id), wanted=None)
        expect("its journal", found=list(store.journal(gone.id)), wanted=[])
        expect("its messages", found=store.message(announcement_id(gone.id)), wanted=None)
        expect("the other", found=store.run(kept.id), wanted=kept)
        expect("its journal too", found=len(store.journal(kept.id)), wanted=1)
        expect("healthy", found=list(store.check()), wanted=[])


@SUITE.behaviour("store:archive-keeps-all")
def archiving_hides_a_run_and_deletes_nothing(place: StorePlace) -> None:
    run = over(a_run(1), result="precious")
    hidden = archived(replace(run, seq=2), NOW_MS)
    with closing(opened(place)) as store:
        store.commit(spawned(run))
        event = entry(run, seq=2, event=Archived(at_ms=NOW_MS))
        store.commit(Batch(runs={run.id: hidden}, journal=[event]))

        expect("hidden", found=list(store.runs(RunFilter())), wanted=[])
        expect("whole", found=store.run(run.id), wanted=hidden)
        expect("with its journal", found=len(store.journal(run.id)), wanted=2)
