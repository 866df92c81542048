"""Messages and interruptions come in as lines; each message once."""

import asyncio
import os
from pathlib import Path

import pytest

from subagents.extensions.llm.agent_loop.incoming import Incoming


def taken(*writes: bytes) -> tuple[list[str], bool, bool]:
    """Texts of the messages, whether the turn was interrupted, and whether anything is left."""

    async def go() -> tuple[list[str], bool, bool]:
        reading, writing = os.pipe()
        incoming = Incoming(reading)
        try:
            texts = []
            for data in writes:
                os.write(writing, data)
                texts += [each.text for each in incoming.take()]
            return texts, incoming.interrupted.is_set(), incoming.has_new()
        finally:
            incoming.close()
            os.close(reading)
            os.close(writing)

    return asyncio.run(go())


@pytest.mark.requirement("llm:steer")
def test_a_message_is_taken_once_however_its_line_is_cut_and_repeated() -> None:
    line = b'{"type":"message","key":"k1","text":"turn left"}\n'

    assert taken(line[:20], line[20:], line) == (["turn left"], False, False)


@pytest.mark.requirement("llm:interrupt")
def test_an_interruption_is_noted_and_what_is_no_message_is_left_aside() -> None:
    noise = b'not json\n{"type":"other"}\n\xff\n'

    assert taken(noise + b'{"type":"interrupt"}\n') == ([], True, False)


@pytest.mark.requirement("llm:steer")
def test_a_regular_file_is_read_to_its_end_at_once(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b'{"type":"message","key":"k","text":"a"}\n')

    async def go(descriptor: int) -> list[str]:
        return [each.text for each in Incoming(descriptor).take()]

    with path.open("rb") as file:
        assert asyncio.run(go(file.fileno())) == ["a"]
