"""Lines of a stream, none longer than the limit."""

import asyncio
from pathlib import Path

import pytest
from tests.api.home_daemon import serving
from tests.extensions.supervisor.supervisor_clients import supervisor

from subagents.extensions.supervisor.bounded_lines import lines


@pytest.mark.requirement("supervisor:bounded")
async def test_a_line_without_end_is_skipped_and_not_kept() -> None:
    reader = asyncio.StreamReader()
    for part in (
        b"ab",
        b"c" * 9,
        b"\nshort\n",
        b"d" * 11 + b"\n" + b"e" * 10,
        b"\n",
        b"f" * 11,
    ):
        reader.feed_data(part)
    reader.feed_eof()
    found = [line async for line in lines(reader, bytes_max=10)]
    assert found == [None, b"short", None, b"e" * 10, None]


@pytest.mark.requirement("supervisor:lives-on")
async def test_lines_may_come_in_pieces_many_at_once_empty_or_without_an_end(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home, supervisor(home, None) as one:
        ping = b'{"type":"command","requestId":%d,"action":"ping"}'
        one.writer.write(b"\n \n" + ping % 1 + b"\n" + ping % 2 + b"\r\n" + (ping % 3)[:20])
        assert [(await one.answer())["requestId"] for _ in range(2)] == [1, 2]
        one.writer.write((ping % 3)[20:])
        one.writer.write_eof()
        assert (await one.answer())["requestId"] == 3
        assert await one.reader.read() == b""
