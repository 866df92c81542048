"""A plan as one row of a list, with counts of its steps."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home, play


@pytest.mark.requirement("http:list:folded")
def test_a_step_that_another_step_spawned_is_counted_once(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        step = {"task": "t ${{ item }}", "agentId": "quick"}
        specs = [{**step, "label": "find"}, {**step, "label": "each", "forEach": {"run": "find"}}]
        plan = await home.ok("POST", "/v1/plans", {"specs": specs, "cwd": str(tmp_path)})
        await home.wait(*(each["runId"] for each in plan["receipts"]))

        (row,) = (await home.ok("GET", "/v1/runs?roots=1&folded=1"))["runs"]
        (each,) = (await home.ok("GET", "/v1/runs?roots=1&label=each"))["runs"]
        assert (row["below"]["runs"], each["below"]["runs"]) == (2, 1)

    play(tmp_path, scenario)
