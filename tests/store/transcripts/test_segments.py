"""Segments on disk: what is committed, which lines are in a slice, and where a line is."""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from subagents.domain.run.worker_output import LineType
from subagents.store.transcripts import segments
from subagents.store.transcripts.segments import Segment

MARK = b'{"seq":2,"ts":7,"later":true}\n'


def records(numbers: Iterable[int], *, chars: int = 1) -> bytes:
    """Lines of these numbers; the time is ten times the number."""
    rows = ([n, 10 * n, "text", 1, "x" * chars] for n in numbers)
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


@pytest.mark.requirement("transcript:segments")
@pytest.mark.parametrize(
    "torn", [b"", b'[3,30,"te', records([3]), b'{"seq":9,"ts', records([3]) + b'{"seq":3']
)
def test_what_stands_behind_the_last_whole_checkpoint_is_not_committed(torn: bytes) -> None:
    whole = records([1, 2]) + MARK

    found = segments.committed(io.BytesIO(whole + torn), len(whole + torn))

    assert found is not None
    end, mark = found
    assert (end, mark.seq, mark.ts) == (len(whole), 2, 7)


@pytest.mark.requirement("transcript:segments")
def test_a_checkpoint_is_found_before_a_torn_batch_of_any_size() -> None:
    whole = records([1, 2]) + MARK
    torn = records(range(3, 9), chars=segments.SLICE_BYTES)

    found = segments.committed(io.BytesIO(whole + torn), len(whole + torn))

    assert found is not None
    assert found[0] == len(whole)
    assert segments.committed(io.BytesIO(records([1])), len(records([1]))) is None
    assert segments.committed(io.BytesIO(b""), 0) is None


@pytest.mark.requirement("transcript:segments")
def test_slices_are_whole_records_and_leave_none_out() -> None:
    data = records(range(1, 3000), chars=200)
    begin = len(records([1], chars=200))

    found = list(segments.slices(io.BytesIO(data), begin, len(data)))

    assert b"".join(found) == data[begin:]
    assert len(found) > 1
    assert all(each.endswith(b"\n") and each.startswith(b"[") for each in found)


@pytest.mark.requirement("transcript:segments")
def test_of_a_slice_every_readable_line_is_read_and_no_checkpoint() -> None:
    data = MARK + records([1]) + MARK + MARK + records([2]) + b'[3,"?","text",1,"x"]\n' + MARK

    rows = segments.rows_of(data + records([4]))

    assert [row.seq for row in rows] == [1, 2, 4]
    assert (rows[0].line().ts, rows[0].line().type) == (10, LineType.TEXT)
    assert segments.without_marks(MARK + records([1]) + MARK + records([2])) == records([1, 2])
    assert segments.without_marks(records([1, 2])) == records([1, 2])


@pytest.mark.requirement("transcript:segments")
@pytest.mark.parametrize("wanted", [1, 2, 1500, 2999, 5000])
def test_a_line_is_looked_for_no_more_than_a_slice_before_it(wanted: int) -> None:
    data = records(range(1, 3000), chars=300)
    exact = len(records(range(1, min(wanted, 3000)), chars=300))

    for is_wanted in (
        lambda line: segments.seq_at(line) >= wanted,
        lambda line: segments.ts_at(line) >= 10 * wanted,
    ):
        place = segments.place_of(io.BytesIO(data), len(data), is_wanted)
        assert exact - segments.SLICE_BYTES - 1000 <= place <= exact
        assert place == 0 or data[place - 1 : place + 1] == b"\n["


@pytest.mark.requirement("transcript:segments")
def test_segments_are_found_by_number_and_other_files_passed_over(tmp_path: Path) -> None:
    for number in (101, 1, 21):
        segments.path_of(tmp_path, number).write_bytes(b"x" * number)
    for name in ("notes.txt", "x1.jsonl", "1.jsonl.tmp"):
        (tmp_path / name).touch()

    found = segments.found_in(tmp_path)

    assert [(each.first, each.end) for each in found] == [(1, 1), (21, 21), (101, 101)]
    assert sorted(each.path for each in found) == [each.path for each in found]
    assert segments.found_in(tmp_path / "none") == []
    for seq, first in ((1, 1), (20, 1), (21, 21), (100, 21), (5000, 101), (0, 1)):
        assert segments.holding(found, seq).first == first


@pytest.mark.requirement("transcript:segments")
def test_older_lines_are_looked_for_in_the_first_segment_that_is_left() -> None:
    left = [Segment(50, Path("a"), 9), Segment(90, Path("b"), 9)]

    assert segments.holding(left, 3).first == 50


@pytest.mark.requirement("transcript:segments")
@pytest.mark.parametrize(
    "bad",
    [b'[3,30,"of-next-year",1,"x"]', b'[3,30,"text",1,"\xff"]', b"[" * 10_000],
    ids=["type", "no-text", "deep"],
)
def test_a_line_that_cannot_be_read_is_left_out_and_the_others_are_there(bad: bytes) -> None:
    data = records([1, 2]) + bad + b"\n" + records([4])

    assert [row.seq for row in segments.rows_of(data)] == [1, 2, 4]
