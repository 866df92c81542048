"""Runs are found and read by whoever may see them."""

import asyncio

import pytest
from tests.engine.world import ME, OTHER, World

from subagents.domain.run.run import Phase
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import SessionKey
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, SpawnContext
from subagents.errors import NotFound, UsageError
from subagents.ports import RunFilter


@pytest.mark.requirement("cancel:unknown")
async def test_an_unknown_run_is_said_to_be_unknown(world: World) -> None:
    with pytest.raises(NotFound, match="run r-none does not exist"):
        await world.engine.control.cancel("r-none", by="me")  # type: ignore[arg-type]


@pytest.mark.requirement("queries:resolve", "spawn:registry")
async def test_a_run_is_found_by_id_label_prefix_and_last(world: World) -> None:
    old = await world.spawn("quick", label="job")
    new = await world.spawn("hang", label="job")
    await world.until(old, Phase.COMPLETED)
    resolve = world.engine.queries.resolve

    assert await resolve(old, ME) == old
    assert await resolve("job", ME) == new
    assert await resolve("last", ME) == new
    assert await resolve(old[:-1] + old[-1], OTHER) == old
    with pytest.raises(UsageError, match="fits several runs"):
        await resolve("r-0000", ME)
    with pytest.raises(NotFound, match='no run "zzz"'):
        await resolve("zzz", ME)


@pytest.mark.requirement("queries:resolve")
@pytest.mark.parametrize(
    ("who", "said"), [(ME, "; there is a plan of that name, plan:nightly"), (OTHER, "")]
)
async def test_who_names_a_plan_of_theirs_as_a_run_is_told_so(
    world: World, who: SessionKey, said: str
) -> None:
    await world.clock.result(
        world.engine.spawner.spawn_batch(
            [RunAsked(spec=RunSpec(task="x", agent_id="quick"))],
            SpawnContext(session=ME, settings=world.settings, cwd=str(world.directory)),
            plan=PlanAsked(name="nightly"),
        )
    )
    with pytest.raises(NotFound, match=f'^no run "nightly"{said}$'):
        await world.clock.result(world.engine.queries.resolve("nightly", who))


@pytest.mark.requirement("queries:resolve")
async def test_a_run_is_never_read_older_than_a_list_has_shown_it(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    world.delay_commits()
    cancelling = asyncio.ensure_future(world.engine.control.cancel(run_id, by="me"))
    await world.clock.advance(0)
    (row,) = await world.engine.queries.runs(RunFilter())
    assert row.control.cancel is not None

    reading = asyncio.ensure_future(world.engine.queries.run(run_id))
    await world.clock.advance(0)
    world.let_commits_go()

    assert (await world.clock.result(reading)).control == row.control
    await world.clock.result(cancelling)


@pytest.mark.requirement("queries:last")
async def test_last_is_only_ever_a_run_of_the_session_that_says_it(world: World) -> None:
    theirs = await world.spawn("hang", label="job")
    await world.until(theirs, Phase.RUNNING)
    resolve = world.engine.queries.resolve

    with pytest.raises(NotFound, match="this session has started no runs") as refused:
        await resolve("last", OTHER)
    assert await resolve("job", OTHER) == theirs

    mine = await world.spawn("quick", requester=OTHER)
    await world.spawn("quick")
    assert await resolve("last", OTHER) == mine
    assert refused.value.hint is not None
    assert "subagents list" in refused.value.hint


@pytest.mark.requirement("queries:tree", "tree:verification-state")
@pytest.mark.world(max_spawn_depth=2)
async def test_the_tree_shows_every_descendant_with_its_verification(world: World) -> None:
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    children = [await world.spawn_child(parent, "quick") for _ in range(2)]
    await world.until(children[1], Phase.COMPLETED)

    tree = await world.engine.queries.tree(parent)

    assert [node.run.id for node in tree.children] == children
    assert tree.children[0].run.verification.state is None
    ((root,), _) = await world.engine.queries.roots(RunFilter(requester=ME))
    assert root.run.id == parent


@pytest.mark.requirement("queries:tree")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_tree_is_whole_and_a_cut_one_counts_what_is_left_out(world: World) -> None:
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    children = [await world.spawn_child(parent, "hang") for _ in range(4)]

    whole = await world.engine.queries.tree(parent)
    cut = await world.engine.queries.tree(parent, most=3)

    assert [node.run.id for node in whole.children] == children
    assert whole.left_out == 0
    assert [node.run.id for node in cut.children] == children[:2]
    assert cut.left_out == 2
