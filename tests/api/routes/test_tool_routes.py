"""The agents' tools over plain HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from starlette.types import Message
from tests.api import home_daemon
from tests.api.home_daemon import Document, Home

from subagents.api.calls.auth import Caller
from subagents.api.routes import tool_routes as routes_tools
from subagents.domain.run.values import SessionKey

Scenario = Callable[[Home], Awaitable[None]]
CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 100
max_spawn_depth = 2
[agents.main]
subagents.allow_agents = ["quick", "hang"]
[agents.hang]
runtime = "scripted"
script = [{ hang = true }]
subagents.allow_agents = ["hang"]
[agents.quick]
runtime = "scripted"
script = [{ result = "done" }]
[agents.shell]
runtime = "command"
command = ["sh", "-c", "{task}"]
"""
WORKER_TOOLS = ["report_completion", "report_progress", "notify_parent", "request_orchestrator"]
REQUESTER_TOOLS = [
    "sessions_spawn",
    "sessions_wait",
    "sessions_list",
    "sessions_tree",
    "sessions_history",
    "sessions_send",
    "subagents",
    "agents_list",
    "respond_orchestrator_request",
]


def play(tmp_path: Path, scenario: Scenario) -> None:
    home_daemon.play(tmp_path, scenario, CONFIG)


async def names(home: Home, headers: dict[str, str] | None = None) -> list[str]:
    shown = (await home.ok("GET", "/v1/tools", headers=headers))["tools"]
    return [tool["name"] for tool in shown]


@pytest.mark.requirement("http:tools:list")
def test_each_caller_is_shown_its_tools_with_their_schemas(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        assert await names(home) == REQUESTER_TOOLS
        (spawn, *_) = (await home.ok("GET", "/v1/tools"))["tools"]
        assert spawn["audience"] == "requester"
        assert spawn["inputSchema"]["properties"]["task"]["type"] == "string"
        assert spawn["annotations"]["readOnlyHint"] is False

        parent = (await home.spawn("hang"))["runId"]
        await home.until_phase(parent, "running")
        assert await names(home, home.worker(parent)) == WORKER_TOOLS + REQUESTER_TOOLS

        arguments = {"task": "deeper", "agentId": "hang"}
        made = await home.ok("POST", "/v1/tools/sessions_spawn", arguments, home.worker(parent))
        assert not made["isError"], made
        leaf = made["structured"]["runId"]
        await home.until_phase(leaf, "running")
        assert await names(home, home.worker(leaf)) == WORKER_TOOLS
        deeper = await home.ok("POST", "/v1/tools/sessions_spawn", arguments, home.worker(leaf))
        assert deeper["isError"]
        assert "agents.defaults.subagents.max_spawn_depth" in deeper["structured"]["error"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:call")
def test_a_tool_answers_with_text_and_data_and_a_refusal_is_an_answer(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        headers = {"X-Subagents-Cwd": home.cwd}
        path = "/v1/tools/sessions_spawn"
        made = await home.ok("POST", path, {"task": "x", "agentId": "quick"}, headers)
        assert set(made) == {"text", "structured", "isError", "offered"}
        assert made["structured"]["status"] == "accepted"
        assert made["structured"]["runId"] in made["text"]

        # A person's own client has no person's rights through an agent's tool.
        refused = await home.ok("POST", path, {"task": "x", "agentId": "shell"}, headers)
        assert refused["isError"]
        assert refused["structured"]["status"] == "forbidden"
        assert "agents.main.subagents.allow_agents" in refused["structured"]["error"]

        listed = await home.ok("POST", "/v1/tools/sessions_list")  # no body at all
        assert listed["structured"]["total"] == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:bad-input")
@pytest.mark.parametrize(
    ("name", "body", "headers", "status", "message"),
    [
        ("sessions_spwan", b"{}", {}, 404, 'no tool "sessions_spwan": did you mean'),
        ("sessions_list", b"[]", {}, 422, "the request body must be a JSON object"),
        ("sessions_list", b"{", {}, 422, "the request body is not JSON"),
        ("sessions_list", b'{"label": "\\ud800"}', {}, 422, "label must be valid UTF-8"),
        ("sessions_list", b"{}", {"X-Subagents-Ack": "maybe"}, 422, "X-Subagents-Ack must be"),
        ("sessions_list", b"{}", {"X-Subagents-Call-Id": "i" * 300}, 422, "X-Subagents-Call-Id"),
        ("sessions_list?x=1", b"{}", {}, 422, 'unknown query parameter "x"'),
    ],
)
def test_a_call_that_reaches_no_tool_is_a_problem_document(
    tmp_path: Path,
    *,
    name: str,
    body: bytes,
    headers: dict[str, str],
    status: int,
    message: str,
) -> None:
    async def scenario(home: Home) -> None:
        found, document = await home.call("POST", f"/v1/tools/{name}", body, headers)
        assert found == status
        assert str(document["message"]).startswith(message)

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:call-id")
def test_a_repeated_call_of_the_same_id_spawns_once(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        headers = {"X-Subagents-Cwd": home.cwd, "X-Subagents-Call-Id": "call-1"}
        arguments = {"task": "x", "agentId": "quick"}
        first, second = [
            await home.ok("POST", "/v1/tools/sessions_spawn", arguments, headers) for _ in range(2)
        ]
        assert first["structured"]["runId"] == second["structured"]["runId"]
        assert (await home.ok("GET", "/v1/runs"))["total"] == 1

    play(tmp_path, scenario)


async def ended(home: Home) -> str:
    run_id: str = (await home.spawn("quick"))["runId"]
    await home.until_phase(run_id, "completed", "announcing", "cleanup_pending")
    return run_id


async def waited(home: Home, reader: str, ack: str | None = None) -> Document:
    headers = {"X-Subagents-Reader": reader}
    if ack is not None:
        headers["X-Subagents-Ack"] = ack
    return await home.ok("POST", "/v1/tools/sessions_wait", {"timeoutSeconds": 0}, headers)


@pytest.mark.requirement("http:tools:offered")
def test_what_an_answer_hands_over_is_consumed_when_its_reader_says_so(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended(home)
        first = await waited(home, "one")
        assert first["offered"] == [f"{run_id}:announce"]
        assert (await waited(home, "two"))["offered"] == []  # leased to the other
        again = await waited(home, "one")
        assert again["offered"] == first["offered"]

        body = {"messageIds": first["offered"]}
        reader = {"X-Subagents-Reader": "one"}
        assert (await home.ok("POST", "/v1/inbox/ack", body, reader))["consumed"] == 1
        assert (await waited(home, "one"))["structured"]["completed"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:ack-auto")
def test_with_ack_auto_an_answer_that_left_is_consumed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended(home)
        answered = await waited(home, "one", ack="auto")
        assert answered["offered"] == [f"{run_id}:announce"]
        assert answered["structured"]["completed"][0]["result"] == "done"

        async with asyncio.timeout(10):
            while (await home.ok("GET", "/v1/inbox"))["messages"]:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        (row,) = (await home.ok("GET", "/v1/inbox?all=1"))["messages"]
        assert row["consumedBy"] == "one"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:ack-auto")
def test_what_an_answer_could_not_hand_over_is_free_again_at_once(tmp_path: Path) -> None:
    """The client hung up after the result was offered to it and before the answer had left."""

    async def scenario(home: Home) -> None:
        run_id = await ended(home)
        offered = (await waited(home, "gone"))["offered"]
        session = SessionKey("agent:main:main")
        caller = Caller(session=session, reader="gone", is_operator=False)
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await routes_tools.Handover(b"{}", home.services, caller, offered)({}, receive, send)

        assert sent[-1]["more_body"] is False
        assert (await waited(home, "two"))["offered"] == [f"{run_id}:announce"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:disconnect")
def test_a_waiter_that_hung_up_takes_nothing_with_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        path = "/v1/tools/sessions_wait"
        await home.hang_up_while_waiting(run_id, path, "x-subagents-ack: auto")

        await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        assert (await home.wait(run_id))["messages"] == [f"{run_id}:announce"]

    play(tmp_path, scenario)
