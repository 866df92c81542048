"""What one event makes of the live runs: without a store, a clock or a loop."""

import logging
from typing import Any

import pytest
from tests.builders import NOW_MS, a_contract, a_resolved, a_verification, spawned
from tests.engine.world import Ids

from subagents.domain.run.events import (
    Archived,
    AttemptStarted,
    CancelRequested,
    Event,
    SignalReceived,
    SlotGranted,
    Spawned,
    VerificationFinished,
)
from subagents.domain.run.outcome import Verdict
from subagents.domain.run.run import Exit, Phase, Run
from subagents.domain.run.signals import Exited
from subagents.domain.run.spec import PlanStep, RunSpec
from subagents.domain.run.values import RunId
from subagents.engine.kernel import cascade
from subagents.engine.kernel.live_runs import Failure, LiveRuns
from subagents.errors import Fenced, IllegalTransition, StoreUnavailable
from subagents.ports import Batch

STARTED = AttemptStarted(at_ms=NOW_MS, attempt=1)
EXITED = SignalReceived(
    at_ms=NOW_MS, attempt=1, signal=Exited(key="exit", exit=Exit(code=0), drained=True)
)


class Host:
    """As little as hosts live runs: it writes nothing, and says that all was written."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.runs = LiveRuns(
            Ids(),
            place_of=lambda _run: "box",
            secrets_of=lambda _run: (),
            may_start=lambda _run: True,
            recorded=lambda *_: None,
            on_work=lambda: self.told.append("work"),
            on_torn=self.tear,
        )

    def tear(self, error: Failure) -> None:
        self.told.append("torn")
        self.runs.failure = error

    def spawn(self, number: int, *, jobs: int | None = None, **changes: Any) -> Run:
        resolved = a_resolved(lane_slots=1)
        if jobs is not None:
            step = PlanStep(plan="r-0000000001", position=number, jobs=jobs)
            resolved = a_resolved(lane_slots=9, lane=f"lane{number % 2}", step=step)
        event = spawned(resolved=resolved, run_id=RunId(f"r-{number:010}"), **changes)
        return self.runs.apply(event.run_id, event)

    def write(self) -> Batch:
        self.runs.take()
        return self.runs.publish()


def happened(batch: Batch) -> list[tuple[RunId, type[Event]]]:
    return [(each.run_id, type(each.event)) for each in batch.journal]


@pytest.mark.requirement("commit:all-or-nothing", "lanes:caps")
def test_the_slot_that_an_end_frees_is_granted_in_the_batch_of_that_end() -> None:
    host = Host()
    first, second = host.spawn(1), host.spawn(2)
    assert (first.phase, second.phase) == (Phase.SPAWNING, Phase.QUEUED)
    host.runs.apply(first.id, STARTED)
    host.write()
    assert host.runs.apply(first.id, EXITED).is_settled

    batch = host.runs.take()

    assert happened(batch) == [(first.id, SignalReceived), (second.id, SlotGranted)]
    assert host.runs.live[second.id].phase is Phase.SPAWNING
    assert host.runs.published[second.id].phase is Phase.QUEUED, "nobody wrote that yet"
    host.runs.publish()
    assert host.runs.published[second.id].phase is Phase.SPAWNING


@pytest.mark.requirement("commit:all-or-nothing", "plan:jobs")
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_place_in_its_plan_that_an_end_frees_is_given_in_the_batch_of_that_end(
    jobs: int,
) -> None:
    host = Host()
    runs = [host.spawn(number, jobs=jobs) for number in range(1, 7)]
    assert [run.phase for run in runs].count(Phase.SPAWNING) == jobs
    host.runs.apply(runs[0].id, STARTED)
    host.write()
    assert host.runs.apply(runs[0].id, EXITED).is_settled

    (_, (begun, event)) = happened(host.runs.take())

    assert (begun, event) in [(run.id, SlotGranted) for run in runs[jobs:]]


@pytest.mark.requirement("plan:jobs")
def test_a_run_keeps_its_place_in_its_plan_while_its_work_is_checked() -> None:
    host = Host()
    checked, other = [
        host.spawn(number, jobs=1, spec=RunSpec(task="x", verification=a_contract()))
        for number in (1, 2)
    ]
    host.runs.apply(checked.id, STARTED)
    assert host.runs.apply(checked.id, EXITED).phase is Phase.VERIFYING
    host.write()
    assert host.runs.live[other.id].phase is Phase.QUEUED

    met = VerificationFinished(at_ms=NOW_MS, attempt=1, verification=a_verification(Verdict.PASSED))
    host.runs.apply(checked.id, met)

    assert happened(host.runs.take())[-1] == (other.id, SlotGranted)


@pytest.mark.requirement("attempts:node")
def test_a_slot_is_granted_on_the_node_whose_runs_these_are() -> None:
    host = Host()

    assert [attempt.node for attempt in host.spawn(1).attempts] == ["box"]
    assert [each.event.node for each in host.runs.batch.journal[1:]] == ["box"]  # type: ignore[union-attr]


@pytest.mark.requirement("commit:nothing-observable-before")
def test_what_is_applied_while_a_batch_is_written_is_not_published_with_it() -> None:
    host = Host()
    run = host.spawn(1)
    written = host.runs.take()
    host.runs.apply(run.id, STARTED)

    assert host.runs.publish() is written
    assert happened(written) == [(run.id, Spawned), (run.id, SlotGranted)]
    assert host.runs.published[run.id].phase is Phase.SPAWNING
    assert happened(host.write()) == [(run.id, AttemptStarted)]
    assert host.runs.published[run.id].phase is Phase.RUNNING


@pytest.mark.requirement("commit:groups")
def test_the_host_is_told_once_for_each_batch_that_there_is_something_to_write() -> None:
    host = Host()
    run = host.spawn(1)
    host.spawn(2)
    assert (host.told, host.runs.has_work) == (["work"], True)
    host.write()
    assert not host.runs.has_work
    host.runs.apply(run.id, STARTED)

    assert host.told == ["work", "work"]


@pytest.mark.requirement("ledger:keys")
def test_the_same_key_again_changes_nothing_also_after_the_run_was_brought_back() -> None:
    host, later = Host(), Host()
    run = host.spawn(1)
    started = host.runs.apply(run.id, STARTED, key="start")
    assert host.runs.apply(run.id, EXITED, key="start") is started
    later.runs.bring(started, {"start"})

    assert later.runs.apply(run.id, EXITED, key="start") is started
    assert not later.runs.has_work


@pytest.mark.requirement("commit:all-or-nothing")
def test_what_was_torn_takes_nothing_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("broken")

    host = Host()
    host.spawn(1)
    waiting = host.spawn(2)
    monkeypatch.setattr(cascade, "follow", breaks)
    cancelled = CancelRequested(at_ms=NOW_MS, by="me", reason="enough")
    with caplog.at_level(logging.CRITICAL), pytest.raises(RuntimeError, match="broken"):
        host.runs.apply(waiting.id, cancelled)

    assert host.told == ["work", "torn"]
    with pytest.raises(StoreUnavailable, match="could not be applied"):
        host.spawn(3)


@pytest.mark.requirement("recovery:fenced")
def test_live_runs_of_a_store_that_is_anothers_take_nothing_any_more() -> None:
    host = Host()
    run = host.spawn(1)
    host.runs.failure = Fenced("epoch 1 is over")

    with pytest.raises(Fenced, match="epoch 1 is over"):
        host.runs.apply(run.id, STARTED)
    assert host.runs.live[run.id] is run


@pytest.mark.requirement("commit:all-or-nothing")
def test_an_illegal_event_changes_nothing() -> None:
    host = Host()
    run = host.spawn(1)
    host.write()
    with pytest.raises(IllegalTransition):
        host.runs.apply(run.id, Archived(at_ms=NOW_MS))

    assert host.runs.live[run.id] is run
    assert (host.runs.has_work, host.runs.failure) == (False, None)
