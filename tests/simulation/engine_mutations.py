"""Engines that break a promise: each one must be caught."""

import asyncio
import itertools
from collections import deque
from typing import Any

import pytest
from tests.simulation.mutation_table import ignored, ignored_async, mutation, nothing, wrap

from subagents.domain.lifecycle import reduce as lifecycle
from subagents.domain.rules.admission import Children
from subagents.domain.rules.budgets.request_holds import Granted
from subagents.domain.run.effects import StopAttempt, Transition
from subagents.domain.run.events import (
    Alerted,
    AnnouncementConsumed,
    ChecksPassed,
    Event,
    TokenIssued,
    VerificationFinished,
)
from subagents.domain.run.outcome import (
    Delivered,
    DeliveryFailed,
    DeliveryPath,
    Verdict,
    Verification,
)
from subagents.domain.run.run import HOLDS_SLOT, OVER, Phase, ResultFile, Run
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.attempts import request_desk
from subagents.engine.attempts.judges import Judges
from subagents.engine.attempts.launch import ref_of
from subagents.engine.attempts.supervisor import Supervisor
from subagents.engine.engine import Engine
from subagents.engine.kernel import cascade
from subagents.engine.kernel.lanes import Lanes
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.kernel.live_runs import Failure, LiveRuns
from subagents.engine.kernel.waiters import Waiters
from subagents.engine.messages.delivery import Deliveries
from subagents.engine.messages.leases import MessageLeases
from subagents.engine.messages.mailbox import Mailbox
from subagents.engine.messages.questions import Questions, live_attempt
from subagents.engine.messages.reports import ProgressAnswer, Reports
from subagents.engine.outbox import Outbox
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.results import Results
from subagents.engine.runs.idempotency_keys import IdempotencyKeys
from subagents.engine.runs.spawn import Receipt, Spawner
from subagents.engine.runs.spawn_call import NOTHING_BESIDE
from subagents.engine.runs.sweep import Sweep
from subagents.engine.runs.timers import Timers
from subagents.errors import StoreUnavailable
from subagents.extensions.schedules.schedules import Schedules
from subagents.extensions.track_record import track_record_log as performance
from subagents.ports import TOKEN_VARIABLE, Batch, OutboxEntry, RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

FIRST_EPOCH = 2  # the empty template was opened once


@mutation
def starts_workers_after_a_crash_with_a_token_nobody_knows(patch: pytest.MonkeyPatch) -> None:
    async def env(outbox: Any, run: Run, number: int) -> dict[str, str]:
        kept = outbox._ledger.tokens.get(run.id, number)
        return {TOKEN_VARIABLE: kept or f"sa_{run.id}_{number}_{'x' * 43}"}

    patch.setattr(Outbox, "_env", env)


@mutation
def starts_workers_before_their_new_token_is_committed(patch: pytest.MonkeyPatch) -> None:
    async def env(outbox: Any, run: Run, number: int) -> dict[str, str]:
        ledger = outbox._ledger
        token = ledger.tokens.get(run.id, number)
        if token is None:
            hashed = ledger.new_token(run.id, number)
            ledger.apply_now(run.id, TokenIssued(at_ms=0, attempt=number, token_hash=hashed))
            token = ledger.tokens.get(run.id, number)
        return {TOKEN_VARIABLE: token}

    patch.setattr(Outbox, "_env", env)


@mutation
def tells_no_dependants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cascade, "_notify_dependants", nothing)


@mutation
def stops_nothing_below_a_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cascade, "_stop_children", nothing)


@mutation
def cancels_no_children(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cascade, "_cancel_children", nothing)


@mutation
def keeps_slots(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def place(self: Any, before: Run | None, after: Run) -> None:
            original(self, before, after)
            if before is not None and before.phase in HOLDS_SLOT:
                self._held[lifecycle_lane(after)].add(after.id)

        return place

    wrap(patch, Lanes, "_place_lane", make)


@mutation
def grants_more_slots_than_there_are(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def place(self: Any, before: Run | None, after: Run) -> None:
            original(self, before, after)
            self._slots = dict.fromkeys(self._slots, 1_000)

        return place

    wrap(patch, Lanes, "_place_lane", make)


@mutation
def keeps_leases(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveRuns, "_end_lease", ignored)


@mutation
def acts_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def record(self: Any, *rest: Any, **named: Any) -> None:
            known = len(self.batch.outbox)
            original(self, *rest, **named)
            (outbox,) = (
                listener.__self__
                for listener in self._on_work.__self__._on_commit
                if isinstance(listener.__self__, Outbox)
            )
            for entry in self.batch.outbox[known:]:
                outbox.add(entry)

        return record

    wrap(patch, LiveRuns, "_record", make)

    def on_commit(_self: Any, _batch: Batch) -> None:
        """Everything was begun long ago."""

    patch.setattr(Outbox, "on_commit", on_commit)


@mutation
def answers_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    async def committed(_self: Any) -> None:
        return

    patch.setattr(Ledger, "committed", committed)


@mutation
def forgets_effects_before_they_are_done(patch: pytest.MonkeyPatch) -> None:
    async def perform(self: Any, entry: OutboxEntry) -> None:
        self._ledger.mark_performed(entry)
        run = self._ledger.published.get(entry.run_id) or await self._ledger.load_run(entry.run_id)
        event = await self._answer(run, entry)
        if event is not None:
            self._ledger.apply_now(entry.run_id, event, key=entry.key)

    patch.setattr(Outbox, "_perform", perform)


def unread(run: Run) -> Run:
    delivery = run.delivery
    return replace(run, delivery=delivery and replace(delivery, consumed_at_ms=None))


@mutation
def consumes_twice(patch: pytest.MonkeyPatch) -> None:
    def make_consumed(original: Any) -> Any:
        def consumed(run: Run, event: Event) -> Transition:
            return original(unread(run), event)  # type: ignore[no-any-return]

        return consumed

    def make_consume(original: Any) -> Any:
        def consume(self: Any, run: Run, **named: Any) -> bool:
            return original(self, unread(run), **named)  # type: ignore[no-any-return]

        return consume

    table = lifecycle.REACTIONS
    patch.setitem(table, AnnouncementConsumed, make_consumed(table[AnnouncementConsumed]))
    wrap(patch, Ledger, "consume", make_consume)


@mutation
def loses_attempts_that_are_watched(patch: pytest.MonkeyPatch) -> None:
    def unseen(self: Any, run: Run, _watched: object) -> int:
        return int(self._clock.now_ms() - run.times.phase_since_ms + 1)

    patch.setattr(Supervisor, "_unseen_ms", unseen)


@mutation
def takes_read_for_stored(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def hold(self: Any, run: Run, watched: Any, signal: Any) -> None:
            original(self, run, watched, signal)
            watched.settled_cursor = watched.cursor

        return hold

    wrap(patch, Supervisor, "_hold", make)


@mutation
def leaves_unread_messages_with_the_dead(patch: pytest.MonkeyPatch) -> None:
    def living(_self: Any, run: Run) -> SessionKey:
        return run.session.first_key if run.children else run.requester

    patch.setattr(LiveRuns, "living_inbox", living)


@mutation
def forgets_idempotency_keys(patch: pytest.MonkeyPatch) -> None:
    async def load(self: Any) -> None:
        self._runs = {}

    patch.setattr(IdempotencyKeys, "load", load)


@mutation
def does_not_verify_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def verify(self: Any, run: Run, number: int) -> Event | None:
            fresh = self._ledger.epoch == FIRST_EPOCH or run.phase is not Phase.VERIFYING
            return await original(self, run, number) if fresh else None

        return verify

    wrap(patch, Outbox, "_verify", make)


@mutation
def asks_no_judge_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def start(self: Any, run: Run, number: int) -> Event | None:
            fresh = self._ledger.epoch == FIRST_EPOCH
            return original(self, run, number) if fresh else None

        return start

    wrap(patch, Judges, "start", make)


@mutation
def takes_checks_for_the_judges_word(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def verify(self: Any, run: Run, number: int) -> Event | None:
            found = await original(self, run, number)
            if not isinstance(found, ChecksPassed):
                return found  # type: ignore[no-any-return]
            passed = Verification(verdict=Verdict.PASSED, checks=found.checks)
            return VerificationFinished(
                at_ms=found.at_ms, attempt=found.attempt, verification=passed
            )

        return verify

    wrap(patch, Outbox, "_verify", make)


@mutation
def leases_to_everybody(patch: pytest.MonkeyPatch) -> None:
    def anybody(self: Any, message_id: str, _reader: str) -> bool:
        return not self.is_closed(message_id)

    patch.setattr(MessageLeases, "is_free", anybody)


@mutation
def never_takes_an_offer_back(patch: pytest.MonkeyPatch) -> None:
    def for_ever(self: Any, message_id: str, reader: str) -> bool:
        held = self._held.get(message_id)
        return held is None or held[0] == reader

    patch.setattr(MessageLeases, "is_free", for_ever)
    patch.setattr(MessageLeases, "forget", lambda _self: 0)


@mutation
def offers_what_was_consumed(patch: pytest.MonkeyPatch) -> None:
    def close(self: Any, message_id: str) -> None:
        self._held.pop(message_id, None)

    patch.setattr(MessageLeases, "close", close)
    patch.setattr(Mailbox, "_is_free", lambda self, name, reader: self.leases.is_free(name, reader))
    patch.setattr(Mailbox, "_is_consumed", lambda _self, _run: False)


@mutation
def pushes_what_a_reader_holds(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def acquire(self: Any, message_id: str, reader: str, **named: Any) -> bool:
            held: bool = original(self, message_id, reader, **named)
            return held or reader.startswith("courier:")

        return acquire

    wrap(patch, MessageLeases, "acquire", make)
    patch.setattr(Mailbox, "is_awaited", lambda *_: False)


@mutation
def offers_what_a_courier_carries(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def acquire(self: Any, message_id: str, reader: str, **named: Any) -> bool:
            if reader.startswith("courier:"):
                return bool(self.is_free(message_id, reader))
            return bool(original(self, message_id, reader, **named))

        return acquire

    wrap(patch, MessageLeases, "acquire", make)


@mutation
def does_not_consume_what_a_courier_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deliveries, "_consumed", nothing)


@mutation
def records_attempts_before_their_contract_is_checked(patch: pytest.MonkeyPatch) -> None:
    def ended(run: Run) -> int:
        return sum(attempt.outcome is not None for attempt in run.attempts)

    patch.setattr(performance, "ended_attempts", ended)


@mutation
def hears_all_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    async def positions(*_: object, **__: object) -> dict[str, int]:
        return {}

    patch.setattr(Recorder, "positions", positions)


@mutation
def counts_as_heard_what_it_never_kept(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def hear(self: Any, run: Run, heard: OutputBatch) -> None:
            await original(self, run, replace(heard, items=heard.items[:2]))

        return hear

    wrap(patch, Recorder, "record", make)


@mutation
def lets_go_of_output_before_anything_is_durable(patch: pytest.MonkeyPatch) -> None:
    async def discard(self: Any, run: Run, watched: Any, *, ended: bool) -> None:
        positions = dict(watched.positions)
        runtime = self._runtimes[run.resolved.runtime]
        await runtime.discard(ref_of(run), cursor=watched.cursor, positions=positions, ended=ended)

    patch.setattr(Supervisor, "_discard", discard)


@mutation
def raises_alerts_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def apply(self: Any, run_id: RunId, event: Event, **options: Any) -> Any:
            if isinstance(event, Alerted):
                options.pop("key", None)
            return original(self, run_id, event, **options)

        return apply

    wrap(patch, LiveRuns, "apply", make)


def lifecycle_lane(run: Run) -> tuple[str, int]:
    return (run.resolved.lane, run.lineage.depth)


# -- the ledger and its commits ------------------------------------------------------------------


@mutation
def acknowledges_with_the_commit_before(patch: pytest.MonkeyPatch) -> None:
    async def committed(self: Any) -> None:
        if self.failure is not None:
            raise self.failure
        if self._in_flight is not None:
            await self._in_flight.join()
            return
        if self._committed is None and self._runs.has_work:
            self._committed = Waiters()
        if self._committed is not None:
            await self._committed.join()

    patch.setattr(Ledger, "committed", committed)


@mutation
def publishes_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def take(self: Any) -> Any:
            batch = original(self)
            self.published.update(batch.runs)
            return batch

        return take

    wrap(patch, LiveRuns, "take", make)


@mutation
def goes_on_after_a_failed_commit(patch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, error: Failure) -> None:
        if self._in_flight is not None:
            self._in_flight.wake(error)
        self._in_flight = None
        self._kept_on = True

    async def run(self: Any) -> None:
        while True:
            self._kept_on = False
            await original(self)
            if not self._kept_on:
                return
            await asyncio.sleep(0)  # or a store that refuses everything would never be let go of

    original = Ledger.run
    patch.setattr(Ledger, "fail", fail)
    patch.setattr(Ledger, "run", run)


@mutation
def forgets_keys_of_events_with_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteStore, "load_keys", lambda *_: {})


@mutation
def leaves_freed_slots_empty(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def place(self: Any, before: Run | None, after: Run) -> None:
            touched = dict(self.touched)
            original(self, before, after)
            if before is not None and before.phase in HOLDS_SLOT:
                self.touched = touched

        return place

    wrap(patch, Lanes, "_place_lane", make)


@mutation
def starts_what_is_paused(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def place(self: Any, before: Run | None, after: Run) -> None:
            original(self, before, replace(after, control=replace(after.control, paused=False)))

        return place

    wrap(patch, Lanes, "_place_lane", make)


@mutation
def counts_no_children(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lanes, "children", lambda *_: Children(0, 0))


# -- starting, recovering ------------------------------------------------------------------------


@mutation
def performs_no_effects_of_before_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteStore, "load_outbox", lambda _: [])


@mutation
def adopts_no_workers(patch: pytest.MonkeyPatch) -> None:
    def adopt(self: Any) -> None:
        self._is_stopped = False
        self._tasks.keep(self._keep_leases, "leases", self._clock)

    patch.setattr(Supervisor, "adopt", adopt)


@mutation
def wakes_no_run_at_its_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timers, "arm", ignored)
    patch.setattr(Timers, "redrive", lambda _: 0)


@mutation
def works_on_while_memory_is_thrown_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outbox, "stop", ignored_async)


@mutation
def watches_on_while_memory_is_thrown_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Supervisor, "stop", ignored_async)


@mutation
def gives_up_starting_over(patch: pytest.MonkeyPatch) -> None:
    async def recover(self: Any) -> None:
        await self.outbox.stop()
        await self.supervisor.stop()
        await self._tasks.stop()
        await self._clock.sleep(1.0)
        await self._off_loop(self._store.probe)
        await self._load_and_resume()

    patch.setattr(Engine, "_recover", recover)


# -- effects -------------------------------------------------------------------------------------


@mutation
def tries_no_effect_again(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def perform(self: Any, entry: OutboxEntry) -> None:
            try:
                await original(self, entry)
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001 - the mistake
                self._ledger.mark_performed(entry)

        return perform

    wrap(patch, Outbox, "_perform", make)


@mutation
def performs_the_effects_of_a_run_at_once(patch: pytest.MonkeyPatch) -> None:
    def add(self: Any, entry: OutboxEntry) -> None:
        name = RunId(f"{entry.run_id}/{entry.seq}/{entry.index}")
        self._queues[name] = deque((entry,))
        self._ready.append(name)
        self._call_spare()

    patch.setattr(Outbox, "add", add)


@mutation
def stops_no_workers(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def answer(self: Any, run: Run, entry: OutboxEntry) -> Event | None:
            if isinstance(entry.effect, StopAttempt):
                return None
            return await original(self, run, entry)  # type: ignore[no-any-return]

        return answer

    wrap(patch, Outbox, "_answer", make)


# -- watching ------------------------------------------------------------------------------------


@mutation
def drops_signals_that_it_holds(patch: pytest.MonkeyPatch) -> None:
    count = itertools.count(1)

    def make(original: Any) -> Any:
        def flush(self: Any, run: Run, watched: Any) -> None:
            if next(count) % 3 == 0:
                watched.held.clear()
            original(self, run, watched)

        return flush

    wrap(patch, Supervisor, "_flush", make)


@mutation
def ends_attempts_before_their_words_are_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Recorder, "written", ignored_async)


@mutation
def gives_up_watching_after_a_failed_read(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def positions(self: Any, run: Run, *, is_new: bool) -> Any:
            try:
                return await original(self, run, is_new=is_new)
            except StoreUnavailable:
                await asyncio.Event().wait()

        return positions

    wrap(patch, Recorder, "positions", make)


@mutation
def names_results_before_they_are_files(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def keep(self: Any, run: Run, seen: Any, pieces: Any, size: int) -> Any:
            try:
                return original(self, run, seen, pieces, size)
            except OSError:
                return replace(seen, file=ResultFile(name="lost", size=size))

        return keep

    wrap(patch, Results, "_keep", make)


@mutation
def takes_transcripts_for_synced(patch: pytest.MonkeyPatch) -> None:
    async def sync(*_: object) -> bool:
        return True

    patch.setattr(Recorder, "sync", sync)


# -- records -------------------------------------------------------------------------------------


@mutation
def acknowledges_progress_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    async def progress(self: Any, run_id: RunId, _progress: object) -> ProgressAnswer:
        live_attempt(self._ledger, run_id)
        return ProgressAnswer(stored=True)

    patch.setattr(Reports, "progress", progress)


# -- messages ------------------------------------------------------------------------------------


@mutation
def acknowledges_while_it_offers(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def offer(self: Any, *given: Any, reader: str, **more: Any) -> Any:
            rows = await original(self, *given, reader=reader, **more)
            await self.acknowledge([row.message.id for row in rows], reader=reader)
            return rows

        return offer

    wrap(patch, Mailbox, "offer_inbox", make)


@mutation
def acknowledges_what_a_failed_commit_had(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def acknowledge(self: Any, names: Any, *, reader: str) -> int:
            try:
                return await original(self, names, reader=reader)  # type: ignore[no-any-return]
            except StoreUnavailable:
                return 0

        return acknowledge

    wrap(patch, Mailbox, "acknowledge", make)


@mutation
def takes_a_failed_delivery_for_one(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def attempt(self: Any, courier: Any, *given: Any) -> Any:
            outcome = await original(self, courier, *given)
            if isinstance(outcome, DeliveryFailed):
                path = {"direct": DeliveryPath.DIRECT}.get(courier.name, DeliveryPath.STEERED)
                return Delivered(path=path)
            return outcome

        return attempt

    wrap(patch, Deliveries, "_try", make)


# -- spawning ------------------------------------------------------------------------------------


@mutation
def stores_the_runs_of_a_batch_one_by_one(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def spawn_batch(self: Any, asked: Any, context: Any, **given: Any) -> Any:
            if any(each.spec.depends_on or each.spec.chain_after for each in asked):
                return await original(self, asked, context, **given)
            found = [await original(self, [each], context, **given) for each in asked]
            return tuple(receipt for receipts in found for receipt in receipts)

        return spawn_batch

    wrap(patch, Spawner, "spawn_batch", make)


@mutation
def answers_a_repeated_key_before_its_commit(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def repeated(self: Any, asked: Any, known: Any, call: Any) -> Any:
            found = [self._ledger.live.get(known.get(each.spec.idempotency_key)) for each in asked]
            if None in found:
                return await original(self, asked, known, call)
            return tuple(Receipt(run=run, repeated=True) for run in found)

        return repeated

    wrap(patch, Spawner, "_repeated", make)


@mutation
def grants_requests_without_room(patch: pytest.MonkeyPatch) -> None:
    def granted(_caps: object, need: Any) -> Granted:
        return Granted(tokens=need.input_tokens, cost_usd=0, output_tokens=need.output_tokens)

    patch.setattr(request_desk, "decide", granted)


@mutation
def decides_times_after_their_runs_are_stored(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def spawn_batch(self: Any, *given: Any, **named: Any) -> Any:
            beside = named.pop("beside", NOTHING_BESIDE)
            receipts = await original(self, *given, **named)
            if receipts and named.get("scheduled") is not None:
                beside.note([each.run for each in receipts])
            return receipts

        return spawn_batch

    wrap(patch, Spawner, "spawn_batch", make)


@mutation
def forgets_what_was_decided(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def join(self: Any, found: Any) -> None:
            original(self, [replace(each, decided_to_ms=each.created_at_ms) for each in found])

        return join

    wrap(patch, Schedules, "_join", make)


# -- sweeping and reading ------------------------------------------------------------------------


@mutation
def prunes_before_anything_is_archived_or_read(patch: pytest.MonkeyPatch) -> None:
    def prunable(self: Any, _before_ms: int, limit: int) -> Any:
        return [run.id for run in self.runs(RunFilter(phases=tuple(OVER), limit=limit))]

    patch.setattr(SqliteStore, "prunable", prunable)


@mutation
def deletes_files_of_runs_that_are_open(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def once(self: Any) -> Any:
            for run in tuple(self._ledger.live.values()):
                await self._recorder.forget(run.id)
            return await original(self)

        return once

    wrap(patch, Sweep, "once", make)


@mutation
def wakes_nobody_who_waits(patch: pytest.MonkeyPatch) -> None:
    def on_commit(self: Any, batch: Batch) -> None:
        for message_id, _, _ in batch.consumed:
            self.leases.close(message_id)
        for message_id in batch.reopened:
            self.leases.reopen(message_id)

    patch.setattr(Mailbox, "on_commit", on_commit)


@mutation
def takes_any_answer_to_a_question(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def request(self: Any, request_id: str) -> Any:
            return replace(await original(self, request_id), answer=None)

        return request

    wrap(patch, Questions, "_request", make)
