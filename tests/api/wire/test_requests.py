"""What the bodies of requests become: spawns, plans, reports, progress and decisions."""

import json
from typing import Final

import pytest
from tests.call_counts import calls_of

from subagents.api.wire import requests as wire
from subagents.domain.run.run import Confidence, Decision, ReportStatus
from subagents.domain.run.spec import Mode, RunSpec
from subagents.errors import UsageError

SPAWN_CALLS_MAX = 146
"""Of Python functions and builtins, for what is mostly asked; it may only become smaller."""


def spawn(**spec: object) -> RunSpec:
    return wire.parse_spawn(json.dumps({"spec": {"task": "x", **spec}, "cwd": "/w"}).encode()).spec


FLAG_VALUES: Final[dict[str, object]] = {
    "agent": "a",
    "fallbackAgent": "b",
    "backoff": "fixed",
    "timeout": "5m",
    "dependencyTimeout": 5,
    "retry": 2,
    "untilVerified": 3,
    "after": "x",
    "allowTool": ["shell"],
    "denyTool": "web",
    "tag": "t",
    "includeResult": True,
    "acceptPartial": True,
    "progress": True,
}


@pytest.mark.requirement("spawn:one-name")
@pytest.mark.parametrize("flag", wire.FLAG_FIELDS)
def test_a_parameter_has_the_name_of_its_flag_in_json_too(flag: str) -> None:
    own, value = wire.FLAG_FIELDS[flag], FLAG_VALUES[flag]

    more = {"onDependencyFailure": "fallback"} if flag == "fallbackAgent" else {}
    by_flag = wire.parse_spec({"task": "t", flag: value, **more})

    assert by_flag == wire.parse_spec({"task": "t", own: value, **more})
    assert by_flag != wire.parse_spec({"task": "t"})
    with pytest.raises(UsageError, match=f"spec.{flag} and spec.{own} are the same"):
        wire.parse_spec({"task": "t", flag: value, own: value}, at="spec.")


@pytest.mark.requirement("input:spec:parsed")
def test_every_given_parameter_reaches_the_spec_under_its_wire_name() -> None:
    spec = spawn(
        label="L",
        agentId="a",
        mode="session",
        thread=True,
        retryCount=3,
        runTimeoutSeconds=5,
        chainAfter="first",
        verification={"artifacts": [{"path": "o.json", "json": True, "minItems": 1}]},
        budget={"maxTokens": 10},
    )

    assert (spec.label, spec.agent_id, spec.mode) == ("L", "a", Mode.SESSION)
    assert (spec.retry_count, spec.run_timeout_seconds, spec.chain_after) == (3, 5.0, "first")
    assert spec.verification is not None
    assert spec.verification.artifacts[0].min_items == 1
    assert spec.budget is not None
    assert spec.budget.max_tokens == 10


@pytest.mark.requirement("speed:calls-per-body")
def test_the_body_of_a_spawn_costs_no_more_calls_than_it_did() -> None:
    body = b'{"spec":{"task":"work","agentId":"quick","runTimeoutSeconds":"5m"},"cwd":"/"}'

    assert calls_of(lambda: wire.parse_spawn(body)) <= SPAWN_CALLS_MAX


@pytest.mark.requirement("input:spec:durations")
def test_a_duration_is_a_number_of_its_unit_or_a_text() -> None:
    judge = {"agentId": "a", "criteria": "c", "budget": {"maxSeconds": "2m"}}
    spec = spawn(
        runTimeoutSeconds="1h30m",
        retryDelay="5s",
        retryMaxTime=7,
        budget={"maxSeconds": "90"},
        verification={"verificationTimeoutMs": "1m", "judge": {**judge, "runTimeoutSeconds": "3m"}},
    )

    assert (spec.run_timeout_seconds, spec.retry_delay, spec.retry_max_time) == (5400, 5000, 7)
    assert spec.budget is not None
    assert spec.budget.max_seconds == 90
    assert spec.verification is not None
    assert spec.verification.verification_timeout_ms == 60_000
    assert spec.verification.judge is not None
    assert spec.verification.judge.run_timeout_seconds == 180
    assert spec.verification.judge.budget is not None
    assert spec.verification.judge.budget.max_seconds == 120


@pytest.mark.requirement("input:spec:durations")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"retryDelay": "soon"}, r"spec\.retryDelay must be a duration such as"),
        ({"retryDelay": "2h"}, r"spec\.retryDelay must be 0 to 3600000"),
        ({"budget": {"maxSeconds": "soon"}}, r"spec\.budget\.maxSeconds must be a duration"),
        ({"retryCount": "5m"}, r"spec\.retryCount must be an integer, not text"),
    ],
)
def test_a_text_that_is_no_duration_is_refused_by_its_place(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        spawn(**given)


@pytest.mark.requirement("input:spec:durations")
def test_deeply_nested_judges_are_refused_like_any_other_unknown_name() -> None:
    nested: dict[str, object] = {}
    for _ in range(300):
        nested = {"judge": {"agentId": "a", "criteria": "c", "verification": nested}}

    with pytest.raises(UsageError, match="judge"):
        spawn(verification=nested)


@pytest.mark.requirement("input:depends-on:single-text")
def test_a_single_text_in_depends_on_is_a_list_of_one() -> None:
    assert spawn(dependsOn="a").depends_on == ("a",)
    assert spawn(dependsOn=["a", "b"]).depends_on == ("a", "b")


@pytest.mark.requirement("input:batch:bounds")
@pytest.mark.parametrize("count", [0, 1001])
def test_a_plan_of_none_or_more_than_a_thousand_runs_is_refused(count: int) -> None:
    body = json.dumps({"specs": [{"task": "x"}] * count}).encode()

    with pytest.raises(UsageError, match=f"specs must be a list of 1 to 1000 runs, not {count}"):
        wire.parse_plan(body)


@pytest.mark.requirement("input:batch:names-index")
def test_a_wrong_spec_in_a_plan_is_named_by_its_place() -> None:
    body = json.dumps({"specs": [{"task": "x"}, {"task": "x", "retryCount": -1}]}).encode()

    with pytest.raises(UsageError, match=r"^specs\[1\]\.retryCount must be 0 to 100, not -1$"):
        wire.parse_plan(body)


@pytest.mark.requirement("input:batch:bounds")
def test_a_plan_of_a_thousand_runs_is_accepted() -> None:
    body = json.dumps({"specs": [{"task": "x"}] * 1000, "cwd": "/w"}).encode()

    assert len(wire.parse_plan(body).specs) == 1000


@pytest.mark.requirement("input:bodies:empty")
def test_an_empty_body_means_the_defaults() -> None:
    assert wire.parse_body(b"", wire.WaitBody) == wire.WaitBody()


@pytest.mark.requirement("input:report:parsed")
def test_a_report_is_parsed_and_its_mistakes_are_named() -> None:
    report = wire.report_of(
        {"summary": "s", "status": "partial", "confidence": "low", "artifacts": [{"path": "p"}]}
    )

    assert (report.status, report.confidence) == (ReportStatus.PARTIAL, Confidence.LOW)
    assert report.artifacts[0].path == "p"
    wrong: tuple[tuple[dict[str, object], str], ...] = (
        ({"summary": "s", "status": "done"}, 'status must be "complete" or'),
        ({"summary": " "}, "summary must not be empty"),
        ({"summary": "s", "artifact": []}, 'unknown parameter "artifact": did you mean'),
        ({"summary": "s", "artifacts": [{"pat": "p"}]}, 'unknown parameter "artifacts[0].pat"'),
        ({"summary": "x" * 65_537}, "the report must have at most 65536 characters"),
    )
    for raw, message in wrong:
        with pytest.raises(UsageError) as caught:
            wire.report_of(raw)
        assert caught.value.message.startswith(message)


@pytest.mark.requirement("input:progress:parsed")
def test_progress_is_stamped_with_the_time_it_arrived_and_its_level_is_checked() -> None:
    progress = wire.progress_of({"phase": "read", "percentComplete": 40}, now_ms=7)

    assert (progress.phase, progress.percent_complete, progress.updated_at_ms) == ("read", 40, 7)
    with pytest.raises(UsageError, match=r'^level must be "L0_operational" or'):
        wire.progress_of({"phase": "read", "level": "L9"}, now_ms=7)


@pytest.mark.requirement("input:decision:bounds")
def test_only_decisions_of_a_person_can_be_given_as_an_answer() -> None:
    assert wire.parse_decision("approve") is Decision.APPROVE
    with pytest.raises(UsageError, match=r'^decision must be "answer" or "approve" or "deny"'):
        wire.parse_decision("timeout")
