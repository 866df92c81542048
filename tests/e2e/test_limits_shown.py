"""A provider that takes no more, as people and agents see it at a real daemon."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until

REFUSED = (
    '{ said = { subagents = "result", text = "", isError = true, error = "429: slow down", '
    "isLimit = true, retryAfterMs = 3600000 } }"
)
BUSY = (
    '{ said = { subagents = "error", text = "429", api = true, status = 429, '
    "retryAfterMs = 600000 } }"
)
AGENTS = (
    DEFAULTS
    + f"""
[agents.limited]
runtime = "scripted"
script = [{REFUSED}]

[agents.busy]
runtime = "scripted"
script = [{BUSY}, {{ hang = true }}]
"""
)


def printed(home: LiveHome, *arguments: str) -> str:
    program = [sys.executable, "-m", "subagents", *arguments]
    done = subprocess.run(
        program, env=home._env, cwd=home.work, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.requirement("limits:status:shown")
def test_status_why_and_list_say_whom_a_run_waits_for_and_until_when(tmp_path: Path) -> None:
    with live_home(tmp_path, config=AGENTS) as home:
        first = home.spawn("x", agent="limited")
        row = home.until_phase(first, "retry_wait")
        assert row["runStatus"] == "waiting"
        assert re.fullmatch(
            r"waiting for its model's provider: 429: slow down; continues, due in (59m \d+s|1h)",
            row["why"],
        )
        second = home.spawn("y", agent="limited")
        row = home.row(second)
        assert row["phase"] == "queued"
        assert re.fullmatch(r"waiting for limited: refused, until \d\d:\d\d:\d\d", row["waiting"])
        assert row["why"] == row["waiting"]
        assert row["waiting"] in printed(home, "why", second)
        assert row["waiting"] in printed(home, "status", second)
        listed = home.get("/v1/runs")["runs"]
        assert {each["why"] for each in listed} >= {row["why"]}
        assert not home.get("/v1/attention")["items"]
        home.post(f"/v1/runs/{second}/cancel")
        home.post(f"/v1/runs/{first}/cancel")
        items = home.finish(first, second)
        assert {item["outcome"]["status"] for item in items} == {"cancelled"}


@pytest.mark.requirement("limits:live:shown")
def test_the_status_of_a_live_run_says_that_its_program_waits(tmp_path: Path) -> None:
    with live_home(tmp_path, config=AGENTS) as home:
        run_id = home.spawn("x", agent="busy")
        waiting = until(lambda: home.row(run_id)["waiting"], what="waiting")
        assert re.fullmatch(r"provider limit \(429\), next try in \d+ s", waiting)
        shown = printed(home, "status", run_id)
        assert re.search(r"waiting: provider limit \(429\), next try in \d+ s", shown)
