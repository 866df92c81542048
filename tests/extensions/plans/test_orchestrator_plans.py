"""Plans in the Python API, with real workers."""

from pathlib import Path

import pytest
from tests.client.test_orchestrator import embedded

from subagents import Conflict, Orchestrator


@pytest.mark.requirement("python:plan")
def test_a_plan_is_found_by_its_name_retried_and_cancelled(tmp_path: Path) -> None:
    async def scenario(sub: Orchestrator) -> None:
        mark = tmp_path / "mended"
        good, breaks = await sub.plan(
            [
                {"task": "echo good", "agent": "command", "label": "good"},
                {"task": f"test -e {mark}", "agent": "command", "label": "breaks"},
            ],
            name="release",
            max_cost_usd=2.5,
            idempotency_key="once",
        )
        await sub.wait_all([good, breaks])
        (standing,) = await sub.plans()
        assert (standing.plan_id, standing.name, standing.status) == (good.id, "release", "failed")
        mark.touch()
        (again,) = await sub.retry_plan("release")
        await again.wait()
        found = await sub.get_plan("last")
        assert (found.status, [row.run_id for row in found.runs]) == ("ok", [good.id, again.id])
        with pytest.raises(Conflict, match="nothing to retry"):
            await sub.retry_plan(good.id)
        assert (await sub.cancel_plan("release")).status == "ok"

    embedded(tmp_path, scenario)
