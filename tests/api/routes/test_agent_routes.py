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
            ("/v1/agents/stats?by=colour", "by must be"),
            ("/v1/agents/stats?days=0", "days must be a whole number from 1 to 30"),
            ("/v1/agents/stats?agents=a", 'did you mean "agent"?'),
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
        for agent in ("good", "bad"):
            receipt = await home.spawn(agent)
            await home.wait(str(receipt["runId"]))
        whole = await home.ok("GET", "/v1/agents/suggest?hint=review&tags=review&costTier=cheap")
        narrow = await home.ok("GET", "/v1/agents/suggest?hint=review", None, AGENT)
        first = await home.ok("GET", "/v1/agents/suggest?limit=1")

        assert [each["id"] for each in whole["suggestions"]] == ["good", "bad", "command"]
        assert whole["suggestions"][0]["reasons"] == [
            "has the tags: review",
            "its description has: review",
            "cost tier cheap",
            "1 of 1 runs ok (21–100 %), without a contract",
        ]
        assert [each["id"] for each in narrow["suggestions"]] == ["good"]
        assert ([each["id"] for each in first["suggestions"]], first["total"]) == (["good"], 3)
        assert (await home.ok("GET", "/v1/runs"))["total"] == 2, "nobody was started"

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


@pytest.mark.requirement("http:agents")
def test_records_that_cannot_be_read_are_an_answer_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(home: Home) -> None:
        log = home.services.engine.track_records._records

        def broken() -> dict[int, int]:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(log, "sizes", broken)
        for path in ("/v1/agents/stats", "/v1/stats/series", "/v1/agents/suggest"):
            status, document = await home.call("GET", path)
            assert (status, document["retryable"]) == (503, True)
            assert "Permission denied" in str(document["message"])
            assert "agent-performance" in str(document["hint"])

    play(tmp_path, scenario)


@pytest.mark.requirement("http:series")
def test_sums_over_the_whole_time_are_the_daemons_and_say_of_how_many_they_are_known(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        ids = [(await home.spawn(agent))["runId"] for agent in ("good", "good", "bad")]
        await home.wait(*ids)
        found = await home.ok("GET", "/v1/stats/series?by=agent&days=2")
        assert {each["name"]: each["attempts"] for each in found["sums"]} == {"good": 2, "bad": 1}
        assert (found["total"]["attempts"], found["total"]["name"]) == (3, None)
        assert (found["total"]["costUsd"], found["total"]["costKnownOf"]) == (None, 0)
        assert sum(each["total"]["attempts"] for each in found["buckets"]) == 3

    play(tmp_path, scenario)
