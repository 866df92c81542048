"""The agents' tools as methods of the Python library, with real workers."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from subagents import (
    Forbidden,
    NotFound,
    Orchestrator,
    UsageError,
)
from subagents.api.tools.tool_arguments import ACTIONS
from subagents.api.tools.tool_registry import REQUESTER_TOOLS
from subagents.client.agent_tools import Tools
from subagents.text import camel

AGENTS = {
    "agents.main.subagents.allow_agents": ["player", "sitter", "asker"],
    "agents.player.runtime": "scripted",
    "agents.player.script": [{"result": "the end"}],
    "agents.sitter.runtime": "scripted",
    "agents.sitter.script": [{"hang": True}],
    "agents.asker.runtime": "command",
    "agents.asker.command": ["sh", "-c", "{task}"],
}


def embedded(tmp_path: Path, work: Callable[[Orchestrator], Awaitable[None]]) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            Orchestrator.open(home=tmp_path / "home", config=AGENTS, cwd=tmp_path) as sub,
        ):
            await work(sub)

    asyncio.run(main())


def rows(document: Mapping[str, object], name: str) -> list[dict[str, Any]]:
    found = document[name]
    assert isinstance(found, list)
    return found


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Return once it is so; fails after 20 s."""
    async with asyncio.timeout(20):
        while not await look():  # noqa: ASYNC110 - what is looked at has no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.requirement("python:tools:names")
def test_every_tool_of_a_requester_is_a_method_with_its_parameters_in_snake_case() -> None:
    for tool in REQUESTER_TOOLS:
        method = inspect.signature(getattr(Tools, tool.name))
        takes_any = any(each.kind is each.VAR_KEYWORD for each in method.parameters.values())
        named = {camel(name) for name in method.parameters} - {"self", "parameters"}
        properties = tool.schema["properties"]
        assert isinstance(properties, dict)
        assert named <= set(properties), tool.name
        assert takes_any or named == set(properties), tool.name
    methods = {name for name in vars(Tools) if not name.startswith("_")}
    assert methods == {tool.name for tool in REQUESTER_TOOLS}
    hints = inspect.signature(Tools.subagents).parameters["action"].annotation
    assert hints.__args__ == ACTIONS


@pytest.mark.requirement("python:tools:round-trip")
def test_a_run_is_spawned_awaited_consumed_and_looked_at(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        receipt = await sub.tools.sessions_spawn("play", agent_id="player", label="p", tags=["a"])
        assert receipt["status"] == "accepted"
        run_id = str(receipt["runId"])

        found = await sub.tools.sessions_wait([run_id], timeout_seconds=20)
        (item,) = rows(found, "completed")
        assert (item["label"], item["result"]) == ("p", "the end")
        assert [each async for each in sub.inbox()] == []  # waiting consumed it
        assert (await sub.tools.sessions_wait(timeout_seconds=0))["completed"] == []

        listed = await sub.tools.sessions_list(label="p", tag="a")
        assert listed["total"] == 1
        (root,) = rows(await sub.tools.sessions_tree(), "roots")
        assert root["runId"] == run_id
        history = await sub.tools.sessions_history(str(receipt["childSessionKey"]), limit=1)
        assert history["nextOffset"] == 1
        shown = await sub.tools.subagents("result", "p")
        assert "the end" in str(shown)
        agents = await sub.tools.agents_list(tags=["none"])
        assert "player" in str(agents)

    embedded(tmp_path, work)


@pytest.mark.requirement("python:tools:round-trip")
def test_a_batch_and_nested_tables_are_snake_case_too(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        made = await sub.tools.sessions_spawn(
            batch=[
                {"task": "a", "label": "a"},
                {"task": "b", "label": "b", "depends_on": ["a"], "include_dependency_result": True},
            ],
            agent_id="player",
        )
        assert [each["label"] for each in rows(made, "receipts")] == ["a", "b"]
        done = await sub.tools.sessions_wait(until="all", timeout_seconds=20)
        assert len(rows(done, "completed")) == 2

        schema = {"type": "object", "required": ["max_spawn"]}
        receipt = await sub.tools.sessions_spawn(
            "write it",
            agent_id="player",
            verification={"artifacts": [{"path": "x.json", "json": True, "schema": schema}]},
        )
        detail = await (await sub.get(str(receipt["runId"]))).status()
        assert detail.agent_id == "player"

    embedded(tmp_path, work)


@pytest.mark.requirement("python:tools:question")
def test_a_workers_question_is_answered_by_the_tool(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        task = "echo got: $(subagents ask 'which?' --option a --option b)"
        receipt = await sub.tools.sessions_spawn(task, agent_id="asker", label="q")
        run_id = str(receipt["runId"])

        async def asks() -> bool:
            (row,) = rows(await sub.tools.sessions_list(label="q"), "sessions")
            return bool(row["pendingRequestCount"])

        await until(asks)
        answered = await sub.tools.respond_orchestrator_request(f"{run_id}:q1", "b")
        assert answered["status"] == "answered"
        found = await sub.tools.sessions_wait([run_id], timeout_seconds=20)
        (item,) = rows(found, "completed")
        assert item["result"] == "got: b"

    embedded(tmp_path, work)


@pytest.mark.requirement("python:tools:errors")
def test_refusals_are_the_same_errors_as_everywhere(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        with pytest.raises(Forbidden, match="allow_agents") as caught:
            await sub.tools.sessions_spawn("echo", agent_id="command")
        assert caught.value.guardrail == "allow_agents"
        # The program itself is a person's own hand.
        assert (await sub.spawn("echo hi", agent="command")).id

        with pytest.raises(UsageError, match='unknown parameter "lable": did you mean "label"'):
            await sub.tools.sessions_spawn("x", lable="y")  # type: ignore[call-arg]  # what a checker would have found
        with pytest.raises(NotFound, match='no run "nothing"'):
            await sub.tools.sessions_history("nothing")
        with pytest.raises(UsageError, match="timeoutSeconds"):
            await sub.tools.sessions_wait(timeout_seconds=601)

    embedded(tmp_path, work)


@pytest.mark.requirement("python:tools:control")
def test_a_live_worker_is_written_to_and_ended(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        receipt = await sub.tools.sessions_spawn("sit", agent_id="sitter", label="s")
        run = await sub.get(str(receipt["runId"]))

        async def runs() -> bool:
            return (await run.status()).phase == "running"

        await until(runs)
        sent = await sub.tools.sessions_send("be quick", label="s")
        assert sent["status"] == "steered"
        await sub.tools.subagents("kill", "s", message="enough")
        assert (await run.wait(20)).outcome.status == "cancelled"

    embedded(tmp_path, work)
