"""A plan as one row of a list, with counts of its steps."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home


@pytest.mark.requirement("http:list:folded")
async def test_a_step_that_another_step_spawned_is_counted_once(
    daemon: Home, tmp_path: Path
) -> None:
    step = {"task": "t ${{ item }}", "agentId": "quick"}
    specs = [{**step, "label": "find"}, {**step, "label": "each", "forEach": {"run": "find"}}]
    plan = await daemon.ok("POST", "/v1/plans", {"specs": specs, "cwd": str(tmp_path)})
    await daemon.wait(*(each["runId"] for each in plan["receipts"]))

    (row,) = (await daemon.ok("GET", "/v1/runs?roots=1&folded=1"))["runs"]
    (each,) = (await daemon.ok("GET", "/v1/runs?roots=1&label=each"))["runs"]
    assert (row["below"]["runs"], each["below"]["runs"]) == (2, 1)
