"""Questions and notices of a worker: answered once, timed out, or closed with their attempt."""

from typing import Any

import pytest
from tests.builders import NOW_MS, RUN, Life, a_resolved

from subagents.domain.lifecycle.open_questions import PERMISSION_MS, PERMISSIONS_MAX, allowed_call
from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.run.effects import PermitAttempt, ResolveMessages, SteerAttempt
from subagents.domain.run.events import ParentNotified, RequestAnswered
from subagents.domain.run.run import Answer, Decision, MessageKind, Phase, Priority, Request
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.spec import Abilities, RunSpec
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


# -- what a program asks permission for -----------------------------------------------------------


def asks(life: Life, call_id: str, what: str = "rm -r build", call: str | None = None) -> Request:
    life.signal(PermissionAsked(f"k:{call_id}", call_id, "Bash", what, call=call))
    return life.run.questions.requests[-1]


def decided(life: Life, asked: Request, text: str, decision: Decision = Decision.ANSWER) -> None:
    given = Answer(decision=decision, text=text, by="me", at_ms=life.at_ms)
    life.apply(RequestAnswered(at_ms=life.at_ms, request_id=asked.id, answer=given))


@pytest.mark.requirement("permissions:asked")
@pytest.mark.parametrize(
    ("text", "decision", "allow", "lasting"),
    [
        ("once", Decision.ANSWER, True, False),
        (" For this run ", Decision.ANSWER, True, True),
        ("For this agent", Decision.ANSWER, True, False),
        ("for this agent", Decision.DENY, False, False),
        ("", Decision.APPROVE, True, False),
        ("deny", Decision.ANSWER, False, False),
        ("yes, but carefully", Decision.ANSWER, False, False),
        ("once", Decision.DENY, False, False),
    ],
)
def test_only_a_clear_yes_lets_a_program_use_a_tool(
    text: str, decision: Decision, *, allow: bool, lasting: bool
) -> None:
    life = Life.begin().start()
    asked = asks(life, "c1", call="Bash: rm -r build")
    assert (asked.question, asked.context) == ("May it use Bash? rm -r build", "rm -r build")
    assert [each.kind for each in life.messages] == [MessageKind.QUESTION]
    assert life.run.phase is Phase.RUNNING
    decided(life, asked, text, decision)
    assert life.of(PermitAttempt) == [PermitAttempt(1, "c1", allow=allow, lasting=lasting)]


@pytest.mark.requirement("permissions:deadline")
def test_nobodys_answer_is_a_no_after_a_day() -> None:
    life = Life.begin().start()
    asks(life, "c1")
    life.timer()
    assert life.at_ms == NOW_MS + PERMISSION_MS
    assert life.of(PermitAttempt) == [PermitAttempt(1, "c1", allow=False)]


@pytest.mark.requirement("permissions:lasting")
def test_what_was_allowed_for_the_run_is_not_asked_again_by_its_next_attempt() -> None:
    life = Life.begin(RunSpec(task="x", retry_count=1)).start()
    decided(life, asks(life, "c1", call="Bash: rm -r build"), "for this run")
    life.exit(code=1).timer().grant().start()
    asks(life, "c1", call="Bash: rm -r build")
    assert life.of(PermitAttempt)[-1] == PermitAttempt(2, "c1", allow=True, lasting=True)
    assert len(life.run.questions.requests) == 1
    asks(life, "c2", what="rm -r /", call="Bash: rm -r /")
    assert len(life.run.questions.requests) == 2


@pytest.mark.requirement("permissions:lasting")
def test_a_call_that_reads_as_one_that_was_allowed_is_asked_where_it_may_be_another() -> None:
    life = Life.begin().start()
    decided(life, asks(life, "c1", what=""), "for this run")
    asks(life, "c2", what="")
    assert [each.call_id for each in life.run.pending_requests] == ["c2"]


@pytest.mark.requirement("permissions:for-agent")
def test_what_is_allowed_for_the_agent_is_not_asked_and_only_whole_calls_can_be() -> None:
    life = Life.begin().start()
    asks_nothing = PermissionAsked("k", "c1", "Bash", "ls", call="Bash: ls", is_allowed=True)
    life.signal(asks_nothing)
    assert life.of(PermitAttempt) == [PermitAttempt(1, "c1", allow=True)]
    assert life.run.questions.requests == ()
    vague = asks(life, "c2")
    assert vague.options == ("once", "for this run", "deny")
    decided(life, vague, "for this agent")
    assert life.of(PermitAttempt)[-1] == PermitAttempt(1, "c2", allow=False)
    whole = asks(life, "c3", call="Bash: rm -r build")
    assert whole.options == ("once", "for this run", "for this agent", "deny")
    assert allowed_call(whole, "For this agent ", Decision.ANSWER) == "Bash: rm -r build"
    assert allowed_call(whole, "for this agent", Decision.DENY) is None
    assert allowed_call(vague, "for this agent", Decision.ANSWER) is None


@pytest.mark.requirement("permissions:bounded")
def test_a_program_that_asks_without_end_is_denied_and_the_same_call_asks_once() -> None:
    life = Life.begin().start()
    for number in range(PERMISSIONS_MAX):
        asks(life, f"c{number}")
        asks(life, f"c{number}")
    assert len(life.run.pending_requests) == PERMISSIONS_MAX
    asks(life, "more")
    assert life.of(PermitAttempt) == [PermitAttempt(1, "more", allow=False)]
    assert len(life.run.pending_requests) == PERMISSIONS_MAX
