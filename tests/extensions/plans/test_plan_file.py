"""A plan reads the same from TOML, YAML and JSON, and what is wrong in it is named."""

import json
from pathlib import Path

import pytest
from scripts.spawn_flags import FLAGS as KNOWN

from subagents.api.wire.requests import FLAGS, PlanLimit
from subagents.domain.run.spec import Artifact, Contract, ForEach, RunSpec
from subagents.errors import NotFound, UsageError
from subagents.extensions.plans.plan_file import read_plan

EXPECTED = (
    RunSpec(
        task="wc -l *.py > lines.txt",
        label="count",
        verification=Contract(artifacts=(Artifact(path="lines.json", json=True, min_items=1),)),
    ),
    RunSpec(task="sort\nlines.txt", label="report", depends_on=("count",), retry_count=2),
)
TOML = '''
[[runs]]
label = "count"
task = "wc -l *.py > lines.txt"
verification = { artifacts = [{ path = "lines.json", json = true, min_items = 1 }] }
[[runs]]
label = "report"
task = """sort
lines.txt"""
depends_on = "count"
retryCount = 2
'''
LAUGHS = "".join(
    f"l{n}: &l{n} [{', '.join(9 * [f'*l{n - 1}' if n else 'lol'])}]\n" for n in range(12)
)
"""Twelve lines that are a thousand million values."""
YAML = """
runs:
  - label: count
    task: wc -l *.py > lines.txt
    verification:
      artifacts:
        - {path: lines.json, json: true, minItems: 1}
  - label: report
    task: |-
      sort
      lines.txt
    dependsOn: [count]
    retry_count: 2
"""
JSON = """
[{"label": "count", "task": "wc -l *.py > lines.txt",
  "verification": {"artifacts": [{"path": "lines.json", "json": true, "minItems": 1}]}},
 {"label": "report", "task": "sort\\nlines.txt", "dependsOn": ["count"], "retryCount": 2}]
"""


def plan(tmp_path: Path, name: str, content: str | bytes) -> Path:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.requirement("cli:plan-file")
@pytest.mark.parametrize(
    ("name", "content"), [("p.toml", TOML), ("p.yaml", YAML), ("p.yml", YAML), ("p.json", JSON)]
)
def test_the_same_plan_reads_the_same_in_each_format(
    tmp_path: Path, name: str, content: str
) -> None:
    assert read_plan(plan(tmp_path, name, content)).specs == EXPECTED


@pytest.mark.requirement("files:byte-order-mark")
@pytest.mark.parametrize(
    ("name", "content"), [("p.toml", TOML), ("p.yaml", YAML), ("p.json", JSON)]
)
def test_a_plan_may_begin_with_a_byte_order_mark(tmp_path: Path, name: str, content: str) -> None:
    assert read_plan(plan(tmp_path, name, f"\ufeff{content.lstrip()}")).specs == EXPECTED


@pytest.mark.requirement("cli:plan-file")
def test_names_inside_a_schema_are_left_alone(tmp_path: Path) -> None:
    text = """{"runs": [{"task": "t", "verification": {"artifacts": [
        {"path": "a", "schema": {"min_items": 1, "additionalProperties": false}}]}}]}"""
    (spec,) = read_plan(plan(tmp_path, "p.json", text)).specs
    assert spec.verification is not None
    schema = spec.verification.artifacts[0].schema
    assert schema == {"min_items": 1, "additionalProperties": False}


REFUSED: list[tuple[str, str | bytes, str]] = [
    ("p.json", "{}", "`runs` must be a list of at least one run"),
    ("p.json", "[]", "`runs` must be a list of at least one run"),
    ("p.json", "", "Input data was truncated"),
    ("p.toml", "runs = [", "Invalid"),
    ("p.yaml", "runs: [", "p.yaml:1:8: "),
    ("p.yaml", "a: 1\na: 2", "p.yaml:2:1: the same key twice"),
    ("p.yaml", "runs:\n- ? [[a]]\n  : b", "key in it is none of YAML"),
    ("p.yaml", "runs: &a [*a]", "an alias stands for itself"),
    ("p.yaml", LAUGHS, "more than 30,000 values, with those of its aliases"),
    ("p.toml", f"[[runs]]\ntask='x'\nretry_count={'9' * 6_000}", "p.toml:3: a number of over"),
    ("p.toml", f"[[runs]]\ntask='x'\nretry_count=0x{'f' * 6_000}", "runs[0].retry_count is a"),
    ("p.toml", f"[[runs]]\n[runs.matrix]\nx=[0x{'f' * 6_000}]", "runs[0].matrix.x[0] is a"),
    ("p.toml", f"{'a.' * 20_000}a = 1", "p.toml:1: more than 32 names with dots"),
    ("p.toml", "[[runs]]\ntask = 2001-01-01", "runs[0].task must be text, not date"),
    ("p.yaml", "runs:\n- task: 2001-99-99", "key in it is none of YAML"),
    ("p.yaml", "runs:\n- task: 2001-01-01", "runs[0].task must be text, not date"),
    ("p.yaml", f"runs: {'[' * 50_000}", "p.yaml:1: nested too deeply"),
    ("p.json", "[" * 100_000, "p.json: nested too deeply"),
    ("p.json", '{"runs":[' + "[]," * 20_000 + "[]]}", "at most 1000 entries"),
    ("p.json", " " * 3_000_000, "is larger than 2,097,152 bytes"),
    ("p.json", "\ufeff".encode("utf-16"), "p.json:1: UTF-16, not UTF-8"),
    ("p.txt", "", "a plan is .toml, .yaml, .yml or .json, not .txt"),
    ("plan", "", "not without suffix"),
    ("p.json", b"\xff", ":1: not valid UTF-8 (byte 0xff)"),
    ("p.json", '{"runs": [{"task": "t"}], "extra": 1}', "unknown key 'extra'"),
    ("p.json", "[1]", "runs[0] must be a table, not a number"),
    ("p.json", '[{"label": "x"}]', "runs[0].task is required"),
    (
        "p.json",
        '[{"task": "t"}, {"task": "t", "lable": "x"}]',
        'runs[1].lable": did you mean "label"?',
    ),
    ("p.json", '[{"task": "t", "retry_count": 101}]', "runs[0].retry_count must be 0 to 100"),
    ("p.json", '[{"task": "t", "retry": 101}]', "runs[0].retry must be 0 to 100"),
    ("p.toml", '[[runs]]\ntask = "t"\ntimeout = -1', "runs[0].timeout must be"),
    (
        "p.toml",
        '[[runs]]\ntask = "t"\nafter = "a"\ndepends_on = "b"',
        "after and depends_on are the same",
    ),
    ("p.json", '[{"task": "t", "agent": "a", "agentId": "b"}]', "agent and agentId are the same"),
    (
        "p.json",
        '[{"task": "t", "retry_count": 1, "retryCount": 2}]',
        "retry_count and retryCount are the same",
    ),
    ("p.json", '[{"task": 1}]', "runs[0].task must be text, not an integer"),
    (
        "p.json",
        '[{"task": "t", "retryBackoff": "never"}]',
        'retryBackoff must be "exponential" or "linear" or "fixed"',
    ),
    (
        "p.json",
        '[{"task": "t", "verification": {"artifacts": [{"path": "a", "min_item": 1}]}}]',
        'runs[0].verification.artifacts[0].min_item": did you mean "min_items"?',
    ),
    (
        "p.json",
        '[{"task": "t", "verification": {"artifacts": [{"path": 7}]}}]',
        "runs[0].verification.artifacts[0].path must be text, not an integer",
    ),
    ("p.json", "[" + ",".join(['{"task":"t"}'] * 1001) + "]", "runs must have at most 1000"),
]


GIVEN: dict[str, object] = {
    "agent": "writer",
    "timeout": "5m",
    "after": ["a"],
    "include_result": True,
    "accept_partial": True,
    "dependency_timeout": 60,
    "fallback_agent": "b",
    "retry": 2,
    "until_verified": 3,
    "backoff": "fixed",
    "progress": True,
    "allow_tool": ["Read"],
    "deny_tool": ["Bash"],
    "tag": ["x"],
}


@pytest.mark.requirement("cli:plan-file", "spawn:one-name")
@pytest.mark.parametrize("flag", FLAGS)
def test_a_key_of_a_plan_is_called_like_its_flag_or_as_before(tmp_path: Path, flag: str) -> None:
    rest = {"task": "t", **({"on_dependency_failure": "fallback"} if "fallback" in flag else {})}
    by_flag = plan(tmp_path, "flag.json", json.dumps([{**rest, flag: GIVEN[flag]}]))
    before = plan(tmp_path, "before.json", json.dumps([{**rest, FLAGS[flag]: GIVEN[flag]}]))

    assert read_plan(by_flag).specs == read_plan(before).specs
    called = {name: each.parameter.attribute for each in KNOWN for name in each.names}
    assert called[f"--{flag.replace('_', '-')}"] == FLAGS[flag]


@pytest.mark.requirement("cli:plan-file")
@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_a_wrong_plan_is_refused_with_the_place(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_plan(plan(tmp_path, name, content))
    assert message in caught.value.message
    assert name in caught.value.message


@pytest.mark.requirement("cli:plan-file")
def test_a_plan_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"plan file .*: there is no such file"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="is a directory, not a regular file"):
        read_plan(tmp_path)


@pytest.mark.requirement("budget:plan")
def test_a_plan_can_have_a_budget_of_all_its_runs(tmp_path: Path) -> None:
    text = 'budget = { max_tokens = 500, maxCostUsd = 2.5 }\n[[runs]]\ntask = "x"\n'
    found = read_plan(plan(tmp_path, "p.toml", text))

    assert found.budget == PlanLimit(max_tokens=500, max_cost_usd=2.5)


@pytest.mark.requirement("budget:plan")
@pytest.mark.parametrize(
    ("budget", "told"),
    [("{ max_runs = 5 }", "max"), ("{ max_tokens = 0 }", "maxTokens"), ("7", "must be a table")],
)
def test_a_budget_of_a_plan_limits_tokens_and_cost_alone(
    tmp_path: Path, budget: str, told: str
) -> None:
    with pytest.raises(UsageError, match="budget") as refused:
        read_plan(plan(tmp_path, "p.toml", f'budget = {budget}\n[[runs]]\ntask = "x"\n'))
    assert told in refused.value.message


@pytest.mark.requirement("cli:plan-file", "plan:environment")
def test_a_plan_has_a_name_and_its_runs_have_variables(tmp_path: Path) -> None:
    runs = '[[runs]]\ntask = "x"\nenv = { A = "1" }\n[[runs]]\ntask = "y"\n'
    unnamed = read_plan(plan(tmp_path, "nightly.toml", runs))
    named = read_plan(plan(tmp_path, "p.toml", f'name = "weekly"\n{runs}'))

    assert (unnamed.name, named.name) == ("nightly", "weekly")
    assert named.environments == ({"A": "1"}, {})
    assert read_plan(plan(tmp_path, "q.toml", '[[runs]]\ntask = "x"\n')).environments == ()


@pytest.mark.requirement("cli:plan-file")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('nmae = "x"\n', "did you mean 'name'?"),
        ("name = 7\n", "name must be a text of 1 to 80 characters"),
        ('[[runs]]\ntask = "x"\nenv = { A = 1 }\n', "runs[0].env must be a table of texts"),
        ('[[runs]]\ntask = "x"\nenv = { "A=B" = "1" }\n', "runs[0].env"),
    ],
)
def test_a_wrong_name_or_variable_of_a_plan_is_named(tmp_path: Path, text: str, told: str) -> None:
    runs = "" if "runs" in text else '[[runs]]\ntask = "x"\n'
    with pytest.raises(UsageError) as refused:
        read_plan(plan(tmp_path, "p.toml", text + runs))
    assert told in refused.value.message


@pytest.mark.requirement("cli:plan-file", "spawn:one-name")
def test_a_former_name_of_a_parameter_goes_on_and_its_new_one_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.toml"
    run = "[[runs]]\ntask = 'x'\nretry_count = 2\nrunTimeoutSeconds = 5\n"
    file.write_text(run + run)

    planned = read_plan(file)

    assert [each.retry_count for each in planned.specs] == [2, 2]
    assert capsys.readouterr().err == (
        f"{file}: retry_count is retry now, runTimeoutSeconds is timeout now; the former names"
        " go on\n"
    )
    file.write_text("[[runs]]\ntask = 'x'\nretry = 2\ntimeout = 5\n")
    read_plan(file)
    assert capsys.readouterr().err == ""


@pytest.mark.requirement("for-each:plan", "gate:alone")
def test_a_list_is_named_in_one_word_and_a_gate_needs_no_task(tmp_path: Path) -> None:
    text = """
[[runs]]
label = "fix"
for_each = "find"
task = "fix ${{ item }}"
[[runs]]
gate = "go on?"
after = "fix"
dependency_timeout = "1h"
"""
    each, gate = read_plan(plan(tmp_path, "p.toml", text)).specs
    assert each.for_each == ForEach(run="find")
    assert (gate.task, gate.gate, gate.dependency_timeout_seconds) == ("go on?", "go on?", 3600)
    for wrong, message in (
        (text.replace("${{ item }}", "it"), r"runs\[0\]: the task has no"),
        (
            text.replace('"find"', '{ run = "find", max_items = 1001 }'),
            "max_items must be 1 to 1000",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            read_plan(plan(tmp_path, "wrong.toml", wrong))
