"""``stats`` and ``export``: what runs came to, in groups or one by one."""

import csv
import io
import json
from typing import Any

import pytest
from tests.cli.cli_home import Home

from subagents.api.wire.run_answers import Outcome, RunRow
from subagents.api.wire.usage_answers import Usage
from subagents.cli.show.report_commands import grouped


def row(agent: str, status: Any = "ok", **fields: object) -> RunRow:
    outcome = None if status is None else Outcome(status=status)
    values = {"run_id": "r-1", "label": "x", "agent_id": agent, "outcome": outcome, **fields}
    return RunRow(**values)  # type: ignore[arg-type]


@pytest.mark.requirement("cli:stats")
def test_groups_count_runs_and_add_up_what_is_known() -> None:
    spent = Usage(tokens=120, tokens_in=100, tokens_out=20, cost_usd=0.5)
    rows = [
        row("claude", usage=spent, tags=["a", "b"]),
        row("claude", "timeout", usage=Usage(tokens=1, cost_unknown_runs=1), tags=["a"]),
        row("codex", None),
        row("codex", "cancelled"),
    ]
    claude, codex = grouped(rows, "agent")

    assert (claude.name, claude.runs, claude.ok, claude.failed) == ("claude", 2, 1, 1)
    assert (claude.tokens, claude.cost_usd, claude.cost_unknown_runs) == (121, 0.5, 1)
    assert (codex.name, codex.runs, codex.active, codex.tokens) == ("codex", 2, 1, 0)
    assert (codex.failed, codex.cancelled) == (0, 1)
    assert [(each.name, each.runs) for each in grouped(rows, "tag")] == [
        *(("-", 2), ("a", 2), ("b", 1)),
    ]
    words = ["cancelled", "ok", "timeout", "working"]
    rows[2] = row("codex", None, state="working")
    assert [each.name for each in grouped(rows, "outcome")] == words


@pytest.mark.requirement("cli:stats")
def test_days_come_newest_first_and_time_is_that_of_the_work() -> None:
    times = [
        {"started_at": f"2026-11-{day}T12:00:00.000Z", "ended_at": f"2026-11-{day}T12:00:02.500Z"}
        for day in (20, 22)
    ]
    rows = [row("a", created_at=each["started_at"], **each) for each in times]
    newest, oldest = grouped(rows, "day")

    assert (newest.name, oldest.name) == ("2026-11-22", "2026-11-20")
    assert newest.seconds == 2.5


@pytest.mark.requirement("cli:export")
def test_runs_are_exported_for_a_spreadsheet_and_for_programs(shared: Home) -> None:
    task = "=1+1; echo 'a, b'; exit 3"
    shared.cli("run", task, "--label", "exported", "--tag", "t1", "--tag", "t2")
    flags = ("--label", "exported")
    (found,) = csv.DictReader(io.StringIO(shared.ok("list", "--format", "csv", *flags).out))
    (line,) = shared.ok("list", "--format", "jsonl", *flags).out.splitlines()
    (whole,) = shared.ok("list", "--format", "json", *flags).rows("runs")

    assert json.loads(line) == whole
    assert (whole["label"], whole["tags"], whole["costUsd"]) == ("exported", ["t1", "t2"], None)
    assert whole["directory"] == str(shared.work)
    assert (found["runId"], found["tags"], found["costUsd"]) == (whole["runId"], "t1 t2", "")
    # No spreadsheet takes it for a formula.
    assert (found["task"], whole["task"]) == (f"'{task}", task)
    assert found["status"] == whole["status"]
    assert float(found["seconds"]) == whole["seconds"] == whole["tookMs"] / 1000
    assert (found["state"], found["status"]) == ("failed", "error")
    for looked in (("list", *flags), ("list", "exported"), ("show", "exported")):
        answer: Any = shared.ok(*looked, "--json").json
        row = answer["runs"][0] if looked[0] == "list" else answer
        assert (row["tookMs"], row["state"]) == (whole["tookMs"], "failed")


@pytest.mark.requirement("cli:stats")
def test_stats_are_a_table_and_a_document(shared: Home) -> None:
    shared.ok("run", "true", "--label", "counted", "--tag", "counted")
    table = shared.ok("stats", "--by", "tag", "--tag", "counted").out.splitlines()
    assert table[0].split()[:2] == ["TAG", "RUNS"]
    assert table[1].split()[:5] == ["counted", "1", "1", "0", "0"]
    (group,) = shared.ok("stats", "--by", "agent", "--tag", "counted", "--json").rows("groups")
    assert (group["name"], group["runs"], group["ok"]) == ("command", 1, 1)
    assert "No run fits" in shared.ok("stats", "--tag", "nobody has it").err
