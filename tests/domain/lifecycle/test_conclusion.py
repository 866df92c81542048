"""What becomes of the one announcement: delivered, tried again, given up, or read."""

import pytest
from tests.builders import NOW_MS, Life, in_phase

from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.run.effects import Announce, CleanUp, MarkTold, ReopenAnnouncement
from subagents.domain.run.events import Archived, Continued, Redelivered, TimerFired
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryPath,
)
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Cleanup, RunSpec
from subagents.domain.run.values import RunId


@pytest.mark.requirement("delivery:policy", "delivery:typed-outcomes")
def test_each_kind_of_delivery_outcome_leads_to_its_phase() -> None:
    announcing = Phase.ANNOUNCING
    assert in_phase(announcing).deliver().phase is Phase.CLEANUP_PENDING
    busy = Deferred(reason=DeferReason.REQUESTER_BUSY)
    assert in_phase(announcing).deliver(busy).phase is Phase.ANNOUNCE_DEFERRED
    refused = DeliveryFailed(retryable=True, error="refused")
    assert in_phase(announcing).deliver(refused).phase is Phase.ANNOUNCE_DEFERRED
    gone = DeliveryFailed(retryable=False, error="gone")
    assert in_phase(announcing).deliver(gone).phase is Phase.COMPLETED_GIVEUP


@pytest.mark.requirement("delivery:deferred-goes-on")
def test_a_deferred_delivery_is_tried_again_at_its_time() -> None:
    life = in_phase(Phase.ANNOUNCE_DEFERRED)
    due = next_due_ms(life.run)
    assert due is not None
    assert life.apply(TimerFired(at_ms=due - 1)).stale

    life.timer()

    assert life.phase is Phase.ANNOUNCING
    assert [effect.number for effect in life.of(Announce)] == [1, 2]
    assert len({effect.delivery_id for effect in life.of(Announce)}) == 1


@pytest.mark.requirement("delivery:giveup-keeps-result", "field:gave-up-and-dropped")
def test_giving_up_keeps_everything_and_can_be_undone_by_hand() -> None:
    life = Life.begin().start().result("precious").exit()
    refused = DeliveryFailed(retryable=True, error="refused")
    life.deliver(refused)
    while life.phase is not Phase.COMPLETED_GIVEUP:
        life.timer().deliver(refused)

    assert 30 * 60_000 <= life.at_ms - NOW_MS <= 36 * 60_000
    assert life.run.result == "precious"
    step = life.pass_ms(3_600_000).apply(Redelivered(at_ms=life.at_ms, by="me"))
    assert step.run.phase is Phase.ANNOUNCING
    assert life.deliver(refused).phase is Phase.ANNOUNCE_DEFERRED


@pytest.mark.requirement("delivery:consumed-once", "field:delivered-twice")
@pytest.mark.parametrize(
    "phase",
    [
        Phase.ANNOUNCING,
        Phase.ANNOUNCE_DEFERRED,
        Phase.CLEANUP_PENDING,
        Phase.COMPLETED,
        Phase.COMPLETED_GIVEUP,
    ],
)
def test_an_announcement_is_consumed_once_in_whatever_phase(phase: Phase) -> None:
    life = in_phase(phase)
    life.consume()
    assert life.run.announcement_consumed_ms is not None
    phase_then = life.phase
    effects = len(life.effects)

    life.pass_ms(5).consume()

    assert life.last is not None
    assert life.last.stale
    assert (life.phase, len(life.effects)) == (phase_then, effects)


@pytest.mark.requirement("delivery:redelivered")
@pytest.mark.parametrize("phase", [Phase.COMPLETED, Phase.COMPLETED_GIVEUP])
def test_a_result_that_was_read_and_lost_is_unread_again_under_its_own_id(phase: Phase) -> None:
    life = in_phase(phase).consume()
    effects = len(life.effects)

    life.apply(Redelivered(at_ms=life.at_ms, by="me"))

    assert (life.phase, life.run.announcement_consumed_ms) == (phase, None)
    assert life.of(ReopenAnnouncement, life.followups) == [ReopenAnnouncement(life.run.requester)]
    assert len(life.effects) == effects
    life.consume()
    assert life.run.announcement_consumed_ms is not None


@pytest.mark.requirement("delivery:redelivered")
def test_a_result_that_waits_to_be_read_is_not_offered_twice() -> None:
    life = in_phase(Phase.COMPLETED)

    assert life.apply(Redelivered(at_ms=life.at_ms, by="me")).stale


@pytest.mark.requirement("delivery:consumed-once")
def test_reading_a_result_ends_its_delivery() -> None:
    assert in_phase(Phase.ANNOUNCING).consume().phase is Phase.CLEANUP_PENDING
    assert in_phase(Phase.ANNOUNCE_DEFERRED).consume().phase is Phase.CLEANUP_PENDING


@pytest.mark.requirement("delivery:traced", "timeline:traces-a-run")
def test_a_try_that_was_under_way_when_the_result_was_read_is_still_on_record() -> None:
    life = in_phase(Phase.ANNOUNCING).consume().deliver(Delivered(path=DeliveryPath.DIRECT))

    assert life.phase is Phase.CLEANUP_PENDING
    assert life.run.delivery is not None
    assert [each.outcome for each in life.run.delivery.tries] == [
        Delivered(path=DeliveryPath.DIRECT)
    ]
    assert len(life.of(CleanUp)) == 1


@pytest.mark.requirement("children:parent-told")
def test_a_nested_result_that_was_read_is_known_to_the_parent() -> None:
    life = Life.begin(requester_run=RunId("r-parent"), depth=2).start().exit().consume()

    assert len(life.of(MarkTold, life.followups)) == 1


@pytest.mark.requirement("cleanup:keep-or-delete")
@pytest.mark.parametrize("cleanup", list(Cleanup))
def test_cleaning_up_deletes_sessions_only_when_asked(cleanup: Cleanup) -> None:
    life = Life.begin(RunSpec(task="do it", cleanup=cleanup)).start().result("kept").exit()
    life.deliver().clean_up()

    assert life.of(CleanUp) == [CleanUp(delete=cleanup is Cleanup.DELETE)]
    assert (life.phase, life.run.result) == (Phase.COMPLETED, "kept")
    life.apply(Archived(at_ms=life.at_ms))
    assert (life.run.times.archived_at_ms, life.run.result) == (life.at_ms, "kept")


@pytest.mark.requirement("sessions:continued-by")
@pytest.mark.parametrize(
    "phase",
    [
        *(Phase.ANNOUNCING, Phase.ANNOUNCE_DEFERRED, Phase.CLEANUP_PENDING),
        *(Phase.COMPLETED, Phase.COMPLETED_GIVEUP),
    ],
)
def test_every_ended_run_can_learn_who_goes_on_with_it(phase: Phase) -> None:
    life = in_phase(phase)
    life.apply(Continued(at_ms=life.at_ms, run_id=RunId("r-2")))
    assert (life.phase, life.run.session.continued_by) == (phase, RunId("r-2"))

    life.apply(Continued(at_ms=life.at_ms, run_id=RunId("r-3")))

    assert life.run.session.continued_by == RunId("r-3")
