"""Which lines of a transcript are wanted: the filters first, then the window."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.transcripts.transcript_lines import (
    MB,
    RUN,
    everything,
    files,
    fill,
    numbers,
)
from tests.store.transcripts.transcript_places import FilePlace, TranscriptPlace

from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import (
    Line,
    LogPage,
    LogQuery,
)
from subagents.ports import TranscriptLog
from subagents.store.transcripts import segments
from subagents.store.transcripts.transcript_files import TranscriptFiles

QUERIES = st.builds(
    LogQuery,
    offset=st.none() | st.integers(0, 320),
    limit=st.integers(0, 60),
    grep=st.sampled_from([None, None, "line", "1", "[05] ", "(?i)LINE 2", "none", "7 |9 "]),
    since_ms=st.none() | st.integers(990, 1110),
    types=st.sampled_from([(), (), (LineType.TEXT,), (LineType.TOOL, LineType.ERROR)]),
    attempt=st.none() | st.integers(1, 4),
    after_seq=st.none() | st.integers(0, 310),
)


def expected(kept: Sequence[Line], newest: int, query: LogQuery) -> LogPage:
    """The same, word for word from the specification."""
    import re  # noqa: PLC0415

    is_filtered = any(
        each is not None for each in (query.grep, query.since_ms, query.attempt, query.after_seq)
    ) or bool(query.types)
    passing = [
        line
        for line in kept
        if (query.grep is None or re.search(query.grep, line.text))
        and (query.since_ms is None or line.ts >= query.since_ms)
        and (not query.types or line.type in query.types)
        and query.attempt in {None, line.attempt}
        and (query.after_seq is None or line.seq > query.after_seq)
    ]
    dropped = kept[0].seq - 1 if kept else newest
    before = 0 if is_filtered else dropped
    total = len(passing) + before
    begin = total - query.limit if query.offset is None else query.offset
    begin = min(max(begin, before), total)
    shown = passing[begin - before : begin - before + query.limit]
    is_cut = query.offset is not None and shown and begin + len(shown) < total
    return LogPage(
        total_lines=total,
        offset=begin,
        lines=tuple(shown),
        next_seq=shown[-1].seq if is_cut else newest,
        dropped_lines=dropped,
    )


def filled(place: TranscriptPlace, bytes_max: int) -> tuple[TranscriptLog, list[Line]]:
    """300 lines, and those of them that are kept: all only if there is room."""
    log = place.log()
    fill(log, 300, batch=9, bytes_max=bytes_max)
    kept = list(everything(log).lines)
    assert (kept[0].seq == 1) == (bytes_max == MB)
    return log, kept


@pytest.fixture(scope="module", params=["one segment", "many segments", "tiny slices"])
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TranscriptLog, list[Line]]]:
    place = FilePlace(tmp_path_factory.mktemp("log"))
    bytes_max = MB if request.param == "one segment" else 12_000
    before = segments.SLICE_BYTES
    if request.param == "tiny slices":
        segments.SLICE_BYTES = 100  # type: ignore[misc]  # so that places are looked for in halves
    yield filled(place, bytes_max)
    segments.SLICE_BYTES = before  # type: ignore[misc]


@pytest.mark.requirement("transcript:query")
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(query=QUERIES)
def test_a_page_is_what_the_filters_and_then_the_window_leave(
    stored: tuple[TranscriptLog, list[Line]], query: LogQuery
) -> None:
    log, kept = stored

    assert log.read(RUN, query) == expected(kept, 300, query)


@pytest.mark.requirement("transcript:query")
def test_offsets_are_the_same_before_and_after_a_kill(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 500, bytes_max=100_000)
    queries = [
        LogQuery(offset=offset, limit=13, since_ms=since)
        for offset, since in itertools.product((0, 7, 250, 499, 600), (None, 1050))
    ]
    before = [log.read(RUN, query) for query in queries]
    (*_, last) = files(tmp_path)
    with last.open("ab") as file:
        file.write(b'[501,1167,"text",6,"torn')

    again = TranscriptFiles(tmp_path)

    assert [again.read(RUN, query) for query in queries] == before
    again.resume(RUN)
    assert [again.read(RUN, query) for query in queries] == before


@pytest.mark.requirement("transcript:query")
def test_a_line_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    log = TranscriptFiles(tmp_path)
    fill(log, 6)
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'[3,1001,"error"', b'[3,"?","error"'))

    assert numbers(everything(log)) == [1, 2, 4, 5, 6]
    assert numbers(log.read(RUN, LogQuery(grep="line"))) == [1, 2, 4, 5, 6]
