"""Values of spawn parameters outside their bounds are refused under the name the caller knows."""

import math

import pytest

from subagents.domain.rules.parameter_checks import (
    check_name,
    check_path,
    check_reachable,
    check_spec,
    check_task,
    without_effect,
)
from subagents.domain.run.parameter import Parameter
from subagents.domain.run.spec import (
    TASK_BYTES_MAX,
    Backoff,
    Budget,
    Contract,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.errors import UsageError


def flag(parameter: Parameter) -> str:
    return f"--{parameter.name}"


@pytest.mark.requirement("input:bad-value:names-field")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (RunSpec(task="x", retry_count=101), "--retryCount must be 0 to 100, not 101"),
        (RunSpec(task="x", retry_count=10**400), "--retryCount must be 0 to 100, not that"),
        (
            RunSpec(task="x", run_timeout_seconds=math.nan),
            "--runTimeoutSeconds must be 0 to 2592000, not that",
        ),
        (
            RunSpec(task="x", budget=Budget(max_cost_usd=-1)),
            "--budget.maxCostUsd must be 1e-06 to 1000000, not -1",
        ),
        (RunSpec(task="x", tags=("ok", "a\nb")), "--tags must be one line without control"),
        (RunSpec(task="x", tags=("t",) * 1001), "--tags must have at most 1000 entries, not 1001"),
        (RunSpec(task="x", cwd=""), "--cwd must be a path of 1 to 4096 bytes, not 0"),
        (RunSpec(task="x", label=" "), "--label must not be empty"),
        (RunSpec(task="\n"), "--task must not be empty"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_its_field(spec: RunSpec, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_spec(spec, field=flag)

    assert caught.value.message.startswith(message)
    assert message.startswith(caught.value.details["field"])  # type: ignore[arg-type]


@pytest.mark.requirement("input:bad-value:names-field")
def test_values_on_their_bounds_are_accepted() -> None:
    check_spec(
        RunSpec(
            task="x" * TASK_BYTES_MAX,
            label="x" * 80,
            retry_count=100,
            run_timeout_seconds=0,
            budget=Budget(max_tokens=1, max_seconds=0.001),
            tags=("t",) * 1000,
        ),
        field=flag,
    )


@pytest.mark.requirement("input:bad-value:names-field")
@pytest.mark.parametrize("name", ["a\x07b", "a\u2028b", "a\u2029b", "a\x85b", "\x1b[2J"])
def test_a_name_that_could_pose_as_a_line_or_move_a_cursor_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"^label must be one line without control characters$"):
        check_name("label", name, chars_max=80)
    check_name("label", "Größe → 5 👍", chars_max=80)


@pytest.mark.requirement("input:bad-value:names-field")
def test_sizes_are_those_in_bytes_of_what_is_stored() -> None:
    with pytest.raises(UsageError, match="must be at most 262144 bytes") as caught:
        check_task("é" * (TASK_BYTES_MAX // 2) + "x", field="task")
    assert caught.value.details["bytes"] == TASK_BYTES_MAX + 1
    with pytest.raises(UsageError, match="cwd must be a path of 1 to 4096 bytes, not 4098"):
        check_path("cwd", "é" * 2049)
    check_path("cwd", "é" * 2048)


AFTER_ERRORS = (
    "retryCount is for attempts that end in an error; a failed check of the contract is tried again"
    " with retryUntilVerified"
)
WITHOUT_EFFECT: dict[str, tuple[RunSpec, str]] = {
    "delay": (
        RunSpec(task="x", retry_delay=5_000),
        "retryDelay has no effect without retryCount",
    ),
    "backoff": (
        RunSpec(task="x", retry_backoff=Backoff.FIXED),
        "retryBackoff has no effect without retryCount",
    ),
    "texts": (
        RunSpec(task="x", retry_on=("429",)),
        "retryOn has no effect without retryCount",
    ),
    "longest": (
        RunSpec(task="x", retry_max_time=1_000),
        "retryMaxTime has no effect without retryCount or retryUntilVerified",
    ),
    "results": (
        RunSpec(task="x", include_dependency_result=True),
        "includeDependencyResult has no effect without dependsOn",
    ),
    "partial": (
        RunSpec(task="x", accept_partial_dependencies=True),
        "acceptPartialDependencies has no effect without dependsOn",
    ),
    "wait": (
        RunSpec(task="x", dependency_timeout_seconds=5),
        "dependencyTimeoutSeconds has no effect without dependsOn",
    ),
    "run": (
        RunSpec(task="x", on_dependency_failure=OnDependencyFailure.RUN),
        "onDependencyFailure has no effect without dependsOn",
    ),
    "contract": (RunSpec(task="x", retry_count=5, verification=Contract()), AFTER_ERRORS),
    "no contract": (
        RunSpec(task="x", retry_until_verified=2),
        "retryUntilVerified has no effect without verification",
    ),
    "afresh": (
        RunSpec(task="x", retry_afresh=True),
        "retryAfresh has no effect without retryUntilVerified",
    ),
    "once": (
        RunSpec(
            task="x",
            retry_until_verified=2,
            verification=Contract(on_failure=OnFailure.RETRY_ONCE),
        ),
        "onFailure: retry_once has no effect beside retryUntilVerified",
    ),
}
WITH_EFFECT: dict[str, RunSpec] = {
    "nothing": RunSpec(task="x"),
    "retries": RunSpec(
        task="x", retry_count=1, retry_delay=5_000, retry_on=("429",), retry_backoff=Backoff.FIXED
    ),
    "after": RunSpec(task="x", depends_on=("a",), include_dependency_result=True),
    "chained": RunSpec(task="x", chain_after="a", dependency_timeout_seconds=5),
    "tried once more": RunSpec(
        task="x", retry_count=5, verification=Contract(on_failure=OnFailure.RETRY_ONCE)
    ),
    "escalated": RunSpec(
        task="x", retry_count=5, verification=Contract(on_failure=OnFailure.ESCALATE)
    ),
    "for some errors": RunSpec(task="x", retry_count=5, retry_on=("503",), verification=Contract()),
    "for both": RunSpec(
        task="x",
        retry_count=5,
        retry_until_verified=2,
        retry_afresh=True,
        retry_max_time=60_000,
        verification=Contract(),
    ),
    "contract alone": RunSpec(task="x", verification=Contract()),
}


@pytest.mark.requirement("input:without-effect")
@pytest.mark.parametrize(("spec", "said"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_a_parameter_without_effect_is_said(spec: RunSpec, said: str) -> None:
    assert without_effect(spec) == (said,)


@pytest.mark.requirement("input:without-effect")
@pytest.mark.parametrize("spec", WITH_EFFECT.values(), ids=WITH_EFFECT)
def test_of_parameters_that_do_what_they_say_nothing_is_said(spec: RunSpec) -> None:
    assert without_effect(spec) == ()


@pytest.mark.requirement("input:label:reachable")
@pytest.mark.parametrize(
    ("label", "instead"),
    [
        ("last", "last-one"),
        ("tree:fix", "tree-fix"),
        ("phase:running", "phase-running"),
        ("plan:nightly", "plan-nightly"),
        ("tag:", "tag-"),
        ("dir:/srv", "dir-/srv"),
        ("agent:main:main", "agent-main:main"),
        ("r-kpx35hpgpp", "kpx35hpgpp"),
    ],
)
def test_a_label_that_selects_something_else_is_refused_with_another(
    label: str, instead: str
) -> None:
    with pytest.raises(UsageError, match=r"--label .* could never be named") as caught:
        check_spec(RunSpec(task="x", label=label), field=flag)

    assert caught.value.hint == f'another one, such as "{instead}"'
    assert caught.value.details["field"] == "--label"
    check_spec(RunSpec(task="x", label=instead), field=flag)


@pytest.mark.requirement("input:label:reachable")
@pytest.mark.parametrize(
    "label",
    [
        "Last",
        "lastly",
        "tree",
        "a tag:x",
        "r-1",
        "r-elephants",
        "r-kpx35hpgppp",
        "fix: it",
        "tags:x",
    ],
)
def test_a_label_that_only_looks_like_a_selector_is_taken(label: str) -> None:
    check_spec(RunSpec(task="x", label=label), field=flag)


@pytest.mark.requirement("input:label:reachable")
def test_a_plan_has_no_name_that_selects_another() -> None:
    for name in ("last", "r-kpx35hpgpp"):
        with pytest.raises(UsageError, match=f'name "{name}" could never be named'):
            check_reachable("name", name, others=())
    check_reachable("name", "tag:x", others=())
