"""What the daemon says of itself over HTTP."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home, play


@pytest.mark.requirement("http:daemon:views")
def test_the_daemon_says_what_it_is_and_hides_secrets(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)
