"""A contract that its worker cannot meet is refused before any work, with the way out."""

from typing import Any, Final

import pytest
from tests.engine.world import World

from subagents.config.settings import Settings
from subagents.domain.run.access import AccessLevel, Ceiling
from subagents.domain.run.run import Decision, Phase
from subagents.domain.run.spec import (
    Artifact,
    Contract,
    Judge,
    OnDependencyFailure,
)
from subagents.domain.run.values import replace
from subagents.errors import ContractError

READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
READER: Final = Ceiling(level=READ, source='Codex in its sandbox "read-only"')
FIXED: Final = Contract(artifacts=(Artifact(path="fixed.txt"),))
OLD: Final = Artifact(path="old.txt", fresh=False)


def with_access(world: World, agent: str, access: AccessLevel) -> Settings:
    changed = replace(world.settings.agents[agent], access=access)
    return replace(world.settings, agents={**world.settings.agents, agent: changed})


async def refusal(world: World, **spec: Any) -> ContractError:
    with pytest.raises(ContractError) as caught:
        await world.clock.result(world.try_spawn("quick", **spec))
    assert world.runtime.launches == []
    assert world.engine.ledger.published == {}, "nothing was stored"
    return caught.value


UNMET: Final[dict[str, tuple[Contract, str]]] = {
    "a new file": (FIXED, "verification.artifacts[0]: fixed.txt must be written"),
    "the second file": (
        Contract(artifacts=(OLD, Artifact(path="b.txt"))),
        "verification.artifacts[1]: b.txt must be written",
    ),
    "a report of tests": (
        Contract(artifacts=(Artifact(path="report.xml", junit=True, min_tests=1),)),
        "verification.artifacts[0]: report.xml must be written",
    ),
    "so many new files": (
        Contract(artifacts=(Artifact(path="out/*.csv", min_files=2),)),
        "verification.artifacts[0]: out/*.csv must be written",
    ),
    "a change": (Contract(must_change=("src",)), "verification.mustChange[0]: src must be changed"),
    "a change beside an old file": (
        Contract(artifacts=(OLD,), must_change=("src/**",)),
        "verification.mustChange[0]: src/** must be changed",
    ),
    "a fresh one where old ones do": (
        Contract(fresh=False, artifacts=(Artifact(path="new.txt", fresh=True),)),
        "verification.artifacts[0]: new.txt must be written",
    ),
}


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.parametrize(("wanted", "message"), UNMET.values(), ids=UNMET)
async def test_a_worker_that_may_only_read_is_not_asked_for_files(
    world: World, wanted: Contract, message: str
) -> None:
    for spec, why, way_out in (
        (
            {"ceiling": READER},
            'Codex in its sandbox "read-only" may only read',
            'add access: "write" (--access write), and the user is asked; or ',
        ),
        ({"access": READ}, 'access "read"', 'add access: "write" (--access write); or '),
        (
            {"settings": with_access(world, "quick", READ)},
            'access "read"',
            "choose an agent that may write (agents_list), or ask the user to set agents",
        ),
    ):
        error = await refusal(world, verification=wanted, **spec)
        assert error.message == f"{message} by the run, whose worker may only read ({why})"
        assert (error.hint or "").startswith(way_out)
        assert error.details["field"] == message.partition(":")[0]


MET: Final[dict[str, Contract]] = {
    "an old file": Contract(artifacts=(OLD,)),
    "only old files": Contract(fresh=False, artifacts=(Artifact(path="fixed.txt"),)),
    "nothing changes": Contract(must_not_change=("src",)),
    "a report": Contract(require_completion_report=True),
    "a command": Contract(commands=("true",)),
    "not too many files": Contract(artifacts=(Artifact(path="*.tmp", max_files=0),)),
}


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.parametrize("wanted", MET.values(), ids=MET)
async def test_a_worker_that_may_only_read_is_taken_for_what_needs_no_change(
    world: World, wanted: Contract
) -> None:
    run_id = await world.spawn("quick", verification=wanted, ceiling=READER)
    access = (await world.run(run_id)).resolved.access
    assert access is not None
    assert access.level is READ


@pytest.mark.requirement("contract:can-be-met", "access:ask-a-person")
async def test_with_access_named_as_the_refusal_says_a_person_is_asked_and_the_contract_met(
    world: World,
) -> None:
    contract = Contract(artifacts=(Artifact(path="out.txt"),))
    run_id = await world.spawn("writer", verification=contract, ceiling=READER, access=WRITE)
    run = await world.run(run_id)
    assert run.phase is Phase.WAITING
    request = run.pending_requests[0]
    assert "asks for more" in request.question
    await world.engine.questions.answer(request.id, "", decision=Decision.APPROVE, by="me")
    run = await world.until(run_id)
    assert run.outcome is not None
    assert run.outcome.is_ok


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.world(max_spawn_depth=2)
async def test_below_a_run_that_may_only_read_the_way_out_is_its_requester(world: World) -> None:
    top = await world.spawn("hang", access=READ)
    await world.until(top, Phase.RUNNING)
    with pytest.raises(ContractError, match="whose worker may only read") as caught:
        await world.spawn_child(top, "quick", verification=FIXED)
    assert "ask your requester for it (request_orchestrator)" in (caught.value.hint or "")


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.parametrize("tools", [("Read", "Grep"), ("read", "web"), ()])
async def test_a_worker_without_a_tool_that_writes_is_not_asked_for_files(
    world: World, tools: tuple[str, ...]
) -> None:
    error = await refusal(world, verification=FIXED, tools_allow=tools)
    assert "whose worker has no tool that writes" in error.message
    assert "(toolsAllow)" in (error.hint or "")
    for more in ("Bash", "Edit", "mcp__files__put"):
        await world.spawn("quick", verification=FIXED, tools_allow=(*tools, more))


@pytest.mark.requirement("contract:can-be-met", "judge:access")
async def test_a_judge_that_only_reads_is_asked_for_no_files_of_its_own(world: World) -> None:
    judge = Judge(agent_id="judge_pass", criteria="good", verification=FIXED, access=READ)
    error = await refusal(world, verification=Contract(judge=judge))
    assert error.message.startswith("verification.judge.verification.artifacts[0]: fixed.txt")
    assert "--judge-access write" in (error.hint or "")


@pytest.mark.requirement("contract:can-be-met")
async def test_an_agent_that_only_reads_takes_nothing_over_that_needs_files(world: World) -> None:
    settings = with_access(world, "silent", READ)
    before = await world.spawn("hang")
    with pytest.raises(ContractError, match="fallbackAgentId: agent silent: verification"):
        await world.clock.result(
            world.try_spawn(
                "quick",
                settings=settings,
                depends_on=(before,),
                on_dependency_failure=OnDependencyFailure.FALLBACK,
                fallback_agent_id="silent",
                verification=FIXED,
            )
        )


CONTRADICTIONS: Final[dict[str, tuple[Contract, tuple[str, str, str, str]]]] = {
    "the file itself": (
        Contract(artifacts=(Artifact(path="a.txt"),), must_not_change=("a.txt",)),
        ("artifacts[0]", "a.txt", "0", "a.txt"),
    ),
    "a file below": (
        Contract(artifacts=(Artifact(path="tests/report.xml"),), must_not_change=("src", "tests")),
        ("artifacts[0]", "tests/report.xml", "1", "tests"),
    ),
    "written otherwise": (
        Contract(artifacts=(Artifact(path="./tests//a.xml"),), must_not_change=("tests/",)),
        ("artifacts[0]", "./tests//a.xml", "0", "tests/"),
    ),
    "by a pattern": (
        Contract(must_change=("src/a.py",), must_not_change=("**/*.py",)),
        ("mustChange[0]", "src/a.py", "0", "**/*.py"),
    ),
    "the same pattern": (
        Contract(must_change=("*.py",), must_not_change=("*.py",)),
        ("mustChange[0]", "*.py", "0", "*.py"),
    ),
    "everything": (
        Contract(must_change=("src/**",), must_not_change=("**",)),
        ("mustChange[0]", "src/**", "0", "**"),
    ),
    "after one that lies outside": (
        Contract(
            artifacts=(Artifact(path="/elsewhere/a.txt"), Artifact(path="a.txt")),
            must_not_change=("a.txt",),
        ),
        ("artifacts[1]", "a.txt", "0", "a.txt"),
    ),
    "so many new ones": (
        Contract(artifacts=(Artifact(path="out/*.csv", min_files=1),), must_not_change=("out",)),
        ("artifacts[0]", "out/*.csv", "0", "out"),
    ),
}
POSSIBLE: Final[dict[str, Contract]] = {
    "a part of it": Contract(must_change=("src",), must_not_change=("src/a.py",)),
    "an old file": Contract(artifacts=(OLD,), must_not_change=("old.txt",)),
    "a beginning of its name": Contract(must_change=("src2",), must_not_change=("src",)),
    "patterns that differ": Contract(must_change=("*.py",), must_not_change=("test_*.py",)),
    "none of them": Contract(
        artifacts=(Artifact(path="out/*.tmp", max_files=0),), must_not_change=("out",)
    ),
}


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.parametrize(("wanted", "found"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
async def test_a_contract_that_asks_for_what_it_forbids_is_refused(
    world: World, wanted: Contract, found: tuple[str, str, str, str]
) -> None:
    error = await refusal(world, verification=wanted)
    asks, path, number, protected = found
    assert error.message == (
        f"verification.{asks} asks for a change of {path},"
        f" which verification.mustNotChange[{number}] ({protected}) forbids"
    )


@pytest.mark.requirement("contract:can-be-met")
@pytest.mark.parametrize("wanted", POSSIBLE.values(), ids=POSSIBLE)
async def test_a_contract_that_asks_for_some_and_forbids_other_changes_is_taken(
    world: World, wanted: Contract
) -> None:
    await world.spawn("quick", verification=wanted)
