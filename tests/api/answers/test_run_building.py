"""What callers read: names, nulls for the unknown, and nothing secret."""

import msgspec
import pytest
from tests.api import run_journals as runs
from tests.api.run_journals import exited, journal, result, run_after, slot, spawned, started
from tests.builders import Life, a_contract

from subagents.api.answers import event_building, run_building
from subagents.api.answers.explain import fold
from subagents.api.wire import run_answers as wire
from subagents.api.wire.wire_struct import document_of
from subagents.domain.run import events as e
from subagents.domain.run.outcome import Check, CheckType, Verdict, Verification
from subagents.domain.run.run import Confidence, Report, ReportedArtifact, ReportStatus, Request
from subagents.domain.run.signals import ReportSeen, UsageSeen
from subagents.domain.run.spec import Artifact, Contract, OnFailure, RunSpec
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import RequestId, replace
from subagents.engine.runs.spawn import Receipt
from subagents.text import iso

CHECKED = RunSpec(task="work", verification=Contract(artifacts=(Artifact(path="out"),)))
LIVE = (spawned(), slot(), started())
DONE = (*LIVE, result(), exited())
ASKED = e.RequestAsked(
    at_ms=1000,
    request=Request(
        id=RequestId(f"{runs.ID}:q1"), attempt=1, question="?", asked_at_ms=1000, deadline_ms=9000
    ),
)


def verified(verdict: Verdict, *, passed: bool) -> e.VerificationFinished:
    check = Check(type=CheckType.ARTIFACT, target="out", passed=passed, reason="r")
    found = Verification(verdict=verdict, checks=(check,), verified_at_ms=5)
    return e.VerificationFinished(at_ms=2000, attempt=1, verification=found)


@pytest.mark.requirement("wire:run-status")
@pytest.mark.parametrize(
    ("events", "word"),
    [
        ((spawned(waits_for=("a",)),), "waiting"),
        ((spawned(),), "queued"),
        ((spawned(), e.Paused(at_ms=1, by="x")), "paused"),
        ((spawned(), slot()), "running"),
        (LIVE, "running"),
        ((*LIVE, ASKED), "blocked"),
        ((spawned(CHECKED), slot(), started(), result(), exited()), "running"),
        ((spawned(RunSpec(task="w", retry_count=1)), slot(), started(), exited(1)), "retrying"),
        (DONE, "ok"),
        ((*LIVE, exited(1)), "error"),
        ((spawned(), e.CancelRequested(at_ms=1, by="x")), "cancelled"),
    ],
)
def test_run_status_is_one_word_that_fits_the_run(events: tuple[e.Event, ...], word: str) -> None:
    assert run_building.run_status(run_after(*events)) == word


@pytest.mark.requirement("report:in-tree", "notices:pending")
def test_a_tree_shows_what_the_worker_claims_and_that_it_is_blocked_but_not_why() -> None:
    claim = Report(summary="s", status=ReportStatus.PARTIAL, confidence=Confidence.LOW)
    said = runs.signal(ReportSeen(key="r", report=claim))
    shown = {"status": ReportStatus.PARTIAL, "confidence": Confidence.LOW, "summary": "s"}

    assert document_of(run_building.node(run_after(*LIVE), [], 9000))["claim"] is None
    assert document_of(run_building.node(run_after(*LIVE, said), [], 9000))["claim"] == shown
    ended = run_after(*LIVE, said, result(), exited())
    assert document_of(run_building.node(ended, [], 9000))["claim"] == shown
    blocked = document_of(run_building.node(run_after(*LIVE, ASKED), [], 9000))
    assert (blocked["runStatus"], blocked["pendingRequestCount"]) == ("blocked", 1)
    assert "blockedReason" not in blocked


@pytest.mark.requirement("wire:row")
def test_a_row_has_every_name_of_the_contract_and_times_as_iso_8601() -> None:
    row = document_of(run_building.shown(wire.RunRow, run_after(*DONE), 9000))

    assert set(row) == {
        *("runId", "label", "agentId", "runtime", "sessionKey", "requester", "depth", "phase"),
        *("runStatus", "outcome", "attempt", "attemptsMax", "pendingRequestCount", "blockedReason"),
        *("latestProgress", "usage", "createdAt", "startedAt", "endedAt", "phaseSinceAt", "why"),
        *("task", "tags", "subtreeUsage", "vacuous", "directory", "model", "planId", "planName"),
        *("wait", "lastSignAt", "claim", "verdict", "budget", "chargedTo", "readAt"),
        *("requesterRun", "retryFrom", "below", "cancelAt", "interruptAt", "state", "tookMs"),
    }
    assert (row["state"], row["tookMs"]) == ("ok", 1000)
    assert row["createdAt"] == "1970-01-01T00:00:01.000Z"
    assert row["endedAt"] == "1970-01-01T00:00:02.000Z"
    assert row["outcome"] == {"status": "ok", "reason": None, "error": None}


@pytest.mark.requirement("wire:usage-unknown-is-null")
def test_unknown_usage_is_null_and_a_part_of_it_too() -> None:
    known = runs.signal(UsageSeen(key="u", usage=Usage(tokens_in=5)))

    assert document_of(run_building.shown(wire.RunRow, run_after(*LIVE), 0))["usage"] is None
    assert document_of(run_building.shown(wire.RunRow, run_after(*LIVE, known), 0))["usage"] == {
        "tokens": 5,
        "tokensIn": 5,
        "tokensOut": None,
        "tokensCacheRead": None,
        "tokensCacheWrite": None,
        "costUsd": None,
        "costUnknownRuns": 0,
    }


@pytest.mark.requirement("wire:verification")
@pytest.mark.parametrize(
    ("verdict", "passed", "word"),
    [
        (Verdict.PASSED, True, "passed"),
        (Verdict.FAILED, False, "failed"),
        (Verdict.COULD_NOT_CHECK, False, "skipped"),
    ],
)
def test_a_verdict_reads_passed_failed_or_skipped(
    verdict: Verdict,
    passed: bool,  # noqa: FBT001 - a column of the table
    word: str,
) -> None:
    run = run_after(
        spawned(CHECKED), slot(), started(), result(), exited(), verified(verdict, passed=passed)
    )

    found = document_of(run_building.shown(wire.RunResult, run))["verification"]

    assert isinstance(found, dict)
    assert found["status"] == word
    assert found["verifiedAt"] == "1970-01-01T00:00:00.005Z"
    assert found["checks"] == [
        {"type": "artifact", "target": "out", "passed": passed, "reason": "r", "evidence": None}
    ]


@pytest.mark.requirement("wire:verification")
def test_a_contract_that_never_ran_is_skipped_and_no_contract_is_null() -> None:
    failed = run_after(spawned(CHECKED), slot(), started(), exited(1))

    assert run_building.verification(failed) == wire.Verification(status="skipped")
    assert run_building.verification(run_after(*DONE)) is None


@pytest.mark.requirement("wire:artifacts")
def test_artifacts_are_those_of_the_contract_then_those_the_worker_reported() -> None:
    report = Report(
        summary="s",
        artifacts=(
            ReportedArtifact(path="extra", description="e"),
            ReportedArtifact(path="out", description="o"),
        ),
    )
    run = run_after(
        spawned(CHECKED),
        slot(),
        started(),
        runs.signal(ReportSeen(key="r", report=report)),
        exited(),
        verified(Verdict.PASSED, passed=True),
    )

    assert run_building.artifacts(run) == [
        wire.ResultFile(path="out", description="o", verified=True),
        wire.ResultFile(path="extra", description="e", verified=False),
    ]


@pytest.mark.requirement("wire:secrets-hidden")
def test_values_of_the_agents_env_appear_in_no_document() -> None:
    run = run_after(*DONE)
    shown = [
        document_of(run_building.detail(run, 0)),
        *(document_of(event_building.timeline_event(each)) for each in fold(journal(*DONE))),
    ]

    text = msgspec.json.encode(shown).decode()

    assert "planted-secret" not in text
    assert '"KEY":"(hidden)"' in text


@pytest.mark.requirement("wire:secrets-hidden")
def test_values_of_a_judges_env_appear_in_no_document_of_the_judged_run() -> None:
    event = spawned(CHECKED)
    event = replace(event, resolved=replace(event.resolved, judge=event.resolved, options={}))
    shown = [
        document_of(run_building.detail(run_after(event), 0)),
        *(document_of(event_building.timeline_event(each)) for each in fold(journal(event))),
    ]

    text = msgspec.json.encode(shown).decode()

    assert "planted-secret" not in text
    assert '"judge":{"agentId":"quick"' in text


@pytest.mark.requirement("wire:detail")
def test_details_keep_the_parameters_word_for_word_and_cut_only_the_result() -> None:
    spec = RunSpec(task="t" * 1000, retry_count=2)
    run = run_after(spawned(spec), slot(), started(), result("é" * 9000), exited())

    detail = document_of(run_building.detail(run, 0))

    assert detail["originalSpawnParams"] == {"task": "t" * 1000, "retryCount": 2}
    assert str(detail["task"]).endswith("… (500 more characters)")
    assert str(detail["result"]).endswith("… (1000 more characters)")
    assert detail["resultBytes"] == 18_000
    assert document_of(run_building.shown(wire.StoredResult, run))["result"] == "é" * 9000


@pytest.mark.requirement("wire:detail", "attempts:node")
def test_each_attempt_names_the_daemon_that_started_it_where_that_is_recorded() -> None:
    for node in ("box-1", None):
        run = run_after(spawned(), replace(slot(), node=node), started())

        attempts = document_of(run_building.detail(run, 0))["attempts"]

        assert isinstance(attempts, list)
        assert [each["node"] for each in attempts] == [node]


@pytest.mark.requirement("wire:timeline")
def test_an_event_has_its_data_apart_and_long_texts_cut() -> None:
    (first, *_, last) = [
        document_of(event_building.timeline_event(each))
        for each in fold(journal(*LIVE, runs.result("x" * 3000)))
    ]

    assert (first["seq"], first["type"], first["phase"]) == (1, "Spawned", "queued")
    assert isinstance(last["data"], dict)
    assert set(last["data"]) == {"attempt", "signal"}
    assert last["data"]["signal"]["text"] == "x" * 2000 + "… (1000 more characters)"


@pytest.mark.requirement("wire:receipt")
def test_a_repeated_receipt_says_that_nothing_new_was_started() -> None:
    run = run_after(spawned())

    first = document_of(run_building.receipt(Receipt(run=run, warnings=("w",))))
    again = document_of(run_building.receipt(Receipt(run=run, repeated=True)))

    assert (first["status"], first["warnings"], first["repeated"]) == ("accepted", ["w"], False)
    assert "made run r-0000000001 before" in str(again["note"])


@pytest.mark.requirement("verification:retry-on-record")
def test_the_retry_after_a_failed_verification_is_told_with_its_time() -> None:
    wanted = RunSpec(task="work", verification=a_contract(OnFailure.RETRY_ONCE))
    life = Life.begin(wanted).start().result("done").exit()
    assert run_building.shown(wire.StoredResult, life.run).retry_attempted_at is None

    life.verify(Verdict.FAILED)
    told = iso(life.at_ms)
    assert run_building.shown(wire.StoredResult, life.run).retry_attempted_at == told

    ended = life.timer().start().result("done").exit().verify(Verdict.PASSED).run
    assert run_building.shown(wire.RunResult, ended).retry_attempted_at == told


@pytest.mark.requirement("wire:by-name")
def test_a_field_that_an_answer_does_not_have_is_refused_and_not_left_out() -> None:
    run = run_after(spawned())
    with pytest.raises(TypeError, match="RunRow has no tsak"):
        run_building.shown(wire.RunRow, run, 0, None, tsak="x")
