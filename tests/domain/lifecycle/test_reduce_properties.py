"""What holds for every life, whatever happens in it and in which order."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import Life, a_contract
from tests.domain.event_makers import STEPS_MAX, a_life, lived, next_event

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.lifecycle.transitions import STALE
from subagents.domain.rules.deadlines import next_due_ms
from subagents.domain.rules.retry import retries_after_checks
from subagents.domain.run.effects import Announce, TellDependants, Verify
from subagents.domain.run.events import Event, TimerFired, decode_event, encode_event
from subagents.domain.run.outcome import Outcome, Status, Verdict
from subagents.domain.run.run import MessageKind, Phase, Run
from subagents.domain.run.spec import OnFailure, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import IllegalTransition

CANCELLED = Outcome(status=Status.CANCELLED)
TIMELESS = {Phase.QUEUED, Phase.VERIFYING, Phase.ANNOUNCING, Phase.CLEANUP_PENDING} | {
    Phase.COMPLETED,
    Phase.COMPLETED_GIVEUP,
}


def observable(run: Run) -> Run:
    """The run without its event counters."""
    end = run.conclusion
    return replace(run, seq=0, conclusion=None if end is None else replace(end, seq=0))


@pytest.mark.requirement("lifecycle:announced-once")
@given(st.data())
def test_whatever_happens_a_run_is_announced_at_most_once(data: DataObject) -> None:
    life = lived(data)

    texts = [m for m in life.messages if m.kind is MessageKind.ANNOUNCEMENT]
    assert len(texts) == len(life.of(TellDependants, life.followups)) == life.run.is_settled
    first = [effect for effect in life.of(Announce) if effect.number == 1]
    assert len(first) == life.run.is_settled


@pytest.mark.requirement("journal:fold-is-the-run", "field:stop-and-resume-lost-tasks")
@given(st.data())
def test_folding_the_written_journal_gives_the_stored_run(data: DataObject) -> None:
    life = lived(data)

    folded: Run | None = None
    for event in life.journal:
        folded = reduce(folded, decode_event(encode_event(event))).run

    assert folded == life.run
    assert life.run.seq == len(life.journal)


def _doubled(data: DataObject) -> tuple[Life, Life]:
    """The same life twice; in the second every fact of a runtime or timer comes two times."""
    once = a_life(data)
    twice = Life(run=once.run, journal=[])
    for _ in range(STEPS_MAX):
        event = next_event(data, once)
        with suppress(IllegalTransition):
            once.apply(event)
            twice.apply(event)
            if isinstance(event, REPEATABLE):
                twice.apply(event)
    return once, twice


_ONCE = {"AttemptStartFailed", "TimerFired", "LeaseExpired", "ChildAlerted", "ClockStepped"}
REPEATABLE: tuple[type[Event], ...] = tuple(
    {kind for _, kind in STALE if kind.__name__ not in _ONCE}
)


@pytest.mark.requirement("signals:doubled", "contract:verified-once")
@given(st.data())
def test_facts_that_come_twice_change_nothing_observable(data: DataObject) -> None:
    once, twice = _doubled(data)

    assert observable(twice.run) == observable(once.run)
    assert twice.of(Announce) == [e for e in once.effects if isinstance(e, Announce)]
    assert twice.of(Verify) == once.of(Verify)


@pytest.mark.requirement("retry:attempts-are-bounded")
@given(st.data())
def test_attempts_never_exceed_the_retries_after_errors_and_after_failed_checks(
    data: DataObject,
) -> None:
    life = lived(data)

    spec, contract = life.run.spec, life.run.spec.verification
    once = contract is not None and contract.on_failure is OnFailure.RETRY_ONCE
    extra = once and not spec.retry_until_verified
    assert len(life.run.attempts) <= spec.attempts_max + extra
    assert life.run.retry.used <= spec.retry_count
    assert retries_after_checks(life.run) <= spec.retry_until_verified


FOUND = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("xyz"))


@pytest.mark.requirement("retry:until-verified", "retry:until-verified-sameness")
@given(st.lists(FOUND, min_size=6, max_size=6), st.integers(1, 5))
def test_a_failed_contract_is_tried_again_until_nothing_changes_or_the_retries_are_used(
    found: list[tuple[str, str, str]], retries: int
) -> None:
    """Each is how the check failed, and the files before the checks and after them."""
    spec = RunSpec(task="do it", retry_until_verified=retries, verification=a_contract())
    life = Life.begin(spec)
    for reason, before, after in found:
        if life.run.is_settled:
            break
        life.start().exit()
        life.verify(Verdict.FAILED, reason=reason, files_found=before, files_left=after)
        if not life.run.is_settled:
            life.timer()

    tried = len(life.run.attempts)
    same = [then[0] == now[0] and then[2] == now[1] for then, now in pairwise(found[: retries + 1])]
    assert tried == (same.index(True) + 2 if True in same else retries + 1)
    error = life.run.outcome and life.run.outcome.error
    why = "no file changed, and the same checks failed in the same way"
    assert (error or "").startswith(f"stopped after attempt {tried}: ")
    assert (why in (error or "")) is (True in same)


@pytest.mark.requirement("lifecycle:outcome-is-final")
@given(st.data())
def test_an_outcome_never_changes_once_it_is_known(data: DataObject) -> None:
    life = a_life(data)
    for _ in range(STEPS_MAX):
        before = life.run
        event = next_event(data, life)
        with suppress(IllegalTransition):
            life.apply(event)
        if before.outcome is not None:
            assert life.run.outcome == before.outcome
            assert life.run.result == before.result
            assert life.run.is_settled
    assert (life.run.outcome is not None) == life.run.is_settled


@pytest.mark.requirement("timers:due-times")
@given(st.data())
def test_a_timer_at_the_due_time_always_moves_it(data: DataObject) -> None:
    """Else a node would fire it for ever."""
    life = lived(data)
    due = next_due_ms(life.run)
    has_clock = life.run.spec.budget is not None and life.run.spec.budget.max_seconds is not None
    is_planned = life.run.control.planned is not None
    if life.phase in TIMELESS - ({Phase.QUEUED} if has_clock else set()) and not is_planned:
        assert due is None
    if due is not None:
        at_ms = max(due, life.at_ms)
        after = reduce(life.run, TimerFired(at_ms=at_ms)).run
        newer = next_due_ms(after)
        assert newer is None or newer > due or (newer == due > at_ms)


@pytest.mark.requirement("lifecycle:no-dead-ends")
@given(st.data())
def test_every_open_run_can_still_be_cancelled_to_its_end(data: DataObject) -> None:
    """Cancel, then let everything that was asked for answer: nothing may hang."""
    life = lived(data)
    life.cancel()
    if not life.run.attempts or life.run.is_settled:
        assert life.run.is_settled
        return
    for child in life.run.active_children:
        life.child_ends(CANCELLED, None, int(child.run_id[-1]))
    if life.phase is Phase.SPAWNING:
        life.fail_start("cancelled before it was started")
    if life.phase is Phase.ENDING and life.run.attempt.outcome is not None:
        life.start()
    if life.phase is Phase.ENDING:
        life.timer()
    if life.phase is Phase.RUNNING:
        life.exit(signal=15)
    assert life.run.is_settled, life.phase
