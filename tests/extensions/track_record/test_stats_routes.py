"""What is told over HTTP of what attempts came to, to whom, and how it counts in a choice."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home
from tests.api.tools import tool_callers
from tests.api.tools.tool_callers import ToolCaller

from subagents.extensions.track_record.track_record_files import PerformanceFiles

CONFIG = """
[agents.good]
runtime = "scripted"
script = [{ result = "done" }]
description = "Reviews code"
capabilities = { tags = ["review"], cost_tier = "cheap" }

[agents.bad]
runtime = "scripted"
script = [{ exit = 1 }]
description = "Reviews code"
capabilities = { tags = ["review"], cost_tier = "cheap" }
"""


@pytest.mark.requirement("http:agents")
@pytest.mark.configured(CONFIG)
async def test_wrong_parameters_are_refused_with_what_is_allowed(daemon: Home) -> None:
    for path, told in (
        ("/v1/agents/stats?by=colour", "by must be"),
        ("/v1/agents/stats?days=0", "days must be a whole number from 1 to 30"),
        ("/v1/agents/stats?agents=a", 'did you mean "agent"?'),
        ("/v1/stats/series?bucket=week", "bucket must be"),
    ):
        status, document = await daemon.call("GET", path)
        assert (status, document["code"]) == (422, "invalid"), path
        assert told in str(document["message"])


@pytest.mark.requirement("http:agents")
@pytest.mark.configured(CONFIG)
async def test_of_two_agents_that_say_the_same_of_themselves_the_one_that_did_it_is_suggested(
    daemon: Home,
) -> None:
    for agent in ("good", "bad"):
        receipt = await daemon.spawn(agent)
        await daemon.wait(str(receipt["runId"]))
    found = await daemon.ok("GET", "/v1/agents/suggest?hint=review&tags=review&costTier=cheap")

    assert [each["id"] for each in found["suggestions"]] == ["good", "bad", "command"]
    assert found["suggestions"][0]["reasons"] == [
        "has the tags: review",
        "its description has: review",
        "cost tier cheap",
        "1 of 1 runs ok (21–100 %), without a contract",
    ]


@pytest.mark.requirement("tools:agents")
def test_an_agent_that_lists_others_sees_what_their_attempts_came_to(tmp_path: Path) -> None:
    async def scenario(desk: ToolCaller) -> None:
        await desk.spawn("bad")
        await desk.ok("sessions_wait")
        found = {each["id"]: each for each in (await desk.ok("agents_list"))["agents"]}

        assert found["quick"]["record"] is None
        assert found["bad"]["record"]["outcomes"] == {"failure": 1}
        assert found["bad"]["record"]["success"]["n"] == 1
        assert found["bad"]["record"]["text"] == "0 of 1 runs ok (0–79 %), without a contract"

    tool_callers.play(tmp_path, scenario)


@pytest.mark.requirement("http:agents")
@pytest.mark.configured(CONFIG)
async def test_records_that_cannot_be_read_are_an_answer_with_the_way_out(
    daemon: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: PerformanceFiles) -> dict[int, int]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(PerformanceFiles, "sizes", broken)
    for path in ("/v1/agents/stats", "/v1/stats/series", "/v1/agents/suggest"):
        status, document = await daemon.call("GET", path)
        assert (status, document["retryable"]) == (503, True)
        assert "Permission denied" in str(document["message"])
        assert "agent-performance" in str(document["hint"])


@pytest.mark.requirement("http:series")
@pytest.mark.configured(CONFIG)
async def test_sums_over_the_whole_time_are_the_daemons_and_say_of_how_many_they_are_known(
    daemon: Home,
) -> None:
    ids = [(await daemon.spawn(agent))["runId"] for agent in ("good", "good", "bad")]
    await daemon.wait(*ids)
    found = await daemon.ok("GET", "/v1/stats/series?by=agent&days=2")
    assert {each["name"]: each["attempts"] for each in found["sums"]} == {"good": 2, "bad": 1}
    assert (found["total"]["attempts"], found["total"]["name"]) == (3, None)
    assert (found["total"]["costUsd"], found["total"]["costKnownOf"]) == (None, 0)
    assert sum(each["total"]["attempts"] for each in found["buckets"]) == 3
