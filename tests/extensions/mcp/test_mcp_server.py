"""The tools as an MCP server shows and answers them."""

from typing import Any, cast

import msgspec
import pytest
from tests.api.home_daemon import Home
from tests.extensions.mcp.mcp_clients import connected, desk, each_era, text_of

from subagents.api.tools.tool_registry import REQUESTER_TOOLS
from subagents.api.tools.worker_tools import WORKER_TOOLS
from subagents.domain.run.values import RunId
from subagents.errors import StoreUnavailable
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import LEGACY, Document, Message
from subagents.extensions.mcp.mcp_server import Era, McpRequest, McpServer, Method

REQUESTER = [tool.name for tool in REQUESTER_TOOLS]


WORKER = [tool.name for tool in WORKER_TOOLS]


@pytest.mark.requirement("mcp:tools-listed")
@each_era
async def test_every_tool_is_listed_with_its_marks(daemon: Home, era: str) -> None:
    run_id = str((await daemon.spawn("boss"))["runId"])
    await daemon.until_phase(run_id, "running")
    leaf = str((await daemon.spawn("hang", headers=daemon.worker(run_id)))["runId"])
    await daemon.until_phase(leaf, "running")

    async with connected(daemon, era, desk(daemon)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    async with connected(daemon, era, daemon.worker(run_id)) as client:
        of_boss = [tool.name for tool in (await client.list_tools()).tools]
    async with connected(daemon, era, daemon.worker(leaf)) as client:
        of_leaf = [tool.name for tool in (await client.list_tools()).tools]
        assert "report_completion" in (client.instructions or "")
        assert "sessions_spawn" not in (client.instructions or "")

    assert list(tools) == REQUESTER
    assert of_boss == [*WORKER, *REQUESTER]
    assert of_leaf == WORKER
    for known in REQUESTER_TOOLS:
        shown = tools[known.name]
        assert shown.meta == {"anthropic/alwaysLoad": True}
        assert shown.title is not None
        assert shown.input_schema == known.schema
        assert shown.annotations is not None
        assert shown.annotations.read_only_hint == known.read_only
        assert shown.annotations.destructive_hint == known.destructive
        assert shown.annotations.open_world_hint is False


@pytest.mark.requirement("mcp:tools-called")
@each_era
async def test_every_tool_of_a_requester_answers(daemon: Home, era: str) -> None:
    async with connected(daemon, era, desk(daemon)) as client:
        spawned = await client.call_tool("sessions_spawn", {"task": "x", "agentId": "hang"})
        assert spawned.structured_content is not None
        run_id = spawned.structured_content["runId"]
        key = spawned.structured_content["childSessionKey"]
        await daemon.until_phase(run_id, "running")
        question = await daemon.services.engine.questions.ask(RunId(run_id), "which?")
        calls: dict[str, dict[str, Any]] = {
            "sessions_wait": {"runIds": [run_id], "timeoutSeconds": 0},
            "sessions_list": {},
            "sessions_tree": {},
            "sessions_history": {"sessionKey": key},
            "subagents": {"action": "status", "target": run_id},
            "agents_list": {"hint": "review code"},
            "respond_orchestrator_request": {"requestId": question.id, "response": "that"},
        }
        for name, arguments in calls.items():
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, (name, text_of(answer))
            assert isinstance(answer.structured_content, dict)
            assert text_of(answer)
        # The scripted runtime takes no messages; the refusal says so.
        sent = await client.call_tool("sessions_send", {"sessionKey": key, "message": "hi"})
        assert isinstance(sent.structured_content, dict)
        assert {*calls, "sessions_spawn", "sessions_send"} == set(REQUESTER)


@pytest.mark.requirement("mcp:tools-called")
@each_era
async def test_every_tool_of_a_worker_answers_to_its_token(daemon: Home, era: str) -> None:
    run_id = str((await daemon.spawn("hang"))["runId"])
    await daemon.until_phase(run_id, "running")
    calls: dict[str, dict[str, Any]] = {
        "report_progress": {"phase": "half way", "percentComplete": 50},
        "notify_parent": {"message": "look"},
        "request_orchestrator": {
            "question": "go on?",
            "timeoutSeconds": 1,
            "defaultAnswer": "yes",
        },
        "report_completion": {"summary": "done"},
    }
    async with connected(daemon, era, daemon.worker(run_id)) as client:
        for name, arguments in calls.items():
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, (name, text_of(answer))
    assert set(calls) == set(WORKER)
    run = await daemon.services.engine.queries.run(RunId(run_id))
    assert run.attempt.reported.report is not None
    assert run.questions.requests[0].answer is not None


@pytest.mark.requirement("mcp:errors")
async def test_what_a_method_cannot_do_now_is_said_in_its_own_words() -> None:
    async def fails(_: McpRequest) -> Document:
        raise StoreUnavailable("the disk is full", hint="make room")

    async def tell(_: str) -> None: ...

    server = McpServer({}, {"x": Method(handler=fails, eras=Era.BOTH)})
    message = Message(id=1, method="x", params={}, version=LEGACY[-1])
    request = McpRequest(message=message, exchange=cast("Exchange", None), tell=tell)
    status, answer = await server.answer(request)
    error = msgspec.json.decode(answer)["error"]

    assert (status, error["message"]) == (200, "the disk is full")
    assert (error["data"]["code"], error["data"]["retryable"]) == ("store_unavailable", True)
