"""Editors accept what the reader accepts, and refuse what it refuses."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from subagents.errors import UsageError
from subagents.extensions.plans.plan_file import read_plan
from subagents.extensions.plans.plan_schema import plan_schema

VALIDATOR = jsonschema_rs.validator_for(json.dumps(plan_schema()))
GOOD: list[object] = [
    [{"task": "t"}],
    [{"task": "t", "run_timeout_seconds": "1h30m", "retryDelay": "PT5S"}],
    {"$schema": "plan.schema.json", "runs": [{"task": "t"}]},
    {
        "name": "n",
        "vars": {"retries": 2},
        "budget": {"max_tokens": 5, "maxCostUsd": 0.5},
        "runs": [
            {
                "task": "t",
                "label": "l",
                "matrix": {"a": ["1", 2, True], "exclude": [{"a": "1"}]},
                "retry_count": "${{ vars.retries }}",
                "retryBackoff": "fixed",
                "env": {"A": "${{ matrix.a }}"},
                "verification": {"artifacts": [{"path": "p", "min_bytes": 1}]},
            },
            {"task": "t", "matrix": [{"x": "1"}], "depends_on": "l"},
            {"task": "t", "dependsOn": ["l"]},
        ],
    },
]
BAD: list[object] = [
    {},
    [],
    {"runs": [{"label": "no task"}]},
    {"runs": [{"task": "t"}], "budgets": {}},
    [{"task": "t", "lable": "x"}],
    [{"task": "t", "retry_count": 101}],
    [{"task": "t", "retry_delay": "soon"}],
    [{"task": "t", "retry_count": "5m"}],
    [{"task": "t", "retryBackoff": "never"}],
    [{"task": "t", "matrix": {"a": [3.1]}}],
    [{"task": "t", "matrix": {}}],
    [{"task": "t", "env": {"A": 1}}],
    [{"task": "t", "verification": {"artifacts": [{"min_bytes": 1}]}}],
]


def is_read(tmp_path: Path, plan: object) -> bool:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(plan))
    try:
        read_plan(file)
    except UsageError:
        return False
    return True


@pytest.mark.requirement("plan:schema")
@pytest.mark.parametrize("plan", GOOD)
def test_what_is_read_is_valid(tmp_path: Path, plan: object) -> None:
    assert is_read(tmp_path, plan)
    assert VALIDATOR.is_valid(plan)


@pytest.mark.requirement("plan:schema")
@pytest.mark.parametrize("plan", BAD)
def test_what_is_refused_is_invalid(tmp_path: Path, plan: object) -> None:
    assert not is_read(tmp_path, plan)
    assert not VALIDATOR.is_valid(plan)
