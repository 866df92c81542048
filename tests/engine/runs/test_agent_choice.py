"""``agentId: auto``: the agent that fits best, with the reason on record."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import ME, World, settings_of

from subagents.config.settings import Agent, AgentSubagents, Capabilities
from subagents.domain.agents.agent_stats import Stats, Tokens, rate_of
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Abilities, Isolation, RunSpec
from subagents.domain.run.values import SessionKey, replace
from subagents.engine.engine import Part
from subagents.engine.runs.spawn_call import RunAsked, SpawnContext
from subagents.errors import NotFound

BOTH = ("scripted", "command")
WORKS: dict[str, Any] = {"runtime": "scripted", "script": ({"result": "done"},)}


def agent(description: str = "", *tags: str, **rest: Any) -> Agent:
    given = {**WORKS, "description": description or None, **rest}
    return Agent(**given, capabilities=Capabilities(tags=tags))


TEAM = {
    "writer": agent("writes prose and documentation", "docs"),
    "tester": agent("writes and runs tests", "tests"),
    "shell": Agent(
        runtime="command", command=("/bin/bash", "-c", "{task}"), description="runs tests"
    ),
    "mute": Agent(runtime="command", command=("pytest", "{task}")),
    "main": Agent(subagents=AgentSubagents(allow_agents=("writer",))),
}


PROVEN = Stats(
    name="proven",
    runs=20,
    attempt_count=20,
    outcomes={"success": 20},
    reasons={},
    success=rate_of(20, 20),
    verified=None,
    took=None,
    tokens=Tokens(input=None, output=None),
    tokens_known=0,
    cost_usd=None,
    cost_known=0,
)


class Counts(Part):
    """Knows of one agent that it is good."""

    async def agent_stats(self) -> Mapping[str, Stats]:
        return {"proven": PROVEN}


def team(world: World, **more: Agent) -> None:
    world.settings = replace(settings_of(), agents={**TEAM, **more})


async def chosen(world: World, task: str, **rest: Any) -> Run:
    receipt = await world.clock.result(world.try_spawn("auto", task=task, **rest))
    return receipt.run


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH)
async def test_the_agent_that_fits_the_task_is_chosen_and_the_reason_stored(world: World) -> None:
    team(world)
    run = await chosen(world, "write tests for the parser")
    assert run.resolved.agent_id == "tester"
    assert run.spec.agent_id == "auto"
    assert run.resolved.chosen is not None
    assert run.resolved.chosen.text.startswith("best of 2: the hint names its tags: tests")
    assert (await chosen(world, "the documentation")).resolved.agent_id == "writer"
    again = world.engine.spawner.retry(
        (await world.until(run.id)).id, SpawnContext(session=ME, settings=world.settings)
    )
    assert (await world.clock.result(again)).run.resolved.agent_id == "tester"


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH)
async def test_of_two_that_fit_alike_the_one_whose_attempts_succeeded_is_chosen(
    world: World,
) -> None:
    team(world, proven=TEAM["tester"])
    world.engine.parts = {"counts": Counts()}
    run = await chosen(world, "write tests for the parser")

    assert run.resolved.agent_id == "proven"
    assert run.resolved.chosen is not None
    assert "20 of 20 runs ok" in run.resolved.chosen.text


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH)
async def test_the_runs_of_one_call_are_spread_over_agents_that_fit_alike(
    world: World, tmp_path: Path
) -> None:
    world.settings = replace(settings_of(), agents={"a": agent("works"), "b": agent("works")})
    spec = RunSpec(task="anything", agent_id="auto")
    spawning = world.engine.spawner.spawn_batch(
        [RunAsked(spec=each) for each in [spec] * 4],
        SpawnContext(session=ME, settings=world.settings, cwd=str(tmp_path)),
    )
    receipts = await world.clock.result(spawning)
    assert [each.run.resolved.agent_id for each in receipts] == ["a", "b", "a", "b"]


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH)
async def test_an_agent_is_given_only_those_that_it_may_use(world: World) -> None:
    team(world)
    run = await chosen(world, "write tests for the parser", is_operator=False)
    assert run.resolved.agent_id == "writer"
    assert run.resolved.chosen is not None
    assert run.resolved.chosen.text.startswith("only one that can take it")
    stranger = SessionKey("agent:nobody:x")
    with pytest.raises(NotFound, match="none of 0 agents"):
        await chosen(world, "tests", is_operator=False, requester=stranger)


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH, abilities=Abilities(survives_daemon=True))
async def test_an_agent_that_cannot_do_what_is_asked_for_is_left_out(world: World) -> None:
    team(world)
    with pytest.raises(NotFound, match="none of 4 agents can take this task"):
        await chosen(world, "write tests", isolation=Isolation.SANDBOX)


@pytest.mark.requirement("spawn:auto")
@pytest.mark.world(runtimes=BOTH)
async def test_an_agent_of_that_name_is_meant_first(world: World) -> None:
    team(world, auto=agent("the user's own"))
    run = await chosen(world, "write tests")
    assert (run.resolved.agent_id, run.resolved.chosen) == ("auto", None)
