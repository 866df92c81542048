"""Answers about runs as their readers see them."""

import pytest

from subagents.api.wire.run_answers import Outcome, RunNode, RunResult, RunRow
from subagents.api.wire.wire_struct import read
from subagents.api.wire.words import Phase

FAILED = Outcome(status="error", reason="verification_failed")


@pytest.mark.requirement("outcome:typed")
@pytest.mark.parametrize(
    ("outcome", "phase", "pending", "word"),
    [
        (None, "queued", 0, "queued"),
        (None, "running", 2, "blocked"),
        (Outcome(status="ok"), "announcing", 0, "ok"),
        (Outcome(status="partial"), "completed", 1, "partial"),
        (FAILED, "completed", 0, "failed"),
        (Outcome(status="error", reason="exit_code"), "completed", 0, "error"),
    ],
)
def test_a_run_is_its_outcome_in_one_word_else_blocked_else_its_phase(
    outcome: Outcome | None, phase: Phase, pending: int, word: str
) -> None:
    row = RunRow(run_id="r-1", phase=phase, outcome=outcome, pending_request_count=pending)
    node = RunNode(run_id="r-1", phase=phase, outcome=outcome, pending_request_count=pending)

    assert {row.shown_state, node.shown_state} == {word}


@pytest.mark.requirement("outcome:typed")
def test_a_result_is_ok_only_with_an_outcome_that_is() -> None:
    document = {"runId": "r-1", "outcome": {"status": "ok"}, "result": "done"}

    assert read(document, RunResult).ok
    assert not read({**document, "outcome": {"status": "partial"}}, RunResult).ok
    assert not read({"runId": "r-1"}, RunResult).ok
