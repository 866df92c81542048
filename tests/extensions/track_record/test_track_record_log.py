"""Every ended attempt has one record, whatever crashed, and the statistics have read it."""

import errno
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Artifact, Contract, OnFailure
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.extensions.track_record import track_record_log as module
from subagents.extensions.track_record.series import Bucket, SeriesBy
from subagents.extensions.track_record.track_record import (
    DAY_MS,
    RETENTION_DAYS,
    AttemptRecord,
    By,
    Result,
    Wanted,
)
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.extensions.track_record.track_record_log import RETRY_S, TrackRecords
from subagents.store.sqlite.sqlite_store import SqliteStore

CONTRACT = Contract(artifacts=(Artifact(path="out.txt"),))
ESCALATED = Contract(artifacts=(Artifact(path="out.txt"),), on_failure=OnFailure.ESCALATE)


def files(world: World) -> list[Path]:
    return sorted(world.directory.glob("agent-performance-*.jsonl"))


def lines(world: World) -> list[dict[str, object]]:
    """Every line of every file, in order."""
    content = b"".join(file.read_bytes() for file in files(world))
    return [msgspec.json.decode(line) for line in content.splitlines()]


def ends(world: World) -> list[tuple[object, object, object]]:
    return [(each["runId"], each["attempt"], each["outcome"]) for each in lines(world)]


async def over(world: World, run_id: str) -> None:
    await world.until(run_id, Phase.COMPLETED)  # type: ignore[arg-type]  # a run id
    await world.clock.idle()


@pytest.mark.requirement("performance:written")
async def test_every_ended_attempt_leaves_one_line_in_the_file_of_its_day(world: World) -> None:
    done = await world.spawn("quick", tags=("review", "nightly"))
    await over(world, done)
    flaky = await world.spawn("flaky", retry_count=1, retry_delay=60_000)
    await world.until(flaky, Phase.RETRY_WAIT)
    await world.clock.idle()
    assert ends(world) == [(done, 1, "success"), (flaky, 1, "failure")], "it waits for a retry"
    await over(world, flaky)
    lies = await world.spawn("quick", verification=CONTRACT)
    await over(world, lies)

    assert ends(world) == [
        (done, 1, "success"),
        (flaky, 1, "failure"),
        (flaky, 2, "success"),
        (lies, 1, "failure"),
    ]
    first, _, second, lie = lines(world)
    assert (first["taskType"], first["tags"]) == ("review", ["review", "nightly"])
    assert second["retryOf"] == f"{flaky}#1"
    assert (lie["verificationPassed"], lie["reason"]) == (False, "verification_failed")
    (file,) = files(world)
    assert file.name == "agent-performance-2023-11-14.jsonl"


@pytest.mark.requirement("performance:once")
@pytest.mark.world(archive_after_minutes=60)
async def test_nothing_that_happens_to_a_run_later_writes_its_record_again(world: World) -> None:
    run_id = await world.spawn("quick")
    await over(world, run_id)
    await world.clock.result(world.engine.mailbox.acknowledge([f"{run_id}:announce"], reader="me"))
    await world.clock.advance(2 * 3600)  # it is archived by the sweep
    assert (await world.run(run_id)).times.archived_at_ms is not None
    await world.restart()
    await world.clock.advance(2 * 3600)

    assert ends(world) == [(run_id, 1, "success")]


@pytest.mark.requirement("performance:crash")
@pytest.mark.parametrize("agent", ["quick", "fail", "flaky"])
def test_a_crash_after_any_commit_loses_no_record_and_doubles_none(
    agent: str, tmp_path: Path
) -> None:
    """The daemon dies after each commit in turn, before any of its records is written."""

    def scenario_of(moment: int) -> Callable[[World], Awaitable[bool]]:
        async def scenario(world: World) -> bool:
            # It hears of no commit: no line is written before the crash.
            world.engine.ledger._on_commit.remove(TrackRecords.of(world.engine).on_commit)
            begun = world.store.commits
            run_id = await world.spawn(agent, retry_count=1, retry_delay=0)

            def is_over() -> bool:
                run = world.store.run(run_id)
                return run is not None and run.phase is Phase.COMPLETED

            await world.clock.until(lambda: world.store.commits >= begun + moment or is_over())
            was_over = is_over()
            assert lines(world) == []
            await world.restart()
            await over(world, run_id)
            run = world.store.run(run_id)
            assert run is not None
            wanted = [(run_id, number + 1) for number in range(len(run.attempts))]
            assert [end[:2] for end in ends(world)] == wanted
            return was_over

        return scenario

    for moment in range(1, 40):
        directory = tmp_path / str(moment)
        directory.mkdir()
        if in_world(directory, scenario_of(moment)):
            return
    pytest.fail("the run was never over")


@pytest.mark.requirement("performance:crash")
def test_what_only_the_store_knows_is_written_at_the_next_start_by_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)

    async def scenario(world: World) -> None:
        runs = [await world.spawn("quick") for _ in range(10)]
        for run_id in runs:
            await over(world, run_id)
        kept = lines(world)
        (file,) = files(world)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 3])  # a power cut took the rest, in mid-line
        await world.restart()
        await world.clock.idle()

        key = lambda each: each["runId"]  # noqa: E731
        assert sorted(lines(world), key=key) == sorted(kept, key=key)

        file.unlink()
        await world.restart()
        await world.clock.idle()
        assert sorted(lines(world), key=key) == sorted(kept, key=key)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:mark")
def test_a_start_reads_no_run_whose_record_a_sweep_or_a_stop_has_seen_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = SqliteStore.touched

    def touched(
        self: SqliteStore, *, after: int, ended_since_ms: int, limit: int
    ) -> tuple[int, Sequence[Run]]:
        found = real(self, after=after, ended_since_ms=ended_since_ms, limit=limit)
        read.append(len(found[1]))
        return found

    monkeypatch.setattr(SqliteStore, "touched", touched)

    async def scenario(world: World) -> None:
        async def reads_at_a_start() -> int:
            read.clear()
            await world.restart()
            await world.clock.idle()
            return sum(read)

        for _ in range(3):
            await over(world, await world.spawn("quick"))
        assert await reads_at_a_start() == 3, "no sweep has been"
        assert await reads_at_a_start() == 0, "that start has moved the mark"
        late = await world.spawn("quick")
        await over(world, late)
        await world.engine.sweep.once()
        assert await reads_at_a_start() == 0
        await over(world, await world.spawn("quick"))
        await TrackRecords.of(world.engine).settle()  # as at a stop
        assert await reads_at_a_start() == 0
        assert len(ends(world)) == len({end[0] for end in ends(world)}) == 5

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:mark")
def test_the_mark_stays_behind_what_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, is_full = PerformanceFiles.append, True

    def full(self: PerformanceFiles, records: Sequence[AttemptRecord]) -> None:
        if is_full and records:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, records)

    async def scenario(world: World) -> None:
        nonlocal is_full
        await over(world, await world.spawn("quick"))
        await world.engine.sweep.once()
        monkeypatch.setattr(PerformanceFiles, "append", full)
        run_id = await world.spawn("quick")
        await over(world, run_id)
        await world.engine.sweep.once()
        await world.crash()
        is_full = False
        await world.boot()
        await world.clock.idle()

        assert [end[0] for end in ends(world)].count(run_id) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:disk-full")
def test_a_log_that_cannot_be_written_holds_up_no_run_and_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "DUE_MAX", 2)
    real = PerformanceFiles.append
    is_full = True

    def full(self: PerformanceFiles, records: Sequence[AttemptRecord]) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, records)

    monkeypatch.setattr(PerformanceFiles, "append", full)

    async def scenario(world: World) -> None:
        nonlocal is_full
        with caplog.at_level(logging.WARNING, module.__name__):
            runs = [await world.spawn("quick") for _ in range(5)]
            for run_id in runs:
                await over(world, run_id)
            await world.clock.advance(4 * RETRY_S)
        assert lines(world) == []
        assert len(TrackRecords.of(world.engine)._due) == 2, "the others wait in the store"
        warnings = [each for each in caplog.messages if "No space" in each]
        assert len(warnings) == 1, "said once"

        is_full = False
        await world.clock.advance(2 * RETRY_S)

        assert sorted(end[0] for end in ends(world)) == sorted(runs)  # type: ignore[type-var]  # run ids

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:disk-full")
def test_an_attempt_that_ended_in_a_run_at_work_when_no_record_could_wait_has_one_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DUE_MAX", 0)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("flaky", retry_count=1, retry_delay=60_000)
        await world.until(run_id, Phase.RETRY_WAIT)
        await world.clock.advance(RETRY_S)
        monkeypatch.setattr(module, "DUE_MAX", 2)
        await over(world, run_id)
        await world.clock.advance(RETRY_S)

        assert ends(world) == [(run_id, 1, "failure"), (run_id, 2, "success")]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:disk-full")
def test_an_attempt_that_ended_before_it_began_by_a_corrected_clock_has_a_record_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DUE_MAX", 0)

    async def scenario(world: World) -> None:
        await over(world, await world.spawn("quick"))
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        await world.crash()
        world.clock.set_wall(by_s=-3_600)
        world.clock.take_step_ms()  # while nobody watched
        await world.boot()
        await over(world, run_id)
        await world.clock.advance(RETRY_S)

        assert [end[0] for end in ends(world)].count(run_id) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("performance:crash")
async def test_a_failed_commit_leaves_no_record_of_what_never_happened(world: World) -> None:
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.RUNNING)
    world.store.failures_left = 3
    await world.clock.advance(60)
    await over(world, run_id)
    run = world.store.run(run_id)

    assert run is not None
    assert [end[:2] for end in ends(world)] == [
        (run_id, number + 1) for number in range(len(run.attempts))
    ]


@pytest.mark.requirement("performance:rotation")
async def test_days_rotate_and_after_thirty_of_them_the_sweep_takes_the_oldest(
    world: World,
) -> None:
    first = await world.spawn("quick")
    await over(world, first)
    await world.clock.advance(24 * 3600)
    second = await world.spawn("quick")
    await over(world, second)
    names = [file.name for file in files(world)]
    assert names == ["agent-performance-2023-11-14.jsonl", "agent-performance-2023-11-15.jsonl"]

    world.clock.jump((RETENTION_DAYS - 1) * 24 * 3600)
    await world.clock.result(world.engine.sweep.once())
    assert [file.name for file in files(world)] == names[1:]

    await world.restart()
    await world.clock.idle()
    assert ends(world) == [(second, 1, "success")], "what is too old is not made again"
    world.clock.jump(24 * 3600)
    await world.clock.result(world.engine.sweep.once())
    assert files(world) == []


@pytest.mark.requirement("performance:repeated")
async def test_a_repeated_run_names_the_attempt_it_repeats_and_the_escalation_behind_it(
    world: World,
) -> None:
    first = await world.spawn("quick", verification=ESCALATED)
    await over(world, first)
    again = await world.clock.result(
        world.engine.spawner.retry(first, SpawnContext(session=ME, settings=world.settings))
    )
    await over(world, again.run.id)
    crashed = await world.spawn("fail", verification=ESCALATED)
    await over(world, crashed)
    receipt = await world.clock.result(
        world.engine.spawner.retry(crashed, SpawnContext(session=ME, settings=world.settings))
    )
    await over(world, receipt.run.id)
    found = {each["runId"]: (each["retryOf"], each["escalatedFrom"]) for each in lines(world)}

    assert found == {
        first: (None, None),
        again.run.id: (f"{first}#1", first),
        crashed: (None, None),
        receipt.run.id: (f"{crashed}#1", None),
    }


@pytest.mark.requirement("performance:stats")
async def test_statistics_have_read_what_ended_before_they_were_asked_for(world: World) -> None:
    quick = [await world.spawn("quick", tags=("x",)) for _ in range(3)]
    lies = await world.spawn("silent", verification=CONTRACT, tags=("x", "y"))
    for run_id in (*quick, lies):
        await over(world, run_id)
    found = await TrackRecords.of(world.engine).stats()
    by_name = {each.name: each for each in found}

    assert list(by_name) == ["quick", "silent"]
    assert by_name["quick"].outcomes["success"] == 3
    assert by_name["silent"].verified is not None
    assert (by_name["silent"].verified.count, by_name["silent"].verified.n) == (0, 1)

    again = await world.spawn("quick")
    await over(world, again)
    (only,) = await TrackRecords.of(world.engine).stats(Wanted(agent="quick"))
    assert only.outcomes["success"] == 4, "read on from where it was"
    tags = await TrackRecords.of(world.engine).stats(Wanted(by=By.TAG))
    assert [(each.name, each.attempt_count) for each in tags] == [("x", 4), ("y", 1), (None, 1)]
    await world.restart()
    assert await TrackRecords.of(world.engine).stats(Wanted(agent="quick")) == (only,)


@pytest.mark.requirement("performance:stats")
def test_statistics_are_of_so_many_days_and_of_files_as_they_are_now(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await over(world, await world.spawn("quick"))
        await world.clock.advance(2 * 24 * 3600)
        await over(world, await world.spawn("quick"))
        stats = TrackRecords.of(world.engine).stats

        async def successes(days: int) -> list[int]:
            return [each.outcomes[Result.SUCCESS] for each in await stats(days=days)]

        assert await successes(30) == [2]
        assert await successes(3) == [2]
        assert await successes(2) == [1]
        assert await successes(1) == [1]
        files(world)[-1].write_bytes(b"")
        assert await successes(30) == [1]
        for file in files(world):
            file.unlink()
        assert await successes(30) == []
        assert world.clock.now_ms() // DAY_MS - RETENTION_DAYS > 0

    in_world(tmp_path, scenario)


@pytest.mark.requirement("stats:series")
def test_a_series_is_read_on_from_where_it_was_and_agrees_with_the_statistics(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        async def attempts() -> list[int]:
            found = await TrackRecords.of(world.engine).series(SeriesBy.AGENT, Bucket.DAY, days=3)
            return [sum(each.attempts for each in groups.values()) for _, groups in found]

        await over(world, await world.spawn("quick"))
        assert await attempts() == [0, 0, 1]
        await world.clock.advance(24 * 3600)
        for agent in ("quick", "fail"):
            await over(
                world, await world.spawn(agent, tags=("nightly",) if agent == "fail" else ())
            )
        assert await attempts() == [0, 1, 2]
        stats = await TrackRecords.of(world.engine).stats(days=3)
        assert sum(each.attempt_count for each in stats) == 3
        only = await TrackRecords.of(world.engine).series(
            SeriesBy.COST, Bucket.HOUR, days=1, agent="fail"
        )
        tagged = await TrackRecords.of(world.engine).series(
            SeriesBy.COST, Bucket.HOUR, days=1, tag="nightly"
        )
        for each in (only, tagged):
            assert [groups[None].attempts for _, groups in each if groups] == [1]

    in_world(tmp_path, scenario)
