"""The words that type checkers know are those of the domain, and none other is refused."""

import ast
import inspect
from enum import StrEnum

import pytest

from subagents.api.wire import words
from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import read
from subagents.domain.rules.budgets.budgets import Overshoot
from subagents.domain.run import access, outcome, run, spec, workspace
from subagents.domain.schedules import schedule

SAME: dict[str, type[StrEnum]] = {
    "OutcomeStatus": outcome.Status,
    "OutcomeReason": outcome.Reason,
    "Phase": run.Phase,
    "CheckType": outcome.CheckType,
    "VerificationState": outcome.VerificationState,
    "ChangeKind": workspace.ChangeKind,
    "ReportStatus": run.ReportStatus,
    "Confidence": run.Confidence,
    "StopCause": run.StopCause,
    "AccessLevel": access.AccessLevel,
    "Keeper": access.Keeper,
    "Mode": spec.Mode,
    "Overshoot": Overshoot,
    "MessageKind": run.MessageKind,
    "Priority": run.Priority,
    "Decision": run.Decision,
    "ProgressLevel": run.ProgressLevel,
    "OverlapPolicy": schedule.Overlap,
    "MissedPolicy": schedule.Missed,
    "TimeDecision": schedule.Decision,
}


def literals() -> dict[str, set[str]]:
    """The texts of each alias, which exist for type checkers only."""
    return {
        node.target.id: {
            each.value
            for each in ast.walk(node)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        for node in ast.walk(ast.parse(inspect.getsource(words)))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


@pytest.mark.requirement("python:typed-answers")
@pytest.mark.parametrize("name", SAME)
def test_the_words_of_a_literal_are_those_of_its_enumeration(name: str) -> None:
    assert literals()[name] == {str(each) for each in SAME[name]}


@pytest.mark.requirement("python:typed-answers")
def test_a_newer_daemons_word_is_read() -> None:
    found = read({"runId": "r-1", "phase": "dreaming", "outcome": {"status": "superb"}}, RunRow)

    assert (found.phase, found.outcome and found.outcome.status) == ("dreaming", "superb")
