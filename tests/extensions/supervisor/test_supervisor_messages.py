"""The lines of the supervisor socket: what is understood, and how the rest is refused."""

import asyncio
from pathlib import Path

import pytest
from tests.api.home_daemon import serving
from tests.extensions.supervisor.supervisor_clients import supervisor

from subagents.extensions.supervisor.supervisor_messages import lines


@pytest.mark.requirement("supervisor:lives-on")
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (b"nonsense", "invalid", "the line is not JSON"),
        (b"\xff\xfe", "invalid", "the line is not JSON"),
        (b"[" * 100_000, "invalid", "the line is not JSON"),
        (b"[1]", "invalid", "the line must be a JSON object"),
        (b"{}", "invalid", "type must be"),
        (b'{"type":"comand"}', "invalid", 'did you mean "command"?'),
        (b'{"type":"command","action":"ping"}', "invalid", "requestId must be"),
        (b'{"type":"command","requestId":1}', "invalid", "action must be text"),
        (b'{"type":"command","requestId":1,"action":"pong"}', "invalid", 'did you mean "ping"?'),
        (b'{"type":"command","requestId":1,"action":"ping2","params":3}', "invalid", "params must"),
        (b'{"type":"command","requestId":1,"action":"status","params":{"x":1}}', "invalid", '"x"'),
        (b'{"type":"command","requestId":1,"action":"get_log"}', "invalid", "agentId is required"),
        (
            b'{"type":"command","requestId":1,"action":"status","params":{"agentId":"nobody"}}',
            "not_found",
            'no run "nobody"',
        ),
        (b"x" * (1024 * 1024 + 1), "invalid", "a line must have at most 1048576 bytes"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else None,
)
async def test_what_makes_no_sense_gets_an_error_and_the_connection_lives_on(
    tmp_path: Path, line: bytes, code: str, message: str
) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        found = await one.say(line)
        assert found["type"] == "response"
        assert found["error"]["code"] == code
        assert message in found["error"]["message"]
        has_id = b'"requestId":1' in line
        assert found["requestId"] == (1 if has_id else None)
        assert (await one.do("ping"))["pong"] is True


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
