"""Alerts end to end: a real worker, a real daemon, kill -9 in the middle; each is told once."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until

from subagents.domain.alerts.allowance import tokens_of

TALKER = """
import json, os, pathlib, sys, time

def say(**event):
    kind = event.pop("kind")
    print(json.dumps({"subagents": kind, **event}), flush=True)

def tool(name, **more):
    say(kind="tool", name=name, **more)

def gate(name, is_silent):
    pathlib.Path(f"at-{name}").touch()
    told = time.monotonic()
    while not pathlib.Path(f"go-{name}").exists():
        time.sleep(0.02)
        if not is_silent and time.monotonic() > told + 0.5:
            say(kind="text", text="still here")
            told = time.monotonic()

def plan(*states):
    names = ["Read specs and source files", "Implement ring buffer"]
    return [{"content": n, "status": s} for n, s in zip(names, states)]

say(kind="text", text="I begin")
say(kind="error", text="rate limited", api=True, retry="2/5")
tool("TodoWrite", input={"todos": plan("in_progress", "pending")}, output="ok")
tool("TodoWrite", input={"todos": plan("completed", "pending")}, output="ok")
tool("Bash", input={"command": "npm run build"}, exitCode=0, output="done")
tool("Bash", input={"command": "git commit -m 'feat: ring buffer'"}, exitCode=0,
     output="[main abc1234] feat: ring buffer\\n 1 file changed")
gate("half", is_silent=False)
tool("Bash", input={"command": "npm run build"}, exitCode=2,
     output="src/bridge.ts(3,1): error TS2304: Cannot find name 'x'.\\nFound 1 error.")
say(kind="context", tokens=150000, window=200000)
tool("Task", input={"description": "a"}, output="ok")
tool("Bash", input={"command": "cat a"}, exitCode=1, isError=True, output="no such file")
tool("Bash", input={"command": "cat b"}, exitCode=1, isError=True, output="no such file")
tool("Bash", input={"command": "cat c"}, exitCode=1, isError=True, output="exit code 1")
say(kind="usage", tokensIn=1000, tokensOut=10, costUsd=0.5)
tool("Edit", input={"file_path": "src/bridge.py"}, output="ok")
gate("silent", is_silent=True)
print("the end")
"""

AGENT = """
[agents.talker]
runtime = "command"
command = [{python}, "-c", {script}]
grace_seconds = 0.5

[agents.talker.alerts]
stuck_seconds = 8
commit_batch_seconds = 1
"""

EXPECTED: Sequence[tuple[str, str]] = (
    ("api_error", "❌ API error: rate limited (retry 2/5)"),
    ("task_milestone", "📋 [1/2] Read specs and source files"),
    ("task_milestone", "📋 [1/2] Read specs and source files ✅"),
    ("build_result", "🔨 Build passed ✅ (0 errors)"),
    ("git_commit", '📝 Committed: "feat: ring buffer"'),
    ("build_result", "🔨 Build failed: 1 error in bridge.ts"),
    ("context_pressure", "🧠 Context at 75% — may compact soon"),
    ("subagent_spawn", "🔄 Spawned 1 sub-agent"),
    ("failure_loop", "🔁 3 consecutive Bash failures — possibly stuck"),
    ("budget_alert", "💰 $0.50 spent (budget: $1.00)"),
    ("stuck", "⚠️ No progress for N seconds (last: editing bridge.py)"),
)


def config(script: str, more: str = "") -> str:
    # JSON strings are TOML strings, but for the escapes of characters beyond the first plane.
    quoted = json.dumps(script, ensure_ascii=False)
    return DEFAULTS + AGENT.format(python=json.dumps(sys.executable), script=quoted) + more


def told(home: LiveHome, run_id: str) -> list[tuple[str, str]]:
    """``(kind, text)`` of every alert message so far, read or not, in order."""
    rows = home.get("/v1/inbox", all=1, limit=1000)["messages"]
    mine = [row for row in rows if row["runId"] == run_id and row["kind"] == "alert"]
    return [(row["id"].rpartition(":")[2], _timeless(row["text"])) for row in mine]


def _timeless(text: str) -> str:
    """Those of the rule, or some more where the machine is busy."""
    return re.sub(r"for \d+ seconds", "for N seconds", text)


@pytest.mark.requirement("alerts:e2e")
def test_each_alert_reads_as_specified_and_fires_once_over_a_kill(tmp_path: Path) -> None:
    with live_home(tmp_path, config=config(TALKER)) as home:
        run_id = home.spawn("x", agent="talker", label="sentinella", budget={"maxCostUsd": 1.0})
        until((home.work / "at-half").exists, what="the first half")
        until(lambda: len(told(home, run_id)) >= 5, what="five alerts")
        home.restart_after_kill()
        (home.work / "go-half").touch()
        until((home.work / "at-silent").exists, what="the second half")
        until(lambda: "stuck" in dict(told(home, run_id)), what="the silence")
        home.restart_after_kill()
        (home.work / "go-silent").touch()
        home.finish(run_id)

        found = told(home, run_id)
        assert sorted(found) == sorted((k, f"[subagent:sentinella] {t}") for k, t in EXPECTED)


CHATTERBOX = """
import json
for n in range(250):
    for status in ("in_progress", "completed"):
        todos = [{"content": f"item {n}", "status": status}]
        print(json.dumps({"subagents": "tool", "name": "TodoWrite", "input": {"todos": todos}}))
"""


@pytest.mark.requirement("alerts:e2e-allowance")
def test_a_run_of_five_hundred_events_pushes_no_more_than_its_allowance(tmp_path: Path) -> None:
    with live_home(tmp_path, config=config(CHATTERBOX)) as home:
        run_id = home.spawn("x", agent="talker", label="chatty")
        home.finish(run_id)
        found = told(home, run_id)

        assert 5 < len(found) < 60
        assert sum(tokens_of(text) for _, text in found) <= 600
        rows = home.get(f"/v1/runs/{run_id}/timeline", limit=1000)["events"]
        assert sum(row["type"] == "Alerted" for row in rows) > 200
