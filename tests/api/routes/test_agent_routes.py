"""What the calls below ``/v1/agents`` take, refuse and show to whom."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.api.home_daemon import Home, serving

from subagents.config.programs.program_catalog import installed, subject
from subagents.config.programs.scope_probes import Probe, ProbedClaim, ProbeVerdict, keep

AGENT = {"X-Subagents-Caller": "agent"}
CONFIG = """
[agents.main]
subagents.allow_agents = ["good"]

[agents.good]
runtime = "scripted"
script = [{ result = "done" }]
description = "Reviews code"
lane = "heavy"
run_timeout_seconds = 90
tools = ["Read"]
subagents.allow_agents = ["bad"]
capabilities = { tags = ["review"], cost_tier = "cheap" }

[agents.bad]
runtime = "scripted"
script = [{ exit = 1 }]
description = "Reviews code"
capabilities = { tags = ["review"], cost_tier = "cheap" }

[lanes.heavy]
slots = 2
"""


def play(tmp_path: Path, scenario: Callable[[Home], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), serving(tmp_path, CONFIG) as home:
            await scenario(home)

    asyncio.run(main())


@pytest.mark.requirement("http:agents")
def test_wrong_parameters_are_refused_with_what_is_allowed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        for path, told in (
            ("/v1/agents/suggest?costTier=huge", "costTier must be"),
            ("/v1/agents/suggest?limit=101", "limit must be a whole number from 1 to 100"),
            ("/v1/agents/suggest?cwd=a", "cwd must be an absolute path"),
            (f"/v1/agents/suggest?tags={','.join(map(str, range(101)))}", "at most 100 tags"),
            (f"/v1/agents/suggest?hint={'x' * 5000}", "hint must have at most 4000 characters"),
        ):
            status, document = await home.call("GET", path)
            assert (status, document["code"]) == (422, "invalid"), path
            assert told in str(document["message"])

    play(tmp_path, scenario)


@pytest.mark.requirement("http:agents")
def test_an_agent_is_advised_among_those_it_may_spawn_and_a_person_among_all(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        whole = await home.ok("GET", "/v1/agents/suggest?hint=review&tags=review&costTier=cheap")
        narrow = await home.ok("GET", "/v1/agents/suggest?hint=review", None, AGENT)
        first = await home.ok("GET", "/v1/agents/suggest?limit=1")

        assert [each["id"] for each in whole["suggestions"]] == ["bad", "good", "command"]
        assert whole["suggestions"][0]["reasons"] == [
            "has the tags: review",
            "its description has: review",
            "cost tier cheap",
        ]
        assert [each["id"] for each in narrow["suggestions"]] == ["good"]
        assert ([each["id"] for each in first["suggestions"]], first["total"]) == (["bad"], 3)
        assert (await home.ok("GET", "/v1/runs"))["total"] == 0, "nobody was started"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:agents")
def test_the_list_has_each_agents_card_and_limits(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        found = {each["id"]: each for each in (await home.ok("GET", "/v1/agents"))["agents"]}

        assert found["good"] == {
            "id": "good",
            "runtime": "scripted",
            "description": "Reviews code",
            "tags": ["review"],
            "costTier": "cheap",
            "typicalLatency": None,
            "notes": None,
            "allowed": True,
            "allowedCalls": [],
            "limits": {
                "model": None,
                "runTimeoutSeconds": 90,
                "lane": "heavy",
                "laneSlots": 2,
                "tools": ["Read"],
                "allowAgents": ["bad"],
                "maxSpawnDepth": 1,
            },
            "abilities": {
                "survivesDaemon": False,
                "steer": True,
                "resume": True,
                "scopeTools": True,
                "interrupt": True,
                "usage": True,
                "model": False,
            },
            "probe": None,
            "measured": [],
        }
        assert found["command"]["tags"] == []
        assert found["command"]["limits"]["runTimeoutSeconds"] is None
        assert "main" not in found

    play(tmp_path, scenario)


@pytest.mark.requirement("http:agents")
def test_the_list_has_what_a_probe_found_of_the_program_that_is_installed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        services = home.services
        agent = services.load_config(None, {}, {}).settings.agents["command"]
        claim = ProbedClaim("scope", ProbeVerdict.BROKEN, "the denied tool made the file")
        probe = Probe("command", "command", "sh", "1.2", 1_000, (claim,))
        keep(services.paths, subject(agent, installed(agent, os.environ)), probe)

        found = {each["id"]: each for each in (await home.ok("GET", "/v1/agents"))["agents"]}

        assert found["command"]["probe"] == {
            "version": "1.2",
            "probedAt": "1970-01-01T00:00:01.000Z",
            "claims": [
                {"name": "scope", "verdict": "broken", "detail": "the denied tool made the file"}
            ],
        }
        assert found["good"]["probe"] is None

    play(tmp_path, scenario)
