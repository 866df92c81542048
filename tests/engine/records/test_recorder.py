"""What workers say is kept and shown to the detectors, and never holds up a run."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.fake_clock import FakeClock
from tests.engine.world import ME, WatchedRuntime, World, in_world

from subagents import extension
from subagents.domain.alerts.detectors.findings import Commits, Finding
from subagents.domain.run.events import Alerted
from subagents.domain.run.run import MessageKind, Phase, Run
from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Abilities, RunSpec
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.worker_output import (
    ApiError,
    LineType,
    OutputBatch,
    OutputItem,
    ToolUse,
)
from subagents.domain.transcript.transcript_query import Line, LogQuery
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.writer import Page, TranscriptWriter
from subagents.errors import StoreUnavailable
from subagents.extension import Extension
from subagents.ports import AttemptRef

RATE_LIMITED = OutputItem(
    type=LineType.ERROR, text="429", api_error=ApiError(message="rate limited", retry="2/5")
)


class Talkative(WatchedRuntime):
    """Says what a test tells it to; its workers outlive the engine."""

    def __init__(self, clock: FakeClock, abilities: Abilities | None = None) -> None:
        super().__init__(clock, abilities)
        self.words: list[OutputItem] = []
        self.asked_from: list[int] = []
        self._clock = clock

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        at = positions.get("words", 0)
        self.asked_from.append(at)
        if at < len(self.words):
            said = tuple(self.words[at:])
            yield OutputBatch(items=said, positions={"words": at + len(said)}), cursor
        async for found in super().watch(ref, cursor=cursor, positions=positions):
            yield found


def texts(count: int, start: int = 0) -> list[OutputItem]:
    return [OutputItem(type=LineType.TEXT, text=f"line {n}") for n in range(start, start + count)]


async def lines(world: World, run_id: RunId, **query: object) -> Sequence[Line]:
    run = await world.run(run_id)
    asked = LogQuery(limit=1000, **query)  # type: ignore[arg-type]
    return (await world.clock.result(world.engine.recorder.read(run, asked))).lines


def commits_of(tool: ToolUse) -> Sequence[Finding]:
    """The hook ``detectors`` of an extension."""
    return [Commits((tool.output,))]


def spoken(found: Sequence[Line]) -> list[str]:
    return [line.text for line in found if line.text.startswith("line ")]


async def talking(world: World, *words: OutputItem, agent: str = "hang") -> RunId:
    runtime = Talkative(world.clock, Abilities(steer=True, resume=True, usage=True))
    runtime.words = list(words)
    await world.crash()
    await world.boot(runtime)
    run_id = await world.spawn(agent, label="talker")
    if agent == "hang":
        await world.until(run_id, Phase.RUNNING)
        await world.clock.advance(1)
    return run_id


async def alerts(world: World, run_id: RunId) -> list[str]:
    rows = await world.engine.queries.inbox(ME)
    kept = [r.message for r in reversed(rows) if r.message.kind is MessageKind.ALERT]
    return [each.text for each in kept if each.run_id == run_id]


@pytest.mark.requirement("recorder:lines")
async def test_lines_are_numbered_and_have_their_time_type_and_attempt(world: World) -> None:
    run_id = await talking(world, *texts(2), agent="quick")
    await world.until(run_id)
    found = await lines(world, run_id)

    assert [line.seq for line in found] == list(range(1, len(found) + 1))
    assert spoken(found) == ["line 0", "line 1"]
    assert {line.attempt for line in found} == {1}
    assert all(a.ts <= b.ts for a, b in pairwise(found))
    assert found[0].type is LineType.USER
    assert found[0].text == "task from main: do quick"
    assert found[-1].text == "attempt 1 exited with code 0 — run ended: ok"


@pytest.mark.requirement("recorder:restart")
async def test_after_a_crash_reading_goes_on_where_lines_were_kept(world: World) -> None:
    run_id = await talking(world, *texts(3))
    before = await lines(world, run_id)
    runtime = world.runtime
    assert isinstance(runtime, Talkative)
    runtime.words += texts(2, start=3)
    await world.restart()
    await world.clock.advance(1)
    after = await lines(world, run_id)

    assert after[: len(before)] == before
    assert spoken(after) == [f"line {n}" for n in range(5)]
    assert runtime.asked_from == [0, 3]


@pytest.mark.requirement("recorder:restart")
def test_where_lines_were_kept_is_asked_again_when_there_was_no_memory_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = TranscriptWriter.write, list[Exception]()

    def failing(writer: TranscriptWriter, pages: Iterable[Page]) -> None:
        if failures:
            raise failures.pop()
        write(writer, pages)

    async def scenario(world: World) -> None:
        run_id = await talking(world, *texts(3))
        runtime = world.runtime
        assert isinstance(runtime, Talkative)
        runtime.words += texts(2, start=3)
        monkeypatch.setattr(TranscriptWriter, "write", failing)
        failures.append(MemoryError())
        await world.restart()
        await world.clock.advance(10)

        assert failures == []
        assert spoken(await lines(world, run_id)) == [f"line {n}" for n in range(5)]
        assert runtime.asked_from == [0, 3]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recorder:alerts-once")
async def test_an_alert_is_durable_before_the_line_and_told_once_over_a_restart(
    world: World,
) -> None:
    run_id = await talking(world, *texts(1), RATE_LIMITED)
    assert await alerts(world, run_id) == [
        "[subagent:talker] ❌ API error: rate limited (retry 2/5)"
    ]
    # As if the crash had come between the alert and the line it belongs to.
    await world.crash()
    world.engine.recorder._transcripts.forget(run_id)
    await world.boot(world.runtime)
    await world.clock.advance(1)

    assert len(await alerts(world, run_id)) == 1
    events = [e.event for e in world.store.journal(run_id, limit=1000)]
    assert sum(isinstance(e, Alerted) for e in events) == 1


@pytest.mark.requirement("cleanup:keep-or-delete")
async def test_who_waits_to_write_while_a_transcript_is_deleted_does_not_bring_it_back(
    world: World,
) -> None:
    run_id = await talking(world, *texts(1))
    recorder, run = world.engine.recorder, await world.run(run_id)
    assert len(recorder._transcripts.read(run_id, LogQuery()).lines) > 1
    opened = recorder._of(run_id)
    await opened.lock.acquire()  # somebody writes now
    opened.checkpoint = replace(opened.checkpoint, journal_seq=0)  # there is more to write
    deleting = asyncio.ensure_future(recorder.forget(run_id))
    await world.clock.idle()
    opened.lock.release()

    await recorder._write([run])  # had its turn before the deletion had
    await deleting

    assert recorder._transcripts.read(run_id, LogQuery()).lines == ()


@pytest.mark.requirement("recorder:never-holds-up")
def test_a_transcript_that_cannot_be_kept_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async def scenario(world: World) -> Run:
        monkeypatch.setattr(
            "subagents.store.transcripts.transcript_files.TranscriptFiles.append", full
        )
        run_id = await talking(world, *texts(3), agent="quick")
        return await world.until(run_id)

    assert in_world(tmp_path, scenario).outcome is not None


@pytest.mark.requirement("recorder:never-holds-up")
@pytest.mark.parametrize("part", ["write", "keep"])
def test_a_scribe_that_raises_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("nobody thought of this")

    async def scenario(world: World) -> Run:
        monkeypatch.setattr(f"subagents.engine.records.writer.TranscriptWriter.{part}", broken)
        run_id = await talking(world, *texts(3), RATE_LIMITED, agent="quick")
        return await world.until(run_id)

    assert in_world(tmp_path, scenario).outcome is not None


@pytest.mark.requirement("recorder:writes-later")
def test_what_cannot_be_written_for_want_of_the_journal_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refusals = TranscriptWriter.write, [1, 2, 3]

    def write_or_refuse(scribe: TranscriptWriter, pages: Iterable[Page]) -> None:
        if refusals:
            refusals.pop()
            raise StoreUnavailable("the database is busy")
        write(scribe, pages)

    async def scenario(world: World) -> None:
        monkeypatch.setattr(TranscriptWriter, "write", write_or_refuse)
        run_id = await talking(world, *texts(3), agent="quick")
        run = await world.until(run_id)

        assert run.outcome is not None
        assert refusals == []
        assert spoken(await lines(world, run_id)) == ["line 0", "line 1", "line 2"]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recorder:reader-cancelled")
async def test_a_reader_that_goes_away_while_it_writes_takes_nothing_along(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await talking(world, *texts(1))
    run = await world.run(run_id)
    recorder = world.engine.recorder
    world.hold_commits()
    await recorder.record(run, OutputBatch(items=(*texts(2, start=1), RATE_LIMITED), positions={}))
    reading = asyncio.ensure_future(recorder.read(run, LogQuery()))
    await world.clock.idle()
    reading.cancel()
    await world.clock.idle()
    world.let_commits_go()
    await world.clock.result(recorder.written(run), within_s=10)

    assert reading.cancelled()
    assert spoken(await lines(world, run_id)) == ["line 0", "line 1", "line 2"]
    assert len(await alerts(world, run_id)) == 1


@pytest.mark.requirement("recorder:holes-are-told")
def test_lines_that_could_not_be_kept_leave_no_silent_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async def scenario(world: World) -> None:
        run_id = await talking(world)
        run = await world.run(run_id)
        with monkeypatch.context() as broken:
            broken.setattr(
                "subagents.store.transcripts.transcript_files.TranscriptFiles.append", full
            )
            await world.engine.recorder.record(run, OutputBatch(items=tuple(texts(3))))
            await world.clock.advance(1)
        await world.engine.recorder.record(run, OutputBatch(items=tuple(texts(2, start=3))))
        await world.clock.advance(1)
        found = await lines(world, run_id)

        assert [line.text for line in found[-3:]] == [
            "5 lines could not be kept here", "line 3", "line 4"
        ]  # fmt: skip
        assert [line.seq for line in found] == list(range(1, len(found) + 1))

    in_world(tmp_path, scenario)


@pytest.mark.requirement("alerts:stuck-once")
async def test_silence_is_told_once_and_again_after_something_was_said(world: World) -> None:
    run_id = await talking(world, *texts(1))
    await world.clock.advance(295)
    assert await alerts(world, run_id) == []
    await world.clock.advance(10)
    told = await alerts(world, run_id)
    assert len(told) == 1
    assert told[0].startswith("[subagent:talker] ⚠️ No progress for 5 minutes")
    await world.clock.advance(1200)
    assert len(await alerts(world, run_id)) == 1
    await world.restart()
    await world.clock.advance(60)

    assert len(await alerts(world, run_id)) == 1


@pytest.mark.requirement("alerts:stuck-once", "recorder:restart")
async def test_what_was_said_while_no_daemon_was_there_was_no_silence(world: World) -> None:
    class Late(Talkative):
        """Whose output takes a moment to be read."""

        async def watch(
            self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
        ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
            await self._clock.sleep(1)
            async for found in super().watch(ref, cursor=cursor, positions=positions):
                yield found

    runtime = Late(world.clock, Abilities(survives_daemon=True))
    await world.crash()
    await world.boot(runtime)
    run_id = await world.working()
    runtime.words = texts(1)
    await world.crash()
    world.clock.jump(3_600)
    await world.boot()
    await world.clock.advance(290)
    assert await alerts(world, run_id) == []

    await world.clock.advance(20)

    assert len(await alerts(world, run_id)) == 1


@pytest.mark.requirement("alerts:stuck-once", "pause:freezes")
@pytest.mark.world(abilities=Abilities(survives_daemon=True, freeze=True))
async def test_how_long_a_worker_was_paused_is_no_silence(world: World) -> None:
    run_id = await world.working()
    await world.clock.result(world.engine.control.pause(run_id, by="me"))
    await world.clock.advance(3_600)
    await world.clock.result(world.engine.control.resume(run_id, by="me"))
    await world.clock.advance(290)
    assert await alerts(world, run_id) == []

    await world.clock.advance(20)

    assert len(await alerts(world, run_id)) == 1


@pytest.mark.requirement("daemon:idle")
def test_a_thousand_quiet_runs_are_looked_at_only_when_one_of_them_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[RunId] = []

    async def scenario(world: World) -> None:
        specs = [RunSpec(task="wait", agent_id="hang")] * 1_000
        run_ids = await world.clock.result(world.batch(*specs))
        for run_id in run_ids:
            await world.until(run_id, Phase.RUNNING)
        due_ms = Recorder._due_ms

        def counted(self: Recorder, run: Run) -> int | None:
            looked.append(run.id)
            return due_ms(self, run)

        monkeypatch.setattr(Recorder, "_due_ms", counted)
        await world.clock.advance(290)
        assert looked == []
        await world.clock.advance(20)
        assert set(looked) == set(run_ids)

    in_world(tmp_path, scenario, max_concurrent=1_000, max_children_per_agent=1_000)


@pytest.mark.requirement("alerts:to-a-run")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_requester_that_is_a_run_hears_of_alerts_where_it_works(world: World) -> None:
    parent = await talking(world)
    runtime = world.runtime
    assert isinstance(runtime, Talkative)
    runtime.words = [RATE_LIMITED]
    child = await world.spawn_child(parent, "hang", label="kid")
    await world.until(child, Phase.RUNNING)
    await world.clock.advance(2)

    assert runtime.steered == ["[subagent:kid] ❌ API error: rate limited (retry 2/5)"]
    key = (await world.run(parent)).session.first_key
    rows = await world.engine.queries.inbox(key)
    assert [row.consumed_at_ms is not None for row in rows] == [True]


@pytest.mark.requirement("alerts:last-acts")
def test_what_a_worker_did_last_is_told_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = Extension("one", detectors=f"{__name__}:commits_of")
    monkeypatch.setattr(extension, "found", lambda: extension.Found((hook,), ()))

    async def scenario(world: World) -> None:
        said = OutputItem(type=LineType.TOOL, tool=ToolUse(name="commit", output="done"))
        run_id = await talking(world, said, agent="quick")
        await world.until(run_id)

        assert await alerts(world, run_id) == ['[subagent:talker] 📝 Committed: "done"']

    in_world(tmp_path, scenario)


@pytest.mark.requirement("alerts:outdated")
async def test_whoever_reads_the_end_of_a_run_is_not_told_its_old_news(world: World) -> None:
    run_id = await talking(world, RATE_LIMITED)
    assert len(await world.engine.queries.inbox(ME, unconsumed=True)) == 1
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    await world.until(run_id)
    found = await world.clock.result(world.engine.mailbox.wait([run_id], session=ME, reader="me"))
    await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader="me"))

    assert await world.engine.queries.inbox(ME, unconsumed=True) == ()
    assert len(await world.engine.queries.inbox(ME)) == 2


@pytest.mark.requirement("recorder:thinking")
async def test_thoughts_and_long_lines_are_cut_and_say_by_how_much(world: World) -> None:
    run_id = await talking(
        world,
        OutputItem(type=LineType.THINKING, text="h" * 1000),
        OutputItem(type=LineType.TEXT, text="x" * 10_000),
    )
    thought, text = (await lines(world, run_id, types=(LineType.THINKING, LineType.TEXT)))[:2]

    assert thought.text == f"{'h' * 300}… (700 more characters)"
    assert text.text == f"{'x' * 8000}… (2000 more characters)"


@pytest.mark.requirement("recorder:restart")
async def test_what_a_killed_daemon_wrote_is_synced_before_its_workers_copy_goes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await talking(world, *texts(3))
    await lines(world, run_id)
    await world.crash()
    await world.boot()
    recorder, run = world.engine.recorder, await world.run(run_id)
    synced: list[RunId] = []
    monkeypatch.setattr(recorder._transcripts, "sync", synced.append)
    recorder._open.clear()  # nothing is read in this life of what had ended in the last one

    assert await recorder.sync(run)
    assert await recorder.sync(run)

    assert synced == [run_id]
