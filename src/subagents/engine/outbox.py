"""Performs committed effects, at least once, each run's in order; results come back as events.

Effects are short. What takes long is watched instead, and its end arrives as a signal. After a
crash the outbox is performed again: every performer is safe to repeat.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, assert_never

from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.effects import (
    Announce,
    CleanUp,
    FreezeAttempt,
    InterruptAttempt,
    LookAfter,
    PermitAttempt,
    ResumeAttempt,
    StartAttempt,
    StartJudge,
    SteerAttempt,
    StopAttempt,
    ThawAttempt,
    Verify,
)
from subagents.domain.run.events import (
    Alerted,
    AttemptStarted,
    AttemptStartFailed,
    BaselineTaken,
    ChecksPassed,
    CleanedUp,
    DeliverySettled,
    Event,
    FilesLeft,
    SteerSettled,
    TokenIssued,
    VerificationFinished,
)
from subagents.domain.run.outcome import Check, CheckType, Verdict, Verification
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Contract
from subagents.domain.run.values import RunId, replace
from subagents.domain.text.event_words import EFFECT_WORDS
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.attempts.judges import Judges
from subagents.engine.attempts.launch import launch_of, ref_of, set_in
from subagents.engine.attempts.placement import Placement
from subagents.engine.attempts.supervisor import Supervisor
from subagents.engine.attempts.workspaces import Workspaces
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.quarantine import FAILURES, TRY_AGAIN_S, Quarantine, Quarantined
from subagents.engine.kernel.tasks import Tasks, TimeLimit
from subagents.engine.messages.delivery import Deliveries
from subagents.engine.records.digests import digest_of
from subagents.engine.records.recorder import Recorder
from subagents.errors import (
    Fenced,
    RuntimeUnavailable,
    StoreUnavailable,
    SubagentsError,
    UsageError,
    lack_of,
    plain_error,
)
from subagents.ports import (
    TOKEN_VARIABLE,
    AttemptRef,
    Batch,
    Freezable,
    Launch,
    OutboxEntry,
    Permitting,
    Runtime,
    WorkerSecrets,
)
from subagents.text import fence

log = logging.getLogger(__name__)

START_S_MAX: Final = 60.0
"""A runtime that hangs while it starts must not hold a slot for ever."""

INTERRUPT_S_MAX: Final = 20.0
"""A worker that does not end its turn by then is stopped as any other."""

GO_S: Final = 3.0
"""How long a worker that ended its turn may take to exit."""
LOOK_S: Final = 0.05

RETRY_FIRST_S: Final = 0.5
RETRY_S_MAX: Final = 30.0
"""An effect that fails for reasons of ours is tried again for ever, ever more seldom."""

RUNS_AT_ONCE: Final = 50
"""Runs served in one go (a few milliseconds); then callers and the next commit get their turn."""


class Outbox:
    """Performs each run's effects one after the other, and those of different runs at once."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        placement: Placement,
        deliveries: Deliveries,
        worker_env: Callable[[Run], Mapping[str, str | None]],
        contract_env: Callable[[Run], Mapping[str, str]],
        worker_secrets: WorkerSecrets | None,
        quarantine: Quarantine,
        supervisor: Supervisor,
        workspaces: Workspaces,
        judges: Judges,
        recorder: Recorder,
    ) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._placement = placement
        self._workplace_of = placement.workplace_of
        self._deliveries = deliveries
        self._worker_env = worker_env
        self._contract_env = contract_env
        self._worker_secrets = worker_secrets
        self._queues: dict[RunId, deque[OutboxEntry]] = {}
        self._at_work: dict[RunId, asyncio.Task[None] | None] = {}
        self._ready: deque[RunId] = deque()
        self._has_spare = False
        self._checking: dict[RunId, asyncio.Future[Verification]] = {}
        self._tasks = Tasks()
        self._starting = TimeLimit(START_S_MAX)
        self._quarantine = quarantine
        self._supervisor = supervisor
        self._workspaces = workspaces
        self._judges = judges
        self._recorder = recorder

    def on_commit(self, batch: Batch) -> None:
        for run_id, checking in self._checking.items():
            run = batch.runs.get(run_id)
            # Cancelled while it is verified it is over: its checks must not work on.
            if run is not None and run.phase is not Phase.VERIFYING:
                checking.cancel()
        for entry in batch.outbox:
            self.add(entry)

    def add(self, entry: OutboxEntry) -> None:
        """Queue one committed effect behind the earlier ones of its run."""
        queue = self._queues.get(entry.run_id)
        if queue is not None:
            queue.append(entry)
            return
        self._queues[entry.run_id] = deque((entry,))
        self._ready.append(entry.run_id)
        if not self._has_spare:
            self._call_spare()

    def _call_spare(self) -> None:
        self._has_spare = True
        self._tasks.start(self._work(), "outbox")

    @property
    def busy(self) -> Collection[RunId]:
        """The runs that have an effect that is not performed yet, also such as are over."""
        return self._queues.keys()

    @property
    def pending(self) -> int:
        """Effects not performed yet."""
        return sum(len(queue) for queue in self._queues.values())

    async def stop(self) -> None:
        await self._tasks.stop()
        # Forgotten here, kept in the store: the next start adds them again.
        self._queues.clear()
        self._ready.clear()
        self._quarantine.clear()
        self._has_spare = False

    async def leave(self, run_ids: Iterable[RunId]) -> None:
        """Perform nothing more of these runs: another daemon does, as the next start would."""
        gone = [each for each in run_ids if self._queues.pop(each, None) is not None]
        self._ready = deque(each for each in self._ready if each in self._queues)
        asked = (at.get(each) for at in (self._at_work, self._checking) for each in gone)
        working = [each for each in asked if each is not None]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    async def _work(self) -> None:
        """Take runs until none is ready; whenever one makes this worker wait, a spare continues.

        So effects that are done at once (most are) share one task, and slow ones hold up no others.
        """
        self._has_spare = False
        drained = 0
        while self._ready:
            run_id = self._ready.popleft()
            if self._ready and not self._has_spare:
                self._call_spare()
            self._at_work[run_id] = asyncio.current_task()
            try:
                await self._drain(run_id)
            except Exception:
                # No memory for a pause, say. No other task would go on with them.
                log.exception("the effects of %s go on in %s s", run_id, RETRY_FIRST_S)
                self._ready.append(run_id)
                await asyncio.sleep(RETRY_FIRST_S)
            finally:
                self._at_work.pop(run_id, None)
            drained += 1
            if drained % RUNS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _drain(self, run_id: RunId) -> None:
        # One task per run: its effects never overtake each other (a stop, the start before it).
        # Each stays at the head until it is done, and in the store until the commit that answers
        # it: after a crash in between it is performed again, and every performer is repeatable.
        queue = self._queues[run_id]
        delay_s, failures = RETRY_FIRST_S, 0
        while queue:
            try:
                await self._perform(queue[0])
            except Exception as error:
                if self._ledger.failure is not None:
                    # It will be loaded again, with this effect still in the store.
                    return
                failures += 1
                if failures >= FAILURES:
                    delay_s = TRY_AGAIN_S if lack_of(error) is None else RETRY_S_MAX
                    self._hold(queue[0], error)
                log.exception("effect %s failed, again in %s s", queue[0].key, delay_s)
                await self._clock.sleep(delay_s)
                delay_s = min(delay_s * 2, RETRY_S_MAX)
                continue
            if failures:
                self._quarantine.pop(run_id, None)
            queue.popleft()
            delay_s, failures = RETRY_FIRST_S, 0
        del self._queues[run_id]

    def _hold(self, entry: OutboxEntry, error: Exception) -> None:
        """Quarantine an effect that keeps failing, and tell of it once."""
        name, now = EFFECT_WORDS[type(entry.effect)], self._clock.now_ms()
        text = plain_error(error)
        found = Quarantined(effect=name, error=text, since_ms=now)
        live = self._ledger.live.get(entry.run_id)
        # What is there was told already; it goes when the effect works, or with a restart.
        is_known = self._quarantine.setdefault(entry.run_id, found) is not found
        if is_known or live is None or live.is_settled:
            return
        alert = Alert(
            kind=AlertKind.FAILURE_LOOP,
            text=f"🔁 {FAILURES} failures in a row of {name}: {text}",
            key=f"quarantine:{entry.key}",
            fields={"consecutiveFailures": FAILURES, "lastTool": name, "lastError": text},
        )
        event = Alerted(at_ms=now, alert=alert)
        self._ledger.apply_now(entry.run_id, event, key=f"alert:{alert.key}")

    async def _perform(self, entry: OutboxEntry) -> None:
        run_id = entry.run_id
        run = self._ledger.published.get(run_id) or await self._ledger.load_run(run_id)
        event = await self._answer(run, entry)
        if event is None:
            self._ledger.mark_performed(entry)
        else:
            if run_id not in self._ledger.live:  # over, it has left memory meanwhile
                await self._ledger.load_run(run_id)
            self._ledger.apply_now(run_id, event, key=entry.key, performed=entry)

    async def _answer(  # noqa: C901, PLR0912 - one branch per effect
        self, run: Run, entry: OutboxEntry
    ) -> Event | None:
        """Perform one effect; the event it is answered by, None = nothing more to say."""
        match entry.effect:
            case StartAttempt(attempt=number):
                return await self._start(run, number) if _is_current(run, number) else None
            case ResumeAttempt():
                return await self._resume(run, entry.effect)
            case StopAttempt(attempt=number, grace_ms=grace_ms):
                # Also of an older attempt: its worker must not live on next to a newer one.
                runtime = self._runtime(run, number)
                await runtime.stop(ref_of(run, number), grace_s=grace_ms / 1000)
                return None
            case SteerAttempt():
                return await self._steer(run, entry.effect, entry.key)
            case PermitAttempt():
                await self._permit(run, entry.effect)
                return None
            case InterruptAttempt(attempt=number):
                if _is_current(run, number):
                    await self._interrupt(run, entry.key)
                return None
            case FreezeAttempt(attempt=number) | ThawAttempt(attempt=number):
                if _is_current(run, number):
                    await self._freeze(run, is_frozen=isinstance(entry.effect, FreezeAttempt))
                return None
            case Verify(attempt=number):
                return await self._verify(run, number)
            case LookAfter(attempt=number):
                return await self._look_after(run, number)
            case StartJudge(attempt=number):
                return self._judges.start(run, number)
            case Announce(number=number):
                record = await self._deliveries.deliver(run, number)
                return DeliverySettled(at_ms=self._clock.now_ms(), record=record)
            case CleanUp(delete=delete):
                if delete:
                    await self._supervisor.delete_session(run)
                else:
                    await self._supervisor.tidy(run)
                await self._workspaces.tidy(run)
                return CleanedUp(at_ms=self._clock.now_ms(), erased=delete)
            case _:
                assert_never(entry.effect)

    async def _freeze(self, run: Run, *, is_frozen: bool) -> None:
        runtime = self._runtime(run)
        if isinstance(runtime, Freezable):
            work = runtime.freeze if is_frozen else runtime.thaw
            await work(ref_of(run, run.attempt.number))

    def _runtime(self, run: Run, number: int | None = None) -> Runtime:
        runtime = self._placement.runtime_of(run, number)
        if runtime is None:
            raise RuntimeUnavailable(f'runtime "{run.resolved.runtime}" is not available here')
        return runtime

    async def _start(self, run: Run, number: int) -> Event:
        live = self._ledger.live.get(run.id, run)
        if live.control.cancel is not None or live.budget.stop is not None:
            self._ledger.tokens.throw_away(run.id, number)
            why = "out of budget" if live.control.cancel is None else "cancelled"
            return self._start_failed(number, f"{why} before it was started")
        try:
            run = await self._placement.place(run)
            env = await self._env(run, number)
            run = await self._workspaces.prepare(run)
            looked = await self._look_before(run, number)
            launch = launch_of(run, env)
            if len(run.attempts) > 1:
                launch = await self._with_digest(run, launch)
            starting = self._placement.start(run, self._runtime(run), launch)
            started = await self._starting.of(starting)
        except TimeoutError:
            return await self._given_up(run, ref_of(run))
        except SubagentsError as error:
            if lack_of(error) is not None:
                raise  # the machine's failure, and not the attempt's: tried again
            return self._start_failed(number, error.message, permanent=not error.retryable)
        self._ledger.tokens.throw_away(run.id, number)
        # A worker that was adopted may have changed the files before this look.
        if looked is not None and not started.adopted:
            await self._ledger.apply(run.id, looked)
        return AttemptStarted(
            at_ms=self._clock.now_ms(),
            attempt=number,
            pid=started.pid,
            adopted=started.adopted,
            native_session=started.native_session,
        )

    async def _with_digest(self, run: Run, launch: Launch) -> Launch:
        """An agent that takes over reads what was done by the one before it."""
        before = run.attempts[-2]
        if before.handed_over == run.attempt.handed_over:
            return launch
        where, now = LogQuery(limit=1, attempt=before.number), self._clock.now_ms()
        found = await digest_of(self._recorder, run, where, now_ms=now)
        text = f"{launch.prompt}\n\n[What was done before, as the transcript has it]:\n"
        return replace(launch, prompt=text + fence(found.text))

    async def _look_before(self, run: Run, number: int) -> BaselineTaken | None:
        """Make durable what the contract's files are, before a worker can change them.

        Returns:
            A second look, after a crash: it counts if no worker was started before that.
        """
        contract, record = run.spec.verification, run.verification
        if contract is None or not contract.names_files:
            return None
        was_started = any(attempt.times.started_at_ms is not None for attempt in run.attempts)
        if record.baseline is None and was_started:
            return None  # a run of 0.1.0: what its first worker found is not known any more
        found = await self._workplace_of(run).before(run)
        taken = BaselineTaken(
            at_ms=self._clock.now_ms(),
            baseline=found.baseline,
            vacuous=found.is_vacuous,
            attempt=number,
        )
        if record.looked == number:
            return taken
        await self._ledger.apply(run.id, taken)
        return None

    async def _look_after(self, run: Run, number: int) -> Event | None:
        try:
            found = await self._workplace_of(run).before(run)
        except (RuntimeUnavailable, UsageError) as error:
            # Its node is gone, say, and the files with it: the next attempt works elsewhere.
            log.info("what %s left was not looked at: %s", run.attempt_id, error)
            return None
        return FilesLeft(at_ms=self._clock.now_ms(), attempt=number, files=found.baseline)

    async def _env(self, run: Run, number: int) -> dict[str, str | None]:
        """What we add to the worker's environment, its token included; None = not set there.

        The hash of that token is durable on return. Mostly it came with the slot; after a crash,
        and for a further turn, it is made here.

        Raises:
            UsageError: It cannot have the variables that it is to have.
            RuntimeUnavailable: Nor now, but maybe later.
        """
        if self._worker_secrets is not None:
            await self._worker_secrets.load(run)
        token = self._ledger.tokens.get(run.id, number)
        if token is None:
            hashed = self._ledger.new_token(run.id, number)
            issued = TokenIssued(at_ms=self._clock.now_ms(), attempt=number, token_hash=hashed)
            await self._ledger.apply(run.id, issued)
            token = self._ledger.tokens.get(run.id, number) or ""
        return {**self._worker_env(run), TOKEN_VARIABLE: token}

    def _start_failed(self, number: int, error: str, *, permanent: bool = False) -> Event:
        text = error.encode("utf-8", "replace").decode()  # a PATH may hold what cannot be stored
        return AttemptStartFailed(
            at_ms=self._clock.now_ms(), attempt=number, error=text, permanent=permanent
        )

    async def _given_up(self, run: Run, ref: AttemptRef) -> Event:
        # It may have started all the same, or may yet: stopped, it never will.
        async with asyncio.timeout(START_S_MAX):
            await self._runtime(run).stop(ref, grace_s=0)
        return self._start_failed(ref.number, f"it did not start within {START_S_MAX:.0f} s")

    async def _resume(self, run: Run, effect: ResumeAttempt) -> Event | None:
        if not _is_current(run, effect.attempt):
            return None
        ref = replace(ref_of(run), turns=effect.turn)
        if self._ledger.live.get(run.id, run).budget.stop is not None:
            # A daemon that was killed may have started it, and could not say so.
            await self._runtime(run).stop(ref, grace_s=0)
            return self._start_failed(effect.attempt, "out of budget before its next turn")
        try:
            env = set_in(await self._env(run, effect.attempt))
            resuming = self._runtime(run).resume(ref, effect.message, env=env)
            started = await self._starting.of(resuming)
        except TimeoutError:
            return await self._given_up(run, ref)
        except SubagentsError as error:
            if lack_of(error) is not None:
                raise
            return self._start_failed(effect.attempt, error.message)
        self._ledger.tokens.throw_away(run.id, effect.attempt)
        return AttemptStarted(
            at_ms=self._clock.now_ms(), attempt=effect.attempt, turn=effect.turn, pid=started.pid
        )

    async def _steer(self, run: Run, effect: SteerAttempt, key: str) -> Event:
        taken = _is_current(run, effect.attempt) and run.phase is Phase.RUNNING
        if taken:
            try:
                await self._runtime(run).steer(ref_of(run), effect.message, key=key)
            except RuntimeUnavailable:
                taken = False
        return SteerSettled(at_ms=self._clock.now_ms(), number=effect.number, taken=taken)

    async def _permit(self, run: Run, effect: PermitAttempt) -> None:
        runtime = self._runtime(run)
        if not _is_current(run, effect.attempt) or not isinstance(runtime, Permitting):
            return
        # Who is gone, or has to go, waits for no answer; what comes next for the run does.
        if run.attempt.evidence.stop is None and not self._is_gone(run):
            allow, lasting = effect.allow, effect.lasting
            await runtime.permit(ref_of(run), effect.call_id, allow=allow, lasting=lasting)

    async def _interrupt(self, run: Run, key: str) -> None:
        """Best effort: whatever comes of it, the stop behind it ends the attempt."""
        try:
            async with asyncio.timeout(INTERRUPT_S_MAX):
                await self._runtime(run).interrupt(ref_of(run), key=key)
        except (RuntimeUnavailable, TimeoutError) as error:
            log.info("%s was not interrupted politely: %s", run.attempt_id, error)
            return
        # Its turn is over: a program that may go by itself leaves its session in order.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GO_S):
                while not self._is_gone(run):  # noqa: ASYNC110 - few wait so, and not for long
                    await asyncio.sleep(LOOK_S)

    def _is_gone(self, run: Run) -> bool:
        """The process of the attempt's turn was seen to end."""
        live = self._ledger.live.get(run.id)
        if live is None or len(live.attempts) != len(run.attempts):
            return True
        return live.attempt.outcome is not None or live.attempt.evidence.exit is not None

    async def _verify(self, run: Run, number: int) -> Event | None:
        contract = run.spec.verification
        if contract is None or not _is_current(run, number) or run.phase is not Phase.VERIFYING:
            return None
        if contract.commands:
            # A command of a check that a dead daemon began may still be at it.
            await self._runtime(run).stop(ref_of(run), grace_s=0)
        checking = asyncio.ensure_future(self._check(run, contract))
        self._checking[run.id] = checking
        try:
            await asyncio.wait({checking})
        finally:
            del self._checking[run.id]
            checking.cancel()
        if checking.cancelled():
            return None
        try:
            verification = checking.result()
        except (StoreUnavailable, Fenced):
            raise
        except Exception as error:
            # A checker that breaks says nothing about the work: no retry of the worker.
            log.exception("verification of %s could not run", run.id)
            broken = Check(
                type=CheckType.ARTIFACT,
                target="verification",
                passed=False,
                reason=f"the checker failed: {plain_error(error)}",
                could_not_check=True,
            )
            verification = Verification(verdict=Verdict.COULD_NOT_CHECK, checks=(broken,))
        now = self._clock.now_ms()
        if contract.judge is not None and verification.verdict is Verdict.PASSED:
            return ChecksPassed(at_ms=now, attempt=number, checks=verification.checks)
        return VerificationFinished(
            at_ms=now, attempt=number, verification=replace(verification, verified_at_ms=now)
        )

    async def _check(self, run: Run, contract: Contract) -> Verification:
        runtime, ref = self._runtime(run), ref_of(run)
        own_env: Mapping[str, str] = {}
        if contract.commands and run.resolved.commands_trusted:
            if self._worker_secrets is not None:
                await self._worker_secrets.load(run)
            own_env = self._contract_env(run)
        try:
            return await self._workplace_of(run).verify(run, {**own_env, **runtime.marker(ref)})
        finally:
            if contract.commands:
                await runtime.stop(ref, grace_s=0)


def _is_current(run: Run, number: int) -> bool:
    return len(run.attempts) == number
