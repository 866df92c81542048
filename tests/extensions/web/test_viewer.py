"""What a viewer gets to see: every route of the daemon has a row here."""

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest
from starlette.routing import Route
from tests.api.home_daemon import Home, segment
from tests.api.login_tab import Tab, play

from subagents.api.server.app import create_app
from subagents.extensions.web.tcp import LOG_IN, LOG_OUT, READS

RUN: Final = "/v1/runs/{sel}"
SEEN: Final = {
    *("/healthz", "/version", "/v1/login", "/v1/events", "/v1/attention", "/v1/alerts"),
    *("/v1/runs", "/v1/tree", "/v1/graph", "/v1/inbox", "/v1/requests/{id}"),
    *(RUN, f"{RUN}/status", f"{RUN}/why", f"{RUN}/timeline", f"{RUN}/tree", f"{RUN}/log"),
    *(f"{RUN}/progress", f"{RUN}/result", f"{RUN}/result/text", f"{RUN}/diff"),
    *(f"{RUN}/artifacts", f"{RUN}/artifacts/content"),
    *("/v1/plans", "/v1/plans/{sel}", "/v1/schedules", "/v1/schedules/{sel}"),
}
"""What runs do, and what starts them."""
CLOSED: Final = {
    *("/v1/config", "/v1/agents", "/v1/agents/suggest", "/v1/tools", "/openapi.json"),
    *("/v1/agents/stats", "/v1/stats/series", "/metrics"),
    *("/v1/diagnostics", "/readyz", "/v1/cluster", "/v1/worktrees", "/v1/logins"),
    *("/mcp", "/a2a/{agent}/.well-known/agent-card.json", f"{RUN}/ag-ui"),
    *("/.well-known/agent-card.json",),
}
"""Configuration, what all sessions came to, the machine, who is logged in, agents' protocols."""
CHANGES: Final = frozenset(("CancelRequested", "SteerRequested", "Paused", "Prioritized"))
"""Events of what a person does to a run."""
METHODS: Final = {*READS, "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def every_call(home: Home) -> set[tuple[str, str]]:
    """The methods and paths of all that the daemon answers, whoever adds it."""
    routes = create_app(home.services).routes
    assert all(isinstance(each, Route) for each in routes)
    found = [each for each in routes if isinstance(each, Route)]
    return {(name, each.path) for each in found for name in each.methods or METHODS}


@pytest.mark.requirement("login:viewer")
def test_a_viewer_sees_what_the_table_says_of_each_route_and_no_secret(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        done = (await tab.home.spawn("shell", task="echo done", label="done"))["runId"]
        await tab.home.wait(done)
        await tab.opened((await tab.link(role="viewer", validFor="1h"))[0])
        reads = {path for method, path in every_call(tab.home) if method in READS}
        assert reads == SEEN | CLOSED, "a new route is in neither: say whether a viewer sees it"
        for path in sorted(reads):
            at = path.replace("{sel}", segment(done)).replace("{id}", segment(f"{done}:q1"))
            async with tab.stream("GET", at.replace("{agent}", "quick")) as answered:
                is_open = answered.status_code in {200, 404, 409, 422}
                assert is_open if path in SEEN else answered.status_code == 403, path
                is_stream = path == "/v1/events"
                text = "" if is_stream else (await answered.aread()).decode("latin-1")
                assert "planted-secret" not in text, path
        for path in ("/v1/runs", f"/v1/runs/{done}", f"/v1/runs/{done}/log", "/v1/attention"):
            assert await tab.status("GET", path) == 200
        for path in ("/v1/%63onfig", "/v1/runs/../config", "/v1/runs/x%2F..%2F..%2Fconfig"):
            assert await tab.status("GET", path) in {403, 404}

    play(tmp_path, scenario, more="[web]\nlinks = true\n")


@pytest.mark.requirement("login:viewer")
def test_a_viewer_can_make_no_call_that_changes_something(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        run_id = (await tab.home.spawn("hang", label="kept"))["runId"]
        await tab.home.until_phase(run_id, "running")
        await tab.opened((await tab.link(role="viewer", validFor="1h"))[0])
        writes = {each for each in every_call(tab.home) if each[0] not in READS}
        others = {(name, "/nope") for name in METHODS - READS}
        for method, path in sorted((writes | others) - {LOG_IN, LOG_OUT}):
            answered = await tab.request(method, path.replace("{sel}", segment(run_id)), json={})
            assert answered.status_code == 403, (method, path)
            assert answered.json()["message"] == "a viewer may look, and change nothing"
        for more in ({"X-Subagents-Caller": "agent"}, {"X-Subagents-Session": "agent:main:x"}):
            assert await tab.status("POST", f"/v1/runs/{run_id}/cancel", **more) == 403
        timeline = await tab.home.ok("GET", f"/v1/runs/{run_id}/timeline")
        assert not CHANGES & {each["type"] for each in timeline["events"]}
        assert (await tab.home.ok("GET", "/v1/runs"))["total"] == 1
        # Whoever reads of it in `doctor` is told which login that was.
        login_id = (await tab.request("GET", "/v1/login")).json()["loginId"]
        refused = tab.home.services.refusals
        await refused.flush()
        lines = (await asyncio.to_thread(refused.file.read_text)).splitlines()
        assert {json.loads(each)["by"] for each in lines} == {f"the viewer {login_id}"}
        assert await tab.status(*LOG_OUT) == 200
        assert await tab.status("GET", "/v1/runs") == 401

    play(tmp_path, scenario, more="[web]\nlinks = true\n")
