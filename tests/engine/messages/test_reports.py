"""Progress: paced, kept in a file of its own, and the run itself stays lean."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.world import ME, World

from subagents.api.answers import message_building, run_building
from subagents.api.wire import message_answers as wire
from subagents.api.wire.wire_struct import document_of
from subagents.domain.run.run import (
    Phase,
    Progress,
    ProgressLevel,
    Report,
    Run,
)
from subagents.domain.run.signals import ProgressSeen
from subagents.domain.run.values import RunId
from subagents.engine.messages.reports import ProgressAnswer
from subagents.errors import Conflict, NotFound, StoreUnavailable
from subagents.text import iso

STORED = ProgressAnswer(stored=True)


async def tell(world: World, run_id: RunId, phase: str, **more: object) -> ProgressAnswer:
    progress = Progress(phase=phase, **more)  # type: ignore[arg-type]  # the test says which
    return await world.clock.result(world.engine.reports.progress(run_id, progress))


async def phases(world: World, run_id: RunId) -> list[str]:
    return [each.phase for each in await world.engine.reports.progress_of(run_id)]


@pytest.mark.requirement("mailbox:progress-rate", "progress:rate-limited", "progress:one-in-30s")
async def test_progress_is_taken_once_in_thirty_seconds_and_too_soon_is_an_answer(
    world: World,
) -> None:
    run_id = await world.working()
    assert await tell(world, run_id, "one") == STORED
    assert await tell(world, run_id, "two") == ProgressAnswer(stored=False, retry_after_s=30)
    await world.clock.advance(28.5)
    soon = await tell(world, run_id, "three")
    assert soon == ProgressAnswer(stored=False, retry_after_s=2)
    before = (await world.run(run_id)).progress.latest
    assert before is not None
    assert before.phase == "one"
    await world.clock.advance(2)

    assert await tell(world, run_id, "four") == STORED

    after = (await world.run(run_id)).progress.latest
    assert after is not None
    assert (after.phase, after.updated_at_ms) == ("four", world.clock.now_ms())
    assert await phases(world, run_id) == ["one", "four"]


@pytest.mark.requirement("progress:rate-limited")
async def test_of_updates_at_the_same_instant_one_is_stored(world: World) -> None:
    run_id = await world.working()
    told = [world.engine.reports.progress(run_id, Progress(phase=str(n))) for n in range(20)]

    found = await world.clock.result(asyncio.gather(*told))

    assert [answer.stored for answer in found].count(True) == 1
    assert len(await phases(world, run_id)) == 1


@pytest.mark.requirement("progress:rate-limited")
async def test_a_new_attempt_does_not_wait_for_the_one_before(world: World) -> None:
    run_id = await world.working("hang", retry_count=1, run_timeout_seconds=5)
    assert await tell(world, run_id, "first attempt") == STORED
    await world.until(run_id, Phase.RETRY_WAIT)
    run = await world.until(run_id, Phase.RUNNING)
    assert len(run.attempts) == 2
    assert await tell(world, run_id, "second attempt") == STORED


@pytest.mark.requirement("progress:log", "progress:jsonl-file", "progress:latest-in-run")
async def test_the_log_has_everything_and_the_run_only_the_latest(world: World) -> None:
    run_id = await world.working()
    metrics = {"files": 12, "rate": 0.5, "where": "src"}
    level = ProgressLevel.PLAN_UPDATE
    await tell(world, run_id, "one", level=level, metrics=metrics, percent_complete=5)
    await world.clock.advance(30)
    await tell(world, run_id, "two")

    first, second = await world.engine.reports.progress_of(run_id)
    assert (first.level, first.metrics, first.number) == (level, metrics, 1)
    run = await world.run(run_id)
    assert run.progress.latest == second
    assert run.progress.lines == 2
    shown = message_building.progress(run.progress.latest)
    assert shown == wire.Progress(phase="two", updated_at=iso(world.clock.now_ms()))
    assert await world.folded(run_id) == run


@pytest.mark.requirement("progress:shown", "progress:in-tree")
async def test_the_tree_shows_the_latest_progress(world: World) -> None:
    run_id = await world.working()
    await tell(world, run_id, "reading", percent_complete=40)

    node = document_of(run_building.node(await world.run(run_id), [], world.clock.now_ms()))

    assert node["latestProgress"] == {
        "phase": "reading",
        "percentComplete": 40,
        "updatedAt": iso(world.clock.now_ms()),
    }


@pytest.mark.requirement("progress:at-most-100")
async def test_the_hundred_and_first_update_is_only_the_latest_and_says_so(world: World) -> None:
    run_id = await world.working()
    for number in range(100):
        assert await tell(world, run_id, f"step {number}") == STORED
        await world.clock.advance(30)

    answer = await tell(world, run_id, "one more")

    assert answer.is_latest_only
    run: Run = await world.run(run_id)
    assert run.progress.latest is not None
    assert run.progress.latest.phase == "one more"
    kept = await phases(world, run_id)
    assert (len(kept), kept[-1]) == (100, "step 99")
    assert (await tell(world, run_id, "too soon")).retry_after_s == 30


@pytest.mark.requirement("progress:durable")
async def test_what_was_told_before_a_crash_is_there_after_it(world: World) -> None:
    run_id = await world.working()
    await tell(world, run_id, "before")
    await world.restart()
    assert await phases(world, run_id) == ["before"]
    await world.clock.advance(30)

    await tell(world, run_id, "after")

    assert await phases(world, run_id) == ["before", "after"]


@pytest.mark.requirement("progress:durable")
async def test_a_crash_before_the_commit_leaves_a_line_that_the_next_update_replaces(
    world: World,
) -> None:
    run_id = await world.working()
    world.hold_commits()
    lost = asyncio.ensure_future(world.engine.reports.progress(run_id, Progress(phase="lost")))
    await world.clock.advance(1)
    assert not lost.done()
    await world.restart()
    lost.cancel()
    assert (await world.run(run_id)).progress.latest is None

    assert await tell(world, run_id, "told again") == STORED

    assert await phases(world, run_id) == ["told again"]


@pytest.mark.requirement("progress:durable")
async def test_a_log_that_cannot_be_written_is_an_error_and_changes_nothing(
    world: World, tmp_path: Path
) -> None:
    run_id = await world.working()
    (tmp_path / "progress").write_text("in the way")
    with pytest.raises(StoreUnavailable, match=f"the progress of {run_id} cannot be kept"):
        await world.engine.reports.progress(run_id, Progress(phase="one"))
    assert (await world.run(run_id)).progress.latest is None
    (tmp_path / "progress").unlink()

    assert await tell(world, run_id, "one") == STORED


@pytest.mark.requirement("progress:forgotten", "progress:cleaned-up")
@pytest.mark.world(archive_after_minutes=1)
async def test_the_log_goes_with_its_run(world: World, tmp_path: Path) -> None:
    run_id = await world.working("slow")
    await tell(world, run_id, "one")
    await world.until(run_id, Phase.COMPLETED)
    await world.clock.result(world.engine.mailbox.acknowledge([f"{run_id}:announce"], reader="me"))
    file = tmp_path / "progress" / f"{run_id}.jsonl"
    await world.clock.advance(3600)
    await world.clock.result(world.engine.sweep.once())
    assert file.exists()

    # Set forward, not lived through: eight days of lease beats say nothing about this.
    world.clock.jump(8 * 24 * 3600)
    await world.clock.result(world.engine.sweep.once())

    assert not file.exists()
    with pytest.raises(NotFound):
        await world.run(run_id)


@pytest.mark.requirement("mailbox:live-only")
async def test_a_run_without_a_live_attempt_shows_no_progress(world: World) -> None:
    waiting = await world.spawn(depends_on=(await world.working(),))
    with pytest.raises(Conflict, match="has no live attempt"):
        await world.engine.reports.progress(waiting, Progress(phase="x"))
    assert await world.engine.queries.attention(ME) == ()


@pytest.mark.requirement("progress:stream")
async def test_what_a_stream_tells_is_kept_once_in_thirty_seconds_and_always_shown(
    world: World,
) -> None:
    run_id = await world.working("tells")
    await world.clock.advance(12)
    assert await phases(world, run_id) == ["step 0"]
    latest = (await world.run(run_id)).progress.latest
    assert latest is not None
    assert (latest.phase, latest.number) == ("step 1", 0)

    await world.clock.advance(50)

    assert await phases(world, run_id) == ["step 0", "step 3", "step 6"]
    run = await world.run(run_id)
    assert run.progress.lines == 3
    assert run.progress.latest is not None
    assert run.progress.latest.phase == "step 6"
    await world.until(run_id, Phase.COMPLETED)
    assert await phases(world, run_id) == [f"step {number}" for number in (0, 3, 6, 9)]


@pytest.mark.requirement("progress:stream", "progress:rate-limited")
async def test_tool_calls_and_the_stream_keep_one_pace(world: World) -> None:
    run_id = await world.working("tells")
    await world.clock.advance(12)
    soon = await tell(world, run_id, "by tool")
    assert not soon.stored
    assert 15 <= (soon.retry_after_s or 0) <= 20
    await world.clock.advance(soon.retry_after_s or 0)
    await tell(world, run_id, "by tool")

    # The stream's updates in between were shown and delayed nobody; one of the two is kept.
    kept = await phases(world, run_id)
    assert (kept[0], len(kept)) == ("step 0", 2)


@pytest.mark.requirement("progress:stream", "progress:durable")
async def test_after_a_crash_a_stream_that_is_read_again_is_in_the_log_once(world: World) -> None:
    run_id = await world.working("tells")
    await world.clock.advance(35)
    await world.restart()
    await world.until(run_id, Phase.COMPLETED)

    found = await world.engine.reports.progress_of(run_id)

    assert [each.number for each in found] == [*range(1, len(found) + 1)]
    assert len({each.phase for each in found}) == len(found)
    assert (await world.run(run_id)).progress.lines == len(found)


@pytest.mark.requirement("progress:stream", "progress:at-most-100")
async def test_a_full_log_takes_nothing_more_of_a_stream(world: World) -> None:
    run_id = await world.working()
    for number in range(100):
        assert await tell(world, run_id, f"step {number}") == STORED
        await world.clock.advance(30)
    reports = world.engine.reports
    seen = reports.paced(run_id, ProgressSeen(key="k", progress=Progress(phase="more")))
    assert seen.progress.number == 0
    assert seen.is_paced


@pytest.mark.requirement("report:after-tools")
async def test_a_report_counts_as_the_last_call_after_tools_that_were_seen_before_it(
    world: World,
) -> None:
    run_id = await world.spawn("tooled")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.idle()
    await world.clock.result(world.engine.reports.report(run_id, Report(summary="all done")))
    run = await world.until(run_id)

    assert run.report is not None
    assert run.attempt.last.is_report
