"""What a worker wants of its requester: questions, notices and their answers.

A question is durable on both sides: in the run that asks, with its deadline, and in the inbox of
whoever answers. A worker that waits for the answer may die; it asks again and finds the same
question.
"""

from functools import partial
from typing import Final

from subagents.domain.lifecycle import open_questions
from subagents.domain.redaction.redact_events import redact_value
from subagents.domain.rules import admission
from subagents.domain.run.events import ParentNotified, RequestAnswered, RequestAsked
from subagents.domain.run.run import HOLDS_SLOT, Answer, Decision, Priority, Request, Run
from subagents.domain.run.spec import TIMEOUT_SECONDS_MAX
from subagents.domain.run.values import RequestId, RunId
from subagents.engine.kernel.addresses import answering_inbox
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.kernel.tasks import wait_at_most
from subagents.engine.kernel.waiters import Wakeups
from subagents.errors import Conflict, NotFound, UsageError
from subagents.ports import AllowedCallLog, Batch
from subagents.text import whole_ms

ANSWER_WAIT_S_MAX: Final = 600.0
DEFAULT_ANSWER_S: Final = 600.0
"""How long a question waits that brings its own answer: not for someone who is away."""


class Questions:
    """Takes questions and notices from workers, and answers to them."""

    def __init__(self, kernel: Kernel, allowed_calls: AllowedCallLog) -> None:
        self._allowed = allowed_calls
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._wakeups: Wakeups[RunId] = Wakeups()
        """Calls that wait for an answer, by the run that asks."""

    def on_commit(self, batch: Batch) -> None:
        """Let every call look again whose run changed."""
        self._wakeups.wake(batch.runs)

    def wake_all(self) -> None:
        """See ``Wakeups.wake_all``."""
        self._wakeups.wake_all()

    async def ask(
        self,
        run_id: RunId,
        question: str,
        *,
        context: str | None = None,
        options: tuple[str, ...] = (),
        timeout_s: float | None = None,
        default_answer: str | None = None,
        call_id: str | None = None,
    ) -> Request:
        """Put a question into the requester's inbox; it is durable when this returns.

        The same question asked again by the same attempt, before anybody answered it, is the
        question that stands already, with the deadline it has.

        Args:
            run_id: Whose worker asks.
            question: For the requester, word for word.
            context: What the requester must know to answer.
            options: Possible answers.
            timeout_s: Over 0, at most 30 days; then the default answer holds, or none does. None =
                until somebody answers; with a default answer ``DEFAULT_ANSWER_S``.
            default_answer: Taken at the deadline.
            call_id: The same one never asks twice, also after the answer.

        Raises:
            UsageError: Empty question, or a timeout outside its bounds.
            Conflict: The run's attempt is not live.
            RateLimited: 5 per minute and run, 3 unanswered per run, 20 at one requester.
        """
        if not question.strip():
            raise UsageError("question must not be empty")
        if timeout_s is None and default_answer is not None:
            timeout_s = DEFAULT_ANSWER_S
        if timeout_s is not None and not 0 < timeout_s <= TIMEOUT_SECONDS_MAX:
            raise UsageError(f"timeoutSeconds must be in (0, {TIMEOUT_SECONDS_MAX:.0f}]")
        run = speaking(self._ledger, run_id)
        now = self._clock.now_ms()
        number = sum(1 for each in run.questions.requests if each.priority is None) + 1
        asked = Request(
            id=RequestId(f"{run_id}:q{number}"),
            attempt=len(run.attempts),
            question=question,
            context=context,
            options=options,
            asked_at_ms=now,
            deadline_ms=None if timeout_s is None else now + whole_ms(timeout_s * 1000),
            default_answer=default_answer,
            call_id=call_id,
        )
        # Redacted as it will be stored, or the same question would not be recognised.
        asked = redact_value(asked, self._ledger.secrets_of(run))
        known = admission.repeated_question(run, asked)
        if known is not None:
            await self._ledger.committed()
            return known
        waiting = self._waiting_where(run)
        admission.check_request(run, pending_at_requester=waiting, now_ms=now)
        await self._ledger.apply(run_id, RequestAsked(at_ms=now, request=asked))
        return asked

    def _waiting_where(self, run: Run) -> int:
        """Unanswered questions in the inbox that a question of this run goes to.

        That is the nearest ancestor's that is at work: the questions to a requester that ended
        count where they really are.
        """
        live = self._ledger.live
        inbox = answering_inbox(live, run)
        return admission.question_count(
            other
            for other in live.values()
            if other.pending_requests and answering_inbox(live, other) == inbox
        )

    async def answer_of(self, request_id: RequestId, *, wait_s: float) -> Request:
        """The question as it stands, after waiting at most ``wait_s`` seconds for its answer.

        Raises:
            NotFound: No such question.
        """
        run_id = _run_of(request_id)
        deadline_ms = self._clock.steady_ms() + int(min(max(wait_s, 0), ANSWER_WAIT_S_MAX) * 1000)
        with self._wakeups.waiting(run_id) as woken:
            while True:
                woken.clear()
                request = await self._request(request_id)
                left_ms = deadline_ms - self._clock.steady_ms()
                if request.answer is not None or left_ms <= 0:
                    return request
                await wait_at_most(self._clock, left_ms / 1000, woken)

    async def _request(self, request_id: str) -> Request:
        run_id = _run_of(request_id)
        run = await self._ledger.newest(run_id)
        if run is None:
            run = await self._off_loop(lambda: self._store.run(run_id))
            await self._ledger.partitions.require_read(run)
        for request in run.questions.requests if run is not None else ():
            if request.id == request_id:
                return request
        raise NotFound(
            f"request {request_id} does not exist", hint="see: subagents inbox --attention"
        )

    async def answer(
        self, request_id: RequestId, text: str, *, decision: Decision, by: str
    ) -> bool:
        """Store an answer; False = somebody (or the deadline) answered before.

        The answer to a notice (``<runId>:n<k>``), for which no call waits, also goes to the worker
        as a message where its runtime takes one.

        Raises:
            NotFound: No such question.
            ConfigError, StoreUnavailable: It cannot be kept; nothing was answered.
        """
        request = await self._request(request_id)
        if request.answer is not None:
            return False
        now = self._clock.now_ms()
        answer = Answer(decision=decision, text=text, by=by, at_ms=now)
        event = RequestAnswered(at_ms=now, request_id=request_id, answer=answer)
        live = self._ledger.live.get(_run_of(request_id))
        call, allow = open_questions.allowed_call(request, text, decision), None
        if call is not None and live is not None:
            # Before: an answer that was acknowledged holds for the next run, whatever is killed.
            allow = partial(self._allowed.change, live.resolved.agent_id, call)
            await self._off_loop(partial(allow, allow=True))
        run = await self._ledger.apply(_run_of(request_id), event)
        stored = next(r for r in run.questions.requests if r.id == request_id)
        counts = stored.answer or answer
        if allow and not open_questions.allowed_call(stored, counts.text or "", counts.decision):
            await self._off_loop(partial(allow, allow=False))  # somebody was quicker, and did not
        return stored.answer == answer

    async def notify(self, run_id: RunId, message: str, *, priority: str = "info") -> None:
        """One way, into the requester's inbox.

        A question or blocker marks the run as blocked until somebody answers it, writes to the
        worker, or the attempt ends.

        Raises:
            UsageError: Empty message or unknown priority.
            Conflict: The run's attempt is not live.
            RateLimited: 1,000 per run; 20 unanswered questions and blockers per run.
        """
        if not message.strip():
            raise UsageError("message must not be empty")
        if priority not in [*Priority]:
            raise UsageError(f'priority must be info, question or blocker, not "{priority}"')
        run = speaking(self._ledger, run_id)
        admission.check_notice(run, Priority(priority))
        event = ParentNotified(
            at_ms=self._clock.now_ms(), message=message, priority=Priority(priority)
        )
        await self._ledger.apply(run_id, event)


def speaking(ledger: Ledger, run_id: RunId) -> Run:
    """A run whose worker has not ended yet.

    Raises:
        NotFound: The run is over, or there is none.
        Conflict: It has no attempt that could say anything.
    """
    run = live_attempt(ledger, run_id)
    if run.phase not in HOLDS_SLOT:
        raise Conflict(f"run {run_id} is {run.phase}: its worker has ended")
    return run


def live_attempt(ledger: Ledger, run_id: RunId) -> Run:
    """A run whose attempt has no outcome yet: also one whose last words are just being read.

    Raises:
        NotFound: The run is over, or there is none.
        Conflict: It has no such attempt.
    """
    run = ledger.live.get(run_id)
    if run is None:
        raise NotFound(f"run {run_id} is not open")
    if not run.attempts or run.attempt.outcome is not None or run.is_settled:
        raise Conflict(f"run {run_id} has no live attempt (phase {run.phase})")
    return run


def _run_of(request_id: str) -> RunId:
    return RunId(request_id.rpartition(":")[0])
