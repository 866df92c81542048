"""However a stream is cut into chunks, the same lines come out of it."""

import pytest

from subagents.runtimes.output.lines import (
    BEGINNING_BYTES,
    Kind,
    Lines,
    Part,
)
from subagents.runtimes.output.worker_events import LINE_BYTES_MAX

DATA = b'x\n{"subagents":"tool"}\n\n {"subagents" y\nz "subagents"\n{} "subagents"\n{"subagents"'


def _marked(parts: list[Part]) -> list[Part]:
    return [part for part in parts if part.kind is Kind.MARKED]


@pytest.mark.requirement("runtimes:signal-keys-repeat")
def test_lines_are_found_however_the_bytes_are_cut_into_chunks() -> None:
    whole = Lines(7)
    found = whole.feed(DATA) + whole.finish()
    assert [part.data for part in _marked(found)] == [
        b'{"subagents":"tool"}',
        b' {"subagents" y',
        b'{} "subagents"',
        b'{"subagents"',
    ]
    assert [part.data for part in found if part.kind is Kind.PLAIN] == [
        b"x\n",
        b"\n",
        b'z "subagents"\n',
    ]
    for size in range(1, len(DATA)):
        lines = Lines(7)
        chunks = [DATA[start : start + size] for start in range(0, len(DATA), size)]
        parts = [part for chunk in chunks for part in lines.feed(chunk)]
        assert lines.fed == 7 + len(DATA)
        assert lines.position == 7 + DATA.rindex(b"\n") + 1
        parts += lines.finish()
        assert _marked(parts) == _marked(found)
        assert lines.position == 7 + len(DATA)
        plain = b"".join(part.data for part in parts if part.kind is Kind.PLAIN)
        assert plain == b'x\n\nz "subagents"\n'


@pytest.mark.requirement("runtimes:signal-keys-repeat")
def test_parts_lie_side_by_side_and_hold_the_bytes_between_their_offsets() -> None:
    lines = Lines(0)
    parts = lines.feed(DATA) + lines.finish()

    assert [part.start for part in parts] == [0, *(part.end for part in parts[:-1])]
    for part in parts:
        assert DATA[part.start : part.end].rstrip(b"\n") == part.data.rstrip(b"\n")


@pytest.mark.requirement("runtimes:bounded-memory")
def test_of_a_line_over_a_mebibyte_only_the_beginning_is_held_and_the_next_one_is_read() -> None:
    lines = Lines(0)
    long = b'{"subagents":"result","text":"' + b"x" * LINE_BYTES_MAX
    chunks = (long, long, b'"}\n{"subagents":"tool","name":"n"}\n')
    [cut, event] = [part for chunk in chunks for part in lines.feed(chunk)]

    assert (cut.kind, cut.start, cut.data) == (Kind.CUT, 0, long[:BEGINNING_BYTES])
    assert event.data == b'{"subagents":"tool","name":"n"}'
    assert event.start == 2 * len(long) + 3
    assert event.end == lines.position == lines.fed


@pytest.mark.requirement("runtimes:bounded-memory")
@pytest.mark.parametrize("size", [64 * 1024, LINE_BYTES_MAX, 4 * LINE_BYTES_MAX])
def test_a_line_is_too_long_by_its_length_and_not_by_how_it_came(size: int) -> None:
    fits, long = b"a" * LINE_BYTES_MAX, b"b" * (LINE_BYTES_MAX + 1)
    data = b"\n".join((fits, long, b"c", long, b""))
    lines = Lines(0)
    parts = [part for at in range(0, len(data), size) for part in lines.feed(data[at : at + size])]

    assert [(part.kind, part.data[:1]) for part in parts] == [
        (Kind.PLAIN, b"a"),
        (Kind.CUT, b"b"),
        (Kind.PLAIN, b"c"),
        (Kind.CUT, b"b"),
    ]


@pytest.mark.requirement("runtimes:bounded-memory")
def test_reading_that_begins_inside_a_line_skips_what_is_left_of_it() -> None:
    lines = Lines(100, is_inside=True)

    assert lines.feed(b"the rest") == []
    assert lines.position == lines.fed == 108
    assert lines.feed(b" of it\nnext\n") == [Part(Kind.PLAIN, 115, 120, b"next\n")]
