"""The status of a run: its row, and what its worker was last seen at."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.api.answers.log_calls import events, play
from tests.api.home_daemon import Home

from subagents.api.wire.run_answers import RunStatus
from subagents.api.wire.wire_struct import read
from subagents.cli.show.run_status import allowed
from subagents.text import milliseconds_of

FIELDS = [
    *("agentId", "label", "runId", "phase", "state", "runtime", "sessionId", "attempt", "costUsd"),
    *("tokensIn", "tokensOut", "toolsUsed", "lastActivity", "lastActivityAge", "contextPercent"),
    *("pendingRequests", "latestProgress", "childrenActive", "deadline", "budget"),
]


@pytest.mark.requirement("status:fields")
def test_status_has_every_field_and_unknown_is_null(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn("hang", label="job", runTimeoutSeconds=60))["runId"]
        await home.until_phase(run, "running")
        found = await home.ok("GET", f"/v1/runs/{run}/status")
        assert set(FIELDS) <= set(found)
        assert (found["agentId"], found["label"], found["state"]) == ("hang", "job", "running")
        assert (found["costUsd"], found["tokensIn"], found["tokensOut"]) == (None, None, None)
        assert (found["contextPercent"], found["budget"]) == (None, None)
        assert (found["pendingRequests"], found["childrenActive"]) == ([], 0)
        assert found["runtime"] == "scripted"
        assert found["took"].endswith("s")
        assert found["tookMs"] >= 0
        left_ms = (milliseconds_of(found["deadline"]) or 0) - (
            milliseconds_of(found["startedAt"]) or 0
        )
        assert left_ms >= 60_000

        row = (await home.ok("GET", "/v1/runs"))["runs"][0]
        assert set(row) <= set(found)

    play(tmp_path, scenario)


@pytest.mark.requirement("status:granted")
def test_status_shows_what_the_receipt_granted(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        tools: dict[str, Any] = {"toolsAllow": ["read", "grep"], "toolsDeny": ["web"]}
        receipt = await home.spawn("hang", access="read", **tools)
        run = receipt["runId"]
        found = await home.ok("GET", f"/v1/runs/{run}/status")
        granted = found["granted"]

        assert granted["access"] == receipt["access"]
        assert granted["access"]["level"] == "read"
        assert granted["effectiveTools"] == receipt["effectiveTools"] == ["read", "grep"]
        assert granted["toolsDeny"] == ["web"]
        shown = [*allowed(read(found, RunStatus))]
        assert shown == [granted["access"]["text"], "tools: read, grep"]

    play(tmp_path, scenario)


@pytest.mark.requirement("status:fields", "progress:shown")
def test_status_tells_usage_tools_progress_and_open_questions(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        said = events(
            {
                "subagents": "tool",
                "name": "Bash",
                "input": {"command": "pytest -q"},
                "exitCode": 0,
            },
            {"subagents": "usage", "tokensIn": 45000, "tokensOut": 12000, "costUsd": 0.34},
            {"subagents": "context", "tokens": 150_000, "window": 200_000},
            {"subagents": "progress", "phase": "half", "percentComplete": 50},
        )
        run = (await home.spawn("shell", task=f"{said}\nsleep 30", budget={"maxTokens": 10**6}))[
            "runId"
        ]
        async with asyncio.timeout(20):
            while True:
                found = await home.ok("GET", f"/v1/runs/{run}/status")
                if found["latestProgress"] is not None and found["toolsUsed"]:
                    break
                await asyncio.sleep(0.02)
        assert (found["tokensIn"], found["tokensOut"], found["costUsd"]) == (45000, 12000, 0.34)
        assert (found["toolsUsed"], found["contextPercent"]) == (1, 75)
        assert "pytest" in found["lastActivity"]
        assert found["lastActivityAge"].endswith("s ago")
        assert found["latestProgress"]["phase"] == "half"
        assert found["budget"]["percent"] == 5
        listed = (await home.ok("GET", "/v1/runs"))["runs"][0]
        assert listed["latestProgress"] == found["latestProgress"]
        (node,) = (await home.ok("GET", "/v1/tree"))["roots"]
        assert node["latestProgress"] == found["latestProgress"]
        await home.ok("POST", f"/v1/runs/{run}/cancel", {})

    play(tmp_path, scenario)
