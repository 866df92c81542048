"""Effects are performed at least once and in order; slow ones hold nobody up."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.baseline import Baseline
from subagents.domain.run.effects import LookAfter, ResumeAttempt
from subagents.domain.run.events import AttemptStartFailed, FilesLeft, SignalReceived
from subagents.domain.run.outcome import (
    OK,
)
from subagents.domain.run.run import OVER, BudgetStop, Exit, Phase, Run
from subagents.domain.run.signals import Exited, PermissionAsked
from subagents.domain.run.values import (
    replace,
)
from subagents.errors import LACKS, RuntimeUnavailable, StoreUnavailable, UsageError
from subagents.ports import AttemptRef, Launch, OutboxEntry, StartedInfo


@pytest.mark.requirement("recovery:unwritten-turn-stopped")
async def test_a_turn_that_was_started_before_a_crash_is_stopped_when_it_may_not_start_any_more(
    world: World,
) -> None:
    run_id = await world.spawn("hang")
    run = await world.until(run_id, Phase.RUNNING)
    stop = BudgetStop(by=run_id, label="hang", used="4s of 4s", at_ms=world.clock.now_ms())
    world.engine.ledger.live[run_id] = replace(run, budget=replace(run.budget, stop=stop))
    refs: list[AttemptRef] = []

    async def stopping(ref: AttemptRef, *, grace_s: float) -> None:
        refs.append(ref)

    world.runtime.stop = stopping  # type: ignore[method-assign]
    effect = ResumeAttempt(attempt=1, turn=2, message="news")
    entry = OutboxEntry(run_id=run_id, seq=run.seq, index=0, effect=effect)

    answer = await world.engine.outbox._answer(run, entry)

    assert isinstance(answer, AttemptStartFailed)
    assert [(ref.attempt_id, ref.turns) for ref in refs] == [(f"{run_id}#1", 2)]


@pytest.mark.requirement("permissions:asked")
async def test_an_answer_for_a_worker_that_is_gone_holds_up_nothing_of_its_run(
    world: World,
) -> None:
    async def unreachable(_ref: AttemptRef, call_id: str, **_: object) -> None:
        raise RuntimeUnavailable(f"the attempt that asked for {call_id} is not live")

    world.runtime.permit = unreachable  # type: ignore[attr-defined]
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    asked = PermissionAsked("k", "c1", "Bash", "ls", call="Bash: ls", is_allowed=True)
    ended = Exited("e", exit=Exit(code=0), drained=True)
    for signal in (asked, ended):
        event = SignalReceived(at_ms=world.clock.now_ms(), attempt=1, signal=signal)
        world.engine.ledger.apply_now(run_id, event, key=signal.key)

    await world.until(run_id, *OVER)

    assert world.engine.outbox.pending == 0


@pytest.mark.requirement("start:machine-lacks")
@pytest.mark.parametrize("lack", LACKS, ids=errno.errorcode.__getitem__)
async def test_a_start_that_fails_for_want_of_something_on_the_machine_uses_no_retry(
    world: World, lack: int
) -> None:
    world.runtime.lacks = lack
    run_id = await world.spawn("quick")
    await world.clock.advance(3600)
    assert (await world.until(run_id, Phase.SPAWNING)).attempt.outcome is None
    world.runtime.lacks = None
    await world.clock.advance(30)
    run = await world.until(run_id)
    assert run.conclusion is not None
    assert (run.conclusion.outcome, len(run.attempts)) == (OK, 1)


@pytest.mark.requirement("start:failure-is-told")
async def test_a_start_that_fails_with_words_that_cannot_be_stored_fails_all_the_same(
    world: World,
) -> None:
    async def failing(_launch: Launch) -> StartedInfo:
        raise UsageError("no program on the worker's PATH (/caf\udce9)")

    world.runtime.start = failing  # type: ignore[method-assign, assignment]
    run = await world.until(await world.spawn("quick"))

    assert run.outcome is not None
    assert str(run.outcome.error).endswith("PATH (/caf?)")


@pytest.mark.requirement("outbox:tried-again")
@pytest.mark.parametrize("error", [StoreUnavailable("it cannot be read"), MemoryError()])
def test_effects_that_an_error_interrupted_go_on_while_the_ledger_is_well(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.engine.outbox.RETRY_FIRST_S", 0.01)

    async def scenario(world: World) -> None:
        outbox, failures = world.engine.outbox, [error]
        interrupted = "_drain" if isinstance(error, MemoryError) else "_perform"
        real = getattr(outbox, interrupted)

        async def failing(what: Any) -> None:
            if failures:
                raise failures.pop()
            await real(what)

        setattr(outbox, interrupted, failing)
        run_id = await world.spawn("quick")
        while failures or world.engine.outbox.pending:
            await world.clock.advance(1)
            await asyncio.sleep(0.001)

        assert (await world.until(run_id)).outcome == OK

    in_world(tmp_path, scenario)


@pytest.mark.requirement("outbox:start-is-bounded")
def test_a_runtime_that_hangs_while_it_starts_fails_the_attempt_and_frees_the_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.engine.outbox.START_S_MAX", 0.02)

    async def scenario(world: World) -> None:
        world.runtime.hangs = True
        run_id = await world.spawn("quick")
        await asyncio.wait_for(world.runtime.stop_called.wait(), 10)
        outcome = (await world.until(run_id)).outcome
        assert outcome is not None
        assert outcome.error == "it did not start within 0 s"
        assert world.runtime.stopped == [f"{run_id}#1"]

        world.runtime.hangs = False
        assert (await world.until(await world.spawn("quick"))).outcome == OK

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("outbox:start-is-bounded", "children:follow-up-turn")
def test_a_further_turn_that_hangs_while_it_starts_keeps_no_run_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.engine.outbox.START_S_MAX", 0.02)
    given_up = asyncio.Event()

    async def hang(_ref: AttemptRef, _message: str, **_: object) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            given_up.set()

    async def scenario(world: World) -> None:
        world.runtime.resume = hang  # type: ignore[assignment,method-assign]
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        await world.spawn_child(parent, "quick")
        await world.until(parent, Phase.ENDING)
        await asyncio.wait_for(given_up.wait(), 10)
        run = await world.until(parent)

        assert run.outcome == OK
        assert "done" in (run.result or "")

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("outbox:performed-once", "commit:batch")
async def test_what_is_done_for_a_run_that_left_memory_meanwhile_is_known_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = await world.spawn("quick")
    await world.until(run_id, Phase.COMPLETED)
    outbox = world.engine.outbox

    async def looked_after(run: Run, number: int) -> FilesLeft:
        assert run_id in world.engine.ledger.live
        world.engine.ledger.evict(run)
        return FilesLeft(at_ms=world.clock.now_ms(), attempt=number, files=Baseline())

    monkeypatch.setattr(outbox, "_look_after", looked_after)
    outbox.add(OutboxEntry(run_id=run_id, seq=1, index=9, effect=LookAfter(attempt=1)))
    await world.clock.until(lambda: not outbox.busy, within_s=1)

    assert not caplog.records
    told = [entry.event for entry in world.store.journal(run_id, limit=100)]
    assert any(isinstance(event, FilesLeft) for event in told)
