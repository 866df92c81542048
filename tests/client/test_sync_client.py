"""The Python API without an event loop."""

import asyncio
import inspect
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from subagents import (
    ConfigError,
    NotFound,
    Orchestrator,
    RunHandle,
    Subagents,
    SyncRunHandle,
)
from subagents.client import sync_client


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.requirement("python:sync")
@pytest.mark.parametrize(
    ("sync", "other"), [(SyncRunHandle, RunHandle), (Subagents, Orchestrator)], ids=["run", "all"]
)
def test_nothing_is_missing_without_a_loop(sync: type, other: type) -> None:
    assert public(sync) == public(other)
    for name in public(sync) - {"warnings", "inbox", "follow", "wait_any", "wait_all"}:
        ours, theirs = getattr(sync, name), getattr(other, name)
        assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]


@pytest.mark.requirement("python:sync")
def test_a_script_spawns_waits_and_reads_on(tmp_path: Path) -> None:
    with Subagents.open(home=tmp_path / "home", cwd=tmp_path) as sub:
        run = sub.spawn("echo one", agent="command", label="first")
        two = sub.get("first").wait()
        (planned,) = sub.plan([{"task": "echo planned", "agent": "command"}])

        assert (two.result, two.run_id) == ("one", run.id)
        assert [each.result for each in sub.wait_all([planned, run])] == ["planned", "one"]
        assert sub.run("echo three", agent="command").result == "three"
        assert "one" in {line.text for line in run.follow()}
        assert run.retry().wait().result == "one"
        assert list(sub.inbox()) == []
        assert repr(run) == f"<SyncRunHandle {run.id} 'first'>"
        assert next(sub.events(after=0)).run_id == run.id
        with pytest.raises(NotFound):
            sub.get("nothing")


@pytest.mark.requirement("python:sync")
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt, SystemExit, BaseException])
def test_whatever_leaves_the_block_leaves_it_at_once(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    left = kind("left")
    with pytest.raises(kind) as caught, Subagents.open(home=tmp_path / "home"):
        raise left
    assert caught.value is left


@pytest.mark.requirement("python:sync")
def test_an_error_of_its_beginning_is_the_callers(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError),
        Subagents.open(home=tmp_path / "home", config={"no.such": 1}),
    ):
        pytest.fail("opened")


@pytest.mark.requirement("python:sync")
def test_a_ctrl_c_while_it_opens_closes_what_was_opened() -> None:
    interrupted, closed = threading.Event(), []
    main = threading.get_ident()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    @asynccontextmanager
    async def opens() -> AsyncIterator[Any]:
        signal.pthread_kill(main, signal.SIGINT)  # to another, it would wait on
        await asyncio.to_thread(interrupted.wait, 10)
        yield None
        pytest.fail("it ended well")

    @asynccontextmanager
    async def noted() -> AsyncIterator[Any]:
        try:
            async with opens() as found:
                yield found
        finally:
            closed.append(True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), sync_client._opened(noted)():
            pytest.fail("opened")
    finally:
        signal.signal(signal.SIGINT, before)
    assert closed == [True]
