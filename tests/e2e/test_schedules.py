"""Schedules of a real daemon that is killed at any moment: each time is decided once."""

import random
import time
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.live_home import live_home, until

from subagents.text import milliseconds_of


def has_come(moment_s: float) -> bool:
    return time.time() >= moment_s


@pytest.mark.requirement("schedule:once", "durability:kill-9")
def test_kill_9_at_any_moment_neither_forgets_a_time_nor_starts_its_work_twice(
    tmp_path: Path,
) -> None:
    dice = random.Random(12)  # noqa: S311
    with live_home(tmp_path) as home:
        spec = {"task": "true", "agentId": "sh"}
        body = {"name": "tick", "when": "every 10s", "specs": [spec], "cwd": str(tmp_path)}
        made = home.post("/v1/schedules", {**body, "overlap": "allow"})
        added_ms = milliseconds_of(made["createdAt"])
        assert added_ms is not None

        for number in (1, 2):
            # Around the moment at which its work is started: before, in the middle, after.
            killed_s = added_ms / 1000 + 10 * number + dice.uniform(-0.01, 0.03)
            until(partial(has_come, killed_s), what="its time")
            home.restart_after_kill()

        def rows() -> list[tuple[str]]:
            return home.read("SELECT run_id FROM run WHERE tags LIKE '%schedule:tick%'")

        until(lambda: len(rows()) >= 2, what="its runs")
        home.finish(*(run_id for (run_id,) in rows()))
        times = home.get("/v1/schedules/tick")["times"]
        started = [each for each in times if each["decision"] == "started"]
        assert len(started) == len(rows()) == len({each["dueAt"] for each in started})
        assert sum(each["times"] for each in times) == len(times)
        assert sorted(run for each in started for run in each["runIds"]) == sorted(
            run_id for (run_id,) in rows()
        )
