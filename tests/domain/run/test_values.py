"""Ids and keys, and copies with changes."""

import msgspec
import pytest

from subagents.domain.run.run import Progress
from subagents.domain.run.values import (
    RunId,
    SessionKey,
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
    run = RunId("r-1")

    assert attempt_id(run, 3) == "r-1#3"
    assert attempt_before(run, 3) == "r-1#2"
    assert attempt_before(run, 1) is None


@pytest.mark.requirement("journal:names")
def test_a_value_is_stored_in_camel_case_without_what_it_leaves_out() -> None:
    progress = Progress(phase="read", percent_complete=40)

    assert msgspec.json.encode(progress) == b'{"phase":"read","percentComplete":40}'
    changed = replace(progress, percent_complete=50)
    assert (progress.percent_complete, changed.percent_complete) == (40, 50)
    with pytest.raises(AttributeError):
        progress.phase = "write"  # type: ignore[misc]
