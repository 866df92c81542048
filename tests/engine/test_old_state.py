"""An engine continues what a killed daemon of 0.1.0 left, and does what was due."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests import old_state
from tests.engine.world import World

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId

STATE: Final = old_state.expected()
KNOWN: Final[dict[str, dict[str, Any]]] = STATE["runs"]
OPEN: Final = {
    known["label"]: RunId(run_id)
    for run_id, known in KNOWN.items()
    if known["phase"] != "completed"
}
LATER: Final = {"backoff", "provider-limit", "heavy-3"}
"""Due in an hour, due in hours, paused."""


def with_old_state(directory: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    """Play on the old database, from the moment 0.1.0 was killed; its workers are gone."""

    async def play() -> None:
        old_state.restore(directory / "subagents.db")
        world = World(directory, runtimes=("scripted", "command"))
        world.clock.jump((STATE["takenAtMs"] - world.clock.now_ms()) / 1_000)
        await world.boot()
        try:
            await world.clock.advance(60)
            await scenario(world)
        finally:
            await world.crash()

    asyncio.run(play())


def ended(run: Run) -> str:
    assert run.outcome is not None, f"{run.resolved.label} is {run.phase}"
    return f"{run.outcome.status} {run.outcome.reason or ''}".strip()


@pytest.mark.requirement("store:migrations")
def test_what_0_1_0_left_open_comes_to_its_end(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        found = {label: await world.run(OPEN[label]) for label in sorted(set(OPEN) - LATER)}

        lost = "adopted alerting asking family-open gate grand-open heavy-1 progressing steered"
        assert {label: ended(run) for label, run in found.items()} == {
            **dict.fromkeys([*lost.split(), "worktree-open"], "lost lease_lost"),
            # They waited for a slot, for a delivery, or to be told that they had ended.
            **dict.fromkeys(["heavy-2", "heavy-4", "held-by-limit"], "ok"),
            **dict.fromkeys(["leaving", "threaded", "undelivered"], "ok"),
            # They waited for "gate", which is lost.
            **dict.fromkeys(["after-gate", "plan-c"], "error dependency_failed"),
            "ending": "cancelled cancelled_by_caller",
            "verifying": "error verification_failed",
        }
        for run in found.values():
            assert run == await world.folded(run.id)

    with_old_state(tmp_path, scenario)


@pytest.mark.requirement("store:migrations")
def test_what_0_1_0_had_put_off_is_done_when_it_is_due(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for label in ("backoff", "provider-limit"):
            waiting = await world.run(OPEN[label])
            assert waiting.retry.due_ms == KNOWN[waiting.id]["retryDueMs"]

            run = await world.until(waiting.id, within_s=6 * 3_600)

            assert run.attempt.times.requested_at_ms == waiting.retry.due_ms
            assert (ended(run), len(run.attempts)) == ("ok", 2)
            assert run == await world.folded(run.id)

    with_old_state(tmp_path, scenario)


@pytest.mark.requirement("store:migrations")
def test_a_run_that_0_1_0_paused_goes_on_when_it_is_told_to(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        paused = await world.run(OPEN["heavy-3"])
        assert paused.control.paused
        assert paused.attempts == ()

        await world.engine.control.resume(paused.id, by="me")

        assert ended(await world.until(paused.id)) == "ok"

    with_old_state(tmp_path, scenario)


@pytest.mark.requirement("store:migrations")
def test_no_message_of_0_1_0_is_lost_or_told_twice(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with closing(sqlite3.connect(world.path)) as connection:
            rows = connection.execute("SELECT message_id FROM inbox").fetchall()
        with closing(sqlite3.connect(f"{world.path}.schema-2.bak")) as connection:
            before = connection.execute("SELECT message_id FROM inbox").fetchall()

        assert set(before) <= set(rows)
        assert len(rows) == len(set(rows))

    with_old_state(tmp_path, scenario)
