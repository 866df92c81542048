"""Schedules in the Python API, with real workers."""

from pathlib import Path

import pytest
from tests.client.test_orchestrator import embedded

from subagents import Conflict, Orchestrator, PlanRun


@pytest.mark.requirement("python:schedule", "schedule:run-now")
def test_a_schedule_is_added_started_paused_and_removed(tmp_path: Path) -> None:
    async def scenario(sub: Orchestrator) -> None:
        runs: list[PlanRun] = [{"task": "echo hello $WHO", "agent": "command", "timeout": "1m"}]
        made = await sub.schedule("greet", "@daily", runs, env={"WHO": "you"})
        assert (made.name, made.overlap, made.tag) == ("greet", "skip", "schedule:greet")
        (run,) = await sub.run_schedule("greet")
        assert (await run.wait()).result == "hello you"
        (found,) = await sub.schedules()
        assert found.times[0].run_ids == [run.id]
        with pytest.raises(Conflict, match="already"):
            await sub.schedule("greet", "@daily", runs)
        assert (await sub.pause_schedule("greet")).next_at is None
        assert (await sub.resume_schedule("greet")).next_at is not None
        await sub.remove_schedule("greet")
        assert await sub.schedules() == []

    embedded(tmp_path, scenario)
