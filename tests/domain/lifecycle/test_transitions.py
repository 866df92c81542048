"""Legal and stale pairs of phase and event are data, and complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import NOW_MS, Life, in_phase
from tests.domain.event_makers import STEPS_MAX, a_life, lived, next_event

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.lifecycle.transitions import STALE, TRANSITIONS
from subagents.domain.run.events import EVENT_TYPES, SignalReceived, Spawned, TimerFired
from subagents.domain.run.run import Exit, Phase
from subagents.domain.run.signals import Exited
from subagents.errors import IllegalTransition


@pytest.mark.requirement("lifecycle:transitions-are-data")
@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_is_reached_by_ordinary_steps(phase: Phase) -> None:
    assert in_phase(phase).phase is phase


@pytest.mark.requirement("lifecycle:transitions-are-data")
def test_no_pair_is_both_legal_and_stale() -> None:
    assert not STALE & set(TRANSITIONS)
    known = {kind for _, kind in TRANSITIONS} | {kind for _, kind in STALE} | {Spawned}
    assert known == set(EVENT_TYPES)


@pytest.mark.requirement("lifecycle:transitions-are-data")
def test_a_run_begins_with_its_spawn_and_never_has_a_second_one() -> None:
    life = Life.begin()

    with pytest.raises(IllegalTransition):
        life.apply(life.journal[0])
    with pytest.raises(IllegalTransition, match=r"run \? in phase none cannot take TimerFired"):
        reduce(None, TimerFired(at_ms=NOW_MS))


@pytest.mark.requirement("signals:late")
@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.WAITING, Phase.RUNNING}))
def test_a_late_signal_is_journaled_and_is_no_news(phase: Phase) -> None:
    life = in_phase(phase)
    seq, before = life.run.seq, life.phase

    exited = Exited(key="late", exit=Exit(code=0), drained=True)
    step = life.apply(SignalReceived(at_ms=life.at_ms, attempt=9, signal=exited))

    assert (life.run.seq, life.phase) == (seq + 1, before)
    assert step.stale
    assert (step.effects, step.followups, step.messages) == ((), (), ())


@pytest.mark.requirement("lifecycle:transitions-are-data")
@given(st.data())
def test_phases_move_only_along_the_table(data: DataObject) -> None:
    life = a_life(data)
    for _ in range(STEPS_MAX):
        event, before = next_event(data, life), life.run
        pair = (before.phase, type(event))
        try:
            step = life.apply(event)
        except IllegalTransition:
            assert pair not in TRANSITIONS
            assert pair not in STALE
            continue
        if step.stale:
            assert life.phase is before.phase
        else:
            assert life.phase in TRANSITIONS[pair]


@pytest.mark.requirement("lifecycle:illegal-changes-nothing")
@given(st.data())
def test_an_illegal_event_is_refused_by_name_and_changes_nothing(data: DataObject) -> None:
    life = lived(data)
    for _ in range(STEPS_MAX):
        event = next_event(data, life)
        if (life.phase, type(event)) in TRANSITIONS or (life.phase, type(event)) in STALE:
            continue
        before = life.run
        with pytest.raises(IllegalTransition) as refused:
            reduce(life.run, event)
        assert life.run == before
        assert (refused.value.phase, refused.value.event) == (life.phase, type(event).__name__)
        break
