"""Questions and progress as they are answered: what is open, who decided, what was taken."""

import pytest
from tests.builders import NOW_MS, RUN, Life

from subagents.api.answers.message_building import (
    progress,
    progress_taken,
    progress_update,
    request,
    request_status,
)
from subagents.domain.run.run import Answer, Decision, Progress, ProgressLevel, Request
from subagents.domain.run.values import replace
from subagents.engine.messages.reports import ProgressAnswer
from subagents.text import iso


def asked() -> Request:
    (found,) = Life.begin().start().ask(default="left").run.pending_requests
    return found


def answered(decision: Decision, text: str | None = "right") -> Request:
    given = Answer(decision=decision, text=text, by="agent:main:desk", at_ms=NOW_MS + 9)
    return replace(asked(), answer=given)


@pytest.mark.requirement("requests:status-word")
@pytest.mark.parametrize(
    ("decision", "word"),
    [
        (Decision.ANSWER, "answered"),
        (Decision.APPROVE, "answered"),
        (Decision.DENY, "answered"),
        (Decision.DEFAULT, "answered"),
        (Decision.TIMEOUT, "timeout"),
        (Decision.CANCELLED, "cancelled"),
    ],
)
def test_a_question_is_in_one_word_what_became_of_it(decision: Decision, word: str) -> None:
    assert request_status(asked()) == "pending"
    assert request_status(answered(decision)) == word


@pytest.mark.requirement("requests:status-word")
def test_an_open_question_has_its_deadline_and_nobody_who_decided() -> None:
    found = request(Life.begin().run, asked())

    assert (found.request_id, found.run_id, found.status) == (f"{RUN}:q1", RUN, "pending")
    assert (found.answer, found.decision, found.by, found.answered_at) == (None,) * 4
    assert (found.asked_at, found.deadline_at) == (iso(NOW_MS), iso(NOW_MS + 60_000))
    assert found.default_answer == "left"


@pytest.mark.requirement("requests:status-word")
def test_a_second_answer_is_told_what_the_first_one_decided() -> None:
    found = request(Life.begin().run, answered(Decision.DENY), status="already answered")

    assert (found.status, found.decision, found.answer) == ("already answered", "deny", "right")
    assert (found.by, found.answered_at) == ("agent:main:desk", iso(NOW_MS + 9))


@pytest.mark.requirement("progress:shown")
def test_the_run_shows_less_of_an_update_than_its_log() -> None:
    said = Progress(
        phase="read",
        percent_complete=40,
        updated_at_ms=NOW_MS,
        level=ProgressLevel.DETAIL,
        metrics={"files": 3},
        number=2,
    )
    shown, logged = progress(said), progress_update(said)

    assert shown is not None
    assert (shown.phase, shown.percent_complete, shown.updated_at) == ("read", 40, iso(NOW_MS))
    assert (logged.number, logged.level, logged.metrics) == (2, "L2_detail", {"files": 3})
    assert progress(None) is None


@pytest.mark.requirement("progress:log")
def test_a_worker_is_told_what_became_of_its_update() -> None:
    run = Life.begin().run
    early = progress_taken(run, ProgressAnswer(stored=False, retry_after_s=12))
    latest = progress_taken(run, ProgressAnswer(stored=False))
    stored = progress_taken(run, ProgressAnswer(stored=True))

    assert (early.status, early.retry_after_seconds) == ("rate_limited", 12)
    assert (latest.status, stored.status) == ("latest_only", "stored")
    assert latest.note is not None
    assert stored.note is None
