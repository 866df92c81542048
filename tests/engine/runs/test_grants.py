"""What a worker may do is decided at the spawn, for a judge as for the run itself."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.engine.world import ME, World

from subagents.config.settings import Agent, AgentLimits, AgentSubagents, Settings
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.spec import Abilities, Artifact, Budget, Checks, Contract, Judge
from subagents.domain.run.values import replace
from subagents.errors import ContractError, Forbidden, NotFound, SubagentsError, UsageError
from subagents.ports import RunFilter, Runtime
from subagents.runtimes.command import CommandRuntime

FILE = Contract(artifacts=(Artifact(path="out.txt"),))


def contract(agent: str = "judge_pass", **given: Any) -> Contract:
    return replace(FILE, judge=Judge(agent_id=agent, criteria="it is good", **given))


REFUSED: list[tuple[Contract, type[SubagentsError], str]] = [
    (contract("nobody"), NotFound, "verification.judge: no agent 'nobody'"),
    (contract(model="x"), UsageError, "verification.judge: .* takes no model"),
    (contract(run_timeout_seconds=0), UsageError, "verification.judge.runTimeoutSeconds must be"),
    (contract(budget=Budget(max_runs=0)), UsageError, "verification.judge.budget.maxRuns must be"),
    (
        contract(verification=Checks()),
        ContractError,
        "verification.judge.verification has nothing to check",
    ),
    (
        replace(FILE, judge=Judge(agent_id="quick", criteria=" ")),
        ContractError,
        "verification.judge.criteria must not be empty",
    ),
]


@pytest.mark.requirement("judge:refused")
@pytest.mark.parametrize(("wanted", "error", "text"), REFUSED)
@pytest.mark.world(abilities=Abilities(scope_tools=True))
async def test_a_judge_that_could_not_work_is_refused_at_the_spawn(
    world: World, wanted: Contract, error: type[SubagentsError], text: str
) -> None:
    with pytest.raises(error, match=text):
        await world.spawn("writer", verification=wanted)

    assert world.store.runs(RunFilter(requester=ME)) == []


@pytest.mark.requirement("spawn:limits")
async def test_an_agent_whose_limits_nothing_keeps_is_refused_with_the_way_out(
    world: World,
) -> None:
    quick = replace(world.settings.agents["quick"], limits=AgentLimits(pids=9))
    limited = replace(world.settings, agents={**world.settings.agents, "quick": quick})
    with pytest.raises(Forbidden, match='"scripted" cannot hold its workers to any') as said:
        await world.spawn("quick", settings=limited)
    assert said.value.guardrail == "limits"
    assert said.value.hint is not None
    assert "remove [agents.quick.limits]" in said.value.hint


def serving(world: World, **servers: tuple[str, ...] | None) -> Settings:
    """The same agents with these MCP servers."""
    agents = world.settings.agents
    changed = {name: replace(agents[name], mcp_servers=given) for name, given in servers.items()}
    return replace(world.settings, agents={**agents, **changed})


@pytest.mark.requirement("spawn:mcp-servers")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_has_no_mcp_server_that_its_parent_may_not_have(world: World) -> None:
    settings = serving(world, slow=("a", "b"), quick=("b", "c"), fail=None)
    top = await world.spawn("slow", settings=settings)
    named = await world.spawn_child(top, "quick", settings=settings)
    unnamed = await world.spawn_child(top, "fail", settings=settings)

    assert (await world.run(named)).resolved.mcp_servers == ("b",)
    assert (await world.run(unnamed)).resolved.mcp_servers == ()


@pytest.mark.requirement("spawn:mcp-servers")
@pytest.mark.world(max_spawn_depth=2)
async def test_mcp_servers_that_nothing_keeps_a_worker_to_are_refused_by_their_key(
    world: World, tmp_path: Path
) -> None:
    plain = Agent(runtime="command", command=("true",))
    world.settings = replace(world.settings, agents={**world.settings.agents, "plain": plain})
    command = CommandRuntime(tmp_path, world.clock, world.off_loop)
    cast("dict[str, Runtime]", world.engine.adapters.runtimes)["command"] = command
    with pytest.raises(Forbidden, match=r"agents\.plain\.mcp_servers: .*\"command\"") as said:
        await world.spawn("plain", settings=serving(world, plain=("a",)))
    assert said.value.guardrail == "mcp_servers"

    settings = serving(world, slow=())
    top = await world.spawn("slow", settings=settings)
    with pytest.raises(Forbidden, match="mcp_servers of a run above it"):
        await world.spawn_child(top, "plain", settings=settings)


@pytest.mark.requirement("judge:access")
async def test_a_judge_may_do_no_more_than_the_run_that_it_judges(world: World) -> None:
    wanted = contract(access=AccessLevel.FULL)

    with pytest.raises(Forbidden, match=r'judge: access "full" .* the judged run may') as said:
        await world.spawn("writer", verification=wanted, access=AccessLevel.WRITE)

    assert said.value.hint == "leave judge.access out (--judge-access), and it only reads"


@pytest.mark.requirement("judge:access")
async def test_a_judge_is_chosen_among_the_agents_that_its_requester_may_spawn(
    world: World,
) -> None:
    only = AgentSubagents(allow_agents=("writer",))
    main = replace(world.settings.agents["main"], subagents=only)
    narrow = replace(world.settings, agents={**world.settings.agents, "main": main})

    with pytest.raises(Forbidden, match=r"verification\.judge: .*judge_pass"):
        await world.spawn("writer", verification=contract(), is_operator=False, settings=narrow)
