"""Every event says in words what happened; texts of workers stay texts inside the sentence."""

import re
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import NOW_MS, Life, a_verification, spawned
from tests.domain.event_makers import lived

from subagents.domain.run import effects
from subagents.domain.run import events as e
from subagents.domain.run import signals as s
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryPath,
    Reason,
    Skipped,
    SkipReason,
    Verdict,
)
from subagents.domain.run.run import (
    Answer,
    Confidence,
    Decision,
    Exit,
    Progress,
    Report,
    ReportStatus,
    Request,
)
from subagents.domain.run.values import RequestId, RunId
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.domain.run.workspace import Remains
from subagents.domain.text.event_words import (
    EFFECT_WORDS,
    SIGNAL_WORDS,
    WORDS,
    delivery_text,
    journal_line,
    sentence,
    span_mark,
)

RUN = Life.begin().start().run
ASKED = Request(id=RequestId("q1"), attempt=1, question="a\nb?", asked_at_ms=1, deadline_ms=None)
ANSWER = Answer(decision=Decision.ANSWER, text="b\nor a", by="me", at_ms=1)


def signal(value: s.Signal) -> e.Event:
    return e.SignalReceived(at_ms=NOW_MS, attempt=1, signal=value)


@pytest.mark.requirement("words:every-event")
def test_every_event_and_every_signal_has_its_words() -> None:
    assert set(WORDS) == set(e.EVENT_TYPES)
    assert set(SIGNAL_WORDS) == set(typing.get_args(s.Signal))


@pytest.mark.requirement("words:every-event")
@pytest.mark.parametrize("cause", [None, *e.TimerCause])
def test_every_cause_of_a_timer_has_its_words(cause: e.TimerCause | None) -> None:
    words = sentence(e.TimerFired(at_ms=NOW_MS, cause=cause), RUN)

    assert (words == "a timer fired") is (cause is None)


CODES = frozenset(
    member.value
    for kind in (DeliveryPath, DeferReason, SkipReason, Reason, e.TimerCause)
    for member in kind
    if not member.value.isalpha()  # one that is a word of English may stand in any sentence
)
CLASSES = frozenset(
    each.__name__
    for kinds in (e.EVENT_TYPES, typing.get_args(s.Signal), typing.get_args(effects.Effect))
    for each in kinds
)


@pytest.mark.requirement("words:no-internals")
@given(st.data())
def test_no_sentence_shows_a_code_or_the_name_of_a_class(data: DataObject) -> None:
    life = lived(data)

    for event in life.journal:
        words = set(re.findall(r"[A-Za-z_-]+", sentence(event, life.run)))
        assert not words & (CODES | CLASSES), sentence(event, life.run)


@pytest.mark.requirement("words:no-internals")
def test_every_code_of_a_delivery_and_every_effect_has_words() -> None:
    outcomes: list[Delivered | Deferred | Skipped] = [
        *(Delivered(path=each) for each in DeliveryPath),
        *(Deferred(reason=each) for each in DeferReason),
        *(Skipped(reason=each) for each in SkipReason),
    ]
    for outcome in outcomes:
        shown = delivery_text(outcome)
        code = outcome.path if isinstance(outcome, Delivered) else outcome.reason
        assert "(" not in shown
        assert code.isalpha() or code not in shown
    assert set(EFFECT_WORDS) == set(typing.get_args(effects.Effect))


@pytest.mark.requirement("words:no-internals")
@pytest.mark.parametrize("decision", Decision)
def test_every_decision_has_words(decision: Decision) -> None:
    given_answer = Answer(decision=decision, text=None, by="me", at_ms=1)
    words = sentence(
        e.RequestAnswered(at_ms=1, request_id=RequestId("q1"), answer=given_answer), RUN
    )

    assert words.startswith("question q1 ")
    assert ("by me" in words) is (decision in {Decision.ANSWER, Decision.APPROVE, Decision.DENY})


@pytest.mark.requirement("words:every-event")
@given(st.data())
def test_in_any_life_each_event_is_one_short_line(data: DataObject) -> None:
    life = lived(data)

    for event in life.journal:
        words = sentence(event, life.run)
        assert words.isprintable()
        assert 0 < len(words) < 1_000


BRIEF_AND_WHOLE: list[tuple[e.Event, str, tuple[LineType, str] | None]] = [
    (
        spawned(),
        'spawned by main for agent "worker"',
        (LineType.USER, "task from main: do it"),
    ),
    (
        e.AttemptStarted(at_ms=1, attempt=1, turn=2, pid=7),
        "attempt 1 started turn 2 (pid 7)",
        (LineType.SYSTEM, "attempt 1 started turn 2 (pid 7)"),
    ),
    (
        e.AttemptStartFailed(at_ms=1, attempt=1, error="no\nprogram", permanent=True),
        "attempt 1 could not start: no program; the same launch can never start",
        (
            LineType.ERROR,
            "attempt 1 could not start: no\nprogram; the same launch can never start",
        ),
    ),
    (
        signal(s.Exited(key="k", exit=Exit(signal=9), drained=True)),
        "attempt 1 was ended by SIGKILL",
        (LineType.SYSTEM, "attempt 1 was ended by SIGKILL"),
    ),
    (
        signal(s.Exited(key="k", exit=Exit(), drained=True)),
        "attempt 1 is gone; nobody saw how it ended",
        (LineType.SYSTEM, "attempt 1 is gone; nobody saw how it ended"),
    ),
    (
        signal(s.Vanished(key="k", error="gone\nnow")),
        "attempt 1 is gone: gone now",
        (LineType.ERROR, "attempt 1 is gone: gone\nnow"),
    ),
    (
        signal(
            s.ReportSeen(
                key="k",
                report=Report(
                    summary="half\ndone", status=ReportStatus.PARTIAL, confidence=Confidence.HIGH
                ),
            )
        ),
        'attempt 1 reported partial, confidence high: "half done"',
        (LineType.TOOL, "attempt 1 reported partial, confidence high: half\ndone"),
    ),
    (
        signal(s.ProgressSeen(key="k", progress=Progress(phase="tests", percent_complete=40))),
        "attempt 1 is at: tests (40 %)",
        (LineType.SYSTEM, "attempt 1 is at: tests (40 %)"),
    ),
    (signal(s.ResultSeen(key="k", text="é")), "attempt 1 gave its result (2 bytes)", None),
    (
        signal(s.ResultSeen(key="k", text="429", is_limit=True)),
        "attempt 1 was refused by its model's provider: 429",
        None,
    ),
    (
        signal(s.RemainsSeen(key="k", remains=Remains(words="x", files=("a", "b")))),
        "attempt 1 left its last words, 2 files of its contract",
        None,
    ),
    (
        e.VerificationFinished(
            at_ms=1, attempt=1, verification=a_verification(Verdict.COULD_NOT_CHECK)
        ),
        "verification could not check: out.txt: is missing",
        (LineType.SYSTEM, "verification could not check: out.txt: is missing"),
    ),
    (
        e.CancelRequested(at_ms=1, by="me", reason="too\nlate", cascaded=True),
        "cancelled by me with the run above it: too late",
        (LineType.SYSTEM, "cancelled by me with the run above it: too\nlate"),
    ),
    (
        e.CancelPlanned(at_ms=1, by="me", due_ms=5_001, reason="too\nlate"),
        "me cancels it in 5s: too late",
        (LineType.SYSTEM, "me cancels it in 5s: too\nlate"),
    ),
    (
        e.CancelWithdrawn(at_ms=1, by="me"),
        "what was planned was taken back by me",
        (LineType.SYSTEM, "what was planned was taken back by me"),
    ),
    (
        e.SteerRequested(at_ms=1, by="me", message="be\nbrief"),
        'message from me: "be brief"',
        (LineType.USER, "message from me: be\nbrief"),
    ),
    (
        e.RequestAsked(at_ms=1, request=ASKED),
        'asks: "a b?" (q1)',
        (LineType.TOOL, "asks: a\nb? (q1)"),
    ),
    (
        e.RequestAnswered(at_ms=1, request_id="q1", answer=ANSWER),
        'question q1 was answered by me: "b or a"',
        (LineType.USER, "question q1 was answered by me: b\nor a"),
    ),
    (
        e.ParentNotified(at_ms=1, message="half\nway"),
        'tells its requester (info): "half way"',
        (LineType.TOOL, "tells its requester (info): half\nway"),
    ),
    (
        e.Alerted(at_ms=1, alert=Alert(kind=AlertKind.STUCK, text="silent", key="k")),
        "alert: silent",
        None,
    ),
    (
        e.Continued(at_ms=1, run_id=RunId("r-2")),
        "run r-2 continues its session",
        (LineType.SYSTEM, "run r-2 continues its session"),
    ),
]


@pytest.mark.requirement("words:brief-and-whole")
@pytest.mark.parametrize(("event", "brief", "line"), BRIEF_AND_WHOLE)
def test_a_timeline_is_brief_and_a_transcript_whole(
    event: e.Event, brief: str, line: tuple[LineType, str] | None
) -> None:
    assert sentence(event, RUN) == brief
    found = journal_line(RUN, RUN.seq, event)
    assert (found and (found.type, found.text)) == line


@pytest.mark.requirement("words:spans")
def test_a_trace_shows_what_somebody_did_and_not_what_only_went_on() -> None:
    assert span_mark(e.CancelRequested(at_ms=1, by="me")) == "cancel requested"
    assert span_mark(e.SteerRequested(at_ms=1, by="me", message="x")) == "steered"
    assert span_mark(e.AttemptStarted(at_ms=1, attempt=1)) is None


def lines(life: Life) -> list[OutputItem | None]:
    return [journal_line(life.run, seq, event) for seq, event in enumerate(life.journal, 1)]


@pytest.mark.requirement("transcript:journal-lines")
def test_the_event_that_ends_the_run_says_so_in_its_own_line() -> None:
    found = [line for line in lines(Life.begin().start().result("done").exit()) if line]

    assert [(line.type, line.text) for line in found] == [
        (LineType.USER, "task from main: do it"),
        (LineType.SYSTEM, "attempt 1 started"),
        (LineType.SYSTEM, "attempt 1 exited with code 0 — run ended: ok"),
    ]


@pytest.mark.requirement("transcript:journal-lines")
def test_a_reason_stands_behind_the_status() -> None:
    last = lines(Life.begin().start().exit(3))[-1]

    assert last is not None
    assert last.text.endswith("— run ended: failed (exit code)")


@pytest.mark.requirement("transcript:journal-lines")
@given(st.data())
def test_whatever_happens_the_end_of_a_run_is_told_once(data: DataObject) -> None:
    life = lived(data)

    ends = [line for line in lines(life) if line is not None and "run ended: " in line.text]
    assert len(ends) == life.run.is_settled
