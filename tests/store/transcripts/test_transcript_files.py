"""Transcripts on a real disk: nothing is lost, nothing comes twice, and they stay bounded."""

import errno
import itertools
import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests.store.transcripts.transcript_lines import (
    MB,
    RUN,
    checkpoint,
    everything,
    files,
    fill,
    lines,
    numbers,
)

from subagents.domain.alerts.detectors import Watch
from subagents.domain.run.values import RunId
from subagents.domain.transcript.transcript_query import (
    Checkpoint,
    LogPage,
    LogQuery,
)
from subagents.errors import UsageError
from subagents.store.transcripts import transcript_files as transcripts
from subagents.store.transcripts.transcript_files import TranscriptFiles

# -- what is kept -------------------------------------------------------------------------------


@pytest.mark.requirement("transcript:kept")
def test_a_person_can_read_them(log: TranscriptFiles, tmp_path: Path) -> None:
    log.append(RUN, lines(1, 1), checkpoint(1), bytes_max=MB)

    (file,) = files(tmp_path)
    first, second = file.read_text().splitlines()
    assert file.name == "0000000001.jsonl"
    assert json.loads(first) == [1, 1000, "thinking", 1, "line 1 ............."]
    assert json.loads(second)["seq"] == 1


@pytest.mark.requirement("transcript:private")
def test_only_their_owner_may_read_them(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path / "transcripts")
    before = os.umask(0)
    try:
        fill(log, 100, bytes_max=2000)
    finally:
        os.umask(before)

    for directory in (tmp_path / "transcripts", tmp_path / "transcripts" / RUN):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for file in files(tmp_path / "transcripts"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.requirement("transcript:none")
def test_a_run_without_one_has_no_lines_and_looking_leaves_nothing_behind(
    log: TranscriptFiles, tmp_path: Path
) -> None:
    assert log.resume(RUN) == Checkpoint()
    assert log.read(RUN, LogQuery()) == LogPage(total_lines=0, offset=0, lines=(), next_seq=0)
    assert log.read(RUN, LogQuery(grep="x", since_ms=1)).lines == ()
    log.sync(RUN)
    log.forget(RUN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("transcript:forget")
def test_a_forgotten_transcript_is_gone_and_can_be_begun_again(
    log: TranscriptFiles, tmp_path: Path
) -> None:
    fill(log, 10)
    log.forget(RUN)
    log.forget(RUN)

    assert list(tmp_path.iterdir()) == []
    fill(log, 3)
    assert numbers(everything(log)) == [1, 2, 3]


@pytest.mark.requirement("transcript:forget")
def test_a_deletion_that_could_not_be_synced_is_synced_when_it_is_repeated(
    log: TranscriptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 1)
    synced = []

    def fsync(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))  # noqa: PTH115 - of a descriptor
        if len(synced) == 1:
            raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="the disk fails"):
        log.forget(RUN)
    log.forget(RUN)

    assert synced == [str(tmp_path)] * 2


@pytest.mark.requirement("transcript:kept")
def test_a_run_id_that_is_a_path_is_refused(log: TranscriptFiles) -> None:
    for bad in ("", "../x", "a/b", ".hidden"):
        with pytest.raises(UsageError):
            log.read(RunId(bad), LogQuery())


# -- what survives ------------------------------------------------------------------------------


@pytest.mark.requirement("transcript:torn")
def test_a_batch_that_was_cut_anywhere_is_dropped_whole_and_comes_again_once(
    tmp_path: Path,
) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 4, batch=2)
    (file,) = files(tmp_path)
    whole_before = file.read_bytes()
    log.append(RUN, lines(5, 7), checkpoint(7), bytes_max=MB)
    whole = file.read_bytes()

    for size in range(len(whole_before), len(whole)):
        file.write_bytes(whole[:size])
        assert numbers(everything(TranscriptFiles(tmp_path))) == [1, 2, 3, 4]
        again = TranscriptFiles(tmp_path)
        assert again.resume(RUN) == checkpoint(4)
        assert file.read_bytes() == whole_before
        again.append(RUN, lines(5, 7), checkpoint(7), bytes_max=MB)
        assert file.read_bytes() == whole


@pytest.mark.requirement("transcript:torn")
def test_a_segment_that_was_cut_in_its_first_batch_is_dropped(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 50, batch=5, bytes_max=4000)
    *_, before, last = files(tmp_path)
    first = int(last.stem)
    whole = last.read_bytes()

    for size in (0, 1, 30, whole.index(b"\n{") + 5):
        last.write_bytes(whole[:size])
        assert numbers(everything(TranscriptFiles(tmp_path)))[-1] == first - 1
        assert TranscriptFiles(tmp_path).resume(RUN).seq == first - 1
        assert not last.exists()
    assert before.exists()


@pytest.mark.requirement("transcript:torn")
def test_after_a_power_cut_nothing_behind_a_hole_is_believed(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 30)
    (file,) = files(tmp_path)
    data = bytearray(file.read_bytes())
    at = data.index(b"[15,")
    data[at : at + 40] = bytes(40)
    file.write_bytes(data)

    again = TranscriptFiles(tmp_path)

    assert again.resume(RUN) == checkpoint(10)
    assert numbers(everything(again)) == list(range(1, 11))


@pytest.mark.requirement("transcript:torn")
def test_the_checkpoint_of_another_version_keeps_the_lines(tmp_path: Path) -> None:
    fill(TranscriptFiles(tmp_path), 3)
    (file,) = files(tmp_path)
    data = file.read_text().replace('"positions":{"1/out":21}', '"positions":7,"new":[]')
    file.write_text(data)

    again = TranscriptFiles(tmp_path)

    assert again.resume(RUN) == Checkpoint(seq=3, ts=1001)
    fill(again, 5)
    assert numbers(everything(again)) == [1, 2, 3, 4, 5]


KILLED = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {here!r})
    from tests.store.transcripts.transcript_lines import RUN, checkpoint, lines
    from subagents.store.transcripts.transcript_files import TranscriptFiles

    log = TranscriptFiles(Path({directory!r}))
    seq = log.resume(RUN).seq
    print("ready", flush=True)
    while True:
        log.append(RUN, lines(seq + 1, seq + 40), checkpoint(seq + 40), bytes_max=60_000)
        seq += 40
        log.append(RUN, [], checkpoint(seq, journal_seq=seq), bytes_max=60_000)
"""


@pytest.mark.requirement("transcript:kill")
def test_kill_9_in_the_middle_of_writing_leaves_neither_a_gap_nor_a_double(
    tmp_path: Path,
) -> None:
    here = str(Path(__file__).parents[3])
    program = textwrap.dedent(KILLED).format(here=here, directory=str(tmp_path))
    before = 0
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        grown = TranscriptFiles(tmp_path)
        while (newest := grown.read(RUN, LogQuery(limit=1)).next_seq) < before + 400:
            assert writer.poll() is None
        writer.kill()
        writer.wait()
        writer.stdout.close()

        log = TranscriptFiles(tmp_path)
        state = log.resume(RUN)
        page = everything(log)
        assert state.seq >= newest
        assert state.positions == {"1/out": state.seq * 7}
        assert numbers(page) == list(range(page.dropped_lines + 1, state.seq + 1))
        assert page.lines == tuple(lines(page.dropped_lines + 1, state.seq))
        assert sum(file.stat().st_size for file in files(tmp_path)) <= 60_000 + 10_000
        before = state.seq


FULL_DISK = """
    import resource, signal, sys
    from pathlib import Path
    sys.path.insert(0, {here!r})
    from tests.store.transcripts.transcript_lines import RUN, checkpoint, everything
    from tests.store.transcripts.transcript_lines import lines, numbers
    from subagents.store.transcripts.transcript_files import TranscriptFiles

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log = TranscriptFiles(Path({directory!r}))
    log.append(RUN, lines(1, 10), checkpoint(10), bytes_max=1_000_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
    try:
        log.append(RUN, lines(11, 40), checkpoint(40), bytes_max=1_000_000)
    except OSError as error:
        print("refused", error.errno)
    print(numbers(everything(log)) == list(range(1, 11)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    log.append(RUN, lines(11, 12), checkpoint(12), bytes_max=1_000_000)
    print(numbers(everything(log)) == list(range(1, 13)), log.resume(RUN) == checkpoint(12))
"""


@pytest.mark.requirement("transcript:full-disk")
def test_a_batch_for_which_there_is_no_room_is_not_kept_by_half(tmp_path: Path) -> None:
    here = str(Path(__file__).parents[3])
    program = textwrap.dedent(FULL_DISK).format(here=here, directory=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == ["refused 27", "True", "True True"]


# -- what stays bounded -------------------------------------------------------------------------


@pytest.mark.requirement("transcript:bounded")
def test_the_oldest_lines_go_and_the_newest_keep_their_numbers(
    log: TranscriptFiles, tmp_path: Path
) -> None:
    for last in range(100, 3001, 100):
        fill(log, last, batch=7, bytes_max=20_000)
        size = sum(file.stat().st_size for file in files(tmp_path))
        assert size <= 20_000
        page = log.read(RUN, LogQuery(offset=last - 20, limit=5))
        assert numbers(page) == list(range(last - 19, last - 14))
        assert page.offset == last - 20
        assert page.total_lines == last

    page = everything(log)
    assert 2000 < page.dropped_lines < 2800
    assert page.offset == page.dropped_lines
    assert numbers(page) == list(range(page.dropped_lines + 1, 3001))
    assert size > 20_000 * 0.6
    assert len(files(tmp_path)) >= 5


@pytest.mark.requirement("transcript:bounded")
def test_checkpoints_alone_do_not_let_it_grow(log: TranscriptFiles, tmp_path: Path) -> None:
    fill(log, 10)
    for number in range(5000):
        log.append(RUN, [], checkpoint(10, journal_seq=number), bytes_max=MB)

    assert sum(file.stat().st_size for file in files(tmp_path)) < 2 * transcripts.WASTE_BYTES
    assert log.resume(RUN) == checkpoint(10, journal_seq=4999)
    fill(log, 12)
    assert numbers(everything(log)) == list(range(1, 13))


@pytest.mark.requirement("transcript:bounded")
def test_many_small_batches_leave_room_for_lines(log: TranscriptFiles, tmp_path: Path) -> None:
    """A batch of one line is mostly checkpoint."""
    watch = Watch(last_activity="x" * 400)
    for seq in range(1, 2001):
        log.append(RUN, lines(seq, seq), checkpoint(seq, watch=watch), bytes_max=MB)

    size = sum(file.stat().st_size for file in files(tmp_path))
    assert numbers(everything(log)) == list(range(1, 2001))
    assert size < 2 * 2000 * 50 + 2 * transcripts.WASTE_BYTES


# -- reading while it is written ----------------------------------------------------------------


@pytest.mark.requirement("transcript:readers")
def test_a_reader_sees_all_lines_while_old_checkpoints_are_thrown_out(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 50)
    watch = Watch(last_activity="x" * 3000)
    is_enough = threading.Event()

    def write() -> None:
        for number in itertools.count():
            if is_enough.is_set():
                return
            state = checkpoint(50, journal_seq=number, watch=watch)
            log.append(RUN, [], state, bytes_max=MB)

    writer = threading.Thread(target=write)
    writer.start()
    (file,) = files(tmp_path)
    replaced, node = 0, file.stat().st_ino
    try:
        while replaced < 10:
            assert numbers(log.read(RUN, LogQuery(limit=100))) == list(range(1, 51))
            assert log.read(RUN, LogQuery(grep="line")).total_lines == 50
            before, node = node, file.stat().st_ino
            replaced += node != before
    finally:
        is_enough.set()
        writer.join()


@pytest.mark.requirement("transcript:synced")
def test_what_was_appended_is_synced_with_its_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TranscriptFiles(tmp_path / "transcripts")
    synced: list[str] = []

    def fsync(file: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))

    fill(log, 100, bytes_max=8000)
    monkeypatch.setattr(os, "fsync", fsync)
    log.sync(RUN)
    assert set(map(str, files(tmp_path / "transcripts"))) <= set(synced)
    folder = tmp_path / "transcripts"
    assert {str(tmp_path), str(folder), str(folder / RUN)} <= set(synced)

    synced.clear()
    log.sync(RUN)
    assert synced == []
    fill(log, 101, bytes_max=8000)
    log.sync(RUN)
    assert str(files(tmp_path / "transcripts")[-1]) in synced

    synced.clear()
    TranscriptFiles(folder).sync(RUN)
    assert {str(tmp_path), str(folder), str(folder / RUN)} <= set(synced), "of a daemon before it"

    synced.clear()
    log.forget(RUN)
    assert synced == [str(tmp_path / "transcripts")], "or it would come back with the power"


@pytest.mark.requirement("transcript:synced:once")
def test_a_directory_is_synced_only_for_names_that_it_did_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TranscriptFiles(tmp_path / "transcripts")
    synced: list[str] = []

    def fsync(file: int) -> None:
        found = Path(f"/proc/self/fd/{file}").readlink()
        synced.append(str(found.relative_to(tmp_path)))

    monkeypatch.setattr(os, "fsync", fsync)
    counts = []
    for run, seq in ((RunId("r-1"), 1), (RunId("r-2"), 1), (RunId("r-1"), 2)):
        log.append(run, lines(seq, seq), checkpoint(seq), bytes_max=MB)
        log.sync(run)
        counts.append(len(synced))
        synced.clear()

    assert counts == [4, 3, 1], "file, its directory, theirs, the state's"

    for number in range(10):
        log.append(RunId(f"r-many-{number}"), lines(1, 1), checkpoint(1), bytes_max=MB)
    for number in range(10):
        log.sync(RunId(f"r-many-{number}"))
    assert synced.count("transcripts") == 1, "one for all of them"
