"""What every transcript does, wherever it is: nothing is lost, nothing comes twice, and they stay
bounded.
"""

import threading

import pytest
from tests.store.transcripts.transcript_lines import (
    MB,
    RUN,
    checkpoint,
    everything,
    fill,
    lines,
    numbers,
)
from tests.store.transcripts.transcript_places import TranscriptPlace

from subagents.domain.alerts.detectors import Watch
from subagents.domain.redaction.redact import Redactor
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogPage, LogQuery
from subagents.errors import UsageError


@pytest.mark.requirement("transcript:kept")
def test_lines_come_back_as_they_were_given(transcripts: TranscriptPlace) -> None:
    given_lines = [
        Line(seq=1, ts=5, type=LineType.USER, text='task from x: "do"\n\tit \\ ä ✅', attempt=1),
        Line(seq=2, ts=5, type=LineType.TOOL, text="✅ Bash (2.1s)\ncd /x && git \0log", attempt=1),
        Line(seq=3, ts=9, type=LineType.TEXT, text='{"seq": 7}\n[1,2]', attempt=2),
    ]
    state = checkpoint(
        3, journal_seq=4, watch=Watch(attempt=2, last_activity="x"), redactor=Redactor(key_lines=3)
    )
    log = transcripts.log()
    log.append(RUN, given_lines[:1], checkpoint(1), bytes_max=MB)
    log.append(RUN, given_lines[1:], state, bytes_max=MB)

    again = transcripts.log()

    assert again.resume(RUN) == state
    assert everything(again).lines == tuple(given_lines)


@pytest.mark.requirement("transcript:none")
def test_a_run_without_one_has_no_lines(transcripts: TranscriptPlace) -> None:
    log = transcripts.log()

    assert log.read(RUN, LogQuery()) == LogPage(total_lines=0, offset=0, lines=(), next_seq=0)
    assert log.read(RUN, LogQuery(grep="x", since_ms=1)).lines == ()
    assert log.resume(RUN) == Checkpoint()
    assert log.read(RUN, LogQuery()) == LogPage(total_lines=0, offset=0, lines=(), next_seq=0)
    log.sync(RUN)
    log.forget(RUN)


@pytest.mark.requirement("transcript:forget")
def test_a_forgotten_one_is_gone_and_can_be_begun_again(transcripts: TranscriptPlace) -> None:
    log = transcripts.log()
    fill(log, 10)
    log.append(RunId("r-other"), lines(1, 2), checkpoint(2), bytes_max=MB)
    log.forget(RUN)
    log.forget(RUN)

    assert everything(log).lines == ()
    assert log.read(RunId("r-other"), LogQuery()).total_lines == 2
    fill(log, 3)
    assert numbers(everything(log)) == [1, 2, 3]


@pytest.mark.requirement("transcript:kept")
def test_one_that_was_deleted_under_its_writer_goes_on_with_what_comes(
    transcripts: TranscriptPlace,
) -> None:
    log = transcripts.log()
    fill(log, 10)
    transcripts.delete()

    log.append(RUN, lines(11, 12), checkpoint(12), bytes_max=MB)

    page = everything(log)
    assert (numbers(page), page.dropped_lines, page.total_lines) == ([11, 12], 10, 12)


@pytest.mark.requirement("transcript:kept")
def test_numbers_never_go_back(transcripts: TranscriptPlace) -> None:
    log = transcripts.log()
    fill(log, 10)

    with pytest.raises(OSError, match="line 5 is there already"):
        log.append(RUN, lines(5, 6), checkpoint(6), bytes_max=MB)

    assert numbers(everything(log)) == list(range(1, 11))
    fill(log, 11)
    assert numbers(everything(log)) == list(range(1, 12))


@pytest.mark.requirement("transcript:kept")
def test_half_a_character_is_replaced_and_not_the_end_of_recording(
    transcripts: TranscriptPlace,
) -> None:
    log = transcripts.log()
    half = replace(lines(1, 1)[0], text="half \ud83d")
    log.append(RUN, [half], checkpoint(1), bytes_max=MB)

    assert everything(log).lines[0].text == "half ?"


@pytest.mark.requirement("transcript:kept")
def test_a_checkpoint_without_lines_is_kept_and_another_process_goes_on_behind_it(
    transcripts: TranscriptPlace,
) -> None:
    log = transcripts.log()
    log.append(RUN, [], checkpoint(0, journal_seq=3), bytes_max=MB)
    for seq in range(1, 100):
        if seq % 33 == 1:
            log = transcripts.log()
            before = (
                checkpoint(seq - 1, journal_seq=seq) if seq > 1 else checkpoint(0, journal_seq=3)
            )
            assert log.resume(RUN) == before
        log.append(RUN, lines(seq, seq), checkpoint(seq), bytes_max=MB)
        log.append(RUN, [], checkpoint(seq, journal_seq=seq + 1), bytes_max=MB)

    assert everything(log).lines == tuple(lines(1, 99))


@pytest.mark.requirement("transcript:bounded")
def test_the_oldest_lines_go_and_the_newest_keep_their_numbers(
    transcripts: TranscriptPlace,
) -> None:
    log = transcripts.log()
    for last in range(300, 3001, 300):
        fill(log, last, batch=7, bytes_max=20_000)
        assert transcripts.size() <= 20_000
        page = log.read(RUN, LogQuery(offset=last - 20, limit=5))
        assert numbers(page) == list(range(last - 19, last - 14))
        assert page.offset == last - 20
        assert page.total_lines == last

    page = everything(log)
    assert 2000 < page.dropped_lines < 2800
    assert page.offset == page.dropped_lines
    assert numbers(page) == list(range(page.dropped_lines + 1, 3001))
    assert transcripts.size() > 20_000 * 0.6


@pytest.mark.requirement("transcript:bounded")
def test_of_a_batch_that_alone_is_too_much_the_end_is_kept(transcripts: TranscriptPlace) -> None:
    log = transcripts.log()
    fill(log, 20)
    log.append(RUN, lines(21, 5000), checkpoint(5000), bytes_max=10_000)

    page = everything(log)
    assert numbers(page) == list(range(page.dropped_lines + 1, 5001))
    assert len(page.lines) > 50
    assert transcripts.size() <= 10_000
    fill(log, 5010, bytes_max=10_000)
    assert numbers(everything(log))[-10:] == list(range(5001, 5011))


@pytest.mark.requirement("transcript:readers")
def test_a_reader_sees_whole_batches_without_gaps_while_they_are_written(
    transcripts: TranscriptPlace,
) -> None:
    log = transcripts.log()
    enough = threading.Event()
    last = 0

    def write() -> None:
        nonlocal last
        while last < 8_000 or not enough.is_set():
            last += 10
            state = checkpoint(last)
            log.append(RUN, lines(last - 9, last), state, bytes_max=40_000)
            log.append(RUN, [], state, bytes_max=40_000)

    reader = transcripts.log()
    writer = threading.Thread(target=write)
    writer.start()
    looks, seen = 0, 0
    try:
        while writer.is_alive():
            for query in (LogQuery(offset=0, limit=10**7), LogQuery(grep="line", limit=10**7)):
                page = reader.read(RUN, query)
                if page.lines:
                    found = numbers(page)
                    assert found == list(range(found[0], found[-1] + 1))
                    assert found[-1] % 10 == 0
                    assert found[-1] >= seen
                    seen = found[-1]
                    looks += 1
            if looks > 10:
                enough.set()
    finally:
        enough.set()
        writer.join()

    assert looks > 10
    assert numbers(log.read(RUN, LogQuery(limit=1))) == [last]


@pytest.mark.requirement("transcript:query")
def test_a_reader_that_goes_on_from_the_cursor_misses_nothing(
    transcripts: TranscriptPlace,
) -> None:
    log, reader = transcripts.log(), transcripts.log()
    cursor, seen = 0, list[int]()
    for last in (5, 5, 17, 60):
        fill(log, last)
        while True:
            page = reader.read(RUN, LogQuery(offset=0, limit=4, after_seq=cursor, grep="[1-5]"))
            seen += numbers(page)
            cursor = page.next_seq
            if page.total_lines <= len(page.lines):
                break

    assert seen == [n for n in range(1, 61) if set(str(n)) & set("12345")]
    assert cursor == 60


@pytest.mark.requirement("transcript:query")
def test_a_bad_pattern_is_refused_also_where_there_are_no_lines(
    transcripts: TranscriptPlace,
) -> None:
    with pytest.raises(UsageError, match=r"missing \], in \["):
        transcripts.log().read(RUN, LogQuery(grep="["))
