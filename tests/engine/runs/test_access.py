"""What a run may do: narrowed to its caller and to the runs above it, or allowed by a person."""

from collections.abc import Awaitable
from pathlib import Path

import pytest
from tests.engine.world import ME, World, in_world

from subagents.api.answers import run_building
from subagents.api.answers.explain import why_now
from subagents.config.settings import AgentIsolation
from subagents.domain.run.access import Access, AccessLevel, Ceiling, Keeper
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Decision, Phase, Run
from subagents.domain.run.spec import Isolation, Network
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import Forbidden, UsageError

READ, WRITE, FULL = AccessLevel.READ, AccessLevel.WRITE, AccessLevel.FULL
READER = Ceiling(level=READ, source='Codex in its sandbox "read-only"')


def access_of(run: Run) -> Access:
    found = run.resolved.access
    assert found is not None
    return found


async def asking(world: World, **spec: object) -> Run:
    """A run that waits for a person's yes."""
    run_id = await world.spawn("hang", ceiling=READER, access=WRITE, **spec)
    return await world.run(run_id)


@pytest.mark.requirement("access:caller-is-ceiling", "access:receipt")
async def test_a_run_may_do_no_more_than_its_caller_and_its_receipt_says_so(world: World) -> None:
    receipt = await world.clock.result(world.try_spawn("hang", ceiling=READER))

    access = access_of(receipt.run)
    assert (access.level, access.kept_by) == (READ, Keeper.PROGRAM)
    assert any("sandbox" in each and "may only read" in each for each in receipt.warnings)
    said = run_building.receipt(receipt)
    assert said.access is not None
    assert said.access.text.startswith("may read, and write nothing")

    free = await world.clock.result(world.try_spawn("hang"))
    assert access_of(free.run) == Access(level=FULL)
    assert free.warnings == ()


@pytest.mark.requirement("access:receipt:unserved")
def test_a_receipt_says_that_a_program_gets_none_of_our_tools_and_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        told = ("it starts no MCP servers", "subagents mcp install it")
        monkeypatch.setattr(world.runtime, "unserved", lambda _options: told, raising=False)

        receipt = await world.clock.result(world.try_spawn("hang"))

        assert receipt.warnings == ("it starts no MCP servers; subagents mcp install it",)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("access:inherited")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_may_do_no_more_than_its_parent_nor_ask_for_it(world: World) -> None:
    top = await world.spawn("hang", access=READ)
    await world.until(top, Phase.RUNNING)

    child = await world.spawn_child(top, "slow")
    assert access_of(await world.run(child)).level is READ
    with pytest.raises(Forbidden, match="more than its requester may give"):
        await world.spawn_child(top, "slow", access=WRITE)


@pytest.mark.requirement("access:inherited")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_of_a_run_that_may_write_here_only_reads_elsewhere(world: World) -> None:
    top = await world.spawn("hang", access=WRITE)
    await world.until(top, Phase.RUNNING)
    (world.directory / "below").mkdir()

    near = await world.spawn_child(top, "slow", cwd=str(world.directory / "below"))
    away = await world.spawn_child(top, "slow", cwd="/")
    assert access_of(await world.run(near)).level is WRITE
    assert access_of(await world.run(away)).level is READ


@pytest.mark.requirement("access:ask-a-person")
async def test_more_than_the_caller_may_waits_for_a_yes(world: World) -> None:
    run = await asking(world)
    assert run.phase is Phase.WAITING
    question = run.pending_requests[0]
    assert "may itself only read" in question.question
    assert "waits for a yes" in why_now(run, world.clock.now_ms())
    assert run_building.run_status(run) == "blocked"
    assert "only" not in str(access_of(run).narrowed)

    await world.engine.questions.answer(question.id, "", decision=Decision.APPROVE, by="me")
    run = await world.until(run.id, Phase.RUNNING)
    assert access_of(run).level is WRITE
    assert await world.folded(run.id) == run


@pytest.mark.requirement("access:ask-a-person")
@pytest.mark.parametrize("decision", [Decision.DENY, Decision.ANSWER])
async def test_anything_but_a_yes_is_a_no(world: World, decision: Decision) -> None:
    run = await asking(world)
    await world.engine.questions.answer(
        run.pending_requests[0].id, "not now", decision=decision, by="me"
    )

    await ended_without_a_start(world, run.id, "denied by me (not now)")


@pytest.mark.requirement("access:ask-a-person")
async def test_a_run_waits_for_its_yes_for_hours_and_starts_on_a_yes_alone(world: World) -> None:
    run = await asking(world)

    await world.clock.advance(6 * 3_600)
    assert (await world.run(run.id)).phase is Phase.WAITING
    request = run.pending_requests[0]
    await world.engine.questions.answer(request.id, "", decision=Decision.APPROVE, by="me")
    await world.until(run.id, Phase.RUNNING)


@pytest.mark.requirement("access:ask-a-person")
async def test_a_run_that_is_cancelled_asks_no_more(world: World) -> None:
    run = await asking(world)
    await world.engine.control.cancel(run.id, by="me", reason=None)
    run = await world.until(run.id)
    assert run.pending_requests == ()
    assert run.outcome is not None
    assert run.outcome.status is Status.CANCELLED


@pytest.mark.requirement("access:ask-a-person")
async def test_a_yes_waits_for_the_other_runs_all_the_same(world: World) -> None:
    first = await world.spawn("slow")
    run = await asking(world, depends_on=(first,))
    question = run.pending_requests[0]
    await world.engine.questions.answer(question.id, "", decision=Decision.APPROVE, by="me")
    assert (await world.run(run.id)).phase is Phase.WAITING
    await world.until(first)
    await world.until(run.id, Phase.RUNNING)


async def ended_without_a_start(world: World, run_id: RunId, why: str) -> None:
    run = await world.until(run_id)
    assert run.attempts == ()
    assert run.pending_requests == ()
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.ERROR, Reason.NOT_ALLOWED)
    assert why in (run.outcome.error or "")


@pytest.mark.requirement("access:messages")
def test_a_caller_sends_no_message_to_a_worker_that_may_do_more_than_itself(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        strong, weak = await world.spawn("hang"), await world.spawn("hang", ceiling=READER)
        for run_id in (strong, weak):
            await world.until(run_id, Phase.RUNNING)

        def send(run_id: RunId, ceiling: Ceiling | None, mode: str = "either") -> Awaitable[Sent]:
            return world.engine.sessions.send(
                run_id,
                "write it",
                SpawnContext(
                    session=ME, settings=world.settings, is_operator=False, ceiling=ceiling
                ),
                mode=mode,
            )

        for mode in ("either", "steer", "followup"):
            with pytest.raises(Forbidden, match="may only read") as refused:
                await send(strong, READER, mode)
            assert refused.value.hint is not None
            assert "ask the user to send it" in refused.value.hint
        with pytest.raises(Forbidden, match="may only read"):
            await world.engine.control.steer(strong, "write it", by="me", ceiling=READER)
        assert world.runtime.steered == []

        assert (await world.clock.result(send(weak, READER))).status == "steered"
        assert (await world.clock.result(send(strong, None))).status == "steered"
        stopped = await world.clock.result(world.engine.control.cancel(strong, by="me"))
        assert stopped.control.cancel is not None

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sandbox:receipt", "sandbox:inherited")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_child_of_a_sandboxed_run_sees_what_its_parent_sees(world: World) -> None:
    receipt = await world.clock.result(
        world.try_spawn("hang", isolation=Isolation.SANDBOX, network=Network.HOST)
    )
    top = receipt.run.id
    await world.until(top, Phase.RUNNING)
    said = run_building.receipt(receipt)
    assert said.access is not None
    assert (said.access.sees, said.access.network) == (str(world.directory), True)
    assert "(sandbox)" in said.access.text

    (world.directory / "below").mkdir()
    (world.directory / "link").symlink_to("/")
    child = await world.spawn_child(top, "slow", cwd=str(world.directory / "below"))
    access = access_of(await world.run(child))
    assert access.sees == str(world.directory)
    assert not access.network
    for away in ("/", str(world.directory / "link")):
        with pytest.raises(Forbidden, match="not seen by its requester"):
            await world.spawn_child(top, "slow", cwd=away)
    with pytest.raises(UsageError, match="does not work in a sandbox"):
        await world.spawn_child(top, "slow", isolation=Isolation.WORKTREE)
    assert await world.folded(child) == await world.run(child)


@pytest.mark.requirement("sandbox:configured")
async def test_an_agent_in_a_sandbox_is_in_it_whatever_the_spawn_says(world: World) -> None:
    agent = world.settings.agents["slow"]
    boxed = replace(agent, isolation=AgentIsolation.SANDBOX, network=Network.NONE)
    settings = replace(world.settings, agents={"slow": boxed})
    run = await world.run(await world.spawn("slow", settings=settings))
    assert access_of(run).sees == str(world.directory)
    with pytest.raises(Forbidden, match=r"agents\.slow\.network"):
        await world.spawn("slow", settings=settings, network=Network.HOST)


@pytest.mark.requirement("access:links")
@pytest.mark.parametrize("leads", ["/", "..", "../..", "/etc"])
@pytest.mark.world(max_spawn_depth=2)
async def test_a_link_leads_a_child_nowhere_that_its_parent_may_not_write(
    world: World, leads: str
) -> None:
    real = str((world.directory / leads).resolve()), str(world.directory.resolve() / "below")
    top = await world.spawn("hang", access=WRITE)
    await world.until(top, Phase.RUNNING)
    (world.directory / "out").symlink_to(leads)
    (world.directory / "below").mkdir()
    (world.directory / "in").symlink_to("below")

    away = await world.run(await world.spawn_child(top, "slow", cwd=str(world.directory / "out")))
    assert access_of(away).level is READ
    assert away.resolved.cwd == real[0]
    near = await world.run(await world.spawn_child(top, "slow", cwd=str(world.directory / "in")))
    assert (access_of(near).level, access_of(near).is_pinned) == (WRITE, True)
    assert near.resolved.cwd == real[1]


@pytest.mark.requirement("access:links")
async def test_a_person_may_work_behind_a_link(world: World) -> None:
    (world.directory / "below").mkdir()
    (world.directory / "in").symlink_to("below")
    cwd = str(world.directory / "in")
    run = await world.run(await world.spawn("hang", access=WRITE, cwd=cwd))
    assert (run.resolved.cwd, access_of(run).is_pinned) == (cwd, False)
