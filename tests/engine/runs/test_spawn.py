"""Spawning: guardrails in their order, caps to the last place, nothing stored on refusal."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import ME, OTHER, World, in_world, settings_of

from subagents.config.settings import Agent, AgentSubagents, Settings
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.outcome import OK, VerificationState
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import (
    Abilities,
    Artifact,
    Contract,
    Mode,
    RunSpec,
)
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import (
    ContractError,
    Forbidden,
    IdempotencyConflict,
    NotFound,
    StoreUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.ports import RunFilter
from subagents.store.environment_files import EnvironmentFiles

BAD_CONTRACT = Contract()


BROUGHT = CallerEnvironment(shell={"PATH": "/shell"}, given={"TOKEN": "hush-hush"})
CAPPED = settings_of(max_children_per_agent=1)


def narrow(**agents: Agent) -> Settings:
    """One worker whose list allows nobody else."""
    base = settings_of(max_children_per_agent=1)
    return Settings(defaults=base.defaults, agents={**base.agents, **agents})


async def with_variables(world: World, spec: RunSpec) -> RunId:
    spawning = world.engine.spawner.spawn(
        spec,
        SpawnContext(session=ME, settings=world.settings, cwd=str(world.directory)),
        environment=BROUGHT,
    )
    return (await world.clock.result(spawning)).run.id


def stored(world: World) -> int:
    return world.store.count(RunFilter(archived=True), most=10_000)


@pytest.mark.requirement("spawn:accepted", "spawn:spawn-flow")
async def test_an_accepted_run_is_stored_before_its_id_is_returned(world: World) -> None:
    world.hold_commits()
    spawning = asyncio.ensure_future(world.try_spawn("slow", label="job"))
    await world.clock.idle()
    assert not spawning.done()
    assert stored(world) == 0
    world.let_commits_go()
    receipt = await world.clock.result(spawning)

    assert receipt.run.resolved.label == "job"
    assert receipt.run.session_key.startswith("agent:slow:subagent:")
    assert not receipt.run.is_settled
    assert stored(world) == 1


@pytest.mark.requirement("spawn:guardrail-order", "spawn:spawn-flow", "spawn:guardrails-together")
def test_guardrails_are_asked_in_the_order_of_the_specification(tmp_path: Path) -> None:
    """Everything is wrong at first; each step repairs the guardrail that answered."""
    missing = str(tmp_path / "nowhere")
    wrong: dict[str, Any] = {
        "mode": Mode.SESSION,
        "agent": "stranger",
        "cwd": missing,
        "depends_on": ("r-none",),
        "verification": BAD_CONTRACT,
        "tools_allow": ("x",),
    }

    async def scenario(world: World) -> None:
        parent = await world.spawn("hang")
        await world.until(parent, Phase.RUNNING)
        session = (await world.run(parent)).session_key
        deep = settings_of(max_spawn_depth=1)
        wide = settings_of(max_spawn_depth=2)
        full = settings_of(max_spawn_depth=2, max_children_per_agent=1)
        await world.spawn("hang", requester=session, settings=wide)
        tried = dict(wrong)

        async def refused(kind: type[SubagentsError], settings: Settings) -> str:
            before = stored(world)
            with pytest.raises(kind) as error:
                await world.try_spawn(
                    **tried, requester=session, settings=settings, is_operator=False
                )
            assert stored(world) == before
            return str(error.value)

        assert 'mode="session" requires' in await refused(UsageError, deep)
        tried["mode"] = None
        assert "not allowed at this depth" in await refused(Forbidden, deep)
        # Only what waits for no other run counts as active.
        tried["depends_on"] = ()
        assert "max active children" in await refused(Forbidden, full)
        tried["depends_on"] = wrong["depends_on"]
        lonely = Agent(runtime="scripted", script=(), subagents=AgentSubagents())
        alone = Settings(defaults=wide.defaults, agents={**wide.agents, "hang": lonely})
        assert 'may not spawn "stranger"' in await refused(Forbidden, alone)
        assert "no agent 'stranger' is configured" in await refused(NotFound, wide)
        tried["agent"] = "quick"
        agents = dict(wide.agents)
        agents["quick"] = Agent(runtime="scripted", script=(), tools=("read",))
        scoped = Settings(defaults=wide.defaults, agents=agents)
        assert "toolsAllow can only narrow: x" in await refused(Forbidden, scoped)
        tried["tools_allow"] = ("read",)
        assert "is not a directory" in await refused(UsageError, scoped)
        tried["cwd"] = str(tmp_path)
        assert "Dependency run not found: r-none" in await refused(NotFound, scoped)
        tried["depends_on"] = ()
        assert "verification has nothing to check" in await refused(ContractError, scoped)
        tried["verification"] = None
        await world.try_spawn(**tried, requester=session, settings=scoped, is_operator=False)

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("spawn:children", "field:cap-exceeded", "field:spawn-burst")
@pytest.mark.world(max_children_per_agent=7)
async def test_of_fifty_racing_spawns_exactly_the_cap_is_accepted(world: World) -> None:
    tries = [world.try_spawn("slow", is_operator=False) for _ in range(50)]
    found = await world.clock.result(asyncio.gather(*tries, return_exceptions=True))

    refused = [each for each in found if isinstance(each, Forbidden)]
    assert len(found) - len(refused) == stored(world) == 7
    assert {each.guardrail for each in refused} == {"children"}


@pytest.mark.requirement("spawn:children", "spawn:children-per-session")
@pytest.mark.world(max_children_per_agent=1)
async def test_an_ended_child_frees_its_place_and_another_session_has_its_own(world: World) -> None:
    first = await world.spawn("slow", is_operator=False)
    with pytest.raises(Forbidden):
        await world.try_spawn("slow", is_operator=False)
    second = SessionKey("agent:main:second")
    await world.spawn("slow", requester=second, is_operator=False)
    await world.until(first)

    await world.spawn("slow", is_operator=False)


@pytest.mark.requirement("spawn:children:operator")
@pytest.mark.world(max_children_per_agent=1, max_concurrent=2)
async def test_what_an_operator_spawns_is_queued_and_never_refused(world: World) -> None:
    ids = [await world.spawn("slow") for _ in range(4)]
    ids += await world.clock.result(world.batch(*[RunSpec(task="x", agent_id="slow")] * 12))
    await world.until(ids[1], Phase.RUNNING)
    running = [each for each in ids if (await world.run(each)).phase is Phase.RUNNING]
    assert set(running) == {ids[0], ids[1]}
    await world.restart()
    ids.append(await world.spawn("slow"))
    receipt = await world.clock.result(
        world.engine.spawner.retry(
            (await world.until(ids[0])).id, SpawnContext(session=ME, settings=CAPPED)
        )
    )
    ids.append(receipt.run.id)

    assert {(await world.until(each)).outcome for each in ids} == {OK}


@pytest.mark.requirement("spawn:children:operator")
@pytest.mark.world(max_children_per_agent=1, max_spawn_depth=2)
async def test_an_operators_word_does_not_lift_the_cap_of_a_run(world: World) -> None:
    """Whoever speaks under the session of a run is its agent, whatever else is said."""
    parent = await world.spawn("hang")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    await world.spawn("hang", requester=session, is_operator=True)
    with pytest.raises(Forbidden, match="max active children"):
        await world.try_spawn("hang", requester=session, is_operator=True)


@pytest.mark.requirement("spawn:children:waiting", "field:batch-of-steps")
@pytest.mark.world(max_children_per_agent=1)
async def test_an_agents_chain_of_twelve_steps_fits_under_a_cap_of_one(world: World) -> None:
    chain = [RunSpec(task="x", agent_id="slow", label="s0")]
    chain += [
        RunSpec(task="x", agent_id="slow", label=f"s{n}", chain_after=f"s{n - 1}")
        for n in range(1, 12)
    ]
    ids = await world.clock.result(world.batch(*chain, is_operator=False))
    await world.restart()
    with pytest.raises(Forbidden, match="max active children"):
        await world.try_spawn("slow", is_operator=False)

    assert {(await world.until(each)).outcome for each in ids} == {OK}


@pytest.mark.requirement("spawn:children:waiting")
@pytest.mark.world(max_children_per_agent=1)
async def test_a_dependency_that_has_ended_is_no_way_around_the_cap(world: World) -> None:
    over = await world.spawn("quick", is_operator=False)
    await world.until(over)
    await world.spawn("hang", is_operator=False)
    with pytest.raises(Forbidden, match="max active children"):
        await world.try_spawn("hang", chain_after=over, is_operator=False)


@pytest.mark.requirement("spawn:idempotency")
async def test_the_same_key_gives_the_first_run_again_for_24_hours(world: World) -> None:
    first = await world.clock.result(world.try_spawn(idempotency_key="k"))
    again = await world.clock.result(world.try_spawn(idempotency_key="k"))
    assert (again.run.id, again.repeated, first.repeated) == (first.run.id, True, False)
    other = await world.clock.result(world.try_spawn(requester=OTHER, idempotency_key="k"))
    assert other.run.id != first.run.id
    await world.until(first.run.id, Phase.COMPLETED)
    await world.restart()
    later = await world.clock.result(world.try_spawn(idempotency_key="k"))
    assert (later.run.id, later.run.phase) == (first.run.id, Phase.COMPLETED)

    world.clock.jump(24 * 3_600 + 1)
    assert not (await world.clock.result(world.try_spawn(idempotency_key="k"))).repeated


@pytest.mark.requirement("spawn:idempotency-conflict")
async def test_the_same_key_with_another_request_is_refused_also_after_a_restart(
    world: World,
) -> None:
    first = await world.spawn("hang", label="one", idempotency_key="k")
    others: list[tuple[dict[str, Any], list[str]]] = [
        ({"agent": "hang", "label": "one", "task": "other"}, ["task"]),
        ({"agent": "hang", "cwd": "/"}, ["cwd", "label"]),
        ({"agent": "slow", "label": "one", "tags": ("x",)}, ["agentId", "tags", "task"]),
    ]
    for _ in range(2):
        for given, differs in others:
            with pytest.raises(IdempotencyConflict, match=f"stands for run {first}") as refused:
                await world.spawn(**given, idempotency_key="k")
            assert refused.value.details == {"runId": first, "differs": differs}
        assert await world.spawn("hang", label="one", idempotency_key="k") == first
        await world.restart()
    assert stored(world) == 1


@pytest.mark.requirement("spawn:idempotency-conflict")
async def test_a_batch_with_one_key_of_another_request_starts_nothing(world: World) -> None:
    keyed = RunSpec(task="a", agent_id="quick", idempotency_key="ka")
    await world.clock.result(world.batch(keyed))
    other = replace(keyed, task="b")
    with pytest.raises(IdempotencyConflict, match=r'key "ka" .* differs .* in task'):
        await world.batch(RunSpec(task="c", agent_id="quick"), other)
    assert stored(world) == 1


@pytest.mark.requirement("spawn:idempotency-conflict")
async def test_a_key_from_before_requests_were_kept_stands_for_every_request(world: World) -> None:
    first = await world.spawn("hang", idempotency_key="k")
    await world.crash()
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE idempotency SET digest = NULL, checksum = NULL")
    await world.boot()
    assert await world.spawn("slow", idempotency_key="k") == first


@pytest.mark.requirement("spawn:idempotency")
async def test_racing_spawns_with_one_key_make_one_run(world: World) -> None:
    tries = [world.try_spawn(idempotency_key="k") for _ in range(20)]
    receipts = await world.clock.result(asyncio.gather(*tries))

    assert len({receipt.run.id for receipt in receipts}) == 1
    assert sum(not receipt.repeated for receipt in receipts) == 1
    assert stored(world) == 1


@pytest.mark.requirement("spawn:batch-all-or-nothing")
@pytest.mark.world(max_children_per_agent=3)
async def test_a_batch_is_stored_whole_or_not_at_all(world: World) -> None:
    good = RunSpec(task="a", agent_id="quick", label="a")
    with pytest.raises(NotFound):
        await world.batch(good, RunSpec(task="b", agent_id="nobody"))
    with pytest.raises(UsageError, match='label "a" is used twice in this batch'):
        await world.batch(good, good)
    with pytest.raises(Forbidden):
        await world.batch(*[RunSpec(task="x", agent_id="quick")] * 4, is_operator=False)
    assert stored(world) == 0

    ids = await world.clock.result(
        world.batch(good, RunSpec(task="b", agent_id="quick", depends_on=("a",)))
    )
    assert (await world.until(ids[1])).outcome is not None
    assert (await world.run(ids[1])).waiting.dependencies[0].run_id == ids[0]


@pytest.mark.requirement("spawn:target-agent")
def test_the_agent_is_named_or_the_requesters_own_or_the_configured_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async def agent_of(requester: str, settings: Settings, agent: str | None = None) -> str:
            receipt = await world.clock.result(
                world.try_spawn(agent, requester=SessionKey(requester), settings=settings)
            )
            return receipt.run.resolved.agent_id

        own = settings_of()
        standard = settings_of(agent="slow")
        assert await agent_of("agent:quick:main", own) == "quick"
        assert await agent_of("agent:quick:main", own, " Slow ") == "slow"
        assert await agent_of("agent:nobody:main", standard) == "slow"
        with pytest.raises(UsageError, match="agentId is missing") as refused:
            await agent_of("agent:nobody:main", own)
        assert "fail, flaky, hang" in str(refused.value.hint)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("tools:denied-for-descendants")
@pytest.mark.world(max_spawn_depth=2)
async def test_denied_tools_stay_denied_for_all_descendants(world: World) -> None:
    parent = await world.spawn("hang", tools_deny=("message",))
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "hang")
    other = await world.spawn_child(parent, "slow", tools_allow=("message", "write"))

    assert (await world.run(child)).resolved.tools_deny == ("message",)
    assert (await world.run(other)).resolved.effective_tools == ("write",)
    assert world.runtime.launches[-1].tools_deny == ("message",)


@pytest.mark.requirement("tools:unenforceable")
@pytest.mark.world(abilities=Abilities())
async def test_a_runtime_that_cannot_scope_tools_refuses_the_spawn(world: World) -> None:
    with pytest.raises(Forbidden, match='runtime "scripted" cannot enforce tool scoping'):
        await world.try_spawn(tools_deny=("x",))
    assert stored(world) == 0


@pytest.mark.requirement("contract:commands:gated")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_command_is_taken_from_the_operator_and_from_no_agent(world: World) -> None:
    contract = Contract(commands=("true",))
    own = await world.spawn("quick", verification=contract)
    run = await world.until(own)
    assert run.resolved.commands_trusted
    assert run.verification.state is VerificationState.PASSED
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    with pytest.raises(ContractError, match="is for the operator"):
        await world.spawn_child(parent, verification=contract)
    with pytest.raises(ContractError, match="is for the operator"):
        await world.try_spawn(is_operator=False, agent="quick", verification=contract)


@pytest.mark.requirement("contract:agents-stay-inside")
def test_an_agents_contract_is_checked_where_the_agent_works_itself_and_nowhere_else(
    tmp_path: Path,
) -> None:
    contract = Contract(artifacts=(Artifact(path="a"),))
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "place"
    place.mkdir()
    elsewhere.mkdir()
    real_elsewhere, real_place = str(elsewhere.resolve()), str(place.resolve())

    async def scenario(world: World) -> None:
        below = world.directory / "below"
        below.mkdir()
        (below / "link").symlink_to(elsewhere)
        parent = await world.spawn("hang", cwd=str(below))
        await world.until(parent, Phase.RUNNING)
        for cwd in (elsewhere, below / "link", below / "..", world.directory):
            with pytest.raises(ContractError, match="verification needs a cwd below"):
                await world.spawn_child(parent, cwd=str(cwd), verification=contract)
        with pytest.raises(ContractError, match="verification needs a cwd below"):
            await world.try_spawn(is_operator=False, cwd=str(elsewhere), verification=contract)

        child = await world.run(
            await world.spawn_child(parent, cwd=str(below), verification=contract)
        )
        assert child.resolved.contract_root == f"{real_place}/below"
        await world.spawn_child(parent, cwd=str(elsewhere))
        report = Contract(require_completion_report=True)
        await world.spawn_child(parent, cwd=str(elsewhere), verification=report)
        own = await world.run(await world.spawn(cwd=str(elsewhere), verification=contract))
        assert own.resolved.contract_root is None

        agents = dict(world.settings.agents)
        agents["quick"] = replace(agents["quick"], cwd=str(elsewhere))
        configured = replace(world.settings, agents=agents)
        receipt = await world.clock.result(
            world.try_spawn(is_operator=False, settings=configured, verification=contract)
        )
        assert receipt.run.resolved.contract_root == real_elsewhere

    in_world(place, scenario, max_spawn_depth=2)


@pytest.mark.requirement("vacuous:marked")
async def test_a_contract_that_passes_before_any_work_is_warned_about(world: World) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),), fresh=False)
    fresh = await world.clock.result(world.try_spawn("writer", verification=contract))
    assert fresh.warnings == ()
    await world.until(fresh.run.id)
    again = await world.clock.result(world.try_spawn("writer", verification=contract))

    assert again.run.verification.vacuous
    assert "it proves nothing (vacuous)" in again.warnings[0]


@pytest.mark.requirement(
    "lifecycle:origin-is-kept", "contract:stored-with-parameters", "field:model-override-ignored"
)
async def test_a_later_change_of_the_configuration_changes_no_run(world: World) -> None:
    run_id = await world.spawn("flaky", retry_count=1, retry_delay=60_000, thinking=None)
    await world.until(run_id, Phase.RETRY_WAIT)
    before = await world.run(run_id)
    world.settings = settings_of(max_announce_chars=100)
    await world.restart()
    after = await world.until(run_id)

    assert (after.spec, after.resolved) == (before.spec, before.resolved)
    assert after.result == "second time lucky"
    first, second = world.runtime.launches
    assert (first.options, first.model, first.cwd) == (second.options, second.model, second.cwd)


@pytest.mark.requirement("spawn:ended-session")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_session_that_ended_or_was_cancelled_spawns_no_more(world: World) -> None:
    parent = await world.spawn("quick")
    run = await world.until(parent, Phase.COMPLETED)
    with pytest.raises(Forbidden, match="has ended"):
        await world.try_spawn(requester=run.session_key)
    assert stored(world) == 1


@pytest.mark.requirement("spawn:nothing-half-done")
async def test_a_spawn_whose_commit_fails_was_never_there(world: World) -> None:
    world.store.failures_left = 1
    with pytest.raises(StoreUnavailable):
        await world.try_spawn("slow")
    await world.clock.advance(5)

    assert stored(world) == 0
    assert world.engine.ledger.live == {}
    assert world.runtime.launches == []
    assert isinstance(await world.spawn("slow"), str)


@pytest.mark.requirement("engine:many-at-once", "field:spawn-burst")
@pytest.mark.world(max_children_per_agent=1_000, max_concurrent=100)
async def test_a_thousand_runs_in_one_batch_all_end(world: World) -> None:
    specs = [RunSpec(task=f"t{n}", agent_id="quick") for n in range(1_000)]
    ids = await world.clock.result(world.batch(*specs))
    left: set[RunId] = set(ids)
    await world.clock.until(lambda: not world.engine.ledger.live, within_s=60)

    found = await world.engine.mailbox.wait(ids, session=ME, until="all", timeout_s=0, reader="me")
    assert {run.id for run in found.completed} == left
    assert len(found.offered) == 1_000
    assert len(world.runtime.launches) == 1_000


@pytest.mark.requirement("spawn:idempotency-in-batches")
async def test_a_batch_sent_twice_makes_its_keyed_runs_once(world: World) -> None:
    keyed = RunSpec(task="a", agent_id="quick", label="a", idempotency_key="ka")
    after = RunSpec(task="b", agent_id="quick", label="b", depends_on=("a",), idempotency_key="kb")
    first = await world.clock.result(world.batch(keyed, after))
    again = await world.clock.result(world.batch(keyed, after))
    assert again == first

    mixed = await world.clock.result(world.batch(keyed, RunSpec(task="c", agent_id="quick")))
    assert mixed[0] == first[0]
    assert stored(world) == 3
    with pytest.raises(UsageError, match="idempotencyKey is used twice"):
        await world.batch(keyed, keyed)


@pytest.mark.requirement("prompt:fleet")
@pytest.mark.world(max_spawn_depth=2)
async def test_the_prompt_of_a_worker_that_may_spawn_names_the_agents_it_may_use(
    world: World,
) -> None:
    boss = await world.spawn("parent")
    await world.until(boss, Phase.RUNNING)
    leaf = await world.spawn_child(boss, "hang")
    await world.until(leaf, Phase.RUNNING)
    prompts = {each.run_id: each.system_prompt for each in world.runtime.launches}

    assert "## Agents you may name as agentId\n- fail\n" in prompts[boss]
    assert "agentId" not in prompts[leaf]
    assert (await world.run(leaf)).resolved.fleet == ()


@pytest.mark.requirement("environment:kept")
async def test_variables_of_a_caller_are_kept_for_the_run_and_its_retry_and_in_no_event(
    world: World, tmp_path: Path
) -> None:
    first = await with_variables(world, RunSpec(task="x", agent_id="quick"))
    again = await world.clock.result(
        world.engine.spawner.retry(
            (await world.until(first)).id, SpawnContext(session=ME, settings=world.settings)
        )
    )
    # Only a plain command is what a person would have typed into their shell.
    given = BROUGHT.given.keys()
    assert (await world.run(first)).resolved.caller_env == tuple(given)
    files = EnvironmentFiles(tmp_path / "environments")
    assert files.read(first) == files.read(again.run.id) == replace(BROUGHT, shell={})
    assert b"hush" not in world.path.read_bytes()


@pytest.mark.requirement("environment:kept")
async def test_a_spawn_that_makes_no_run_keeps_no_variables(world: World, tmp_path: Path) -> None:
    spec = RunSpec(task="x", agent_id="quick", idempotency_key="k")
    first = await with_variables(world, spec)
    assert await with_variables(world, spec) == first
    with pytest.raises(UsageError):
        await with_variables(world, RunSpec(task="x", agent_id="quick", cwd="/nowhere"))
    assert [each.name for each in (tmp_path / "environments").iterdir()] == [first]


@pytest.mark.requirement("spawn:deadline")
@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(0.0001, 1), (0.0004, 1), (0.01, 10), (0, 0)]
)
async def test_a_deadline_too_short_to_measure_is_one(
    world: World, seconds: float, milliseconds: int
) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=seconds)
    assert (await world.run(run_id)).resolved.timeout_ms == milliseconds
