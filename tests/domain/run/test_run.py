"""What a run tells of itself."""

import pytest
from tests.builders import NOW_MS, RUN, Life, a_resolved, an_attempt, in_phase
from tests.domain.resumable_lives import ABLE, able

from subagents.domain.run.events import AttemptStarted
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.run import OVER, SETTLED, Conclusion, Continues, Phase
from subagents.domain.run.signals import SessionSeen
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.workspace import Remains


@pytest.mark.requirement("sessions:native")
def test_the_session_is_what_the_program_called_it_last() -> None:
    link = Continues(run_id=RunId("r-2"), root=RunId("r-1"), native_session="before")
    fresh = Life.begin(None, a_resolved(abilities=ABLE), continues=link)
    assert (fresh.run.native_session, fresh.run.root) == ("before", RunId("r-1"))
    fresh.grant()
    fresh.apply(AttemptStarted(at_ms=NOW_MS, attempt=1, native_session="named at the start"))
    assert fresh.run.native_session == "named at the start"
    fresh.signal(SessionSeen(key="s", session_id="named later"))

    assert fresh.run.native_session == "named later"
    assert able().run.root == RUN


@pytest.mark.requirement("lifecycle:transitions-are-data")
@pytest.mark.parametrize("phase", list(Phase))
def test_a_run_has_its_outcome_from_the_announcement_on_and_not_before(phase: Phase) -> None:
    run = in_phase(phase).run

    assert run.is_settled == (phase in SETTLED)
    assert (run.outcome is not None, run.ended_at_ms is not None) == (run.is_settled,) * 2
    assert OVER <= SETTLED


@pytest.mark.requirement("lifecycle:transitions-are-data")
def test_only_the_event_that_gave_the_outcome_settled_the_run() -> None:
    life = Life.begin().start().exit()
    ended_by = life.run.seq
    life.deliver()

    assert life.run.is_settled_by(ended_by)
    assert not life.run.is_settled_by(life.run.seq)
    assert not Life.begin().run.is_settled_by(0)


@pytest.mark.requirement("lifecycle:transitions-are-data")
def test_the_last_news_of_a_run_is_its_end_however_long_its_result_waits_for_a_reader() -> None:
    life = Life.begin().start()
    begun_ms = life.run.news_at_ms
    life.pass_ms(1_000).ask()
    asked_ms = life.run.news_at_ms
    life.pass_ms(1_000).exit()
    ended_ms = life.run.news_at_ms

    handed_over = life.pass_ms(60_000).deliver().consume().clean_up().run

    assert [asked_ms - begun_ms, ended_ms - asked_ms] == [1_000, 1_000]
    assert handed_over.news_at_ms == ended_ms == handed_over.ended_at_ms


@pytest.mark.requirement("outcome:typed")
@pytest.mark.parametrize("status", list(Status))
def test_a_partial_outcome_is_no_failure_and_an_open_run_has_not_failed(status: Status) -> None:
    run = in_phase(Phase.COMPLETED).run
    conclusion = Conclusion(outcome=Outcome(status=status), ended_at_ms=NOW_MS)

    failed = replace(run, conclusion=conclusion).has_failed

    assert failed == (status not in {Status.OK, Status.PARTIAL})
    assert not in_phase(Phase.RUNNING).run.has_failed


@pytest.mark.requirement("outcome:typed")
@pytest.mark.parametrize(
    ("reason", "is_failure"),
    [(Reason.CANCELLED_BY_CALLER, False), (Reason.PARENT_ENDED, False), (Reason.STUCK, True)],
)
def test_what_somebody_cancelled_is_no_failure_and_what_was_stuck_is_one(
    reason: Reason, *, is_failure: bool
) -> None:
    conclusion = Conclusion(
        outcome=Outcome(status=Status.CANCELLED, reason=reason), ended_at_ms=NOW_MS
    )

    run = replace(in_phase(Phase.COMPLETED).run, conclusion=conclusion)

    assert run.has_failed == is_failure


@pytest.mark.requirement("outcome:result-size")
def test_the_size_of_a_result_is_that_of_the_whole_also_when_it_was_cut() -> None:
    whole = Conclusion(outcome=OK, ended_at_ms=NOW_MS, result="é")

    assert whole.bytes_total == 2
    assert replace(whole, result_bytes=9_000).bytes_total == 9_000
    assert replace(whole, result=None).bytes_total == 0


@pytest.mark.requirement("attempts:numbered")
def test_a_worker_speaks_under_the_newest_session_and_every_earlier_one_is_still_known() -> None:
    life = Life.begin()
    promised = life.run.session_key
    life.start()
    run = replace(life.run, attempts=(*life.run.attempts, an_attempt(2, "agent:worker:second")))

    assert promised == run.session.first_key
    assert (run.session_key, run.attempt_id) == ("agent:worker:second", f"{RUN}#2")
    assert run.session_keys == {promised, life.run.attempt.session.key, "agent:worker:second"}


@pytest.mark.requirement("children:no-announce-while-active", "requests:default-at-deadline")
def test_what_is_over_is_neither_an_active_child_nor_a_pending_question() -> None:
    life = Life.begin().start().child(1).child(2).child_ends(OK, "x", 1).ask(1).ask(2)
    assert [each.label for each in life.run.active_children] == ["child2"]
    assert [each.id for each in life.run.pending_requests] == [f"{RUN}:q1", f"{RUN}:q2"]

    life.pass_ms(60_000).timer()

    assert not life.run.pending_requests


@pytest.mark.requirement("outcome:remains")
def test_what_was_left_is_that_of_the_newest_attempt_that_left_anything() -> None:
    run = Life.begin().run
    first, second = (an_attempt(n, remains=Remains(words=f"said {n}")) for n in (1, 2))

    assert run.remains == Remains()
    assert replace(run, attempts=(first, second, an_attempt(3))).remains.words == "said 2"
