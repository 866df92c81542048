"""The variables that callers bring: which run has which, and what is left when none is made."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.builders import Life, a_resolved, spawned

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.engine.runs.environments import Environments
from subagents.engine.runs.spawn_call import Draft, RunAsked
from subagents.errors import StoreUnavailable
from subagents.store.environment_files import EnvironmentFiles

T = TypeVar("T")
BROUGHT = CallerEnvironment(shell={"PATH": "/shell"}, given={"TOKEN": "new", "MORE": "1"})


async def here(work: Callable[[], T]) -> T:
    return work()


def environments(files: EnvironmentFiles) -> Environments:
    return Environments(here, files, lambda _resolved, _name: False)


def draft(
    run_id: str,
    runtime: str = "codex",
    previous: Run | None = None,
    brought: CallerEnvironment | None = BROUGHT,
) -> Draft:
    event = spawned(resolved=a_resolved(runtime=runtime), run_id=RunId(run_id))
    asked = RunAsked(spec=event.spec, previous=previous, environment=brought)
    return Draft(asked=asked, spawned=event)


@pytest.mark.requirement("environment:continued")
def test_a_run_that_continues_a_session_has_what_was_given_to_the_one_before(
    tmp_path: Path,
) -> None:
    """As its retry would: the agent goes on where it was. What is given now is stronger."""
    files = EnvironmentFiles(tmp_path)
    first = Life.begin(resolved=a_resolved(caller_env=("OLD", "PATH", "TOKEN"))).run
    earlier = CallerEnvironment(shell={"PATH": "/old"}, given={"OLD": "0", "TOKEN": "old"})
    files.keep([first.id], earlier)
    drafts = [draft("r-1", previous=first), draft("r-2"), draft("r-3", "command")]

    kept = asyncio.run(environments(files).keep(drafts))

    assert [each.spawned.run_id for each in kept] == ["r-1", "r-2", "r-3"]
    assert files.read(RunId("r-1")) == CallerEnvironment(given={**earlier.given, **BROUGHT.given})
    assert files.read(RunId("r-2")) == CallerEnvironment(given=BROUGHT.given)
    assert files.read(RunId("r-3")) == BROUGHT
    (alone,) = asyncio.run(environments(files).keep([draft("r-4", previous=first, brought=None)]))
    assert alone.spawned.resolved.caller_env == ("OLD", "TOKEN")


@pytest.mark.requirement("environment:kept")
def test_runs_of_a_batch_that_bring_the_same_have_it_each(tmp_path: Path) -> None:
    files = EnvironmentFiles(tmp_path)
    kept = asyncio.run(environments(files).keep([draft("r-1"), draft("r-2")]))
    assert [each.spawned.resolved.caller_env for each in kept] == [("MORE", "TOKEN")] * 2
    assert files.read(RunId("r-1")) == files.read(RunId("r-2"))


@pytest.mark.requirement("environment:kept")
def test_what_cannot_be_kept_for_one_is_kept_for_none(tmp_path: Path) -> None:
    files = EnvironmentFiles(tmp_path)
    files.keep([RunId("r-2")], BROUGHT)  # in the way

    with pytest.raises(StoreUnavailable, match="nothing was stored"):
        asyncio.run(environments(files).keep([draft("r-1", "command"), draft("r-2")]))
    assert list(tmp_path.iterdir()) == []
