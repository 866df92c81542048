"""What is wrong with a run at work now, and goes away with its cause."""

import pytest
from tests.builders import NOW_MS, Life

from subagents.domain.alerts.detectors import Watch, observe
from subagents.domain.alerts.detectors.detector_state import Watch as State
from subagents.domain.rules.current_alerts import concerns
from subagents.domain.run.alert import AlertKind, AlertRules
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import ApiError, LineType, OutputItem, ToolUse
from subagents.extensions.detectors.tool_findings import findings_of

RULES = AlertRules()


def kinds(life: Life, watch: Watch, *, now_ms: int = NOW_MS) -> list[AlertKind]:
    return [each.kind for each in concerns(life.run, watch, now_ms=now_ms)]


def told(watch: Watch, *said: OutputItem) -> Watch:
    return observe(watch, said, at_ms=NOW_MS, rules=RULES, findings_of=findings_of)[0]


def a_tool(*, fails: bool) -> OutputItem:
    tool = ToolUse(name="Bash", command="make", exit_code=2 if fails else 0, is_error=fails)
    return OutputItem(type=LineType.TOOL, text="x", tool=tool)


@pytest.mark.requirement("attention:concerns")
def test_silence_that_was_told_stands_until_the_worker_speaks() -> None:
    life = Life.begin().start()
    silent = State(attempt=1, last_at_ms=NOW_MS, last_activity="editing a.py", is_silence_told=True)
    (found,) = concerns(life.run, silent, now_ms=NOW_MS + 360_000)
    assert (found.kind, found.since_ms) == (AlertKind.STUCK, NOW_MS)
    assert found.text == "no sign of life for 6m (last: editing a.py)"
    assert kinds(life, told(silent, OutputItem(type=LineType.TEXT, text="back"))) == []
    life.ask()
    assert kinds(life, silent) == [], "it waits for somebody else"


@pytest.mark.requirement("attention:concerns")
def test_tools_that_fail_in_a_row_stand_until_one_succeeds() -> None:
    life = Life.begin().start()
    watch = told(State(attempt=1), *[a_tool(fails=True)] * 4)
    (found,) = concerns(life.run, watch, now_ms=NOW_MS)
    assert (found.kind, found.text) == (AlertKind.FAILURE_LOOP, "4 Bash failures in a row")
    assert kinds(life, told(watch, a_tool(fails=False))) == []
    assert kinds(life, told(State(attempt=1), *[a_tool(fails=True)] * 2)) == []


@pytest.mark.requirement("attention:concerns")
def test_a_refusal_stands_until_something_succeeds() -> None:
    life = Life.begin().start()
    refused = OutputItem(type=LineType.ERROR, text="x", api_error=ApiError(message="rate limited"))
    watch = told(State(attempt=1), refused)
    assert kinds(life, watch) == [AlertKind.API_ERROR]
    assert kinds(life, told(watch, a_tool(fails=False))) == []


@pytest.mark.requirement("attention:concerns")
def test_a_budget_that_is_used_up_stands() -> None:
    spec = RunSpec(task="x", budget=Budget(max_tokens=100))
    life = Life.begin(spec).start()
    life.signal(UsageSeen(key="u", usage=Usage(tokens_in=90)))
    assert kinds(life, State()) == []
    life.signal(UsageSeen(key="v", usage=Usage(tokens_in=120)))
    (found,) = concerns(life.run, State(), now_ms=NOW_MS)
    assert found.kind is AlertKind.BUDGET_ALERT
    assert (
        found.text
        == "its budget is used up: 120 of 100 tokens (what was under way reported 30 at once)"
    )


@pytest.mark.requirement("attention:concerns")
def test_nothing_is_wrong_with_a_run_that_is_not_at_work() -> None:
    silent = State(attempt=1, last_at_ms=NOW_MS, is_silence_told=True, failures=9)
    assert kinds(Life.begin(), silent) == []
    assert kinds(Life.begin().start().exit(1), silent) == []
