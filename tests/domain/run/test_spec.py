"""The spawn parameters as they are stored, and what they were resolved to."""

import msgspec
import pytest
from tests.builders import a_resolved

from subagents.domain.run.spec import (
    Backoff,
    Budget,
    Contract,
    Isolation,
    OnFailure,
    ResolvedAgent,
    RunSpec,
)
from subagents.domain.run.workspace import Worktree


@pytest.mark.requirement("journal:names")
def test_a_stored_specification_has_the_defaults_for_what_it_does_not_name() -> None:
    stored = (
        b'{"task":"x","retryBackoff":"linear","isolation":"worktree","budget":{"maxTokens":5},'
        b'"verification":{"onFailure":"retry_once"}}'
    )

    spec = msgspec.json.decode(stored, type=RunSpec)

    assert spec == RunSpec(
        task="x",
        retry_backoff=Backoff.LINEAR,
        isolation=Isolation.WORKTREE,
        budget=Budget(max_tokens=5),
        verification=Contract(on_failure=OnFailure.RETRY_ONCE),
    )
    assert (spec.dependency_timeout_seconds, spec.retry_delay) == (None, 1000)
    assert spec.expects_completion_message


@pytest.mark.requirement("input:unknown-key:nearest-name")
@pytest.mark.parametrize(
    "body",
    [
        b'{"task":"x","retrycount":1}',
        b'{"task":"x","budget":{"tokens":1}}',
        b'{"task":"x","verification":{"artifacts":[{"path":"a","size":1}]}}',
    ],
)
def test_an_unknown_parameter_is_never_ignored(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(body, type=RunSpec)


@pytest.mark.requirement("isolation:configuration")
def test_the_project_of_a_run_in_a_worktree_is_where_it_was_asked_for() -> None:
    tree = Worktree(repository="/repo", path="/trees/job", branch="b", origin="/repo/sub")

    assert a_resolved(cwd="/here").project == "/here"
    assert a_resolved(cwd="/trees/job/sub", worktree=tree).project == "/repo/sub"


@pytest.mark.requirement("journal:fallback")
def test_a_fallback_is_stored_with_all_its_fields_which_versions_before_require() -> None:
    fallback = ResolvedAgent(agent_id="b", runtime="command", lane="slow", lane_slots=1)
    stored = msgspec.to_builtins(a_resolved(fallback=fallback))
    assert tuple(stored["fallback"]) == ResolvedAgent.__struct_encode_fields__
    assert "model" not in stored
