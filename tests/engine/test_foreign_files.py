"""What others write while a run waits for its turn is not its work."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Artifact, Backoff, Contract, OnFailure, RunSpec
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.ports import Launch, StartedInfo

OUT: Final = Contract(artifacts=(Artifact(path="out.txt"),))
GLOB: Final = Contract(artifacts=(Artifact(path="*.txt", min_files=1),))
CHANGED: Final = Contract(must_change=("out.txt",))
KEPT: Final = Contract(must_not_change=("out.txt",))
WRITE: Final = {"write": {"path": "out.txt", "text": "its own"}}
DONE: Final = {"result": "done"}

Step = Mapping[str, object]
Disturbance = Callable[[World], Awaitable[None]]


async def spawn(world: World, *script: Step, **spec: Any) -> RunId:
    return await world.spawn("talker", settings=world.with_script("talker", *script), **spec)


async def other_writes(world: World) -> None:
    (world.directory / "out.txt").write_text("another's")


async def other_writes_and_the_daemon_restarts(world: World) -> None:
    await other_writes(world)
    await world.restart()


async def nobody_writes(world: World) -> None:
    await world.restart()


OTHERS: Final = pytest.mark.parametrize(
    "meanwhile", [other_writes, other_writes_and_the_daemon_restarts]
)


def error_of(run: Run) -> str | None:
    assert run.outcome is not None
    if run.outcome.is_ok:
        return None
    assert run.outcome.reason is Reason.VERIFICATION_FAILED
    return run.outcome.error


@pytest.mark.requirement("contract:fresh-after-waiting")
@OTHERS
@pytest.mark.parametrize(
    ("contract", "script", "error"),
    [
        (OUT, [DONE], "File out.txt was there before the run and did not change"),
        (OUT, [WRITE, DONE], None),
        (GLOB, [DONE], "Files *.txt: 0 found, minimum 1 required (1 were there before the run"),
        (CHANGED, [DONE], "Nothing changed in out.txt"),
        (CHANGED, [WRITE, DONE], None),
        (KEPT, [DONE], None),
        (KEPT, [WRITE, DONE], "Changed in out.txt, which must not change"),
        (replace(OUT, fresh=False), [DONE], None),
    ],
    ids=["idle", "works", "glob", "must-change", "changes", "kept", "breaks", "existing"],
)
@pytest.mark.world(max_concurrent=1)
async def test_what_another_writes_while_it_is_queued_is_not_its_work(
    world: World, contract: Contract, script: list[Step], error: str | None, meanwhile: Disturbance
) -> None:
    busy = await world.spawn("slow")
    run_id = await spawn(world, *script, verification=contract)
    assert (await world.run(run_id)).phase is Phase.QUEUED
    await meanwhile(world)
    run = await world.until(run_id)
    assert (await world.run(busy)).outcome is not None
    found = error_of(run)
    assert (found or "").startswith(error or "")
    assert (found is None) is (error is None)
    assert await world.folded(run_id) == await world.run(run_id)


BETWEEN: Final[dict[str, tuple[Contract, list[Step], Disturbance, str | None]]] = {
    "another's file": (
        OUT,
        [{"exit": 1}, {"attempt": 2}, DONE],
        other_writes,
        "File out.txt was there before the run and did not change",
    ),
    "another's file, and a restart": (
        OUT,
        [{"exit": 1}, {"attempt": 2}, DONE],
        other_writes_and_the_daemon_restarts,
        "File out.txt was there before the run and did not change",
    ),
    "its own file": (OUT, [WRITE, {"exit": 1}, {"attempt": 2}, DONE], nobody_writes, None),
    "another's over its own": (
        OUT,
        [WRITE, {"exit": 1}, {"attempt": 2}, DONE],
        other_writes,
        "File out.txt was there before the run and did not change",
    ),
    "its own over another's": (
        OUT,
        [{"exit": 1}, {"attempt": 2}, WRITE, DONE],
        other_writes,
        None,
    ),
    "another breaks what must not change": (
        KEPT,
        [{"exit": 1}, {"attempt": 2}, DONE],
        other_writes,
        None,
    ),
    "it broke what must not change itself": (
        KEPT,
        [WRITE, {"exit": 1}, {"attempt": 2}, DONE],
        nobody_writes,
        "Changed in out.txt, which must not change: out.txt added",
    ),
    "another's start of what must change": (
        CHANGED,
        [{"fail_start": "no"}, {"attempt": 2}, DONE],
        other_writes,
        "Nothing changed in out.txt",
    ),
}
"""Of what is done between two attempts: contract, script of both, and the error in the end."""


@pytest.mark.requirement("contract:fresh-after-waiting")
@pytest.mark.parametrize(
    ("contract", "script", "meanwhile", "error"), BETWEEN.values(), ids=BETWEEN
)
async def test_what_another_writes_between_two_attempts_is_not_its_work(
    world: World, contract: Contract, script: list[Step], meanwhile: Disturbance, error: str | None
) -> None:
    delays = {"retry_delay": 60_000, "retry_backoff": Backoff.FIXED}
    attempt = {"attempt": 1}
    run_id = await spawn(world, attempt, *script, verification=contract, retry_count=1, **delays)
    await world.until(run_id, Phase.RETRY_WAIT)
    await world.clock.advance(1)
    await meanwhile(world)
    run = await world.until(run_id)
    assert (len(run.attempts), (error_of(run) or "").partition(";")[0]) == (2, error or "")
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("contract:fresh-after-waiting")
async def test_what_the_failed_attempt_wrote_counts_when_the_contract_is_tried_once_more(
    world: World,
) -> None:
    both = replace(
        OUT,
        artifacts=(*OUT.artifacts, Artifact(path="b.txt")),
        on_failure=OnFailure.RETRY_ONCE,
    )
    rest = {"write": {"path": "b.txt", "text": "b"}}
    script = ({"attempt": 1}, WRITE, DONE, {"attempt": 2}, rest, DONE)
    run = await world.until(await spawn(world, *script, verification=both))
    assert (len(run.attempts), error_of(run)) == (2, None)


@pytest.mark.requirement("contract:fresh-after-waiting", "continue:contract")
@pytest.mark.parametrize(
    ("first", "second", "meanwhile", "error"),
    [
        ([DONE], [DONE], other_writes, "was there before the run and did not change"),
        ([DONE], [WRITE, DONE], other_writes, None),
        ([WRITE, {"exit": 1}], [DONE], nobody_writes, None),
        ([WRITE, {"exit": 1}], [DONE], other_writes, "was there before the run and did not change"),
    ],
    ids=["another's", "its own", "before", "over it"],
)
async def test_what_another_writes_before_a_session_goes_on_is_not_its_work(
    world: World, first: list[Step], second: list[Step], meanwhile: Disturbance, error: str | None
) -> None:
    settings = world.with_script("talker", *first, {"continued": True}, *second)
    run_id = await world.spawn("talker", settings=settings, verification=OUT)
    run = await world.until(run_id)
    assert run.outcome is not None
    assert not run.outcome.is_ok
    await world.clock.advance(1)
    await meanwhile(world)
    sending = world.engine.spawner.spawn(
        RunSpec(task="go on", agent_id="talker", continues=run_id),
        SpawnContext(session=ME, settings=settings, cwd=str(world.directory)),
    )
    receipt = await world.clock.result(sending)
    found = error_of(await world.until(receipt.run.id))
    assert (error or "") in (found or "")
    assert (found is None) is (error is None)


@pytest.mark.requirement("contract:fresh-after-waiting")
@pytest.mark.parametrize(
    ("first", "second", "meanwhile", "error"),
    [
        ([WRITE, {"exit": 1}], [WRITE, DONE], nobody_writes, None),
        ([WRITE, {"exit": 1}], [DONE], other_writes, "was there before the run and did not change"),
        ([{"exit": 1}], [DONE], other_writes, "was there before the run and did not change"),
        (
            [WRITE, DONE],
            [WRITE, DONE],
            nobody_writes,
            "was there before the run and did not change",
        ),
    ],
    ids=["its own", "over it", "another's", "of one that was done"],
)
async def test_what_a_failed_run_wrote_counts_for_its_retry_and_what_another_wrote_does_not(
    world: World, first: list[Step], second: list[Step], meanwhile: Disturbance, error: str | None
) -> None:
    run = await world.until(await spawn(world, *first, verification=OUT))
    await world.clock.advance(1)
    await meanwhile(world)
    context = SpawnContext(session=ME, settings=world.with_script("talker", *second))
    receipt = await world.clock.result(world.engine.spawner.retry(run.id, context))
    found = error_of(await world.until(receipt.run.id))
    assert (error or "") in (found or "")
    assert (found is None) is (error is None)


@pytest.mark.requirement("contract:fresh-after-waiting", "durability:crash")
async def test_what_another_writes_between_the_look_and_the_start_of_a_worker_is_not_its_work(
    world: World,
) -> None:
    world.runtime.hangs = True  # it is killed while it starts the worker
    run_id = await spawn(world, DONE, verification=OUT)
    await world.clock.until(lambda: bool(world.runtime.launches), within_s=60)
    assert (await world.run(run_id)).verification.looked == 1
    await world.crash()
    world.runtime.hangs = False
    await other_writes(world)
    await world.boot()
    run = await world.until(run_id)
    assert (error_of(run) or "").startswith("File out.txt was there before the run")
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("contract:fresh-after-waiting", "durability:crash")
def test_what_a_worker_wrote_whose_start_nobody_could_record_is_its_work(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        start = world.runtime.start

        async def dying(launch: Launch) -> StartedInfo:
            started = await start(launch)
            if not started.adopted:
                (world.directory / "out.txt").write_text("its own")
                await world.clock.sleep(3_600)
            return started

        world.runtime.start = dying  # type: ignore[method-assign]
        run_id = await spawn(world, {"sleep_ms": 1_000}, DONE, verification=OUT)
        await world.clock.until((world.directory / "out.txt").exists, within_s=60)
        await world.restart()
        run = await world.until(run_id)
        assert error_of(run) is None
        assert len(run.attempts) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("contract:patterns")
async def test_a_file_whose_name_is_no_utf_8_stops_neither_its_run_nor_the_engine(
    world: World,
) -> None:
    (world.directory / "caf\udce9.txt").write_text("x")
    run_id = await spawn(world, DONE, verification=replace(GLOB, must_not_change=("caf*",)))

    run = await world.until(run_id)

    assert "1 were there before the run" in str(error_of(run))
    assert await world.folded(run_id) == run
