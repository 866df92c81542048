"""The words for why a run is where it is, and for how it came there."""

import pytest
from tests.api import run_journals as runs
from tests.api.run_journals import exited, journal, result, run_after, slot, spawned, started, steps

from subagents.api.answers.explain import fold, why_now
from subagents.domain.rules.admission import LaneUse
from subagents.domain.run import events as e
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.outcome import (
    OK,
    Check,
    CheckType,
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Outcome,
    Status,
    Verdict,
    Verification,
)
from subagents.domain.run.run import Answer, Decision, DeliveryTry, Phase, Priority, Report, Request
from subagents.domain.run.signals import ReportSeen
from subagents.domain.run.spec import Artifact, Contract, Judge, RunSpec
from subagents.domain.run.values import RequestId, RunId, replace

RETRIES = RunSpec(task="work", retry_count=3, retry_delay=4000)
CHECKED = RunSpec(task="work", verification=Contract(artifacts=(Artifact(path="out"),)))
LIVE = (spawned(), slot(), started())
DONE = (*LIVE, result(), exited())
QUESTION = Request(
    id=RequestId(f"{runs.ID}:q1"),
    attempt=1,
    question="blue or\ngreen?",
    asked_at_ms=1000,
    deadline_ms=61_000,
)
CHILD_A = Child(run_id=RunId("r-a"), label="a")
FAILED_CHECK = Verification(
    verdict=Verdict.FAILED,
    checks=(Check(type=CheckType.ARTIFACT, target="out", passed=False, reason="is missing"),),
)


PASSED_CHECK = (Check(type=CheckType.ARTIFACT, target="out", passed=True),)


def asks_a_judge() -> e.Spawned:
    contract = Contract(
        artifacts=(Artifact(path="out"),), judge=Judge(agent_id="critic", criteria="good")
    )
    event = spawned(RunSpec(task="work", verification=contract))
    judge = replace(event.resolved, agent_id="critic")
    return replace(event, resolved=replace(event.resolved, judge=judge))


JUDGED = (
    *(asks_a_judge(), slot(), started(), result(), exited()),
    e.ChecksPassed(at_ms=2000, attempt=1, checks=PASSED_CHECK),
    e.ChildSpawned(
        at_ms=2000, child=Child(run_id=RunId("r-judge"), label="judge of L", judges=1, told=True)
    ),
)


def delivery(outcome: DeliveryOutcome) -> e.DeliverySettled:
    record = DeliveryTry(
        at_ms=2000,
        target=runs.MAIN,
        requester_depth=0,
        nested=False,
        route_mode="fallback",
        phases=("direct-primary", "queue-fallback"),
        outcome=outcome,
        idempotency_key="k",
    )
    return e.DeliverySettled(at_ms=2000, record=record)


WHY: list[tuple[tuple[e.Event, ...], Phase, str]] = [
    (JUDGED, Phase.VERIFYING, "1 check passed; agent critic judges it as run r-judge"),
    (
        (*JUDGED, e.CancelRequested(at_ms=2000, by="me")),
        Phase.VERIFYING,
        "cancelled; its judge, run r-judge, is ending",
    ),
    (
        (spawned(waits_for=("a", "b")),),
        Phase.WAITING,
        'waits for 2 runs "a", "b"',
    ),
    ((spawned(),), Phase.QUEUED, "no free slot (4/4 used)"),
    (
        (spawned(), e.Paused(at_ms=1000, by="agent:main:main")),
        Phase.QUEUED,
        "paused; it continues after: subagents resume r-0000000001",
    ),
    (
        (spawned(), slot()),
        Phase.SPAWNING,
        'runtime "scripted" was told to start attempt 1; not yet confirmed',
    ),
    (LIVE, Phase.RUNNING, "attempt 1 is working"),
    (
        (spawned(RETRIES, timeout_ms=31_000), slot(), started()),
        Phase.RUNNING,
        "attempt 1 of 4 is working, for at most 30s more",
    ),
    (
        (*LIVE, e.RequestAsked(at_ms=1000, request=QUESTION)),
        Phase.RUNNING,
        'asks: "blue or green?" (subagents answer r-0000000001:q1 TEXT; it times out in 59s)',
    ),
    (
        (*LIVE, e.ParentNotified(at_ms=1000, message="disk\nfull", priority=Priority.BLOCKER)),
        Phase.RUNNING,
        'is blocked: "disk full" (subagents answer r-0000000001:n1 TEXT)',
    ),
    (
        (*LIVE, e.CancelRequested(at_ms=1000, by="me", reason="enough")),
        Phase.RUNNING,
        "cancelled by me (enough); attempt 1 is being stopped",
    ),
    (
        (*LIVE, e.ChildSpawned(at_ms=1000, child=CHILD_A), result(), exited()),
        Phase.ENDING,
        'its own work is done; it waits for 1 active sub-agent ("a") [descendants-active]',
    ),
    (
        (spawned(CHECKED), slot(), started(), result(), exited()),
        Phase.VERIFYING,
        "its contract is being checked (1 artifact)",
    ),
    (
        (spawned(RETRIES), slot(), started(), exited(1)),
        Phase.RETRY_WAIT,
        "retry 1 of 3 due in 4s because: exit code 1",
    ),
    (DONE, Phase.ANNOUNCING, "completed successfully; telling main (delivery try 1)"),
    (
        (*DONE, delivery(Deferred(reason=DeferReason.REQUESTER_BUSY))),
        Phase.ANNOUNCE_DEFERRED,
        "because deferred: its requester is busy (try 1)",
    ),
    (
        (*DONE, delivery(DeliveryFailed(retryable=False, error="no such hook"))),
        Phase.COMPLETED_GIVEUP,
        "its delivery was given up after 1 try because failed, for good: no such hook; the result",
    ),
    (
        (*DONE, delivery(Delivered(path=DeliveryPath.DIRECT))),
        Phase.CLEANUP_PENDING,
        "completed successfully; delivered, cleaning up",
    ),
    (
        (
            *DONE,
            e.AnnouncementConsumed(at_ms=2000, reader="x", path=DeliveryPath.PULLED),
            e.CleanedUp(at_ms=2000),
        ),
        Phase.COMPLETED,
        "completed successfully; the result was taken",
    ),
]


@pytest.mark.requirement("why:now:every-phase")
@pytest.mark.parametrize(("events", "phase", "sentence"), WHY)
def test_one_sentence_says_why_a_run_is_in_its_phase(
    events: tuple[e.Event, ...], phase: Phase, sentence: str
) -> None:
    run = run_after(*events)

    assert run.phase is phase
    assert sentence in why_now(run, 2000, lane=LaneUse(used=4, slots=4))


@pytest.mark.requirement("why:now:cluster")
def test_in_a_cluster_it_is_said_where_a_run_works_and_what_it_waits_for_before() -> None:
    plain = spawned()
    labelled = replace(plain, resolved=replace(plain.resolved, place="gpu"))
    placed = e.AttemptPlaced(at_ms=1000, attempt=1, node="n2")
    for events, sentence in (
        ((spawned(), slot()), "waits for a node with a free slot, for attempt 1"),
        ((labelled, slot()), 'waits for a node with the label "gpu" and with a free slot'),
        ((spawned(), slot(), placed), "on n2 was told to start attempt 1; not yet confirmed"),
        ((spawned(), slot(), placed, started()), "attempt 1 on n2 is working"),
    ):
        assert sentence in why_now(run_after(*events), 2000, is_cluster=True)


@pytest.mark.requirement("why:now:cluster")
def test_a_full_lane_of_a_cluster_says_how_much_of_it_is_here() -> None:
    run = run_after(spawned())
    full = why_now(run, 2000, lane=LaneUse(used=1, slots=4, given=1))
    assert full == "no free slot: the cluster has 4 slots, of which 1 here"
    assert "about to get" in why_now(run, 2000, lane=LaneUse(used=0, slots=4, given=1))


@pytest.mark.requirement("why:now:every-phase")
def test_the_sentences_are_tested_for_every_phase() -> None:
    assert {phase for _, phase, _ in WHY} == set(Phase)


@pytest.mark.requirement("why:steps:whole-life")
def test_a_retried_run_is_told_step_by_step() -> None:
    events = (
        spawned(RETRIES, waits_for=("a",)),
        runs.settled("a", OK),
        slot(),
        started(),
        exited(1),
        e.TimerFired(at_ms=6000),
        slot(6000),
        started(2, 6000),
        e.SignalReceived(at_ms=6000, attempt=2, signal=result().signal),
        e.SignalReceived(at_ms=6000, attempt=2, signal=exited().signal),
        delivery(Delivered(path=DeliveryPath.QUEUED)),
        e.CleanedUp(at_ms=7000),
        e.AnnouncementConsumed(at_ms=8000, reader="cli", path=DeliveryPath.PULLED),
        e.Archived(at_ms=9000),
    )

    assert [step.text for step in steps(journal(*events))] == [
        'spawned by main for agent "quick"; waits for "a"',
        "dependency r-a completed successfully",
        'queued in lane "default"',
        'slot granted in lane "default" for attempt 1',
        "attempt 1 started (pid 7)",
        "attempt 1 exited with code 1",
        "retry 1 of 3 due in 4s because: exit code 1",
        "the retry is due",
        'queued in lane "default"',
        'slot granted in lane "default" for attempt 2',
        "attempt 2 started (pid 7)",
        "attempt 2 gave its result (4 bytes)",
        "attempt 2 exited with code 0",
        "completed successfully",
        "delivery to agent:main:main: delivered: it waits in the inbox",
        "cleaned up",
        "its result was fetched",
        "archived",
    ]


@pytest.mark.requirement("why:steps:stale")
def test_a_late_event_is_told_and_marked_as_having_changed_nothing() -> None:
    events = (*DONE, exited(1))

    late = steps(journal(*events))[-1]

    assert late.text == "attempt 1 exited with code 1 (late or doubled: changed nothing)"
    assert late.is_detail


@pytest.mark.requirement("why:steps:verification")
def test_a_failed_contract_is_told_with_its_checks() -> None:
    events = (
        spawned(CHECKED),
        slot(),
        started(),
        runs.signal(ReportSeen(key="r", report=Report(summary="all done"))),
        result(),
        exited(),
        e.VerificationFinished(at_ms=2000, attempt=1, verification=FAILED_CHECK),
    )

    texts = [step.text for step in steps(journal(*events))]

    assert 'attempt 1 reported complete: "all done"' in texts
    assert texts[-3:] == [
        "verifying (1 artifact)",
        "verification failed: out: is missing",
        "failed: out: is missing",
    ]


@pytest.mark.requirement("why:steps:judge")
def test_a_judge_is_told_from_being_asked_to_its_verdict() -> None:
    verdict = Verification(
        verdict=Verdict.PASSED,
        checks=(
            *PASSED_CHECK,
            Check(type=CheckType.JUDGE, target="judge (agent critic)", passed=True),
        ),
    )
    settled = e.ChildSettled(at_ms=2000, child=RunId("r-judge"), outcome=OK, result="{}")

    texts = [
        step.text
        for step in steps(
            journal(
                *JUDGED,
                settled,
                e.VerificationFinished(at_ms=2000, attempt=1, verification=verdict),
            )
        )
    ]

    assert "verifying (1 artifact, the judgement of agent critic)" in texts
    assert texts[-5:] == [
        "1 check passed; now agent critic judges",
        "run r-judge judges attempt 1",
        "judge r-judge completed successfully",
        "verification passed: 2/2 checks",
        "completed successfully",
    ]


@pytest.mark.requirement("why:steps:questions")
def test_questions_messages_and_children_are_told() -> None:
    answer = Answer(decision=Decision.ANSWER, text="blue", by="me", at_ms=1000)
    events = (
        *LIVE,
        e.RequestAsked(at_ms=1000, request=QUESTION),
        e.RequestAnswered(at_ms=1000, request_id=QUESTION.id, answer=answer),
        e.SteerRequested(at_ms=1000, by="me", message="hurry"),
        e.SteerSettled(at_ms=1000, number=1, taken=True),
        e.ParentNotified(at_ms=1000, message="half way"),
        e.ChildSpawned(at_ms=1000, child=CHILD_A),
        e.ChildSettled(at_ms=1000, child=CHILD_A.run_id, outcome=Outcome(status=Status.TIMEOUT)),
    )

    assert [step.text for step in steps(journal(*events))][3:] == [
        'asks: "blue or green?" (r-0000000001:q1)',
        'question r-0000000001:q1 was answered by me: "blue"',
        'message from me: "hurry"',
        "message 1 reached the worker",
        'tells its requester (info): "half way"',
        'spawned sub-agent "a" (r-a)',
        "sub-agent r-a timed out",
    ]


@pytest.mark.requirement("why:steps:report-text", "report-text:wrong-value")
def test_what_was_read_in_the_text_of_the_result_is_told_and_why_it_is_no_report() -> None:
    block = "[COMPLETION REPORT]\nstatus: {}\nsummary: all read\n[/COMPLETION REPORT]"
    told = {
        status: [
            step.text for step in steps(journal(*LIVE, result(block.format(status)), exited()))
        ]
        for status in ("complete", "done")
    }

    assert 'its text reports complete: "all read"' in told["complete"]
    assert (
        'no report: the completion report in the text has status "done" (allowed: complete,'
        " partial, failed)"
    ) in told["done"]


@pytest.mark.requirement("timeline:fold")
def test_folding_on_from_a_run_gives_the_same_as_folding_from_the_start() -> None:
    entries = journal(*DONE, exited())
    whole = list(fold(entries))

    assert [each.run for each in fold(entries[3:], whole[2].run)] == [
        each.run for each in whole[3:]
    ]
    assert [each.stale for each in whole] == [False, False, False, False, False, True]
