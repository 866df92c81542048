"""What the daemon says of itself over HTTP."""

import pytest
from tests.api.home_daemon import Home


@pytest.mark.requirement("http:daemon:views")
async def test_the_daemon_says_what_it_is_and_hides_secrets(home: Home) -> None:
    assert await home.ok("GET", "/healthz") == {"status": "ok"}
    assert (await home.ok("GET", "/readyz"))["degraded"] is None
    found = await home.ok("GET", "/v1/diagnostics")
    assert found["database"]["problems"] == []
    assert found["database"]["bytes"] > 0
    assert (await home.ok("GET", "/version"))["pid"] == found["daemonPid"]
    assert set(await home.ok("POST", "/v1/sweep")) == {
        "archived",
        "pruned",
        "redriven",
        "orphans",
    }
    config = await home.ok("GET", "/v1/config")
    shown = {each["key"]: each["value"] for each in config["values"]}
    assert shown["agents.shell.env.PLANTED"] == "(hidden)"
    assert shown["agents.defaults.subagents.max_concurrent"] == 4
    agents = await home.ok("GET", "/v1/agents", None, {"X-Subagents-Caller": "agent"})
    allowed = {each["id"]: each["allowed"] for each in agents["agents"]}
    assert (allowed["quick"], allowed["shell"]) == (True, False)


@pytest.mark.requirement("http:daemon:lanes")
async def test_lanes_say_what_is_taken_and_who_waits_at_each_depth(home: Home) -> None:
    assert (await home.ok("GET", "/v1/diagnostics"))["lanes"] == []
    runs = [(await home.spawn("hang"))["runId"] for _ in range(6)]
    await home.until_phase(runs[0], "running")
    await home.spawn("quick", headers=home.worker(runs[0]), task="x")
    (lane, *others) = (await home.ok("GET", "/v1/diagnostics"))["lanes"]
    assert lane == {"name": "default", "depth": 1, "slots": 4, "used": 4, "queued": 2}
    assert {each["depth"] for each in others} <= {2}
