"""Tool scope: narrowed at the spawn, inherited downwards, applied, shown, and never widened."""

from typing import Any

import msgspec
import pytest
from tests.engine.world import ME, World, settings_of

from subagents.api.answers import run_building
from subagents.api.wire import requests as wire
from subagents.api.wire.wire_struct import document_of
from subagents.config.settings import Agent, AgentSubagents, Settings
from subagents.domain.run.events import SignalReceived
from subagents.domain.run.run import Phase
from subagents.domain.run.signals import ToolSeen
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import RunId, replace
from subagents.domain.text.prompt import system_prompt
from subagents.errors import Forbidden, UsageError

USES: tuple[dict[str, object], ...] = tuple({"tool": name} for name in ("read", "write", "message"))


def settings_with(**agents: Agent) -> Settings:
    """The usual agents and these, each of which may spawn any other."""
    settings = settings_of(max_spawn_depth=4)
    anybody = AgentSubagents(allow_agents=("*",))
    more = {
        name: replace(agent, runtime="scripted", subagents=anybody)
        for name, agent in agents.items()
    }
    return replace(settings, agents={**settings.agents, **more})


def scoped(*tools: str, script: tuple[dict[str, object], ...] = ({"hang": True},)) -> Agent:
    return Agent(script=script, tools=tools or None)


async def working_child(world: World, parent: RunId, agent: str, **spec: object) -> RunId:
    run_id = await world.spawn_child(parent, agent, **spec)
    await world.until(run_id, Phase.RUNNING)
    return run_id


async def tools_of(world: World, run_id: RunId) -> tuple[str, ...] | None:
    return (await world.run(run_id)).resolved.effective_tools


async def used(world: World, run_id: RunId) -> list[str]:
    await world.until(run_id)
    events = [entry.event for entry in world.store.journal(run_id)]
    signals = [event.signal for event in events if isinstance(event, SignalReceived)]
    return [signal.name for signal in signals if isinstance(signal, ToolSeen)]


@pytest.mark.requirement("tools:applied", "tools:denied-unusable")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "message"),
        ({"tools_deny": ("message",)}, "write"),
        ({"tools_allow": ("read", "message"), "tools_deny": ("message",)}, "read"),
        ({"tools_allow": ()}, None),
    ],
)
async def test_a_tool_that_was_denied_cannot_be_used(
    world: World, spec: dict[str, object], expected: str | None
) -> None:
    # What is used within one second becomes one event: the last tool.
    world.settings = settings_with(able=scoped("read", "write", "message", script=USES))
    run_id = await world.spawn("able", **spec)

    assert await used(world, run_id) == ([] if expected is None else [expected])


@pytest.mark.requirement("tools:never-wider", "tools:widening-refused")
async def test_unknown_tools_are_refused_by_name_and_nothing_is_stored(world: World) -> None:
    world.settings = settings_with(able=scoped("read", "write"))
    with pytest.raises(Forbidden) as refused:
        await world.try_spawn("able", tools_allow=("read", "shell", "browser"))
    assert refused.value.guardrail == "tools"
    assert "shell, browser not among the agent's tools (read, write)" in refused.value.message
    assert world.engine.ledger.live == {}


@pytest.mark.requirement("tools:denied-for-descendants")
async def test_a_deny_holds_for_every_descendant_of_whatever_agent(world: World) -> None:
    world.settings = settings_with(
        able=scoped("read", "write", "message"),
        other=scoped("message", "write", "read"),
        free=scoped(),
    )
    top = await world.working("able", tools_deny=("message",))
    middle = await working_child(world, top, "other", tools_deny=("write",))
    bottom = await working_child(world, middle, "able")
    free = await working_child(world, bottom, "free", tools_allow=("read",))

    assert await tools_of(world, middle) == ("read",)
    assert await tools_of(world, bottom) == ("read",)
    assert await tools_of(world, free) == ("read",)
    assert set(world.runtime.launches[-1].tools_deny) == {"message", "write"}


@pytest.mark.requirement("tools:inherited-by-the-same-agent", "tools:subset:other-agents")
async def test_an_agent_gets_no_tool_back_by_spawning_itself_or_through_another(
    world: World,
) -> None:
    world.settings = settings_with(
        able=scoped("read", "write"), other=scoped("write"), free=scoped()
    )
    top = await world.working("able", tools_allow=("read",))
    same = await working_child(world, top, "able")
    assert await tools_of(world, same) == ("read",)
    with pytest.raises(Forbidden, match="toolsAllow can only narrow: write not among"):
        await world.spawn_child(top, "able", tools_allow=("write",))

    free = await working_child(world, top, "free")
    assert await tools_of(world, free) == ("read",)
    again = await working_child(world, free, "able")
    assert await tools_of(world, again) == ("read",)
    with pytest.raises(Forbidden, match="shell not among what its requester may use"):
        await world.spawn_child(top, "free", tools_allow=("shell",))
    assert await tools_of(world, await working_child(world, top, "other")) == ()


@pytest.mark.requirement("tools:allow:empty")
async def test_a_worker_that_may_use_no_tool_may_spawn_nobody(world: World) -> None:
    world.settings = settings_with(able=scoped("read"))
    top = await world.working("able", tools_allow=())
    with pytest.raises(Forbidden, match="sessions_spawn is not among the tools of run"):
        await world.spawn_child(top, "able")


@pytest.mark.requirement("tools:shown")
async def test_receipt_status_and_prompt_show_the_effective_set(world: World) -> None:
    world.settings = settings_with(able=scoped("read", "write"), free=scoped())
    spawned = await world.clock.result(world.try_spawn("able", tools_deny=("write",)))
    run, receipt = spawned.run, document_of(run_building.receipt(spawned))
    assert (receipt["effectiveTools"], receipt["toolsDeny"]) == (["read"], ["write"])
    resolved = document_of(run_building.detail(run, world.clock.now_ms()))["resolved"]
    assert isinstance(resolved, dict)
    assert (resolved["effectiveTools"], resolved["toolsDeny"]) == (("read",), ("write",))
    assert "Your tools: read." in system_prompt(run)

    spawned = await world.clock.result(world.try_spawn("free", tools_deny=("write",)))
    free, receipt = spawned.run, document_of(run_building.receipt(spawned))
    assert (receipt["effectiveTools"], receipt["toolsDeny"]) == (None, ["write"])
    assert "Not for you: write." in system_prompt(free)


@pytest.mark.requirement("tools:unenforceable")
@pytest.mark.world(abilities=Abilities())
async def test_a_runtime_that_cannot_scope_refuses_what_was_asked_or_configured(
    world: World,
) -> None:
    world.settings = settings_with(able=scoped("read"), free=scoped())
    words = 'runtime "scripted" cannot enforce tool scoping'
    wanted: list[dict[str, Any]] = [{"tools_allow": ()}]
    wanted += [{name: ("read",)} for name in ("tools_allow", "tools_deny")]
    for spec in wanted:
        with pytest.raises(Forbidden, match=words):
            await world.try_spawn("free", **spec)
    with pytest.raises(Forbidden, match=words) as refused:
        await world.try_spawn("able")
    assert refused.value.hint == "agents.able.tools is set in the configuration"
    await world.spawn("free")


@pytest.mark.requirement(
    "tools:fixed-at-spawn", "tools:no-patch-after-spawn", "tools:no-patch-by-session"
)
async def test_nothing_after_the_spawn_changes_the_scope(world: World) -> None:
    world.settings = settings_with(able=scoped("read", "write"))
    run_id = await world.working(
        "able",
        tools_deny=("write",),
        retry_count=1,
        run_timeout_seconds=5,
    )
    for kind in (wire.SteerBody, wire.CancelBody, wire.RespondBody, wire.NotifyBody):
        patch = msgspec.json.encode({"message": "x", "response": "x", "toolsAllow": ["write"]})
        with pytest.raises(UsageError, match="unknown"):
            wire.parse_body(patch, kind)
    world.settings = settings_with(able=scoped("read", "write", "message"))
    await world.until(run_id, Phase.RETRY_WAIT)
    await world.until(run_id, Phase.RUNNING)

    first, second = world.runtime.launches
    assert (first.tools, first.tools_deny) == (("read",), ("write",))
    assert (second.tools, second.tools_deny) == (first.tools, first.tools_deny)
    assert (await world.run(run_id)).requester == ME
