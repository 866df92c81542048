"""Callers of tools for tests: a seat calls by name, on the services of a real daemon."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jsonschema_rs
from tests.api.home_daemon import Home, serving, until

from subagents.api.calls.auth import Caller
from subagents.api.tools import tool_registry as registry
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_schemas import OUTPUTS
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey

CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 60
max_concurrent = 8
max_spawn_depth = 2

[agents.main]
subagents.allow_agents = ["quick", "hang", "bad", "shell", "slow", "long", "boss", "leaf", "proud"]

[agents.quick]
runtime = "scripted"
script = [{ result = "done" }]
description = "Answers at once"
capabilities = { tags = ["fast"], cost_tier = "free", typical_latency = "1s", notes = "No tools" }

[agents.slow]
runtime = "scripted"
script = [{ sleep_ms = 300 }, { result = "late" }]

[agents.hang]
runtime = "scripted"
script = [{ hang = true }]

[agents.bad]
runtime = "scripted"
script = [{ result = "half" }, { exit = 1 }]
description = "Reviews code and tests"
capabilities = { tags = ["review"], cost_tier = "expensive" }

[agents.long]
runtime = "scripted"
script = [{ result = "RESULT" }]

[agents.shell]
runtime = "command"
command = ["sh", "-c", "{task}"]
grace_seconds = 1

[agents.boss]
runtime = "scripted"
script = [{ hang = true }]
subagents.allow_agents = ["quick", "hang"]

[agents.leaf]
runtime = "scripted"
script = [{ hang = true }]
lane = "narrow"

[agents.proud]
runtime = "scripted"
script = [
  { write = { path = "out.json", text = "[1]" } },
  { result = "r" },
  { report = { summary = "all ``` done", status = "complete", confidence = "low" } },
]

[agents.hidden]
runtime = "scripted"
script = [{ result = "no" }]

[lanes.narrow]
slots = 1
"""
LONG_CHARS = 30_000


def check_output(name: str, answer: Answer) -> None:
    """Fail when an answer is not as the tool's output schema has it, or has a field it lacks."""
    jsonschema_rs.validator_for(dict(OUTPUTS[name])).validate(answer.structured)
    if not answer.is_error and "properties" in OUTPUTS[name]:
        properties = OUTPUTS[name]["properties"]
        assert isinstance(properties, dict)
        assert set(answer.structured) <= {*properties, "inbox"}, name


@dataclass
class ToolCaller:
    """One caller, as a server would identify it."""

    home: Home
    caller: Caller
    said: list[str] = field(default_factory=list)
    """Signs of life of calls that wait."""

    async def call(self, name: str, /, call_id: str | None = None, **arguments: Any) -> Answer:
        answer = await registry.call_tool(name, self.make(call_id, arguments))
        check_output(name, answer)
        return answer

    def make(self, call_id: str | None, arguments: dict[str, Any]) -> Call:
        async def tell(text: str) -> None:
            self.said.append(text)

        return Call(
            services=self.home.services,
            caller=self.caller,
            arguments=arguments,
            call_id=call_id,
            tell=tell,
        )

    async def ok(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What a call that must succeed says as data."""
        answer = await self.call(name, **arguments)
        assert not answer.is_error, answer.text
        return dict(answer.structured)

    async def refused(self, name: str, /, **arguments: Any) -> Answer:
        answer = await self.call(name, **arguments)
        assert answer.is_error, answer.text
        assert answer.offered == ()
        return answer

    async def spawn(self, agent: str = "quick", **arguments: Any) -> str:
        """The id of a new run."""
        given = {"task": "work", "agentId": agent, **arguments}
        return str((await self.ok("sessions_spawn", **given))["runId"])

    async def acknowledge(self, answer: Answer) -> int:
        """What a server does once the answer has left it."""
        return await self.home.services.engine.mailbox.acknowledge(
            answer.offered, reader=self.caller.reader
        )

    async def until_phase(self, run_id: str, *phases: str) -> Run:
        published = self.home.services.engine.ledger.published

        def is_there() -> bool:
            run = published.get(RunId(run_id))
            # What is over leaves memory.
            return run is None or str(run.phase) in phases

        await until(is_there)
        return await self.home.services.engine.queries.run(RunId(run_id))

    def elsewhere(self, name: str, **changes: Any) -> "ToolCaller":
        """Another top-level session of the same daemon."""
        caller = replace(
            self.caller, session=SessionKey(f"agent:main:{name}"), reader=name, **changes
        )
        return ToolCaller(self.home, caller)

    async def worker(self, agent: str = "boss", **arguments: Any) -> "ToolCaller":
        """As a new run's agent, while it works."""
        run_id = await self.spawn(agent, **arguments)
        return self.of(await self.until_phase(run_id, "running"))

    def of(self, run: Run) -> "ToolCaller":
        caller = Caller(
            session=run.session_key,
            reader=str(run.session_key),
            is_operator=False,
            run_id=run.id,
            attempt=len(run.attempts),
        )
        return ToolCaller(self.home, caller)

    @property
    def run_id(self) -> RunId:
        """Of a worker: its run."""
        assert self.caller.run_id is not None
        return self.caller.run_id


@contextlib.asynccontextmanager
async def at_desk(tmp_path: Path, config: str = CONFIG) -> AsyncIterator[ToolCaller]:
    """A top-level session of a daemon of its own."""
    async with serving(tmp_path, config.replace("RESULT", "é" * LONG_CHARS)) as home:
        caller = Caller(
            session=SessionKey("agent:main:desk"),
            reader="desk",
            # A server that would give a person's rights: tools give none.
            is_operator=True,
            cwd=home.cwd,
        )
        yield ToolCaller(home, caller)


def play(
    tmp_path: Path, scenario: Callable[[ToolCaller], Awaitable[None]], config: str = CONFIG
) -> None:
    """Run the scenario as such a session."""

    async def whole() -> None:
        async with at_desk(tmp_path, config) as desk:
            await scenario(desk)

    asyncio.run(whole())


def completed(document: Any) -> list[dict[str, Any]]:
    return list(document["completed"])
