"""The tasks extension on the wire: for clients that declare it, and for nobody else."""

import re

import pytest
from tests.api.home_daemon import Home
from tests.extensions.mcp.mcp_clients import (
    TASKS,
    Wire,
    connected,
    desk,
    each_era,
    spawned,
)

from subagents.domain.run.values import RunId

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.requirement("mcp:tasks:created", "tools:spawn:wake")
async def test_a_spawn_is_a_task_for_who_declares_it_and_a_receipt_for_the_others(
    daemon: Home,
) -> None:
    arguments = {"task": "work", "agentId": "hang", "label": "w"}
    task = await Wire(daemon).call("sessions_spawn", **arguments)
    plain = await Wire(daemon, tasks=False).call("sessions_spawn", **arguments)
    legacy = await Wire(daemon, headers={"MCP-Protocol-Version": "2025-11-25"}).call(
        "sessions_spawn", **arguments
    )

    shown = {name: value for name, value in task.items() if name != "_meta"}
    assert set(shown) == {
        *("resultType", "taskId", "status", "statusMessage"),
        *("createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"),
    }
    run = await daemon.services.engine.queries.run(RunId(task["taskId"]))
    assert run.requester == "agent:main:desk"
    assert (task["resultType"], task["status"]) == ("task", "working")
    assert f'run {run.id} "w": ' in task["statusMessage"]
    assert "woken by the MCP task" in task["statusMessage"]
    assert ISO.fullmatch(task["createdAt"])
    assert task["ttlMs"] == 7 * 86_400_000
    assert task["pollIntervalMs"] == 1000
    for receipt in (plain, legacy):
        assert receipt["structuredContent"]["status"] == "accepted"
        assert "taskId" not in receipt


@pytest.mark.requirement("mcp:tasks:wire")
async def test_a_task_method_wants_the_capability_the_header_and_the_current_era(
    daemon: Home,
) -> None:
    wire = Wire(daemon)
    task_id = await spawned(wire, "hang")
    undeclared = await Wire(daemon, tasks=False).error("tasks/get", taskId=task_id)
    status, mismatched = await wire.send("tasks/get", {"Mcp-Name": "r-other"}, taskId=task_id)
    old = await Wire(daemon, headers={"MCP-Protocol-Version": "2025-11-25"}).error(
        "tasks/get", taskId=task_id
    )
    gone = await wire.error("tasks/list", taskId=task_id)
    assert undeclared["code"] == -32021
    assert undeclared["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert (status, mismatched["error"]["code"]) == (400, -32020)
    assert old["code"] == gone["code"] == -32601


@pytest.mark.requirement("mcp:eras")
@each_era
async def test_the_real_client_is_told_of_tasks_and_given_receipts_as_it_declares_none(
    daemon: Home, era: str
) -> None:
    async with connected(daemon, era, desk(daemon)) as client:
        assert (TASKS in (client.server_capabilities.extensions or {})) == (era != "legacy")
        answer = await client.call_tool("sessions_spawn", {"task": "x", "agentId": "quick"})
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "accepted"
