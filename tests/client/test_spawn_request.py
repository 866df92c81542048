"""A refusal names a parameter as whoever asked wrote it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from subagents.cli.flags import flag_names
from subagents.cli.runs.submission import in_file, in_flags
from subagents.client.spawn_request import as_written, reword
from subagents.errors import NotFound, StoreUnavailable, SubagentsError, UsageError


@pytest.mark.requirement("input:bad-value:names-field")
@pytest.mark.parametrize(
    ("run", "message", "says"),
    [
        (
            {"retry_cuont": 1},
            'unknown parameter "spec.retryCuont": did you mean "retryCount"?',
            'unknown parameter "retry_cuont": did you mean "retry_count"?',
        ),
        ({"retry_count": 1}, "spec.retryCount must be 0 to 100", "retry_count must be 0 to 100"),
        ({"retryCount": 1}, "spec.retryCount must be 0 to 100", "retryCount must be 0 to 100"),
        ({}, "specs[3].runTimeoutSeconds must be", "runs[3].run_timeout_seconds must be"),
        ({"timeout": 1}, "spec.runTimeoutSeconds must be", "timeout must be"),
        (
            {"verification": {"artifacts": [{"min_items": 1}]}},
            "verification.artifacts[0].minItems needs json",
            "verification.artifacts[0].min_items needs json",
        ),
        ({"tags": "x"}, "spec.tags[2] must be one line", "tags[2] must be one line"),
        ({}, "budget.maxCostUsd is too much", "budget.max_cost_usd is too much"),
        ({}, "leave toolsAllow and toolsDeny out", "leave tools_allow and tools_deny out"),
        ({}, 'agent "toolBox" in /srv/retryCount/x', 'agent "toolBox" in /srv/retryCount/x'),
    ],
)
def test_python_hears_of_its_keywords(run: Mapping[str, object], message: str, says: str) -> None:
    known = {"known": ["retryCount", "label"]} if "unknown" in message else {}
    with pytest.raises(UsageError) as refused, as_written([run]):
        raise UsageError(message, details=known)
    assert (refused.value.message, str(refused.value)) == (says, says)
    assert "retryCount" not in str(refused.value.details) or "retryCount" in run


@pytest.mark.requirement("input:bad-value:names-field")
@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("verification.artifacts[0].sha256 must be 64 digits", "--sha256 must be 64 digits"),
        ("spec.verification.artifacts[1].minItems needs json", "--min-items needs json"),
        ("verification.judge.agentId is missing", "--judge is missing"),
        ("verification.commands[0] must not be empty", "--verify-cmd must not be empty"),
        ("leave toolsAllow and toolsDeny out", "leave --allow-tool and --deny-tool out"),
        ("specs[0].runTimeoutSeconds must be", "--timeout must be"),
        ("mode is not for schedules", "--mode is not for schedules"),
        ("thread: runtime has none", "--thread: runtime has none"),
        ('isolation "worktree": no repository', '--isolation "worktree": no repository'),
        ("agentId is missing", "--agent is missing"),
        ('runtime "command" takes no model', 'runtime "command" takes no model'),
        ("the task of run r-1 was deleted", "the task of run r-1 was deleted"),
    ],
)
def test_the_command_line_hears_of_its_flags(message: str, says: str) -> None:
    with pytest.raises(UsageError) as refused, in_flags():
        raise UsageError("no", hint=message, details={"field": "spec.retryCount"})
    assert refused.value.details["field"] == "--retry"
    error = SubagentsError(message)
    reword(error, flag_names().get)
    assert error.message == says


@pytest.mark.requirement("plan:errors:name-the-file")
def test_a_plan_hears_of_its_file_its_step_and_its_keys() -> None:
    for message, says in {
        'label "a" is used twice in this batch': 'p.toml: label "a" is used twice in this batch',
        "specs[1].retryCount must be 0": "p.toml: runs[1].retry_count must be 0",
        "p.toml: runs[0].retryCount must be 0": "p.toml: runs[0].retry_count must be 0",
    }.items():
        error = UsageError(message)
        reword(error, lambda path: "retry_count" if path == "retryCount" else None, where="p.toml")
        assert error.message == says
    problem = {"step": 2, "field": "specs[2].agentId", "message": "no agent 'x'"}
    error = UsageError("no agent 'x'", details={"problems": [problem]})
    reword(error, lambda _: "agent_id", where="p.toml")
    assert error.message == "p.toml: runs[2]: no agent 'x'"
    assert error.details["problems"] == [{**problem, "field": "runs[2].agent_id"}]


@pytest.mark.requirement("cli:exit-codes")
def test_a_plan_that_is_not_there_is_not_found_and_what_is_no_refusal_names_no_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "none.toml"
    with pytest.raises(NotFound) as missing, in_file(file):
        raise UsageError(f"plan file {file} does not exist")
    assert missing.value.exit_code == 3
    with pytest.raises(StoreUnavailable, match=r"^the disk is full$"), in_file(file):
        raise StoreUnavailable("the disk is full")
