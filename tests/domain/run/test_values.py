"""Ids and keys, and copies with changes."""

import msgspec
import pytest
from tests.field_defaults import true_where_unsaid

from subagents.domain import run
from subagents.domain.run.run import Progress
from subagents.domain.run.values import (
    RunId,
    SessionKey,
    Value,
    agent_of,
    attempt_before,
    attempt_id,
    replace,
)


@pytest.mark.requirement("sessions:keys", "spawn:session-key")
@pytest.mark.parametrize(
    ("key", "agent"),
    [
        ("agent:default:subagent:a1b2c3d4", "default"),
        ("agent:Main:main", "Main"),
        ("agent:x:y:z", "x"),
        ("agent::main", "main"),
        ("cli", "main"),
        ("", "main"),
    ],
)
def test_the_agent_is_read_from_the_session_key(key: str, agent: str) -> None:
    assert agent_of(SessionKey(key)) == agent


@pytest.mark.requirement("attempts:numbered")
def test_every_attempt_but_the_first_repeats_the_one_before() -> None:
    run_id = RunId("r-1")

    assert attempt_id(run_id, 3) == "r-1#3"
    assert attempt_before(run_id, 3) == "r-1#2"
    assert attempt_before(run_id, 1) is None


@pytest.mark.requirement("journal:names")
def test_what_a_journal_of_an_earlier_version_does_not_say_is_read_as_no() -> None:
    assert true_where_unsaid(run, Value) == {
        # There was nothing yet that kept a worker from the network.
        "Access.network",
        "Ceiling.network",
        # What a caller leaves out, then as now.
        "Checks.fresh",
        "Contract.fresh",
        "RunSpec.expects_completion_message",
        # A call of a tool was told when it was over, and progress with its pace.
        "ProgressSeen.is_paced",
        "ToolUse.is_end",
    }


@pytest.mark.requirement("journal:names")
def test_a_value_is_stored_in_camel_case_without_what_it_leaves_out() -> None:
    progress = Progress(phase="read", percent_complete=40)

    assert msgspec.json.encode(progress) == b'{"phase":"read","percentComplete":40}'
    changed = replace(progress, percent_complete=50)
    assert (progress.percent_complete, changed.percent_complete) == (40, 50)
    with pytest.raises(AttributeError):
        progress.phase = "write"  # type: ignore[misc]
