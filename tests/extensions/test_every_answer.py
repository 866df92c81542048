"""Every operation of the core and of all extensions answers as the OpenAPI document says."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.api.answer_schemas import operation_of
from tests.api.home_daemon import Home, segment, serving

from subagents.api.server import openapi

Document = dict[str, Any]


@pytest.mark.requirement("openapi:answers")
def test_every_answer_has_the_fields_that_are_described_and_no_others(tmp_path: Path) -> None:
    """``Home`` holds every answer against the document; here each operation answers once."""

    async def scenario() -> None:
        async with serving(tmp_path) as home:
            answered = await everything(home)
            left_out = {("GET", "/metrics"), ("POST", "/v1/shutdown")}
            left_out |= {
                ("GET", f"/v1/runs/{{sel}}/{text}") for text in ("result/text", "artifacts/content")
            }
            # Only of a run with a worktree: see the end-to-end tests of those.
            left_out |= {("GET", "/v1/runs/{sel}/diff"), ("POST", "/v1/runs/{sel}/merge")}
            left_out |= {("GET", "/v1/worktrees"), ("POST", "/v1/worktrees/prune")}
            # Only of a delivery that was given up; it answers as pause does.
            left_out.add(("POST", "/v1/runs/{sel}/redeliver"))
            # Of a browser's own login, over TCP.
            left_out |= {("POST", "/v1/login"), ("DELETE", "/v1/login")}
            left_out.add(("DELETE", "/v1/logins/{login}"))
            # With workers and a channel of their own: see the page's first minute and its notices.
            left_out |= {("POST", "/v1/demo")}
            left_out |= {("POST", "/v1/notifications/{channel}/test")}
            # Only of a node of a cluster.
            left_out |= {("GET", "/v1/cluster")}
            left_out |= {("POST", f"/v1/cluster/{text}") for text in ("drain", "forget")}
            assert answered == set(openapi.operations()) - left_out

    asyncio.run(scenario())


async def schedules(home: Home, ok: Callable[..., Awaitable[Document]], spec: object) -> None:
    """Every call about schedules."""
    body = {"name": "s", "when": "@daily", "specs": [spec], "cwd": home.cwd}
    await ok("POST", "/v1/schedules", body)
    await ok("GET", "/v1/schedules")
    started = await ok("POST", "/v1/schedules/s/run")
    await home.wait(*started["runIds"])
    for method, path in (("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("DELETE", "")):
        await ok(method, f"/v1/schedules/s{path}")


async def dry_runs(
    home: Home, ok: Callable[..., Awaitable[Document]], plan: list[dict[str, object]]
) -> None:
    """Every call that starts nothing."""
    await ok("POST", "/v1/runs/dry-run", {"spec": plan[0], "cwd": home.cwd})
    await ok("POST", "/v1/plans/dry-run", {"specs": plan, "cwd": home.cwd})


async def everything(home: Home) -> set[tuple[str, str]]:
    """Call every operation that answers JSON and lets the daemon live."""
    called: set[tuple[str, str]] = set()

    async def ok(
        method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        found = operation_of(method, path)
        assert found is not None, path
        called.add(found)
        return await home.ok(method, path, body, headers)

    spec = {"task": "work", "agentId": "hang", "budget": {"maxRuns": 3}, "thread": True}
    contract = {"artifacts": [{"path": "none"}]}
    plan: list[dict[str, object]] = [
        {"task": "a", "agentId": "quick", "label": "a", "verification": contract},
        {"task": "b", "agentId": "quick", "label": "b", "dependsOn": ["a"]},
    ]
    await dry_runs(home, ok, plan)
    run = (await ok("POST", "/v1/runs", {"spec": spec, "cwd": home.cwd}))["runId"]
    await home.until_phase(run, "running")
    made = await ok("POST", "/v1/plans", {"specs": plan, "cwd": home.cwd})
    await home.wait(*(each["runId"] for each in made["receipts"]))
    await ok("GET", "/v1/plans")
    for method, path in (
        ("GET", ""),
        ("POST", "/retry"),
        ("POST", "/cancel"),
        ("DELETE", "/cancel"),
    ):
        await ok(method, f"/v1/plans/{made['planId']}{path}")
    await schedules(home, ok, plan[0])
    me, base = home.worker(run), f"/v1/runs/{run}"
    await ok("POST", f"{base}/progress", {"phase": "p", "metrics": {"n": 1.5, "s": "x"}}, me)
    await ok("POST", f"{base}/progress", {"phase": "too soon"}, me)
    await ok("GET", f"{base}/progress")
    await ok("POST", f"{base}/notify", {"message": "m", "priority": "blocker"}, me)
    await ok("POST", f"{base}/hold", {"inputTokens": 10, "outputTokens": 5}, me)
    asked = await ok("POST", "/v1/requests", {"runId": run, "question": "which?"}, me)
    request = f"/v1/requests/{segment(asked['requestId'])}"
    for path in (request, base, f"{base}/status", f"{base}/result", f"{base}/tree"):
        await ok("GET", path)
    await ok("POST", f"{request}/respond", {"response": "this"})
    await ok("POST", f"{base}/report", {"summary": "s", "artifacts": [{"path": "x"}]}, me)
    # One message in two seconds is taken, so each goes to a run of its own.
    others = [(await home.spawn("hang", thread=True))["runId"] for _ in range(2)]
    for other in others:
        await home.until_phase(other, "running")
    await ok("POST", f"{base}/steer", {"message": "be quick"})
    await ok("POST", f"/v1/runs/{others[0]}/send", {"message": "be quick"})
    await ok("POST", f"/v1/threads/{others[1]}/messages", {"text": "be quick"})
    for method in ("DELETE", "POST"):
        await ok(method, f"/v1/runs/{others[0]}/interrupt")
    for path in ("/v1/runs", "/v1/tree", "/v1/inbox?all=1", "/v1/attention", "/v1/tools"):
        await ok("GET", path)
    for path in ("timeline", "why", "log", "log?summary=1", "artifacts"):
        await ok("GET", f"{base}/{path}")
    await ok("POST", "/v1/tools/sessions_list", {})
    for verb, given in (("pause", None), ("priority", {"priority": 3}), ("resume", None)):
        await ok("POST", f"{base}/{verb}", given)
    await ok("POST", "/v1/wait", {"timeoutSeconds": 0})
    await ok("DELETE", f"{base}/cancel")
    await ok("POST", f"{base}/cancel", {"reason": "enough"})
    await home.wait(run)
    for method in ("POST", "DELETE"):
        await ok(method, f"{base}/dismiss")
    read = await ok("POST", "/v1/inbox", {})
    await ok("POST", "/v1/inbox/ack", {"messageIds": [each["id"] for each in read["messages"]]})
    await ok("POST", f"{base}/retry")
    await ok("DELETE", "/v1/agents/hang/allowed-calls/Bash%3A%20ls")
    for path in (
        *("/v1/agents", "/v1/agents/stats", "/v1/agents/suggest?hint=x", "/v1/config"),
        *("/healthz", "/readyz", "/version", "/openapi.json", "/v1/diagnostics"),
        *("/v1/login", "/v1/logins", "/v1/alerts"),
        *(f"/v1/graph?tree={run}", "/v1/stats/series"),
    ):
        await ok("GET", path)
    await ok("GET", "/v1/events?after=0", headers={"Accept": "application/json"})
    for path in ("/v1/login/codes", "/v1/sweep"):
        await ok("POST", path)
    return called
