"""What must hold at every commit, after every restart, and in the end.

The judge keeps its own view of every run, made only from committed batches (and, after a crash,
from the file), and folds every event again: it never believes what the engine says of itself.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from tests.simulation.bills import look_at_hold, look_at_spending
from tests.simulation.low_memory import RESULT_BYTES
from tests.simulation.schedule_talk import Times, is_outdated
from tests.simulation.session_talk import broken_links, shared_sessions
from tests.simulation.stop_talk import PlannedStops
from tests.simulation.worker_messages import WorkerMessages

from subagents.domain.lifecycle.reduce import may_call, reduce
from subagents.domain.lifecycle.transitions import TRANSITIONS
from subagents.domain.rules.admission import lane_key
from subagents.domain.rules.deadlines import timer_event
from subagents.domain.run.effects import (
    Announce,
    CleanUp,
    Effect,
    ResumeAttempt,
    StartAttempt,
    StartJudge,
    Verify,
)
from subagents.domain.run.events import (
    AnnouncementConsumed,
    Archived,
    DeliverySettled,
    Event,
    Redelivered,
    RequestHeld,
    SlotGranted,
    TimerCause,
    encode_event,
)
from subagents.domain.run.outcome import OK, Reason, Status, VerificationState
from subagents.domain.run.run import (
    HOLDS_SLOT,
    OVER,
    SETTLED,
    MessageKind,
    Phase,
    Run,
    StopCause,
)
from subagents.domain.run.spec import Cleanup, OnDependencyFailure, OnFailure
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.engine.engine import Engine
from subagents.engine.kernel.addresses import answering_inbox
from subagents.engine.kernel.worker_tokens import identify
from subagents.errors import Unauthorized
from subagents.ports import (
    TOKEN_VARIABLE,
    Batch,
    InboxRow,
    JournalEntry,
    OutboxEntry,
    RunFilter,
    Store,
)
from subagents.store.result_files import ResultFiles

ALL: Final = 1_000_000
ANNOUNCE_SUFFIX: Final = ":announce"
NEEDS: Final[Mapping[Phase, type[Effect] | tuple[type[Effect], ...]]] = {
    Phase.SPAWNING: StartAttempt,
    Phase.VERIFYING: (Verify, StartJudge),
    Phase.ANNOUNCING: Announce,
    Phase.CLEANUP_PENDING: CleanUp,
}
"""The effect without which a run would stay in its phase for ever."""
STOPPED: Final[Mapping[StopCause, Status]] = {
    StopCause.CANCEL: Status.CANCELLED,
    StopCause.PARENT: Status.CANCELLED,
    StopCause.STUCK: Status.CANCELLED,
    StopCause.DEADLINE: Status.TIMEOUT,
    StopCause.BUDGET: Status.PARTIAL,
    StopCause.INTERRUPT: Status.PARTIAL,
}


class Broken(NamedTuple):
    """An invariant that did not hold."""

    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


class Judge:
    """Remembers the first broken invariant; what it checks is in the methods' names.

    Args:
        say: Takes one line of trace for everything that happens.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._digest = hashlib.blake2b(digest_size=16)
        self.look_up: Callable[[RunId], Run | None] = self.view_of
        """The run as it is in the file."""
        self.was_handed_over: Callable[[AnnouncementConsumed, RunId], bool] = lambda *_: True
        """Whether whoever is said to have taken it has it."""
        self.broken: Broken | None = None
        self.times = Times(self.fail)
        self.stops = PlannedStops(self.fail)
        self.to_workers = WorkerMessages(self.fail)
        self.view: dict[RunId, Run] = {}
        """Every run as committed last."""
        self.outstanding: dict[str, OutboxEntry] = {}
        """Committed effects that are not known to be done."""
        self.now_s: Callable[[], float] = lambda: 0.0
        self.clock_set_ms: Callable[[], int] = lambda: 0
        """By how much the daemon knows that the wall clock was set."""
        self._stored_by: dict[RunId, int] = {}
        """The same, when each run was stored last: its deadlines are of that clock."""
        """The loop's time."""
        self.settled_s: dict[RunId, float] = {}
        """When the end of a run was committed: not before anybody could hear of it."""
        self.cancels_asked: set[RunId] = set()
        """Also those that the engine could not store."""
        self.events = 0
        self.era = 0
        """Grows whenever memory was lost: what was in no commit may happen again then."""
        self._keys: set[tuple[RunId, str]] = set()
        self._announced: set[str] = set()
        self._unasked: set[RunId] = set()
        """Runs whose end nobody is to be told of: their announcements were never unread."""
        self._consumed: set[RunId] = set()
        self._reopened: set[RunId] = set()
        """Somebody asked for their results once more."""
        self._promised: dict[RunId, str] = {}
        self._messages: dict[str, RunId] = {}
        """Every message that was committed, and of which run it is."""
        self.pruned: dict[RunId, Run] = {}
        """Runs that the store may have no more, as they were."""
        self.forgotten: set[RunId] = set()
        """Runs whose files were deleted, because they were about to be pruned."""

    def fail(self, invariant: str, detail: str) -> None:
        """The first one counts: what follows is mostly its consequence."""
        if self.broken is None:
            self.broken = Broken(invariant, detail)
            self.note(f"BROKEN {self.broken}")

    def note(self, line: str) -> None:
        """Part of the trace, and of the digest that two runs of one seed must share."""
        self._digest.update(line.encode())
        self._say(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def view_of(self, run_id: RunId) -> Run | None:
        return self.view.get(run_id)

    @property
    def is_broken(self) -> bool:
        return self.broken is not None

    # -- promises to the outside ---------------------------------------------------------------

    def promised(self, run: Run) -> None:
        """A caller holds a receipt, or was told of this run: it was committed, and stays."""
        known = self.view.get(run.id)
        if known is None or known.seq < run.seq:
            # Committed a moment ago, maybe, and not published yet.
            known = self.look_up(run.id)
        if known is None or known.seq < run.seq:
            seen = "nothing" if known is None else f"only seq {known.seq}"
            self.fail("nothing seen before its commit", f"{run.id} seq {run.seq}, stored: {seen}")
        self._promised[run.id] = run.resolved.label

    def was_reopened(self, run_id: RunId) -> bool:
        """Whether somebody asked for its result once more."""
        return run_id in self._reopened

    def consumed(self, message_id: str) -> None:
        """A reader was told that it took this message over."""
        run_id = RunId(message_id.removesuffix(ANNOUNCE_SUFFIX))
        run = self.view.get(run_id)
        is_kept = run is not None and run.announcement_consumed_ms is not None
        if not is_kept and run_id not in self._reopened:
            self.fail("nothing acknowledged is lost", f"{message_id} is not consumed")

    # -- what is deleted -----------------------------------------------------------------------

    def forgetting(self, run_id: RunId) -> None:
        """The transcript of a run is about to be deleted."""
        run = self.view.get(run_id)
        if run is None or run.phase not in SETTLED:
            self.fail("nothing is deleted that is needed", f"the transcript of {run_id}")
        elif run.spec.cleanup is not Cleanup.DELETE or run.phase is not Phase.CLEANUP_PENDING:
            if run.phase not in OVER or run.times.archived_at_ms is None:
                self.fail("nothing is deleted that is needed", f"the transcript of {run_id}")
            self.forgotten.add(run_id)

    def pruning(self, run_ids: Iterable[RunId], store: Store) -> None:
        """These runs are about to be deleted from the store."""
        wanted = set(run_ids)
        rows = store.inbox(None, unconsumed=True, limit=ALL) if wanted else ()
        unread = {row.message.run_id for row in rows if row.message.kind is not MessageKind.ALERT}
        for run_id in wanted:
            run = self.view.get(run_id)
            is_over = run is not None and run.phase in OVER
            if run is None or not is_over or run.times.archived_at_ms is None or run_id in unread:
                self.fail("nothing is deleted that is needed", f"{run_id} is pruned")
                continue
            self.pruned[run_id] = run

    # -- every commit --------------------------------------------------------------------------

    def on_commit(self, batch: Batch) -> None:
        """Fold the batch onto the own view, then look at what it left behind."""
        self.times.on_commit(batch)
        before = {entry.run_id: self.view.get(entry.run_id) for entry in batch.journal}
        for entry in batch.journal:
            self._fold(entry)
        for run in batch.runs.values():
            if self.view.get(run.id) != run:
                self.fail("fold(journal) is the stored run", f"{run.id} seq {run.seq}")
        self._count_messages(batch, before)
        self._count_effects(batch)
        for run_id in before:
            run = self.view[run_id]
            self._stored_by[run_id] = self.clock_set_ms()
            self._look_at_attempts(run)
            self._look_at_effects(run)
            self._look_at_cascade(run)
            self._look_at_judges(run)
            look_at_spending(self, run)
            if (broken := broken_links(self.view, run)) is not None:
                self.fail("a session has one run at work", broken)
        self._look_at_caps()
        self._look_at_dependants(before)
        self._note_settled(before)

    def _note_settled(self, changed: Iterable[RunId]) -> None:
        for run_id in changed:
            if self.view[run_id].is_settled:
                self.settled_s.setdefault(run_id, self.now_s())

    def _fold(self, entry: JournalEntry) -> None:
        run = self.view.get(entry.run_id)
        self.events += 1
        self._say(f"  {entry.run_id} {entry.seq} {entry.event!r}")
        self._digest.update(encode_event(entry.event))
        if entry.seq != (run.seq + 1 if run is not None else 1):
            self.fail("journals have no gaps", f"{entry.run_id} seq {entry.seq}")
            return
        if entry.key is not None:
            if (entry.run_id, entry.key) in self._keys:
                self.fail("a key is applied once", f"{entry.run_id} {entry.key}")
            self._keys.add((entry.run_id, entry.key))
        if isinstance(entry.event, AnnouncementConsumed):
            if entry.run_id in self._consumed:
                self.fail("consumed at most once", entry.run_id)
            self._consumed.add(entry.run_id)
            reader = entry.event.reader
            is_known = is_outdated(reader, run) or self.was_handed_over(entry.event, entry.run_id)
            if not is_known:
                self.fail(
                    "nothing is consumed that was not handed over", f"{entry.run_id} {reader}"
                )
        if isinstance(entry.event, Redelivered) and entry.run_id in self._consumed:
            self._consumed.discard(entry.run_id)
            self._reopened.add(entry.run_id)
        step = reduce(run, entry.event)
        if run is not None:
            self._look_at_step(run, entry, step.run)
        self.view[entry.run_id] = step.run
        self.to_workers.look_at(run, entry.event, step.run)
        if isinstance(entry.event, RequestHeld) and not step.stale:
            look_at_hold(self, step.run)

    def _look_at_step(self, run: Run, entry: JournalEntry, after: Run) -> None:
        self._look_at_event(run, entry.event)
        self.stops.look_at(run, entry, after, self.now_s())
        legal = TRANSITIONS.get((run.phase, type(entry.event)), frozenset())
        if after.phase is not run.phase and after.phase not in legal:
            self.fail(
                "only legal transitions",
                f"{run.id} {run.phase} → {after.phase} by {type(entry.event).__name__}",
            )

    def _look_at_event(self, run: Run, event: Event) -> None:
        match event:
            case SlotGranted() if run.budget.stop is not None:
                self.fail("nothing starts without budget", run.id)
            case Archived() if self._is_unread(run):
                self.fail("what nobody read stays in sight", run.id)
            case SlotGranted() if run.control.paused:
                self.fail("nothing starts while it is paused", run.id)
            case DeliverySettled(record=record) if run.lineage.requester_run is not None:
                if record.route_mode != "internal":
                    self.fail("nested results stay inside", f"{run.id}: {record.route_mode}")
            case _:
                pass

    def _is_unread(self, run: Run) -> bool:
        is_news = announcement_id(run.id) in self._announced and run.id not in self._unasked
        return is_news and run.id not in self._consumed | self._reopened

    def _count_messages(self, batch: Batch, before: Mapping[RunId, Run | None]) -> None:
        self._messages.update((message.id, message.run_id) for message in batch.messages)
        fresh = [m for m in batch.messages if m.kind is MessageKind.ANNOUNCEMENT]
        for message in fresh:
            if message.id in self._announced:
                self.fail("one announcement per run", message.id)
            self._announced.add(message.id)
            if message.consumed:
                self._unasked.add(message.run_id)
        for run_id, old in before.items():
            run = self.view[run_id]
            if run.phase in SETTLED and announcement_id(run_id) not in self._announced:
                self.fail("one announcement per run", f"{run_id} settled without one")
            settled = old.outcome if old is not None else None
            if settled is not None and run.outcome != settled:
                self.fail("an outcome is final", f"{run_id} {settled} → {run.outcome}")
            if (run.outcome is not None) != (run.phase in SETTLED):
                self.fail("every run is in one phase", f"{run_id} {run.phase} {run.outcome}")

    def _count_effects(self, batch: Batch) -> None:
        for entry in batch.outbox:
            self.outstanding[entry.key] = entry
        for run_id, seq, index in batch.performed:
            key = f"{run_id}/{seq}/{index}"
            if self.outstanding.pop(key, None) is None:
                self.fail("effects are done once", f"{key} was done before")
            if run_id in self.view:
                self._look_at_effects(self.view[run_id])

    def _look_at_attempts(self, run: Run) -> None:
        contract = run.spec.verification
        once = contract is not None and contract.on_failure is OnFailure.RETRY_ONCE
        again = once and not run.spec.retry_until_verified
        ends = [each.outcome and each.outcome.reason for each in run.attempts]
        # One that the model's provider ended is no failure: it takes none of the retries away.
        most = run.spec.attempts_max + int(again) + ends.count(Reason.PROVIDER_LIMIT)
        if len(run.attempts) > most:
            self.fail("attempts ≤ 1 + retries", f"{run.id}: {len(run.attempts)} > {most}")
        if run.retry.used > run.spec.retry_count:
            self.fail("attempts ≤ 1 + retries", f"{run.id}: {run.retry.used} retries")
        for before, after in pairwise(run.attempts):
            is_refused = ends[before.number - 1] is Reason.PROVIDER_LIMIT
            until_verified = run.spec.retry_until_verified and not run.spec.retry_afresh
            goes_on = is_refused or (until_verified and after.retry.verifies)
            can_resume = goes_on and run.resolved.abilities.resume
            if after.session.resumes != (before.session.native if can_resume else None):
                self.fail("a session goes on", f"{run.id}#{after.number}")

    def _look_at_effects(self, run: Run) -> None:
        mine = [e.effect for e in self.outstanding.values() if e.run_id == run.id]
        needed = NEEDS.get(run.phase)
        is_judged = run.phase is Phase.VERIFYING and any(c.judges for c in run.active_children)
        if (
            needed is not None
            and not is_judged
            and not any(isinstance(effect, needed) for effect in mine)
        ):
            self.fail("no effect is lost", f"{run.id} is {run.phase} and nothing is under way")
        if run.phase is Phase.ENDING and run.attempt.outcome is not None:
            waits = run.active_children or run.control.paused
            if not waits and not any(isinstance(effect, ResumeAttempt) for effect in mine):
                self.fail("no effect is lost", f"{run.id} is ending and waits for nothing")
        if run.phase is Phase.RUNNING and run.control.cancel is not None:
            stopped = run.attempt.evidence.stop is not None
            if not stopped:
                self.fail("cancel stops the attempt", run.id)

    def _look_at_cascade(self, run: Run) -> None:
        if run.control.cancel is None:
            return
        for child in run.active_children:
            found = self.view.get(child.run_id)
            if found is None or (found.control.cancel is None and found.phase not in SETTLED):
                self.fail("cancel cascades", f"{run.id} → {child.run_id}")

    def _look_at_judges(self, run: Run) -> None:
        """One judge for each attempt at most, and no proof without its word."""
        judges = [child for child in run.children if child.judges is not None]
        if len({child.judges for child in judges}) != len(judges):
            self.fail("one judge per attempt", run.id)
        contract = run.spec.verification
        if contract is None or contract.judge is None:
            return
        if run.verification.state is not VerificationState.PASSED:
            return
        last = next((child for child in judges if child.judges == len(run.attempts)), None)
        found = None if last is None else self.view.get(last.run_id)
        is_passed = found is not None and "pass" in (found.result or "")
        if found is None or not is_passed or found.outcome != OK:
            self.fail("nothing is verified without its judge", run.id)

    def _look_at_caps(self) -> None:
        self._look_at_lanes()
        children: Counter[SessionKey] = Counter()
        for run in self.view.values():
            if run.phase in SETTLED:
                continue
            # One that was spawned to wait for others was not counted, and is not held back later.
            is_counted = run.lineage.judges is None and not run.waiting.dependencies
            if is_counted and run.requester not in self.operators:
                children[run.requester] += 1
        for shared in shared_sessions(self.view):
            self.fail("a session has one run at work", shared)
        for session, count in children.items():
            if count > self.children_max:
                self.fail("caps are never exceeded", f"{session} has {count} active children")

    def _look_at_lanes(self) -> None:
        lanes: Counter[tuple[str, int]] = Counter()
        for run in self.view.values():
            if run.phase in HOLDS_SLOT:
                lanes[lane_key(run)] += 1
                if lanes[lane_key(run)] > run.resolved.lane_slots:
                    self.fail("caps are never exceeded", f"lane {lane_key(run)}")

    children_max = ALL
    operators: Collection[SessionKey] = ()
    """Sessions whose runs nothing caps."""

    def _look_at_dependants(self, changed: Iterable[RunId]) -> None:
        settled = {run_id for run_id in changed if self.view[run_id].phase in SETTLED}
        waiting = [run for run in self.view.values() if run.phase is Phase.WAITING]
        for run in waiting:
            for dependency in run.waiting.dependencies:
                known = self.view.get(dependency.run_id)
                if dependency.outcome is None and (
                    dependency.run_id in settled or (known is not None and known.is_settled)
                ):
                    self.fail(
                        "dependants are released in the same commit",
                        f"{run.id} still waits for {dependency.run_id}",
                    )

    # -- effects as they reach the world -------------------------------------------------------

    def starting(self, run_id: RunId, number: int) -> None:
        """The runtime was told to start an attempt."""
        run = self.view.get(run_id)
        if run is None or len(run.attempts) < number:
            self.fail("effects follow their commit", f"start of {run_id}#{number}")
            return
        if run.phase is Phase.SPAWNING and len(run.attempts) == number:
            self._check_dependencies(run)

    def handed_over(self, run_id: RunId, number: int, env: Mapping[str, str]) -> None:
        """A runtime was given what its worker will carry."""
        run = self.view.get(run_id)
        if run is None or not may_call(run, number):
            return
        try:
            known = identify(env.get(TOKEN_VARIABLE, ""), self.view, {})
        except Unauthorized as error:
            self.fail("every worker can prove who it is", f"{run_id}#{number}: {error.message}")
            return
        if (known.run_id, known.attempt) != (run_id, number):
            self.fail("a token is its attempt's own", f"{run_id}#{number} got that of {known}")

    def _check_dependencies(self, run: Run) -> None:
        for dependency in run.waiting.dependencies:
            found = self.view.get(dependency.run_id)
            if found is None or found.phase not in SETTLED or found.outcome is None:
                self.fail("dependency order", f"{run.id} before {dependency.run_id} settled")
                continue
            usable = found.outcome.status is Status.OK or (
                found.outcome.status is Status.PARTIAL and run.spec.accept_partial_dependencies
            )
            if not usable and run.spec.on_dependency_failure is OnDependencyFailure.CANCEL:
                self.fail("dependency order", f"{run.id} after {found.outcome.status}")
            if not usable and run.spec.on_dependency_failure is OnDependencyFailure.FALLBACK:
                worker = run.resolved.agent_id
                if worker != run.spec.fallback_agent_id or run.waiting.fell_back is None:
                    self.fail("dependency order", f"{run.id}: {worker} did not give way")

    def stopping(self, run_id: RunId, number: int, *, now_ms: int) -> None:
        """The runtime was told to stop an attempt: somebody must have asked, or it has ended."""
        run = self.view.get(run_id)
        if run is None or len(run.attempts) < number:
            self.fail("effects follow their commit", f"stop of {run_id}#{number}")
            return
        attempt = run.attempts[number - 1]
        if attempt.evidence.stop is not None or attempt.outcome is not None:
            return
        # While nothing can be stored, what is due ends all the same, by either clock.
        as_stored_ms = now_ms - self.clock_set_ms() + self._stored_by[run_id]
        due = timer_event(run, max(now_ms, as_stored_ms))
        is_late = due is not None and due.cause is TimerCause.DEADLINE
        if not is_late and not self._was_asked_to_cancel(run):
            self.fail("only what was asked to stop is stopped", f"{run_id}#{number}")

    def _was_asked_to_cancel(self, run: Run | None) -> bool:
        while run is not None and run.id not in self.cancels_asked:
            if self.times.may_cancel(run):
                return True
            above = run.lineage.requester_run
            run = self.view.get(above) if above is not None else None
        return run is not None

    def delivering(self, run: Run, courier: str) -> None:
        """A courier was given an announcement."""
        if run.lineage.requester_run is not None and courier == "direct":
            self.fail("nested results stay inside", f"{run.id} to {courier}")
        known = self.view.get(run.id)
        if known is None or known.phase not in SETTLED:
            self.fail("effects follow their commit", f"announcement of {run.id}")

    # -- after a restart -----------------------------------------------------------------------

    def reload(self, store: Store) -> None:
        """The process is gone: the file is the truth, and it must hold all that was committed."""
        self.era += 1
        stored = {run.id: run for run in store.runs(RunFilter(archived=True, limit=ALL))}
        known_runs = {**self.pruned, **stored}
        for run_id, known in self.view.items():
            found = known_runs.get(run_id)
            if found is None or found.seq < known.seq:
                self.fail("nothing acknowledged is lost", f"{run_id} after a restart")
            elif found.seq == known.seq and found != known:
                self.fail("fold(journal) is the stored run", f"{run_id} after a restart")
        for run_id, label in self._promised.items():
            if run_id not in known_runs or known_runs[run_id].resolved.label != label:
                self.fail("nothing acknowledged is lost", f"{run_id} ({label}) after a restart")
        self._keys.clear()
        self.to_workers.forget()
        for run in stored.values():
            self._fold_stored(run, store)
            self._look_at_erased(run, store)
            self._check_family(run, known_runs)
        rows = store.inbox(None, unconsumed=False, limit=ALL)
        self._look_at_inbox(rows, known_runs)
        kinds = [r.message.id for r in rows if r.message.kind is MessageKind.ANNOUNCEMENT]
        self._announced = set(kinds)
        self._unasked |= {r.message.run_id for r in rows if r.consumed_by == "not expected"}
        self._announced.update(map(announcement_id, self.pruned))
        ended = known_runs.values()
        self._consumed = {r.id for r in ended if r.announcement_consumed_ms is not None}
        left = {entry.key: entry for entry in store.load_outbox()}
        self._look_at_what_is_left(left, stored)
        self.view, self.outstanding = known_runs, left
        self.times.reload(known_runs.values(), store.load_schedules())
        self.stops.reload(known_runs.values(), self.now_s())
        for run in stored.values():
            self._look_at_effects(run)
            look_at_spending(self, run)
        self._look_at_caps()
        self._look_at_dependants(stored)
        self._note_settled(stored)

    def _look_at_what_is_left(
        self, left: Mapping[str, OutboxEntry], stored: Mapping[RunId, Run]
    ) -> None:
        """An effect whose end was committed is not done again, also when no event said so."""
        for key, entry in left.items():
            before, now = self.view.get(entry.run_id), stored.get(entry.run_id)
            is_as_known = before is not None and now is not None and before.seq == now.seq
            if is_as_known and key not in self.outstanding:
                self.fail("effects are done once", f"{key} is to be done again after a restart")

    def _fold_stored(self, run: Run, store: Store) -> None:
        folded: Run | None = None
        consumptions = 0
        for entry in store.journal(run.id, limit=ALL):
            before, folded = folded, reduce(folded, entry.event).run
            self.to_workers.look_at(before, entry.event, folded)
            consumptions += isinstance(entry.event, AnnouncementConsumed)
            if isinstance(entry.event, Redelivered) and consumptions:
                consumptions -= 1
                self._reopened.add(run.id)
            if entry.key is not None:
                self._keys.add((run.id, entry.key))
        if folded != run:
            self.fail("fold(journal) is the stored run", f"{run.id} as read from the file")
        if consumptions != (run.announcement_consumed_ms is not None):
            self.fail("consumed at most once", f"{run.id}: {consumptions} times in its journal")

    def _look_at_inbox(self, rows: Iterable[InboxRow], runs: Mapping[RunId, Run]) -> None:
        stored = {row.message.id: row for row in rows}
        for name, run_id in self._messages.items():
            if name not in stored and run_id not in self.pruned:
                self.fail("no message is lost", name)
        for row in stored.values():
            if row.consumed_at_ms is not None:
                continue
            run, kind = runs[row.message.run_id], row.message.kind
            if kind is MessageKind.ALERT and run.announcement_consumed_ms is not None:
                self.fail("who read of the end hears no older news", row.message.id)
            if kind is MessageKind.QUESTION:
                asked = answering_inbox(runs, run)
                if row.message.session_key != asked:
                    detail = f"{row.message.id}: {row.message.session_key}, not {asked}"
                    self.fail("a question lies with who can answer it", detail)

    def _look_at_erased(self, run: Run, store: Store) -> None:
        """What a worker was told is gone when its session was deleted."""
        if run.times.erased_at_ms is None:
            return
        task = f"do {run.resolved.label}".encode()
        written = [encode_event(entry.event) for entry in store.journal(run.id, limit=ALL)]
        if any(task in each for each in written) or task.decode() in run.spec.task:
            self.fail("a deleted session leaves no words", f"{run.id}: its task")

    def _check_family(self, run: Run, stored: Mapping[RunId, Run]) -> None:
        if run.lineage.requester_run is None:
            return
        parent = stored.get(run.lineage.requester_run)
        if parent is None or all(child.run_id != run.id for child in parent.children):
            self.fail("never half a spawn", f"{run.id} is unknown to its parent")

    # -- at rest -------------------------------------------------------------------------------

    def at_rest(self, store: Store, *engines: Engine) -> None:
        """Everything ended, everybody read: nothing may be left anywhere."""
        self.reload(store)
        for run in self.view.values():
            if run.phase not in OVER:
                self.fail("every run ends", f"{run.id} is {run.phase}")
            if run.control.paused:
                self.fail("every run ends", f"{run.id} is over and paused")
            if run.pending_requests:
                self.fail("no question stays open", run.id)
            for child in run.active_children:
                self.fail("every run ends", f"{run.id} still counts {child.run_id}")
        self._check_inbox(store)
        if left := store.load_outbox():
            self.fail("no effect is lost", f"left in the outbox: {left[0].key}")
        if leases := store.load_leases():
            self.fail("no slot leaks", f"a lease of {leases[0].run_id} is left")
        for engine in engines:
            self._check_memory(engine)

    def _check_inbox(self, store: Store) -> None:
        rows = store.inbox(None, unconsumed=False, limit=ALL)
        count = Counter(
            r.message.run_id for r in rows if r.message.kind is MessageKind.ANNOUNCEMENT
        )
        for run in self.view.values():
            if count[run.id] != 1 and run.id not in self.pruned:
                self.fail("one announcement per run", f"{run.id} has {count[run.id]}")
        for row in rows:
            if row.consumed_at_ms is None:
                self.fail(
                    "consumed at least once while readers live",
                    f"{row.message.id} lies in the inbox of {row.message.session_key}",
                )
            run = self.view[row.message.run_id]
            quiet = row.consumed_by == "not expected"
            is_announcement = row.message.kind is MessageKind.ANNOUNCEMENT
            if is_announcement and not quiet and run.announcement_consumed_ms is None:
                self.fail(
                    "consumed at most once", f"{row.message.id}: the row says so, not the run"
                )

    def _check_memory(self, engine: Engine) -> None:
        index = engine.ledger.lanes
        if held := index.held_by_lane():
            self.fail("no slot leaks", f"held at rest: {held}")
        for session in {run.requester for run in self.view.values()}:
            if index.active(session):
                self.fail("no slot leaks", f"{session} still has active children")
        if engine.supervisor.live_attempts:
            self.fail(
                "no slot leaks", f"{engine.supervisor.live_attempts} attempts are still watched"
            )
        if engine.ledger.live:
            self.fail("no slot leaks", f"in memory at rest: {sorted(engine.ledger.live)}")

    def check_result(self, run: Run, number: int, expected: str, kept: ResultFiles) -> None:
        """An attempt that ended well has the text that its worker gave, or says that it was cut."""
        attempt = run.attempts[number - 1]
        if attempt.outcome is None or attempt.outcome.status is not Status.OK:
            return
        found, size = attempt.evidence.result or "", len(expected.encode())
        if size <= RESULT_BYTES:
            if not found.startswith(expected):
                self.fail("no signal is lost", f"{run.id}#{number}: {expected!r}, stored {found!r}")
            return
        file = attempt.evidence.result_file
        if attempt.evidence.result_bytes < size:
            self.fail("a result is whole or says so", f"{run.id}#{number}: no word of {size} bytes")
        if file is None:
            if not self.may_cut:
                self.fail("a result is whole or says so", f"{run.id}#{number} was not kept")
        elif number == len(run.attempts) and run.id not in self.forgotten:
            try:
                text = kept.read(run.id, file.name, 0, ALL).decode()
            except OSError as error:
                text = repr(error)
            if text != expected:
                detail = f"{run.id}#{number}: {text[:100]!r}, not {expected[:100]!r}"
                self.fail("a result is whole or says so", detail)

    may_cut = False
    """The disk or the memory fails: a long result may not be kept whole."""

    def check_not_lost(self, run: Run, number: int) -> None:
        """An attempt that could be watched to its recorded exit is never called lost."""
        outcome = run.attempts[number - 1].outcome
        if outcome is not None and outcome.status is Status.LOST:
            self.fail("no signal is lost", f"{run.id}#{number} is called lost")

    def check_stop(self, run: Run, number: int) -> None:
        """A deadline or cancel that came first stays the outcome."""
        attempt = run.attempts[number - 1]
        stop, outcome = attempt.evidence.stop, attempt.outcome
        if stop is None or outcome is None:
            return
        wanted = STOPPED[stop]
        if attempt.times.started_at_ms is None:  # there was nothing to stop
            if stop is StopCause.BUDGET:
                wanted = Status.ERROR
            elif stop is StopCause.INTERRUPT and run.control.cancel is not None:
                wanted = Status.CANCELLED
        if outcome.status is not wanted:
            self.fail("a stop of ours stays the outcome", f"{run.id}#{number} {outcome.status}")
