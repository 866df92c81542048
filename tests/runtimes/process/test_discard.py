"""Raw output does not pile up: what is kept elsewhere is discarded, nothing that is needed is."""

import asyncio
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import Ended, Harness, until_async

from subagents.domain.run.run import Exit
from subagents.domain.run.signals import Exited, ResultSeen
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import RuntimeUnavailable
from subagents.runtimes.output.output_reader import Sizes
from subagents.runtimes.process.discard import (
    KEPT_BYTES,
    Discarded,
    discard_all,
    discard_before,
    discarded,
)

MEGABYTE = 1024 * 1024


@pytest.fixture
def can_punch(tmp_path: Path) -> None:
    """Whether this file system takes holes at all."""
    probe = tmp_path / "probe"
    probe.mkdir()
    (probe / "out").write_bytes(b"x" * MEGABYTE)
    discard_before(probe, out=MEGABYTE, err=0)
    if _allocated(probe / "out") > MEGABYTE // 2:
        pytest.skip("no holes can be punched here")


def _allocated(path: Path) -> int:
    return path.stat().st_blocks * 512


def _lines(count: int) -> bytes:
    return b"".join(b"line %09d of what was said\n" % n for n in range(count))


@pytest.mark.requirement("output:disk-is-bounded")
@pytest.mark.usefixtures("can_punch")
def test_what_was_read_is_punched_out_and_the_rest_stays_byte_for_byte(tmp_path: Path) -> None:
    data = _lines(100_000)
    (tmp_path / "out").write_bytes(data)
    (tmp_path / "err").write_bytes(data)
    discard_before(tmp_path, out=len(data) // 2, err=len(data))
    kept = len(data) // 2 - KEPT_BYTES

    assert (tmp_path / "out").stat().st_size == len(data)
    assert (tmp_path / "out").read_bytes()[kept:] == data[kept:]
    assert _allocated(tmp_path / "out") <= len(data) - kept + 2 * 4096
    assert _allocated(tmp_path / "err") <= KEPT_BYTES + 2 * 4096
    assert (tmp_path / "err").read_bytes()[-KEPT_BYTES:] == data[-KEPT_BYTES:]
    assert discarded(tmp_path) == Discarded(out=len(data) // 2, err=len(data))


@pytest.mark.requirement("output:result-outlives-its-bytes")
@pytest.mark.usefixtures("can_punch")
def test_a_result_event_that_was_given_up_still_keeps_the_tail_from_being_the_result(
    harness: Harness,
) -> None:
    result = '{"subagents":"result","text":"the answer"}'
    script = f"echo '{result}'; seq 100000; while ! [ -e go ]; do sleep 0.02; done; echo end"

    async def go() -> tuple[Ended, Ended]:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", script))
        seen, cursor, positions = [], 0, dict[str, int]()
        async for each, directory in runtime.watch(harness.ref(), cursor=0, positions={}):
            seen.append((each, directory))
            cursor = directory
            if isinstance(each, OutputBatch):
                positions = each.positions
                if any(output.text == "100000" for output in each.items):
                    break
        size = harness.directory().sizes().out
        await runtime.discard(harness.ref(), cursor=size, positions=positions)
        await runtime.discard(harness.ref(), cursor=size, positions=positions)
        assert _allocated(Path(harness.directory().out)) < size // 2
        (harness.cwd / "go").touch()
        return Ended(seen), await harness.read(
            harness.runtime(), cursor=cursor, positions=positions
        )

    before, after = asyncio.run(go())
    assert before.result.text == "the answer"
    assert not [each for each in after.signals if isinstance(each, ResultSeen)]
    assert [output.text for output in after.output] == ["end"]
    assert after.exited.exit == Exit(code=0)


@pytest.mark.requirement("output:result-outlives-its-bytes")
@pytest.mark.usefixtures("can_punch")
def test_the_end_of_the_text_is_the_result_although_the_rest_of_it_is_gone(
    harness: Harness,
) -> None:
    script = "seq 100000; while ! [ -e go ]; do sleep 0.02; done; exit 3"

    async def go() -> tuple[Ended, Ended]:
        runtime = harness.runtime()
        await runtime.start(harness.launch("sh", "-c", script))
        await until_async("all is written", lambda: harness.directory().sizes().out == 588_895)
        (harness.cwd / "go").touch()
        whole = await harness.read(runtime)
        directory = {"out": 588_895, "err": 0}
        await runtime.discard(harness.ref(), cursor=588_895, positions=directory)
        again = await harness.read(harness.runtime(), cursor=588_895, positions=directory)
        return whole, again

    whole, again = asyncio.run(go())
    assert again.result == whole.result
    assert again.result.text.endswith("99999\n100000")
    assert again.output == []


@pytest.mark.requirement("shim:tidy")
def test_what_is_discarded_beside_a_tidying_leaves_no_record_behind(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("said")
    (tmp_path / "claim").touch()

    discard_all(tmp_path)  # as when everything else was deleted after its first look

    assert [each.name for each in tmp_path.iterdir()] == ["claim"]


@pytest.mark.requirement("output:deleted-at-the-end")
def test_the_output_of_an_ended_attempt_is_deleted_and_its_end_stays_on_record(
    harness: Harness,
) -> None:
    harness.ended("sh", "-c", "echo out; echo err >&2; exit 5")

    async def go() -> Ended:
        runtime = harness.runtime()
        for _ in range(2):
            await runtime.discard(harness.ref(), cursor=0, positions={}, ended=True)
        assert harness.directory().sizes() == Sizes(out=0, err=0)  # not there
        return await harness.read(runtime, cursor=4, positions={"out": 4, "err": 4})

    ended = asyncio.run(go())
    assert [type(each) for each in ended.signals] == [Exited]
    assert ended.exited.exit == Exit(code=5)
    assert ended.pairs[-1][1] == 4
    assert ended.output == []
    asyncio.run(harness.runtime().forget(harness.ref()))
    assert not harness.directory().path.exists()


@pytest.mark.requirement("output:deleted-at-the-end")
def test_letting_go_of_what_was_forgotten_or_never_was_makes_nothing(harness: Harness) -> None:
    async def go() -> None:
        runtime = harness.runtime()
        await runtime.discard(harness.ref(), cursor=9, positions={"out": 9, "err": 9}, ended=True)
        await runtime.discard(harness.ref(), cursor=0, positions={})

    asyncio.run(go())
    assert not harness.directory().path.exists()


@pytest.mark.requirement("output:gone-bytes-are-no-output")
@pytest.mark.usefixtures("can_punch")
def test_a_reader_whose_place_was_lost_begins_behind_what_is_gone(harness: Harness) -> None:
    """A transcript that could not be kept: the zeros of the hole must not become its lines."""
    script = "seq 100000; echo odd >&2"
    whole = harness.ended("sh", "-c", script)
    directory = harness.directory().path
    (directory / "discarded").unlink(missing_ok=True)
    gone = 488_895  # behind the line 90000
    discard_before(directory, out=gone, err=0)
    again = asyncio.run(harness.read(harness.runtime()))

    behind = [
        output for output in whole.output if output.text == "odd" or int(output.text) > 80_000
    ]
    assert again.output == behind[-len(again.output) :]
    assert len(again.output) > 10_000
    assert not any("\ufffd" in output.text for output in again.output)


@pytest.mark.requirement("output:gone-bytes-are-no-output")
def test_nothing_is_punched_out_of_a_file_that_its_worker_emptied(harness: Harness) -> None:
    harness.ended("seq", "200000")
    size = harness.directory().sizes().out
    known = {"out": size, "out.emptied": size // 2}
    asyncio.run(harness.runtime().discard(harness.ref(), cursor=size, positions=known))
    assert discarded(harness.directory().path) == Discarded()


@pytest.mark.requirement("output:disk-is-bounded")
def test_an_unreadable_record_counts_as_nothing_given_up(tmp_path: Path) -> None:
    (tmp_path / "discarded").write_text("12 x")
    assert discarded(tmp_path) == Discarded()
    (tmp_path / "out").write_text("said")
    (tmp_path / "pid").write_text("shim 1 1")
    discard_all(tmp_path)
    assert discarded(tmp_path) == Discarded(is_all=True)


@pytest.mark.requirement("output:deleted-at-the-end")
def test_what_cannot_be_discarded_is_an_error_that_can_be_repeated(harness: Harness) -> None:
    harness.ended("echo", "said")
    out = Path(harness.directory().out)
    out.unlink()
    out.mkdir()  # no file that could be deleted

    with pytest.raises(RuntimeUnavailable, match="cannot discard output") as refused:
        asyncio.run(harness.runtime().discard(harness.ref(), cursor=0, positions={}, ended=True))
    assert refused.value.retryable
    out.rmdir()
    asyncio.run(harness.runtime().discard(harness.ref(), cursor=0, positions={}, ended=True))
