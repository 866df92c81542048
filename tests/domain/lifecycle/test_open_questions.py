"""Questions and notices of a worker: answered once, timed out, or closed with their attempt."""

from typing import Any

import pytest
from tests.builders import NOW_MS, RUN, Life, a_resolved

from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.run.effects import ResolveMessages, SteerAttempt
from subagents.domain.run.events import ParentNotified, RequestAnswered
from subagents.domain.run.run import Answer, Decision, MessageKind, Priority
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import MessageId


@pytest.mark.requirement("requests:stored-before-delivered")
def test_a_question_is_in_the_inbox_and_its_first_answer_counts() -> None:
    life = Life.begin().start().ask()
    assert [m.kind for m in life.messages] == [MessageKind.QUESTION]
    first = Answer(decision=Decision.ANSWER, text="the first", by="me", at_ms=life.at_ms)
    second = Answer(decision=Decision.ANSWER, text="the second", by="you", at_ms=life.at_ms)
    name = life.run.questions.requests[0].id

    life.apply(RequestAnswered(at_ms=life.at_ms, request_id=name, answer=first))
    step = life.apply(RequestAnswered(at_ms=life.at_ms, request_id=name, answer=second))

    assert step.stale
    assert life.run.questions.requests[0].answer == first
    assert len(life.of(ResolveMessages, life.followups)) == 1


@pytest.mark.requirement("requests:default-at-deadline")
@pytest.mark.parametrize(
    ("default", "decision"), [("blue", Decision.DEFAULT), (None, Decision.TIMEOUT)]
)
def test_an_unanswered_question_gets_its_default_or_a_timeout(
    default: str | None, decision: Decision
) -> None:
    life = Life.begin().start().ask(default=default, wait_ms=5000)

    life.timer()

    assert life.at_ms == NOW_MS + 5000
    assert life.run.questions.requests[0].answer == Answer(
        decision=decision, text=default, by="deadline", at_ms=NOW_MS + 5000
    )
    assert len(life.of(ResolveMessages, life.followups)) == 1


@pytest.mark.requirement("requests:closed-with-attempt")
def test_questions_of_an_ended_attempt_are_closed() -> None:
    life = Life.begin().start().ask().exit()

    answer = life.run.questions.requests[0].answer
    assert answer is not None
    assert (answer.decision, answer.by) == (Decision.CANCELLED, "attempt ended")
    assert life.run.pending_requests == ()


def noticed(priority: Priority, **abilities: Any) -> Life:
    limits = a_resolved(abilities=Abilities(**abilities))
    life = Life.begin(resolved=limits).start()
    life.apply(ParentNotified(at_ms=life.at_ms, message="which\none?", priority=priority))
    return life


def answered(life: Life, text: str = "that", decision: Decision = Decision.ANSWER) -> Life:
    answer = Answer(decision=decision, text=text, by="me", at_ms=life.at_ms)
    event = RequestAnswered(at_ms=life.at_ms, request_id=f"{RUN}:n1", answer=answer)
    life.apply(event)
    return life


@pytest.mark.requirement("notices:pending")
@pytest.mark.parametrize("priority", [Priority.QUESTION, Priority.BLOCKER])
def test_a_notice_that_wants_an_answer_is_pending_and_has_no_deadline(priority: Priority) -> None:
    life = noticed(priority)

    (notice,) = life.run.pending_requests
    assert (notice.id, notice.priority, notice.deadline_ms) == (f"{RUN}:n1", priority, None)
    assert next_due_ms(life.run) is None
    assert noticed(Priority.INFO).run.questions.requests == ()


@pytest.mark.requirement("notices:answered-by-message")
def test_any_message_to_the_worker_answers_its_notices_and_no_question() -> None:
    life = noticed(Priority.BLOCKER, steer=True).ask()

    life.steer("use the other disk")

    assert [request.id for request in life.run.pending_requests] == [f"{RUN}:q1"]
    given = life.run.questions.requests[0].answer
    assert given is not None
    assert (given.decision, given.text, given.by) == (Decision.ANSWER, "use the other disk", "me")
    assert life.of(ResolveMessages, life.followups) == [
        ResolveMessages(messages=(MessageId(f"{RUN}:n1"),))
    ]
    assert [effect.message for effect in life.of(SteerAttempt)] == ["use the other disk"]


@pytest.mark.requirement("notices:answered")
def test_the_answer_to_a_notice_goes_to_the_worker_as_a_message() -> None:
    told = answered(noticed(Priority.QUESTION, steer=True))
    denied = answered(noticed(Priority.BLOCKER, steer=True), "", Decision.DENY)
    later = answered(noticed(Priority.QUESTION, resume=True))
    deaf = answered(noticed(Priority.QUESTION))

    assert [effect.message for effect in told.of(SteerAttempt)] == [
        '[Answer to your question "which one?"]: that'
    ]
    assert [effect.message for effect in denied.of(SteerAttempt)] == [
        '[Answer to your blocker "which one?"]: denied'
    ]
    assert (later.of(SteerAttempt), len(later.run.control.steers)) == ([], 1)
    assert (deaf.of(SteerAttempt), deaf.run.control.steers) == ([], ())
    for life in (told, denied, later, deaf):
        assert life.run.pending_requests == ()
        assert len(life.of(ResolveMessages, life.followups)) == 1


@pytest.mark.requirement("notices:closed-with-attempt")
def test_the_end_of_the_attempt_closes_its_notices_and_leaves_them_to_be_read() -> None:
    life = noticed(Priority.BLOCKER).exit(1)

    assert life.run.pending_requests == ()
    given = life.run.questions.requests[0].answer
    assert given is not None
    assert given.decision is Decision.CANCELLED
    assert life.of(ResolveMessages, life.followups) == []
